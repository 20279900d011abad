import type { Call } from "./call.js";
import { whenAborted } from "./cancel.js";
import { cancelled, checkSignal } from "./repeat.js";

/**
 * Places are the connections that one address can have. A call takes a place before its first attempt and keeps it until
 * its end, so that a repeat need not wait behind other calls. The others wait in their order. That wait is no sign of an
 * outage, so the call's time stands still, and only the app's signal ends it, or an outage that another call finds.
 */
export class Places {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(max: number) {
    this.#free = max;
  }

  /** Waits for a place. Returns a function that gives it to the next call. */
  async enter(call: Call): Promise<() => void> {
    checkSignal(call.signal);
    if (this.#free > 0) this.#free--;
    else await this.#wait(call);
    return this.#leave;
  }

  async #wait({ caller, signal, time }: Call): Promise<void> {
    time.stop();
    const ended: (() => void)[] = []; // switches off what could end the wait
    let enter: () => void;
    try {
      await new Promise<void>((resolve, reject) => {
        this.#waiting.add((enter = resolve));
        ended.push(caller.wait(reject));
        if (signal) ended.push(whenAborted(signal, () => reject(cancelled(signal))));
      });
    } catch (error) {
      // A place that came at the same moment goes to the next call.
      if (!this.#waiting.delete(enter!)) this.#leave();
      throw error;
    } finally {
      for (const off of ended) off();
    }
  }

  readonly #leave = (): void => {
    const [next] = this.#waiting;
    if (!next) return void this.#free++;
    this.#waiting.delete(next);
    next();
  };
}
