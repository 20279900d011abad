import { activities } from "./activities.js";
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
  const { guard, outage, ...answer } = decision;
  if (outage) {
    return problem(503, 1, {
      type: "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
      title: "Unavailable",
      status: 503,
      detail: decision.message,
    });
  }
  return problem(429, Math.max(1, seconds(decision.waitTime ?? 0)), {
    type: "https://iana.org/assignments/http-problem-types#quota-exceeded",
    title: "Too Many Requests",
    status: 429,
    "violated-policies": [decision.limitedBy ?? decision.activity],
    ...answer,
  });
}

/** Returns `refusal` as a Response of the Fetch API. */
export function tooMany(decision: Decision): Response {
  const { status, headers, body } = refusal(decision);
  return new Response(body, { status, headers: { ...headers, ...rateLimitHeaders(decision) } });
}

/**
 * Returns the headers RateLimit and RateLimit-Policy of a decision, as far as they are known. An answer has no window,
 * so RateLimit-Policy is only there for activities with one limit that this package knows, and without a tier.
 */
export function rateLimitHeaders(decision: Decision, tier?: string): Record<string, string> {
  const { activity, limit, limits } = decision;
  if (limit === undefined) return {};
  const each = limits ?? [{ ...(decision as Figures), name: activity }];
  const headers: Record<string, string> = {
    RateLimit: each.map((l) => `"${l.name}";r=${l.remaining};t=${Math.max(0, seconds(l.resetAt - Date.now()))}`).join(", "),
  };
  const window = windowOf(decision);
  if (window !== undefined && !limits && !tier) headers["RateLimit-Policy"] = `"${activity}";q=${limit};w=${window}`;
  return headers;
}

/** The window of an activity in seconds, if it is known. */
function windowOf({ guard, activity }: Decision): number | undefined {
  const known = Object.hasOwn(activities, activity) ? activities[activity as keyof typeof activities] : undefined;
  return known?.guard === guard && "window" in known ? known.window : undefined;
}

function problem(status: number, retryAfter: number, body: Record<string, unknown>): Refusal {
  const headers = { "Retry-After": String(retryAfter), "Content-Type": "application/problem+json" };
  return { status, headers, body: JSON.stringify(body) };
}

/** Converts milliseconds to seconds, rounded up. */
function seconds(milliseconds: number): number {
  return Math.ceil(milliseconds / 1000);
}
