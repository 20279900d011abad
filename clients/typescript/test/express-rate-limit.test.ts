import assert from "node:assert/strict";
import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { GuardsError } from "@cric-talk/guards";
import { GuardsStore } from "@cric-talk/guards/express-rate-limit";
import express from "express";
import { type Options, rateLimit } from "express-rate-limit";
import { Lambda, limited, ok, type Reply, until } from "./lambda.js";

/** Starts an app. Its path /fail fails, and everything else works. Errors of the package fail the test. */
async function start(t: TestContext, options: Partial<Options> & { onOutage?: "deny" }, ...replies: Reply[]) {
  const { onOutage, ...rest } = options;
  const lambda = await Lambda.start(t, ...replies);
  const errors: unknown[] = [];
  const logger = { error: (error: unknown) => errors.push(error), warn: (error: unknown) => errors.push(error) };
  const limiter = rateLimit({
    store: new GuardsStore(lambda.guards({ onOutage }), "create_post"),
    keyGenerator: (request) => request.get("x-user") ?? "",
    limit: 10,
    windowMs: 60_000,
    standardHeaders: "draft-6",
    legacyHeaders: false,
    logger,
    ...rest,
  });
  const app = express();
  app.use(limiter);
  app.post("/fail", (_, response) => void response.status(500).send("failed"));
  app.post("/slow", async (_, response) => {
    await sleep(200);
    response.send("created");
  });
  app.post("/", (_, response) => void response.send("created"));
  const server: Server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
    assert.deepEqual(errors, []);
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const post = async (path = "/") => {
    const response = await fetch(url + path, { method: "POST", headers: { "x-user": "u1" } });
    await response.text();
    await sleep(30); // the store would give back after the response
    return response;
  };
  const releases = () => lambda.requests.filter(({ event }) => event["op"] === "release").map(({ event }) => event["requestId"]);
  return { lambda, limiter, post, releases };
}

// The guard's clock is far from this machine's.
const counted = (requestId: string, activityCount = 3) => ({ answer: { ...ok, requestId, activityCount } });

test("an allowed request has the guard's figures", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() }); // the time stands still
  const { lambda, post } = await start(t, {}, counted("r1"));
  const response = await post();
  assert.equal(response.status, 200);
  assert.equal(response.headers.get("RateLimit-Remaining"), "7");
  assert.equal(response.headers.get("RateLimit-Reset"), "42");
  assert.equal(lambda.requests[0]?.event["userId"], "u1");
});

test("what the guard refuses is refused, whatever the app's limit is", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() });
  for (const limit of [10, 3, 1000, () => 1000]) {
    const { post } = await start(t, { limit }, { answer: limited });
    const response = await post();
    assert.equal(response.status, 429);
    assert.equal(response.headers.get("Retry-After"), "42"); // 41.001 s
    assert.equal(response.headers.get("RateLimit-Remaining"), "0");
  }
});

test("an activity without a limit passes", async (t) => {
  const { post } = await start(t, {}, { answer: { allowed: true, reason: "unlimited", userId: "u1", activity: "like", op: "check", granted: 1 } });
  assert.equal((await post()).status, 200);
});

const headers = ["draft-6", "draft-7", "draft-8"] as const;

test("in an outage with deny, the app answers 503 with Retry-After", async (t) => {
  t.mock.method(console, "error", () => {}); // Express logs errors that no handler takes
  const unavailable = { functionError: { errorType: "Unavailable", errorMessage: "no table" } };
  for (const standardHeaders of headers) {
    const { post } = await start(t, { onOutage: "deny", standardHeaders }, unavailable);
    const response = await post();
    assert.equal(response.status, 503);
    assert.equal(response.headers.get("Retry-After"), "1");
  }
});

// express-rate-limit logs ERR_ERL_HEADERS_NO_RESET if a store knows no time.
test("a request without figures passes, and nothing is logged", async (t) => {
  const unavailable = { functionError: { errorType: "Unavailable", errorMessage: "no table" } };
  const bypassed = { answer: { allowed: true, reason: "bypassed", userId: "u1", activity: "create_post", op: "check", granted: 1 } };
  const refused = { answer: { allowed: false, reason: "limited", userId: "u1", activity: "create_post", op: "check", granted: 0 } };
  for (const standardHeaders of headers) {
    for (const [reply, status] of [[unavailable, 200], [bypassed, 200], [refused, 429]] as const) {
      const { post } = await start(t, { standardHeaders, validate: true }, reply);
      assert.equal((await post()).status, status);
    }
  }
});

test("the reset is right although this machine's clock is wrong", async (t) => {
  for (const hours of [1, -1]) {
    t.mock.timers.enable({ apis: ["Date"], now: Date.now() + hours * 3_600_000 });
    const { post } = await start(t, {}, counted("r1"));
    assert.equal((await post()).headers.get("RateLimit-Reset"), "42");
    t.mock.timers.reset();
  }
});

test("skipFailedRequests gives back the failed request", async (t) => {
  const { lambda, post, releases } = await start(t, { skipFailedRequests: true }, counted("r1"), counted("r2"));
  assert.equal((await post()).status, 200);
  assert.equal((await post("/fail")).status, 500);
  await until(() => releases().length > 0);
  assert.deepEqual(releases(), ["r2"]);
  const event = { userId: "u1", activity: "create_post", op: "release", at: ok.at, requestId: "r2", count: 1 };
  assert.deepEqual(lambda.requests.at(-1)?.event, event);
});

test("a refused request was not counted, so skipFailedRequests gives nothing back", async (t) => {
  const { post, releases } = await start(t, { skipFailedRequests: true }, counted("r1"), { answer: limited });
  assert.equal((await post()).status, 200);
  assert.equal((await post()).status, 429);
  assert.deepEqual(releases(), []);
});

test("skipSuccessfulRequests gives back the successful requests, also after a refusal", async (t) => {
  const { lambda, post, releases } = await start(t, { skipSuccessfulRequests: true }, counted("r1"), { answer: limited }, { answer: ok });
  const slow = post("/slow");
  while (lambda.requests.length < 1) await sleep(5);
  assert.equal((await post()).status, 429); // while r1 is being served
  assert.equal((await slow).status, 200);
  await until(() => releases().length > 0);
  assert.deepEqual(releases(), ["r1"]);
});

// For example the first log-in fails and stays counted. The second one succeeds, but it was not counted.
test("a request without a receipt gives nothing back, and not what another request counted", async (t) => {
  const outage = { functionError: { errorType: "Unavailable", errorMessage: "no table" } };
  const bypassed = { answer: { allowed: true, reason: "bypassed", userId: "u1", activity: "create_post", op: "check", granted: 1 } };
  for (const second of [outage, bypassed]) {
    const { post, releases } = await start(t, { skipSuccessfulRequests: true }, counted("r1"), second, { answer: ok });
    assert.equal((await post("/fail")).status, 500);
    assert.equal((await post()).status, 200);
    assert.deepEqual(releases(), []);
  }
});

// Some versions of express-rate-limit don't catch what decrement throws. That would end the process.
test("a decrement that fails goes to warn and does not throw", async (t) => {
  const warnings: GuardsError[] = [];
  const lambda = await Lambda.start(t, counted("r1"), { status: 403, code: "AccessDeniedException" });
  const store = new GuardsStore(lambda.guards({ warnings }), "create_post");
  await store.increment("u1");
  await store.decrement("u1");
  await store.decrement("u1");
  assert.equal(lambda.requests.length, 2);
  assert.deepEqual(
    warnings.map((warning) => warning.name),
    ["ConfigurationError"],
  );
});

const mistakes: [options: object, problem: string][] = [
  [{ onOutge: "deny" }, 'onOutge of the limit "create_post" is not known, want one of limit, onOutage. Do you mean "onOutage"?'],
  [{ userId: () => "u1" }, 'userId of the limit "create_post" is not known, want one of limit, onOutage.'],
  [{ onOutage: "Deny" }, 'onOutage of the limit "create_post" is a string, want "allow" or "deny".'],
  [{ onOutage: null }, 'onOutage of the limit "create_post" is null, want "allow" or "deny".'],
];

for (const [options, problem] of mistakes) {
  test(`store: the option ${problem}`, async (t) => {
    const guards = (await Lambda.start(t, { answer: ok })).guards();
    assert.throws(() => new GuardsStore(guards, "create_post", options), { name: "ConfigurationError", message: `The option ${problem}` });
  });
}

test("the store remembers 100 requests of a key", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const store = new GuardsStore(lambda.guards(), "create_post");
  for (let n = 0; n < 101; n++) {
    lambda.replies = [counted(`r${n}`)];
    await store.increment("u1");
  }
  for (let n = 0; n < 105; n++) await store.decrement("u1");
  const released = lambda.requests.filter(({ event }) => event["op"] === "release").map(({ event }) => event["requestId"]);
  assert.equal(released.length, 100);
  assert.equal(released[0], "r100");
  assert.equal(released[99], "r1");
});

test("the store remembers 10,000 keys, those that were used last", async () => {
  const check = async (_: unknown, { userId }: { userId: string }) => ({ ...ok, userId, guard: "posts-guard" });
  const released: string[] = [];
  const giveBack = async ({ userId }: { userId: string }) => void released.push(userId);
  const store = new GuardsStore({ check, giveBack } as never, "create_post");
  for (let n = 0; n < 10_000; n++) await store.increment(`u${n}`);
  await store.increment("u0"); // used again
  await store.increment("new");
  for (const key of ["u0", "u1", "u2", "new"]) await store.decrement(key);
  assert.deepEqual(released, ["u0", "u2", "new"]);
});

test("a key can be read and reset", async (t) => {
  const { lambda, limiter } = await start(t, {}, counted("r1", 7));
  const info = await limiter.getKey("u1");
  assert.equal(info?.totalHits, 7);
  await limiter.resetKey("u1");
  assert.deepEqual(
    lambda.requests.map(({ event }) => event["op"]),
    ["status", "reset"],
  );
});

test("a mistake is an error, not an open door", async (t) => {
  const { post } = await start(t, {}, { status: 403, code: "AccessDeniedException" });
  t.mock.method(console, "error", () => {}); // Express logs errors that no handler takes
  assert.equal((await post()).status, 500);
});
