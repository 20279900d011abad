// The option countIf, with real servers of the three frameworks.
import assert from "node:assert/strict";
import { once } from "node:events";
import { request as send, type IncomingMessage, type Server } from "node:http";
import { connect } from "node:net";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { serve } from "@hono/node-server";
import { type Activities, ConfigurationError, type Guards, GuardsError } from "@cric-talk/guards";
import { limit as expressLimit } from "@cric-talk/guards/express";
import { limit as fastifyLimit } from "@cric-talk/guards/fastify";
import { limit as honoLimit } from "@cric-talk/guards/hono";
import express from "express";
import fastify from "fastify";
import { Hono } from "hono";
import type { activities } from "./activities.js";
import { address, Lambda, limited, ok, stopClock, until } from "./lambda.js";

type Options = Record<string, unknown>;

/** What the handler of an app does: it answers with a status, or throws, after a while. */
type Handler = () => Promise<number>;

/** An app with one route. Returns its address. */
type App = (t: TestContext, guards: Guards<typeof activities>, options: Options, handler: Handler) => Promise<string>;

const user = { userId: () => "u1" };

const apps: Record<string, App> = {
  async Express(t, guards, options, handler) {
    const app = express();
    app.post("/", expressLimit(guards, "create_post", { ...user, ...options }), async (_, response) => {
      response.status(await handler()).send("done");
    });
    app.use(((error, _, response, __) => void response.status(500).send(String(error))) as express.ErrorRequestHandler);
    return address(t, app.listen(0, "127.0.0.1"));
  },
  async Fastify(t, guards, options, handler) {
    const app = fastify();
    app.post("/", { preHandler: fastifyLimit(guards, "create_post", { ...user, ...options }) }, async (_, reply) => {
      reply.code(await handler());
      return "done";
    });
    t.after(() => app.close());
    return app.listen({ port: 0, host: "127.0.0.1" });
  },
  async Hono(t, guards, options, handler) {
    const app = new Hono();
    app.post("/", honoLimit(guards, "create_post", { ...user, ...options }), async () => new Response("done", { status: await handler() }));
    app.onError((error, c) => c.text(String(error), 500));
    return address(t, serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }) as Server);
  },
};

function ops(lambda: Lambda): unknown[] {
  return lambda.requests.map(({ event }) => event["op"]);
}

/** Waits long enough for a release that must not come. */
const quiet = () => sleep(100);

const wrong = ({ status }: { status: number }) => status === 401;

for (const [name, app] of Object.entries(apps)) {
  test(`${name}: countIf decides by the status, and gives all others back`, async (t) => {
    const lambda = await Lambda.start(t, { answer: ok });
    let status = 0;
    const asked: unknown[] = [];
    const countIf = async (response: { status: number }) => {
      asked.push({ ...response });
      return wrong(response);
    };
    const url = await app(t, lambda.guards(), { countIf }, async () => status);
    for (status of [200, 201, 302, 401, 403, 404, 503]) {
      lambda.requests.length = 0;
      asked.length = 0;
      const response = await fetch(url, { method: "POST", redirect: "manual" });
      assert.equal(response.status, status);
      assert.ok(response.headers.get("RateLimit"));
      if (status !== 401) await until(() => lambda.requests.length === 2);
      else await quiet();
      assert.deepEqual(ops(lambda), status === 401 ? ["check"] : ["check", "release"]);
      assert.deepEqual(asked, [{ status }]);
    }
    const { requestId, ...released } = lambda.requests[1]!.event;
    assert.deepEqual([released, requestId], [{ userId: "u1", activity: "create_post", op: "release", at: ok.at, count: 1 }, "r1"]);
  });

  test(`${name}: countIf is not asked about a request that is refused or skipped`, async (t) => {
    const lambda = await Lambda.start(t, { answer: limited });
    const countIf = () => assert.fail("it was asked");
    const warnings: GuardsError[] = [];
    const url = await app(t, lambda.guards({ warnings }), { countIf }, async () => 201);
    assert.equal((await fetch(url, { method: "POST" })).status, 429);
    assert.deepEqual(ops(lambda), ["check"]);
    const open = await app(t, lambda.guards({ warnings }), { countIf, skip: () => true }, async () => 201);
    assert.equal((await fetch(open, { method: "POST" })).status, 201);
    await quiet();
    assert.deepEqual(ops(lambda), ["check"]);
    assert.deepEqual(warnings, []);
  });

  // The framework answers for it, so its status decides.
  test(`${name}: a handler that throws is asked about with the status of the error handler`, async (t) => {
    const lambda = await Lambda.start(t, { answer: ok });
    const asked: number[] = [];
    const fail = async () => { throw new Error("broken"); };
    const url = await app(t, lambda.guards(), { countIf: ({ status }: { status: number }) => (asked.push(status), status >= 400) }, fail);
    assert.equal((await fetch(url, { method: "POST" })).status, 500);
    await quiet();
    assert.deepEqual([asked, ops(lambda)], [[500], ["check"]]);
  });

  test(`${name}: if the client went away before the response, the request stays counted`, async (t) => {
    const lambda = await Lambda.start(t, { answer: ok });
    let answer = () => {};
    const answered = new Promise<void>((resolve) => (answer = resolve));
    let done = false;
    let running = false;
    const asked: number[] = [];
    const url = await app(t, lambda.guards(), { countIf: ({ status }: { status: number }) => (asked.push(status), false) }, async () => {
      running = true;
      await answered;
      done = true;
      return 200;
    });
    const client = send(url, { method: "POST" }).on("error", () => {}).end();
    await until(() => running);
    client.destroy();
    await quiet(); // until the server knows
    answer();
    await until(() => done);
    await quiet();
    assert.deepEqual([asked, ops(lambda)], [[], ["check"]]);
  });

  const mistakes: [what: string, countIf: () => unknown, message: RegExp][] = [
    ["throws", () => { throw new Error("no status"); }, /^countIf of create_post failed$/],
    ["rejects", () => Promise.reject(new Error("no status")), /^countIf of create_post failed$/],
    ["returns nothing", () => undefined, /^The function countIf of the limit "create_post" returned undefined, want true or false\.$/],
    ["returns 0", () => 0, /returned a number, want true or false/],
    ["returns NaN", async () => NaN, /returned NaN, want true or false/],
    ["returns a text", () => "", /returned a string, want true or false/],
    ["returns a function", () => () => false, /returned a function, want true or false/],
    ["returns a generator", () => (function* () {})(), /returned a generator, want true or false/],
    ["returns a Response", () => new Response(""), /returned an object, want true or false/],
  ];
  test(`${name}: after a mistake of countIf the request stays counted, and warn is called`, async (t) => {
    const lambda = await Lambda.start(t, { answer: ok });
    const warnings: GuardsError[] = [];
    let countIf: () => unknown = () => true;
    const url = await app(t, lambda.guards({ warnings }), { countIf: () => countIf() }, async () => 201);
    for (const [what, mistake, message] of mistakes) {
      countIf = mistake;
      lambda.requests.length = warnings.length = 0;
      assert.equal((await fetch(url, { method: "POST" })).status, 201, what);
      await until(() => warnings.length > 0);
      assert.match(warnings[0]!.message, message, what);
      assert.deepEqual([warnings.length, ops(lambda)], [1, ["check"]], what);
    }
  });

  test(`${name}: a release that fails or is late goes to warn, and the response is the handler's`, async (t) => {
    const lambda = await Lambda.start(t, { answer: ok }, { status: 500 });
    const warnings: GuardsError[] = [];
    const clock = stopClock(t);
    const url = await app(t, lambda.guards({ warnings, maxTries: 1 }), { countIf: wrong }, async () => (clock.advance(18_001), 201));
    assert.equal((await fetch(url, { method: "POST" })).status, 201);
    await until(() => warnings.length === 2);
    assert.match(warnings[0]!.message, /^the release of create_post is sent 18 s after its check.* Hold/);
    assert.equal(warnings[1]!.name, "OutageError");
    assert.deepEqual(ops(lambda), ["check", "release"]);
  });

  test(`${name}: a decision without a receipt gives nothing back`, async (t) => {
    const lambda = await Lambda.start(t, { status: 500 });
    const url = await app(t, lambda.guards({ maxTries: 1 }), { countIf: () => false }, async () => 201);
    assert.equal((await fetch(url, { method: "POST" })).status, 201);
    await quiet();
    assert.deepEqual(ops(lambda), ["check"]);
  });
}

// A caller's id would let its repeats guess again, and all of them would be one attempt.
test("countIf with requestId or count, or without Guards, is a mistake when the middleware is made", () => {
  const guards = { check: () => assert.fail("it was counted") } as Pick<Guards<Activities>, "check">;
  for (const limit of [expressLimit, fastifyLimit, honoLimit]) {
    for (const name of ["requestId", "count"]) {
      assert.throws(() => limit(guards, "create_post", { ...user, countIf: wrong, [name]: () => undefined } as never), {
        name: "ConfigurationError",
        message: `The option countIf of the limit "create_post" does not go with ${name}: each request is one attempt, with an id of its own.`,
      });
    }
    assert.throws(() => limit(guards, "create_post", { ...user, countIf: wrong }), {
      name: "ConfigurationError",
      message: 'The limit "create_post" has countIf and guards that can\'t give back, want new Guards().',
    });
    for (const countIf of [true, 401, "401", [401], Promise.resolve(wrong)]) {
      assert.throws(() => limit(guards, "create_post", { ...user, countIf } as never), ConfigurationError);
    }
    limit(guards, "create_post", { ...user, countIf: undefined as never, requestId: () => "r1" });
  }
});

/** Each way to send headers in Node. */
const ways: [name: string, answer: (response: express.Response) => unknown, status: number][] = [
  ["writeHead", (response) => response.writeHead(401, { "x-a": "b" }).end(), 401],
  ["writeHead with a reason", (response) => response.writeHead(401, "No").end("no"), 401],
  ["end", (response) => Object.assign(response, { statusCode: 401 }).end(), 401],
  ["write in parts", (response) => (Object.assign(response, { statusCode: 401 }).write("n"), setTimeout(() => response.end("o"), 20)), 401],
  ["flushHeaders", (response) => (Object.assign(response, { statusCode: 401 }).flushHeaders(), response.end()), 401],
  ["redirect", (response) => response.redirect("/home"), 302],
  ["a status that can't be sent, and then the error handler", (response) => response.writeHead(42), 500],
  ["early hints first", (response) => response.writeEarlyHints({ link: "</a.css>; rel=preload" }, () => response.writeHead(401).end()), 401],
];

for (const [name, answer, status] of ways) {
  test(`Express: countIf is asked once if the headers are sent by ${name}`, async (t) => {
    const lambda = await Lambda.start(t, { answer: ok });
    const asked: number[] = [];
    const app = express();
    const countIf = (response: { status: number }) => (asked.push(response.status), true);
    app.post("/", expressLimit(lambda.guards(), "create_post", { ...user, countIf }), (_, response) => void answer(response));
    app.use(((_, __, response, ___) => void response.status(500).end()) as express.ErrorRequestHandler);
    const client = send(await address(t, app.listen(0, "127.0.0.1")), { method: "POST" }).end();
    const [response] = (await once(client, "response")) as [IncomingMessage];
    await once(response.resume(), "end");
    assert.deepEqual([response.statusCode, asked], [status, [status]]);
  });
}

// A response that waits behind another one has no socket yet.
test("Express: if the client of pipelined requests went away, both stay counted", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const app = express();
  let answer = () => {};
  const answered = new Promise<void>((resolve) => (answer = resolve));
  let done = 0;
  app.post("/", expressLimit(lambda.guards(), "create_post", { ...user, countIf: () => false }), async (_, response) => {
    await answered;
    response.send("done");
    done++;
  });
  const { port } = new URL(await address(t, app.listen(0, "127.0.0.1")));
  const client = connect(Number(port), "127.0.0.1").on("error", () => {});
  client.write("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n".repeat(2));
  await until(() => lambda.requests.length === 2);
  client.destroy();
  await quiet(); // until the server knows
  answer();
  await until(() => done === 2);
  await quiet();
  assert.deepEqual(ops(lambda), ["check", "check"]);
});

test("Fastify: countIf is asked in an injected request, too", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const app = fastify();
  t.after(() => app.close());
  app.post("/", { preHandler: fastifyLimit(lambda.guards(), "create_post", { ...user, countIf: wrong }) }, async () => "done");
  assert.equal((await app.inject({ method: "POST", url: "/" })).statusCode, 200);
  await until(() => lambda.requests.length === 2);
  assert.deepEqual(ops(lambda), ["check", "release"]);
});

test("Hono: what is given back is given back before the response goes", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const app = new Hono().post("/", honoLimit(lambda.guards(), "create_post", { ...user, countIf: wrong }), (c) => c.text("done"));
  assert.equal((await app.request("/", { method: "POST" })).status, 200);
  assert.deepEqual(ops(lambda), ["check", "release"]);
});
