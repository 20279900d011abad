// The README's middleware and its forms of a refusal, each in every framework that its row names.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { serve } from "@hono/node-server";
import * as client from "@cric-talk/guards";
import { limit as expressLimit } from "@cric-talk/guards/express";
import { limit as fastifyLimit } from "@cric-talk/guards/fastify";
import { limit as honoLimit } from "@cric-talk/guards/hono";
import express from "express";
import fastify from "fastify";
import { Hono } from "hono";
import { Lambda, limited, ok } from "./lambda.js";

/** `called` is what the framework calls the handler with: its response, or the event. */
type Handler = (called: unknown, save: () => unknown) => Promise<unknown>;

/** Answers one POST request with a handler. */
type Framework = (t: TestContext, handler: Handler) => Promise<Response>;

const created = { status: 201 };

/** The names are those in the rows. */
const frameworks: Record<string, Framework> = {
  async "Next.js (route handlers)"(_, handler) {
    const POST = (_request: Request) => handler(undefined, () => new Response("created", created));
    const answer = await POST(new Request("http://localhost/posts", { method: "POST" }));
    assert(answer instanceof Response, "Next.js wants a Response");
    return answer;
  },
  async Hono(t, handler) {
    const app = new Hono().post("/", (c) => handler(undefined, () => c.text("created", 201)) as Promise<Response>);
    return posted(t, serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }) as Server);
  },
  async "Fastify 5"(t, handler) {
    const app = fastify();
    app.post("/", (_, reply) => handler(reply, () => reply.code(201).send("created")));
    t.after(() => app.close());
    return fetch(await app.listen({ port: 0, host: "127.0.0.1" }), { method: "POST" });
  },
  async Express(t, handler) {
    const app = express().post("/", (_, response) => void handler(response, () => response.status(201).send("created")));
    return posted(t, app.listen(0, "127.0.0.1"));
  },
  async "node:http"(t, handler) {
    const server = createServer((_, response) => void handler(response, () => response.writeHead(201).end("created")));
    return posted(t, server.listen(0, "127.0.0.1"));
  },
  "REST API": (_, handler) => proxied(502, handler),
  "HTTP API": (_, handler) => proxied(200, handler),
  "Function URL": (_, handler) => proxied(200, handler),
};

async function posted(t: TestContext, server: Server, path = "/"): Promise<Response> {
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  if (!server.listening) await once(server, "listening");
  return fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`, { method: "POST", signal: AbortSignal.timeout(20_000) });
}

/**
 * Runs a Lambda handler as Lambda's runtime and API Gateway do. `otherwise` is the status of a result without a statusCode:
 * an HTTP API and a Function URL take it for the body, and for a REST API it is malformed.
 */
async function proxied(otherwise: number, handler: Handler): Promise<Response> {
  const result = JSON.parse(JSON.stringify((await handler({ requestContext: {} }, () => ({ statusCode: 201, body: "created" }))) ?? null));
  if (typeof result?.statusCode !== "number") return new Response(JSON.stringify(result), { status: otherwise });
  return new Response(result.body, { status: result.statusCode, headers: result.headers ?? {} });
}

const readme = readFileSync("README.md", "utf8");

/** The README's forms after the frameworks of their row. */
const rows = [...readme.matchAll(/^\| (.*) \| `(return \w+\(.*decision\);)` \|$/gm)];
assert.equal(rows.length, 3);

/** Returns a handler that checks, and answers a refusal with a line of code, as an app's author writes it. */
function handlerWith(guards: client.Guards, line: string): Handler {
  const { sendTooMany, tooMany, tooManyForLambda } = client;
  const forms = { sendTooMany, tooMany, tooManyForLambda };
  const code = `const decision = await guards.check({ guard: "posts-guard", activity: "create_post" }, { userId: "u1" });
    if (!decision.allowed) ${line}
    return save();`;
  const body = Function("guards", ...Object.keys(forms), `return async (called, save) => { const response = called, event = called; ${code} };`);
  return body(guards, ...Object.values(forms)) as Handler;
}

for (const [name, framework] of Object.entries(frameworks)) {
  test(`${name}: the README's form of a refusal`, async (t) => {
    const row = rows.find((row) => row[1]!.includes(name));
    assert(row, `no row of the README names ${name}`);
    const lambda = await Lambda.start(t, { answer: ok }, { answer: limited }, { status: 500 });
    const handler = handlerWith(lambda.guards({ onOutage: "deny" }), row[2]!);

    const done = await framework(t, handler);
    assert.equal(done.status, 201);
    assert.equal(await done.text(), "created");

    const refused = await framework(t, handler);
    assert.equal(refused.status, 429);
    assert.equal(refused.headers.get("Retry-After"), "42");
    assert.equal(refused.headers.get("Content-Type"), "application/problem+json");
    assert.equal(refused.headers.get("RateLimit"), '"create_post";r=0;t=0');
    assert.equal(((await refused.json()) as client.Decision).message, limited.message);

    const outage = await framework(t, handler);
    assert.equal(outage.status, 503);
    assert.equal(outage.headers.get("Retry-After"), "1");
  });
}

/** Each runs a line with an app, logs in u1 there, and posts to the app. */
const middleware: Record<string, (t: TestContext, run: (app: unknown, limit: unknown, handler: unknown) => void) => Promise<Response>> = {
  express(t, run) {
    const app = express().use((request, _, next) => void next(Object.assign(request, { user: { id: "u1" } }) && undefined));
    run(app, expressLimit, (_: unknown, response: express.Response) => response.status(201).send("created"));
    return posted(t, app.listen(0, "127.0.0.1"), "/posts");
  },
  async fastify(t, run) {
    const app = fastify().addHook("onRequest", async (request) => void Object.assign(request, { user: { id: "u1" } }));
    run(app, fastifyLimit, async (_: unknown, reply: { code: (status: number) => void }) => (reply.code(201), "created"));
    t.after(() => app.close());
    return fetch(`${await app.listen({ port: 0, host: "127.0.0.1" })}/posts`, { method: "POST" });
  },
  hono(_, run) {
    const app = new Hono<{ Variables: { user: { id: string } } }>().use((c, next) => (c.set("user", { id: "u1" }), next()));
    run(app, honoLimit, () => new Response("created", created));
    return Promise.resolve(app.request("/posts", { method: "POST" }));
  },
};

for (const [, name, line] of readme.matchAll(/^\| `@cric-talk\/guards\/(\w+)` \| `(app\.post\(.*\))` \|$/gm)) {
  test(`${name}: the README's middleware`, async (t) => {
    const lambda = await Lambda.start(t, { answer: ok }, { answer: limited });
    const guards = lambda.guards();
    const run = Function("guards", "app", "limit", "handler", line!);
    const posts = () => middleware[name!]!(t, (app, limit, handler) => run(guards, app, limit, handler));
    assert.equal((await posts()).status, 201);
    assert.equal((await posts()).status, 429);
    assert.deepEqual(lambda.requests.map(({ event }) => event["userId"]), ["u1", "u1"]);
    delete middleware[name!];
  });
}

test("the README shows the middleware of each framework", () => assert.deepEqual(Object.keys(middleware), []));

// JSON makes {} of a Response, and API Gateway a 200 of that.
test("a Response never becomes the 200 of a Lambda function", async (t) => {
  const logged = t.mock.method(console, "error", () => {});
  const lambda = await Lambda.start(t, { answer: limited });
  const handler = handlerWith(lambda.guards(), "return tooMany(decision);");
  for (const framework of ["REST API", "HTTP API", "Function URL"]) {
    await assert.rejects(frameworks[framework]!(t, handler), (error) => error instanceof client.ConfigurationError && /return tooManyForLambda\(event, decision\)/.test(error.message));
  }
  assert.equal(logged.mock.callCount(), 3);
});

test("sendTooMany names what it got instead of a response", () => {
  const refused = { ...limited, guard: "posts-guard" } as client.Decision;
  for (const [response, kind] of [[undefined, "undefined"], [refused, "an object"], [new Response(), "an object"]] as const) {
    assert.throws(() => client.sendTooMany(response as unknown as client.NodeResponse, refused), {
      name: "ConfigurationError",
      message: `sendTooMany got ${kind}, want the response of Express or node:http, and then the decision.`,
    });
  }
});

// AppSync and frameworks that send what a handler returns as JSON would take it for a success.
test("tooManyForLambda wants the event of an HTTP request", () => {
  const refused = { ...limited, guard: "posts-guard" } as client.Decision;
  for (const event of [undefined, refused, { arguments: {}, identity: {}, info: {} }, new Request("http://localhost")]) {
    assert.throws(() => client.tooManyForLambda(event as unknown as client.LambdaEvent, refused), {
      name: "ConfigurationError",
      message: /^tooManyForLambda got no event of an HTTP request, .* In AppSync, use guarded\.$/,
    });
  }
});

// Its event has them instead of headers. A REST API sends and reads both.
test("a load balancer with headers of several values reads only these", () => {
  const refused = { ...limited, guard: "posts-guard" } as client.Decision;
  const event = { requestContext: { elb: {} }, multiValueHeaders: { host: ["app"] } };
  const { headers = {} } = client.tooManyForLambda({ ...event, headers: { host: "app" } }, refused);
  assert.equal(headers["Retry-After"], "42");
  for (const several of [event, { ...event, headers: null }]) {
    const result = client.tooManyForLambda(several, refused);
    assert.deepEqual(result.multiValueHeaders, Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]])));
    assert(!("headers" in result));
  }
});
