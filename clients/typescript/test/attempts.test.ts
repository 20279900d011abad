import assert from "node:assert/strict";
import { test } from "node:test";
import { OutageError, ValidationError } from "@cric-talk/guards";
import { between, duration, Lambda, ok, quick, type Reply, until } from "./lambda.js";

const repeated: [name: string, reply: Reply][] = [
  ["an error of Lambda", { status: 500, code: "ServiceException", message: "internal" }],
  ["an error of Lambda with another body", { status: 503, body: "<html>" }],
  ["throttling", { status: 429, code: "TooManyRequestsException", message: "Rate Exceeded." }],
  ["a broken connection", "reset"],
  ["a timeout", "hang"],
  ["a timeout in the middle of a response", "halfway"],
];

for (const [name, reply] of repeated) {
  test(`${name} is repeated`, async (t) => {
    const lambda = await Lambda.start(t, reply, { answer: ok });
    const decision = await lambda.guards(name.startsWith("a timeout") ? quick : {}).check("create_post", { userId: "u1" });
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
    await lambda.guards(quick).check("create_post", { userId: "u1" }).catch(() => {});
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
  between(await duration(lambda.guards(quick).reset("create_post", { userId: "u1" })), 1495, 2500);
  assert.equal(lambda.requests.length, 2);
});

test("there are at most so many attempts", async (t) => {
  for (const attempts of [1, 3, 5]) {
    const lambda = await Lambda.start(t, { status: 500 });
    await lambda.guards({ attempts }).check("create_post", { userId: "u1" });
    assert.equal(lambda.requests.length, attempts);
  }
});

// An attempt lasts 600 ms. After the second one, no other one could follow, so it gets all the rest.
test("attempts share the time, and the last one gets the rest", async (t) => {
  const lambda = await Lambda.start(t, "hang");
  const took = await duration(lambda.guards(quick).check("create_post", { userId: "u1" }));
  between(took, 1495, 2500);
  assert.equal(lambda.requests.length, 2);
  await until(() => lambda.requests.every((request) => request.brokenAt !== undefined)); // each attempt is aborted
  const [first, second] = lambda.requests.map(({ at, brokenAt = 0 }) => brokenAt - at);
  between(first ?? 0, 400, 1000);
  between(second ?? 0, 700, 1500);
});

test("the only attempt gets all the time", async (t) => {
  const lambda = await Lambda.start(t, "hang");
  const took = await duration(lambda.guards({ ...quick, attempts: 1 }).check("create_post", { userId: "u1" }));
  between(took, 1495, 2500);
  assert.equal(lambda.requests.length, 1);
});

test("a check with partial gets all the time", async (t) => {
  const lambda = await Lambda.start(t, "hang");
  const took = await duration(lambda.guards(quick).check("create_post", { userId: "u1", partial: true }));
  between(took, 1495, 2500);
  assert.equal(lambda.requests.length, 1);
});

test("no attempt starts if its time is not left", async (t) => {
  const lambda = await Lambda.start(t, "hang");
  const took = await duration(lambda.guards({ decisionTimeout: 300, timeout: 1190 }).check("create_post", { userId: "u1" }));
  between(took, 1185, 2000); // two attempts of 600 ms do not fit, so the first one gets everything
  assert.equal(lambda.requests.length, 1);
});

test("no repeat starts if its time is not left", async (t) => {
  const lambda = await Lambda.start(t, { status: 500 }, { answer: ok });
  lambda.delay = 500;
  const decision = await lambda.guards({ decisionTimeout: 300, timeout: 1000 }).check("create_post", { userId: "u1" });
  assert.equal(decision.reason, "unavailable"); // 500 ms are left, and an attempt needs 600 ms
  assert.equal(lambda.requests.length, 1);
});

test("pauses before repeats are random and short", async (t) => {
  const lambda = await Lambda.start(t, { status: 500 });
  const guards = lambda.guards({ attempts: 4 });
  await guards.status("create_post", { userId: "u1" }).catch(() => {});
  const at = lambda.requests.map((request) => request.at);
  for (let n = 1; n < 4; n++) between((at[n] ?? 0) - (at[n - 1] ?? 0), 0, 50 * 2 ** (n - 1) + 500);
});

test("an outage says what happened last", async (t) => {
  const lambda = await Lambda.start(t, { status: 500, code: "ServiceException", message: "first" }, "reset");
  await assert.rejects(lambda.guards({ attempts: 2 }).status("create_post", { userId: "u1" }), (error) => {
    assert.ok(error instanceof OutageError && !(error instanceof ValidationError));
    assert.match(error.message, /^posts-guard did not answer: (socket hang up|read ECONNRESET)$/);
    assert.equal(error.guard, "posts-guard");
    return true;
  });
});
