// export.mjs takes one of three slots for a user and works: node export.mjs USER

import { Guards, LimitedError } from "@cric-talk/guards";

const guards = new Guards();
const activity = { guard: "exports-guard", activity: "export" }; // with your list: "export"
try {
  await guards.withSlot(activity, { userId: process.argv[2] }, async (slot) => {
    for (const page of [1, 2, 3]) {
      if (slot.lost) throw new Error("the slot is lost");
      console.log(`page ${page}`); // render it
    }
  });
} catch (error) {
  if (!(error instanceof LimitedError)) throw error;
  console.log(`429 ${error.message}`);
}
