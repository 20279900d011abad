// Asks rate-limiter-flexible. internal/proofs/bench/peers_test.go describes what it reads and prints.
import { createInterface } from "node:readline";
import { DynamoDB } from "@aws-sdk/client-dynamodb";
import { RateLimiterDynamo } from "rate-limiter-flexible";

const [endpoint, name] = process.argv.slice(2);
const table = `${name}-peer`; // with keys of its own
const client = new DynamoDB({ endpoint, region: "eu-west-1", credentials: { accessKeyId: "test", secretAccessKey: "test" } });
const limiter = await new Promise((resolve, reject) => {
  const made = new RateLimiterDynamo(
    { storeClient: client, tableName: table, points: 2, duration: 60, ttlSet: true },
    (error) => (error ? reject(error) : resolve(made)),
  );
});

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

for await (const line of createInterface({ input: process.stdin })) console.log(JSON.stringify(await ask(JSON.parse(line))));
