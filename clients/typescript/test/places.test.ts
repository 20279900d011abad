// Calls that wait for one of the client's connections, and connections that are dead.
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { GuardsError } from "@cric-talk/guards";
import { between, duration, Lambda, limited, ok, stopClock, timeoutOf, until } from "./lambda.js";

const user = { userId: "u1" };

/** One connection. An attempt of a check takes 400 ms, and the last one what is left of a second. */
const quick = { connections: 1, decisionTimeout: 100, timeout: 1000 };

test("a call that waits for a connection has all its time afterwards", async (t) => {
  const lambda = await Lambda.start(t, "hang");
  const guards = lambda.guards({ ...quick, maxTries: 1 });
  const first = guards.check("create_room", user); // of another guard
  const took = await duration(async () => {
    const { outage } = await guards.check("create_post", user);
    between(timeoutOf(outage), 850, 1000);
  });
  between(took, 1800, 15_000);
  await first;
});

test("a call that waits for a connection is no outage, however long it waits", async (t) => {
  const lambda = await Lambda.start(t, "hang", { answer: ok });
  const guards = lambda.guards({ ...quick, timeout: 3000, decisionTimeout: 2700, maxTries: 1 });
  const first = guards.check("create_room", user);
  await until(() => lambda.requests.length === 1);
  const quicker = lambda.guards({ ...quick });
  const check = guards.check("create_post", user);
  await sleep(1100);
  assert.equal(lambda.requests.length, 1);
  assert.equal((await quicker.check("create_post", user)).reason, "ok", "another object has its own connections");
  lambda.drop();
  assert.equal((await check).reason, "ok");
  await first;
});

test("a call that waits for a connection can be cancelled, and is not sent", async (t) => {
  const lambda = await Lambda.start(t, "hang", { answer: ok });
  const guards = lambda.guards({ ...quick, timeout: 15_000, maxTries: 1 });
  const first = guards.check("create_post", user);
  await until(() => lambda.requests.length === 1);
  const waiting = guards.check("create_room", { userId: "u3" });
  await assert.rejects(guards.check("create_post", { userId: "u2", signal: AbortSignal.timeout(20) }), { name: "AbortError" });
  lambda.drop();
  await first;
  assert.equal((await waiting).reason, "ok");
  assert.deepEqual(lambda.requests.map((request) => request.event["userId"]), ["u1", "u3"]);
});

test("calls get a connection in their order, and each of them is used again", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const guards = lambda.guards({ ...quick, timeout: 15_000 });
  const users = Array.from({ length: 20 }, (_, n) => `u${n}`);
  await Promise.all(users.map((userId) => guards.check("create_post", { userId })));
  assert.deepEqual(lambda.requests.map((request) => request.event["userId"]), users);
  assert.equal(new Set(lambda.requests.map((request) => request.port)).size, 1);
});

test("when a guard turns out to be gone, the calls that wait for a connection are decided at once", async (t) => {
  const lambda = await Lambda.start(t, "hang");
  const warnings: GuardsError[] = [];
  const guards = lambda.guards({ ...quick, maxTries: 2, warnings });
  const took = await duration(async () => {
    const decisions = await Promise.all(Array.from({ length: 20 }, () => guards.check("create_post", user)));
    const messages = decisions.map(({ outage }) => outage?.message);
    assert.deepEqual(messages.slice(1), Array(19).fill("posts-guard did not answer a moment ago"));
  });
  between(took, 800, 15_000);
  between(lambda.requests.length, 1, 2); // of the first call: a busy machine can abort an attempt before it is sent
  assert.match(warnings[0]?.message ?? "", /^posts-guard did not answer: timeout after \d+ ms\. Lambda has not answered/);
});

test("a repeat does not wait behind other calls, and these go on waiting if it is answered", async (t) => {
  const lambda = await Lambda.start(t, "hang", { answer: limited });
  const guards = lambda.guards({ ...quick, timeout: 15_000, maxTries: 2 });
  const users = Array.from({ length: 20 }, (_, n) => `u${n}`);
  const decisions = await Promise.all(users.map((userId) => guards.check("create_post", { userId })));
  assert.deepEqual(decisions.map(({ reason }) => reason), Array(20).fill("limited"));
  assert.deepEqual(lambda.requests.map((request) => request.event["userId"]), ["u0", ...users]);
});

// For example after the app stood still for ten minutes, and something between it and Lambda forgot its connections.
test("if established connections have gone silent, the repeat takes a new one and is signed anew", async (t) => {
  const requests: { socket: number; text: string }[] = [];
  const sockets: Socket[] = [];
  let silent = 0; // all sockets before this one are silent
  const server = createServer((socket) => {
    const number = sockets.push(socket) - 1;
    socket.on("error", () => {});
    socket.on("data", (data) => {
      requests.push({ socket: number, text: data.toString() });
      const answer = JSON.stringify(ok);
      if (number >= silent) socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${answer.length}\r\n\r\n${answer}`);
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const lambda = await Lambda.start(t, { answer: ok });
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const guards = lambda.guards({ endpoint, decisionTimeout: 1000, timeout: 15_000 });
  await Promise.all(Array.from({ length: 3 }, () => guards.check("create_post", user)));
  silent = sockets.length;
  requests.length = 0;
  assert.equal((await guards.check("create_post", user)).reason, "ok");
  const [lost, repeated] = requests;
  assert.ok(lost && repeated && requests.length === 2);
  assert.ok(lost.socket < silent && repeated.socket === silent);
  const [id, date] = [/"requestId":"([^"]+)"/, /x-amz-date: (\S+)/i].map((part) => [lost, repeated].map(({ text }) => part.exec(text)?.[1]));
  assert.equal(id![0], id![1]);
  assert.notEqual(date![0], date![1]);
});

// A NAT gateway has forgotten it, and a function that was frozen has not noticed its end. A check with partial has no repeat.
test("a connection that was idle for more than 5 minutes is not used again", async (t) => {
  const clock = stopClock(t);
  const lambda = await Lambda.start(t, { answer: ok });
  const guards = lambda.guards();
  const known = new Set<number | undefined>();
  const opened: number[] = [];
  for (const [ms, calls] of [[0, 2], [200_000, 1], [100_000, 2], [200_000, 1], [100_001, 2], [300_001, 1]] as const) {
    clock.freeze(ms);
    const before = known.size;
    await Promise.all(Array.from({ length: calls }, () => guards.check("create_post", { ...user, partial: true })));
    for (const { port } of lambda.requests) known.add(port);
    opened.push(known.size - before);
  }
  assert.deepEqual(opened, [2, 0, 0, 0, 1, 1]);
});
