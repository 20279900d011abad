import { setTimeout as sleep } from "node:timers/promises";
import type { Decision } from "./decision.js";
import { longestTimer } from "./options.js";

/** How long `wait` may wait. */
export interface WaitOptions {
  /** The longest time to wait, in milliseconds. Default: 60,000. */
  most?: number | undefined;
  /** Ends the wait with an AbortError. */
  signal?: AbortSignal | undefined;
}

/** What `wait` reads of a decision. */
export type Waiting = Pick<Decision, "waitTime"> & Partial<Pick<Decision, "allowed">>;

/** See Guards.wait. */
export async function wait({ allowed, waitTime }: Waiting, options: WaitOptions = {}): Promise<boolean> {
  const { most = 60_000, signal } = options;
  if (!waitTime) return allowed === true || waitTime === 0;
  if (waitTime > most) return false;
  // Without a random part, everybody who was refused would come back in the same millisecond.
  const end = performance.now() + waitTime + Math.random() * Math.max(50, waitTime / 10);
  for (let left = end - performance.now(); left > 0; left = end - performance.now()) {
    await sleep(Math.min(left, longestTimer), undefined, signal ? { signal } : {});
  }
  return true;
}
