import assert from "node:assert/strict";
import { test } from "node:test";
import { type Decision, OutageError, rateLimitHeaders, refusal, tooMany } from "@cric-talk/guards";
import { Lambda, limited, ok } from "./lambda.js";

const refused = { ...limited, guard: "posts-guard", window: 60 } as Decision;
const allowed = { ...ok, guard: "posts-guard", window: 60 } as Decision;

test("a refusal is a 429 problem with the answer's fields, as a guard's URL sends it", () => {
  const { status, headers, body } = refusal(refused);
  assert.equal(status, 429);
  assert.deepEqual(headers, { "Retry-After": "42", "Content-Type": "application/problem+json" });
  assert.equal(
    body,
    '{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too Many Requests","status":429,' +
      '"violated-policies":["create_post"],' +
      JSON.stringify(limited).slice(1),
  );
});

test("Retry-After is at least 1, and rounded up", () => {
  for (const [waitTime, seconds] of [[undefined, "1"], [0, "1"], [1, "1"], [1000, "1"], [1001, "2"]] as const) {
    const { waitTime: _, ...rest } = refused;
    const decision = waitTime === undefined ? rest : { ...rest, waitTime };
    assert.equal(refusal(decision).headers["Retry-After"], seconds);
    assert.equal(refusal({ ...decision, asked: { tier: "premium" } }).headers["Retry-After"], seconds); // a tier is no number
  }
});

test("the violated policy is the limit that refused", () => {
  const body = JSON.parse(refusal({ ...refused, limitedBy: "day" }).body);
  assert.deepEqual(body["violated-policies"], ["day"]);
});

test("a block is a 429 without a policy", () => {
  const { limit, activityCount, remaining, ...blocked } = { ...refused, reason: "blocked" } as Decision;
  const { type, title, "violated-policies": violated, reason } = JSON.parse(refusal(blocked).body);
  assert.deepEqual([type, title, violated, reason], [undefined, "Too Many Requests", undefined, "blocked"]);
  assert.equal(tooMany(blocked).headers.get("RateLimit"), null);
});

// As in schema/golden/lockout-refused.json.
test("a locked user gets a 429 that says so", async (t) => {
  const figures = { limit: 3, activityCount: 3, remaining: 0, waitTime: 60_000, resetAt: 1_700_000_090_000, locked: true } as const;
  const lambda = await Lambda.start(t, { answer: { ...limited, ...figures, limits: [{ name: "user", ...figures }] } });
  const decision = await lambda.guards().check("create_post", { userId: "u1" });
  assert.deepEqual([decision.locked, decision.limits?.[0]?.locked], [true, true]);
  const { headers, body } = refusal(decision);
  assert.equal(headers["Retry-After"], "60");
  assert.equal(JSON.parse(body).locked, true);
});

test("an outage that denied is a 503", () => {
  const outage = new OutageError("posts-guard did not answer: timeout after 3000 ms");
  const { status, headers, body } = refusal({ ...refused, message: "Please try again later.", outage });
  assert.equal(status, 503);
  assert.deepEqual(headers, { "Retry-After": "1", "Content-Type": "application/problem+json" });
  assert.deepEqual(JSON.parse(body), {
    type: "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
    title: "Unavailable",
    status: 503,
    detail: "Please try again later.",
  });
});

test("RateLimit and RateLimit-Policy have the guard's format", () => {
  const soon = { ...allowed, resetAt: ok.at + 41_500 };
  assert.deepEqual(rateLimitHeaders(soon), {
    RateLimit: '"create_post";r=7;t=42',
    "RateLimit-Policy": '"create_post";q=10;w=60',
  });
  assert.equal(rateLimitHeaders({ ...allowed, resetAt: ok.at - 5000 })["RateLimit"], '"create_post";r=7;t=0');
});

test("the seconds until the reset don't depend on this machine's clock", async (t) => {
  const lambda = await Lambda.start(t);
  const byURL: Record<string, string> = { "posts-guard": lambda.url };
  for (const urls of [{}, byURL]) {
    for (const hours of [0, 1, -1]) {
      t.mock.timers.enable({ apis: ["Date"], now: Date.now() + hours * 3_600_000 });
      const headers = { date: "Tue, 14 Nov 2023 22:14:18 GMT" }; // 1,700,000,058
      const guards = lambda.guards({ urls });
      lambda.replies = [{ answer: { ...ok, at: ok.at + 2000 }, headers }, { answer: limited, headers }];
      const counted = await guards.check("create_post", { userId: "u1" });
      assert.equal(rateLimitHeaders(counted)["RateLimit"], '"create_post";r=7;t=40');
      const refused = await guards.check("create_post", { userId: "u1" });
      assert.equal(rateLimitHeaders(refused)["RateLimit"], '"create_post";r=0;t=42');
      assert.equal(tooMany(refused).headers.get("RateLimit"), '"create_post";r=0;t=42');
      const stored = JSON.parse(JSON.stringify(refused)) as Decision;
      assert.equal(rateLimitHeaders(stored)["RateLimit"], '"create_post";r=0'); // t is optional
      t.mock.timers.reset();
    }
  }
});

test("RateLimit-Policy is left out if the window is not known", async (t) => {
  const guards = (await Lambda.start(t, { answer: ok })).guards();
  const user = { userId: "u1" };
  for (const decision of [
    await guards.check("create_post", { ...user, tier: "premium" }),
    await guards.check({ guard: "posts-guard", activity: "upload_photo" }, user),
    await guards.check({ guard: "photos-guard", activity: "create_post" }, user),
    await guards.check({ guard: "photos-guard", activity: "constructor" }, user),
    await guards.check("like", user),
  ]) {
    assert.deepEqual(Object.keys(rateLimitHeaders(decision)), ["RateLimit"]);
  }
  for (const decision of [
    await guards.check("create_post", user),
    await guards.check({ guard: "posts-guard", activity: "create_post" }, user),
    JSON.parse(JSON.stringify(await guards.status("create_post", user))) as Decision,
  ]) {
    assert.equal(rateLimitHeaders(decision)["RateLimit-Policy"], '"create_post";q=10;w=60');
  }
});

test("several limits have one item each", () => {
  const resetAt = ok.at - 1;
  const limits = [
    { name: "minute", limit: 10, activityCount: 3, remaining: 7, waitTime: 0, resetAt },
    { name: "day", limit: 200, activityCount: 3, remaining: 197, waitTime: 0, resetAt },
  ];
  assert.deepEqual(rateLimitHeaders({ ...allowed, limits }), { RateLimit: '"minute";r=7;t=0, "day";r=197;t=0' });
});

test("an answer without figures has no headers", () => {
  const { limit, ...rest } = allowed;
  assert.deepEqual(rateLimitHeaders(rest), {});
});

test("tooMany is a Response", async () => {
  const response = tooMany(refused);
  assert.equal(response.status, 429);
  assert.equal(response.headers.get("Retry-After"), "42");
  assert.equal(response.headers.get("Content-Type"), "application/problem+json");
  assert.equal(response.headers.get("RateLimit-Policy"), '"create_post";q=10;w=60');
  assert.equal(((await response.json()) as Decision).message, limited.message);
});
