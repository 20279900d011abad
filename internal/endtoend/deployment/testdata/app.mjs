// Asks for six uploads of one user, and prints the answers.
import { readFile } from "node:fs/promises";
import { Guards } from "@cric-talk/guards";

const guards = new Guards({ activities: JSON.parse(await readFile("activities/activities.json", "utf8")) });
const answers = [];
for (let i = 0; i < 6; i++) {
  const decision = await guards.check("upload_photo", { userId: process.argv[2] });
  answers.push(decision.allowed ? "allowed" : decision.reason);
}
console.log(answers.join(" "));
