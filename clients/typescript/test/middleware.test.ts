// The same requests to real servers of the three frameworks.
import assert from "node:assert/strict";
import type { Server } from "node:http";
import { test, type TestContext } from "node:test";
import { serve } from "@hono/node-server";
import { limit as expressLimit } from "@cric-talk/guards/express";
import { limit as fastifyLimit } from "@cric-talk/guards/fastify";
import { limit as honoLimit } from "@cric-talk/guards/hono";
import type { Decision, Guards } from "@cric-talk/guards";
import express from "express";
import fastify, { type FastifyReply } from "fastify";
import { Hono } from "hono";
import type { activities } from "./activities.js";
import { address, Lambda, limited, ok, type Reply } from "./lambda.js";

/** A header of the refusals that an app writes itself. */
const own = { "RateLimit-Policy": "the app's" };

/** An app with the routes /posts, /premium (a tier and other arguments), /custom (its own refusal) and /broken (fails). */
type App = (t: TestContext, guards: Guards<typeof activities>) => Promise<string>;

const apps: Record<string, App> = {
  async Express(t, guards) {
    const app = express();
    const userId = (request: express.Request) => request.get("x-user");
    const skip = (request: express.Request) => request.get("x-skip") === "yes";
    const done: express.RequestHandler = (_, response) => void response.status(201).send("created");
    app.post("/posts", expressLimit(guards, "create_post", { userId, skip }), done);
    const more = { count: () => 2, tier: async () => "premium", roles: () => ["admin"], requestId: () => "r-9" };
    app.post("/premium", expressLimit(guards, "create_post", { userId, ...more }), done);
    const refused = (d: Decision, _: unknown, response: express.Response) => void response.status(400).set(own).send(d.reason);
    app.post("/custom", expressLimit(guards, "create_post", { userId, refused }), done);
    app.post("/broken", expressLimit(guards, "create_post", { userId }), () => {
      throw new Error("broken");
    });
    app.use(((error, _, response, __) => void response.status(500).send(String(error))) as express.ErrorRequestHandler);
    return address(t, app.listen(0, "127.0.0.1"));
  },

  async Fastify(t, guards) {
    const app = fastify();
    const userId = (request: { headers: Record<string, unknown> }) => request.headers["x-user"] as string | undefined;
    const skip = (request: { headers: Record<string, unknown> }) => request.headers["x-skip"] === "yes";
    const done = async (_: unknown, reply: { code: (status: number) => unknown }) => {
      reply.code(201);
      return "created";
    };
    app.post("/posts", { preHandler: fastifyLimit(guards, "create_post", { userId, skip }) }, done);
    const more = { count: () => 2, tier: async () => "premium", roles: () => ["admin"], requestId: () => "r-9" };
    app.post("/premium", { preHandler: fastifyLimit(guards, "create_post", { userId, ...more }) }, done);
    const refused = (d: Decision, _: unknown, reply: FastifyReply) => reply.code(400).headers(own).send(d.reason);
    app.post("/custom", { preHandler: fastifyLimit(guards, "create_post", { userId, refused }) }, done);
    app.post("/broken", { preHandler: fastifyLimit(guards, "create_post", { userId }) }, async () => {
      throw new Error("broken");
    });
    app.setErrorHandler((error, _, reply) => reply.code(500).send(String(error)));
    t.after(() => app.close());
    return app.listen({ port: 0, host: "127.0.0.1" });
  },

  async Hono(t, guards) {
    const app = new Hono();
    const userId = (c: { req: { header: (name: string) => string | undefined } }) => c.req.header("x-user");
    const skip = (c: { req: { header: (name: string) => string | undefined } }) => c.req.header("x-skip") === "yes";
    app.post("/posts", honoLimit(guards, "create_post", { userId, skip }), () => new Response("created", { status: 201 }));
    const more = { count: () => 2, tier: async () => "premium", roles: () => ["admin"], requestId: () => "r-9" };
    app.post("/premium", honoLimit(guards, "create_post", { userId, ...more }), (c) => c.text("created", 201));
    const refused = (d: Decision) => new Response(d.reason, { status: 400, headers: own });
    app.post("/custom", honoLimit(guards, "create_post", { userId, refused }), (c) => c.text("created", 201));
    app.post("/broken", honoLimit(guards, "create_post", { userId }), () => {
      throw new Error("broken");
    });
    app.onError((error, c) => c.text(String(error), 500));
    return address(t, serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }) as Server);
  },
};

for (const [name, app] of Object.entries(apps)) {
  const start = async (t: TestContext, ...replies: Reply[]) => {
    const lambda = await Lambda.start(t, ...replies);
    const url = await app(t, lambda.guards({ onOutage: "deny" }));
    const post = (path: string, headers: Record<string, string> = { "x-user": "u1" }) => fetch(url + path, { method: "POST", headers });
    return { lambda, post };
  };

  test(`${name}: an allowed request gets headers and reaches the handler`, async (t) => {
    const { lambda, post } = await start(t, { answer: ok });
    const response = await post("/posts");
    assert.equal(response.status, 201);
    assert.equal(await response.text(), "created");
    assert.equal(response.headers.get("RateLimit"), '"create_post";r=7;t=42');
    assert.equal(response.headers.get("RateLimit-Policy"), '"create_post";q=10;w=60');
    assert.equal(lambda.requests[0]?.event["userId"], "u1");
  });

  test(`${name}: a refused request gets a problem`, async (t) => {
    const { post } = await start(t, { answer: limited });
    const response = await post("/posts");
    assert.equal(response.status, 429);
    assert.equal(response.headers.get("Retry-After"), "42");
    assert.match(response.headers.get("Content-Type") ?? "", /^application\/problem\+json$/);
    assert.equal(response.headers.get("RateLimit"), '"create_post";r=0;t=0');
    assert.equal(response.headers.get("RateLimit-Policy"), '"create_post";q=10;w=60');
    assert.deepEqual(await response.json(), {
      type: "https://iana.org/assignments/http-problem-types#quota-exceeded",
      title: "Too Many Requests",
      status: 429,
      "violated-policies": ["create_post"],
      ...limited,
    });
  });

  test(`${name}: an outage with onOutage: deny is a 503`, async (t) => {
    const { post } = await start(t, { status: 500 });
    const response = await post("/posts");
    assert.equal(response.status, 503);
    assert.equal(response.headers.get("Retry-After"), "1");
    assert.equal(response.headers.get("Content-Type"), "application/problem+json");
    assert.equal(((await response.json()) as { title: string }).title, "Unavailable");
  });

  test(`${name}: a missing user is an error, and opens no door`, async (t) => {
    const { lambda, post } = await start(t, { answer: ok });
    const headers: Record<string, string>[] = [{}, { "x-user": "" }];
    for (const header of headers) {
      const response = await post("/posts", header);
      assert.equal(response.status, 500);
      assert.match(await response.text(), /^ConfigurationError: The function userId of the limit "create_post" returned no user\./);
    }
    assert.equal(lambda.requests.length, 0);
  });

  test(`${name}: the app can skip requests`, async (t) => {
    const { lambda, post } = await start(t, { answer: limited });
    const response = await post("/posts", { "x-skip": "yes" });
    assert.equal(response.status, 201);
    assert.equal(response.headers.get("RateLimit"), null);
    assert.equal(lambda.requests.length, 0);
  });

  test(`${name}: a mistake goes to the app's error handler`, async (t) => {
    const { post } = await start(t, { status: 403, code: "AccessDeniedException" });
    const response = await post("/posts");
    assert.equal(response.status, 500);
    assert.match(await response.text(), /^ConfigurationError: The app may not invoke posts-guard/);
  });

  test(`${name}: count, tier, roles and requestId come from the app's functions`, async (t) => {
    const { lambda, post } = await start(t, { answer: ok });
    const response = await post("/premium");
    assert.equal(response.status, 201);
    const args = { userId: "u1", count: 2, tier: "premium", roles: ["admin"], requestId: "r-9" };
    assert.deepEqual(lambda.requests[0]?.event, { ...args, activity: "create_post", op: "check" });
    assert.equal(response.headers.get("RateLimit-Policy"), null);
  });

  // A tier can have another window than the activity.
  test(`${name}: a refused request with a tier has no RateLimit-Policy`, async (t) => {
    const { post } = await start(t, { answer: limited });
    const response = await post("/premium");
    assert.equal(response.status, 429);
    assert.equal(response.headers.get("RateLimit"), '"create_post";r=0;t=0');
    assert.equal(response.headers.get("RateLimit-Policy"), null);
  });

  test(`${name}: the app can answer refused requests itself`, async (t) => {
    const { post } = await start(t, { answer: limited });
    const response = await post("/custom");
    assert.equal(response.status, 400);
    assert.equal(await response.text(), "limited");
    assert.equal(response.headers.get("RateLimit"), '"create_post";r=0;t=0');
    assert.equal(response.headers.get("RateLimit-Policy"), "the app's");
  });

  test(`${name}: a handler that fails gives nothing back`, async (t) => {
    const { lambda, post } = await start(t, { answer: ok });
    const response = await post("/broken");
    assert.equal(response.status, 500);
    assert.match(await response.text(), /broken/);
    assert.equal(lambda.requests.length, 1);
  });
}
