import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { Agent } from "node:http";
import { test } from "node:test";
import { LambdaClient } from "@aws-sdk/client-lambda";
import { Guards } from "@cric-talk/guards";
import { activities } from "./activities.js";
import { between, duration, forever, Lambda, limited, ok, quick, type Received, type Reply, timeoutOf, until } from "./lambda.js";

function byURL(lambda: Lambda, options = {}): Guards<typeof activities> {
  return lambda.guards({ urls: { "posts-guard": `${lambda.url}/some/path?b=2&a=1` }, ...options });
}

test("a guard with a URL is asked there, and the request is signed", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const decision = await byURL(lambda).check("create_post", { userId: "u1", requestId: "r1" });
  assert.deepEqual(decision, { ...ok, guard: "posts-guard", window: 60 });
  const [request] = lambda.requests;
  assert.ok(request);
  assert.equal(request.path, "/some/path?a=1&b=2");
  assert.equal(request.headers["content-type"], "application/json");
  assert.equal(request.headers["x-amz-security-token"], "token");
  assert.deepEqual(request.event, { userId: "u1", requestId: "r1", activity: "create_post", op: "check" });
  assert.equal(request.headers.authorization, signature(request, "eu-west-1"));
});

test("guards without a URL are invoked", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  await byURL(lambda).check("create_room", { userId: "u1" });
  assert.equal(lambda.requests[0]?.path, "/2015-03-31/functions/rooms-guard/invocations");
});

test("the region in a URL is the region of the signature", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok }, { status: 404 });
  const httpAgent = new Agent({ lookup: (_, __, found) => found(null, [{ address: "127.0.0.1", family: 4 }]) });
  t.after(() => httpAgent.destroy());
  const client = new LambdaClient({
    region: "eu-west-1",
    credentials: { accessKeyId: "AKID", secretAccessKey: "secret" },
    requestHandler: { httpAgent },
  });
  const url = lambda.url.replace("127.0.0.1", "abc.lambda-url.us-west-2.on.aws");
  const guards = lambda.guards({ client, urls: { "posts-guard": url } });
  await guards.check("create_post", { userId: "u1" });
  const [request] = lambda.requests;
  assert.ok(request);
  assert.equal(request.headers.authorization, signature(request, "us-west-2"));
  await assert.rejects(guards.check("create_post", { userId: "u1" }), {
    message: "There is no function posts-guard in us-west-2. Deploy it, or check the region and the name.",
  });
});

test("a guard's 429 is an answer, without the fields of a problem", async (t) => {
  const problem = { type: "https://iana.org/x", title: "Too Many Requests", status: 429, "violated-policies": ["create_post"], ...limited };
  const lambda = await Lambda.start(t, { status: 429, body: JSON.stringify(problem) });
  const decision = await byURL(lambda).check("create_post", { userId: "u1" });
  assert.deepEqual(decision, { ...limited, guard: "posts-guard", window: 60 });
  assert.equal(lambda.requests.length, 1);
});

const cases: [reply: Reply, name: string, message: string, requests: number][] = [
  [
    { status: 403, message: "Forbidden" },
    "ConfigurationError",
    "The app may not call the URL of posts-guard. Allow its role lambda:InvokeFunctionUrl and lambda:InvokeFunction on this function.",
    1,
  ],
  [
    { status: 403, code: "InvalidSignatureException" },
    "ConfigurationError",
    "AWS refused the credentials (InvalidSignatureException). Renew them, and check this machine's clock.",
    1,
  ],
  [
    { status: 404, body: "null" },
    "ConfigurationError",
    "There is no function posts-guard in eu-west-1. Deploy it, or check the region and the name.",
    1,
  ],
  [{ status: 413, body: '{"Message":"u1 too large"}' }, "ConfigurationError", "posts-guard could not be invoked: HTTP 413: *** too large", 1],
  [{ status: 400, message: "Bad Request" }, "ConfigurationError", "posts-guard could not be invoked: HTTP 400: Bad Request", 1],
  [{ status: 400, body: '{"errorType":"ValidationError","detail":"count is 0"}' }, "ValidationError", "count is 0", 1],
  [{ status: 503, body: '{"errorType":"Unavailable","detail":"no table"}' }, "OutageError", "posts-guard did not answer: no table", 1],
  [{ status: 503, body: "" }, "OutageError", "posts-guard did not answer: HTTP 503", 2],
  // A guard that crashes, one that can't start and one that times out look alike here.
  [
    { status: 502, body: "Internal Server Error" },
    "AnswerError",
    "posts-guard failed: HTTP 502. It crashed, can't start or timed out. Its log says why.",
    1,
  ],
  [
    { status: 502, code: "InternalServerErrorException" },
    "AnswerError",
    "posts-guard failed: InternalServerErrorException. It crashed, can't start or timed out. Its log says why.",
    1,
  ],
  [
    { status: 502, code: "KMSDisabledException", message: "u1's key" },
    "ConfigurationError",
    "Lambda can't run posts-guard: KMSDisabledException: ***'s key. Correct the function: this does not pass by itself.",
    1,
  ],
  [
    { status: 502, code: "Of.u1" },
    "AnswerError",
    "posts-guard failed: Of.***. It crashed, can't start or timed out. Its log says why.",
    1,
  ],
  [{ status: 502, code: "ENILimitReachedException" }, "OutageError", "posts-guard did not answer: ENILimitReachedException", 2],
  [{ status: 504, body: "" }, "OutageError", "posts-guard did not answer: HTTP 504", 2],
  [{ status: 429, message: "Rate Exceeded." }, "OutageError", "posts-guard did not answer: HTTP 429: Rate Exceeded.", 2],
  ["reset", "OutageError", "posts-guard did not answer: socket hang up", 2],
  ["cut", "OutageError", "posts-guard did not answer: aborted", 2],
  ["hang", "OutageError", "a timeout", 2],
  ["halfway", "OutageError", "a timeout", 2],
  [
    { text: "<html>" },
    "AnswerError",
    "posts-guard answered something that no guard answers: <html>. Check the function's name.",
    1,
  ],
];

for (const [reply, name, message, requests] of cases) {
  test(`by URL, ${JSON.stringify(reply)} is ${name}`, async (t) => {
    const lambda = await Lambda.start(t, reply);
    const late = reply === "hang" || reply === "halfway";
    await assert.rejects(byURL(lambda, { ...(late ? quick : {}), maxTries: 2 }).status("create_post", { userId: "u1" }), (error: Error) => {
      assert.equal(error.name, name);
      if (late) between(timeoutOf(error), 600, 900);
      else assert.equal(error.message.replace("read ECONNRESET", "socket hang up"), message);
      return true;
    });
    // The first attempt has 600 ms. A busy machine can abort it before it is sent.
    between(lambda.requests.length, late ? 1 : requests, requests);
  });
}

test("by URL, attempts are aborted in time", async (t) => {
  const lambda = await Lambda.start(t, "halfway", { answer: ok });
  const took = await duration(() => byURL(lambda, quick).check("create_post", { userId: "u1" }));
  between(took, 595, forever);
  await until(() => lambda.requests[0]?.brokenAt !== undefined);
});

/** Returns the Authorization header that AWS would compute for a request, as its documentation of SigV4 describes. */
function signature(request: Received, region: string): string {
  const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
  const hmac = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text).digest();
  const time = String(request.headers["x-amz-date"]);
  const scope = `${time.slice(0, 8)}/${region}/lambda/aws4_request`;
  const names = /SignedHeaders=([^,]+)/.exec(request.headers.authorization ?? "")?.[1] ?? "";
  for (const name of ["host", "x-amz-date"]) assert.ok(names.split(";").includes(name), `${name} is signed`);
  const headers = names.split(";").map((name) => `${name}:${String(request.headers[name]).trim()}\n`);
  const [path, query = ""] = request.path.split("?");
  const canonical = ["POST", path, query, headers.join(""), names, sha256(request.text)].join("\n");
  const toSign = ["AWS4-HMAC-SHA256", time, scope, sha256(canonical)].join("\n");
  const key = [time.slice(0, 8), region, "lambda", "aws4_request"].reduce<string | Buffer>(hmac, "AWS4secret");
  const signed = createHmac("sha256", key).update(toSign).digest("hex");
  return `AWS4-HMAC-SHA256 Credential=AKID/${scope}, SignedHeaders=${names}, Signature=${signed}`;
}
