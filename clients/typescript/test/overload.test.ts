// More checks at once than the SDK has sockets. A guard that counts answers them all, so none is an outage.
import assert from "node:assert/strict";
import { test } from "node:test";
import { LambdaClient } from "@aws-sdk/client-lambda";
import { Guards, type GuardsError } from "@cric-talk/guards";
import { Lambda, limited, ok } from "./lambda.js";

const credentials = { accessKeyId: "AKID", secretAccessKey: "secret" };

/** Less than the waves of 50 requests take. */
const short = { decisionTimeout: 200, timeout: 500 };

/** OVERLOAD=full tries the largest bursts with the default options, which takes minutes. */
const bursts: [checks: number, delay: number, options: object][] =
  process.env["OVERLOAD"] === "full"
    ? [600, 1000, 2000].flatMap((checks) => [10, 100, 400].map((delay): [number, number, object] => [checks, delay, {}]))
    : [
        [400, 100, short],
        [2000, 10, {}],
      ];

for (const [checks, delay, options] of bursts) {
  for (const way of ["Invoke", "URL"]) {
    test(`${checks} checks at once by ${way}, answered after ${delay} ms: exactly 10 of limit 10 pass`, async (t) => {
      const lambda = await Lambda.start(t);
      let counted = 0;
      lambda.replies = [() => ({ answer: counted++ < 10 ? ok : limited })];
      lambda.delay = delay;
      const client = new LambdaClient({ region: "eu-west-1", endpoint: lambda.url, credentials }); // the SDK's defaults
      t.after(() => client.destroy());
      const warnings: GuardsError[] = [];
      const urls: Record<string, string> = way === "URL" ? { "posts-guard": lambda.url } : {};
      const guards = new Guards({ client, urls, warn: (error) => warnings.push(error), ...options });
      const decisions = await Promise.all(Array.from({ length: checks }, () => guards.check("create_post", { userId: "u1" })));
      assert.deepEqual(warnings, []);
      assert.equal(decisions.filter((decision) => decision.allowed).length, 10);
      assert.equal(lambda.requests.length, checks);
    });
  }
}
