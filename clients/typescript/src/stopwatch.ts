/** How often a running stopwatch looks at the clock, in milliseconds. */
const step = 50;

/** The most that one step counts, in milliseconds. Timers are a little late on an idle machine, too. */
const most = 75;

/**
 * A Stopwatch measures how long this process has waited for others. An answer can lie unread in its socket while the
 * event loop is blocked, or while the machine is busy or asleep. So the stopwatch looks at the clock in short steps, and
 * counts at most 75 ms for a step of 50 ms. It runs from `start` to `stop`.
 */
export class Stopwatch {
  #counted = 0;
  #looked = 0; // on the clock of performance.now
  #timer: NodeJS.Timeout | undefined; // set while it runs
  #alarm: { at: number; ring: () => void } | undefined;

  /** The milliseconds that it has counted. */
  get elapsed(): number {
    return this.#counted + (this.#timer ? Math.min(performance.now() - this.#looked, most) : 0);
  }

  start(): void {
    if (this.#timer) return;
    this.#looked = performance.now();
    this.#next();
  }

  stop(): void {
    this.#counted = this.elapsed;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /**
   * Calls `ring` when so many more milliseconds have been counted, and all answers that have arrived by then have been
   * read. There is one alarm at a time. Returns a function that switches it off.
   */
  alarm(ms: number, ring: () => void): () => void {
    this.#alarm = { at: this.elapsed + ms, ring };
    if (this.#timer) {
      clearTimeout(this.#timer);
      this.#next();
    }
    return () => (this.#alarm = undefined);
  }

  #next(): void {
    const left = this.#alarm ? this.#alarm.at - this.elapsed : step;
    this.#timer = setTimeout(() => this.#look(), Math.min(step, Math.max(1, left)));
  }

  #look(): void {
    this.#counted = this.elapsed;
    this.#looked = performance.now();
    const alarm = this.#alarm;
    if (alarm && this.#counted >= alarm.at) {
      // Between a timer and an immediate, Node reads all sockets.
      setImmediate(() => {
        if (this.#alarm !== alarm) return;
        this.#alarm = undefined;
        alarm.ring();
      });
    }
    this.#next();
  }
}
