import assert from "node:assert/strict";
import { test } from "node:test";
import { InvokeCommand } from "@aws-sdk/client-lambda";
import { type CheckArgs, ValidationError } from "@cric-talk/guards";
import { Lambda, limited, ok } from "./lambda.js";

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

test("a check asks the activity's guard and returns its answer", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const decision = await lambda.guards().check("create_post", { userId: "u1" });
  assert.deepEqual(decision, { ...ok, guard: "posts-guard", window: 60 });
  const [request] = lambda.requests;
  assert.equal(request?.path, "/2015-03-31/functions/posts-guard/invocations");
  const { requestId, ...event } = request?.event ?? {};
  assert.deepEqual(event, { userId: "u1", activity: "create_post", op: "check" });
  assert.match(String(requestId), uuid);
});

test("a refusal is a decision", async (t) => {
  const lambda = await Lambda.start(t, { answer: limited });
  const decision = await lambda.guards().check("create_post", { userId: "u1" });
  assert.deepEqual(decision, { ...limited, guard: "posts-guard", window: 60 });
});

test("all arguments are sent", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const args: CheckArgs = { userId: "g1", count: 2, tier: "premium", roles: ["admin"], requestId: "r1", readyAt: 10_000, job: { a: [1] } };
  await lambda.guards().check("update_member_role", args);
  assert.deepEqual(lambda.requests[0]?.event, { ...args, activity: "update_member_role", op: "check" });
});

test("each call has its own request id", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const guards = lambda.guards();
  await guards.check("create_post", { userId: "u1" });
  await guards.check("create_post", { userId: "u1", partial: false });
  const [first, second] = lambda.requests.map((request) => request.event["requestId"]);
  assert.match(String(second), uuid);
  assert.notEqual(first, second);
});

test("a repeat has the same request id", async (t) => {
  const lambda = await Lambda.start(t, { status: 500 }, "reset", { answer: ok });
  await lambda.guards().check("create_post", { userId: "u1" });
  const ids = new Set(lambda.requests.map((request) => request.event["requestId"]));
  assert.equal(lambda.requests.length, 3);
  assert.equal(ids.size, 1);
});

test("a check with partial has no request id, and it is sent once", async (t) => {
  const lambda = await Lambda.start(t, { status: 500 }, { answer: ok });
  const decision = await lambda.guards().check("create_post", { userId: "u1", count: 5, partial: true });
  assert.equal(decision.reason, "unavailable");
  assert.equal(lambda.requests.length, 1);
  assert.ok(!("requestId" in (lambda.requests[0]?.event ?? {})));
});

test("an argument that is not JSON is a mistake before any request", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  await assert.rejects(lambda.guards().check("create_post", { userId: "u1", job: 1n }), ValidationError);
  assert.equal(lambda.requests.length, 0);
});

test("any guard can be named, and the prefix comes before its name", async (t) => {
  const lambda = await Lambda.start(t, { answer: { ...ok, activity: "upload_photo" } });
  const guards = lambda.guards({ prefix: "dev-" });
  const decision = await guards.check({ guard: "photos-guard", activity: "upload_photo" }, { userId: "u1" });
  assert.equal(lambda.requests[0]?.path, "/2015-03-31/functions/dev-photos-guard/invocations");
  assert.equal(lambda.requests[0]?.event["activity"], "upload_photo");
  assert.equal(decision.guard, "photos-guard");
});

test("fields that this package does not know are no error", async (t) => {
  const lambda = await Lambda.start(t, { answer: { ...ok, reason: "new", more: 1 } });
  assert.equal((await lambda.guards().check("create_post", { userId: "u1" })).allowed, true);
});

test("ON_LIMIT=error is a refusal without figures", async (t) => {
  const lambda = await Lambda.start(t, { functionError: { errorType: "RateLimitExceeded", errorMessage: "Too many." } });
  const decision = await lambda.guards().check("create_post", { userId: "u1" });
  assert.deepEqual(decision, {
    allowed: false,
    reason: "limited",
    userId: "u1",
    activity: "create_post",
    op: "check",
    guard: "posts-guard",
    window: 60,
    granted: 0,
    message: "Too many.",
  });
});

test("the app's own requests with the same client keep the SDK's retries", async (t) => {
  const lambda = await Lambda.start(t, { status: 500 }, { answer: ok });
  const client = lambda.client();
  await lambda.guards({ client, maxTries: 1 }).check("create_post", { userId: "u1" });
  assert.equal(lambda.requests.length, 1);
  lambda.replies = [{ status: 500 }, { answer: ok }];
  await client.send(new InvokeCommand({ FunctionName: "other", Payload: Buffer.from("{}") }));
  assert.equal(lambda.requests.length, 3);
});
