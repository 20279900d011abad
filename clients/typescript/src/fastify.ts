import type { FastifyReply, FastifyRequest, preHandlerAsyncHookHandler } from "fastify";
import type { Decision } from "./decision.js";
import { refusal } from "./http.js";
import { type ActivityOf, checker, type Checks, type LimitOptions } from "./middleware.js";

export type { LimitOptions } from "./middleware.js";

/** The options of `limit` for Fastify. */
export interface FastifyLimitOptions extends LimitOptions<FastifyRequest> {
  /** Answers a refused request instead of the hook, with `reply.send`. */
  refused?: (decision: Decision, request: FastifyRequest, reply: FastifyReply) => unknown;
}

/**
 * Returns a preHandler hook that counts each request, and answers 429 if the user is over the limit (503 in an outage
 * with `onOutage: "deny"`). Other errors go to the app's error handler.
 *
 * If the handler fails, the request stays counted. Use `guards.guarded` in the handler to give the count back.
 */
export function limit<G extends Checks>(
  guards: G,
  activity: ActivityOf<G>,
  options: FastifyLimitOptions,
): preHandlerAsyncHookHandler {
  const check = checker(guards, activity, options);
  return async (request, reply) => {
    const checked = await check(request);
    if (!checked) return;
    reply.headers(checked.headers);
    if (checked.decision.allowed) return;
    if (options.refused) {
      await options.refused(checked.decision, request, reply);
      return reply;
    }
    const { status, headers, body } = refusal(checked.decision);
    return reply.code(status).headers(headers).send(Buffer.from(body)); // for a string, Fastify adds a charset
  };
}
