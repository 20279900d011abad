// The app's list of activities: how calls use it, and how much a client without a list can do.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Guards, ValidationError } from "@cric-talk/guards";
import { activities } from "./activities.js";
import { Lambda, ok } from "./lambda.js";

const user = { userId: "u1" };
const pass = "pass the list that guards generate writes (activities/activities.ts) as the option activities";

test("a list can be parsed JSON", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const guards = new Guards({ client: lambda.client(), activities: JSON.parse(JSON.stringify(activities)) });
  assert.equal((await guards.check("create_post", user)).window, 60);
  assert.equal((await guards.check("like", user)).window, undefined);
});

test("a change of the list after the client was made changes nothing", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const list: Record<string, { guard: string }> = { create_post: { guard: "posts-guard" } };
  const guards = new Guards({ client: lambda.client(), activities: list });
  list["create_post"]!.guard = "rooms-guard";
  delete list["create_post"];
  assert.equal((await guards.check("create_post", user)).guard, "posts-guard");
});

for (const [asked, message] of [
  ["create_pots", 'no guard is known for the activity "create_pots". Do you mean "create_post"?'],
  ["constructor", 'no guard is known for the activity "constructor": write the list again with guards generate, or name the guard: { guard, activity }'],
  [{ activity: "pin" }, 'no guard is known for the activity "pin": write the list again with guards generate, or name the guard: { guard, activity }'],
] as const) {
  test(`an activity that is not in the list is a mistake before any request: ${JSON.stringify(asked)}`, async (t) => {
    const lambda = await Lambda.start(t, { answer: ok });
    await assert.rejects(lambda.guards().check(asked as never, user), (error) => {
      assert.ok(error instanceof ValidationError);
      assert.equal(error.message, message);
      return true;
    });
    assert.equal(lambda.requests.length, 0);
  });
}

for (const options of [{}, { activities: undefined }, { activities: {} }]) {
  test(`without a list, a call names its guard: ${JSON.stringify(options)}`, async (t) => {
    const lambda = await Lambda.start(t, { answer: ok });
    const guards = new Guards({ client: lambda.client(), ...options });
    const decision = await guards.check({ guard: "photos-guard", activity: "upload_photo" }, user);
    assert.equal(decision.guard, "photos-guard");
    assert.equal(decision.window, undefined);
    await guards.ready({ guard: "photos-guard", activity: "upload_photo" });
    assert.equal(lambda.requests.length, 2);
  });

  test(`without a list, the name of an activity is a mistake before any request: ${JSON.stringify(options)}`, async (t) => {
    const lambda = await Lambda.start(t, { answer: ok });
    const guards = new Guards({ client: lambda.client(), ...options });
    const message = `no guard is known for the activity "upload_photo": ${pass}, or name the guard: { guard, activity }`;
    for (const call of [guards.check("upload_photo" as never, user), guards.ready("upload_photo" as never)]) {
      await assert.rejects(call, { name: "ValidationError", message });
    }
    await assert.rejects(guards.ready(), { name: "ConfigurationError", message: `no guard is known: ${pass}, or name each guard: ready({ guard, activity })` });
    assert.equal(lambda.requests.length, 0);
  });
}

test("without a list, any guard can have a URL", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const guards = new Guards({ client: lambda.client(), urls: { "photos-guard": `${lambda.url}/photos` } });
  await guards.check({ guard: "photos-guard", activity: "upload_photo" }, user);
  assert.equal(lambda.requests[0]?.path, "/photos");
});
