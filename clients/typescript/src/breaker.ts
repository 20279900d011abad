import { ConfigurationError, type GuardsError, OutageError } from "./errors.js";
import { Moment } from "./moment.js";

/** How long a function is left alone after an outage, in milliseconds. */
export const pause = 1000;

/** What is known about one function. */
class State {
  /** How many calls the function, or AWS for it, has answered. */
  answers = 0;
  /** In an outage: since when calls fail at once. */
  paused: Moment | undefined;
  /** Why calls fail, if it is a mistake. */
  mistake: ConfigurationError | undefined;
  /** The latest probe of this pause. */
  probe: Caller | undefined;
  /** What ends the calls that wait in this process. */
  readonly waiting = new Set<() => void>();
}

/**
 * A Breaker makes calls fail at once while a function does not answer, so that an outage does not cost every request
 * of the app the whole timeout. After an outage, calls fail for a second. Then one call probes the function, while
 * others still fail for at most a further second. One lost call is no outage if the function answered another one
 * meanwhile. Neither is an outage that the guard itself reports: perhaps only one user's key is throttled.
 */
export class Breaker {
  readonly #states = new Map<string, State>();

  /** Whether this client has ever had a response, from any function or from AWS. */
  reached = false;

  /**
   * Throws an OutageError if the function must not be called now, or the mistake that the last call found. Functions with the
   * same key fail together.
   */
  enter(name: string, key = name): Caller {
    let state = this.#states.get(key);
    if (!state) this.#states.set(key, (state = new State()));
    if (!state.paused) return new Caller(name, state, this);
    if (state.paused.age < pause) throw leftAlone(name, state);
    state.paused = new Moment(); // the others wait for the probe
    return (state.probe = new Caller(name, state, this));
  }
}

/** A Caller is one call's part in the breaker. */
export class Caller {
  readonly #name: string;
  readonly #state: State;
  readonly #breaker: Breaker;
  #answers: number;
  /** Whether a request of this call had its socket. */
  began = false;

  /** @internal */
  constructor(name: string, state: State, breaker: Breaker) {
    this.#name = name;
    this.#state = state;
    this.#breaker = breaker;
    this.#answers = state.answers;
  }

  /** Whether the function has answered no call since this one began. */
  get silent(): boolean {
    return this.#state.answers === this.#answers;
  }

  /** Notes that a request of this call has its socket. The call begins with the first one. */
  begin(): void {
    if (!this.began) this.#answers = this.#state.answers;
    this.began = true;
  }

  /** Notes that the call waits in this process. If the function must not be called now, the call is ended. */
  wait(end: (error: GuardsError) => void): () => void {
    const { paused, probe, waiting } = this.#state;
    const giveUp = () => end(leftAlone(this.#name, this.#state));
    if (paused && probe !== this) giveUp();
    waiting.add(giveUp);
    return () => waiting.delete(giveUp);
  }

  /** Notes that a request of this call had an HTTP response. */
  heard(): void {
    this.#breaker.reached = true;
  }

  /** Notes that the function, or AWS for it, gave an answer of any kind. */
  answered(): void {
    this.#state.answers++;
    this.#state.paused = undefined;
  }

  /** Notes that the call ended as an outage, or as a mistake that is like one: nothing is there. */
  lost(error?: GuardsError): void {
    const state = this.#state;
    if (!this.silent || (state.paused && state.probe !== this)) return;
    state.paused = new Moment();
    state.mistake = error instanceof ConfigurationError ? error : undefined;
    state.probe = undefined;
    for (const giveUp of state.waiting) giveUp();
  }

  /** Notes that the app cancelled the call. If it was the probe, the next call probes. */
  cancelled(): void {
    if (this.#state.probe === this && this.#state.paused) this.#state.paused = new Moment(Infinity);
  }
}

function leftAlone(name: string, { mistake }: State): GuardsError {
  return mistake ?? new OutageError(`${name} did not answer a moment ago`, { guard: name });
}
