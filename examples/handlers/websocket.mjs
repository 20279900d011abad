// websocket.mjs is a Lambda function behind a route of an API Gateway WebSocket API. The route needs a route response: it sends
// the body that the function returns to the client. A status is not sent, so the body says that a message was refused.
import { readFile } from "node:fs/promises";
import { Guards } from "@cric-talk/guards";

const activities = JSON.parse(await readFile(new URL("activities.json", import.meta.url), "utf8"));
const guards = new Guards({ activities });

export async function handler({ body, requestContext: { authorizer } }) {
  const decision = await guards.check("send_message", { userId: authorizer.principalId });
  if (!decision.allowed) return answer(429, { refused: decision.message, waitTime: decision.waitTime });
  return answer(200, { sent: JSON.parse(body).text }); // send the message to the others
}

function answer(statusCode, body) {
  return { statusCode, body: JSON.stringify(body) };
}
