// Numbers of limits that the app gives at run time.
import assert from "node:assert/strict";
import type { Server } from "node:http";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { serve } from "@hono/node-server";
import {
  type CheckArgs,
  type Decision,
  type GivenLimit,
  Guards,
  LimitedError,
  rateLimitHeaders,
  refusal,
  type ReleaseArgs,
  tooMany,
  ValidationError,
} from "@cric-talk/guards";
import { limit as expressLimit } from "@cric-talk/guards/express";
import { GuardsStore } from "@cric-talk/guards/express-rate-limit";
import { limit as fastifyLimit } from "@cric-talk/guards/fastify";
import { limit as honoLimit } from "@cric-talk/guards/hono";
import { TestGuards } from "@cric-talk/guards/testing";
import express from "express";
import fastify from "fastify";
import { Hono } from "hono";
import { activities } from "./activities.js";
import { address, Lambda, ok, type Reply, until } from "./lambda.js";

const user = { userId: "u1" };
const each = { tenant: 50_000, call_api: 500 };

/** The refusal of a number that is too small for one action. */
const tooSmall = {
  ...{ allowed: false, reason: "limited", userId: "u1", activity: "create_post", op: "check", granted: 0 },
  message: "Rate limit exceeded: Too many requests in a short period",
};

async function start(t: TestContext, ...replies: Reply[]) {
  const lambda = await Lambda.start(t, ...(replies.length > 0 ? replies : [{ answer: ok }]));
  const sent = () => lambda.requests.map(({ event }) => [event["op"], event["limit"], event["tier"]]);
  return { lambda, guards: lambda.guards(), sent };
}

const number = "a whole number from 0 to 1,000,000";
const want = `${number}, or an object of such numbers, such as { tenant: 50000 }`;

const wrong: [limit: unknown, message: string][] = [
  [1.5, `limit is 1.5, want ${want}`],
  [-1, `limit is -1, want ${want}`],
  [1_000_001, `limit is 1000001, want ${want}`],
  [2 ** 53, `limit is 9007199254740992, want ${want}`],
  [NaN, `limit is NaN, want ${want}`],
  [Infinity, `limit is Infinity, want ${want}`],
  ["500", `limit is a string, want ${want}`],
  [[500], `limit is an array, want ${want}`],
  [null, `limit is null, want ${want}`],
  [true, `limit is a boolean, want ${want}`],
  [500n, `limit is a bigint, want ${want}`],
  [Symbol("500"), `limit is a symbol, want ${want}`],
  [new Map([["tenant", 500]]), `limit is an object, want ${want}`],
  [new Number(500), `limit is an object, want ${want}`],
  [Promise.resolve(500), "limit is a promise, want its value"],
  [{ then: () => {} }, "limit is a promise, want its value"],
  [() => 500, "limit is a function, want its value"],
  [{ tenant: 0.5 }, `limit.tenant is 0.5, want ${number}`],
  [{ call_api: 500, tenant: -1 }, `limit.tenant is -1, want ${number}`],
  [{ tenant: 2 ** 53 }, `limit.tenant is 9007199254740992, want ${number}`],
  [{ tenant: NaN }, `limit.tenant is NaN, want ${number}`],
  [{ tenant: "500" }, `limit.tenant is a string, want ${number}`],
  [{ tenant: null }, `limit.tenant is null, want ${number}`],
  [{ tenant: 500n }, `limit.tenant is a bigint, want ${number}`],
  [{ tenant: { minute: 5 } }, `limit.tenant is an object, want ${number}`],
  [{ tenant: Promise.resolve(500) }, "limit.tenant is a promise, want its value"],
  [{ tenant: () => 500 }, "limit.tenant is a function, want its value"],
  ...["", "t-4711", "Tenant", "_", ".minute", "room.", "room.minute.day", "tenant\n", "a".repeat(37)].map(
    (name): [unknown, string] => [
      { [name]: 5 },
      "limit has a name of another form, want those in the answer's limits, such as tenant or room.minute",
    ],
  ),
];

for (const [index, [limit, message]] of wrong.entries()) {
  test(`a wrong limit is not sent: ${index}, ${message}`, async (t) => {
    const { lambda, guards } = await start(t);
    const args = { ...user, limit } as CheckArgs;
    const receipt = { ...args, at: 1, requestId: "r1" } as ReleaseArgs;
    const run = () => assert.fail("it runs");
    for (const call of [
      () => guards.check("create_post", args),
      () => guards.status("create_post", args),
      () => guards.release("create_post", receipt),
      () => guards.renew("create_post", receipt),
      () => guards.slot("create_post", args),
      () => guards.withSlot("create_post", args, run),
      () => guards.guarded("create_post", args, run),
      () => guards.attempt("create_post", args, run),
    ]) {
      await assert.rejects(call, (error) => {
        assert.ok(error instanceof ValidationError);
        assert.equal(error.message, message);
        return true;
      });
    }
    const given = limit as GivenLimit;
    const store = (_: unknown, __: unknown, options: { limit: GivenLimit }) => new GuardsStore(guards, "create_post", { limit: options.limit });
    for (const middleware of typeof limit === "function" ? [] : [expressLimit, fastifyLimit, honoLimit, store]) {
      assert.throws(() => middleware(guards, "create_post", { userId: () => "u1", limit: given }), {
        name: "ConfigurationError",
        message: `The limit "create_post" has a wrong option: ${message}.`,
      });
    }
    assert.equal(lambda.requests.length, 0);
  });
}

const right: [limit: CheckArgs["limit"], tier: string | undefined, want: unknown][] = [
  [500, undefined, { limit: 500 }],
  [0, undefined, { limit: 0 }],
  [1_000_000, "premium", { limit: 1_000_000, tier: "premium" }],
  [each, "premium", { limit: each, tier: "premium" }],
  [{ tenant: 0, call_api: undefined }, undefined, { limit: { tenant: 0 } }],
  [undefined, "premium", { tier: "premium" }],
  [undefined, undefined, undefined],
  [{}, undefined, undefined],
  [{ tenant: undefined }, undefined, undefined],
];

for (const [limit, tier, want] of right) {
  test(`limit and tier are sent with the check and with what follows: ${JSON.stringify([limit, tier])}`, async (t) => {
    const { guards, sent } = await start(t, { answer: { ...ok, granted: 3 } });
    const mine = typeof limit === "object" ? { ...limit } : limit;
    const decision = await guards.check("create_post", { ...user, count: 3, limit: mine, tier });
    if (typeof mine === "object") (mine as Record<string, number>)["tenant"] = 7; // the app may use its object again
    assert.deepEqual(decision.asked, want);
    assert.equal("asked" in decision, want !== undefined);
    await guards.release(JSON.parse(JSON.stringify(decision)) as Decision);
    const renewed = await guards.renew(decision);
    assert.deepEqual(renewed.asked, want);
    await guards.settle(renewed, 1);
    await assert.rejects(guards.guarded("create_post", { ...user, limit, tier }, () => Promise.reject(new Error("no disk"))), /no disk/);
    await guards.attempt("create_post", { ...user, limit, tier }, () => true);
    const asked = (want ?? {}) as Decision["asked"];
    const ops = ["check", "release", "renew", "release", "check", "release", "check", "release"];
    assert.deepEqual(sent(), ops.map((op) => [op, asked?.limit, asked?.tier]));
  });
}

test("a status and the fields of a receipt take limit and tier, and a reset takes no limit", async (t) => {
  const { guards, sent } = await start(t);
  const asked = { limit: 500, tier: "premium" };
  const receipt = { ...user, at: 5, requestId: "r1" };
  await guards.status("create_post", { ...user, ...asked });
  await guards.release("create_post", { ...receipt, ...asked });
  await guards.renew("create_post", { ...receipt, ...asked });
  assert.deepEqual(sent(), ["status", "release", "renew"].map((op) => [op, 500, "premium"]));
  await assert.rejects(guards.reset("create_post", { ...user, limit: 500 } as never), {
    name: "ValidationError",
    message: /^the argument "limit" is not known, want only /,
  });
});

test("a slot is renewed and freed with its number", async (t) => {
  const { guards, sent } = await start(t, { answer: { ...ok, heldUntil: ok.at + 6000 } });
  {
    await using slot = await guards.slot("create_post", { ...user, limit: 3 });
    await sleep(2600);
    assert.equal(slot.lost, false);
  }
  assert.deepEqual(sent(), ["check", "renew", "release"].map((op) => [op, 3, undefined]));
});

test("a stored decision can't ask about another user", async (t) => {
  const { lambda, guards } = await start(t);
  const decision = await guards.check("create_post", { ...user, limit: 3 });
  await guards.release({ ...decision, asked: { limit: 3, userId: "u2" } as Decision["asked"] & object });
  assert.equal(lambda.requests[1]?.event["userId"], "u1");
});

test("with a number, the headers have the decision's figures and no policy", async (t) => {
  const { guards } = await start(t, { answer: { ...ok, limit: 500, remaining: 497 } });
  for (const limit of [500, 0, each]) {
    const decision = await guards.check("create_post", { ...user, limit });
    assert.equal(decision.window, undefined);
    assert.deepEqual(rateLimitHeaders(decision), { RateLimit: '"create_post";r=497;t=42' });
  }
  for (const limit of [undefined, {}]) {
    assert.equal((await guards.check("create_post", { ...user, limit })).window, 60);
  }
});

test("in an outage, the decision keeps limit and tier, too", async (t) => {
  const { guards } = await start(t, { functionError: { errorType: "Unavailable" } });
  const decision = await guards.check("create_post", { ...user, limit: 500, tier: "premium" });
  assert.deepEqual([decision.reason, decision.asked], ["unavailable", { limit: 500, tier: "premium" }]);
});

test("a number that is too small is a refusal without figures, and nobody waits for it", async (t) => {
  const { guards, sent } = await start(t, { answer: tooSmall });
  const decision = await guards.check("create_post", { ...user, limit: 0 });
  assert.deepEqual(decision, { ...tooSmall, guard: "posts-guard", asked: { limit: 0 } });
  assert.equal(await guards.wait(decision), false);
  await assert.rejects(guards.guarded("create_post", { ...user, limit: 0 }, () => assert.fail("it runs")), LimitedError);
  await assert.rejects(guards.withSlot("create_post", { ...user, limit: 0 }, () => assert.fail("it runs")), LimitedError);
  assert.deepEqual(sent(), ["check", "check", "check"].map((op) => [op, 0, undefined]));

  // No wait would help, so the user's program is told none, and nothing about the app's plans.
  const { status, headers, body } = refusal(decision);
  assert.deepEqual([status, headers], [429, { "Content-Type": "application/problem+json" }]);
  assert.deepEqual(JSON.parse(body), {
    title: "Too Many Requests",
    status: 429,
    ...tooSmall,
  });
  assert.equal(tooMany(decision).headers.get("RateLimit"), null);
});

test("an ordinary refusal with a number has Retry-After", () => {
  const decision = { ...tooSmall, guard: "posts-guard", asked: { limit: 5 }, waitTime: 41_001 } as Decision;
  assert.equal(refusal(decision).headers["Retry-After"], "42");
});

test("TestGuards see the numbers", async () => {
  const guards = new TestGuards({ activities });
  const decision = await guards.check("create_post", { ...user, limit: each, tier: "premium" });
  assert.deepEqual(decision.asked, { limit: each, tier: "premium" });
  await guards.release(decision);
  assert.deepEqual(guards.calls.map(({ op, limit, tier }) => [op, limit, tier]), [["check", each, "premium"], ["release", each, "premium"]]);
});

type Options = { limit: GivenLimit | (() => GivenLimit | null | undefined | Promise<GivenLimit>); countIf?: () => boolean };

/** Each app has one route, and returns its address. */
const apps: Record<string, (t: TestContext, guards: Guards<typeof activities>, options: Options) => Promise<string>> = {
  async Express(t, guards, options) {
    const app = express();
    app.post("/", expressLimit(guards, "create_post", { userId: () => "u1", ...options }), (_, response) => void response.send("ok"));
    return address(t, app.listen(0, "127.0.0.1"));
  },
  async Fastify(t, guards, options) {
    const app = fastify();
    app.post("/", { preHandler: fastifyLimit(guards, "create_post", { userId: () => "u1", ...options }) }, async () => "ok");
    t.after(() => app.close());
    return app.listen({ port: 0, host: "127.0.0.1" });
  },
  async Hono(t, guards, options) {
    const app = new Hono();
    app.post("/", honoLimit(guards, "create_post", { userId: () => "u1", ...options }), (c) => c.text("ok"));
    return address(t, serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }) as Server);
  },
};

for (const [name, app] of Object.entries(apps)) {
  test(`${name}: the number is a value or comes from the request, and countIf gives back with it`, async (t) => {
    const { lambda, guards, sent } = await start(t);
    for (const [limit, want] of [
      [500, 500],
      [each, each],
      [() => 500, 500],
      [async () => each, each],
      [() => null, undefined],
      [() => undefined, undefined],
    ] as const) {
      lambda.requests.length = 0;
      const response = await fetch(await app(t, guards, { limit, countIf: () => false }), { method: "POST" });
      assert.equal(response.status, 200);
      assert.equal(response.headers.has("RateLimit-Policy"), want === undefined);
      await until(() => lambda.requests.length === 2);
      assert.deepEqual(sent(), ["check", "release"].map((op) => [op, want, undefined]));
    }
  });

  test(`${name}: a number that is too small is a 429 without Retry-After`, async (t) => {
    const { guards } = await start(t, { answer: tooSmall });
    const response = await fetch(await app(t, guards, { limit: () => 0 }), { method: "POST" });
    assert.equal(response.status, 429);
    assert.deepEqual([response.headers.get("Retry-After"), response.headers.get("RateLimit")], [null, null]);
    assert.equal(((await response.json()) as Decision).message, tooSmall.message);
  });
}

test("express-rate-limit's store takes a value or a function of the key", async (t) => {
  const { lambda, guards, sent } = await start(t);
  for (const limit of [500, (key: string) => (key === "u1" ? 500 : 0), async () => 500]) {
    lambda.requests.length = 0;
    const store = new GuardsStore(guards, "create_post", { limit });
    await store.increment("u1");
    await store.get("u1");
    await store.decrement("u1");
    await store.resetKey("u1");
    assert.deepEqual(sent(), [...["check", "status", "release"].map((op) => [op, 500, undefined]), ["reset", undefined, undefined]]);
  }
  lambda.requests.length = 0;
  // Express takes an error that is nothing for an order to go on.
  const store = new GuardsStore(guards, "create_post", { limit: () => Promise.reject(undefined) });
  await assert.rejects(store.increment("u1"), { name: "ConfigurationError" });
  lambda.replies = [{ answer: tooSmall }];
  const none = await new GuardsStore(guards, "create_post", { limit: () => null }).increment("u1");
  assert.deepEqual(sent(), [["check", undefined, undefined]]);
  assert.equal(none.totalHits, Number.MAX_SAFE_INTEGER);
});
