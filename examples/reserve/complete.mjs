// complete.mjs reserves 4,000 tokens for a user and settles for what was used: node complete.mjs USER

import { Guards } from "@cric-talk/guards";

const guards = new Guards();
const activity = { guard: "exports-guard", activity: "complete" }; // 100000/1d, Hold
const reserved = await guards.check(activity, { userId: process.argv[2], count: 4000 });
if (reserved.allowed) {
  const used = 1400; // ask the model
  await guards.settle(reserved, used);
  console.log(`${used} tokens`);
} else {
  console.log(`429 ${reserved.message}`);
}
