// post_mail.mjs sends a mail at 80 % and at 100 % of a limit: node post_mail.mjs USER REQUEST_ID

import { readFile } from "node:fs/promises";
import { Guards } from "@cric-talk/guards";

const guards = new Guards({ activities: JSON.parse(await readFile("activities.json", "utf8")) });
const [userId, requestId] = process.argv.slice(2);
const { allowed, message, crossed, activityCount, limit } = await guards.check("create_post", { userId, requestId });
console.log(allowed ? "201 created" : `429 ${message}`);
if (crossed) console.log(`mail to ${userId}: you have used ${activityCount} of your ${limit} posts`);
