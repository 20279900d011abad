// Each row of the README's table "Settings of the AWS SDK".
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { LambdaClient } from "@aws-sdk/client-lambda";
import { Guards } from "@cric-talk/guards";
import { activities } from "./activities.js";
import { Environment } from "../dist/environment.js"; // not exported: only this package and its tests know it
import { endpointBySDK } from "../dist/sdk.js";
import { between, keys, Lambda, noAWS, ok, until } from "./lambda.js";

const user = { userId: "u1" };

/** Makes a folder until the end of the test. */
function folder(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), "guards-"));
  t.after(() => rmSync(dir, { recursive: true }));
  return dir;
}

/** Sets the environment of an app, with files of profiles, until the end of the test. Returns the folder of the files. */
function environment(t: TestContext, variables: Record<string, string>, config = "", credentials = ""): string {
  noAWS(t);
  const dir = folder(t);
  writeFileSync(join(dir, "config"), config);
  writeFileSync(join(dir, "credentials"), credentials);
  Object.assign(process.env, { AWS_CONFIG_FILE: join(dir, "config"), AWS_SHARED_CREDENTIALS_FILE: join(dir, "credentials") }, variables);
  return dir;
}

const byKeys = { AWS_ACCESS_KEY_ID: "AKENV", AWS_SECRET_ACCESS_KEY: "secret" };
const profile = (name: string, key: string) => `[${name}]\naws_access_key_id = ${key}\naws_secret_access_key = secret\n`;

/** Checks once, and returns key and region of the signature. */
async function signed(lambda: Lambda, options = {}): Promise<string> {
  await new Guards({ activities, ...options }).check("create_post", user);
  return /Credential=(\w+)\/\d+\/([\w-]+)\//.exec(String(lambda.requests.at(-1)?.headers.authorization))?.slice(1).join(" ") ?? "";
}

test("region: a variable, a profile, or an option, which wins", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  environment(t, { ...byKeys, AWS_ENDPOINT_URL: lambda.url }, "[default]\nregion = eu-south-1\n[profile other]\nregion = eu-north-1\n");
  assert.equal(await signed(lambda), "AKENV eu-south-1");
  process.env["AWS_REGION"] = "eu-west-3";
  assert.equal(await signed(lambda), "AKENV eu-west-3");
  assert.equal(await signed(lambda, { region: "us-west-2" }), "AKENV us-west-2");
});

// The SDK for Python has another order.
const pairs: [what: string, variables: Record<string, string>, key: string][] = [
  ["keys", byKeys, "AKENV"],
  ["AWS_PROFILE beside keys", { ...byKeys, AWS_PROFILE: "other" }, "AKOTHER"],
  ["an empty AWS_PROFILE beside keys", { ...byKeys, AWS_PROFILE: "" }, "AKENV"],
  ["AWS_PROFILE alone", { AWS_PROFILE: "other" }, "AKOTHER"],
  ["AWS_PROFILE beside half a key", { AWS_ACCESS_KEY_ID: "AKENV", AWS_PROFILE: "other" }, "AKOTHER"],
  ["half a key", { AWS_ACCESS_KEY_ID: "AKENV" }, "AKDEFAULT"],
  ["nothing", {}, "AKDEFAULT"],
];

for (const [what, variables, key] of pairs) {
  test(`credentials: with ${what} in the environment, they are those of ${key}, as in the SDK`, async (t) => {
    t.mock.method(console, "warn", () => {}); // the SDK's
    const lambda = await Lambda.start(t, { answer: ok });
    const files = profile("default", "AKDEFAULT") + profile("other", "AKOTHER");
    environment(t, { ...variables, AWS_REGION: "eu-west-1", AWS_ENDPOINT_URL: lambda.url }, "", files);
    assert.equal(await signed(lambda), `${key} eu-west-1`);
    const bySDK = await new LambdaClient({}).config.credentials();
    assert.equal(bySDK.accessKeyId, key);
  });
}

test("credentials: the session's token, credential_process and a container", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const given = JSON.stringify({ Version: 1, AccessKeyId: "AKPROCESS", SecretAccessKey: "secret" });
  const dir = environment(t, { AWS_REGION: "eu-west-1", AWS_ENDPOINT_URL: lambda.url });
  writeFileSync(join(dir, "config"), `[default]\ncredential_process = printf '%s' '${given}'\n`);
  assert.equal(await signed(lambda), "AKPROCESS eu-west-1");
  process.env["AWS_CONFIG_FILE"] = join(dir, "none"); // the SDK reads each file once
  const server = createServer((_, response) => {
    const expiration = new Date(Date.now() + 3_600_000).toISOString();
    response.end(JSON.stringify({ AccessKeyId: "AKCONTAINER", SecretAccessKey: "secret", Token: "t", Expiration: expiration }));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => void server.close());
  process.env["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = `http://127.0.0.1:${(server.address() as AddressInfo).port}/credentials`;
  assert.equal(await signed(lambda), "AKCONTAINER eu-west-1");
  Object.assign(process.env, byKeys, { AWS_SESSION_TOKEN: "token" });
  assert.equal(await signed(lambda), "AKENV eu-west-1");
  assert.equal(lambda.requests.at(-1)?.headers["x-amz-security-token"], "token");
});

const regions = ["us-east-1", "eu-west-1", "ap-southeast-7", "il-central-1", "mx-central-1", "cn-north-1", "us-gov-west-1", "us-iso-east-1", "eu-isoe-west-1"];
const flags = ["AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT"];

test("endpoint: in each partition, with FIPS and dual stack, it is the SDK's", async (t) => {
  environment(t, {});
  for (const region of regions) {
    for (const on of [[], [0], [1], [0, 1]]) {
      for (const [index, flag] of flags.entries()) process.env[flag] = String(on.includes(index));
      const bySDK = await endpointBySDK({ region }).catch(String);
      const got = await new Environment({ region }).endpoint(region).catch(String);
      assert.equal(String(got), String(bySDK), `${region} ${on}`);
    }
  }
});

test("endpoint: variables and their order, and an option, which wins", async (t) => {
  environment(t, {});
  const endpoint = async (more = {}) => String(await new Environment({ region: "eu-west-1", ...more }).endpoint("eu-west-1"));
  process.env["AWS_ENDPOINT_URL"] = "http://all:1/base";
  assert.equal(await endpoint(), "http://all:1/base");
  process.env["AWS_ENDPOINT_URL_LAMBDA"] = "http://lambda:2";
  assert.equal(await endpoint(), "http://lambda:2/");
  assert.equal(await endpoint({ endpoint: new URL("http://option") }), "http://option/");
  process.env["AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"] = "true";
  assert.equal(await endpoint(), "https://lambda.eu-west-1.amazonaws.com/");
});

test("endpoint: a path that it has comes before that of Lambda's API", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  for (const base of ["/base", "/base/"]) {
    await lambda.guards({ endpoint: lambda.url + base }).check("create_post", user);
    assert.equal(lambda.requests.at(-1)?.path, "/base/2015-03-31/functions/posts-guard/invocations");
  }
});

const mistakes: [variables: Record<string, string>, message: string][] = [
  [{ AWS_USE_FIPS_ENDPOINT: "yes" }, 'posts-guard could not be invoked: AWS_USE_FIPS_ENDPOINT is "yes", want true or false.'],
  [{ AWS_ENDPOINT_URL: "localhost:3001" }, 'posts-guard could not be invoked: AWS_ENDPOINT_URL is "localhost:3001", want an address with https:.'],
  [
    { AWS_ENDPOINT_URL_LAMBDA: "http://127.0.0.1:1", AWS_USE_FIPS_ENDPOINT: "true" },
    "posts-guard could not be invoked: FIPS and a custom endpoint are not supported together.",
  ],
];

for (const [variables, message] of mistakes) {
  test(`endpoint: ${JSON.stringify(variables)} is a mistake`, async (t) => {
    environment(t, { ...byKeys, AWS_REGION: "eu-west-1", ...variables });
    await assert.rejects(new Guards({ activities }).check("create_post", user), { name: "ConfigurationError", message });
  });
}

const places: [what: string, config: (url: string) => string, variables?: Record<string, string>][] = [
  ["endpoint_url", (url) => `[default]\nendpoint_url = ${url}\n`],
  ["services", (url) => `[default]\nservices = mine\n[services mine]\nlambda =\n  endpoint_url = ${url}\n`],
  ["endpoint_url, in the profile of AWS_PROFILE", (url) => `[profile p]\nendpoint_url = ${url}\naws_access_key_id = AKENV\naws_secret_access_key = secret\n`, { AWS_PROFILE: "p" }],
];

for (const [what, config, variables] of places) {
  test(`endpoint: ${what} of a profile`, async (t) => {
    t.mock.method(console, "warn", () => {}); // the SDK's
    const lambda = await Lambda.start(t, { answer: ok });
    environment(t, { ...byKeys, AWS_REGION: "eu-west-1", ...variables }, config(lambda.url));
    assert.equal(await signed(lambda), "AKENV eu-west-1");
  });
}

test("endpoint: ignore_configured_endpoint_urls and use_fips_endpoint of a profile", async (t) => {
  const config = "[default]\nignore_configured_endpoint_urls = true\nuse_fips_endpoint = true\n";
  environment(t, { AWS_ENDPOINT_URL: "http://all:1" }, config);
  assert.equal(String(await new Environment({ region: "eu-west-1" }).endpoint("eu-west-1")), "https://lambda-fips.eu-west-1.amazonaws.com/");
});

const run = promisify(execFile);

// Node reads some of these variables when it starts.
test("proxies: none is used, as in the SDK for JavaScript", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const proxy = await Lambda.start(t, { answer: ok });
  const program = `
    import { Guards } from ${JSON.stringify(import.meta.resolve("@cric-talk/guards"))};
    const decision = await new Guards().check({ guard: "posts-guard", activity: "create_post" }, { userId: "u1" });
    console.log(decision.reason);`;
  const env: Record<string, string> = { PATH: process.env["PATH"] ?? "", NODE_USE_ENV_PROXY: "1" };
  for (const name of ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"]) env[name] = env[name.toLowerCase()] = proxy.url;
  Object.assign(env, byKeys, { AWS_REGION: "eu-west-1", AWS_ENDPOINT_URL: lambda.url });
  const { stdout } = await run(process.execPath, ["--input-type=module", "--eval", program], { env });
  assert.equal(stdout, "ok\n");
  assert.equal(proxy.requests.length, 0);
  assert.equal(lambda.requests.length, 1);
});

test("certificates: NODE_EXTRA_CA_CERTS counts; AWS_CA_BUNDLE, REQUESTS_CA_BUNDLE and ca_bundle do not, as in the SDK for JavaScript", async (t) => {
  const dir = folder(t);
  const [key, cert] = [join(dir, "key.pem"), join(dir, "cert.pem")];
  const request = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "1"];
  try {
    await run("openssl", [...request, "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]);
  } catch {
    return t.skip("openssl is not installed");
  }
  const program = `
    import { readFileSync } from "node:fs";
    import { createServer } from "node:https";
    import { Guards } from ${JSON.stringify(import.meta.resolve("@cric-talk/guards"))};
    const files = { key: readFileSync(${JSON.stringify(key)}), cert: readFileSync(${JSON.stringify(cert)}) };
    const server = createServer(files, (_, response) => response.end(${JSON.stringify(JSON.stringify(ok))}));
    server.listen(0, async () => {
      const endpoint = "https://localhost:" + server.address().port;
      const guards = new Guards({ endpoint, region: "eu-west-1", credentials: ${JSON.stringify(keys)} });
      const decision = await guards.check({ guard: "posts-guard", activity: "create_post" }, { userId: "u1" }).catch((error) => error);
      console.log(decision.reason ?? decision.name);
      process.exit();
    });`;
  const config = join(dir, "config");
  writeFileSync(config, `[default]\nca_bundle = ${cert}\n`);
  for (const [variables, printed] of [
    [{ NODE_EXTRA_CA_CERTS: cert }, "ok"],
    [{ AWS_CA_BUNDLE: cert, REQUESTS_CA_BUNDLE: cert, AWS_CONFIG_FILE: config }, "ConfigurationError"],
  ] as const) {
    const { stdout } = await run(process.execPath, ["--input-type=module", "--eval", program], { env: { PATH: process.env["PATH"], ...variables } });
    assert.equal(stdout, `${printed}\n`, JSON.stringify(variables));
  }
});

test("X-Amzn-Trace-Id: sent in Lambda, by Invoke and by URL, and not signed", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  noAWS(t);
  process.env["_X_AMZN_TRACE_ID"] = "Root=1-5759e988-bd862e3fe1be46a994272793";
  t.after(() => delete (globalThis as { awslambda?: object }).awslambda);
  const sent = async (urls: Record<string, string>, options = {}) => {
    await lambda.guards({ urls, ...options }).check("create_post", user);
    const { headers } = lambda.requests.at(-1)!;
    assert.doesNotMatch(String(headers.authorization), /SignedHeaders=[^,]*trace/);
    return headers["x-amzn-trace-id"];
  };
  for (const urls of [{}, { "posts-guard": lambda.url }] as Record<string, string>[]) {
    delete process.env["AWS_LAMBDA_FUNCTION_NAME"];
    assert.equal(await sent(urls), undefined);
    process.env["AWS_LAMBDA_FUNCTION_NAME"] = "app";
    assert.equal(await sent(urls), process.env["_X_AMZN_TRACE_ID"]);
  }
  assert.equal(await sent({ "posts-guard": lambda.url }, { client: lambda.client() }), process.env["_X_AMZN_TRACE_ID"]);
  // A function that runs several invocations at once has an id for each.
  (globalThis as { awslambda?: object }).awslambda = { InvokeStore: { getXRayTraceId: () => "Root=2" } };
  assert.equal(await sent({}), "Root=2");
});

for (const way of ["Invoke", "URL"]) {
  test(`a wrong clock, by ${way}: after a 403 the time comes from Date, and the request is signed once more`, async (t) => {
    const lambda = await Lambda.start(t);
    const urls: Record<string, string> = way === "URL" ? { "posts-guard": lambda.url } : {};
    const guards = lambda.guards({ urls });
    const ahead = 20 * 60_000;
    const late = { status: 403, code: "InvalidSignatureException", message: "Signature expired", headers: {} };
    const lag = (index: number) => {
      const time = String(lambda.requests[index]?.headers["x-amz-date"]).replace(/(....)(..)(..T..)(..)(..Z)/, "$1-$2-$3:$4:$5");
      return Date.parse(time) - Date.now();
    };
    const date = () => new Date(Date.now() + ahead).toUTCString();
    lambda.replies = [{ ...late, headers: { date: date() } }, { answer: ok }];
    assert.equal((await guards.check("create_post", user)).reason, "ok");
    assert.equal((await guards.check("create_post", user)).reason, "ok");
    assert.equal(lambda.requests.length, 3);
    between(lag(0), -15_000, 1000);
    for (const index of [1, 2]) between(lag(index), ahead - 15_000, ahead + 1000);
    assert.equal(lambda.requests[0]?.event["requestId"], lambda.requests[1]?.event["requestId"]);
    // A clock that is right, or a refusal for another reason, changes nothing.
    lambda.replies = [{ ...late, headers: { date: date() } }];
    await assert.rejects(guards.check("create_post", user), { name: "ConfigurationError", message: /^AWS refused the credentials/ });
    assert.equal(lambda.requests.length, 4);
    // A clock that jumps all the time costs one request more.
    lambda.replies = [{ ...late, headers: { date: new Date(Date.now() - ahead).toUTCString() } }, { ...late, headers: { date: date() } }];
    await assert.rejects(guards.check("create_post", user), { name: "ConfigurationError" });
    assert.equal(lambda.requests.length, 6);
  });
}

test("connections: at most so many requests are under way, and 50 by default", async (t) => {
  for (const connections of [undefined, 3]) {
    const lambda = await Lambda.start(t, "hang");
    const guards = lambda.guards({ connections });
    const checks = Array.from({ length: 60 }, () => guards.check("create_post", user).catch(() => {}));
    await until(() => lambda.requests.length === (connections ?? 50));
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert.equal(lambda.requests.length, connections ?? 50);
    lambda.replies = [{ answer: ok }];
    lambda.drop();
    await Promise.all(checks);
  }
});

test("AWS_SDK_UA_APP_ID is in the header User-Agent, and sdk_ua_app_id of a profile is not", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  environment(t, {}, "[default]\nsdk_ua_app_id = profile\n");
  await lambda.guards().check("create_post", user);
  process.env["AWS_SDK_UA_APP_ID"] = "my app";
  await lambda.guards().check("create_post", user);
  const sent = lambda.requests.map(({ headers }) => headers["user-agent"]);
  assert.deepEqual(sent, ["guards-typescript", "guards-typescript app/my-app"]);
});

test("AWS_MAX_ATTEMPTS, AWS_RETRY_MODE and AWS_DEFAULTS_MODE have no effect", async (t) => {
  const modes = { AWS_RETRY_MODE: "adaptive", AWS_DEFAULTS_MODE: "mobile" };
  for (const client of [false, true]) {
    const lambda = await Lambda.start(t, { status: 503 });
    environment(t, { ...modes, AWS_MAX_ATTEMPTS: "7" }, "[default]\nmax_attempts = 7\nretry_mode = adaptive\n");
    const guards = lambda.guards(client ? { client: lambda.client() } : {});
    assert.ok((await guards.check("create_post", user)).outage);
    assert.equal(lambda.requests.length, 3);
  }
});

test("without the AWS SDK, variables are enough, and for anything else an error says what to install", async (t) => {
  const lambda = await Lambda.start(t, { answer: ok });
  const dir = folder(t);
  const built = dirname(fileURLToPath(import.meta.resolve("@cric-talk/guards")));
  cpSync(built, join(dir, "guards"), { recursive: true });
  mkdirSync(join(dir, ".aws"));
  writeFileSync(join(dir, ".aws", "config"), "[profile p]\nregion = eu-west-1\n");
  writeFileSync(join(dir, "package.json"), '{"type":"module"}');
  writeFileSync(
    join(dir, "app.js"),
    `import { Guards } from "./guards/index.js";
    const guards = new Guards();
    const call = guards.check({ guard: "posts-guard", activity: "create_post" }, { userId: "u1" });
    console.log(await call.then(({ reason }) => reason, (error) => error.name + ": " + error.message));`,
  );
  const app = async (env: Record<string, string>) =>
    (await run(process.execPath, [join(dir, "app.js")], { env: { PATH: process.env["PATH"], HOME: dir, AWS_ENDPOINT_URL: lambda.url, ...env } })).stdout.trim();
  const region = { AWS_REGION: "eu-west-1" };
  assert.equal(await app({ ...region, ...byKeys }), "ok");
  assert.equal(
    await app(byKeys),
    "ConfigurationError: No AWS region is set. Set AWS_REGION, or pass a Lambda client that has one. " +
      "The AWS SDK is not installed, and is needed to find the region: npm install @aws-sdk/client-lambda",
  );
  assert.equal(
    await app({ ...region, AWS_PROFILE: "p" }),
    "ConfigurationError: No AWS credentials were found: The AWS SDK is not installed, and is needed to find credentials outside of the environment, " +
      "such as those of a profile: npm install @aws-sdk/client-lambda. Give the app a role, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
  );
});
