// Guards that are asked through an agent, which is a small server here. docs/events.md describes its answers.
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createTCP, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Activities, ConfigurationError, Guards, type GuardsError, type Options } from "@cric-talk/guards";
import { activities } from "./activities.js";
import { between, duration, Lambda, limited, noAWS, ok, until } from "./lambda.js";

const user = { userId: "u1" };

/** Options for tests that wait: a call takes 1.5 s at most. */
const quick = { decisionTimeout: 300, timeout: 1500 };

interface Got {
  method: string;
  path: string;
  headers: IncomingMessage["headers"];
  event: Record<string, unknown>;
}

/** Listens until the end of the test. Returns the address. */
async function listen(t: TestContext, server: Server, at: number | string = 0): Promise<string> {
  await once(typeof at === "string" ? server.listen(at) : server.listen(at, "127.0.0.1"), "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return typeof at === "string" ? `unix:${at}` : `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A server that answers as an agent does, unless the test says otherwise. */
class Agent {
  readonly got: Got[] = [];
  status = 200;
  headers: Record<string, string> = { "guards-agent": "1" };
  body: unknown = ok;
  hang = false;
  readonly listener: RequestListener = (request, response) => void this.#answer(request, response);

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = "";
    for await (const chunk of request) text += chunk;
    this.got.push({ method: request.method ?? "", path: request.url ?? "", headers: request.headers, event: JSON.parse(text || "{}") });
    if (!this.hang) response.writeHead(this.status, this.headers).end(JSON.stringify(this.body));
  }
}

async function start(t: TestContext, at?: number | string): Promise<{ agent: Agent; address: string; server: Server }> {
  const agent = new Agent();
  const server = createServer(agent.listener);
  return { agent, server, address: await listen(t, server, at) };
}

/** Returns guards without a list. */
const guardsAt = (agent: string, options: Options = {}) => new Guards<Activities>({ agent, warn: () => {}, timeout: 20_000, decisionTimeout: 5000, ...options });

/** Returns the address of a port where nothing listens. The system gives such a port to nobody: its own begin at 32768. */
async function nowhere(): Promise<string> {
  const port = randomInt(20_000, 32_000);
  const server = createServer().listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
  } catch {
    return nowhere(); // taken
  }
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}

test("an agent is asked without a list, a region, credentials or a signature", async (t) => {
  noAWS(t);
  const { agent, address } = await start(t);
  const guards = guardsAt(address);
  const decision = await guards.check("create_post", { userId: "u1", requestId: "r1" });
  assert.deepEqual(decision, { ...ok, guard: "" });
  await guards.check({ guard: "posts-guard", activity: "create_post" }, user);
  const [first, second] = agent.got;
  assert.ok(first && second);
  assert.equal(first.path, "/");
  assert.equal(second.path, "/posts-guard");
  assert.deepEqual(first.event, { userId: "u1", requestId: "r1", activity: "create_post", op: "check" });
  const { host, "content-length": length, ...headers } = first.headers;
  assert.equal(host, new URL(address).host);
  assert.deepEqual(headers, { "content-type": "application/json", "guards-token": "local", connection: "keep-alive" });
});

test("with a list, the guard is named, and the decision has its window; an unknown activity is not sent", async (t) => {
  const { agent, address } = await start(t);
  const guards = new Guards({ agent: address, activities });
  assert.deepEqual(await guards.check("create_post", user), { ...ok, guard: "posts-guard", window: 60 });
  assert.equal(agent.got[0]?.path, "/posts-guard");
  await assert.rejects(guards.check("create_pots" as "create_post", user), { name: "ValidationError" });
  await guards.ready();
  assert.deepEqual(agent.got.slice(1).map(({ path }) => path).sort(), ["/jobs-guard", "/pins-guard", "/posts-guard", "/rooms-guard"]);
});

test("what follows a check goes the same way", async (t) => {
  const { agent, address } = await start(t);
  const guards = guardsAt(address);
  const decision = await guards.check("create_post", user);
  agent.body = { ...ok, op: "release" };
  await guards.release(decision);
  await guards.release(JSON.parse(JSON.stringify(decision)));
  await guards.ready("create_post", "create_room");
  assert.deepEqual(agent.got.map(({ path, event }) => [path, event["op"], event["activity"]]), [
    ["/", "check", "create_post"],
    ["/", "release", "create_post"],
    ["/", "release", "create_post"],
    ["/", "status", "create_post"],
    ["/", "status", "create_room"],
  ]);
});

test("without a list, ready asks for the agent's health", async (t) => {
  const { agent, address } = await start(t);
  const guards = guardsAt(address);
  agent.body = { status: "ok" };
  await guards.ready();
  assert.deepEqual(agent.got.map(({ path, method }) => `${method} ${path}`), ["GET /health"]);
  Object.assign(agent, { status: 503, body: { detail: "GUARDS_MODE is wrong" } });
  await assert.rejects(guards.ready(), { name: "ConfigurationError", message: /GUARDS_MODE is wrong/ });
  agent.headers = {};
  await assert.rejects(guards.ready(), { name: "ConfigurationError", message: /^Another program/ });
  await assert.rejects(guardsAt(await nowhere(), quick).ready(), { name: "ConfigurationError", message: /^No agent has answered/ });
});

test("the variable names an agent, the option wins, and an agent wins over Lambda", async (t) => {
  const [one, two, lambda] = [await start(t), await start(t), await Lambda.start(t, { answer: ok })];
  noAWS(t);
  process.env["GUARDS_AGENT"] = `${one.address}/`;
  process.env["AWS_ENDPOINT_URL"] = lambda.url;
  const options = { warn: () => {}, activities, urls: { "posts-guard": lambda.url } };
  await new Guards(options).check("create_post", user);
  await new Guards({ ...options, agent: two.address }).check("create_post", user);
  assert.deepEqual([one.agent.got.length, two.agent.got.length, lambda.requests.length], [1, 1, 0]);
  process.env["GUARDS_AGENT"] = "";
  await lambda.guards(options).check("create_post", user);
  assert.equal(lambda.requests.length, 1);
});

test("an agent at the file of a socket, and one behind a path", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "guards-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const socket = await start(t, join(dir, "agent.sock"));
  assert.equal((await guardsAt(socket.address).check("create_post", user)).reason, "ok");
  assert.equal(socket.agent.got[0]?.headers.host, "localhost");
  const { agent, address } = await start(t);
  await guardsAt(`${address}/agent/`).check({ guard: "posts-guard", activity: "create_post" }, user);
  assert.equal(agent.got[0]?.path, "/agent/posts-guard");
});

const badAddresses = ["127.0.0.1:2774", "localhost:2774", "ftp://host", "unix:relative", "", "http://user@host", 7];

for (const agent of badAddresses) {
  test(`the option agent refuses ${JSON.stringify(agent)}`, () => {
    assert.throws(() => new Guards({ agent: agent as string }), {
      name: "ConfigurationError",
      message: `The option agent is ${JSON.stringify(agent)}, want an address such as http://127.0.0.1:2774 or unix:/PATH.`,
    });
  });
}

test("a wrong variable is a mistake, and names itself", (t) => {
  noAWS(t);
  process.env["GUARDS_AGENT"] = "2774";
  assert.throws(() => new Guards(), {
    message: 'The variable GUARDS_AGENT is "2774", want an address such as http://127.0.0.1:2774 or unix:/PATH.',
  });
});

test("the token goes to the agent and nowhere else, and no error shows it", async (t) => {
  noAWS(t);
  const { agent, address } = await start(t);
  await guardsAt(address, { token: "s3cret" }).check("create_post", user);
  process.env["GUARDS_AGENT_TOKEN"] = "variable";
  await guardsAt(address).check("create_post", user);
  await guardsAt(address, { token: "s3cret" }).check("create_post", user);
  assert.deepEqual(agent.got.map(({ headers }) => headers["guards-token"]), ["s3cret", "variable", "s3cret"]);
  const lambda = await Lambda.start(t, { answer: ok });
  await lambda.guards().check("create_post", user);
  await lambda.guards({ urls: { "posts-guard": lambda.url } }).check("create_post", user);
  for (const { headers } of lambda.requests) assert.equal(headers["guards-token"], undefined);
  const message = "The token of the agent is no text of printable ASCII characters without spaces.";
  for (const token of ["a\nb", "ä", 7 as never]) assert.throws(() => guardsAt(address, { token }), { name: "ConfigurationError", message });
});

test("over plain http beyond loopback, a token brings one warning", () => {
  const warned = (agent: string, token?: string) => {
    const warnings: GuardsError[] = [];
    guardsAt(agent, { ...(token && { token }), warn: (error) => warnings.push(error) });
    return warnings.map(({ message }) => message);
  };
  assert.deepEqual(warned("http://agent:2774", "s3cret"), [
    "The agent's token goes to http://agent:2774 over plain HTTP, where others can read it. Use https:.",
  ]);
  for (const agent of ["http://127.0.0.1:2774", "http://127.3.2.1:2774", "http://localhost:2774", "http://[::1]:2774", "https://agent:2774", "unix:/s"]) {
    assert.deepEqual(warned(agent, "s3cret"), [], agent);
  }
  assert.deepEqual(warned("http://agent:2774"), []);
});

test("no proxy is used, and no redirect is followed", async (t) => {
  noAWS(t);
  const [one, two] = [await start(t), await start(t)];
  for (const name of ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"]) process.env[name] = two.address;
  process.env["NODE_USE_ENV_PROXY"] = "1";
  for (const status of [301, 302, 303, 307, 308]) {
    Object.assign(one.agent, { status, headers: { "guards-agent": "1", location: `${two.address}/posts-guard` } });
    await assert.rejects(guardsAt(one.address).check("create_post", user), { name: "ConfigurationError", message: new RegExp(`HTTP ${status}`) });
  }
  assert.deepEqual([one.agent.got.length, two.agent.got.length], [5, 0]);
});

// The table "a client sees | it is", row by row.

for (const status of [200, 204, 302, 403, 404, 429, 500, 503]) {
  test(`an answer of ${status} without Guards-Agent is another program, before an agent's answer and after it`, async (t) => {
    const { agent, address } = await start(t);
    const guards = guardsAt(address);
    const wanted = {
      name: "ConfigurationError",
      message: `Another program than an agent of Guards answers at ${address} (HTTP ${status}). Correct the option agent or GUARDS_AGENT.`,
    };
    Object.assign(agent, { status, headers: {} });
    await assert.rejects(guards.check("create_post", user), wanted);
    Object.assign(agent, { status: 200, headers: { "guards-agent": "1" } });
    await guards.check("create_post", user);
    Object.assign(agent, { status, headers: {} });
    await assert.rejects(guards.check("create_post", user), wanted);
    assert.equal(agent.got.length, 3);
  });
}

const problem = (status: number, detail: string, more = {}) => ({ type: "about:blank", title: "Title", status, detail, ...more });

const answers: [status: number, body: unknown, result: string, message?: string][] = [
  [200, ok, "ok"],
  [429, { ...problem(429, "no"), ...limited }, "limited"],
  [400, problem(400, "count is 0", { errorType: "ValidationError" }), "ValidationError", "count is 0"],
  [400, problem(400, "what"), "ConfigurationError", "posts-guard could not be invoked: HTTP 400: what"],
  [503, problem(503, "no table", { errorType: "Unavailable" }), "OutageError", "posts-guard did not answer: no table"],
  [200, { hello: "world" }, "AnswerError"],
  [413, problem(413, "more than 64 KiB"), "ValidationError", "more than 64 KiB"],
];
for (const status of [403, 404, 405, 415, 500]) {
  answers.push([status, problem(status, "why it is for u1"), "ConfigurationError", `posts-guard could not be invoked: HTTP ${status}: why it is for ***`]);
}

for (const [status, body, result, message] of answers) {
  test(`an agent's ${status} ${JSON.stringify(body).slice(0, 60)} is ${result}`, async (t) => {
    const { agent, address } = await start(t);
    Object.assign(agent, { status, body });
    const guards = guardsAt(address, { maxTries: 1 });
    const asked = guards.status({ guard: "posts-guard", activity: "create_post" }, user);
    if (!result.endsWith("Error")) return assert.equal((await asked).reason, result);
    await assert.rejects(asked, { name: result, ...(message && { message }) });
    assert.equal(agent.got.length, 1);
  });
}

test("a connection that is refused is repeated until the time is over, and then a mistake", async () => {
  const address = await nowhere();
  const guards = guardsAt(address, quick);
  const message = new RegExp(`^No agent has answered at ${address}: connect ECONNREFUSED .*\\. Start guards-agent there, or correct the option agent or GUARDS_AGENT\\.$`);
  const took = await duration(() => assert.rejects(guards.check("create_post", user), { name: "ConfigurationError", message }));
  between(took, 1400, 6000);
});

test("an agent that starts a second late is waited for", async (t) => {
  const address = await nowhere();
  const check = guardsAt(address, { timeout: 15_000 }).check("create_post", { ...user, partial: true });
  await sleep(1000);
  await start(t, Number(new URL(address).port));
  assert.equal((await check).reason, "ok");
});

test("a socket's file that is not there yet is waited for", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "guards-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const path = join(dir, "agent.sock");
  const check = guardsAt(`unix:${path}`, { timeout: 15_000 }).check("create_post", user);
  await sleep(300);
  await start(t, path);
  assert.equal((await check).reason, "ok");
});

test("after a refused connection, the calls of the next second fail at once with the same error, and so do those that wait", async (t) => {
  const address = await nowhere();
  const guards = guardsAt(address, { ...quick, connections: 1 });
  const calls = Array.from({ length: 20 }, () => guards.check("create_post", user).catch((error: Error) => error));
  const errors = await Promise.all(calls);
  const took = await duration(async () => errors.push(await guards.check("create_post", user).catch((error: Error) => error)));
  between(took, 0, 500);
  for (const error of errors) assert.ok(error instanceof ConfigurationError && error.message === (errors[0] as Error).message);
  await sleep(1000);
  await start(t, Number(new URL(address).port));
  assert.equal((await guards.check("create_post", user)).reason, "ok");
  assert.equal((await guards.check("create_post", user)).reason, "ok");
});

/** Starts a TCP server. Returns its address. */
async function tcp(t: TestContext, connected: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createTCP((socket) => {
    sockets.add(socket.on("error", () => {}));
    connected(socket);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const absent: [what: string, connected: (socket: Socket) => void, most: number][] = [
  ["broken", (socket) => socket.once("data", () => socket.destroy()), 1000],
  ["silent", () => {}, 6000],
  ["SSH", (socket) => socket.write("SSH-2.0-OpenSSH_9.6\r\n"), 1000],
  ["Redis", (socket) => socket.once("data", () => socket.write("-ERR unknown command 'POST'\r\n")), 1000],
];

for (const [what, connected, most] of absent) {
  test(`before an agent has answered, a connection that is ${what} is a mistake, and afterwards an outage`, async (t) => {
    let agent = false;
    const answer = JSON.stringify(ok);
    const address = await tcp(t, (socket) => {
      if (!agent) return connected(socket);
      socket.once("data", () => socket.end(`HTTP/1.1 200 OK\r\nGuards-Agent: 1\r\nConnection: close\r\nContent-Length: ${answer.length}\r\n\r\n${answer}`));
    });
    const check = async () => {
      const decision = await guardsAt(address, quick).check("create_post", user);
      return decision.outage?.name ?? decision.reason;
    };
    const took = await duration(() => assert.rejects(check(), { name: "ConfigurationError" }));
    between(took, 0, most);
    agent = true;
    assert.equal(await check(), "ok");
    agent = false;
    assert.equal(await check(), "OutageError");
  });
}

test("after an answer, a refused connection is an outage", async (t) => {
  const { address, server } = await start(t);
  const guards = guardsAt(address, quick);
  await guards.check("create_post", user);
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  const { allowed, outage } = await guards.check("create_post", user);
  assert.equal(allowed, true);
  assert.match(outage?.message ?? "", /^guards-agent did not answer: .*ECONNREFUSED/);
  assert.equal((await guards.check("create_room", user)).outage?.message, "guards-agent did not answer a moment ago");
});

test("an agent that restarts loses no call, and counts it once", async (t) => {
  const { address, agent, server } = await start(t);
  const guards = guardsAt(address);
  await guards.check("create_post", user);
  agent.hang = true;
  const check = guards.check("create_post", user);
  await until(() => agent.got.length === 2);
  server.closeAllConnections();
  agent.hang = false;
  assert.equal((await check).reason, "ok");
  assert.equal(agent.got.length, 3);
  assert.equal(agent.got[1]?.event["requestId"], agent.got[2]?.event["requestId"]);
});

test("X-Amzn-Trace-Id is sent in Lambda", async (t) => {
  noAWS(t);
  Object.assign(process.env, { AWS_LAMBDA_FUNCTION_NAME: "app", _X_AMZN_TRACE_ID: "Root=1" });
  const { agent, address } = await start(t);
  await guardsAt(address).check("create_post", user);
  assert.equal(agent.got[0]?.headers["x-amzn-trace-id"], "Root=1");
});
