// A guard in a thread of its own, so that it answers while the thread of the test is busy.
import { once } from "node:events";
import type { TestContext } from "node:test";
import { Worker } from "node:worker_threads";
import { LambdaClient } from "@aws-sdk/client-lambda";
import type { Options } from "@cric-talk/guards";

// It counts each request id once, and allows 10.
const code = `
  const { parentPort, workerData: delay } = require("node:worker_threads");
  const counted = new Set();
  const server = require("node:http").createServer((request, response) => {
    let text = "";
    request.on("data", (chunk) => (text += chunk));
    request.on("end", () => {
      const { requestId } = JSON.parse(text);
      if (counted.size < 10) counted.add(requestId);
      const allowed = counted.has(requestId);
      setTimeout(() => response.end(JSON.stringify({ allowed, reason: allowed ? "ok" : "limited" })), delay);
    });
  });
  server.listen(0, "127.0.0.1", () => parentPort.postMessage(server.address().port));
`;

/** Starts a guard with a limit of 10, which answers after so many milliseconds. Returns the options that ask it, and its address. */
export async function startGuard(t: TestContext, delay: number): Promise<{ at: Options; client: LambdaClient; url: string }> {
  const worker = new Worker(code, { eval: true, workerData: delay });
  const [port] = (await once(worker, "message")) as [number];
  const url = `http://127.0.0.1:${port}`;
  const credentials = { accessKeyId: "AKID", secretAccessKey: "secret" };
  const client = new LambdaClient({ region: "eu-west-1", endpoint: url, credentials });
  t.after(() => {
    client.destroy();
    return worker.terminate();
  });
  return { at: { region: "eu-west-1", endpoint: url, credentials }, client, url };
}
