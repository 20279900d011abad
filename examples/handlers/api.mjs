// api.mjs is a Lambda function behind a REST API or an HTTP API of API Gateway, or a Function URL.
import { readFile } from "node:fs/promises";
import { Guards, rateLimitHeaders, tooManyForLambda } from "@cric-talk/guards";

const activities = JSON.parse(await readFile(new URL("activities.json", import.meta.url), "utf8"));
const guards = new Guards({ activities }); // outside the handler, so that all calls of an instance share it

export async function handler(event) {
  const decision = await guards.check("create_post", { userId: userOf(event) });
  if (!decision.allowed) return tooManyForLambda(event, decision); // 429 with Retry-After and the message
  return { statusCode: 201, headers: rateLimitHeaders(decision), body: "created" }; // write the post
}

/** Returns the user of a REST API's Cognito authorizer, of an HTTP API's JWT, or of a signature, which a Function URL checks. */
function userOf({ requestContext: { authorizer } }) {
  return authorizer?.claims?.sub ?? authorizer?.jwt?.claims?.sub ?? authorizer?.iam?.userId;
}
