// What an app can pass by mistake: an async function or its promise instead of a value, and functions that never decide.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Activities, ConfigurationError, Guards, ValidationError } from "@cric-talk/guards";
import { limit as expressLimit } from "@cric-talk/guards/express";
import { limit as fastifyLimit } from "@cric-talk/guards/fastify";
import { limit as honoLimit } from "@cric-talk/guards/hono";
import { checker, type LimitOptions } from "../dist/middleware.js";
import { Lambda, ok } from "./lambda.js";

const user = { userId: () => "u1" };
const never: Pick<Guards<Activities>, "check"> = { check: () => assert.fail("it was counted") };

const skips: [result: unknown, skipped: boolean][] = [
  [true, true],
  [Promise.resolve(true), true],
  [false, false],
  [Promise.resolve(false), false],
  [undefined, false],
  [null, false],
  [{ then: (resolve: (skip: boolean) => void) => resolve(false) }, false],
];

for (const [result, skipped] of skips) {
  test(`skip: ${String(result)} skips ${skipped ? "the request" : "nothing"}`, async (t) => {
    const lambda = await Lambda.start(t, { answer: ok });
    const options = { ...user, skip: () => result } as LimitOptions<unknown>;
    const checked = await checker(lambda.guards(), "create_post", options)({});
    assert.equal(checked === undefined, skipped);
    assert.equal(lambda.requests.length, skipped ? 0 : 1);
  });
}

const strange: [result: unknown, kind: string][] = [
  [{}, "an object"],
  [[], "an array"],
  [() => false, "a function"],
  [(function* () {})(), "a generator"],
  [(async function* () {})(), "a generator"],
  [Promise.resolve({}), "an object"],
  ["false", "a string"],
  ["", "a string"],
  [1, "a number"],
  [NaN, "NaN"],
];

for (const [result, kind] of strange) {
  test(`skip: ${kind} skips nobody, and is a mistake`, async () => {
    const options = { ...user, skip: () => result } as never;
    await assert.rejects(checker(never, "create_post", options)({}), {
      name: "ConfigurationError",
      message: `The function skip of the limit "create_post" returned ${kind}, want true or false.`,
    });
  });
}

for (const [option, question] of [["cuont", ' Do you mean "count"?'], ["skipp", ' Do you mean "skip"?'], ["key", ""]] as const) {
  test(`middleware does not know the option ${option}`, () => {
    const names = "userId, skip, count, limit, tier, roles, subjects, requestId, onOutage, countIf, refused";
    const message = `The option ${option} of the limit "create_post" is not known, want one of ${names}.${question}`;
    for (const limit of [expressLimit, fastifyLimit, honoLimit]) {
      assert.throws(() => limit(never, "create_post", { ...user, [option]: () => 2 } as never), { name: "ConfigurationError", message });
    }
  });
}

test("middleware needs guards and an activity", () => {
  for (const guards of [undefined, null, {}, Promise.resolve(never)]) {
    assert.throws(() => checker(guards as never, "create_post", user), ConfigurationError);
  }
  for (const activity of [undefined, null, 7, {}, { guard: "posts-guard" }, Promise.resolve("create_post")]) {
    assert.throws(() => checker(never, activity as never, user), ConfigurationError);
  }
});

for (const name of ["userId", "skip", "count", "tier", "roles", "requestId"]) {
  test(`${name} that is no function is a mistake when the middleware is made`, () => {
    for (const value of [true, "u1", Promise.resolve(() => "u1")]) {
      const options = { ...user, [name]: value } as never;
      const message = `The option ${name} of the limit "create_post" is no function.`;
      for (const limit of [expressLimit, fastifyLimit, honoLimit]) {
        assert.throws(() => limit(never, "create_post", options), { name: "ConfigurationError", message });
      }
    }
  });
}

test("middleware needs userId, but no other option", () => {
  const message = 'The option userId of the limit "create_post" is no function.';
  for (const options of [{}, { userId: undefined }, Promise.resolve(user)]) {
    assert.throws(() => checker(never, "create_post", options as never), { name: "ConfigurationError", message });
  }
  checker(never, "create_post", { ...user, skip: undefined as never });
});

for (const name of ["userId", "count", "limit", "partial", "tier", "roles", "requestId", "readyAt", "job"]) {
  for (const [what, value] of [
    ["a promise", Promise.resolve(1)],
    ["a promise", { then: () => {} }], // as some libraries for databases have
    ["a function", async () => 1],
  ] as const) {
    test(`${name} that is ${what} is a mistake before anything is sent: ${Object.prototype.toString.call(value)}`, async (t) => {
      const lambda = await Lambda.start(t, { answer: ok });
      await assert.rejects(lambda.guards().check("create_post", { userId: "u1", [name]: value } as never), (error) => {
        assert.ok(error instanceof ValidationError);
        assert.equal(error.message, `${name} is ${what}, want its value`);
        return true;
      });
      assert.equal(lambda.requests.length, 0);
    });
  }
}

test("guarded wants a function before it counts", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const saved = lambda.guards().guarded("create_post", { userId: "u1" }, Promise.resolve("saved") as never);
  await assert.rejects(saved, { name: "ValidationError", message: "guarded wants a function, and calls it after the check" });
  assert.equal(lambda.requests.length, 0);
});

const options: [options: unknown, message: string][] = [
  [Promise.resolve({}), "The options are no plain object."],
  [async () => ({}), "The options are no plain object."],
  [{ client: Promise.resolve({}) }, "The option client is no LambdaClient of AWS's SDK."],
  [{ client: null }, "The option client is no LambdaClient of AWS's SDK."],
  [{ client: {} }, "The option client is no LambdaClient of AWS's SDK."],
  [{ activities: Promise.resolve({}) }, "The option activities is no plain object."],
  [{ urls: Promise.resolve({}) }, "The option urls is no plain object."],
  [{ urls: async () => ({}) }, "The option urls is no plain object."],
  [{ urls: new Map([["posts-guard", "https://host/"]]) }, "The option urls is no plain object."],
  [{ onOutage: async () => "deny" }, 'The option onOutage is async () => "deny", want "allow" or "deny".'],
  [{ prefix: Promise.resolve("dev-") }, "The option prefix is {}, want a string."],
  [{ warn: Promise.resolve(() => {}) }, "The option warn is {}, want a function."],
];

for (const [value, message] of options) {
  test(`the constructor refuses a promise, a function and the like: ${message}`, () => {
    assert.throws(() => new Guards(value as never), (error) => error instanceof ConfigurationError && error.message === message);
  });
}
