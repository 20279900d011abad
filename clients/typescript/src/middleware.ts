import type { Activities, Activity } from "./activities.js";
import type { CheckArgs, Decision } from "./decision.js";
import { ConfigurationError } from "./errors.js";
import type { Guards } from "./guards.js";
import { rateLimitHeaders } from "./http.js";
import type { Subjects } from "./subjects.js";

type Maybe<T> = T | null | undefined | Promise<T | null | undefined>;

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
  /** Returns true for requests that need no limit. Default: none. */
  skip?: (request: Request) => boolean | Promise<boolean>;
  /** Returns how many actions the request is. Default: 1. */
  count?: (request: Request) => Maybe<number>;
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
}

/** What the middleware knows about a request. */
export interface Checked {
  decision: Decision;
  /** RateLimit and RateLimit-Policy. */
  headers: Record<string, string>;
}

/**
 * Returns a function that asks the guard about one request. It returns undefined if the app skips this request. An
 * option that is no function is a ConfigurationError at once.
 */
export function checker<Request>(
  guards: Checks,
  activity: Activity,
  options: LimitOptions<Request>,
): (request: Request) => Promise<Checked | undefined> {
  const name = typeof activity === "string" ? activity : activity.activity;
  for (const [option, value] of Object.entries(Object.assign({ userId: undefined }, options))) {
    if (typeof value === "function" || (value === undefined && option !== "userId")) continue;
    throw new ConfigurationError(`The option ${option} of the limit "${name}" is no function.`);
  }
  return async (request) => {
    if (await skipped(name, options, request)) return undefined;
    const userId = await options.userId(request);
    if (!userId) {
      throw new ConfigurationError(
        `The function userId of the limit "${name}" returned no user. Return one, or leave out such requests with skip.`,
      );
    }
    const args: CheckArgs = {
      userId,
      count: (await options.count?.(request)) ?? undefined,
      tier: (await options.tier?.(request)) ?? undefined,
      roles: (await options.roles?.(request)) ?? undefined,
      subjects: (await options.subjects?.(request)) ?? undefined,
      requestId: (await options.requestId?.(request)) ?? undefined,
    };
    const decision = await guards.check(activity, args);
    return { decision, headers: rateLimitHeaders(decision) };
  };
}

/** Reports whether the app skips this request. A function or an async generator would be true for everybody. */
async function skipped<Request>(name: string, options: LimitOptions<Request>, request: Request): Promise<boolean> {
  const skip: unknown = await options.skip?.(request);
  if (skip === null || (typeof skip !== "object" && typeof skip !== "function")) return Boolean(skip);
  throw new ConfigurationError(`The function skip of the limit "${name}" returned an object or a function, want true or false.`);
}
