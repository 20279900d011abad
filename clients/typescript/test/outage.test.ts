import assert from "node:assert/strict";
import { test } from "node:test";
import { type Decision, type GuardsError, OutageError, refusal } from "@cric-talk/guards";
import { GuardsStore } from "@cric-talk/guards/express-rate-limit";
import { checker } from "../dist/middleware.js"; // not exported: only this package and its tests know it
import { Lambda, ok, stopClock, until } from "./lambda.js";

const args = { userId: "user-77", requestId: "request-88" };

test("by default an outage allows, and the decision says so", async (t) => {
  const lambda = await Lambda.start(t, { status: 500, code: "ServiceException", message: "user-77 request-88" });
  const { outage, ...decision } = await lambda.guards().check("create_post", { ...args, count: 3 });
  assert.deepEqual(decision, {
    allowed: true,
    reason: "unavailable",
    userId: "user-77",
    activity: "create_post",
    op: "check",
    guard: "posts-guard",
    granted: 3,
  });
  assert.ok(outage instanceof OutageError);
});

test("onOutage: deny refuses with a message", async (t) => {
  const lambda = await Lambda.start(t, { status: 500 });
  const { outage, ...decision } = await lambda.guards({ onOutage: "deny" }).check("create_post", args);
  assert.deepEqual(decision, {
    allowed: false,
    reason: "unavailable",
    userId: "user-77",
    activity: "create_post",
    op: "check",
    guard: "posts-guard",
    granted: 0,
    message: "Please try again later.",
  });
  assert.ok(outage instanceof OutageError);
});

test("a guard's own unavailable is an ordinary answer", async (t) => {
  const warnings: GuardsError[] = [];
  const lambda = await Lambda.start(t, { answer: { ...ok, reason: "unavailable" } });
  const guards = lambda.guards({ warnings });
  for (let n = 0; n < 2; n++) assert.equal((await guards.check("create_post", args)).outage, undefined);
  assert.equal(lambda.requests.length, 2);
  assert.equal(warnings.length, 0);
});

test("an outage is reported at most once a second, and the report names nobody", async (t) => {
  const clock = stopClock(t);
  const warnings: GuardsError[] = [];
  const lambda = await Lambda.start(t, { status: 500, code: "ServiceException", message: "user-77 request-88" });
  const guards = lambda.guards({ warnings, maxTries: 1 });
  for (let n = 0; n < 5; n++) await guards.check("create_post", args);
  await guards.check("create_room", args);
  clock.advance(999);
  await guards.check("create_post", args);
  assert.deepEqual(
    warnings.map((warning) => warning.message),
    ["posts-guard did not answer: ServiceException: *** ***"],
  );
  clock.advance(1);
  await guards.check("create_post", args);
  assert.equal(warnings.length, 2);
  clock.freeze(1000);
  await guards.check("create_post", args);
  assert.equal(warnings.length, 3);
});

test("a warning is logged by default, and a logger that fails changes nothing", async (t) => {
  const lambda = await Lambda.start(t, { status: 500, code: "ServiceException", message: "internal" });
  const logged = t.mock.method(console, "warn", () => {});
  await lambda.guards({ warn: undefined }).check("create_post", args);
  assert.deepEqual(logged.mock.calls[0]?.arguments, ["guards: posts-guard did not answer: ServiceException: internal"]);
  const fails = (): never => {
    throw new Error("no disk");
  };
  // A rejection that nobody catches would fail this test.
  for (const warn of [fails, async () => fails()]) {
    assert.equal((await lambda.guards({ warn }).check("create_post", args)).allowed, true);
  }
});

test("after an outage, calls fail fast for a second, for this guard only", async (t) => {
  const clock = stopClock(t);
  const lambda = await Lambda.start(t, { status: 500 });
  const guards = lambda.guards({ maxTries: 1 });
  await guards.check("create_post", args);
  lambda.replies = [{ answer: ok }];
  const asked = lambda.requests.length;
  clock.advance(999);
  assert.equal((await guards.check("like", args)).outage?.message, "posts-guard did not answer a moment ago");
  await assert.rejects(guards.status("create_post", args), { name: "OutageError", guard: "posts-guard" });
  assert.equal(lambda.requests.length, asked);
  assert.equal((await guards.check("create_room", args)).reason, "ok");
  assert.equal((await lambda.guards().check("create_post", args)).reason, "ok", "another object has its own state");
  clock.advance(1);
  assert.equal((await guards.check("create_post", args)).reason, "ok");
  assert.equal((await guards.check("create_post", args)).reason, "ok");
});

test("throttling and a timeout of the function make calls fail fast too", async (t) => {
  stopClock(t);
  for (const reply of [{ status: 429 }, { functionError: { errorType: "Sandbox.Timedout", errorMessage: "Task timed out" } }]) {
    const lambda = await Lambda.start(t, reply);
    const guards = lambda.guards({ maxTries: 1 });
    await guards.check("create_post", args);
    await guards.check("create_post", args);
    assert.equal(lambda.requests.length, 1);
  }
});

// Perhaps only one user's key is throttled. With ON_OUTAGE=deny, that must not let everybody else through.
test("a guard's own outage is for one call only", async (t) => {
  const clock = stopClock(t);
  const own = { functionError: { errorType: "Unavailable", errorMessage: "the table is throttled" } };
  const lambda = await Lambda.start(t, own, { answer: ok });
  const guards = lambda.guards({ maxTries: 1 });
  assert.equal((await guards.check("create_post", args)).outage?.answered, true);
  assert.equal((await guards.check("create_post", args)).outage, undefined);
  lambda.replies = [{ status: 429 }, own, { answer: ok }];
  assert.equal((await guards.check("create_post", args)).outage?.answered, false);
  clock.advance(1000);
  assert.equal((await guards.check("create_post", args)).outage?.answered, true); // the probe
  assert.equal((await guards.check("create_post", args)).outage, undefined);
  assert.equal(lambda.requests.length, 5);
});

test("a mistake does not make calls fail fast", async (t) => {
  const lambda = await Lambda.start(t, { status: 403, code: "AccessDeniedException" });
  const guards = lambda.guards();
  for (let n = 0; n < 3; n++) await assert.rejects(guards.check("create_post", args), { name: "ConfigurationError" });
  assert.equal(lambda.requests.length, 3);
});

test("after the second, one call probes and the others fail fast until it ends", async (t) => {
  const clock = stopClock(t);
  const lambda = await Lambda.start(t, { status: 500 });
  const guards = lambda.guards({ maxTries: 1 });
  await guards.check("create_post", args);
  clock.advance(1000);
  lambda.requests.length = 0;
  lambda.replies = ["hang"];
  let failedFast = 0;
  const probes = Array.from({ length: 20 }, async () => {
    const { outage } = await guards.check("create_post", args);
    if (outage?.message === "posts-guard did not answer a moment ago") failedFast++;
    return outage;
  });
  await until(() => failedFast === 19 && lambda.requests.length === 1);
  clock.advance(1000); // a probe that takes longer than a further second does not hold up the next one
  lambda.replies = [{ answer: ok }];
  assert.equal((await guards.check("create_post", args)).reason, "ok");
  assert.equal((await guards.check("create_post", args)).reason, "ok");
  lambda.drop();
  assert.ok((await Promise.all(probes)).every((outage) => outage instanceof OutageError));
});

test("a probe that fails closes the guard for a further second", async (t) => {
  const clock = stopClock(t);
  const lambda = await Lambda.start(t, { status: 500 });
  const guards = lambda.guards({ maxTries: 1 });
  await guards.check("create_post", args);
  clock.advance(1000);
  await guards.check("create_post", args);
  clock.advance(999);
  await guards.check("create_post", args);
  assert.equal(lambda.requests.length, 2);
});

test("a lost call is no outage of the guard if the guard answered another one meanwhile", async (t) => {
  const lambda = await Lambda.start(t, "hang", { answer: ok });
  const guards = lambda.guards({ maxTries: 1 });
  const lost = guards.check("create_post", args);
  await until(() => lambda.requests.length === 1);
  assert.equal((await guards.check("create_post", args)).reason, "ok");
  lambda.drop();
  assert.ok((await lost).outage);
  assert.equal((await guards.check("create_post", args)).reason, "ok");
});

// Sign-in may deny where posts allow.
for (const [own, call] of [["allow", "deny"], ["deny", "allow"], ["allow", "allow"], ["deny", "deny"]] as const) {
  test(`onOutage: ${call} of one call wins over the client's ${own}, and is not sent`, async (t) => {
    const lambda = await Lambda.start(t, { status: 500 });
    const guards = lambda.guards({ onOutage: own, maxTries: 1, warn: () => {} });
    const { allowed, message, granted } = await guards.check("create_post", { ...args, onOutage: call });
    assert.deepEqual([allowed, message, granted], call === "allow" ? [true, undefined, 1] : [false, "Please try again later.", 0]);
    assert.deepEqual(lambda.requests[0]?.event, { ...args, activity: "create_post", op: "check" });
    assert.equal((await guards.check("create_post", args)).allowed, own === "allow");
    const guarded = guards.guarded("create_post", { ...args, onOutage: call }, () => "saved").catch((error: Error) => error.name);
    assert.equal(await guarded, call === "allow" ? "saved" : "LimitedError");
    assert.equal((await guards.slot("create_post", { ...args, onOutage: call })).allowed, call === "allow");
    const slot = guards.withSlot("create_post", { ...args, onOutage: call }, () => "worked").catch((error: Error) => error.name);
    assert.equal(await slot, call === "allow" ? "worked" : "LimitedError");
  });
}

test("onOutage: deny of a call refuses what a guard allowed from its memory; the client's own option does not", async (t) => {
  const warnings: GuardsError[] = [];
  const lambda = await Lambda.start(t, { answer: { ...ok, reason: "unavailable", at: undefined } });
  const guards = lambda.guards({ onOutage: "deny", warnings });
  assert.equal((await guards.check("create_post", args)).allowed, true);
  assert.equal(warnings.length, 0);
  const { outage, ...decision } = await guards.check("create_post", { ...args, onOutage: "deny" });
  const base = { allowed: false, reason: "unavailable", userId: "user-77", activity: "create_post", op: "check" };
  assert.deepEqual(decision, { ...base, guard: "posts-guard", granted: 0, message: "Please try again later." });
  assert.equal(outage?.message, "posts-guard decided from its memory, because its table did not answer");
  assert.equal(outage?.answered, true);
  assert.deepEqual(warnings, [outage]);
  assert.equal(refusal({ ...decision, outage } as Decision).status, 503);
  assert.equal((await guards.check("create_post", { ...args, onOutage: "allow" })).allowed, true);
  // It answered, so nothing is paused.
  assert.equal(lambda.requests.length, 3);
  // What its memory refused is an ordinary refusal.
  lambda.replies = [{ answer: { ...ok, allowed: false, reason: "unavailable", granted: 0, message: "no" } }];
  assert.equal((await guards.check("create_post", { ...args, onOutage: "deny" })).message, "no");
});

// The table has counted for some of the subjects, and memory decided for the others.
for (const [reply, failures] of [[{ answer: ok }, 0], [{ functionError: { errorType: "Unavailable" } }, 1], [{ status: 500 }, 1]] as const) {
  test(`what was counted for a check that deny refuses is given back once: ${JSON.stringify(reply).slice(0, 20)}`, async (t) => {
    const warnings: GuardsError[] = [];
    const lambda = await Lambda.start(t, { answer: { ...ok, reason: "unavailable", granted: 3 } }, reply);
    const { outage, ...decision } = await lambda.guards({ warnings, maxTries: 1 }).check("create_post", { userId: "u1", count: 3, tier: "pro", onOutage: "deny" });
    assert.deepEqual([decision.allowed, decision.granted, decision.at], [false, 0, undefined]);
    const event = { userId: "u1", activity: "create_post", tier: "pro", count: 3 };
    assert.deepEqual(lambda.requests.slice(1).map((request) => request.event), [{ ...event, op: "release", at: ok.at, requestId: "r1" }]);
    assert.equal(warnings.length, failures + 1);
    assert.equal(warnings.at(-1), outage);
  });
}

test("onOutage of a call is allow or deny, and only of a check", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const guards = lambda.guards();
  await assert.rejects(guards.check("create_post", { ...args, onOutage: "open" as "allow" }), {
    name: "ValidationError",
    message: 'onOutage is a string, want "allow" or "deny"',
  });
  await assert.rejects(guards.status("create_post", { ...args, onOutage: "deny" } as never), {
    name: "ValidationError",
    message: /^the argument "onOutage" is not known/,
  });
  assert.equal(lambda.requests.length, 0);
});

test("onOutage of a middleware and of a store win over the client's", async (t) => {
  const lambda = await Lambda.start(t, { status: 500 });
  const guards = lambda.guards({ maxTries: 1 });
  const userId = () => "u1";
  const decisions = [undefined, "allow", "deny"].map((onOutage) => checker(guards, "create_post", { userId, ...(onOutage && { onOutage: onOutage as "deny" }) })({}));
  assert.deepEqual((await Promise.all(decisions)).map((checked) => checked?.decision.allowed), [true, true, false]);
  assert.throws(() => checker(guards, "create_post", { userId, onOutage: "open" as "deny" }), {
    name: "ConfigurationError",
    message: 'The option onOutage of the limit "create_post" is a string, want "allow" or "deny".',
  });
  await new GuardsStore(guards, "create_post", { onOutage: "allow" }).increment("u1");
  await assert.rejects(new GuardsStore(guards, "create_post", { onOutage: "deny" }).increment("u1"), { name: "OutageError", status: 503 });
});
