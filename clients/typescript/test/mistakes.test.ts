// Each argument, option and callback with each value that an app can pass by mistake. The guard is gone, and onOutage is
// "allow", so a value that is not refused as a mistake would pass.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigurationError, type Decision, Guards, ValidationError } from "@cric-talk/guards";
import { GuardsStore } from "@cric-talk/guards/express-rate-limit";
import { Lambda, ok } from "./lambda.js";

/** A promise that is rejected, and ends no process. */
function rejected(): Promise<never> {
  const promise = Promise.reject(new Error("no database"));
  promise.catch(() => {});
  return promise;
}

const values: [name: string, value: () => unknown][] = [
  ["nothing", () => undefined],
  ["null", () => null],
  ["an empty string", () => ""],
  ["a string", () => "yes"],
  ["a number", () => 7],
  ["0", () => 0],
  ["-1", () => -1],
  ["NaN", () => NaN],
  ["Infinity", () => Infinity],
  ["true", () => true],
  ["an object", () => ({})],
  ["an array", () => [7]],
  ["a promise", () => Promise.resolve("u1")],
  ["a rejected promise", rejected],
  ["a generator", () => (function* () {})()],
  ["an async generator", () => (async function* () {})()],
  ["a function", () => () => "u1"],
  ["a symbol", () => Symbol("u1")],
  ["a bigint", () => 7n],
  ["a Map", () => new Map()],
];

/** The values that are right, by argument. Each may be left out unless it says otherwise. */
const args: Record<string, string[]> = {
  userId: ["a string"],
  count: ["nothing", "a number"],
  limit: ["nothing", "a number", "0", "an object"],
  partial: ["nothing", "true"],
  tier: ["nothing", "a string", "an empty string"], // the guard knows its tiers
  roles: ["nothing"],
  subjects: ["nothing", "null", "an object"],
  requestId: ["nothing", "a string"],
  readyAt: ["nothing", "a number", "0", "-1"], // the guard knows its places
  job: ["nothing", "null", "a string", "an empty string", "a number", "0", "-1", "true", "an object", "an array", "a Map"],
  signal: ["nothing"],
};

/** Those of an attempt. It takes no count and no requestId, not even nothing. */
const { partial: _, readyAt: __, job: ___, ...shared } = args;
const { limit: ____, ...ofResets } = args;
const callbacks = { succeeded: ["nothing", "a function"], onLocked: ["nothing", "a function"] };
const ofAttempts = { ...shared, ...callbacks, count: [], requestId: [], clear: ["nothing", "true"], onOutage: ["nothing"] };

const receipt = { at: 5, requestId: "r1" };
const decision = { ...ok, guard: "posts-guard" } as Decision;

type Call = (guards: Guards<any>, args: any) => Promise<unknown>;

const run = () => assert.fail("it ran");

const verbs: [name: string, call: Call, args: object, right: Record<string, string[]>][] = [
  ["check", (guards, args) => guards.check("like", args), {}, args],
  ["status", (guards, args) => guards.status("like", args), {}, args],
  ["reset", (guards, args) => guards.reset("like", args), {}, { ...ofResets, limit: [] }],
  ["guarded", (guards, args) => guards.guarded("like", args, run), {}, args],
  ["attempt", (guards, args) => guards.attempt("like", args, run), {}, ofAttempts],
  ["withSlot", (guards, args) => guards.withSlot("like", args, run), {}, args],
  ["slot", (guards, args) => guards.slot("like", args), {}, { ...args, orThrow: ["nothing", "true"] }],
  ["release", (guards, args) => guards.release("like", args), receipt, { ...args, at: ["a number", "0", "-1"], requestId: ["a string"], clear: ["nothing", "true"] }],
  ["renew", (guards, args) => guards.renew("like", args), receipt, { ...args, at: ["a number", "0", "-1"], requestId: ["a string"] }],
];

for (const [verb, call, needed, right] of verbs) {
  test(`${verb}: a mistake in any argument is a ValidationError before anything is sent`, async (t) => {
    const lambda = await Lambda.start(t, { status: 500 });
    const guards = lambda.guards({ maxTries: 1 });
    for (const name of Object.keys(right)) {
      for (const [what, value] of values) {
        if (right[name]?.includes(what)) continue;
        const message = `${verb} with ${name}: ${what}`;
        await assert.rejects(call(guards, { userId: "u1", ...needed, [name]: value() }), ValidationError, message);
      }
    }
    for (const [what, value] of values) {
      if (what !== "nothing" || verb !== "release") await assert.rejects(call(guards, value()), ValidationError, `${verb} with ${what}`);
    }
    assert.equal(lambda.requests.length, 0);
    assert.equal((await guards.check("like", { userId: "u1" })).reason, "unavailable");
    assert.equal(lambda.requests.length, 1, "no mistake has opened the breaker");
  });

  test(`${verb}: what is right is sent`, async (t) => {
    const lambda = await Lambda.start(t, { functionError: { errorType: "Unavailable" } });
    const guards = lambda.guards({ maxTries: 1, onOutage: "deny" });
    for (const [name, rights] of Object.entries(right)) {
      for (const [what, value] of values.filter(([what]) => rights.includes(what))) {
        lambda.requests.length = 0;
        await call(guards, { userId: "u1", ...needed, [name]: value() }).catch((error: Error) => assert.notEqual(error.name, "ValidationError", error.message));
        assert.equal(lambda.requests.length, 1, `${verb} with ${name}: ${what}`);
      }
    }
  });
}

// With a controller instead of its signal, the check would look like an outage.
test("an AbortController is no signal", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const guards = lambda.guards();
  await guards.check("like", { userId: "u1" }); // the credentials are found
  const message = "signal is an object, want an AbortSignal, such as controller.signal";
  const signal = new AbortController() as never;
  for (const call of [
    () => guards.check("like", { userId: "u1", signal }),
    () => guards.release(decision, { signal }),
    () => guards.renew(decision, { signal }),
    () => guards.settle(decision, 0, { signal }),
    () => guards.wait({ waitTime: 5 }, { signal }),
    () => guards.wait({ allowed: true }, { signal }),
  ]) {
    await assert.rejects(call, { name: "ValidationError", message });
  }
  assert.equal(lambda.requests.length, 1);
});

test("what is no activity, decision or option is a ValidationError", async (t) => {
  const lambda = await Lambda.start(t, { status: 500 });
  const guards = lambda.guards({ maxTries: 1 }) as Guards<any>;
  const user = { userId: "u1" };
  for (const [what, value] of values) {
    const given = value() as never;
    for (const call of [
      () => guards.check(given, user),
      () => guards.status(given, user),
      () => guards.reset(given, user),
      () => guards.slot(given, user),
      () => guards.withSlot(given, user, run),
      () => guards.guarded(given, user, run),
      () => guards.attempt(given, user, run),
      () => guards.release(given),
      () => guards.release(given, { ...user, ...receipt }),
      () => guards.renew(given),
      () => guards.ready(given),
      () => guards.settle(given, 0),
      () => guards.check({ guard: given, activity: "like" }, user),
    ]) {
      if (what === "a string" && String(call).includes("guard: given")) continue; // a guard of this name can exist
      if (what === "nothing" && String(call).includes("guard: given")) continue; // the list has the activity
      await assert.rejects(async () => call(), ValidationError, `${what}: ${call}`);
    }
    if (what === "nothing") continue;
    for (const call of [
      () => guards.release(decision, given),
      () => guards.renew(decision, given),
      () => guards.settle(decision, 0, given),
      () => guards.wait({ waitTime: 5 }, given),
      () => guards.wait({ allowed: true }, { maxWait: given }),
      () => guards.wait({ allowed: true, waitTime: given }),
    ]) {
      const rights = String(call).includes("maxWait") ? ["a number", "0", "Infinity"] : String(call).includes("waitTime: given") ? ["a number", "0"] : ["an object"];
      if (!rights.includes(what)) await assert.rejects(async () => call(), ValidationError, `${what}: ${call}`);
    }
    if (what !== "a function") {
      await assert.rejects(guards.guarded("like", user, given), ValidationError, what);
      await assert.rejects(guards.attempt("like", user, given), ValidationError, what);
      await assert.rejects(guards.withSlot("like", user, given), ValidationError, what);
    }
  }
  assert.equal(lambda.requests.length, 0);
});

test("an unknown argument is a mistake", async (t) => {
  const lambda = await Lambda.start(t, { status: 500 });
  const guards = lambda.guards() as Guards<any>;
  const names = "userId, count, limit, partial, tier, roles, subjects, requestId, readyAt, job, at, signal, onOutage";
  await assert.rejects(guards.check("like", { userId: "u1", cuont: 2 } as never), {
    name: "ValidationError",
    message: `the argument "cuont" is not known, want only ${names}. Do you mean "count"?`,
    guard: "posts-guard",
  });
  await assert.rejects(guards.check("like", { userId: "u1", orThrow: true } as never), {
    message: `the argument "orThrow" is not known, want only ${names}`,
  });
  // With a decision, a count would be ignored, and everything given back.
  await assert.rejects(guards.release(decision, { count: 1 } as never), { message: 'the argument "count" is not known, want only clear, signal' });
  await assert.rejects(guards.renew(decision, { clear: true } as never), { message: 'the argument "clear" is not known, want only signal' });
  assert.equal(lambda.requests.length, 0);
});

/** The values that are right, by option of the constructor. */
const options: Record<string, string[]> = {
  activities: ["nothing", "an object"],
  client: ["nothing"],
  urls: ["nothing", "an object"],
  prefix: ["nothing", "a string", "an empty string"],
  onOutage: ["nothing"],
  timeout: ["nothing"],
  maxTries: ["nothing", "a number"],
  decisionTimeout: ["nothing", "a number"],
  warn: ["nothing", "a function"],
};

test("a mistake in any option of the constructor is a ConfigurationError", () => {
  for (const [name, rights] of Object.entries(options)) {
    for (const [what, value] of values) {
      const make = () => new Guards({ [name]: value() });
      if (rights.includes(what)) make();
      else assert.throws(make, ConfigurationError, `${name}: ${what}`);
    }
  }
  for (const [what, value] of values) {
    if (what !== "nothing" && what !== "an object") assert.throws(() => new Guards(value() as never), ConfigurationError, what);
  }
});

test("a key of express-rate-limit that is no user is a ValidationError", async (t) => {
  const lambda = await Lambda.start(t, { status: 500 });
  const store = new GuardsStore(lambda.guards(), "like");
  for (const [what, value] of values) {
    if (what !== "a string") await assert.rejects(store.increment(value() as never), ValidationError, what);
  }
  assert.equal(lambda.requests.length, 0);
});
