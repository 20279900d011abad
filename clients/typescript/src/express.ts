import type { NextFunction, Request, RequestHandler, Response } from "express";
import type { Decision } from "./decision.js";
import { whenHeadersSent } from "./headers-sent.js";
import { sendTooMany } from "./http.js";
import { type ActivityOf, checker, type Checks, type LimitOptions, ownError } from "./middleware.js";

export type { LimitOptions } from "./middleware.js";

/** The options of `limit` for Express. */
export interface ExpressLimitOptions extends LimitOptions<Request> {
  /** Answers a refused request instead of the middleware. */
  refused?: (decision: Decision, request: Request, response: Response, next: NextFunction) => void | Promise<void>;
}

/**
 * Returns middleware that counts each request, and answers 429 if the user is over the limit (503 in an outage with
 * `onOutage: "deny"`). Other errors go to the app's error handler.
 *
 * If a later handler fails, the request stays counted. Use `guards.guarded` in the handler to give the count back, or
 * `countIf`. What it gives back is sent beside the response, so in a Lambda function use `guards.attempt` instead.
 */
export function limit<G extends Checks>(guards: G, activity: ActivityOf<G>, options: ExpressLimitOptions): RequestHandler {
  const check = checker(guards, activity, options);
  return (request, response, next) => {
    ownError(activity, () => handle(request, response, next)).catch(next);
  };

  async function handle(request: Request, response: Response, next: NextFunction): Promise<void> {
    const checked = await check(request);
    if (checked) response.set(checked.headers);
    if (checked?.responded) whenHeadersSent(response, checked.responded);
    if (!checked || checked.decision.allowed) return next();
    if (options.refused) return options.refused(checked.decision, request, response, next);
    sendTooMany(response, checked.decision);
  }
}
