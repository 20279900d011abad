// Asks a guard with AWS's SDK for JavaScript, without the client: node post_sdk.mjs USER REQUEST_ID

import { InvokeCommand, LambdaClient } from "@aws-sdk/client-lambda";

const broken = ["ECONNREFUSED", "ECONNRESET", "EHOSTUNREACH", "ENETUNREACH", "EPIPE", "ETIMEDOUT"];
const lasting = /^(EC2Access|Invalid|KMS)/; // such an error has a status like an outage, but does not pass by itself

// Without throwOnRequestTimeout, the SDK only logs a warning after the timeout and continues to wait.
const guards = new LambdaClient({
  maxAttempts: 3,
  requestHandler: { connectionTimeout: 1000, requestTimeout: 2000, throwOnRequestTimeout: true },
});

class Outage extends Error {}

function isOutage(error) {
  const status = error.$metadata?.httpStatusCode;
  if (error.name === "TimeoutError" || broken.includes(error.code)) return true;
  return status === 429 || (status >= 500 && !lasting.test(error.name));
}

async function ask(guard, event) {
  const request = new InvokeCommand({ FunctionName: guard, Payload: JSON.stringify(event) });
  const response = await guards.send(request).catch((error) => {
    throw isOutage(error) ? new Outage(error.message || error.code, { cause: error }) : error;
  });
  const answer = JSON.parse(response.Payload.transformToString());
  if (response.FunctionError) {
    const text = `${guard}: ${answer.errorType}: ${answer.errorMessage}`;
    throw ["Unavailable", "Sandbox.Timedout"].includes(answer.errorType) ? new Outage(text) : new Error(text);
  }
  if (typeof answer.allowed !== "boolean") throw new Error(`${guard} is no guard`);
  return answer;
}

async function createPost(userId, requestId) {
  const answer = await ask("posts-guard", { userId, activity: "create_post", requestId }).catch((error) => {
    if (!(error instanceof Outage)) throw error;
    console.error("posts-guard:", error.message);
    return { allowed: true }; // go on without a limit
  });
  if (!answer.allowed) return [429, `${answer.message} (wait ${answer.waitTime} ms)`];
  return [201, "created"]; // write the post here
}

console.log(...(await createPost(process.argv[2], process.argv[3])));
