import { setTimeout as sleep } from "node:timers/promises";
import { pause } from "./breaker.js";
import type { Decision } from "./decision.js";
import { Moment } from "./moment.js";

/**
 * How long before its end a slot is lost, in milliseconds. Until then another caller can't get it, even if the clocks of
 * the guard's instances differ.
 */
const early = 2000;

/** What a slot needs of its guards. */
interface Calls {
  renew: (receipt: Decision, signal: AbortSignal) => Promise<Decision>;
  /** Reports whether a decision has the receipt of a slot. */
  held: (decision: Decision) => boolean;
  release: (receipt: Decision) => Promise<unknown>;
  /** Is called with the error of a renewal. */
  failed: (error: unknown) => void;
  /** Is called with the error of the second release. */
  stuck: (error: unknown) => void;
  /** The reason that the signal aborts with. */
  loss: Error;
}

/**
 * A place that a check took: see `slot` of Guards. It renews itself until it is released. Its timers keep no process
 * alive.
 *
 * A slot without a receipt holds nothing: it is not renewed, not released and never lost. So it is in an outage, and if
 * the decision is unlimited, bypassed, shadow or a duplicate. If a renewal is answered without a receipt, the slot keeps
 * the last one, and its end.
 */
export class Slot {
  /** The decision of the check. */
  readonly decision: Decision;
  readonly #calls: Calls;
  readonly #loss = new AbortController();
  readonly #ended = new AbortController(); // ends a renewal
  #held: boolean; // whether there is something to release
  #receipt: Decision; // of the check or of the last renewal
  #since: Moment; // when the receipt was asked for; #dueAfter and #lostAfter are milliseconds after it
  #sent: Moment | undefined; // when the first renewal with this receipt was sent
  #repeatAfter = 0;
  #dueAfter = Infinity; // when the next renewal is sent
  #lostAfter = Infinity;
  #timer: NodeJS.Timeout | undefined;

  /** @internal */
  constructor(decision: Decision, held: boolean, sent: Moment, calls: Calls) {
    this.decision = this.#receipt = decision;
    this.#held = held;
    this.#calls = calls;
    this.#since = sent;
    if (held) this.#hold(sent, decision);
  }

  /** Whether the user may go on. */
  get allowed(): boolean {
    return this.decision.allowed;
  }

  /**
   * Whether the work must stop, because somebody else may get the slot: it has expired, or no renewal got through until
   * 2 s before its end.
   */
  get lost(): boolean {
    if (this.#since.age >= this.#lostAfter) this.#lose();
    return this.#loss.signal.aborted;
  }

  /** Aborts when the slot is lost. */
  get signal(): AbortSignal {
    return this.#loss.signal;
  }

  /**
   * Frees the slot. If that fails, it tries once more. It never throws: the second error goes to `warn`. Further calls do
   * nothing.
   */
  async release(): Promise<void> {
    const held = this.#held;
    if (!this.lost) this.#stop();
    this.#held = false;
    if (!held) return;
    try {
      await this.#calls.release(this.#receipt);
    } catch {
      await sleep(pause + 10 + Math.random() * 50); // before, the breaker would refuse
      await this.#calls.release(this.#receipt).catch(this.#calls.stuck);
    }
  }

  /** For `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  /**
   * Keeps the slot for as long as an answer says. The time counts from when the request was sent, because the answer may
   * have come late. The guard's clock need not agree with this machine's.
   */
  #hold(sent: Moment, decision: Decision): void {
    const lasts = (decision.heldUntil ?? 0) - (decision.at ?? 0);
    this.#receipt = decision;
    this.#since = sent;
    this.#dueAfter = lasts / 3;
    this.#lostAfter = lasts - early;
    this.#tick();
  }

  /** Does what is due now, and plans the next look: in at most a second, because a timer does not count a freeze. */
  #tick(): void {
    clearTimeout(this.#timer);
    if (this.lost) return;
    if (this.#since.age >= this.#dueAfter) void this.#renew();
    const next = Math.min(this.#dueAfter, this.#lostAfter) - this.#since.age;
    this.#timer = setTimeout(() => this.#tick(), Math.min(next, pause)).unref();
  }

  async #renew(): Promise<void> {
    this.#dueAfter = Infinity;
    const sent = (this.#sent ??= new Moment()); // a repeat gets the answer to the first one
    try {
      const decision = await this.#calls.renew(this.#receipt, this.#ended.signal);
      if (this.#ended.signal.aborted || this.lost) return;
      this.#sent = undefined; // the next renewal repeats nothing
      this.#repeatAfter = 0;
      if (this.#calls.held(decision)) return this.#hold(sent, decision);
      if (!decision.allowed) {
        this.#held = false;
        return this.#lose();
      }
      // Nothing is limited now, for example because a live mode is off. That may end, and then the slot counts again.
      const { age } = this.#since;
      this.#dueAfter = age + Math.max(pause, (this.#lostAfter - age) / 3);
      this.#tick();
    } catch (error) {
      if (this.#ended.signal.aborted) return;
      this.#calls.failed(error);
      this.#dueAfter = this.#since.age + this.#repeatAfter + Math.random() * 100; // at once, and then once a second
      this.#repeatAfter = pause;
      this.#tick();
    }
  }

  #lose(): void {
    this.#stop();
    this.#loss.abort(this.#calls.loss);
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#lostAfter = Infinity;
    this.#ended.abort();
  }
}
