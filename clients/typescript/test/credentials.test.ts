import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { between, forever, Lambda, ok, quick, stopClock, timeoutOf } from "./lambda.js";

const user = { userId: "u1" };
const found = { accessKeyId: "AKID", secretAccessKey: "secret", sessionToken: "token" };

/** Credentials that the SDK renews before each request. */
const brief = () => ({ ...found, expiration: new Date(Date.now() + 1000) });

const named = (name: string, more = {}) => Object.assign(new Error("token=secret"), { name, ...more });
const silence = () => new Promise<never>(() => {});

const sources: [name: string, source: () => Promise<never>, why: string][] = [
  ["fails", () => Promise.reject(named("ServiceUnavailable", { $metadata: { httpStatusCode: 500 } })), ": their source failed (ServiceUnavailable)"],
  ["is refused", () => Promise.reject(named("ExpiredTokenException", { $metadata: { httpStatusCode: 400 } })), ": their source failed (ExpiredTokenException)"],
  ["can't be reached", () => Promise.reject(named("Error", { code: "ECONNREFUSED" })), ": their source failed (ECONNREFUSED)"],
  ["throws no error", () => Promise.reject("token=secret"), ": their source failed (Error)"],
  ["is silent", silence, ": their source did not answer in time"],
  ["has none", () => Promise.reject(named("CredentialsProviderError")), ""],
];

/** How the app gives a source: as the option credentials, or in a client of the SDK. */
const givers: [by: string, give: (lambda: Lambda, source: () => Promise<typeof found>) => object][] = [
  ["the option credentials", (_, credentials) => ({ credentials })],
  ["the option client", (lambda, source) => ({ client: lambda.client(source) })],
];

for (const [name, source, why, by, give] of sources.flatMap((source) => givers.map((giver) => [...source, ...giver] as const))) {
  test(`by ${by}, a source of credentials that ${name} is a mistake`, async (t) => {
    const lambda = await Lambda.start(t, { answer: ok });
    const guards = lambda.guards({ ...quick, ...give(lambda, source) });
    for (let n = 0; n < 2; n++) {
      await assert.rejects(guards.check("create_post", user), {
        name: "ConfigurationError",
        message: `No AWS credentials were found${why}. Give the app a role, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.`,
        guard: "posts-guard",
      });
    }
    assert.equal(lambda.requests.length, 0);
  });

  test(`by ${by}, after credentials were found, a source that ${name} is an outage`, async (t) => {
    // A stopped clock would wait for a silent source forever.
    const clock = source === silence ? { advance: (ms: number) => sleep(ms + 10) } : stopClock(t);
    const lambda = await Lambda.start(t, { answer: ok });
    let renew: () => Promise<typeof found> = async () => brief();
    const times = source === silence ? { decisionTimeout: 300, timeout: 1000 } : {};
    const guards = lambda.guards({ ...times, ...give(lambda, () => renew()) });
    assert.equal((await guards.check("create_post", user)).reason, "ok");
    const asked = lambda.requests.length;
    renew = source;
    await clock.advance(1000); // until then, the option credentials uses what was found
    await assert.rejects(guards.status("create_post", user), { name: "OutageError", guard: "posts-guard" });
    await clock.advance(1000);
    const { allowed, outage } = await guards.check("create_post", user);
    assert.equal(allowed, true);
    assert.equal(outage?.message, `posts-guard did not answer: the AWS credentials could not be renewed${why}`);
    assert.equal(lambda.requests.length, asked);
    if (source === silence && by === "the option client") return; // the SDK still awaits its first promise
    renew = async () => brief();
    await clock.advance(1000);
    assert.equal((await guards.check("create_post", user)).reason, "ok");
  });
}

test("credentials that can't be renewed between two attempts are an outage", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  let asked = 0; // the SDK asks twice at first, because these credentials are almost expired
  const client = lambda.client(async () => {
    if (++asked > 2) throw named("CredentialsProviderError");
    return brief();
  });
  const { outage } = await lambda.guards({ client }).check("create_post", user);
  assert.equal(outage?.message, "posts-guard did not answer: CredentialsProviderError");
});

test("the credentials can take longer than an attempt", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const guards = lambda.guards({ decisionTimeout: 300, timeout: forever, credentials: () => sleep(800, found) });
  assert.equal((await guards.check("create_post", user)).reason, "ok");
});

test("the time of the credentials counts", async (t) => {
  const lambda = await Lambda.start(t, "hang");
  const { outage } = await lambda.guards({ ...quick, credentials: () => sleep(1200, found) }).check("create_post", user);
  between(timeoutOf(outage), 1, 1100);
});

test("credentials are renewed 5 minutes before their end, and not earlier", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: 1_700_000_000_000 });
  const lambda = await Lambda.start(t, { answer: ok });
  let asked = 0;
  const credentials = async () => ({ ...found, accessKeyId: `AKID${++asked}`, expiration: new Date(Date.now() + 3_600_000) });
  const guards = lambda.guards({ credentials });
  // The call that renews them still uses the old ones, unless they are over.
  for (const [ms, key, asks] of [[0, 1, 1], [3_300_000, 1, 1], [1, 1, 2], [0, 2, 2], [3_600_000, 3, 3]] as const) {
    t.mock.timers.setTime(Date.now() + ms);
    await guards.check("create_post", user);
    assert.match(String(lambda.requests.at(-1)?.headers.authorization), new RegExp(`Credential=AKID${key}/`));
    assert.equal(asked, asks);
  }
});

for (const [name, source] of sources) {
  test(`credentials that were found are used until their end, while their source ${name} and is asked again`, async (t) => {
    const clock = stopClock(t);
    const lambda = await Lambda.start(t, { answer: ok });
    let asked = 0;
    const expiration = new Date(Date.now() + 300_000);
    const credentials = () => (asked++ === 0 ? { ...found, expiration } : source());
    const guards = lambda.guards({ credentials });
    for (const [ms, asks] of [[0, 1], [999, 1], [1, 2], [999, 2], [1, 3], [297_999, 4]] as const) {
      clock.advance(ms);
      assert.equal((await guards.check("create_post", user)).reason, "ok");
      assert.equal(asked, asks); // at most once a second
    }
  });
}

test("credentials without an end are asked for once, also by many calls at once", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  let asked = 0;
  const guards = lambda.guards({ credentials: () => (asked++, sleep(20, found)) });
  await Promise.all(Array.from({ length: 20 }, () => guards.check("create_post", user)));
  await guards.check("create_post", user);
  assert.equal(asked, 1);
});

test("a source that returns no credentials is a mistake", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  await assert.rejects(lambda.guards({ credentials: (async () => ({})) as never }).check("create_post", user), {
    name: "ConfigurationError",
    message: /^No AWS credentials were found: The option credentials returned none, want accessKeyId and secretAccessKey. Give/,
  });
});
