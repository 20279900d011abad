import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { type Activities, type GuardsError, Guards, LimitedError, OutageError, ValidationError } from "@cric-talk/guards";
import { limit } from "@cric-talk/guards/express";
import { TestGuards } from "@cric-talk/guards/testing";
import express from "express";
import { activities } from "./activities.js";

const user = { userId: "u1" };

/** What an app that is limited by these guards answers. */
async function post(guards: Guards<typeof activities>): Promise<Response> {
  const app = express();
  app.post("/posts", limit(guards, "create_post", { userId: () => "u1" }), (_, response) => void response.status(201).end());
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    return await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/posts`, { method: "POST" });
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test("everything is allowed, and the calls are remembered", async () => {
  const guards = new TestGuards({ activities });
  assert.ok(guards instanceof Guards);
  await guards.ready("create_post");
  const decision = await guards.check("create_post", { ...user, count: 3, subjects: {} });
  const { allowed, reason, granted, guard, window, remaining = 0 } = decision;
  assert.deepEqual({ allowed, reason, granted, guard, window }, { allowed: true, reason: "ok", granted: 3, guard: "posts-guard", window: 60 });
  assert.ok(remaining > 0);
  await guards.settle(decision, 1);
  const [, check, release] = guards.calls;
  const { at, requestId } = decision;
  assert.deepEqual(check, { userId: "u1", count: 3, requestId, activity: "create_post", op: "check" });
  assert.deepEqual(release, { userId: "u1", count: 2, requestId, activity: "create_post", op: "release", at });
  assert.equal(guards.calls.length, 3);
  assert.equal((await guards.check("like", { ...user, partial: true })).granted, 1);
});

test("an activity is refused until it is allowed", async () => {
  const guards = new TestGuards({ activities });
  guards.refuse("create_post", { waitTime: 42_000 });
  for (const ask of [() => guards.check("create_post", user), () => guards.status("create_post", user)]) {
    const { resetAt = 0, op, ...decision } = await ask();
    assert.ok(Math.abs(resetAt - Date.now() - 42_000) < 5000);
    assert.deepEqual(decision, {
      ...{ allowed: false, reason: "limited", userId: "u1", activity: "create_post", guard: "posts-guard", window: 60, granted: 0 },
      ...{ limit: 1, activityCount: 1, remaining: 0, waitTime: 42_000, message: "Too many requests. Please try again later." },
    });
  }
  assert.equal((await guards.check("like", user)).allowed, true);
  const save = () => assert.fail("nothing is saved");
  await assert.rejects(guards.guarded("create_post", user, save), LimitedError);
  await assert.rejects(guards.withSlot("create_post", user, save), LimitedError);
  assert.equal((await guards.reset("create_post", user)).allowed, true);

  guards.refuse("create_post", { reason: "blocked", message: "You can't do this at the moment." });
  const blocked = await guards.check("create_post", user);
  assert.deepEqual([blocked.reason, blocked.limit, blocked.message], ["blocked", undefined, "You can't do this at the moment."]);
  guards.refuse("create_post", { limit: 10, limitedBy: "room", waitTime: undefined });
  const { activityCount, remaining, limitedBy, waitTime } = await guards.check("create_post", user);
  assert.deepEqual({ activityCount, remaining, limitedBy, waitTime }, { activityCount: 10, remaining: 0, limitedBy: "room", waitTime: 1000 });

  guards.allow("create_post");
  assert.equal((await guards.check("create_post", user)).allowed, true);
});

test("a number that is too low for the request refuses, and no wait helps", async () => {
  const guards = new TestGuards({ activities });
  const low = { ...{ allowed: false, reason: "limited", userId: "u1", activity: "create_post", guard: "posts-guard", granted: 0 } };
  const message = "Too many requests. Please try again later.";
  for (const [args, by] of [
    [{ limit: 0 }, undefined],
    [{ limit: 0, partial: true }, undefined],
    [{ limit: 500, count: 1000 }, undefined],
    [{ limit: { tenant: 0, call_api: 5 } }, "tenant"],
  ] as const) {
    for (const verb of ["check", "status"] as const) {
      const { asked, op, ...decision } = await guards[verb]("create_post", { ...user, ...args });
      assert.deepEqual(decision, { ...low, message, ...(by && { limitedBy: by }) });
    }
  }
  for (const args of [{ limit: 1 }, { limit: 500, count: 1000, partial: true }, { limit: { tenant: 3 }, count: 3 }]) {
    const decision = await guards.check("create_post", { ...user, ...args });
    assert.equal(decision.allowed, true);
    assert.equal((await guards.release({ ...decision, asked: { limit: 0 } })).allowed, true);
  }
});

test("in an outage onOutage decides, and after it the guards answer at once", async () => {
  for (const onOutage of ["allow", "deny"] as const) {
    const warnings: GuardsError[] = [];
    const observed: unknown[] = [];
    const guards = new TestGuards({
      activities,
      onOutage,
      warn: (error) => warnings.push(error),
      observe: ({ reason }) => observed.push(reason),
    });
    guards.outage();
    const decision = await guards.check("create_post", user);
    assert.deepEqual([decision.allowed, decision.reason, decision.outage?.name], [onOutage === "allow", "unavailable", "OutageError"]);
    assert.equal((await guards.check("create_post", { ...user, onOutage: "deny" })).allowed, false);
    await assert.rejects(guards.status("create_post", user), OutageError);
    assert.equal(guards.calls.length, 3);
    guards.outage(false);
    assert.equal((await guards.check("create_post", user)).reason, "ok");
    assert.deepEqual(warnings.map(({ message }) => message), ["posts-guard did not answer: the test plays an outage"]);
    assert.deepEqual(observed, ["unavailable", "unavailable", "ok"]);
  }
});

test("a mistake of the app is the same mistake", async () => {
  const guards = new TestGuards({ activities });
  const misspelled = /no guard is known for the activity "create_pots". Do you mean "create_post"\?/;
  await assert.rejects(guards.check("create_pots" as "create_post", user), misspelled);
  assert.throws(() => guards.refuse("create_pots" as "create_post"), misspelled);
  assert.throws(() => guards.allow("create_pots" as "create_post"), misspelled);
  await assert.rejects(guards.check("create_post", { ...user, count: 0 }), ValidationError);
  await assert.rejects(guards.check("create_post", { ...user, subjects: { room: "r1" } }), ValidationError);
  await assert.rejects(guards.check("create_post", { ...user, signal: AbortSignal.abort() }), { name: "AbortError" });
  assert.deepEqual(guards.calls, []);
});

test("slots and guarded give back what they took", async () => {
  const guards = new TestGuards({ activities });
  assert.equal(await guards.withSlot("pin", user, (slot) => slot.allowed && !slot.lost), true);
  await assert.rejects(guards.guarded("create_post", user, () => Promise.reject(new Error("broken"))), /broken/);
  const ops = guards.calls.map(({ op, activity }) => `${op} ${activity}`);
  assert.deepEqual(ops, ["check pin", "release pin", "check create_post", "release create_post"]);
});

test("attempts are counted, given back and locked", async () => {
  const guards = new TestGuards({ activities });
  const mails: unknown[] = [];
  const signIn = (right: boolean) => guards.attempt("like", { ...user, clear: true, onLocked: ({ remaining }) => mails.push(remaining) }, () => right);
  assert.equal(await signIn(true), true);
  assert.equal(await signIn(false), false);
  const played = guards.calls.map(({ op, clear }) => [op, clear]);
  assert.deepEqual(played, [["check", undefined], ["release", true], ["check", undefined]]);
  assert.deepEqual(mails, []);

  guards.allow("like", { locked: true, crossed: 100 });
  assert.equal((await guards.status("like", user)).crossed, undefined);
  assert.equal(await signIn(true), true);
  assert.equal(await signIn(false), false);
  assert.deepEqual(mails, [0]);
  guards.refuse("like", { waitTime: 60_000, locked: true });
  await assert.rejects(signIn(true), (error) => error instanceof LimitedError && error.decision.locked === true && error.decision.waitTime === 60_000);
  guards.allow("like", { reason: "bypassed" });
  const before = guards.calls.length;
  assert.equal(await signIn(true), true);
  assert.deepEqual(guards.calls.slice(before).map(({ op }) => op), ["check"]); // it has no receipt
  guards.allow("like");
  const { locked, reason } = await guards.check("like", user);
  assert.deepEqual([locked, reason], [undefined, "ok"]);
});

test("middleware runs through it", async () => {
  const guards = new TestGuards({ activities, onOutage: "deny" });
  const created = await post(guards);
  assert.equal(created.status, 201);
  assert.equal(created.headers.get("RateLimit"), '"create_post";r=999999;t=60');
  guards.refuse("create_post", { waitTime: 42_000 });
  const refused = await post(guards);
  assert.deepEqual([refused.status, refused.headers.get("Retry-After")], [429, "42"]);
  guards.outage();
  assert.equal((await post(guards)).status, 503);
});

test("the agent of this machine does not count, and the app's does", async (t) => {
  process.env["GUARDS_AGENT"] = "no address";
  t.after(() => delete process.env["GUARDS_AGENT"]);
  const ways: string[] = [];
  const observe = (_: unknown, __: number, way: string) => ways.push(way);
  const listed = new TestGuards({ activities, observe });
  await listed.check("create_post", user);
  const unlisted = new TestGuards<Activities>({ agent: "http://127.0.0.1:2774", observe });
  unlisted.refuse("upload_photo");
  assert.equal((await unlisted.check("upload_photo", user)).allowed, false);
  assert.deepEqual(ways, ["invoke", "agent"]);
});
