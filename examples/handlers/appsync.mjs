// appsync.mjs is a Lambda resolver of AppSync for the mutations createPost(text) and createPosts(texts).
import { readFile } from "node:fs/promises";
import { Guards } from "@cric-talk/guards";

const activities = JSON.parse(await readFile(new URL("activities.json", import.meta.url), "utf8"));
const guards = new Guards({ activities });

// AppSync calls the resolver once for each mutation in a request. A list counts as many posts as it has. If the user is over
// the limit, guarded throws, and AppSync sends the message in "errors".
export async function handler({ arguments: input, identity }) {
  const texts = input.texts ?? [input.text];
  return guards.guarded("create_post", { userId: identity.sub, count: texts.length }, () => save(texts));
}

/** Writes the posts. */
async function save(texts) {
  return { created: texts.length };
}
