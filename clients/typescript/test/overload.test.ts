// More checks at once than the SDK has sockets. The guard answers them all, so none is an outage.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Guards, type GuardsError } from "@cric-talk/guards";
import { activities } from "./activities.js";
import { startGuard } from "./thread.js";

/** OVERLOAD=full tries all of them, which takes minutes. The others take longer than the timeout of a call. */
const all = [600, 1000, 2000].flatMap((checks) => [10, 100, 400].map((delay) => ({ checks, delay })));
const bursts = process.env["OVERLOAD"] === "full" ? all : all.filter(({ checks, delay }) => checks === 600 && delay === 400);

for (const { checks, delay, way } of bursts.flatMap((burst) => ["Invoke", "URL"].map((way) => ({ ...burst, way })))) {
  test(`${checks} checks at once by ${way}, answered after ${delay} ms: exactly 10 of limit 10 pass`, async (t) => {
    const { client, url } = await startGuard(t, delay);
    const warnings: GuardsError[] = [];
    const urls: Record<string, string> = way === "URL" ? { "posts-guard": url } : {};
    const guards = new Guards({ activities, client, urls, warn: (error) => warnings.push(error) });
    const decisions = await Promise.all(Array.from({ length: checks }, () => guards.check("create_post", { userId: "u1" })));
    assert.deepEqual(warnings, []);
    assert.equal(decisions.filter((decision) => decision.allowed).length, 10);
  });
}
