import assert from "node:assert/strict";
import { test } from "node:test";
import type { Observed } from "@cric-talk/guards";
import { between, Lambda, ok } from "./lambda.js";

const args = { userId: "user-77", requestId: "request-88" };

/** Collects what the app's function gets. */
function observed() {
  const got: { decision: Observed; ms: number; way: string }[] = [];
  return { got, observe: (decision: Observed, ms: number, way: string) => void got.push({ decision, ms, way }) };
}

test("each decision is observed, with how long it took, and no id", async (t) => {
  const answer = { ...ok, userId: "user-77", requestId: "request-88" };
  const lambda = await Lambda.start(t, { answer });
  lambda.delay = 50;
  const { got, observe } = observed();
  const guards = lambda.guards({ observe });
  const decision = await guards.check("create_post", { ...args, subjects: {} });
  await guards.status("create_post", { userId: "user-77" });
  await guards.release(decision);
  await guards.reset("create_post", { userId: "user-77" });
  assert.equal(got.length, 4);
  const { userId, requestId, ...wanted } = answer;
  for (const { decision, ms, way } of got) {
    assert.deepEqual(decision, { ...wanted, guard: "posts-guard", window: 60 });
    assert.doesNotMatch(JSON.stringify(decision), /user-77|request-88/);
    between(ms, 45, 15_000);
    assert.equal(way, "invoke");
  }
  assert.equal(decision.userId, "user-77", "the app's own decision is whole");
});

test("a subject's id is not observed", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const { got, observe } = observed();
  await lambda.guards({ observe }).check({ guard: "forum-guard", activity: "write" }, { ...args, subjects: { room: "room-99" } });
  assert.equal(got.length, 1);
  assert.doesNotMatch(JSON.stringify(got), /room-99/);
});

test("the way of a guard with a URL is url, and through an agent it is agent", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok, headers: { "guards-agent": "1" } });
  const { got, observe } = observed();
  const guards = lambda.guards({ observe, urls: { "posts-guard": lambda.url } });
  await guards.check("create_post", args);
  await guards.check("create_room", args);
  await lambda.guards({ observe, agent: lambda.url }).check("create_post", args);
  assert.deepEqual(got.map(({ way }) => way), ["url", "invoke", "agent"]);
});

test("an outage that onOutage decided is observed, and a mistake is not", async (t) => {
  const lambda = await Lambda.start(t, { status: 500 });
  const { got, observe } = observed();
  const guards = lambda.guards({ observe, maxTries: 1 });
  await guards.check("create_post", args);
  await guards.check("create_post", { ...args, onOutage: "deny" });
  assert.deepEqual(got.map(({ decision }) => [decision.reason, decision.allowed, decision.outage?.name]), [
    ["unavailable", true, "OutageError"],
    ["unavailable", false, "OutageError"],
  ]);
  await assert.rejects(guards.check("create_room", { ...args, count: 0 }));
  await assert.rejects(guards.status("create_post", args), { name: "OutageError" });
  assert.equal(got.length, 2);
});

test("what observe throws changes nothing, and neither does a promise that it returns", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const fails = (): never => {
    throw new Error("no metrics");
  };
  // A rejection that nobody catches would fail this test.
  for (const observe of [fails, async () => fails(), () => new Promise(() => {})]) {
    assert.equal((await lambda.guards({ observe }).check("create_post", args)).reason, "ok");
  }
});

test("what warn throws changes nothing, and neither does a promise that it returns", async (t) => {
  const lambda = await Lambda.start(t, { status: 500 });
  const fails = (): never => {
    throw new Error("no log");
  };
  for (const warn of [fails, async () => fails()]) {
    assert.equal((await lambda.guards({ warn, maxTries: 1 }).check("create_post", args)).reason, "unavailable");
  }
});
