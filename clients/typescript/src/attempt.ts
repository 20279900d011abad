import { kindOf, unresolved } from "./args.js";
import type { Decision, StatusArgs } from "./decision.js";
import { isError, ValidationError } from "./errors.js";

/** What `attempt` asks. It makes its own id, because with the id of a caller, a repeat would be one more guess. */
export interface AttemptArgs<T = unknown> extends Omit<StatusArgs, "count" | "partial"> {
  /** The decision if the guard does not answer: see `onOutage` of `check`. Default: the client's option. */
  onOutage?: "allow" | "deny" | undefined;
  /**
   * Also forget the user's own failures after a success: see `clear` of ReleaseOptions, which says when not to use it.
   * Default: false.
   */
  clear?: boolean | undefined;
  /**
   * Reports whether a result of `verify` is a success. Needed for a Response. Default: what JavaScript calls true. An array
   * is true, even if it is empty.
   */
  succeeded?: ((result: T) => boolean | Promise<boolean>) | undefined;
  /**
   * Called and awaited once, after a `verify` that failed, if its check used up a limit (`crossed` is 100), such as the
   * failure that locks an account. What it throws goes to `warn`. Default: none.
   */
  onLocked?: ((decision: Decision) => unknown) | undefined;
}

/** Reports whether a result of `verify` is a success. One that can't be meant as an answer is a ValidationError. */
export async function isSuccess<T>(result: T, succeeded: AttemptArgs<T>["succeeded"], guard: string): Promise<boolean> {
  const wrong = (name: string, kind: string, want: string): never => {
    throw new ValidationError(`${name} returned ${kind}, want ${want}. The attempt stays counted`, { guard });
  };
  const resolved = (name: string, value: unknown): void => {
    const kind = kindOf(value);
    if (unresolved.has(kind)) wrong(name, kind, "its result"); // nobody has called, awaited or iterated over it, and it is true
  };
  resolved("verify", result);
  if (!succeeded) {
    const kind = ambiguous(result);
    return kind ? wrong("verify", kind, "a result, or an option succeeded such as (response) => response.ok") : Boolean(result);
  }
  const success: unknown = (await succeeded(result)) ?? false; // only nothing can stand for false
  resolved("succeeded", success);
  return typeof success === "boolean" ? success : wrong("succeeded", kindOf(success), "true or false");
}

/** Reports whether a check used up one of the limits. */
export function usedUp({ crossed, limits = [] }: Decision): boolean {
  return crossed === 100 || limits.some((limit) => limit.crossed === 100);
}

/**
 * Returns a warning if a release may be too late, so many milliseconds after its check; undefined if it is in time. A
 * guard gives back for 20 s, and with `Hold` for 15 minutes. A part of it is kept for the way and for clocks that differ.
 */
export function lateness(activity: string, ms: number, hold: boolean): string | undefined {
  if (ms <= (hold ? 14 * 60_000 : 18_000)) return undefined;
  const late = `the release of ${activity} is sent ${Math.floor(ms / 1000)} s after its check, and may be too late to give anything back`;
  return `${late}. ${hold ? "With Hold, a guard takes it for 15 minutes." : "Give the activity Hold, and write the list of activities again with guards generate."}`;
}

/** Names a result that is true and can mean a failure. */
function ambiguous(result: unknown): string | undefined {
  if (isError(result)) return "an error";
  if (isResponse(result)) return "a response";
  if (typeof result !== "object" || result === null) return undefined;
  const { allowed, reason } = result as Partial<Decision>;
  return typeof allowed === "boolean" && typeof reason === "string" ? "a decision" : undefined;
}

/**
 * Reports whether a value is a response, which is true whatever its status: of the Fetch API and its libraries, of Node and
 * its frameworks, or the result of a Lambda handler.
 */
function isResponse(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (Object.prototype.toString.call(value) === "[object Response]") return true;
  const { status, statusCode } = value as Record<string, unknown>;
  return [status, statusCode].some((code) => (typeof code === "number" || typeof code === "string") && /^[1-5]\d\d$/.test(String(code)));
}
