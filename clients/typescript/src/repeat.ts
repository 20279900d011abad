import type { Call } from "./call.js";
import { pause, whenAborted } from "./cancel.js";
import { OutageError } from "./errors.js";
import type { Settings } from "./options.js";

/** What is read of a call here. */
type Timed = Pick<Call, "name" | "signal" | "time">;

/** The longest pause before the first repeat, in milliseconds. It doubles with each further repeat. */
const firstPause = 50;

/**
 * Sends a request until it has an answer or an error that a repeat would not mend. An attempt gets all the remaining
 * time if no other one could follow it.
 */
export async function repeat<T>(
  call: Timed & Pick<Call, "timeout">,
  { maxTries, attemptTimeout }: Pick<Settings, "maxTries" | "attemptTimeout">,
  send: (ending: Ending) => Promise<T>,
): Promise<T> {
  const { time, timeout, signal } = call;
  for (let n = 0; ; n++) {
    const maxPause = firstPause * 2 ** n;
    const left = timeout - time.elapsed;
    const last = n + 1 >= maxTries || left - attemptTimeout - maxPause < attemptTimeout;
    try {
      return await within(last ? left : attemptTimeout, call, send);
    } catch (error) {
      const rest = Math.random() * maxPause;
      const again = error instanceof OutageError && error.retryable && n + 1 < maxTries;
      if (!again || timeout - time.elapsed - rest < attemptTimeout) throw error;
      await pause(rest, signal);
    }
  }
}

/** An Ending ends one attempt early. It does what an AbortController would do here, and costs a tenth. */
export class Ending {
  readonly #acts: (() => void)[] = [];
  /** Why the attempt was ended; undefined if it was not. */
  reason: Error | undefined;

  /** Ends the attempt. Only the first reason counts. */
  end(reason: Error): void {
    if (this.reason) return;
    this.reason = reason;
    for (const act of this.#acts) act();
  }

  /** Calls `act` at the end. */
  whenEnded(act: () => void): void {
    this.#acts.push(act);
  }

  /** Throws the reason if the attempt was ended. */
  check(): void {
    if (this.reason) throw this.reason;
  }
}

/** The app cancelled a call with its signal. */
export class AbortError extends Error {
  static { this.prototype.name = "AbortError"; }
  readonly code = "ABORT_ERR"; // as the errors of Node
}

/** Throws an AbortError if the app has cancelled the call. */
export function checkSignal(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw cancelled(signal);
}

/** Returns the error of a call that the app has cancelled. */
export function cancelled(signal: AbortSignal): AbortError {
  return new AbortError("The call was cancelled", { cause: signal.reason });
}

/**
 * Runs one step, and aborts it after so many milliseconds of the call's time, or when the app cancels the call. The
 * result is then an OutageError or an AbortError. The step can end itself with an error.
 */
export async function within<T>(ms: number, { name, time, signal }: Timed, step: (ending: Ending) => Promise<T>): Promise<T> {
  checkSignal(signal);
  const ending = new Ending();
  const off = time.alarm(ms, () => ending.end(timedOut(name, ms)));
  time.start();
  const ignore = signal && whenAborted(signal, () => ending.end(cancelled(signal)));
  try {
    return await new Promise<T>((resolve, reject) => {
      ending.whenEnded(() => reject(ending.reason));
      step(ending).then(resolve, reject);
    });
  } catch (error) {
    checkSignal(signal);
    throw ending.reason ?? error;
  } finally {
    off();
    ignore?.();
  }
}

/** Returns the error for a guard that did not answer for so many milliseconds. */
export function timedOut(name: string, ms: number): OutageError {
  return new OutageError(`${name} did not answer: timeout after ${Math.round(ms)} ms`, { guard: name, retryable: true });
}
