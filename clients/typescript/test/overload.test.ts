// More checks at once than the client has connections. The guard answers them all, so none is an outage.
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Guards, type GuardsError } from "@cric-talk/guards";
import { activities } from "./activities.js";
import { between, duration } from "./lambda.js";
import { startGuard } from "./thread.js";

/** OVERLOAD=full tries all of them, which takes minutes. The others take longer than the timeout of a call. */
const all = [600, 1000, 2000].flatMap((checks) => [10, 100, 400].map((delay) => ({ checks, delay })));
const bursts = process.env["OVERLOAD"] === "full" ? all : all.filter(({ checks, delay }) => checks === 600 && delay === 400);

for (const { checks, delay, way } of bursts.flatMap((burst) => ["Invoke", "URL", "the option client"].map((way) => ({ ...burst, way })))) {
  test(`${checks} checks at once by ${way}, answered after ${delay} ms: exactly 10 of limit 10 pass`, async (t) => {
    const { at, client, url } = await startGuard(t, delay);
    const warnings: GuardsError[] = [];
    const urls: Record<string, string> = way === "URL" ? { "posts-guard": url } : {};
    const guards = new Guards({ activities, ...(way === "the option client" ? { client } : at), urls, warn: (error) => warnings.push(error) });
    const decisions = await Promise.all(Array.from({ length: checks }, () => guards.check("create_post", { userId: "u1" })));
    assert.deepEqual(warnings, []);
    assert.equal(decisions.filter((decision) => decision.allowed).length, 10);
  });
}

/** OVERLOAD=full tries all of them. */
const crowds = process.env["OVERLOAD"] === "full" ? [40, 51, 100, 200, 500, 1000, 2000] : [40, 2000];

for (const { checks, way } of crowds.flatMap((checks) => ["Invoke", "URL"].map((way) => ({ checks, way })))) {
  test(`${checks} checks at once by ${way} of a port that accepts and never answers: each ends within a second of its timeout`, async (t) => {
    const sockets = new Set<Socket>();
    const server = createServer((socket) => void sockets.add(socket.on("error", () => {}))).listen(0, "127.0.0.1");
    await once(server, "listening");
    t.after(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const urls: Record<string, string> = way === "URL" ? { "posts-guard": endpoint } : {};
    const credentials = { accessKeyId: "AKID", secretAccessKey: "secret" };
    const guards = new Guards({ activities, region: "eu-west-1", endpoint, credentials, urls, warn: () => {} });
    const timer = duration(() => sleep(5000)); // on a busy machine, it is late as well
    const took = await Promise.all(
      Array.from({ length: checks }, async () => {
        const start = performance.now();
        assert.equal((await guards.check("create_post", { userId: "u1" })).reason, "unavailable");
        return performance.now() - start;
      }),
    );
    between(Math.max(...took), 0, (await timer) + 1000);
  });
}
