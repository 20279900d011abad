// Attempts: counted first, and given back after a success.
import assert from "node:assert/strict";
import { test } from "node:test";
import { runInNewContext } from "node:vm";
import { type Decision, GuardsError, LimitedError, OutageError, ValidationError } from "@cric-talk/guards";
import { Lambda, limited, ok, type Reply, stopClock } from "./lambda.js";

const user = { userId: "u1" };
const release = { userId: "u1", activity: "create_post", op: "release", at: ok.at, requestId: "r1", count: 1 };

/** The attempt that locks. As in schema/golden/lockout.json. */
const locks = { ...ok, limit: 3, activityCount: 3, remaining: 0, locked: true, crossed: 100 };

function ops(lambda: Lambda): unknown[] {
  return lambda.requests.map(({ event }) => event["op"]);
}

class WrongPassword extends Error {}

test("a success is given back, and its result returned", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const guards = lambda.guards();
  for (const verify of [(d: Decision) => `${d.remaining} left`, async (d: Decision) => `${d.remaining} left`]) {
    lambda.requests.length = 0;
    const args = { ...user, tier: "premium", roles: ["member"], onOutage: "deny", clear: false } as const;
    assert.equal(await guards.attempt("create_post", args, verify), "7 left");
    const { requestId, ...check } = lambda.requests[0]!.event;
    assert.match(String(requestId), /^[0-9a-f-]{36}$/);
    assert.deepEqual(check, { userId: "u1", tier: "premium", roles: ["member"], activity: "create_post", op: "check" });
    assert.deepEqual(lambda.requests.slice(1).map(({ event }) => event), [{ ...release, tier: "premium" }]);
  }
});

test("a success with clear clears, and the release has the subjects of the check", async (t) => {
  const lambda = await Lambda.start(t, { answer: { ...ok, activity: "sign_in" } });
  const subjects = { address: "192.0.2.7" };
  await lambda.guards().attempt({ guard: "users-guard", activity: "sign_in" }, { ...user, subjects, clear: true }, () => true);
  assert.deepEqual(lambda.requests[1]?.event, { ...release, activity: "sign_in", subjects, clear: true });
});

test("each attempt has an id of its own", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const guards = lambda.guards();
  for (let n = 0; n < 3; n++) await guards.attempt("create_post", user, () => false);
  assert.equal(new Set(lambda.requests.map(({ event }) => event["requestId"])).size, 3);
});

/** What a verify can return that is a failure, or no answer at all. */
const failures: [name: string, verify: () => unknown, message?: RegExp][] = [
  ["false", () => false],
  ["nothing", () => undefined],
  ["null", () => null],
  ["0", () => 0],
  ["0n", () => 0n],
  ["NaN", () => NaN],
  ["an empty string", () => ""],
  ["a promise of false", () => Promise.resolve(false)],
  ["a promise of a promise of NaN", async () => Promise.resolve(NaN)],
  ["a thenable of false", () => ({ then: (resolve: (result: boolean) => void) => resolve(false) })],
  ["a function", () => () => true, /^verify returned a function, want its result/],
  ["an async function", () => async () => true, /^verify returned a function, want its result/],
  ["a class", () => class {}, /^verify returned a function, want its result/],
  ["a promise of a function", async () => () => true, /^verify returned a function, want its result/],
  ["a generator", () => (function* () { yield true; })(), /^verify returned a generator, want its result/],
  ["an async generator", () => (async function* () { yield true; })(), /^verify returned a generator, want its result/],
  ["an iterator", () => [true].values(), /^verify returned a generator, want its result/],
  ["a Response with 401", () => new Response("no", { status: 401 }), /^verify returned a response, .* option succeeded/],
  ["a Response with 200", async () => new Response("yes"), /^verify returned a response, .* option succeeded/],
  ["Response.error()", () => Response.error(), /^verify returned a response, .* option succeeded/],
  ["a response of axios", () => ({ status: 401, data: "no", headers: {} }), /^verify returned a response, .* option succeeded/],
  ["the result of a Lambda handler", () => ({ statusCode: 401, body: "no" }), /^verify returned a response, .* option succeeded/],
  ["a status in a string", () => ({ statusCode: "401" }), /^verify returned a response, .* option succeeded/],
  ["a status in words beside HTTP's", () => ({ status: "fail", statusCode: 401 }), /^verify returned a response, .* option succeeded/],
  ["a refused decision", () => ({ allowed: false, reason: "limited" }), /^verify returned a decision, .* option succeeded/],
  ["an error of another realm", () => runInNewContext("new Error('no')"), /^verify returned an error, .* option succeeded/],
  ["an error", () => new WrongPassword("no"), /^verify returned an error, .* option succeeded/],
];

for (const [name, verify, message] of failures) {
  test(`no guess is given back: verify returns ${name}`, async (t) => {
    const lambda = await Lambda.start(t, { answer: ok });
    const attempt = lambda.guards().attempt("create_post", { ...user, clear: true }, verify);
    if (message) await assert.rejects(attempt, { name: "ValidationError", message, guard: "posts-guard" });
    else assert.deepEqual(await attempt, await verify());
    assert.deepEqual(ops(lambda), ["check"]);
  });
}

const thrown: [name: string, error: unknown][] = [
  ["an error", new WrongPassword("no")],
  ["nothing", undefined],
  ["true", true],
  ["an outage of another guard", new OutageError("no answer")],
];

for (const [name, error] of thrown) {
  test(`no guess is given back: verify throws or rejects with ${name}`, async (t) => {
    const lambda = await Lambda.start(t, { answer: ok });
    for (const verify of [() => { throw error; }, () => Promise.reject(error)]) {
      const [result] = await Promise.allSettled([lambda.guards().attempt("create_post", user, verify)]);
      assert.equal(result.status, "rejected");
      assert.equal((result as PromiseRejectedResult).reason, error);
    }
    assert.deepEqual(ops(lambda), ["check", "check"]);
  });
}

for (const [name, result] of [
  ["true", true],
  ["a text", "session"],
  ["1", 1],
  ["a user", { id: "u1", status: 1, ok: false }],
  ["a Map", new Map()],
] as const) {
  test(`verify returns ${name}: it is given back`, async (t) => {
    const lambda = await Lambda.start(t, { answer: ok });
    assert.equal(await lambda.guards().attempt("create_post", user, () => result), result);
    assert.deepEqual(ops(lambda), ["check", "release"]);
  });
}

test("the option succeeded decides", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const guards = lambda.guards();
  const attempts: [result: unknown, succeeded: (result: any) => unknown, releases: number, error?: RegExp][] = [
    [new Response("", { status: 200 }), (response) => response.ok, 1],
    [new Response("", { status: 401 }), (response) => response.ok, 0],
    [[], async (rows) => rows.length > 0, 0],
    [["u1"], async (rows) => rows.length > 0, 1],
    [null, (error) => error === null, 1],
    ["yes", () => undefined, 0],
    ["yes", () => null, 0],
    ["yes", () => NaN, 0, /^succeeded returned NaN, want true or false/],
    ["yes", () => "false", 0, /^succeeded returned a string, want true or false/],
    ["yes", () => 401, 0, /^succeeded returned a number, want true or false/],
    ["yes", () => ({ ok: false }), 0, /^succeeded returned an object, want true or false/],
    ["yes", () => () => true, 0, /^succeeded returned a function, want its result/],
    ["yes", () => new Response(""), 0, /^succeeded returned an object, want true or false/],
    [() => true, () => true, 0, /^verify returned a function/], // nobody called it
    ["yes", () => { throw new WrongPassword("none"); }, 0, /^none$/],
    ["yes", () => Promise.reject(new WrongPassword("none")), 0, /^none$/],
  ];
  for (const [result, succeeded, releases, message] of attempts) {
    lambda.requests.length = 0;
    const attempt = guards.attempt("create_post", { ...user, succeeded: succeeded as () => boolean }, () => result);
    if (message) await assert.rejects(attempt, { message }, String(succeeded));
    else assert.equal(await attempt, result);
    assert.equal(lambda.requests.length, 1 + releases, String(succeeded));
  }
});

test("a refused attempt runs nothing", async (t) => {
  const locked = { ...limited, waitTime: 60_000, locked: true };
  const lambda = await Lambda.start(t, { answer: locked });
  const run = () => assert.fail("it ran");
  const attempt = lambda.guards({ prefix: "dev-" }).attempt("create_post", { ...user, onLocked: run, succeeded: run }, run);
  await assert.rejects(attempt, (error) => {
    assert.ok(error instanceof LimitedError);
    assert.deepEqual([error.message, error.guard, error.decision.locked], [limited.message, "dev-posts-guard", true]);
    return true;
  });
  assert.deepEqual(ops(lambda), ["check"]);
});

test("with onOutage: deny, an attempt that one instance's memory allows is refused", async (t) => {
  const lambda = await Lambda.start(t, { answer: { ...ok, reason: "unavailable", at: undefined, requestId: undefined } });
  const guards = lambda.guards();
  await assert.rejects(guards.attempt("create_post", { ...user, onOutage: "deny" }, () => assert.fail("it ran")), (error) => {
    return error instanceof LimitedError && error.cause instanceof OutageError;
  });
  assert.equal(await guards.attempt("create_post", user, () => "in"), "in");
  assert.deepEqual(ops(lambda), ["check", "check"]);
});

test("an attempt that was counted for some subjects, and decided from memory for others, is given back", async (t) => {
  const lambda = await Lambda.start(t, { answer: { ...ok, reason: "unavailable" } });
  const guards = lambda.guards();
  assert.equal(await guards.attempt("create_post", user, () => false), false);
  assert.deepEqual(ops(lambda), ["check"]);
  assert.equal(await guards.attempt("create_post", user, () => "in"), "in");
  await assert.rejects(guards.attempt("create_post", { ...user, onOutage: "deny" }, () => assert.fail("it ran")), LimitedError);
  assert.deepEqual(ops(lambda), ["check", "check", "release", "check", "release"]);
});

const noReceipt: [name: string, reply: Reply][] = [
  ["duplicate", { answer: { ...ok, reason: "duplicate", at: undefined, requestId: undefined } }],
  ["bypassed", { answer: { allowed: true, reason: "bypassed", userId: "u1", activity: "create_post", op: "check", granted: 1 } }],
  ["unlimited", { answer: { allowed: true, reason: "unlimited", userId: "u1", activity: "create_post", op: "check", granted: 1 } }],
  ["shadow", { answer: { ...limited, allowed: true, reason: "shadow" } }],
  ["of the client's onOutage", { status: 500 }],
];

for (const [name, reply] of noReceipt) {
  test(`a success sends no release if the decision is ${name}`, async (t) => {
    const lambda = await Lambda.start(t, reply);
    const guards = lambda.guards({ maxTries: 1 });
    assert.equal(await guards.attempt("create_post", { ...user, clear: true }, () => "in"), "in");
    assert.equal(lambda.requests.length, 1);
  });
}

test("a release that fails goes to warn, because the sign-in has succeeded", async (t) => {
  const replies: Reply[] = [{ status: 500 }, { functionError: { errorType: "ValidationError", errorMessage: "clear needs a lockout" } }];
  for (const reply of replies) {
    const warnings: GuardsError[] = [];
    const lambda = await Lambda.start(t, { answer: ok }, reply);
    assert.equal(await lambda.guards({ warnings, maxTries: 1 }).attempt("create_post", { ...user, clear: true }, () => "in"), "in");
    assert.equal(warnings.length, 1);
    assert.ok(reply === replies[0] ? warnings[0] instanceof OutageError : warnings[0] instanceof ValidationError);
    assert.equal(lambda.requests.length, 2);
  }
});

test("a release is sent however late, and a late one is also a warning that names Hold", async (t) => {
  const clock = stopClock(t);
  const lambda = await Lambda.start(t);
  const list = { sign_in: { guard: "users-guard" }, held: { guard: "users-guard", hold: true } };
  for (const [activity, ms, message] of [
    ["sign_in", 18_000, undefined],
    ["sign_in", 18_001, /^the release of sign_in is sent 18 s after its check, .* Hold/],
    ["sign_in", 3_600_000, /^the release of sign_in is sent 3600 s after its check, .* Hold/],
    ["held", 18_001, undefined],
    ["held", 840_000, undefined],
    ["held", 840_001, /^the release of held is sent 840 s after its check, .* Hold/],
  ] as const) for (const pass of [clock.advance, clock.freeze]) {
    const warnings: GuardsError[] = [];
    lambda.requests.length = 0;
    lambda.replies = [{ answer: { ...ok, activity } }];
    const guards = lambda.guards({ warnings, activities: list } as never);
    await guards.attempt(activity as never, user, () => (pass(ms), true));
    assert.deepEqual(ops(lambda), ["check", "release"]);
    assert.equal(warnings.length, message ? 1 : 0, `${activity} after ${ms} ms`);
    if (message) assert.match(warnings[0]!.message, message);
  }
});

test("onLocked is called once, after the failure that locked, before the caller goes on", async (t) => {
  const lambda = await Lambda.start(t);
  const day = { name: "day", limit: 50, activityCount: 9, remaining: 41, waitTime: 0, resetAt: ok.resetAt };
  for (const [answer, verify, calls] of [
    [locks, () => false, 1],
    [locks, () => Promise.reject(new WrongPassword("no")), 1],
    [locks, () => () => true, 1], // a mistake, and the account is locked
    [{ ...ok, limits: [day, { ...day, name: "address", crossed: 100 }] }, () => false, 1],
    [{ ...ok, limits: [{ ...day, crossed: 100 }, { ...day, name: "address", crossed: 100 }], crossed: 100 }, () => false, 1],
    [locks, () => true, 0],
    [ok, () => false, 0],
    [{ ...ok, crossed: 80, limits: [{ ...day, crossed: 80 }] }, () => false, 0],
  ] as const) {
    lambda.replies = [{ answer }];
    const got: Decision[] = [];
    let given: Decision | undefined;
    const onLocked = async (decision: Decision) => {
      await new Promise(setImmediate);
      got.push(decision);
    };
    const attempt = lambda.guards().attempt("create_post", { ...user, onLocked }, (decision) => ((given = decision), verify()));
    await attempt.then(() => {}, () => {});
    assert.deepEqual(got, calls ? [given] : [], JSON.stringify(answer));
  }
});

test("what onLocked throws goes to warn", async (t) => {
  const lambda = await Lambda.start(t, { answer: locks });
  for (const onLocked of [() => { throw new Error("no mail"); }, () => Promise.reject(new Error("no mail"))]) {
    const warnings: GuardsError[] = [];
    const guards = lambda.guards({ warnings });
    assert.equal(await guards.attempt("create_post", { ...user, onLocked }, () => ""), "");
    await assert.rejects(guards.attempt("create_post", { ...user, onLocked }, () => Promise.reject(new WrongPassword("no"))), WrongPassword);
    assert.deepEqual(warnings.map(({ message, guard, cause }) => [message, guard, String(cause)]), [
      ["onLocked of create_post failed", "posts-guard", "Error: no mail"],
      ["onLocked of create_post failed", "posts-guard", "Error: no mail"],
    ]);
  }
});

test("a mistake in an argument is found before anything is sent", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const guards = lambda.guards();
  const run = () => assert.fail("it ran");
  for (const name of ["requestId", "count"]) {
    for (const value of ["r1", 2, undefined]) {
      await assert.rejects(guards.attempt("create_post", { ...user, [name]: value } as never, run), {
        name: "ValidationError",
        message: `${name} does not go with attempt: each call is one attempt, with an id of its own`,
        guard: "posts-guard",
      });
    }
  }
  for (const wrong of [{ partial: true }, { readyAt: 5 }, { job: {} }, { at: 5 }, { orThrow: true }, { onLokced: run }, { clear: 1 }]) {
    await assert.rejects(guards.attempt("create_post", { ...user, ...wrong } as never, run), ValidationError, JSON.stringify(wrong));
  }
  for (const name of ["succeeded", "onLocked"]) {
    for (const value of [null, true, "yes", {}, Promise.resolve(run)]) {
      await assert.rejects(guards.attempt("create_post", { ...user, [name]: value } as never, run), ValidationError, `${name}: ${value}`);
    }
  }
  for (const verify of [undefined, null, true, Promise.resolve(true)]) {
    await assert.rejects(guards.attempt("create_post", user, verify as never), {
      name: "ValidationError",
      message: "attempt wants a function, and calls it after the check",
    });
  }
  assert.equal(lambda.requests.length, 0);
});

test("a signal cancels the check, but not the release", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const guards = lambda.guards();
  const controller = new AbortController();
  const verify = () => (controller.abort(), true);
  assert.equal(await guards.attempt("create_post", { ...user, signal: controller.signal }, verify), true);
  assert.deepEqual(ops(lambda), ["check", "release"]);
  await assert.rejects(guards.attempt("create_post", { ...user, signal: controller.signal }, verify), { name: "AbortError" });
  assert.equal(lambda.requests.length, 2);
});
