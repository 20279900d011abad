import { kindOf } from "./args.js";
import { type Decision, type Figures, madeAt } from "./decision.js";
import { ConfigurationError } from "./errors.js";

/** A refusal as an HTTP response. */
export interface Refusal {
  /** 429; 503 in an outage with `onOutage: "deny"`. */
  status: number;
  headers: Record<string, string>;
  /** An RFC 9457 problem document, as JSON. */
  body: string;
}

/** Returns the HTTP response for a decision that refused, as a guard's own Function URL sends it. */
export function refusal(decision: Decision): Refusal {
  const { guard, window, subjects, asked, outage, ...answer } = decision;
  if (outage) {
    return problem(503, 1, {
      type: "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
      title: "Unavailable",
      status: 503,
      detail: decision.message,
    });
  }
  const [type, violated] = ["https://iana.org/assignments/http-problem-types#quota-exceeded", [decision.limitedBy ?? decision.activity]];
  const { waitTime } = decision;
  // No wait helps if the app gave a number that is too small.
  const never = waitTime === undefined && asked?.limit !== undefined;
  const violates = decision.reason !== "blocked" && !never;
  return problem(429, never ? undefined : Math.max(1, seconds(waitTime ?? 0)), {
    ...(violates && { type }),
    title: "Too Many Requests",
    status: 429,
    ...(violates && { "violated-policies": violated }),
    ...answer,
  });
}

/** A refusal as a Lambda handler returns it. */
export interface LambdaResult {
  statusCode: number;
  headers?: Record<string, string>;
  multiValueHeaders?: Record<string, string[]>;
  body: string;
  isBase64Encoded: false;
}

/** What `tooManyForLambda` needs of an event. The events of API Gateway, Function URLs and load balancers have it. */
export interface LambdaEvent {
  requestContext: object;
  headers?: unknown;
  multiValueHeaders?: unknown;
}

/** What `sendTooMany` needs of a response. The responses of Express and of node:http have it. */
export interface NodeResponse {
  writeHead(status: number, headers: Record<string, string>): { end(body: string): unknown };
}

/**
 * Returns the Response of the Fetch API for a decision that refused: `refusal`, with the headers of `rateLimitHeaders`.
 * Handlers of Next.js, Hono, Fastify 5 and others return it.
 *
 * Express ignores what a handler returns, so call `sendTooMany` there. A Lambda handler returns `tooManyForLambda`. JSON
 * would turn a Response into {}, and API Gateway that into a 200, so a Response of `tooMany` throws if it becomes JSON.
 */
export function tooMany(decision: Decision): Response {
  const { status, headers, body } = withHeaders(decision);
  return Object.defineProperty(new Response(body, { status, headers }), "toJSON", { value: noJSON });
}

/**
 * Sends the response of `tooMany` in Express, node:http, or an API route of Next.js. Return after it:
 * `if (!decision.allowed) return sendTooMany(response, decision);`
 */
export function sendTooMany(response: NodeResponse, decision: Decision): void {
  if (typeof response?.writeHead !== "function") {
    throw new ConfigurationError(`sendTooMany got ${kindOf(response)}, want the response of Express or node:http, and then the decision.`);
  }
  const { status, headers, body } = withHeaders(decision);
  response.writeHead(status, headers).end(body); // Express's send would add a charset, which JSON has not
}

/**
 * Returns the response of `tooMany` as a Lambda handler returns it to API Gateway (REST or HTTP API), a Function URL or a
 * load balancer. Anything else would take it for a success, so it needs the handler's event. In AppSync, use `guarded`: its
 * LimitedError has the message for the user.
 */
export function tooManyForLambda(event: LambdaEvent, decision: Decision): LambdaResult {
  if (!event?.requestContext) {
    throw new ConfigurationError(
      "tooManyForLambda got no event of an HTTP request, want that of API Gateway, a Function URL or a load balancer, and then " +
        "the decision. In AppSync, use guarded.",
    );
  }
  const { status, headers, body } = withHeaders(decision);
  const result = { statusCode: status, body, isBase64Encoded: false } as const;
  if (event.headers || !event.multiValueHeaders) return { ...result, headers };
  // A load balancer that sends headers of several values instead reads only these.
  return { ...result, multiValueHeaders: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]])) };
}

function withHeaders(decision: Decision): Refusal {
  const { status, headers, body } = refusal(decision);
  return { status, headers: { ...headers, ...rateLimitHeaders(decision) }, body };
}

/** Lambda's runtime hides the message of what it throws, so it is also logged. */
function noJSON(): never {
  const message = "A Response can't be sent as JSON. In a Lambda handler, return tooManyForLambda(event, decision), and elsewhere see sendTooMany.";
  console.error(message);
  throw new ConfigurationError(message);
}

/**
 * Returns the headers RateLimit and RateLimit-Policy of a decision. Without figures, there are none. RateLimit-Policy
 * is only there if the decision has a `window`. A guard's own URL has it always, and is exact about live limits.
 *
 * `t` counts from the decision's `at`, or else from when the guard answered. A copy of a decision without `at` has no `t`.
 * This machine's clock never counts.
 */
export function rateLimitHeaders(decision: Decision): Record<string, string> {
  const { activity, limit, limits, window } = decision;
  if (limit === undefined) return {};
  const each = limits ?? [{ ...(decision as Figures), name: activity }];
  const made = madeAt(decision);
  const t = (resetAt: number) => (made === undefined ? "" : `;t=${Math.max(0, seconds(resetAt - made))}`);
  const headers: Record<string, string> = {
    RateLimit: each.map((l) => `"${l.name}";r=${l.remaining}${t(l.resetAt)}`).join(", "),
  };
  if (window !== undefined && !limits) headers["RateLimit-Policy"] = `"${activity}";q=${limit};w=${window}`;
  return headers;
}

function problem(status: number, retryAfter: number | undefined, body: Record<string, unknown>): Refusal {
  const headers = { ...(retryAfter && { "Retry-After": String(retryAfter) }), "Content-Type": "application/problem+json" };
  return { status, headers, body: JSON.stringify(body) };
}

/** Converts milliseconds to seconds, rounded up. */
function seconds(milliseconds: number): number {
  return Math.ceil(milliseconds / 1000);
}
