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

  /** Throws an OutageError if the function is to be left alone. If this call is the probe, it returns until when. */
  enter(name: string): number | undefined {
    const until = this.#closedUntil.get(name);
    if (until === undefined) return undefined;
    if (performance.now() < until) throw new OutageError(`${name} did not answer a moment ago`, { guard: name });
    return this.failed(name); // the others wait for the probe
  }

  /** Notes that a call ended as an outage. It returns until when other calls fail. */
  failed(name: string): number {
    const until = performance.now() + pause;
    this.#closedUntil.set(name, until);
    return until;
  }

  /** Notes that the app cancelled a call. If it was the probe, the next call probes. */
  cancelled(name: string, probe: number | undefined): void {
    if (probe !== undefined && this.#closedUntil.get(name) === probe) this.#closedUntil.set(name, 0);
  }

  /** Notes that the function, or AWS for it, gave an answer of any kind. */
  worked(name: string): void {
    this.#closedUntil.delete(name);
  }
}
