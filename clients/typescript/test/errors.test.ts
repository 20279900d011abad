import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:https";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { runInNewContext } from "node:vm";
import { LambdaClient } from "@aws-sdk/client-lambda";
import { Guards, type GuardsError } from "@cric-talk/guards";
import { buildSync } from "esbuild";
import { activities } from "./activities.js";
import { keys, Lambda, noAWS, ok, type Reply, stopClock } from "./lambda.js";

const refused = (code: string) =>
  `AWS refused the credentials (${code}). Renew them, and check this machine's clock.`;
const noGuard = (text: string) =>
  `posts-guard answered something that no guard answers: ${text}. Check the function's name.`;

const cases: [reply: Reply, name: string, message: string][] = [
  [
    { status: 403, code: "AccessDeniedException", message: "User is not authorized" },
    "ConfigurationError",
    "The app may not invoke posts-guard in eu-west-1. Allow its role the action lambda:InvokeFunction on this function.",
  ],
  [
    { status: 404, code: "ResourceNotFoundException", message: "Function not found" },
    "ConfigurationError",
    "There is no function posts-guard in eu-west-1. Deploy it, or check the region and the name.",
  ],
  [{ status: 418, body: "<html>" }, "ConfigurationError", "posts-guard could not be invoked: HTTP 418: "],
  [{ status: 503, body: "<html>" }, "OutageError", "posts-guard did not answer: HTTP 503"],
  [{ status: 502, message: "u1 is new" }, "OutageError", "posts-guard did not answer: HTTP 502: *** is new"],
  [{ status: 403, code: "UnrecognizedClientException" }, "ConfigurationError", refused("UnrecognizedClientException")],
  [{ status: 403, code: "InvalidSignatureException" }, "ConfigurationError", refused("InvalidSignatureException")],
  [{ status: 403, code: "ExpiredTokenException" }, "ConfigurationError", refused("ExpiredTokenException")],
  [{ status: 403, code: "IncompleteSignature" }, "ConfigurationError", refused("IncompleteSignature")],
  [{ status: 403, code: "MissingAuthenticationToken" }, "ConfigurationError", refused("MissingAuthenticationToken")],
  [
    { status: 413, code: "RequestTooLargeException", message: "too large, u1" },
    "ConfigurationError",
    "posts-guard could not be invoked: RequestTooLargeException: too large, ***",
  ],
  [
    { functionError: { errorType: "ValidationError", errorMessage: "count is 0, want at least 1" } },
    "ValidationError",
    "count is 0, want at least 1",
  ],
  [{ text: "hello u1\n" }, "AnswerError", noGuard("hello ***\\n")],
  [{ text: "" }, "AnswerError", noGuard("")],
  [{ text: "null" }, "AnswerError", noGuard("null")],
  [{ answer: { allowed: "yes" } }, "AnswerError", noGuard('{\\"allowed\\":\\"yes\\"}')],
  [{ text: "x".repeat(101) }, "AnswerError", noGuard("x".repeat(100))],
  [{ functionError: { errorType: "Runtime.ExitError" } }, "AnswerError", "posts-guard failed: Runtime.ExitError. Its log says why."],
  [{ functionError: "boom" }, "AnswerError", "posts-guard failed: Unhandled. Its log says why."],
  [
    { functionError: { errorType: "Unavailable", errorMessage: "the table did not answer" } },
    "OutageError",
    "posts-guard did not answer: the table did not answer",
  ],
  [
    { functionError: { errorType: "Sandbox.Timedout", errorMessage: "Task timed out after 10 seconds" } },
    "OutageError",
    "posts-guard did not answer: the function timed out",
  ],
  [
    { functionError: { errorMessage: "2026-01-01 Task timed out after 10.01 seconds" } },
    "OutageError",
    "posts-guard did not answer: the function timed out",
  ],
  [
    { status: 500, code: "ServiceException", message: "internal" },
    "OutageError",
    "posts-guard did not answer: ServiceException: internal",
  ],
  [
    { status: 429, code: "TooManyRequestsException", message: "Rate Exceeded." },
    "OutageError",
    "posts-guard did not answer: TooManyRequestsException: Rate Exceeded.",
  ],
];

for (const code of ["EC2ThrottledException", "EC2UnexpectedException", "ENILimitReachedException", "ResourceNotReadyException", "SubnetIPAddressLimitReachedException"]) {
  cases.push([{ status: 502, code, message: "later" }, "OutageError", `posts-guard did not answer: ${code}: later`]);
}

for (const code of [
  "EC2AccessDeniedException",
  "InvalidRuntimeException",
  "InvalidSecurityGroupIDException",
  "InvalidSubnetIDException",
  "InvalidZipFileException",
  "KMSAccessDeniedException",
  "KMSDisabledException",
  "KMSInvalidStateException",
  "KMSNotFoundException",
]) {
  const message = `Lambda can't run posts-guard: ${code}: about ***. Correct the function: this does not pass by itself.`;
  cases.push([{ status: 502, code, message: "about u1." }, "ConfigurationError", message]);
}
cases.push([
  { status: 502, code: "KMSNotFound" },
  "ConfigurationError",
  "Lambda can't run posts-guard: KMSNotFound. Correct the function: this does not pass by itself.",
]);

for (const [reply, name, message] of cases) {
  test(`${name}: ${message}`, async (t) => {
    const lambda = await Lambda.start(t, reply);
    await assert.rejects(lambda.guards({ maxTries: 1 }).status("create_post", { userId: "u1" }), {
      name,
      message,
      guard: "posts-guard",
    });
    const check = lambda.guards({ maxTries: 1 }).check("create_post", { userId: "u1" });
    if (name === "OutageError") assert.equal((await check).outage?.message, message);
    else await assert.rejects(check, { name, message });
  });
}

test("the id of the request reaches no message", async (t) => {
  const lambda = await Lambda.start(t);
  for (const userId of ['a"b', "a\\b", "a<b", "a&b", "a>b"]) {
    const byGo = userId.replace(/[<>&]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`).replace(/["\\](?!u)/g, "\\$&");
    for (const echo of [userId, JSON.stringify(userId).slice(1, -1), byGo]) {
      lambda.replies = [{ text: `Hello ${echo}!` }];
      await assert.rejects(lambda.guards().check("create_post", { userId }), { message: noGuard("Hello ***!") });
    }
  }
  lambda.replies = [{ text: 'Hello u"\\1, r-7!' }];
  const check = lambda.guards().check("create_post", { userId: 'u"\\1', requestId: "r-7" });
  await assert.rejects(check, { message: noGuard("Hello ***, ***!") });
  lambda.replies = [{ answer: { event: { userId: 'u"\\1' } } }];
  const echo = lambda.guards().check("create_post", { userId: 'u"\\1', requestId: "r-7" });
  await assert.rejects(echo, { message: noGuard('{\\"event\\":{\\"userId\\":\\"***\\"}}') });
});

test("a short id garbles no message", async (t) => {
  const sentence = 'count is "x", want a whole number of at least 1';
  const lambda = await Lambda.start(t, { functionError: { errorType: "ValidationError", errorMessage: sentence } });
  await assert.rejects(lambda.guards().check("create_post", { userId: "a" }), { name: "ValidationError", message: sentence });
  lambda.replies = [{ functionError: { errorType: "Unavailable", errorMessage: "a man, A-a: {'a':'a'} 1a a1 (a)" } }];
  const decision = await lambda.guards().check("create_post", { userId: "a" });
  assert.equal(decision.outage?.message, "posts-guard did not answer: *** man, A-***: {'***':'***'} 1a a1 (***)");
  lambda.replies = [{ text: "Hello $.*a(b)[|], yyya$.*" }];
  const echo = lambda.guards().check("create_post", { userId: "$.*a(b)[|]", requestId: "a$.*" });
  await assert.rejects(echo, { message: noGuard("Hello ***, yyya$.*") });
});

test("no region", async (t) => {
  noAWS(t);
  process.env["AWS_ACCESS_KEY_ID"] = "AKID";
  process.env["AWS_SECRET_ACCESS_KEY"] = "secret";
  for (const region of [undefined, ""]) {
    if (region !== undefined) process.env["AWS_REGION"] = region;
    await assert.rejects(new Guards({ activities }).check("create_post", { userId: "u1" }), {
      name: "ConfigurationError",
      message: "No AWS region is set. Set AWS_REGION, or pass a Lambda client that has one.",
    });
  }
});

test("no credentials", async (t) => {
  noAWS(t);
  process.env["AWS_REGION"] = "eu-west-1";
  const guards = new Guards({ activities });
  for (const call of [guards.check("create_post", { userId: "u1" }), guards.ready("create_post")]) {
    await assert.rejects(call, (error: GuardsError) => {
      assert.equal(error.name, "ConfigurationError");
      assert.equal(
        error.message,
        "No AWS credentials were found. Give the app a role, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
      );
      assert.match(String(error.cause), /CredentialsProviderError/); // says more, for example that a session has expired
      return true;
    });
  }
});

test("region, credentials and endpoint come from the environment", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  noAWS(t);
  process.env["AWS_REGION"] = "eu-west-3";
  process.env["AWS_ACCESS_KEY_ID"] = "AKENV";
  process.env["AWS_SECRET_ACCESS_KEY"] = "secret";
  process.env["AWS_ENDPOINT_URL_LAMBDA"] = lambda.url;
  await new Guards({ activities }).check("create_post", { userId: "u1" });
  assert.match(String(lambda.requests[0]?.headers.authorization), /AKENV\/\d+\/eu-west-3\/lambda\//);
});

test("a connection that is refused is an outage", async () => {
  const guards = new Guards({ activities, ...at("http://127.0.0.1:1"), warn: () => {} });
  const { outage } = await guards.check("create_post", { userId: "u1" });
  assert.equal(outage?.message, "posts-guard did not answer: connect ECONNREFUSED 127.0.0.1:1");
});

test("a warning says that nothing has ever answered this client", async (t) => {
  const clock = stopClock(t);
  const warnings: GuardsError[] = [];
  const gone = new Guards({ activities, ...at("http://127.0.0.1:1"), warn: (error) => warnings.push(error) });
  const { outage } = await gone.check("create_post", { userId: "u1" });
  const never = /^posts-guard did not answer: connect ECONNREFUSED 127.0.0.1:1. Lambda has not answered .* In a VPC, the app needs /;
  assert.match(warnings[0]?.message ?? "", never);
  assert.equal(warnings[0]?.cause, outage);
  const lambda = await Lambda.start(t, { status: 400, code: "InvalidRequestContentException", message: "" }, "reset");
  const guards = lambda.guards({ warnings, maxTries: 1 });
  await assert.rejects(guards.check("create_post", { userId: "u1" })); // a mistake, but an answer
  clock.advance(1000);
  await guards.check("create_post", { userId: "u1" });
  assert.equal(warnings.length, 2);
  assert.doesNotMatch(warnings[1]?.message ?? "VPC", /VPC/);
});

const absent = "lambda.eu-wst-1.invalid";

test("a host that does not exist is a mistake", async (t) => {
  const code = await lookup(absent).then(() => "found", (error: NodeJS.ErrnoException) => error.code);
  if (code !== "ENOTFOUND") return t.skip(`the resolver does not know that ${absent} does not exist: ${code}`);
  const guards = new Guards({ activities, ...at(`http://${absent}`), urls: { "rooms-guard": `http://${absent}/` } });
  await assert.rejects(guards.check("create_post", { userId: "u1" }), {
    name: "ConfigurationError",
    message: `There is no host ${absent}. Check the region eu-west-1.`,
  });
  await assert.rejects(guards.check("create_room", { userId: "u1" }), {
    name: "ConfigurationError",
    message: `There is no host ${absent}. Check the URL of rooms-guard.`,
  });
});

test("a name server or this machine that can't connect now is an outage, but a host that does not exist is not", async (t) => {
  const outages = ["EAI_AGAIN", "EADDRNOTAVAIL", "EMFILE", "ENFILE", "ENOBUFS"].map((code) => [code, "OutageError"] as const);
  for (const [code, name] of [...outages, ["ENOTFOUND", "ConfigurationError"]] as const) {
    const client = clientOf(`http://${absent}`);
    const failed = Object.assign(new Error(`getaddrinfo ${code}`), { code, hostname: absent });
    for (const error of [failed, new Error("fetch failed", { cause: failed })]) {
      t.mock.method(client.config.requestHandler, "handle", () => Promise.reject(error));
      await assert.rejects(new Guards({ activities, client, maxTries: 1 }).status("create_post", { userId: "u1" }), { name });
    }
  }
});

test("a certificate that is not valid is a mistake", { skip: !hasOpenSSL() }, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "guards-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const [key, cert] = [join(dir, "key.pem"), join(dir, "cert.pem")];
  const subject = ["-subj", "/CN=localhost", "-days", "1"];
  execFileSync("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, ...subject], { stdio: "ignore" });
  const server = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (_, response) => response.end());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => void server.close());
  const endpoint = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const guards = new Guards({ activities, ...at(endpoint), urls: { "rooms-guard": endpoint } });
  await assert.rejects(guards.check("create_post", { userId: "u1" }), {
    name: "ConfigurationError",
    message: /^posts-guard could not be invoked: DEPTH_ZERO_SELF_SIGNED_CERT: self-signed certificate/,
  });
  await assert.rejects(guards.check("create_room", { userId: "u1" }), {
    name: "ConfigurationError",
    message: /^rooms-guard could not be invoked: DEPTH_ZERO_SELF_SIGNED_CERT: self-signed certificate/,
  });
});

test("https to a server without it is a mistake", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const guards = new Guards({ activities, ...at(lambda.url.replace("http:", "https:")) });
  await assert.rejects(guards.check("create_post", { userId: "u1" }), { name: "ConfigurationError" });
});

/** Returns the options that ask an address. */
function at(endpoint: string) {
  return { region: "eu-west-1", endpoint, credentials: keys };
}

function clientOf(endpoint: string): LambdaClient {
  return new LambdaClient({ region: "eu-west-1", endpoint, credentials: { accessKeyId: "AKID", secretAccessKey: "secret" } });
}

function hasOpenSSL(): boolean {
  try {
    execFileSync("openssl", ["version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

// Jest runs an app and its packages in a context of their own. Node's errors are then no instances of the Error there.
test("in another realm than Node's, an outage is an outage, and is repeated", async (t) => {
  const entryPoints = [fileURLToPath(new URL("../dist/index.js", import.meta.url))];
  const { outputFiles } = buildSync({ entryPoints, bundle: true, format: "cjs", platform: "node", packages: "external", write: false });
  const realm = { process, Buffer, URL, performance, setTimeout, clearTimeout, setImmediate, clearImmediate };
  const module = { exports: {} as { Guards: typeof Guards } };
  runInNewContext(`(module, require) => {${outputFiles[0]!.text}}`, realm)(module, createRequire(import.meta.url));
  const lambda = await Lambda.start(t, "reset", { answer: ok });
  const given = { activities, region: "eu-west-1", endpoint: lambda.url, warn: () => {} };
  assert.equal((await new module.exports.Guards({ ...given, credentials: keys }).check("create_post", { userId: "u1" })).reason, "ok");
  assert.equal(lambda.requests.length, 2);
  const credentials = () => Promise.reject(Object.assign(new Error("no"), { code: "ECONNREFUSED" }));
  const message = /^No AWS credentials were found: their source failed \(ECONNREFUSED\)\./;
  await assert.rejects(new module.exports.Guards({ ...given, credentials }).check("create_post", { userId: "u1" }), { message });
});
