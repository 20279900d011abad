import { type Activities, type Activity, isActivity } from "./activities.js";
import { kindOf, read } from "./args.js";
import type { CheckArgs, Decision, GivenLimit } from "./decision.js";
import { ConfigurationError, isError } from "./errors.js";
import type { Guards } from "./guards.js";
import { rateLimitHeaders } from "./http.js";
import { Moment } from "./moment.js";
import { doYouMean } from "./nearest.js";
import type { Subjects } from "./subjects.js";

type Maybe<T> = T | null | undefined | Promise<T | null | undefined>;

/** A number, or a function that returns it. */
export type LimitOption<Request> = GivenLimit | ((request: Request) => Maybe<GivenLimit>);

/** What the middleware needs: guards, or a stand-in for them. */
export type Checks = Pick<Guards<Activities>, "check">;

/** What the guards can check: an activity of their list, or any activity of any guard. */
export type ActivityOf<G extends Checks> = Parameters<G["check"]>[0];

/** What the middleware of all frameworks asks about a request. Each function can be async. */
export interface LimitOptions<Request> {
  /**
   * Returns who is limited, as the app authenticated them. If it returns nothing, the middleware throws a
   * ConfigurationError: a missing user must not open the door.
   */
  userId: (request: Request) => Maybe<string>;
  /** Returns true for requests that need no limit. Anything but true, false or nothing is a ConfigurationError. Default: none. */
  skip?: (request: Request) => boolean | Promise<boolean>;
  /** Returns how many actions the request is. Default: 1. */
  count?: (request: Request) => Maybe<number>;
  /**
   * The number that holds instead of the guard's own, or a function that returns it: see `limit` of `check`. It comes from the
   * session, or from a plan that the app keeps, and never from the request itself. Default: the guard's number.
   */
  limit?: LimitOption<Request>;
  /** Returns the caller's plan. Default: none. */
  tier?: (request: Request) => Maybe<string>;
  /** Returns the caller's roles. Default: none. */
  roles?: (request: Request) => Maybe<readonly string[]>;
  /**
   * Returns the others in whose limits the request counts, such as `{ room: request.params.roomId }`. It must check that
   * the user is in that room. Default: none.
   */
  subjects?: (request: Request) => Maybe<Subjects>;
  /** Returns an id for the action, so that a repeat is counted once. Default: a new id. */
  requestId?: (request: Request) => Maybe<string>;
  /** The decision if the guard does not answer: see `onOutage` of `check`. Default: the option of the guards. */
  onOutage?: "allow" | "deny";
  /**
   * Reports whether the request counts, when the headers of its response are sent: `({ status }) => status === 401` counts
   * wrong passwords. False gives the request back. It stays counted if the client has gone away before, and if the function
   * throws or returns anything else, which goes to `warn`. It is not asked about requests that are refused or skipped. It does
   * not go with `count` and `requestId`, because each request is one attempt, with an id of its own. Default: all count.
   */
  countIf?: (response: { status: number }) => boolean | Promise<boolean>;
}

/** What the middleware knows about a request. */
export interface Checked {
  decision: Decision;
  /** RateLimit and RateLimit-Policy. */
  headers: Record<string, string>;
  /**
   * Asks countIf about the response that is sent, and gives back. It never throws. Undefined if nothing is to be asked.
   */
  responded: ((status: number) => Promise<void>) | undefined;
}

/** The options of the middleware of all frameworks. */
const names = ["userId", "skip", "count", "limit", "tier", "roles", "subjects", "requestId", "onOutage", "countIf", "refused"];

/**
 * Returns a function that asks the guard about one request. It returns undefined if the app skips this request. An
 * unknown option, or one that is no function, is a ConfigurationError at once. What the function throws is an Error.
 */
export function checker<R>(guards: Checks, activity: Activity, options: LimitOptions<R>): (request: R) => Promise<Checked | undefined> {
  const name = nameOf(activity);
  if (typeof guards?.check !== "function") throw new ConfigurationError(`The limit "${name}" has no guards, want new Guards().`);
  const given = Object.assign({ userId: undefined }, options);
  checkNames(name, given, names);
  for (const [option, value] of Object.entries(given)) {
    if (option === "onOutage" || option === "limit" || typeof value === "function" || (value === undefined && option !== "userId")) continue;
    throw new ConfigurationError(`The option ${option} of the limit "${name}" is no function.`);
  }
  const limit = limitOf(activity, options.limit);
  if (options.countIf) checkCountIf(name, guards, options);
  return (request) => ownError(activity, () => ask(request));

  async function ask(request: R): Promise<Checked | undefined> {
    if (trueOrFalse("skip", name, (await options.skip?.(request)) ?? false)) return undefined;
    const userId = await options.userId(request);
    if (!userId) {
      throw new ConfigurationError(
        `The function userId of the limit "${name}" returned no user. Return one, or leave out such requests with skip.`,
      );
    }
    const args: CheckArgs = {
      userId,
      count: (await options.count?.(request)) ?? undefined,
      limit: await limit(request),
      tier: (await options.tier?.(request)) ?? undefined,
      roles: (await options.roles?.(request)) ?? undefined,
      subjects: (await options.subjects?.(request)) ?? undefined,
      requestId: (await options.requestId?.(request)) ?? undefined,
      ...(options.onOutage && { onOutage: options.onOutage }),
    };
    const sent = new Moment();
    const decision = await guards.check(activity, args);
    const asked = options.countIf && decision.allowed;
    const responded = (status: number) =>
      (guards as Guards).giveBackUnless(decision, sent, async () => trueOrFalse("countIf", name, await options.countIf?.({ status })));
    return { decision, headers: rateLimitHeaders(decision), responded: asked ? responded : undefined };
  }
}

/** Throws a ConfigurationError if a limit has an option with another name than these, or a wrong onOutage. */
export function checkNames(limit: string, options: { onOutage?: unknown }, known: readonly string[]): void {
  for (const option of Object.keys(options)) {
    if (known.includes(option)) continue;
    const question = doYouMean(option, known);
    throw new ConfigurationError(`The option ${option} of the limit "${limit}" is not known, want one of ${known.join(", ")}.${question}`);
  }
  const { onOutage } = options;
  if (onOutage === undefined || onOutage === "allow" || onOutage === "deny") return;
  throw new ConfigurationError(`The option onOutage of the limit "${limit}" is ${kindOf(onOutage)}, want "allow" or "deny".`);
}

/**
 * Runs functions of the app, and throws an Error if they throw anything else. Express takes nothing, null and "route" for
 * an order to go on without the limit.
 */
export async function ownError<T>(activity: Activity, run: () => T | PromiseLike<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (isError(error)) throw error;
    throw new ConfigurationError(`A function of the limit "${nameOf(activity)}" threw ${kindOf(error)}, want an Error.`, { cause: error });
  }
}

/** Returns the name of an activity. */
export function nameOf(activity: Activity): string {
  if (!isActivity(activity)) throw new ConfigurationError(`The activity of a limit is ${kindOf(activity)}, want its name or { guard, activity }.`);
  return typeof activity === "string" ? activity : activity.activity;
}

/** Returns a function that returns the number for a request. A value that is wrong is a ConfigurationError at once. */
export function limitOf<Request>(activity: Activity, given: LimitOption<Request> | undefined): (request: Request) => Promise<GivenLimit | undefined> {
  if (typeof given === "function") return async (request) => (await given(request)) ?? undefined;
  try {
    const { limit } = read<Pick<CheckArgs, "limit">>({ limit: given }, ["limit"]);
    return async () => limit;
  } catch (cause) {
    throw new ConfigurationError(`The limit "${nameOf(activity)}" has a wrong option: ${(cause as Error).message}.`, { cause });
  }
}

/** Returns what a function of the app returned. Another function, or a text such as "false", would be true for everybody. */
function trueOrFalse(option: "skip" | "countIf", limit: string, returned: unknown): boolean {
  if (typeof returned === "boolean") return returned;
  throw new ConfigurationError(`The function ${option} of the limit "${limit}" returned ${kindOf(returned)}, want true or false.`);
}

/** Throws a ConfigurationError if the middleware can't have countIf. */
function checkCountIf<Request>(name: string, guards: Checks, { requestId, count }: LimitOptions<Request>): void {
  const other = requestId ? "requestId" : count ? "count" : undefined;
  if (other) {
    const why = "each request is one attempt, with an id of its own";
    throw new ConfigurationError(`The option countIf of the limit "${name}" does not go with ${other}: ${why}.`);
  }
  if (typeof (guards as Guards).giveBackUnless === "function") return;
  throw new ConfigurationError(`The limit "${name}" has countIf and guards that can't give back, want new Guards().`);
}
