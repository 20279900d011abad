// Requests that wait for a socket: the app's own work and other calls use them all.
import assert from "node:assert/strict";
import { Agent } from "node:http";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { InvokeCommand, LambdaClient, type LambdaClientConfig } from "@aws-sdk/client-lambda";
import { Guards, type GuardsError, type Options } from "@cric-talk/guards";
import { activities } from "./activities.js";
import { between, duration, Lambda, limited, ok, timeoutOf, until } from "./lambda.js";

const user = { userId: "u1" };
const credentials = { accessKeyId: "AKID", secretAccessKey: "secret" };

/** An attempt of a check takes 400 ms, and the last one what is left of a second. */
const quick = { decisionTimeout: 100, timeout: 1000 };

/** Returns guards whose client has one socket, and that client. */
function oneSocket(t: TestContext, lambda: Lambda, options: Options & { warnings?: GuardsError[] } = {}, handler = {}) {
  const { warnings, ...rest } = options;
  const httpAgent = new Agent({ maxSockets: 1, keepAlive: true });
  t.after(() => httpAgent.destroy());
  const requestHandler = { httpAgent, ...handler } as NonNullable<LambdaClientConfig["requestHandler"]>;
  const client = new LambdaClient({ region: "eu-west-1", endpoint: lambda.url, credentials, requestHandler });
  const guards = new Guards({ activities, client, warn: (error) => warnings?.push(error), ...quick, ...rest });
  return { client, guards };
}

const handlers: [name: string, handler: object][] = [
  ["no timeouts", {}],
  ["a timeout for connections", { connectionTimeout: 100 }],
  ["a timeout for requests", { requestTimeout: 100, throwOnRequestTimeout: true }],
];

for (const [name, handler] of handlers) {
  for (const way of ["Invoke", "URL"]) {
    test(`by ${way}, a client with ${name} that is busy with the app's own work is no outage`, async (t) => {
      const lambda = await Lambda.start(t, "hang", { answer: ok });
      const urls: Record<string, string> = way === "URL" ? { "posts-guard": lambda.url } : {};
      const { client, guards } = oneSocket(t, lambda, { urls }, handler);
      const work = client.send(new InvokeCommand({ FunctionName: "report", Payload: new TextEncoder().encode("{}") }), { requestTimeout: 0 }).catch(() => {});
      await until(() => lambda.requests.length === 1);
      const check = guards.check("create_post", user);
      await sleep(1100); // longer than the timeout
      assert.equal(lambda.requests.length, 1);
      lambda.drop();
      assert.equal((await check).reason, "ok");
      await work;
    });
  }
}

// A request that has its socket has the time of the guards' own options.
for (const way of ["Invoke", "URL"]) {
  test(`by ${way}, the handler's timeout for requests does not end a request that has its socket`, async (t) => {
    const lambda = await Lambda.start(t, { answer: ok });
    lambda.delay = 300;
    const urls: Record<string, string> = way === "URL" ? { "posts-guard": lambda.url } : {};
    const { guards } = oneSocket(t, lambda, { urls, maxTries: 1, timeout: 15_000 }, { requestTimeout: 100, throwOnRequestTimeout: true });
    assert.equal((await guards.check("create_post", user)).reason, "ok");
    assert.equal(lambda.requests.length, 1);
  });
}

test("a request that gets its socket late has all its time", async (t) => {
  const lambda = await Lambda.start(t, "hang");
  const { guards } = oneSocket(t, lambda, { maxTries: 1 });
  const first = guards.check("create_room", user); // of another guard
  const took = await duration(async () => {
    const { outage } = await guards.check("create_post", user);
    between(timeoutOf(outage), 850, 1000);
  });
  between(took, 1800, 15_000);
  await first;
});

test("a call that waits for a socket can be cancelled, and is not sent", async (t) => {
  const lambda = await Lambda.start(t, "hang", { answer: ok });
  const { guards } = oneSocket(t, lambda, { timeout: 15_000, maxTries: 1 });
  const first = guards.check("create_post", user);
  await until(() => lambda.requests.length === 1);
  await assert.rejects(guards.check("create_post", { userId: "u2", signal: AbortSignal.timeout(20) }), { name: "AbortError" });
  lambda.drop();
  await first;
  assert.equal((await guards.check("create_room", { userId: "u3" })).reason, "ok");
  assert.deepEqual(lambda.requests.map((request) => request.event["userId"]), ["u1", "u3"]);
});

test("when a guard turns out to be gone, the calls that wait for a socket are decided at once", async (t) => {
  const lambda = await Lambda.start(t, "hang");
  const { guards } = oneSocket(t, lambda, { maxTries: 1 });
  const took = await duration(async () => {
    const decisions = await Promise.all(Array.from({ length: 20 }, () => guards.check("create_post", user)));
    const messages = decisions.map(({ outage }) => outage?.message);
    assert.deepEqual(messages.slice(1), Array(19).fill("posts-guard did not answer a moment ago"));
  });
  between(took, 800, 15_000);
  assert.equal(lambda.requests.length, 1);
});

// The first call loses an attempt, and its repeat waits behind 19 other calls.
test("a guard that is gone costs no call more than its timeout, even if repeats have to wait", async (t) => {
  const lambda = await Lambda.start(t, "hang");
  const warnings: GuardsError[] = [];
  const { guards } = oneSocket(t, lambda, { maxTries: 2, warnings });
  const decisions = await Promise.all(Array.from({ length: 20 }, () => guards.check("create_post", user)));
  assert.ok(decisions.every(({ reason }) => reason === "unavailable"));
  between(lambda.requests.length, 2, 4); // without this rule, 20 requests of 400 ms come first
  assert.match(warnings[0]?.message ?? "", /^posts-guard did not answer: timeout after 1000 ms\. /); // nothing has answered yet
});

test("a repeat that waits for a socket goes on waiting while the guard answers others", async (t) => {
  const lambda = await Lambda.start(t, "hang", { answer: limited });
  lambda.delay = 100;
  const { guards } = oneSocket(t, lambda, { maxTries: 2 });
  const decisions = await Promise.all(Array.from({ length: 20 }, () => guards.check("create_post", user)));
  assert.deepEqual(decisions.map(({ reason }) => reason), Array(20).fill("limited"));
  assert.equal(lambda.requests.length, 21);
});

test("a handler that does not use Node's sockets gets the request unchanged", async () => {
  const bodies: unknown[] = [];
  const handle = async ({ body }: { body: unknown }) => {
    bodies.push(body);
    throw Object.assign(new Error("late"), { name: "TimeoutError" });
  };
  const requestHandler = { handle, httpHandlerConfigs: () => ({}), updateHttpClientConfig: () => {} } as never;
  const client = new LambdaClient({ region: "eu-west-1", credentials, requestHandler });
  const urls = { "rooms-guard": "https://host/" };
  const guards = new Guards({ activities, client, urls, maxTries: 1, warn: () => {} });
  for (const activity of ["create_post", "create_room"] as const) {
    assert.equal((await guards.check(activity, user)).outage?.message.endsWith("did not answer: late"), true);
  }
  assert.deepEqual(bodies.map((body) => body instanceof Uint8Array), [true, true]);
});
