// Each callback of each middleware, with each value that it can return, throw or reject with by mistake. Nobody reaches
// the handler.
import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { limit as expressLimit } from "@cric-talk/guards/express";
import { limit as fastifyLimit } from "@cric-talk/guards/fastify";
import { limit as honoLimit } from "@cric-talk/guards/hono";
import type { Guards } from "@cric-talk/guards";
import express from "express";
import fastify, { type FastifyReply } from "fastify";
import { Hono } from "hono";
import type { activities } from "./activities.js";
import { Lambda, limited } from "./lambda.js";

const values: [name: string, value: () => unknown][] = [
  ["nothing", () => undefined],
  ["null", () => null],
  ["an empty string", () => ""],
  ["a string", () => "route"], // Express skips the route's other handlers after next("route")
  ["another string", () => "router"],
  ["a number", () => 7],
  ["0", () => 0],
  ["NaN", () => NaN],
  ["true", () => true],
  ["false", () => false],
  ["an object", () => ({})],
  ["an object with a status", () => ({ status: 201 })],
  ["a generator", () => (function* () {})()],
  ["a function", () => () => true],
  ["a symbol", () => Symbol("x")],
];

/** The values that each callback may return. Then the guard refuses; only `skip` with true skips it. */
const returns: Record<string, string[]> = {
  userId: ["a string", "another string"],
  skip: ["nothing", "null", "false"],
  count: ["nothing", "null", "a number"],
  limit: ["nothing", "null", "a number", "0", "an object", "an object with a status"],
  tier: ["nothing", "null", "an empty string", "a string", "another string"],
  roles: ["nothing", "null"],
  subjects: ["nothing", "null", "an object"],
  requestId: ["nothing", "null", "a string", "another string"],
};

type Options = Record<string, () => unknown>;

/** An app with one route. Returns a function that asks it once, and returns its status. */
type App = (t: TestContext, guards: Guards<typeof activities>, options: Options, done: () => void) => Promise<() => Promise<number>>;

const apps: Record<string, App> = {
  async Express(t, guards, options, done) {
    const app = express();
    app.post("/", expressLimit(guards, "like", { userId: () => "u1", ...options } as never), (_, response) => {
      done();
      response.status(201).end();
    });
    app.post("/", (_, response) => {
      done(); // after next("route")
      response.status(201).end();
    });
    app.use(((error, _, response, __) => void response.status(error instanceof Error ? 500 : 418).end()) as express.ErrorRequestHandler);
    const server = app.listen(0, "127.0.0.1");
    await once(server, "listening");
    t.after(() => {
      server.closeAllConnections();
      server.close();
    });
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    return async () => (await fetch(url, { method: "POST" })).status;
  },

  async Fastify(t, guards, options, done) {
    const app = fastify();
    const preHandler = fastifyLimit(guards, "like", { userId: () => "u1", ...options } as never);
    app.post("/", { preHandler }, async (_, reply) => {
      done();
      reply.code(201);
      return "created";
    });
    t.after(() => app.close());
    return async () => (await app.inject({ method: "POST", url: "/" })).statusCode;
  },

  async Hono(_, guards, options, done) {
    const app = new Hono();
    app.post("/", honoLimit(guards, "like", { userId: () => "u1", ...options } as never), (c) => {
      done();
      return c.text("created", 201);
    });
    app.onError((_, c) => c.text("error", 500));
    return async () => (await app.request("/", { method: "POST" })).status;
  },
};

for (const [framework, app] of Object.entries(apps)) {
  for (const option of [...Object.keys(returns), "refused"]) {
    test(`${framework}: nobody passes by a mistake of ${option}`, async (t) => {
      const lambda = await Lambda.start(t, { answer: limited });
      let callback: () => unknown = () => undefined;
      let passed = 0; // an error in the handler would look like one of the middleware
      const ask = await app(t, lambda.guards(), { [option]: () => callback() }, () => passed++);
      for (const [what, value] of values) {
        lambda.requests.length = 0;
        const ways: [way: string, callback: () => unknown][] = [
          ["throws", () => { throw value(); }],
          ["rejects with", () => Promise.reject(value())],
          ["rejects later with", async () => { await null; throw value(); }],
        ];
        for (const [way, fails] of ways) {
          callback = fails;
          assert.deepEqual([await ask(), passed], [500, 0], `${option} ${way} ${what}`);
        }
        assert.equal(lambda.requests.length, option === "refused" ? 3 : 0);
        if (option === "refused") continue; // see below
        for (const returned of [value, async () => value()]) {
          callback = returned;
          if (option === "skip" && what === "true") continue;
          const want = returns[option]?.includes(what) ? 429 : 500;
          assert.deepEqual([await ask(), passed], [want, 0], `${option} returns ${what}`);
        }
      }
    });
  }
}

test("Hono: a refused that returns no Response is an error", async (t) => {
  const lambda = await Lambda.start(t, { answer: limited });
  let result: unknown;
  let passed = 0;
  const ask = await apps["Hono"]!(t, lambda.guards(), { refused: () => result }, () => passed++);
  for (const [what, value] of values) {
    result = value();
    assert.equal(await ask(), 500, what);
  }
  result = new Response("no", { status: 400 });
  assert.equal(await ask(), 400);
  assert.equal(passed, 0);
});

test("Fastify: what refused returns or sends has the status 429, unless the function sets one", async (t) => {
  const lambda = await Lambda.start(t, { answer: limited });
  const app = fastify();
  t.after(() => app.close());
  const guards = lambda.guards();
  const userId = () => "u1";
  const done = async () => assert.fail("it passed");
  const routes: [path: string, refused: (...args: any[]) => unknown, status: number, body: string][] = [
    ["/text", () => "slow down", 429, "slow down"],
    ["/json", async (d) => ({ why: d.reason }), 429, '{"why":"limited"}'],
    ["/null", () => null, 429, "null"],
    ["/status", (_, __, reply) => { reply.code(400); return "no"; }, 400, "no"],
    ["/ok", (_, __, reply) => { reply.code(200); return { errors: ["no"] }; }, 200, '{"errors":["no"]}'], // as GraphQL does
    ["/send", (_, __, reply) => reply.send("no"), 429, "no"],
    ["/throws", () => { throw new Error("broken"); }, 500, '{"statusCode":500,"error":"Internal Server Error","message":"broken"}'],
    ["/throws-status", (_, __, reply) => { reply.code(400); throw new Error("no"); }, 400, '{"statusCode":400,"error":"Bad Request","message":"no"}'],
    ["/sent", (_, __, reply) => { reply.code(400).send("no"); }, 400, "no"],
    ["/reply", (_, __, reply) => reply.code(400).send("no"), 400, "no"],
    ["/later", (_, __, reply) => { setTimeout(() => reply.code(400).send("no"), 10); }, 400, "no"],
    ["/reply-later", (_, __, reply) => { setTimeout(() => reply.code(400).send("no"), 10); return reply; }, 400, "no"],
  ];
  const accepted = async (_: unknown, reply: FastifyReply) => void reply.code(202); // an earlier hook
  for (const [path, refused] of routes) app.post(path, { preHandler: [accepted, fastifyLimit(guards, "like", { userId, refused })] }, done);
  for (const [path, , status, body] of routes) {
    const response = await app.inject({ method: "POST", url: path });
    assert.deepEqual([response.statusCode, response.body], [status, body], path);
  }
});
