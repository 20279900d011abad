import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Decision, GuardsError, LimitedError, OutageError, type Slot, ValidationError } from "@cric-talk/guards";
import { between, forever, Lambda, limited, ok, type Reply, until } from "./lambda.js";

const user = { userId: "u1" };
const unavailable: Reply = { functionError: { errorType: "Unavailable", errorMessage: "no table" } };

/** An answer about a slot that lasts so many milliseconds. The guard's clock is far from this machine's. */
function held(window: number, at: number = ok.at): Reply {
  return { answer: { ...ok, at, heldUntil: at + window } };
}

function ops(lambda: Lambda): unknown[] {
  return lambda.requests.map((request) => request.event["op"]);
}

/** Takes a slot, and returns it with the milliseconds until it is lost. */
async function lose(slot: Slot): Promise<number> {
  const start = performance.now();
  await once(slot.signal, "abort", { signal: AbortSignal.timeout(forever) });
  assert.ok(slot.lost);
  return performance.now() - start;
}

test("a slot is renewed and released", async (t) => {
  const lambda = await Lambda.start(t, held(6000, 1));
  const slot = await lambda.guards().slot("create_post", user);
  assert.ok(slot.allowed);
  await sleep(500);
  assert.equal(slot.lost, false);
  await slot.release();
  await slot.release();
  assert.deepEqual(ops(lambda), ["check", "release"]);

  lambda.requests.length = 0;
  lambda.replies = [held(6000, 1), held(6000, 2), held(6000, 3)];
  {
    await using kept = await lambda.guards().slot("create_post", { ...user, count: 1 });
    await sleep(4500);
    assert.equal(kept.lost, false);
  }
  assert.deepEqual(ops(lambda), ["check", "renew", "renew", "release"]);
  assert.deepEqual(
    lambda.requests.slice(1).map(({ event }) => [event["at"], event["requestId"], event["count"]]),
    [
      [1, "r1", 1],
      [2, "r1", 1],
      [3, "r1", 1],
    ],
  );
});

test("a slot is lost 2 s before its end if the guard is gone", async (t) => {
  const warnings: GuardsError[] = [];
  const lambda = await Lambda.start(t, held(4000), "reset");
  const slot = await lambda.guards({ warnings }).slot("create_post", user);
  between(await lose(slot), 1000, 3500); // 2 s less the time of the check
  assert.ok(ops(lambda).filter((op) => op === "renew").length > 1, "it is repeated at once");
  assert.ok(warnings[0] instanceof OutageError);
  assert.throws(() => slot.signal.throwIfAborted(), GuardsError);
  lambda.replies = [{ answer: ok }];
  await slot.release();
  assert.equal(ops(lambda).at(-1), "release");
});

test("a renewal that fails is no storm", async (t) => {
  const lambda = await Lambda.start(t, held(6000), unavailable);
  const slot = await lambda.guards().slot("create_post", user);
  await lose(slot);
  between(ops(lambda).filter((op) => op === "renew").length, 2, 4); // from 2 s to 4 s
});

/** Returns a function that sets for how long the process was frozen: Date.now went on, and performance.now stood still. */
function freezer(t: TestContext): (ms: number) => void {
  const now = Date.now;
  let frozen = 0;
  t.mock.method(Date, "now", () => now() + frozen);
  return (ms) => void (frozen = ms);
}

test("a slot that is over after a freeze is lost at once, and its signal aborts soon", async (t) => {
  const freeze = freezer(t);
  const lambda = await Lambda.start(t, held(600_000));
  const guards = lambda.guards();
  const [looked, waited] = [await guards.slot("create_post", user), await guards.slot("create_post", user)];
  assert.equal(looked.lost, false);
  freeze(600_000);
  assert.equal(looked.lost, true);
  await once(waited.signal, "abort", { signal: AbortSignal.timeout(forever) });
  freeze(0);
  assert.ok(looked.lost && waited.lost, "also if the clock was wrong and is set back");
  await looked.release();
  assert.deepEqual(ops(lambda), ["check", "check", "release"]);
});

test("a slot that is due after a freeze is renewed soon", async (t) => {
  const freeze = freezer(t);
  const lambda = await Lambda.start(t, held(600_000));
  const slot = await lambda.guards().slot("create_post", user);
  freeze(250_000);
  await until(() => lambda.requests.length > 1);
  await sleep(1200);
  assert.equal(slot.lost, false);
  await slot.release();
  assert.deepEqual(ops(lambda), ["check", "renew", "release"]);
});

test("a clock that is set back keeps no slot", async (t) => {
  const freeze = freezer(t);
  const lambda = await Lambda.start(t, held(4000), "reset");
  const slot = await lambda.guards().slot("create_post", user);
  freeze(-3_600_000);
  between(await lose(slot), 1000, 3500);
});

test("a slot that was counted for some subjects, and decided from memory for others, is released", async (t) => {
  const lambda = await Lambda.start(t, { answer: { ...ok, reason: "unavailable", heldUntil: ok.at + 60_000 } });
  await lambda.guards().withSlot("create_post", user, () => {});
  assert.deepEqual(ops(lambda), ["check", "release"]);
});

test("a slow answer makes the end earlier", async (t) => {
  const lambda = await Lambda.start(t, held(4000), "reset");
  lambda.delay = 1000;
  const slot = await lambda.guards().slot("create_post", user);
  between(await lose(slot), 200, 1900); // a second
});

test("a repeat of a renewal gets the answer to the first one", async (t) => {
  const lambda = await Lambda.start(t, held(6000), unavailable, unavailable, held(6000), "reset");
  const slot = await lambda.guards().slot("create_post", user);
  const start = performance.now();
  await lose(slot);
  between(performance.now() - start, 5000, 6700); // 4 s after the first renewal, and not after the third
});

test("an expired slot is lost and not released", async (t) => {
  const lambda = await Lambda.start(t, held(4500), { answer: { ...ok, allowed: false, reason: "expired", granted: 0, at: undefined } });
  const slot = await lambda.guards().slot("create_post", user);
  between(await lose(slot), 800, 2300); // 1.5 s, and not 2.5 s
  await slot.release();
  assert.deepEqual(ops(lambda), ["check", "renew"]);
});

const unlimited: Reply = { answer: { allowed: true, reason: "unlimited", userId: "u1", activity: "create_post", op: "renew" } };

/** An answer without a receipt to a renewal, while a live mode is off, in shadow mode, or by an admin's grant. */
const unrenewed: [name: string, reply: Reply][] = [
  ["unlimited", unlimited],
  ["shadow", { answer: { ...ok, reason: "shadow", granted: 0, at: undefined } }],
  ["without at", { answer: { ...ok, at: undefined, heldUntil: ok.at + 6000 } }],
];

test("a renewal that is answered without a receipt keeps the last receipt", async (t) => {
  const keeps = async ([name, reply]: [string, Reply]) => {
    const lambda = await Lambda.start(t, held(9000, 1), reply, held(9000, 2));
    const slot = await lambda.guards().slot("create_post", user);
    await until(() => ops(lambda).length >= 3); // after 3 s, and again after 4.3 s
    await sleep(3500); // the slot of the check is over after 7 s
    assert.equal(slot.lost, false, name);
    await slot.release();
    const renewals = ops(lambda).slice(3, -1).map((op) => [op, 2]); // of a busy machine
    assert.deepEqual(
      lambda.requests.slice(1).map(({ event }) => [event["op"], event["at"]]),
      [["renew", 1], ["renew", 1], ...renewals, ["release", 2]],
      name,
    );
  };
  await Promise.all(unrenewed.map(keeps));
});

test("a renewal after one without a receipt counts from when it was sent", async (t) => {
  const lambda = await Lambda.start(t, held(6000), unlimited, held(3500), "reset");
  const slot = await lambda.guards().slot("create_post", user);
  between(await lose(slot), 4000, forever); // 1.5 s after the second renewal, which is sent after 3 s
});

test("a slot that is not renewed while nothing is limited is lost at its end", async (t) => {
  const lambda = await Lambda.start(t, held(6000, 1), unlimited);
  const slot = await lambda.guards().slot("create_post", user);
  between(await lose(slot), 3000, forever); // 4 s
  between(ops(lambda).length, 2, 4); // no storm of renewals
  await slot.release(); // frees what it can
  assert.deepEqual([lambda.requests.at(-1)?.event["op"], lambda.requests.at(-1)?.event["at"]], ["release", 1]);
});

test("a slot of which a renewal had no receipt is lost if it is gone afterwards", async (t) => {
  const expired = { answer: { ...ok, allowed: false, reason: "expired", granted: 0, at: undefined } };
  const lambda = await Lambda.start(t, held(9000), unlimited, expired);
  const slot = await lambda.guards().slot("create_post", user);
  await lose(slot);
  await slot.release();
  assert.deepEqual(ops(lambda), ["check", "renew", "renew"]); // an expired slot is not released
});

for (const failures of [1, 2]) {
  test(`a release that fails is tried once more: ${failures}`, async (t) => {
    const warnings: GuardsError[] = [];
    const replies: Reply[] = Array(3 * failures).fill({ status: 500 }); // a call has three attempts
    const lambda = await Lambda.start(t, held(60_000), ...replies, { answer: ok });
    await assert.rejects(
      lambda.guards({ warnings }).withSlot("create_post", user, () => Promise.reject(new Error("no disk"))),
      /^Error: no disk$/,
    );
    assert.deepEqual(ops(lambda), ["check", ...Array(failures === 1 ? 4 : 6).fill("release")]);
    assert.equal(warnings.length, failures - 1);
  });
}

const without: [name: string, reply: Reply][] = [
  ["outage", unavailable],
  ...["unlimited", "bypassed", "duplicate", "shadow"].map((reason): [string, Reply] => [
    reason,
    { answer: { ...ok, reason, at: undefined, requestId: undefined } },
  ]),
];

for (const [name, reply] of without) {
  test(`a slot without a receipt holds nothing: ${name}`, async (t) => {
    const lambda = await Lambda.start(t, reply);
    const guards = lambda.guards();
    const slot = await guards.slot("create_post", user);
    assert.ok(slot.allowed && !slot.lost);
    await guards.settle(slot.decision, 0);
    await slot.release();
    assert.deepEqual(ops(lambda), ["check"]);
  });
}

test("a slot is refused as a check is", async (t) => {
  const lambda = await Lambda.start(t, { answer: limited });
  const guards = lambda.guards({ prefix: "dev-" });
  const slot = await guards.slot("create_post", user);
  assert.equal(slot.allowed, false);
  assert.equal(slot.decision.message, limited.message);
  const refused = (error: unknown) => error instanceof LimitedError && error.guard === "dev-posts-guard";
  await assert.rejects(guards.slot("create_post", { ...user, orThrow: true }), refused);
  await assert.rejects(guards.withSlot("create_post", user, () => assert.fail("it runs")), refused);
  assert.deepEqual(ops(lambda), ["check", "check", "check"]);
});

test("withSlot returns what its function returns", async (t) => {
  const lambda = await Lambda.start(t, held(60_000));
  assert.equal(await lambda.guards().withSlot("create_post", user, (slot) => `${slot.allowed} ${slot.lost}`), "true false");
  assert.deepEqual(ops(lambda), ["check", "release"]);
  // @ts-expect-error A function is missing.
  await assert.rejects(lambda.guards().withSlot("create_post", user), ValidationError);
});

test("only a log has slots", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  await assert.rejects(lambda.guards().slot("create_post", user), (error) => {
    assert.ok(error instanceof ValidationError);
    assert.equal(error.message, "the limit of create_post is not a log, so it has no slots");
    return true;
  });
  assert.deepEqual(ops(lambda), ["check", "release"]);
});

test("a window that is longer than any timer", async (t) => {
  const lambda = await Lambda.start(t, held(90 * 86_400_000));
  const slot = await lambda.guards().slot("create_post", user);
  await sleep(100);
  assert.equal(slot.lost, false);
  await slot.release();
  assert.deepEqual(ops(lambda), ["check", "release"]);
});

test("an open slot keeps no process alive", async (t: TestContext) => {
  const lambda = await Lambda.start(t, held(3_600_000));
  const program = `
    import { Guards } from "@cric-talk/guards";
    await new Guards().slot({ guard: "posts-guard", activity: "create_post" }, { userId: "u1" });`;
  const env = { ...process.env, AWS_ENDPOINT_URL_LAMBDA: lambda.url, AWS_REGION: "eu-west-1", AWS_ACCESS_KEY_ID: "x", AWS_SECRET_ACCESS_KEY: "x" };
  const child = spawn(process.execPath, ["--input-type=module", "--eval", program], { env, stdio: "inherit", timeout: 30_000 });
  assert.deepEqual(await once(child, "exit"), [0, null]);
  assert.deepEqual(ops(lambda), ["check"]);
});

for (const used of [undefined, null, NaN, Infinity, -5, 1.5, "3", 3n, {}, Promise.resolve(3)]) {
  test(`settle for ${typeof used} ${String(used)} is a mistake and gives nothing back`, async (t) => {
    const lambda = await Lambda.start(t, { answer: { ...ok, granted: 4000 } });
    const guards = lambda.guards();
    const reserved = await guards.check("create_post", { ...user, count: 4000 });
    await assert.rejects(guards.settle(reserved, used as never), { name: "ValidationError", message: /^used is .+, want a whole number of at least 0$/ });
    assert.deepEqual(ops(lambda), ["check"]);
  });
}

test("settle wants a decision", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const guards = lambda.guards();
  for (const what of [undefined, null, "create_post", {}, Promise.resolve(ok)]) {
    await assert.rejects(guards.settle(what as never, 0), { name: "ValidationError", message: /^the decision is .+, want that of a check$/ });
  }
  assert.deepEqual(ops(lambda), []);
});

test("the decision of a slot can't be settled, so the slot stays", async (t) => {
  const lambda = await Lambda.start(t, { answer: { ...ok, granted: 3, heldUntil: ok.at + 60_000 } });
  const guards = lambda.guards();
  const slot = await guards.slot("create_post", { ...user, count: 3 });
  for (const used of [0, 1, 3]) await assert.rejects(guards.settle(slot.decision, used), /ValidationError: the decision is that of a slot/);
  assert.deepEqual(ops(lambda), ["check"]);
  await slot.release();
  assert.equal(lambda.requests.at(-1)?.event["count"], 3);
});

for (const [used, left] of [[1400, 2600], [0, 4000], [4000, undefined], [5000, undefined]] as const) {
  test(`settle for ${used} of 4000`, async (t) => {
    const lambda = await Lambda.start(t, { answer: { ...ok, granted: 4000 } });
    const guards = lambda.guards();
    const reserved = await guards.check("create_post", { ...user, count: 4000 });
    await guards.settle(reserved, used);
    await guards.settle(reserved, used);
    const events = lambda.requests.slice(1).map((request) => request.event);
    const event = { userId: "u1", activity: "create_post", op: "release", at: ok.at, requestId: "r1", count: left };
    assert.deepEqual(events, left === undefined ? [] : [event]);
  });
}

test("settle can be called again after an outage, and for a stored decision", async (t) => {
  const lambda = await Lambda.start(t, { answer: { ...ok, granted: 4 } }, unavailable, { answer: ok });
  const guards = lambda.guards();
  const reserved = JSON.parse(JSON.stringify(await guards.check("create_post", { ...user, count: 4 }))) as Decision;
  await assert.rejects(guards.settle(reserved, 1), OutageError);
  await guards.settle(reserved, 1);
  assert.deepEqual(ops(lambda), ["check", "release", "release"]);
});

test("renew sends a receipt", async (t) => {
  const lambda = await Lambda.start(t, held(60_000, 1), held(60_000, 2));
  const guards = lambda.guards();
  const decision = await guards.check("create_post", user);
  const renewed = await guards.renew(decision);
  assert.equal(renewed.heldUntil, 60_002);
  await guards.renew("create_post", { ...user, at: 2, requestId: "r1", count: 3 });
  const event = { userId: "u1", activity: "create_post", op: "renew", requestId: "r1" };
  assert.deepEqual(
    lambda.requests.slice(1).map((request) => request.event),
    [
      { ...event, at: 1, count: 1 },
      { ...event, at: 2, count: 3 },
    ],
  );
  await assert.rejects(guards.renew({ ...decision, granted: 0 }), /nothing to renew/);
});
