// The others in whose limits an action counts, such as a room.
import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { serve } from "@hono/node-server";
import { type CheckArgs, type Decision, Guards, type ReleaseArgs, rateLimitHeaders, refusal, ValidationError } from "@cric-talk/guards";
import { limit as expressLimit } from "@cric-talk/guards/express";
import { limit as fastifyLimit } from "@cric-talk/guards/fastify";
import { limit as honoLimit } from "@cric-talk/guards/hono";
import { GuardsStore } from "@cric-talk/guards/express-rate-limit";
import express from "express";
import fastify from "fastify";
import { Hono } from "hono";
import { Lambda, limited, ok, type Reply } from "./lambda.js";

const list = {
  write: { guard: "rooms-guard", subjects: ["room", "tenant?"] },
  record: { guard: "rooms-guard", subjects: ["room"] },
  like: { guard: "posts-guard", window: 60 },
} as const;

const user = { userId: "u1" };
const room = { room: "r42" };
const needs = ': the activity "write" needs room, tenant (optional)';
const has = ': the activity "write" has room, tenant (optional)';
const none =
  'subjects does not go with the activity "like": the list has none for it. Write the list again with guards generate if it is old.';

async function start(t: TestContext, ...replies: Reply[]) {
  const lambda = await Lambda.start(t, ...(replies.length > 0 ? replies : [{ answer: ok }]));
  const guards = new Guards({ activities: list, client: lambda.client(), decisionTimeout: 5000, timeout: 20_000 });
  const sent = () => lambda.requests.map(({ event }) => [event["op"], event["subjects"]]);
  return { lambda, guards, sent };
}

const wrong: [activity: "write" | "like" | { guard: string; activity: string }, subjects: unknown, message: string][] = [
  ["write", undefined, "subjects has no room" + needs],
  ["write", { tenant: "t1" }, "subjects has no room" + needs],
  ["write", { room: undefined }, "subjects has no room" + needs],
  [{ guard: "rooms-guard", activity: "write" }, { rooom: "r1" }, "subjects has no room" + needs],
  ["write", { room: "r1", secret: "x" }, "subjects has an unknown name" + has],
  ["like", { secret: "x" }, none],
  ["like", { constructor: "x" }, none],
  ["write", ["room"], 'subjects has another form, want one such as { room: "r42" }'],
  ["write", Promise.resolve(room), 'subjects has another form, want one such as { room: "r42" }'],
  ["write", { room: Promise.resolve("r1") }, "subjects has an id that is no string, want its value as a string"],
  ["write", { room: "" }, "subjects has an empty id, want its value, or undefined to leave it out"],
  ["write", { room: "r1", tenant: "" }, "subjects has an empty id, want its value, or undefined to leave it out"],
  ["write", { room: "r1", tenant: NaN }, "subjects has an id that is no string, want its value as a string"],
  ["write", { room: "r1", tenant: () => "t1" }, "subjects has an id that is no string, want its value as a string"],
];

for (const [index, [activity, subjects, message]] of wrong.entries()) {
  test(`wrong subjects are not sent: ${index}, ${message}`, async (t) => {
    const { lambda, guards } = await start(t);
    const args = { ...user, subjects } as CheckArgs;
    const receipt = { ...args, at: 1, requestId: "r1" } as ReleaseArgs;
    for (const call of [
      () => guards.check(activity, args),
      () => guards.status(activity, args),
      () => guards.release(activity, receipt),
      () => guards.renew(activity, receipt),
      () => guards.slot(activity, args),
      () => guards.guarded(activity, args, () => assert.fail("it runs")),
    ]) {
      await assert.rejects(call, (error) => {
        assert.ok(error instanceof ValidationError && error.guard !== undefined);
        assert.equal(error.message, message);
        return true;
      });
    }
    assert.equal(lambda.requests.length, 0);
  });
}

const right: [activity: "write" | "like" | { guard: string; activity: string }, subjects: CheckArgs["subjects"], want: unknown][] = [
  ["write", room, room],
  ["write", { room: "r1", tenant: "t1" }, { room: "r1", tenant: "t1" }],
  ["write", { room: "r1", tenant: null }, { room: "r1" }],
  [{ guard: "photos-guard", activity: "write" }, { album: "a1" }, { album: "a1" }], // the guard itself knows
  [{ guard: "photos-guard", activity: "write" }, undefined, undefined],
  ["like", undefined, undefined],
  ["like", {}, undefined],
];

for (const [activity, subjects, want] of right) {
  test(`subjects are sent with the check and with what follows: ${JSON.stringify([activity, subjects])}`, async (t) => {
    const { guards, sent } = await start(t, { answer: { ...ok, granted: 3 } });
    const mine: Record<string, string | null | undefined> | undefined = subjects && { ...subjects };
    const decision = await guards.check(activity, { ...user, count: 3, subjects: mine });
    if (mine) mine["room"] = "another"; // the app may use its object again
    await guards.release(JSON.parse(JSON.stringify(decision)) as Decision);
    await guards.renew(decision);
    await guards.settle(decision, 1);
    await assert.rejects(guards.guarded(activity, { ...user, subjects }, () => Promise.reject(new Error("no disk"))), /no disk/);
    const ops = ["check", "release", "renew", "release", "check", "release"];
    assert.deepEqual(sent(), ops.map((op) => [op, want]));
  });
}

test("a status and the fields of a receipt take subjects", async (t) => {
  const { guards, sent } = await start(t);
  await guards.status("write", { ...user, subjects: room });
  await guards.release("write", { ...user, at: 5, requestId: "r1", subjects: room });
  await guards.renew("write", { ...user, at: 5, requestId: "r1", subjects: room });
  assert.deepEqual(sent(), [["status", room], ["release", room], ["renew", room]]);
});

test("a reset and ready need no subjects", async (t) => {
  const { guards, sent } = await start(t);
  await guards.reset("write", user);
  await guards.ready("write");
  assert.deepEqual(sent(), [["reset", undefined], ["status", { room: "ready" }]]);
});

test("a slot of a room is renewed and freed in the room", async (t) => {
  const { guards, sent } = await start(t, { answer: { ...ok, heldUntil: ok.at + 6000 } });
  {
    await using slot = await guards.slot("record", { ...user, subjects: room });
    await sleep(2600);
    assert.equal(slot.lost, false);
  }
  assert.deepEqual(sent(), [["check", room], ["renew", room], ["release", room]]);
});

test("no error shows a subject", async (t) => {
  const { guards } = await start(t, { status: 400, code: "Bad", message: "not in canary-room-4711" });
  await assert.rejects(guards.check("write", { ...user, subjects: { room: "canary-room-4711" } }), /not in \*\*\*/);
});

test("what an app answers shows no subject and no window", () => {
  const figures = { limit: 10, activityCount: 3, remaining: 7, waitTime: 0, resetAt: 0 };
  const limits = [{ name: "write", ...figures }, { name: "room", ...figures }];
  const decision = { ...limited, guard: "rooms-guard", window: 60, subjects: room, limitedBy: "room", limits } as Decision;
  assert.deepEqual(rateLimitHeaders(decision), { RateLimit: '"write";r=7, "room";r=7' });
  const body = JSON.parse(refusal(decision).body);
  assert.deepEqual(body["violated-policies"], ["room"]);
  assert.equal(body.subjects, undefined);
});

test("express-rate-limit's store knows no subjects", async (t) => {
  const { lambda, guards } = await start(t);
  await assert.rejects(new GuardsStore(guards, "write").increment("u1"), ValidationError);
  assert.equal(lambda.requests.length, 0);
});

const userId = () => "u1";

/** Each app posts to a room, and returns its address. */
const apps: Record<string, (t: TestContext, guards: Guards<typeof list>) => Promise<string>> = {
  async Express(t, guards) {
    const app = express();
    const subjects = (request: express.Request) => ({ room: String(request.params["room"]) });
    app.post("/rooms/:room", expressLimit(guards, "write", { userId, subjects }), (_, response) => void response.send("ok"));
    const server = app.listen(0, "127.0.0.1");
    await once(server, "listening");
    t.after(() => {
      server.closeAllConnections();
      server.close();
    });
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  },

  async Fastify(t, guards) {
    const app = fastify();
    const subjects = async (request: { params: unknown }) => request.params as { room: string };
    app.post("/rooms/:room", { preHandler: fastifyLimit(guards, "write", { userId, subjects }) }, async () => "ok");
    t.after(() => app.close());
    return app.listen({ port: 0, host: "127.0.0.1" });
  },

  async Hono(t, guards) {
    const app = new Hono();
    const subjects = (c: { req: { param: (name: string) => string | undefined } }) => ({ room: c.req.param("room") });
    app.post("/rooms/:room", honoLimit(guards, "write", { userId, subjects }), (c) => c.text("ok"));
    const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" });
    await once(server, "listening");
    t.after(() => server.close());
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  },
};

for (const [name, app] of Object.entries(apps)) {
  test(`${name}: the middleware takes subjects from the request`, async (t) => {
    const { guards, sent } = await start(t);
    const url = await app(t, guards);
    const response = await fetch(`${url}/rooms/r42`, { method: "POST" });
    assert.equal(response.status, 200);
    assert.deepEqual(sent(), [["check", room]]);
  });
}
