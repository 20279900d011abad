// Credentials that the AWS SDK finds: each source is a server that speaks the protocol of the real one.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Guards } from "@cric-talk/guards";
import { activities } from "./activities.js";
import { Lambda, noAWS, ok } from "./lambda.js";

interface Keys {
  id: string;
  expires: Date;
}

/** A kind of source. It answers only those who show what the real one asks for. */
interface Source {
  name: string;
  /** Sets up the environment of an app. Secret is what the app has to show, as long as it is in force. */
  prepare: (dir: string, url: string, secret: string) => Record<string, string>;
  /** Lets the app have another secret; missing: it keeps the first one. */
  rotate?: (dir: string, secret: string) => void;
  /** Returns what is answered; undefined: the request is refused. */
  answer: (request: IncomingMessage, body: string, secret: string, keys: Keys) => string | undefined;
}

const secret = "the-secret-of-the-app";

const inContainer = (request: IncomingMessage, _: string, secret: string, { id, expires }: Keys) => {
  if (`${request.method} ${request.url} ${request.headers.authorization}` !== `GET /v1/credentials ${secret}`) return undefined;
  return JSON.stringify({ AccessKeyId: id, SecretAccessKey: "secret", Token: "session", Expiration: expires.toISOString() });
};

const metadata = "/latest/meta-data/iam/security-credentials/";
const role = { AWS_ROLE_ARN: "arn:aws:iam::123456789012:role/app", AWS_ROLE_SESSION_NAME: "app" };
const write = (file: string) => (dir: string, secret: string) => writeFileSync(join(dir, file), secret);

const sources: Source[] = [
  {
    name: "a container of ECS",
    prepare: (_, url, secret) => ({ AWS_CONTAINER_CREDENTIALS_FULL_URI: `${url}/v1/credentials`, AWS_CONTAINER_AUTHORIZATION_TOKEN: secret }),
    answer: inContainer,
  },
  {
    name: "EKS Pod Identity",
    prepare: (dir, url, secret) => {
      write("pod")(dir, secret);
      return { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${url}/v1/credentials`, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: join(dir, "pod") };
    },
    rotate: write("pod"), // EKS writes a new token every few hours
    answer: inContainer,
  },
  {
    name: "IMDS, version 2",
    prepare: (_, url) => ({ AWS_EC2_METADATA_DISABLED: "false", AWS_EC2_METADATA_SERVICE_ENDPOINT: url }),
    answer: ({ method, url, headers }, _, secret, { id, expires }) => {
      if (method === "PUT" && url === "/latest/api/token" && headers["x-aws-ec2-metadata-token-ttl-seconds"]) return secret;
      if (method !== "GET" || headers["x-aws-ec2-metadata-token"] !== secret) return undefined;
      if (url === metadata) return "app-role";
      if (url !== `${metadata}app-role`) return undefined;
      const times = { LastUpdated: new Date().toISOString(), Expiration: expires.toISOString() };
      return JSON.stringify({ Code: "Success", Type: "AWS-HMAC", AccessKeyId: id, SecretAccessKey: "secret", Token: "session", ...times });
    },
  },
  {
    name: "web identity",
    prepare: (dir, url, secret) => {
      write("identity")(dir, secret);
      return { ...role, AWS_WEB_IDENTITY_TOKEN_FILE: join(dir, "identity"), AWS_ENDPOINT_URL_STS: url };
    },
    rotate: write("identity"),
    answer: ({ method }, body, secret, { id, expires }) => {
      const form = Object.fromEntries(new URLSearchParams(body));
      if (method !== "POST" || form["WebIdentityToken"] !== secret || form["RoleArn"] !== role.AWS_ROLE_ARN) return undefined;
      const action = form["Action"];
      const fields = { AccessKeyId: id, SecretAccessKey: "secret", SessionToken: "session", Expiration: expires.toISOString() };
      const xml = Object.entries(fields).map(([name, value]) => `<${name}>${value}</${name}>`);
      return `<${action}Response><${action}Result><Credentials>${xml.join("")}</Credentials></${action}Result></${action}Response>`;
    },
  },
  {
    name: "SSO",
    prepare: (dir, url, secret) => {
      const session = "sso_session = mine\nsso_account_id = 123456789012\nsso_role_name = app\n";
      writeFileSync(join(dir, "config"), `[profile app]\n${session}[sso-session mine]\nsso_region = us-east-1\nsso_start_url = https://mine.awsapps.com/start\n`);
      const cache = join(dir, ".aws", "sso", "cache"); // where aws sso login keeps its token
      mkdirSync(cache, { recursive: true });
      const token = { accessToken: secret, expiresAt: new Date(Date.now() + 8 * 3_600_000).toISOString() };
      writeFileSync(join(cache, `${createHash("sha1").update("mine").digest("hex")}.json`), JSON.stringify(token));
      return { AWS_PROFILE: "app", AWS_CONFIG_FILE: join(dir, "config"), AWS_ENDPOINT_URL_SSO: url };
    },
    answer: ({ url, headers }, _, secret, { id, expires }) => {
      const { pathname, searchParams: asked } = new URL(url ?? "", "http://sso");
      if (headers["x-amz-sso_bearer_token"] !== secret || pathname !== "/federation/credentials") return undefined;
      if (asked.get("role_name") !== "app" || asked.get("account_id") !== "123456789012") return undefined;
      return JSON.stringify({ roleCredentials: { accessKeyId: id, secretAccessKey: "secret", sessionToken: "session", expiration: expires.getTime() } });
    },
  },
];

/** Starts Lambda and a source, and sets the environment of an app that has its secret, until the end of the test. */
async function start(t: TestContext, { answer, prepare }: Source) {
  t.mock.method(console, "warn", () => {}); // the SDK's
  const lambda = await Lambda.start(t, { answer: ok });
  const state = { url: "", asked: 0, refuses: false, secret, keys: { id: "", expires: new Date() } };
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    state.asked++;
    const text = state.refuses ? undefined : answer(request, body, state.secret, state.keys);
    response.writeHead(text === undefined ? 403 : 200).end(text);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  state.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  noAWS(t);
  const dir = mkdtempSync(join(tmpdir(), "guards-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const variables = { HOME: dir, AWS_REGION: "eu-west-1", AWS_ENDPOINT_URL_LAMBDA: lambda.url };
  Object.assign(process.env, variables, prepare(dir, state.url, state.secret));
  return { lambda, at: state, dir, guards: new Guards({ activities, decisionTimeout: 5000, timeout: 20_000 }) };
}

const inMinutes = (minutes: number) => new Date(Date.now() + minutes * 60_000);

for (const source of sources) {
  test(`credentials of ${source.name}: they sign, are renewed before their end, and kept until then`, async (t) => {
    const { lambda, at, dir, guards } = await start(t, source);
    const signedWith = async () => {
      assert.equal((await guards.check("create_post", { userId: "u1" })).reason, "ok");
      const { headers } = lambda.requests.at(-1)!;
      assert.equal(headers["x-amz-security-token"], "session");
      return /Credential=(\w+)\//.exec(String(headers.authorization))?.[1];
    };
    at.keys = { id: "AKFIRST", expires: inMinutes(4) };
    assert.equal(await signedWith(), "AKFIRST");
    at.keys = { id: "AKSECOND", expires: inMinutes(60) };
    if (source.rotate) source.rotate(dir, (at.secret = "another-secret"));
    let key = await signedWith(); // the SDK can renew in the background, and let a call use the old ones meanwhile
    for (let n = 0; n < 100 && key === "AKFIRST"; n++) {
      await sleep(20);
      key = await signedWith();
    }
    assert.equal(key, "AKSECOND");
    const { asked } = at;
    at.keys = { id: "AKTHIRD", expires: inMinutes(60) };
    assert.equal(await signedWith(), "AKSECOND");
    assert.equal(at.asked, asked);
  });

  test(`credentials of ${source.name}: a source that refuses lets no user pass, and its secret is not shown`, async (t) => {
    const { lambda, at, guards } = await start(t, source);
    at.refuses = true;
    await assert.rejects(guards.check("create_post", { userId: "u1" }), (error: Error) => {
      assert.equal(error.name, "ConfigurationError");
      assert.match(error.message, /^No AWS credentials were found/);
      assert.ok(!error.message.includes(secret));
      return true;
    });
    assert.ok(at.asked > 0);
    assert.equal(lambda.requests.length, 0);
  });
}
