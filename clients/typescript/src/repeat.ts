import { setTimeout as sleep } from "node:timers/promises";
import { OutageError } from "./errors.js";

/** How long and how often a request may be tried. */
export interface Budget {
  /** The function's name, for errors. */
  name: string;
  /** Set if the app can cancel the call. */
  signal: AbortSignal | undefined;
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
export async function repeat<T>(budget: Budget, send: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const { end, attempts, attemptTimeout, signal } = budget;
  for (let n = 0; ; n++) {
    const longestPause = firstPause * 2 ** n;
    const left = end - performance.now();
    const last = n + 1 >= attempts || left - attemptTimeout - longestPause < attemptTimeout;
    try {
      return await within(last ? left : attemptTimeout, budget, send);
    } catch (error) {
      const pause = Math.random() * longestPause;
      const again = error instanceof OutageError && error.retryable && n + 1 < attempts;
      if (!again || end - performance.now() - pause < attemptTimeout) throw error;
      await sleep(pause, undefined, signal ? { signal } : {});
    }
  }
}

/** The app cancelled a call with its signal. */
export class AbortError extends Error {
  static {
    this.prototype.name = "AbortError";
  }
  readonly code = "ABORT_ERR"; // as the errors of Node
}

/** Throws an AbortError if the app has cancelled the call. */
export function checkSignal(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new AbortError("The call was cancelled", { cause: signal.reason });
}

/**
 * Runs one step, and aborts it after so many milliseconds, or when the app cancels the call. The result is then an
 * OutageError or an AbortError.
 */
export async function within<T>(
  ms: number,
  { name, signal }: Pick<Budget, "name" | "signal">,
  step: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  checkSignal(signal);
  const ending = new AbortController();
  const ended = new Promise<never>((_, reject) => ending.signal.addEventListener("abort", reject));
  const late = () => ending.abort(new OutageError(`${name} did not answer: timeout after ${Math.round(ms)} ms`, { guard: name, retryable: true }));
  const cancel = () => ending.abort();
  const timer = setTimeout(late, ms);
  signal?.addEventListener("abort", cancel);
  try {
    return await Promise.race([step(ending.signal), ended]);
  } catch (error) {
    checkSignal(signal);
    throw ending.signal.aborted ? ending.signal.reason : error;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", cancel);
  }
}
