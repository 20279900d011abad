import { isPlain, kindOf, read } from "./args.js";
import { pause } from "./cancel.js";
import type { Decision } from "./decision.js";
import { ValidationError } from "./errors.js";
import { maxTimer } from "./options.js";

/** How long `wait` may wait. */
export interface WaitOptions {
  /** The longest time to wait, in milliseconds. Default: 60,000. */
  maxWait?: number | undefined;
  /** Ends the wait with an AbortError. */
  signal?: AbortSignal | undefined;
}

/** What `wait` reads of a decision. */
export type Waiting = Pick<Decision, "waitTime"> & Partial<Pick<Decision, "allowed" | "reason">>;

/** See Guards.wait. */
export async function wait(decision: Waiting, options: WaitOptions = {}): Promise<boolean> {
  if (!isPlain(decision)) throw new ValidationError(`the decision is ${kindOf(decision)}, want that of a check`);
  const { maxWait = 60_000, signal } = read<WaitOptions>(options, ["maxWait", "signal"]);
  const { allowed, reason, waitTime } = decision;
  if (waitTime !== undefined && !(Number.isFinite(waitTime) && waitTime >= 0)) {
    throw new ValidationError(`waitTime is ${typeof waitTime === "number" ? waitTime : kindOf(waitTime)}, want milliseconds`);
  }
  if (reason === "shadow") return true; // its waitTime is that of the refusal which did not happen
  if (!waitTime) return allowed === true || waitTime === 0;
  if (waitTime > maxWait || reason === "blocked") return false;
  // Without a random part, everybody who was refused would come back in the same millisecond.
  const end = performance.now() + waitTime + Math.random() * Math.max(50, waitTime / 10);
  for (let left = end - performance.now(); left > 0; left = end - performance.now()) {
    await pause(Math.min(left, maxTimer), signal);
  }
  return true;
}
