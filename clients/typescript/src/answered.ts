import type { Decision } from "./decision.js";

/** When the guards answered, by decision, in Unix milliseconds of their own clocks. A copy of a decision has no entry. */
const dates = new WeakMap<Decision, number>();

/** Notes the header Date of the response that brought a decision. Returns the decision. */
export function answeredAt(decision: Decision, date: string | undefined): Decision {
  if (decision.at !== undefined) return decision;
  const at = Date.parse(date ?? "");
  if (!Number.isNaN(at)) dates.set(decision, at);
  return decision;
}

/**
 * Returns when a decision was made by the guard's clock, in Unix milliseconds: its `at`, or else the second when the
 * response was sent. It is undefined for a copy without `at`. This machine's clock can be wrong, so it never counts.
 */
export function madeAt(decision: Decision): number | undefined {
  return decision.at ?? dates.get(decision);
}
