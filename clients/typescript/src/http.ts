import { madeAt } from "./answered.js";
import type { Decision, Figures } from "./decision.js";

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
  const { guard, window, subjects, outage, ...answer } = decision;
  if (outage) {
    return problem(503, 1, {
      type: "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
      title: "Unavailable",
      status: 503,
      detail: decision.message,
    });
  }
  const [type, violated] = ["https://iana.org/assignments/http-problem-types#quota-exceeded", [decision.limitedBy ?? decision.activity]];
  return problem(429, Math.max(1, seconds(decision.waitTime ?? 0)), {
    ...(decision.reason !== "blocked" && { type }),
    title: "Too Many Requests",
    status: 429,
    ...(decision.reason !== "blocked" && { "violated-policies": violated }),
    ...answer,
  });
}

/** Returns `refusal` as a Response of the Fetch API, with the headers of `rateLimitHeaders`. */
export function tooMany(decision: Decision): Response {
  const { status, headers, body } = refusal(decision);
  return new Response(body, { status, headers: { ...headers, ...rateLimitHeaders(decision) } });
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

function problem(status: number, retryAfter: number, body: Record<string, unknown>): Refusal {
  const headers = { "Retry-After": String(retryAfter), "Content-Type": "application/problem+json" };
  return { status, headers, body: JSON.stringify(body) };
}

/** Converts milliseconds to seconds, rounded up. */
function seconds(milliseconds: number): number {
  return Math.ceil(milliseconds / 1000);
}
