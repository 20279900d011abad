/**
 * A Moment is a point in the past, for times that go on between calls. Lambda freezes a process between invocations.
 * performance.now can stand still meanwhile. Date.now goes on, but somebody can set the clock back. So the age is by the clock
 * that says more. It is not for the time of one call, which does not count a freeze.
 */
export class Moment {
  readonly #running: number;
  readonly #wall: number;

  /** Makes the moment that was so many milliseconds ago. */
  constructor(age = 0) {
    this.#running = performance.now() - age;
    this.#wall = Date.now() - age;
  }

  /** How long ago it was, in milliseconds. */
  get age(): number {
    return Math.max(performance.now() - this.#running, Date.now() - this.#wall);
  }
}
