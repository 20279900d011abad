import { setTimeout as sleep } from "node:timers/promises";
import { OutageError } from "./errors.js";

/** How long and how often a request may be tried. */
export interface Budget {
  /** When the call must have ended, on the clock of performance.now. */
  end: number;
  /** At most so many attempts. */
  attempts: number;
  /** How long an attempt may take if another one can follow, in milliseconds. */
  attemptTimeout: number;
}

/** The longest pause before the first repeat, in milliseconds. It doubles with each further repeat. */
const firstPause = 50;

/**
 * Sends a request until it has an answer or an error that a repeat would not mend. An attempt after which no other
 * one could follow gets all the remaining time.
 */
export async function repeat<T>(name: string, budget: Budget, send: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const { end, attempts, attemptTimeout } = budget;
  for (let n = 0; ; n++) {
    const longestPause = firstPause * 2 ** n;
    const left = end - performance.now();
    const last = n + 1 >= attempts || left - attemptTimeout - longestPause < attemptTimeout;
    try {
      return await within(last ? left : attemptTimeout, name, send);
    } catch (error) {
      const pause = Math.random() * longestPause;
      const again = error instanceof OutageError && error.retryable && n + 1 < attempts;
      if (!again || end - performance.now() - pause < attemptTimeout) throw error;
      await sleep(pause);
    }
  }
}

/** Runs one step, and aborts it after so many milliseconds. The result is then an OutageError. */
export async function within<T>(ms: number, name: string, step: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const late = new AbortController();
  const ended = new Promise<never>((_, reject) => late.signal.addEventListener("abort", reject));
  const timer = setTimeout(() => late.abort(), ms);
  try {
    return await Promise.race([step(late.signal), ended]);
  } catch (error) {
    if (!late.signal.aborted) throw error;
    throw new OutageError(`${name} did not answer: timeout after ${Math.round(ms)} ms`, { guard: name, retryable: true });
  } finally {
    clearTimeout(timer);
  }
}
