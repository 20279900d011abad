import { setTimeout as sleep } from "node:timers/promises";

/** What is done when a signal aborts, for each call that has it and has not ended, and the listener that does it. */
const waiting = new WeakMap<AbortSignal, { acts: Set<() => void>; ring: () => void }>();

/**
 * Calls `act` when the signal aborts. Returns a function that switches this off. A signal gets one listener, however many
 * calls have it, because Node warns of a leak at the eleventh listener.
 */
export function whenAborted(signal: AbortSignal, act: () => void): () => void {
  let all = waiting.get(signal);
  if (!all) {
    const acts = new Set<() => void>();
    all = { acts, ring: () => acts.forEach((act) => act()) };
    waiting.set(signal, all);
    signal.addEventListener("abort", all.ring);
  }
  const { acts, ring } = all;
  acts.add(act);
  return () => {
    if (!acts.delete(act) || acts.size > 0) return;
    signal.removeEventListener("abort", ring);
    waiting.delete(signal);
  };
}

/** Waits so many milliseconds. If the signal aborts, it throws Node's AbortError. */
export async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  if (!signal) return sleep(ms);
  const ending = new AbortController();
  const end = () => ending.abort(signal.reason);
  const off = whenAborted(signal, end);
  if (signal.aborted) end();
  try {
    await sleep(ms, undefined, { signal: ending.signal });
  } finally {
    off();
  }
}
