// The compiler checks this file: each line after @ts-expect-error must be an error.
import type { Response } from "express";
import { type Activity, type Decision, Guards, type Reason } from "@cric-talk/guards";
import { limit } from "@cric-talk/guards/express";

export async function types(guards: Guards): Promise<string> {
  await guards.check("create_post", { userId: "u1" });
  await guards.check({ guard: "photos-guard", activity: "upload_photo" }, { userId: "u1" });
  // @ts-expect-error The activity is not known.
  await guards.check("create_pots", { userId: "u1" });
  // @ts-expect-error The user is missing.
  await guards.check("create_post", {});
  // @ts-expect-error The field is misspelled.
  await guards.check("create_post", { userId: "u1", teir: "premium" });
  // @ts-expect-error A release needs a receipt.
  await guards.release("create_post", { userId: "u1" });
  // @ts-expect-error The value is not known.
  new Guards({ onOutage: "open" });

  limit(guards, "create_post", { userId: (request) => request.get("x-user") });
  limit(guards, "create_post", { userId: () => "u1", refused: (_, __, response: Response) => void response.end() });
  // @ts-expect-error The user is missing.
  limit(guards, "create_post", {});

  const activity: Activity = "pin";
  const decision: Decision = await guards.status(activity, { userId: "u1" });
  const reason: Reason = decision.reason;
  const left: number | undefined = decision.remaining;
  return guards.guarded("create_post", { userId: "u1" }, (d) => `${d.reason} ${reason} ${left}`);
}
