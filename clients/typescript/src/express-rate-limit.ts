import type { ClientRateLimitInfo, Options, Store } from "express-rate-limit";
import type { Activities, Activity } from "./activities.js";
import { type Decision, type GivenLimit, madeAt } from "./decision.js";
import { OutageError } from "./errors.js";
import type { Guards } from "./guards.js";
import { checkNames, type LimitOption, limitOf, nameOf, ownError } from "./middleware.js";

/** How many requests of one key the store remembers, so that it can give them back. */
const maxDecisions = 100;

/** How many keys the store remembers. */
const maxKeys = 10_000;

/**
 * How an outage reaches the app if the option `onOutage` is "deny". Express answers with this status and these headers,
 * unless the app's own error handler does something else.
 */
class Unavailable extends OutageError {
  readonly status = 503;
  readonly headers = { "Retry-After": "1" };
}

/** What the store can be told. */
export interface StoreOptions {
  /** The decision if the guard does not answer: see `onOutage` of `check`. Default: the option of the guards. */
  onOutage?: "allow" | "deny" | undefined;
  /** The number that holds instead of the guard's own, or a function of the key that returns it. Default: the guard's number. */
  limit?: LimitOption<string> | undefined;
}

/**
 * GuardsStore lets express-rate-limit count in a guard. Two things do not fit, so prefer `limit` from "./express":
 *
 * - The app holds a `limit` and `windowMs`, and the guard has its own. The guard decides: what it refuses is refused.
 *   A lower `limit` of the app refuses too, but such requests are already counted. Set both to the guard's own limit.
 * - express-rate-limit gives back with `decrement(key)`, which does not name the request. The store gives
 *   back the last one of that key: at most 100 for each of 10,000 keys, and only this process's checks. For a request
 *   that was not counted, it gives nothing back. A release that fails goes to the option `warn` of the guards.
 *
 * It knows only a key, so an activity that needs subjects is a ValidationError. An unknown option, or a wrong one, is a
 * ConfigurationError at once. In an outage with `onOutage: "deny"`, it throws an OutageError with the `status` 503, which goes to
 * the app's error handler. Leave express-rate-limit's option `passOnStoreError` off: with it, each error lets the request pass,
 * mistakes too.
 */
export class GuardsStore<A extends Activities = Activities> implements Store {
  /** Other processes count in the same guard. */
  readonly localKeys = false;
  /** Tells express-rate-limit that other activities have other counts. The guard's user id is the key alone. */
  readonly prefix: string;
  readonly #guards: Guards<A>;
  readonly #activity: Activity<A>;
  readonly #onOutage: StoreOptions["onOutage"];
  readonly #given: (key: string) => Promise<GivenLimit | undefined>;
  /** By key, the newest last: the decisions that decrement can mean. The key that was used last is the last one. */
  readonly #decisions = new Map<string, Decision[]>();
  #limit = 0; // the app's, if it is a number
  #refusedToo = false; // whether express-rate-limit also gives back refused requests

  constructor(guards: Guards<A>, activity: Activity<A>, options: StoreOptions = {}) {
    checkNames(nameOf(activity), options, ["limit", "onOutage"]);
    this.#onOutage = options.onOutage;
    const given = limitOf(activity, options.limit);
    this.#given = (key) => ownError(activity, () => given(key));
    this.#guards = guards;
    this.#activity = activity;
    this.prefix = typeof activity === "string" ? `${activity}:` : `${activity.guard}:${activity.activity}:`;
  }

  /** Called by express-rate-limit. */
  init(options: Options): void {
    if (typeof options.limit === "number") this.#limit = options.limit;
    this.#refusedToo = options.skipFailedRequests;
  }

  /** Counts a request of the key. */
  async increment(key: string): Promise<ClientRateLimitInfo> {
    const decision = await this.#guards.check(this.#activity, { userId: key, limit: await this.#given(key), onOutage: this.#onOutage });
    const { allowed, outage } = decision;
    if (!allowed && outage) throw new Unavailable(outage.message, { guard: outage.guard, cause: outage });
    if (allowed || this.#refusedToo) this.#remember(key, decision);
    return this.#info(decision);
  }

  /** Gives back the last request of the key, if it was counted. It never throws. */
  async decrement(key: string): Promise<void> {
    const decisions = this.#decisions.get(key);
    const decision = decisions?.pop();
    if (decisions?.length === 0) this.#decisions.delete(key);
    if (decision) await this.#guards.giveBack(decision);
  }

  /** Deletes the count of the key. */
  async resetKey(key: string): Promise<void> {
    this.#decisions.delete(key);
    await this.#guards.reset(this.#activity, { userId: key });
  }

  /** Returns the count of the key, and counts nothing. */
  async get(key: string): Promise<ClientRateLimitInfo> {
    const decision = await this.#guards.status(this.#activity, { userId: key, limit: await this.#given(key) });
    return { totalHits: decision.activityCount ?? 0, resetTime: resetTime(decision) };
  }

  #remember(key: string, decision: Decision): void {
    const decisions = this.#decisions.get(key) ?? [];
    this.#decisions.delete(key);
    this.#decisions.set(key, decisions);
    decisions.push(decision);
    if (decisions.length > maxDecisions) decisions.shift();
    if (this.#decisions.size > maxKeys) this.#decisions.delete(this.#decisions.keys().next().value as string);
  }

  /** express-rate-limit refuses if totalHits is above the app's limit. It wants at least 1. */
  #info(decision: Decision): ClientRateLimitInfo {
    const { allowed, activityCount = 0, waitTime = 1000 } = decision;
    if (allowed) return { totalHits: Math.max(1, activityCount), resetTime: resetTime(decision) };
    // The limit can be a function of the request, which is not known here. Then no number is safe but a huge one.
    const above = this.#limit > 0 ? Math.max(this.#limit, activityCount) + 1 : Number.MAX_SAFE_INTEGER;
    return { totalHits: above, resetTime: new Date(Date.now() + waitTime) };
  }
}

/**
 * Returns when the count is back at 0, on the clock of this machine, because express-rate-limit uses that clock.
 * Without a count, that is now, because express-rate-limit wants a time.
 */
function resetTime(decision: Decision): Date {
  const { resetAt } = decision;
  const made = madeAt(decision);
  return new Date(Date.now() + (resetAt === undefined || made === undefined ? 0 : Math.max(0, resetAt - made)));
}
