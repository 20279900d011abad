import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { Guards, OutageError, ValidationError } from "@cric-talk/guards";
import { activities } from "./activities.js";
import { repeat } from "../dist/repeat.js"; // not exported: only this package and its tests know it
import { Stopwatch } from "../dist/stopwatch.js";
import { between, duration, forever, Lambda, ok, quick, recordSleeps, type Reply, stopClock, timeoutOf, until } from "./lambda.js";
import { startGuard } from "./thread.js";

const repeated: [name: string, reply: Reply][] = [
  ["an error of Lambda", { status: 500, code: "ServiceException", message: "internal" }],
  ["an error of Lambda with another body", { status: 503, body: "<html>" }],
  ["throttling", { status: 429, code: "TooManyRequestsException", message: "Rate Exceeded." }],
  ["a broken connection", "reset"],
  ["a response that is cut", "cut"],
  ["a timeout", "hang"],
  ["a timeout in the middle of a response", "halfway"],
];

for (const [name, reply] of repeated) {
  test(`${name} is repeated`, async (t) => {
    const lambda = await Lambda.start(t, reply, { answer: ok });
    const soon = { decisionTimeout: 700, timeout: forever, maxTries: 2 };
    const decision = await lambda.guards(name.startsWith("a timeout") ? soon : {}).check("create_post", { userId: "u1" });
    assert.equal(decision.reason, "ok");
    assert.equal(lambda.requests.length, 2);
  });
}

const notRepeated: [name: string, reply: Reply][] = [
  ["a timeout of the function", { functionError: { errorType: "Sandbox.Timedout", errorMessage: "Task timed out" } }],
  ["a guard's outage", { functionError: { errorType: "Unavailable", errorMessage: "no answer from the table" } }],
  ["a guard's mistake", { functionError: { errorType: "ValidationError", errorMessage: "count is 0" } }],
  ["a crash", { functionError: { errorType: "Runtime.ExitError" } }],
  ["a mistake", { status: 403, code: "AccessDeniedException" }],
  ["another answer", { text: "hello" }],
];

for (const [name, reply] of notRepeated) {
  test(`${name} is not repeated`, async (t) => {
    const lambda = await Lambda.start(t, reply, { answer: ok });
    await lambda.guards().check("create_post", { userId: "u1" }).catch(() => {});
    assert.equal(lambda.requests.length, 1);
  });
}

test("a release and a status are repeated", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const guards = lambda.guards();
  const calls = [
    () => guards.status("create_post", { userId: "u1" }),
    () => guards.release("create_post", { userId: "u1", at: 1, requestId: "r1" }),
  ];
  for (const call of calls) {
    lambda.replies = ["reset", { answer: ok }];
    assert.equal((await call()).allowed, true);
  }
  assert.equal(lambda.requests.length, 4);
});

// A repeat could delete what was counted since.
test("a reset is sent once, and gets all the time", async (t) => {
  const lambda = await Lambda.start(t, { status: 500 });
  await assert.rejects(lambda.guards().reset("create_post", { userId: "u1" }), { name: "OutageError" });
  assert.equal(lambda.requests.length, 1);
  lambda.replies = ["hang"];
  await assert.rejects(lambda.guards(quick).reset("create_post", { userId: "u1" }), (error: Error) => {
    between(timeoutOf(error), 1300, 1500);
    return true;
  });
  assert.equal(lambda.requests.length, 2);
});

test("there are at most so many attempts", async (t) => {
  for (const maxTries of [1, 3, 5]) {
    const lambda = await Lambda.start(t, { status: 500 });
    await lambda.guards({ maxTries }).check("create_post", { userId: "u1" });
    assert.equal(lambda.requests.length, maxTries);
  }
});

test("attempts are aborted, and the last one gets the rest", async (t) => {
  const lambda = await Lambda.start(t, "hang");
  const took = await duration(async () => {
    const { outage } = await lambda.guards({ ...quick, maxTries: 2 }).check("create_post", { userId: "u1" });
    between(timeoutOf(outage), 600, 900); // an attempt takes 600 ms
  });
  between(took, 1490, forever);
  between(lambda.requests.length, 1, 2); // a busy machine can abort the first one before it is sent
  await until(() => lambda.requests.every((request) => request.brokenAt !== undefined));
});

const shares: [what: string, timeout: number, maxTries: number, took: number[]][] = [
  ["three attempts and the pauses must fit", 3999, 3, [1300, 2699]],
  ["three attempts and the pauses do fit", 4000, 3, [1300, 1300, 1400]],
  ["an attempt after which no other one could follow gets the rest", 3000, 3, [1300, 1700]],
  ["two attempts and the pause must fit", 2649, 3, [2649]],
  ["two attempts and the pause do fit", 2650, 3, [1300, 1350]],
  ["the only attempt gets all the time", 10_000, 1, [10_000]],
  ["the last attempt gets all the time that is left", 10_000, 2, [1300, 8700]],
];

for (const [what, timeout, maxTries, took] of shares) {
  test(`attempts share the time: ${what}`, async (t) => {
    t.mock.method(Math, "random", () => 0);
    const got: number[] = [];
    const time = Object.assign(new Stopwatch(), { alarm: (ms: number) => (got.push(ms), () => {}) });
    t.after(() => time.stop());
    Object.defineProperty(time, "elapsed", { get: () => got.reduce((sum, ms) => sum + ms, 0) });
    const call = { name: "posts-guard", timeout, time, signal: undefined };
    const repeated = repeat(call, { maxTries, attemptTimeout: 1300 }, async () => {
      throw new OutageError("late", { retryable: true });
    });
    await assert.rejects(repeated, { message: "late" });
    assert.deepEqual(got, took);
  });
}

test("a check with partial gets all the time", async (t) => {
  const lambda = await Lambda.start(t, "hang");
  const { outage } = await lambda.guards(quick).check("create_post", { userId: "u1", partial: true });
  between(timeoutOf(outage), 1300, 1500);
  assert.equal(lambda.requests.length, 1);
});

test("no repeat starts if its time is not left", async (t) => {
  const lambda = await Lambda.start(t, { status: 500 }, { answer: ok });
  lambda.delay = 800;
  const decision = await lambda.guards({ decisionTimeout: 300, timeout: 1000 }).check("create_post", { userId: "u1" });
  assert.equal(decision.reason, "unavailable"); // 200 ms are left, and an attempt needs 600 ms
  assert.equal(lambda.requests.length, 1);
});

test("pauses before repeats are random and short", async (t) => {
  const pauses = recordSleeps(t, stopClock(t));
  const lambda = await Lambda.start(t, { status: 500 });
  let random = 0;
  t.mock.method(Math, "random", () => random);
  for (random of [0, 0.5, 1]) await lambda.guards({ maxTries: 4 }).check("create_post", { userId: "u1" });
  assert.deepEqual(pauses, [0, 0, 0, 25, 50, 100, 50, 100, 200]);
});

test("an outage says what happened last", async (t) => {
  const lambda = await Lambda.start(t, { status: 500, code: "ServiceException", message: "first" }, "reset");
  await assert.rejects(lambda.guards({ maxTries: 2 }).status("create_post", { userId: "u1" }), (error) => {
    assert.ok(error instanceof OutageError && !(error instanceof ValidationError));
    assert.match(error.message, /^posts-guard did not answer: (socket hang up|read ECONNRESET)$/);
    assert.equal(error.guard, "posts-guard");
    return true;
  });
});

test("an answer that arrives while the event loop is blocked is read, however late", async (t) => {
  const { at } = await startGuard(t, 100);
  const guards = new Guards({ activities, ...at, maxTries: 1, decisionTimeout: 300, timeout: 600 });
  await guards.status("create_post", { userId: "u1" }); // opens the connection
  const check = guards.check("create_post", { userId: "u1" });
  await setImmediate();
  await setImmediate(); // now it is sent
  const end = performance.now() + 1000;
  while (performance.now() < end); // blocked
  assert.equal((await check).reason, "ok");
});
