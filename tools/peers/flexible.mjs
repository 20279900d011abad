// Asks rate-limiter-flexible. internal/proofs/bench/program_test.go describes what it reads and prints.
import { DynamoDB } from "@aws-sdk/client-dynamodb";
import { RateLimiterDynamo } from "rate-limiter-flexible";

const [endpoint, name] = process.argv.slice(2);
const table = `${name}-peer`; // with keys of its own
const client = new DynamoDB({ endpoint, region: "eu-west-1", credentials: { accessKeyId: "test", secretAccessKey: "test" } });
const only = process.env.ONLY; // then the table is there already
const limiter = await new Promise((resolve, reject) => {
  const made = new RateLimiterDynamo(
    { storeClient: client, tableName: table, points: 2, duration: 60, ttlSet: true, tableCreated: only !== undefined },
    (error) => (error ? reject(error) : resolve(made)),
  );
});
if (only === "call") await limiter.consume(`first-${process.pid}-${Date.now()}`);
if (only) process.exit();

async function ask({ prefix, users, callers }) {
  let next = 0, allowed = 0;
  const began = process.hrtime.bigint(), used = process.cpuUsage();
  await Promise.all(Array.from({ length: callers }, async () => {
    while (next < users) {
      const user = prefix + String(next++).padStart(36 - prefix.length, "0");
      try {
        await limiter.consume(user);
        allowed++;
      } catch (refusal) {
        if (refusal instanceof Error) throw refusal;
      }
    }
  }));
  const cpu = process.cpuUsage(used);
  return { allowed, us: Number(process.hrtime.bigint() - began) / 1000, cpu: cpu.user + cpu.system };
}

const { createInterface } = await import("node:readline");
for await (const line of createInterface({ input: process.stdin })) console.log(JSON.stringify(await ask(JSON.parse(line))));
