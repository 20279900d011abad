// An app in JavaScript that asks a guard by one way. Its arguments are the way and an address.
// internal/proofs/bench/program_test.go describes what it reads and prints.
const [way, address] = process.argv.slice(2);

// What makes the client of each way. Nothing is loaded before.
const open = {
  async none() {
    return async () => true;
  },
  async invoke() {
    process.env.AWS_ENDPOINT_URL_LAMBDA = address;
    return asking({ activities: await list() });
  },
  async url() {
    return asking({ activities: await list(), urls: { "posts-guard": `${address}/posts-guard` } });
  },
  async agent() {
    return asking({ agent: address });
  },
  // Only invokes the function with the SDK's client, and reads one field.
  async sdk() {
    const { InvokeCommand, LambdaClient } = await import("@aws-sdk/client-lambda");
    const lambda = new LambdaClient({ endpoint: address });
    return async (userId) => {
      const payload = JSON.stringify({ userId, activity: "create_post" });
      const { Payload } = await lambda.send(new InvokeCommand({ FunctionName: "posts-guard", Payload: payload }));
      return JSON.parse(Payload.transformToString()).reason === "ok";
    };
  },
};

async function list() {
  const { readFile } = await import("node:fs/promises");
  return JSON.parse(await readFile(new URL("activities.json", import.meta.url), "utf8"));
}

async function asking(options) {
  const { Guards } = await import("@cric-talk/guards");
  const guards = new Guards(options);
  return async (userId) => {
    const { reason } = await guards.check("create_post", { userId });
    return reason === "ok"; // an outage has another one
  };
}

const ask = await open[way]();
if (process.env.ONLY === "call" && !(await ask(`first-${process.pid}-${Date.now()}`))) throw new Error("a new user is refused");
if (process.env.ONLY) process.exit();

const { createInterface } = await import("node:readline");
for await (const line of createInterface({ input: process.stdin })) {
  const { prefix, users } = JSON.parse(line);
  const began = process.hrtime.bigint(), used = process.cpuUsage();
  let allowed = 0;
  for (let n = 0; n < users; n++) if (await ask(prefix + String(n).padStart(36 - prefix.length, "0"))) allowed++;
  const cpu = process.cpuUsage(used), us = Number(process.hrtime.bigint() - began) / 1000;
  console.log(JSON.stringify({ allowed, us, cpu: cpu.user + cpu.system }));
}
