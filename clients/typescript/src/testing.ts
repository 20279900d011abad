import {
  type Activities,
  type Activity,
  type CheckArgs,
  type Decision,
  Guards,
  type Options,
  OutageError,
  type ReleaseArgs,
  type ReleaseOptions,
} from "@cric-talk/guards";
import type { Answer, Call, Way } from "./call.js";

/** What guards were asked: an op, and its arguments as they are sent. */
export interface TestCall extends Omit<CheckArgs, "onOutage" | "signal">, Partial<Pick<ReleaseArgs & ReleaseOptions, "at" | "clear">> {
  activity: string;
  op: Decision["op"];
}

/** What a test can say about a refusal. The client knows the other fields. */
export type TestRefusal = Partial<Omit<Decision, "allowed" | "userId" | "activity" | "op" | "guard" | "window" | "subjects" | "asked" | "outage">>;

/** What a test can say about a check that is allowed. The client knows the other fields. */
export type TestAllowance = Omit<TestRefusal, "message">;

/**
 * TestGuards stand in for the guards in the unit tests of an app. They need no process, no network and no AWS. They are the
 * client, so middleware, slots, `guarded` and `attempt` run through them as in the app:
 *
 *     const guards = new TestGuards({ activities });
 *     guards.refuse("create_post", { waitTime: 42_000 });
 *     const app = newApp(guards);
 *
 * They count nothing: they allow everything but what the test refuses. Only a `limit` that the app gives, and that is below
 * the request's `count`, refuses as with a guard whose limit has a max: no wait helps, so the decision has no figures. The
 * options are the client's, so a test can pass the app's own. Those about the way to the guards have no effect. `warn` does nothing by default, and the variable GUARDS_AGENT
 * does not count.
 */
export class TestGuards<out A extends Activities = {}> extends Guards<A> {
  readonly #script: Script;

  /** Throws a ConfigurationError if an option is bad. */
  constructor(options: Options<A> = {}) {
    const script = new Script();
    super({ ...options, warn: options.warn ?? (() => {}) }, script);
    this.#script = script;
  }

  /** What was asked so far, in order. A call that the client found wrong, or that was cancelled before it, is not there. */
  get calls(): readonly TestCall[] {
    return [...this.#script.calls];
  }

  /**
   * Refuses an activity from now on. The decision has the given fields. The others become what a guard could say: the reason
   * limited, a wait of a second, and a limit of one that is used up. Throws a ValidationError if the activity is not known.
   */
  refuse(activity: Activity<A>, decision: TestRefusal = {}): void {
    this.#script.played.set(this.placeOf(activity).activity, { ...decision, allowed: false });
  }

  /**
   * Allows an activity again. Its checks then have the given fields. The others become what a guard could say: the attempt
   * that locks is `{ locked: true, crossed: 100 }`. With another reason than ok, a check has no receipt. Throws a
   * ValidationError if the activity is not known.
   */
  allow(activity: Activity<A>, decision: TestAllowance = {}): void {
    this.#script.played.set(this.placeOf(activity).activity, { ...decision, allowed: true });
  }

  /**
   * Lets no guard answer from now on, until `outage(false)`. `onOutage` then decides each check, and each other call throws
   * an OutageError.
   */
  outage(down = true): void {
    this.#script.down = down;
  }
}

/** Answers as the test says. */
class Script implements Way {
  readonly calls: TestCall[] = [];
  readonly played = new Map<string, TestRefusal & { allowed: boolean }>(); // by activity
  down = false;

  async open(): Promise<() => void> {
    return () => {};
  }

  async send({ name, body }: Call): Promise<Answer> {
    const call: TestCall = JSON.parse(body);
    this.calls.push(call);
    // After an outage that the guard itself reports, the client asks again at once.
    if (this.down) throw new OutageError(`${name} did not answer: the test plays an outage`, { guard: name, answered: true });
    const now = Date.now();
    const { userId, activity, op } = call;
    const asks = op === "check" || op === "status";
    const played = asks ? this.played.get(activity) : undefined;
    const refusal = (asks && tooLow(call)) || (played && !played.allowed && refused(played, now));
    const answer = refusal || allowed(call, now, op === "check" ? played : undefined);
    return { fields: { userId, activity, op, ...answer }, date: new Date(now).toUTCString() };
  }
}

const message = "Too many requests. Please try again later.";

/** Refuses a number that the app gave if it is too low for the request. Nothing: no number is. */
function tooLow({ count = 1, partial, limit }: TestCall): Partial<Decision> | undefined {
  const numbers = typeof limit === "number" ? { "": limit } : (limit ?? {});
  const low = Object.entries(numbers).find(([, number]) => number! < (partial ? 1 : count));
  return low && { allowed: false, reason: "limited", granted: 0, message, ...(low[0] && { limitedBy: low[0] }) };
}

/** The limit of what is allowed, as high as limits can be. */
const maxLimit = 1_000_000;

function allowed({ op, count = 1, requestId = "test" }: TestCall, now: number, given: TestAllowance = {}): Partial<Decision> {
  const { reason = "ok", locked, limit = locked ? count : maxLimit } = given;
  const resetAt = now + 60_000;
  const figures = { limit, activityCount: count, remaining: limit - count, waitTime: 0, resetAt };
  // For example, a bypassed check has no receipt.
  const receipt = op === "renew" || (op === "check" && reason === "ok") ? { at: now, requestId, heldUntil: resetAt } : {};
  return { allowed: true, granted: count, ...figures, ...receipt, ...given, reason };
}

function refused(given: TestRefusal, now: number): Partial<Decision> {
  const { reason = "limited", waitTime = 1000, limit = 1 } = given;
  const figures = reason === "blocked" ? {} : { limit, activityCount: limit, remaining: 0 };
  return { allowed: false, granted: 0, ...figures, resetAt: now + waitTime, message, ...given, reason, waitTime };
}
