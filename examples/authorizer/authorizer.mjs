// authorizer.mjs is a Lambda authorizer of API Gateway that asks a guard: of the type REQUEST for a REST API, and with payload
// 2.0 and simple responses for an HTTP API. What it answers counts for one request, so API Gateway must not cache it.
import { readFile } from "node:fs/promises";
import { accountKey, Guards, ipKey, refusal } from "@cric-talk/guards";
import { JwtVerifier } from "aws-jwt-verify";
import {
  JwtInvalidClaimError,
  JwtInvalidSignatureAlgorithmError,
  JwtInvalidSignatureError,
  JwtParseError,
  JwtWithoutValidKidError,
  KidNotFoundInJwksError,
  WaitPeriodNotYetEndedJwkError,
} from "aws-jwt-verify/error";

const { AUDIENCE, ISSUER, LIMIT_BY, ON_OUTAGE } = process.env;
const activities = JSON.parse(await readFile(new URL("activities.json", import.meta.url), "utf8"));
const guards = new Guards({ activities, onOutage: ON_OUTAGE }); // outside the handler, so that all calls of an instance share it

/** The activity of each route that has this authorizer. */
const activityOf = { "POST /posts": "create_post" };

/** What can be wrong with a token. The last two are about a key that its issuer does not have. */
const faults = [
  JwtParseError,
  JwtInvalidSignatureError,
  JwtInvalidSignatureAlgorithmError,
  JwtInvalidClaimError,
  JwtWithoutValidKidError,
  KidNotFoundInJwksError,
  WaitPeriodNotYetEndedJwkError,
];

/** The ways to tell callers apart. Each returns a function from the event to the caller's id, or to nothing for an unknown caller. */
const ways = { token: byToken, key: () => byKey, address: () => byAddress };
const callerOf = ways[LIMIT_BY]();

export async function handler(event) {
  const route = event.routeKey ?? `${event.httpMethod} ${event.resource}`;
  if (!activityOf[route]) throw new Error(`authorizer.mjs has no activity for ${route}`);
  const userId = await callerOf(event);
  if (!userId) return unknown(event);
  // The check gets no requestContext.requestId: a client of a REST API can choose it, so that all its requests count as one.
  const decision = await guards.check(activityOf[route], { userId });
  if (decision.outage && !decision.allowed) throw decision.outage; // API Gateway answers 500
  return event.version === "2.0" ? simple(decision) : policy(event, decision);
}

/** Answers an HTTP API, which sends 403 if the caller is not authorized. The context is for the backend and the access log. */
function simple({ allowed, userId, reason }) {
  return { isAuthorized: allowed, context: { userId, reason } };
}

/** Answers a REST API. The gateway response ACCESS_DENIED in template.yaml makes 429 of Deny, and reads the context. */
function policy({ methodArn }, decision) {
  const { allowed, userId, message } = decision;
  // The policy names the stage instead of the method. A path can be too long for a policy, and nothing keeps this answer.
  const Resource = `${methodArn.split("/", 2).join("/")}/*`;
  const Statement = [{ Action: "execute-api:Invoke", Effect: allowed ? "Allow" : "Deny", Resource }];
  const context = allowed
    ? { userId }
    : { message: JSON.stringify(message).slice(1, -1), retryAfter: refusal(decision).headers["Retry-After"] }; // quoted in the template
  return { principalId: userId, policyDocument: { Version: "2012-10-17", Statement }, context };
}

/** Refuses a caller without a valid token or key. A REST API answers 401, and an HTTP API 403. */
function unknown({ version }) {
  if (version === "2.0") return { isAuthorized: false };
  throw new Error("Unauthorized"); // this text alone means 401
}

/** Takes the user from a JSON Web Token of any OpenID provider. For Cognito's access tokens, use CognitoJwtVerifier. */
function byToken() {
  const verifier = JwtVerifier.create({ issuer: ISSUER, audience: AUDIENCE || undefined }); // without an audience, each call fails
  return async ({ headers }) => {
    const name = Object.keys(headers ?? {}).find((header) => header.toLowerCase() === "authorization");
    const token = /^Bearer (\S+)$/i.exec(headers?.[name])?.[1];
    try {
      return token && (await verifier.verify(token)).sub;
    } catch (error) {
      if (faults.some((fault) => error instanceof fault)) return undefined;
      throw error; // the issuer's keys can't be read, or a setting is wrong
    }
  };
}

/** Takes the API key of a REST API's method that requires one. API Gateway checks that the key exists. The table gets its hash. */
function byKey({ requestContext: { identity } }) {
  if (!identity) throw new Error("an HTTP API checks no API keys");
  return identity.apiKey && accountKey(identity.apiKey, { key: null, fold: false });
}

/** Takes the address that API Gateway has seen. docs/strangers.md says what to pass behind CloudFront. */
function byAddress({ requestContext: { identity, http } }) {
  return ipKey(identity?.sourceIp ?? http.sourceIp);
}
