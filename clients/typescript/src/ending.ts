/** An Ending ends one attempt early. It does what an AbortController would do here, and costs a tenth. */
export class Ending {
  readonly #acts: (() => void)[] = [];
  #reason: Error | undefined;

  /** Why the attempt was ended; undefined if it was not. */
  get reason(): Error | undefined {
    return this.#reason;
  }

  /** Ends the attempt. Only the first reason counts. */
  end(reason: Error): void {
    if (this.#reason) return;
    this.#reason = reason;
    for (const act of this.#acts) act();
  }

  /** Calls `act` at the end. */
  whenEnded(act: () => void): void {
    this.#acts.push(act);
  }

  /** Throws the reason if the attempt was ended. */
  check(): void {
    if (this.#reason) throw this.#reason;
  }
}
