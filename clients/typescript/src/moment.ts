/**
 * A Moment is one in the past, for times that go on between calls. The clock of performance.now can stand still while Lambda
 * freezes the process between invocations. The one of Date.now goes on, but it can be set back. So the clock by which more
 * time has passed counts. The time of one call is another matter: a freeze is no part of it.
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
