import { OutageError } from "./errors.js";

/** How long a function is left alone after an outage, in milliseconds. */
const pause = 1000;

/**
 * A Breaker makes calls fail at once while a function does not answer, so that an outage does not cost every request
 * of the app the whole timeout. After an outage, calls fail for a second. Then one call probes the function, while
 * others still fail for at most a further second. An outage that the guard itself reports does not count: perhaps only
 * one user's key is throttled.
 */
export class Breaker {
  /** When the next call may probe, by function, on the clock of performance.now. */
  readonly #closedUntil = new Map<string, number>();

  /** Throws an OutageError if the function is to be left alone. */
  enter(name: string): void {
    const until = this.#closedUntil.get(name);
    if (until === undefined) return;
    if (performance.now() < until) throw new OutageError(`${name} did not answer a moment ago`, { guard: name });
    this.failed(name); // this call is the probe; the others wait for it
  }

  /** Notes that a call ended as an outage. */
  failed(name: string): void {
    this.#closedUntil.set(name, performance.now() + pause);
  }

  /** Notes that the function, or AWS for it, gave an answer of any kind. */
  worked(name: string): void {
    this.#closedUntil.delete(name);
  }
}
