// next.mjs is app/posts/route.js of a Next.js app.
import { readFile } from "node:fs/promises";
import { Guards, rateLimitHeaders, tooMany } from "@cric-talk/guards";

const activities = JSON.parse(await readFile(new URL("activities.json", import.meta.url), "utf8"));
const guards = new Guards({ activities });

export async function POST(request) {
  const userId = await logIn(request);
  if (!userId) return new Response("log in first", { status: 401 });
  const decision = await guards.check("create_post", { userId });
  if (!decision.allowed) return tooMany(decision); // 429 with Retry-After and the message
  return new Response("created", { status: 201, headers: rateLimitHeaders(decision) }); // write the post
}

/** Stands for your log-in. It believes every name, so don't copy it. */
async function logIn(request) {
  return request.headers.get("Authorization")?.replace("Bearer ", "");
}
