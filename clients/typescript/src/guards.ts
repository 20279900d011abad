import { randomUUID } from "node:crypto";
import { type Activities, type Activity, find, isActivity, passList, type Place } from "./activities.js";
import { kindOf, read, readArgs, readAttempt } from "./args.js";
import { askedOf, Asker } from "./ask.js";
import { type AttemptArgs, isSuccess, lateness, usedUp } from "./attempt.js";
import type { Event, Way } from "./call.js";
import type { CallOptions, CheckArgs, Decision, ReleaseArgs, ReleaseOptions, SlotArgs, StatusArgs, UserArgs } from "./decision.js";
import { ConfigurationError, GuardsError, LimitedError, OutageError, ValidationError } from "./errors.js";
import { Moment } from "./moment.js";
import { type Options, type Settings, settings } from "./options.js";
import { Slot } from "./slot.js";
import { anySubjects } from "./subjects.js";
import { wait, type Waiting, type WaitOptions } from "./wait.js";

/**
 * Guards asks guards whether a user may do something now. Make one object, and use it for all requests of the app.
 *
 * Each method can throw a ConfigurationError, a ValidationError or an AnswerError. Each of them is a mistake to mend,
 * so none of them lets a request pass. If the app cancels a call with its `signal`, the call throws an AbortError.
 *
 * `A` is the type of the option `activities`. Without a list, each call names its guard.
 */
export class Guards<out A extends Activities = {}> {
  readonly #settings: Settings;
  readonly #asker: Asker;
  readonly #byAgent: boolean;
  readonly #settled = new WeakSet<Decision>();
  readonly #slots = new WeakSet<Decision>(); // the decisions of slots that hold something

  /** Throws a ConfigurationError if an option is bad. It sends no request. */
  constructor(options?: Options<A>);
  /** @internal */
  constructor(options: Options<A>, way: Way);
  constructor(options: Options<A> = {}, way?: Way) {
    this.#settings = settings(options, way);
    this.#asker = new Asker(this.#settings);
    this.#byAgent = this.#settings.agent !== undefined;
  }

  /**
   * Counts and decides. If the guard does not answer, `onOutage` decides: of this call, or else the client's option. The
   * decision then has `reason` "unavailable" and the field `outage`. A check that the app cancels may be counted.
   */
  async check(activity: Activity<A>, given: CheckArgs): Promise<Decision> {
    const place = this.placeOf(activity);
    const args = readArgs("check", given, this.#asker.nameOf(place.guard));
    const { onOutage, ...rest } = args;
    const requestId = args.requestId ?? (args.partial ? undefined : randomUUID());
    // Without an id, a repeat would count twice.
    const maxTries = args.partial ? 1 : undefined;
    const began = performance.now();
    try {
      const decision = await this.#asker.ask(place, "check", { ...rest, requestId }, maxTries);
      if (onOutage === "deny" && decision.allowed && decision.reason === "unavailable") {
        await this.giveBack(decision);
        throw this.#asker.fromMemory(place);
      }
      return this.#asker.observe(decision, began);
    } catch (error) {
      if (!(error instanceof OutageError)) throw error;
      this.#asker.warnSometimes(error);
      const allowed = (onOutage ?? this.#settings.onOutage) === "allow";
      const { userId, count = 1 } = args;
      const { activity, guard } = place;
      const message = allowed ? {} : { message: "Please try again later." };
      const decided = { allowed, reason: "unavailable", userId, activity, op: "check", guard, granted: allowed ? count : 0 } as const;
      return this.#asker.observe({ ...decided, ...message, ...askedOf(args), outage: error }, began);
    }
  }

  /** Decides as `check` would now, and counts nothing. In an outage it throws an OutageError. */
  status(activity: Activity<A>, args: StatusArgs): Promise<Decision> {
    return this.#other("status", activity, args);
  }

  /**
   * Gives back what a check counted: all of a decision that has a receipt (`at` and `requestId`) and has granted
   * something, or as many actions as `args.count`. `args` needs the `subjects`, the `limit` and the `tier` of the check; a
   * decision has them. A release that is too late or already done changes nothing. With `clear`, it also ends the series of
   * the user's lockout. In an outage it throws an OutageError.
   */
  release(decision: Decision, options?: ReleaseOptions): Promise<Decision>;
  release(activity: Activity<A>, args: ReleaseArgs & ReleaseOptions): Promise<Decision>;
  async release(what: Decision | Activity<A>, args: ReleaseOptions = {}): Promise<Decision> {
    return this.#withReceipt("release", what, args);
  }

  /**
   * Keeps a slot of an activity whose limit is a log, given the decision of the check or of the last renewal. The answer
   * has a new receipt, and the slot counts until `heldUntil`. If it does not count any more, the answer is not allowed,
   * and its reason is "expired". In an outage it throws an OutageError. `slot` renews by itself.
   */
  renew(decision: Decision, options?: CallOptions): Promise<Decision>;
  renew(activity: Activity<A>, args: ReleaseArgs): Promise<Decision>;
  async renew(what: Decision | Activity<A>, args: CallOptions = {}): Promise<Decision> {
    return this.#withReceipt("renew", what, args);
  }

  /**
   * Gives back what a check granted and the app did not use, once, with one release. It does nothing if nothing is left,
   * and if the decision has no receipt. In an outage it throws an OutageError. Then it can be called again.
   *
   * The decision of a slot can't be settled, because the slot would be lost: the guard gives back the actions of a check
   * once. If `used` is no whole number of at least 0, it throws a ValidationError and gives nothing back.
   */
  async settle(decision: Decision, used: number, options: CallOptions = {}): Promise<void> {
    const { signal } = read<CallOptions>(options, ["signal"]);
    if (!isDecision(decision)) throw new ValidationError(`the decision is ${kindOf(decision)}, want that of a check`);
    if (!Number.isInteger(used) || used < 0) {
      throw new ValidationError(`used is ${typeof used === "number" ? used : kindOf(used)}, want a whole number of at least 0`);
    }
    if (this.#slots.has(decision)) throw new ValidationError("the decision is that of a slot, which can't be settled: release the slot");
    const left = (decision.granted ?? 0) - used;
    if (left <= 0 || !counted(decision) || this.#settled.has(decision)) return;
    this.#settled.add(decision);
    try {
      await this.#other("release", decision, { ...receipt(decision), count: left, signal });
    } catch (error) {
      this.#settled.delete(decision);
      throw error;
    }
  }

  /**
   * Checks, and keeps what the check counted until the slot is released. The limit of the activity is a log, such as
   * `log 3/10m`: at most three at once. Release the slot in any case, for example with `await using`, or use `withSlot`.
   *
   * Like `check`, it does not throw a refusal: look at `slot.allowed`. With `orThrow`, a refusal throws a LimitedError. If
   * the limit is not a log, it throws a ValidationError. A `signal` cancels the check, but not the renewals.
   */
  async slot(activity: Activity<A>, given: SlotArgs): Promise<Slot> {
    const { orThrow, ...args } = readArgs("slot", given) as SlotArgs;
    const sent = new Moment();
    const decision = await this.check(activity, args);
    const guard = this.#asker.nameOf(decision.guard);
    if (!decision.allowed && orThrow) throw new LimitedError(decision, guard);
    const held = decision.allowed && counted(decision);
    if (held && !holdsSlot(decision)) {
      await this.giveBack(decision);
      throw new ValidationError(`the limit of ${decision.activity} is not a log, so it has no slots`, { guard });
    }
    if (held) this.#slots.add(decision);
    return new Slot(decision, held, sent, {
      renew: (renewed, signal) => this.renew(renewed, { signal }),
      held: holdsSlot,
      release: (last) => this.release(last),
      failed: (error) => this.#asker.warnSometimes(own(error, `a renewal of ${guard} failed`, guard)),
      stuck: (error) => this.#asker.warn(own(error, `a release of ${guard} failed`, guard)),
      loss: new GuardsError("the slot is lost", { guard }),
    });
  }

  /**
   * Takes a slot, calls `run` with it, and releases it when `run` ends. If the check is refused, it throws a LimitedError.
   * See `slot`.
   */
  async withSlot<T>(activity: Activity<A>, args: CheckArgs, run: (slot: Slot) => T | Promise<T>): Promise<T> {
    if (typeof run !== "function") throw new ValidationError("withSlot wants a function, and calls it with the slot");
    const slot = await this.slot(activity, { ...args, orThrow: true });
    try {
      return await run(slot);
    } finally {
      await slot.release();
    }
  }

  /**
   * Gives back what a check counted, if it counted something. It never throws: an error goes to `warn`. So does a release
   * that may be too late, if it is known when the check was sent.
   *
   * @internal
   */
  async giveBack(decision: Decision, { clear = false, sent }: { clear?: boolean; sent?: Moment } = {}): Promise<void> {
    if (!counted(decision)) return;
    const guard = this.#asker.nameOf(decision.guard);
    const late = lateness(decision.activity, sent?.age ?? 0, this.placeOf(decision).hold);
    if (late !== undefined) this.#asker.warn(new GuardsError(late, { guard }));
    await this.release(decision, clear ? { clear } : {}).catch((error: unknown) => this.#asker.warn(own(error, `a release of ${guard} failed`, guard)));
  }

  /**
   * Gives back what a check counted unless `counts` returns true. It never throws: an error goes to `warn`, and what was
   * counted stays counted.
   *
   * @internal
   */
  async giveBackUnless(decision: Decision, sent: Moment, counts: () => Promise<boolean>): Promise<void> {
    try {
      if (!(await counts())) await this.giveBack(decision, { sent });
    } catch (error) {
      const guard = this.#asker.nameOf(decision.guard);
      this.#asker.warn(own(error, `countIf of ${decision.activity} failed`, guard));
    }
  }

  /**
   * Deletes the count of this user's activity in the current window, and nothing of its subjects. It is sent once,
   * because a repeat could delete what was counted since. In an outage it throws an OutageError: look at `status` before
   * you reset again.
   */
  reset(activity: Activity<A>, args: UserArgs): Promise<Decision> {
    return this.#other("reset", activity, args);
  }

  /**
   * Checks, and calls `run` if the user may go on. If the check is refused or delayed, it throws a LimitedError. If
   * `run` throws, it gives back what was counted and throws the error of `run`. A release that fails goes to `warn`.
   * So does every release of a guard that gives places, because a place can't be given back. A `signal` cancels the
   * check, but not the release.
   */
  async guarded<T>(activity: Activity<A>, args: CheckArgs, run: (decision: Decision) => T | Promise<T>): Promise<T> {
    if (typeof run !== "function") throw new ValidationError("guarded wants a function, and calls it after the check");
    const decision = await this.check(activity, args);
    if (!decision.allowed) throw new LimitedError(decision, this.#asker.nameOf(decision.guard));
    try {
      return await run(decision);
    } catch (error) {
      await this.giveBack(decision);
      throw error;
    }
  }

  /**
   * Counts an attempt, such as a guess of a password, and then calls `verify` with the decision. A success gives the attempt
   * back, with one release for the user and all subjects, and its result is returned. So a user who knows the password is
   * not limited, and guesses that run at once are all counted. If the check is refused or delayed, it throws a LimitedError.
   *
   * A success is what JavaScript calls true, or what the option `succeeded` says. After a false value, or if `verify`
   * throws, the attempt stays counted, and the value or the error goes on to the caller. A function, a generator, an error or a
   * response is a ValidationError, and stays counted, too.
   *
   * A release that fails, or may be too late, goes to `warn`. A decision without a receipt sends none. A `signal` cancels the
   * check, but not the release.
   */
  async attempt<T>(activity: Activity<A>, given: AttemptArgs<T>, verify: (decision: Decision) => T | Promise<T>): Promise<T> {
    const guard = this.#asker.nameOf(this.placeOf(activity).guard);
    const { clear, succeeded, onLocked, ...args } = readAttempt(given, guard);
    if (typeof verify !== "function") throw new ValidationError("attempt wants a function, and calls it after the check");
    const sent = new Moment();
    const decision = await this.check(activity, args);
    if (!decision.allowed) throw new LimitedError(decision, guard);
    let success = false; // after an error, too, the attempt stays counted
    try {
      const result = await verify(decision);
      success = await isSuccess(result, succeeded, guard);
      return result;
    } finally {
      if (success) await this.giveBack(decision, { clear, sent });
      else if (usedUp(decision)) {
        try {
          await onLocked?.(decision);
        } catch (cause) {
          this.#asker.warn(new GuardsError(`onLocked of ${decision.activity} failed`, { guard, cause }));
        }
      }
    }
  }

  /**
   * Asks each guard once, to find mistakes when the app starts: all guards of the option `activities`, or only the
   * named activities' guards. It counts nothing: the user is "ready", and so is each subject that the list has. It
   * throws the first guard's error, even an OutageError. With neither a list nor names, it asks an agent for its health; by
   * Invoke and URL, it throws a ConfigurationError.
   */
  async ready(...only: Activity<A>[]): Promise<void> {
    const { known } = this.#settings;
    const asked: readonly Activity[] = only.length > 0 ? only : [...known.keys()];
    if (asked.length === 0 && this.#byAgent) return this.#asker.health();
    if (asked.length === 0) throw new ConfigurationError(`no guard is known: ${passList}, or name each guard: ready({ guard, activity })`);
    const guards = new Map<string, Place>();
    for (const activity of asked) {
      const place = this.placeOf(activity);
      const key = place.guard || `/${place.activity}`;
      if (!guards.has(key)) guards.set(key, place);
    }
    const ask = (place: Place) => this.status(place, { userId: "ready", subjects: anySubjects(place, "ready") });
    const results = await Promise.allSettled([...guards.values()].map(ask));
    for (const result of results) if (result.status === "rejected") throw result.reason;
  }

  /**
   * Waits until the refused request can pass, or the rest of a `partial` one: `waitTime`, and a random part of up to 10 % (or
   * 50 ms, if that is more). It returns true after the wait. If `waitTime` is 0, if the request was allowed and has none, and
   * in shadow mode, it returns true at once. It returns false at once if the wait would be longer than `maxWait` milliseconds
   * (default 60,000), or if the request was refused and has no `waitTime` or is blocked. The option `signal` cancels the wait.
   */
  wait(decision: Waiting, options?: WaitOptions): Promise<boolean> {
    return wait(decision, options);
  }

  /**
   * Finds the guard of an activity. If it is not known, that is a ValidationError.
   *
   * @internal
   */
  placeOf(activity: Activity): Place {
    return find(activity, this.#settings.known, this.#byAgent);
  }

  /** Releases or renews, given a decision or the fields of its receipt. */
  async #withReceipt(op: "release" | "renew", what: Decision | Activity<A>, args: ReleaseOptions): Promise<Decision> {
    if (!isDecision(what)) return this.#other(op, what, args as ReleaseArgs);
    const options = read<ReleaseOptions>(args, op === "release" ? ["clear", "signal"] : ["signal"]);
    if (counted(what)) return this.#other(op, what, { ...receipt(what), ...options });
    throw new ValidationError(`the decision has no receipt, so there is nothing to ${op === "renew" ? "renew" : "give back"}`);
  }

  async #other(op: Event["op"], activity: Activity<A>, given: UserArgs & Partial<ReleaseArgs>): Promise<Decision> {
    const place = this.placeOf(activity);
    const args = readArgs(op, given, this.#asker.nameOf(place.guard));
    const began = performance.now();
    return this.#asker.observe(await this.#asker.ask(place, op, args, op === "reset" ? 1 : undefined), began);
  }
}

/** Reports whether a value is a decision, and not the name of an activity or something else. */
function isDecision(value: unknown): value is Decision {
  return typeof value === "object" && isActivity(value) && "allowed" in value;
}

/** Reports whether the decision has the receipt of something that can be given back. */
function counted({ at, requestId, granted = 0 }: Decision): boolean {
  return at !== undefined && requestId !== undefined && granted > 0;
}

/** Reports whether the decision has the receipt of a slot. */
function holdsSlot(decision: Decision): boolean {
  return decision.allowed && counted(decision) && decision.heldUntil !== undefined;
}

/** Returns an error of this package: the given one, or another with it as the cause. */
function own(error: unknown, message: string, guard: string): GuardsError {
  return error instanceof GuardsError ? error : new GuardsError(message, { guard, cause: error });
}

/** Returns the fields that a request needs to give back or renew all that a check counted. */
function receipt({ userId, subjects, asked, at, requestId, granted }: Decision): UserArgs & Partial<ReleaseArgs> {
  return { ...asked, userId, ...(subjects && { subjects }), at, requestId, count: granted };
}
