import type { Context, MiddlewareHandler } from "hono";
import { kindOf } from "./args.js";
import type { Decision } from "./decision.js";
import { ConfigurationError } from "./errors.js";
import { tooMany } from "./http.js";
import { type ActivityOf, checker, type Checks, type LimitOptions, nameOf, ownError } from "./middleware.js";

export type { LimitOptions } from "./middleware.js";

/** The options of `limit` for Hono. */
export interface HonoLimitOptions extends LimitOptions<Context> {
  /** Returns the response to a refused request, instead of the middleware. If it returns none, that is an error. */
  refused?: (decision: Decision, context: Context) => Response | Promise<Response>;
}

/**
 * Returns middleware that counts each request, and answers 429 if the user is over the limit (503 in an outage with
 * `onOutage: "deny"`). Other errors go to the app's error handler. In other frameworks of the Fetch API, use
 * `guards.check` and return `tooMany(decision)`.
 *
 * If a later handler fails, the request stays counted. Use `guards.guarded` in the handler to give the count back, or
 * `countIf`. The response waits until what it gives back is given back.
 */
export function limit<G extends Checks>(guards: G, activity: ActivityOf<G>, options: HonoLimitOptions): MiddlewareHandler {
  const check = checker(guards, activity, options);
  return async (context, next) => {
    const checked = await check(context);
    // @hono/node-server 1 notes that the client went away only if the signal is there before.
    const gone = checked?.responded && context.req.raw.signal;
    if (!checked || checked.decision.allowed) await next();
    else context.res = await answer(checked.decision, context);
    if (checked?.responded && context.finalized && !gone?.aborted) await checked.responded(context.res.status);
    for (const [name, value] of Object.entries(checked?.headers ?? {})) {
      if (!context.res.headers.has(name)) context.header(name, value);
    }
  };

  async function answer(decision: Decision, context: Context): Promise<Response> {
    const { refused } = options;
    if (!refused) return tooMany(decision);
    const response = await ownError(activity, () => refused(decision, context));
    // Without a response, Hono would answer 200. Some adapters have a class Response of their own.
    if (typeof (response as Response | undefined)?.headers?.has === "function") return response;
    throw new ConfigurationError(`The function refused of the limit "${nameOf(activity)}" returned ${kindOf(response)}, want a Response.`);
  }
}
