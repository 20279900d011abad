import assert from "node:assert/strict";
import { test } from "node:test";
import { type Decision, type GuardsError, LimitedError, OutageError, ValidationError } from "@cric-talk/guards";
import { between, duration, forever, Lambda, limited, ok, recordSleeps, type Reply, stopClock } from "./lambda.js";

class SaveError extends Error {}

const fail = (): never => {
  throw new SaveError("no disk");
};

test("status, release and reset send their op", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const guards = lambda.guards();
  await guards.status("create_post", { userId: "u1", count: 2, tier: "premium", roles: [], partial: true });
  await guards.release("create_post", { userId: "u1", at: 5, requestId: "r1", count: 2 });
  await guards.reset("create_post", { userId: "u1" });
  assert.deepEqual(
    lambda.requests.map((request) => request.event),
    [
      { userId: "u1", count: 2, tier: "premium", roles: [], partial: true, activity: "create_post", op: "status" },
      { userId: "u1", at: 5, requestId: "r1", count: 2, activity: "create_post", op: "release" },
      { userId: "u1", activity: "create_post", op: "reset" },
    ],
  );
});

test("a decision can be released, of any guard", async (t) => {
  const lambda = await Lambda.start(t, { answer: { ...ok, activity: "upload_photo", granted: 4 } });
  const guards = lambda.guards();
  const decision = await guards.check({ guard: "photos-guard", activity: "upload_photo" }, { userId: "u1", count: 4 });
  await guards.release(JSON.parse(JSON.stringify(decision)) as Decision);
  assert.equal(lambda.requests[1]?.path, "/2015-03-31/functions/photos-guard/invocations");
  const event = { userId: "u1", activity: "upload_photo", op: "release", at: ok.at, requestId: "r1", count: 4 };
  assert.deepEqual(lambda.requests[1]?.event, event);
});

test("a release can clear", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const guards = lambda.guards();
  const decision = await guards.check("create_post", { userId: "u1" });
  await guards.release(decision, { clear: true });
  const event = { userId: "u1", activity: "create_post", op: "release", at: ok.at, requestId: "r1", clear: true };
  assert.deepEqual(lambda.requests[1]?.event, { ...event, count: 1 });
  await guards.release("create_post", { userId: "u1", at: ok.at, requestId: "r1", clear: true });
  assert.deepEqual(lambda.requests[2]?.event, event);
});

const delayed = { ...limited, reason: "delayed", readyAt: 5, at: 4, requestId: "r1", message: undefined };

for (const answer of [limited, delayed, { ...ok, requestId: undefined }, { ...ok, granted: undefined }]) {
  test(`a decision without a receipt can't be released: ${JSON.stringify(answer)}`, async (t) => {
    const lambda = await Lambda.start(t, { answer });
    const guards = lambda.guards();
    const decision = await guards.check("create_post", { userId: "u1" });
    await assert.rejects(guards.release(decision), (error) => {
      assert.ok(error instanceof ValidationError);
      assert.equal(error.message, "the decision has no receipt, so there is nothing to give back");
      return true;
    });
    assert.equal(lambda.requests.length, 1);
  });
}

test("status, release and reset throw in an outage", async (t) => {
  const lambda = await Lambda.start(t, { status: 500 });
  const calls = [
    () => lambda.guards().status("create_post", { userId: "u1" }),
    () => lambda.guards().release("create_post", { userId: "u1", at: 1, requestId: "r1" }),
    () => lambda.guards().reset("create_post", { userId: "u1" }),
    () => lambda.guards().ready("create_post"),
  ];
  for (const call of calls) await assert.rejects(call(), OutageError);
});

test("guarded returns what the function returns", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const saved = await lambda.guards().guarded("create_post", { userId: "u1" }, async (decision) => `saved, ${decision.remaining} left`);
  assert.equal(saved, "saved, 7 left");
  assert.equal(lambda.requests.length, 1);
});

for (const answer of [limited, delayed]) {
  test(`guarded throws a LimitedError if the check is ${answer.reason}`, async (t) => {
    const lambda = await Lambda.start(t, { answer });
    let ran = false;
    const guarded = lambda.guards({ prefix: "dev-" }).guarded("create_post", { userId: "u1" }, () => (ran = true));
    await assert.rejects(guarded, (error) => {
      assert.ok(error instanceof LimitedError);
      assert.equal(error.message, answer.message ?? "Please try again later.");
      assert.equal(error.decision.reason, answer.reason);
      assert.equal(error.guard, "dev-posts-guard");
      assert.equal(error.cause, undefined);
      return true;
    });
    assert.equal(ran, false);
    assert.equal(lambda.requests.length, 1);
  });
}

test("guarded throws a LimitedError in an outage with onOutage: deny", async (t) => {
  const lambda = await Lambda.start(t, { status: 500 });
  const guarded = lambda.guards({ onOutage: "deny" }).guarded("create_post", { userId: "u1" }, fail);
  await assert.rejects(guarded, (error) => {
    assert.ok(error instanceof LimitedError && error.cause instanceof OutageError);
    assert.equal(error.cause, error.decision.outage);
    return true;
  });
});

test("guarded gives back what was counted if the function fails", async (t) => {
  const lambda = await Lambda.start(t, { answer: { ...ok, granted: 3 } });
  await assert.rejects(lambda.guards().guarded("create_post", { userId: "u1", count: 5 }, fail), SaveError);
  const event = { userId: "u1", activity: "create_post", op: "release", at: ok.at, requestId: "r1", count: 3 };
  assert.deepEqual(lambda.requests[1]?.event, event);
});

const noReceipt: [name: string, reply: Reply][] = [
  ["duplicate", { answer: { ...ok, reason: "duplicate", at: undefined, requestId: undefined } }],
  ["bypassed", { answer: { allowed: true, reason: "bypassed", userId: "u1", activity: "create_post", op: "check", granted: 1 } }],
  ["shadow", { answer: { ...limited, allowed: true, reason: "shadow" } }],
  ["unavailable", { functionError: { errorType: "Unavailable", errorMessage: "no table" } }],
];

for (const [name, reply] of noReceipt) {
  test(`guarded gives nothing back for a decision that is ${name}`, async (t) => {
    const warnings: GuardsError[] = [];
    const lambda = await Lambda.start(t, reply);
    await assert.rejects(lambda.guards({ warnings }).guarded("create_post", { userId: "u1" }, fail), SaveError);
    assert.equal(lambda.requests.length, 1);
    assert.equal(warnings.length, name === "unavailable" ? 1 : 0); // nobody tried a release
  });
}

test("each release that fails goes to warn and does not hide the function's error", async (t) => {
  const warnings: GuardsError[] = [];
  const lambda = await Lambda.start(t);
  const guards = lambda.guards({ warnings, maxTries: 1 });
  for (const status of [403, 500]) {
    for (const activity of ["create_post", "create_room"] as const) {
      lambda.replies = [{ answer: ok }, { status, code: "AccessDeniedException" }];
      await assert.rejects(guards.guarded(activity, { userId: "u1" }, fail), SaveError);
    }
  }
  assert.deepEqual(
    warnings.map((warning) => `${warning.name} of ${warning.guard}`),
    [
      "ConfigurationError of posts-guard",
      "ConfigurationError of rooms-guard",
      "OutageError of posts-guard",
      "OutageError of rooms-guard",
    ],
  );
});

test("an unexpected error of a release goes to warn too", async (t) => {
  const warnings: GuardsError[] = [];
  const lambda = await Lambda.start(t, { answer: ok });
  const guards = lambda.guards({ warnings });
  const broken = new TypeError("broken");
  guards.release = () => Promise.reject(broken);
  await assert.rejects(guards.guarded("create_post", { userId: "u1" }, fail), SaveError);
  assert.deepEqual(
    warnings.map(({ message, cause }) => [message, cause]),
    [["a release of posts-guard failed", broken]],
  );
});

test("ready asks each guard of the list once, and counts nothing", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  await lambda.guards().ready();
  const asked = lambda.requests.map((request) => request.path.split("/")[3]).sort();
  assert.deepEqual(asked, ["jobs-guard", "pins-guard", "posts-guard", "rooms-guard"]);
  for (const { event } of lambda.requests) assert.deepEqual([event["userId"], event["op"]], ["ready", "status"]);
});

test("ready asks only the guards of the named activities", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  await lambda.guards().ready("create_post", "like", { guard: "photos-guard", activity: "upload_photo" });
  const asked = lambda.requests.map((request) => request.path.split("/")[3]).sort();
  assert.deepEqual(asked, ["photos-guard", "posts-guard"]);
});

test("ready throws what is wrong", async (t) => {
  const lambda = await Lambda.start(t, { status: 404, code: "ResourceNotFoundException" });
  await assert.rejects(lambda.guards().ready(), {
    name: "ConfigurationError",
    message: "There is no function posts-guard in eu-west-1. Deploy it, or check the region and the name.",
  });
});

test("wait sleeps until the request can pass", async (t) => {
  const guards = (await Lambda.start(t, "hang")).guards();
  const waits = Array.from({ length: 20 }, () => duration(() => guards.wait({ waitTime: 200 })));
  for (const ms of await Promise.all(waits)) between(ms, 199, forever);
});

test("wait adds a random part of up to 10 %, or 50 ms", async (t) => {
  const sleeps = recordSleeps(t, stopClock(t));
  const guards = (await Lambda.start(t, "hang")).guards();
  let random = 0;
  t.mock.method(Math, "random", () => random);
  for (random of [0, 0.5, 1]) {
    assert.equal(await guards.wait({ waitTime: 200 }), true);
    assert.equal(await guards.wait({ waitTime: 60_000, allowed: false }), true);
  }
  assert.deepEqual(sleeps, [200, 60_000, 225, 63_000, 250, 66_000]);
});

test("wait sleeps until the rest of a partial check can pass", async (t) => {
  const sleeps = recordSleeps(t, stopClock(t));
  t.mock.method(Math, "random", () => 0);
  assert.equal(await (await Lambda.start(t, "hang")).guards().wait({ allowed: true, reason: "ok", waitTime: 1000 }), true);
  assert.deepEqual(sleeps, [1000]);
});

test("wait does not sleep if there is nothing to wait for, or too much", async (t) => {
  const sleeps = recordSleeps(t, stopClock(t));
  const guards = (await Lambda.start(t, "hang")).guards();
  assert.equal(await guards.wait({ waitTime: 0 }), true);
  assert.equal(await guards.wait({ allowed: true }), true);
  assert.equal(await guards.wait({ allowed: true, reason: "shadow", waitTime: 41_001 }), true);
  assert.equal(await guards.wait({ allowed: true, reason: "shadow", waitTime: 60_001 }), true);
  assert.equal(await guards.wait({}), false);
  assert.equal(await guards.wait({ allowed: false }), false);
  assert.equal(await guards.wait({ waitTime: 60_001 }), false);
  assert.equal(await guards.wait({ waitTime: 5, reason: "blocked" }), false);
  assert.equal(await guards.wait({ waitTime: 101 }, { maxWait: 100 }), false);
  assert.deepEqual(sleeps, []);
});

test("wait can be cancelled", async (t) => {
  const guards = (await Lambda.start(t, "hang")).guards();
  await assert.rejects(guards.wait({ waitTime: 60_000 }, { signal: AbortSignal.timeout(50) }), { name: "AbortError" });
  const month = guards.wait({ waitTime: 2 ** 31 * 2 }, { maxWait: Infinity, signal: AbortSignal.timeout(50) });
  await assert.rejects(month, { name: "AbortError" }); // longer than a timer of Node can run
});
