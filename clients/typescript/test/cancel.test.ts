import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { Lambda, ok, stopClock, until } from "./lambda.js";

const user = { userId: "u1" };
const aborted = { name: "AbortError", code: "ABORT_ERR" };

/** Cancels a check while the guard has its request. */
async function cancelOne(lambda: Lambda, guards: ReturnType<Lambda["guards"]>): Promise<void> {
  lambda.requests.length = 0;
  const controller = new AbortController();
  const cancelled = assert.rejects(guards.check("create_post", { ...user, signal: controller.signal }), aborted);
  await until(() => lambda.requests.length === 1);
  controller.abort();
  await cancelled;
}

test("a call can be cancelled, and its request is aborted", async (t) => {
  const lambda = await Lambda.start(t, "hang");
  const byURL: Record<string, string> = { "posts-guard": lambda.url };
  for (const urls of [{}, byURL]) {
    const guards = lambda.guards({ urls });
    const calls = [
      (signal: AbortSignal) => guards.check("create_post", { ...user, signal }),
      (signal: AbortSignal) => guards.status("create_post", { ...user, signal }),
      (signal: AbortSignal) => guards.release("create_post", { ...user, at: 1, requestId: "r1", signal }),
      (signal: AbortSignal) => guards.release({ ...ok, guard: "posts-guard", op: "check", reason: "ok" }, { signal }),
      (signal: AbortSignal) => guards.reset("create_post", { ...user, signal }),
      (signal: AbortSignal) => guards.guarded("create_post", { ...user, signal }, () => assert.fail("it ran")),
    ];
    for (const call of calls) {
      lambda.requests.length = 0;
      const controller = new AbortController();
      const cancelled = call(controller.signal);
      await until(() => lambda.requests[0]?.text !== "" && lambda.requests.length === 1);
      controller.abort("the user left");
      await assert.rejects(cancelled, { ...aborted, cause: "the user left" });
      await until(() => lambda.requests[0]?.brokenAt !== undefined);
      assert.ok(!("signal" in (lambda.requests[0]?.event ?? {})));
    }
  }
});

test("a cancelled call leaves the idle connections of others open", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const guards = lambda.guards();
  const checkAll = async () => {
    lambda.requests.length = 0;
    await Promise.all(Array.from({ length: 3 }, () => guards.check("create_post", user)));
    return lambda.requests.map(({ port }) => port);
  };
  const open = await checkAll();
  lambda.replies = ["hang", { answer: ok }];
  await cancelOne(lambda, guards);
  await until(() => lambda.requests[0]?.brokenAt !== undefined);
  assert.equal((await checkAll()).filter((port) => open.includes(port)).length, 2);
});

test("a call whose signal was aborted before sends nothing", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  await assert.rejects(lambda.guards().check("create_post", { ...user, signal: AbortSignal.abort() }), aborted);
  assert.equal(lambda.requests.length, 0);
});

test("a signal that is not aborted changes nothing", async (t) => {
  const lambda = await Lambda.start(t, { status: 500 }, { answer: ok });
  const { signal } = new AbortController();
  assert.equal((await lambda.guards().check("create_post", { ...user, signal })).reason, "ok");
  assert.equal(lambda.requests.length, 2);
});

// An app gives one signal to all calls of one of its requests, or to all that end when it shuts down. Node warns of a leak
// at the eleventh listener.
test("many calls can have one signal, which cancels them all", async (t) => {
  const warnings: Error[] = [];
  const note = (warning: Error) => warnings.push(warning);
  process.on("warning", note);
  t.after(() => process.off("warning", note));
  const lambda = await Lambda.start(t, { status: 500 }, "hang"); // one of them also waits before its repeat
  const guards = lambda.guards();
  const controller = new AbortController();
  const { signal } = controller;
  const refused = { allowed: false, waitTime: 10_000 };
  const calls = Array.from({ length: 20 }, (_, n) => (n % 2 ? guards.check("create_post", { ...user, signal }) : guards.wait(refused, { signal })));
  await until(() => lambda.requests.length === 11);
  assert.equal(getEventListeners(signal, "abort").length, 1);
  controller.abort("the app ends");
  for (const call of calls) await assert.rejects(call, { ...aborted, cause: "the app ends" });
  assert.equal(getEventListeners(signal, "abort").length, 0);
  assert.deepEqual(warnings, []);
});

test("waiting for credentials can be cancelled", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const guards = lambda.guards({ client: lambda.client(() => new Promise<never>(() => {})) });
  await assert.rejects(guards.check("create_post", { ...user, signal: AbortSignal.timeout(20) }), aborted);
});

test("the signal of guarded does not cancel the release", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const controller = new AbortController();
  const guarded = lambda.guards().guarded("create_post", { ...user, signal: controller.signal }, () => {
    controller.abort();
    throw new Error("the user left");
  });
  await assert.rejects(guarded, { message: "the user left" });
  assert.equal(lambda.requests[1]?.event["op"], "release");
});

test("a call that was cancelled is no outage, and a cancelled probe makes the next call the probe", async (t) => {
  const clock = stopClock(t);
  const lambda = await Lambda.start(t, "hang");
  const guards = lambda.guards({ maxTries: 1 });
  const cancel = () => cancelOne(lambda, guards);
  await cancel();
  await cancel();
  lambda.replies = [{ status: 500 }, "hang"];
  assert.equal((await guards.check("create_post", user)).outage?.message, "posts-guard did not answer: HTTP 500");
  assert.equal((await guards.check("create_post", user)).outage?.message, "posts-guard did not answer a moment ago");
  clock.advance(1000);
  await cancel();
  lambda.replies = [{ answer: ok }];
  assert.equal((await guards.check("create_post", user)).reason, "ok");
});

test("cancelling a call that began before an outage does not end the pause after it", async (t) => {
  stopClock(t);
  const lambda = await Lambda.start(t, "hang", { status: 500 });
  const guards = lambda.guards({ maxTries: 1 });
  const controller = new AbortController();
  const first = guards.check("create_post", { ...user, signal: controller.signal });
  await until(() => lambda.requests.length === 1);
  await guards.check("create_post", user);
  controller.abort();
  await assert.rejects(first, aborted);
  assert.equal((await guards.check("create_post", user)).outage?.message, "posts-guard did not answer a moment ago");
});
