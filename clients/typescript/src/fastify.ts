import type { FastifyReply, FastifyRequest, preHandlerAsyncHookHandler } from "fastify";
import type { Decision } from "./decision.js";
import { whenHeadersSent } from "./headers-sent.js";
import { refusal } from "./http.js";
import { type ActivityOf, checker, type Checks, type LimitOptions, ownError } from "./middleware.js";

export type { LimitOptions } from "./middleware.js";

/** The options of `limit` for Fastify. */
export interface FastifyLimitOptions extends LimitOptions<FastifyRequest> {
  /**
   * Answers a refused request instead of the hook: with `reply.send`, or with the payload that it returns. The status is 429
   * (503 in an outage), unless the function sets one. A function that returns nothing sends by itself, even if later.
   */
  refused?: (decision: Decision, request: FastifyRequest, reply: FastifyReply) => unknown;
}

/**
 * Returns a preHandler hook that counts each request, and answers 429 if the user is over the limit (503 in an outage
 * with `onOutage: "deny"`). Other errors go to the app's error handler.
 *
 * If the handler fails, the request stays counted. Use `guards.guarded` in the handler to give the count back, or
 * `countIf`. What it gives back is sent beside the response, so in a Lambda function use `guards.attempt` instead.
 */
export function limit<G extends Checks>(guards: G, activity: ActivityOf<G>, options: FastifyLimitOptions): preHandlerAsyncHookHandler {
  const check = checker(guards, activity, options);
  return async (request, reply) => {
    const checked = await check(request);
    if (!checked) return;
    reply.headers(checked.headers);
    if (checked.responded) whenHeadersSent(reply.raw, checked.responded);
    if (checked.decision.allowed) return;
    const { refused } = options;
    const { status, headers, body } = refusal(checked.decision);
    reply.code(status);
    if (!refused) return reply.headers(headers).send(Buffer.from(body)); // for a string, Fastify adds a charset
    const payload = await ownError(activity, () => refused(checked.decision, request, reply)).catch((error: unknown) => {
      if (reply.statusCode === status) reply.code(500); // Fastify would answer the mistake with the status of the refusal
      throw error;
    });
    if (reply.sent || payload === undefined) return reply;
    return reply.send(payload); // Fastify itself sends only what a handler returns
  };
}
