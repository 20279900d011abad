import type { OutageError } from "./errors.js";
import type { Subjects } from "./subjects.js";

/** Why a request was allowed or refused. */
export type Reason =
  | "ok"
  | "limited"
  | "delayed"
  | "unlimited"
  | "bypassed"
  | "shadow"
  | "duplicate"
  | "unavailable"
  | "expired"
  /** An operator has blocked the user or a subject, until `resetAt`. */
  | "blocked";

/** The figures of one limit. */
export interface Figures {
  /** Actions allowed in one window. */
  limit: number;
  /** Actions counted in the current window, after this answer. */
  activityCount: number;
  /** Actions left now; never below 0. */
  remaining: number;
  /** Milliseconds until the same request can pass; 0 if nothing was refused. */
  waitTime: number;
  /** Unix milliseconds when the count is back at 0. */
  resetAt: number;
  /**
   * 80 or 100 if this check raised the count of a fixed window to 80 % or to 100 % of the limit; 100 if it crossed both.
   * At most one check in a window has each number, so an app that sends a mail when it is there sends at most two. With
   * several limits, a decision's number is about the limit whose figures the decision has. If the limit is a lockout: 100
   * for the attempt that locks.
   */
  crossed?: 80 | 100;
  /** True if the limit is a lockout that allows nothing until `resetAt`. The attempt that locks has it, too. */
  locked?: true;
}

/** One of several limits of an activity, or of its subjects. */
export interface NamedFigures extends Figures {
  name: string;
}

/** A guard's answer. The figures are missing if nothing is counted, for example for an unlimited activity. */
export interface Decision extends Partial<Figures> {
  /** Whether the caller may go on. */
  allowed: boolean;
  reason: Reason;
  userId: string;
  activity: string;
  op: "check" | "status" | "release" | "renew" | "reset";
  /** The guard that was asked, without its prefix; empty if the agent found it. The client adds this field. */
  guard: string;
  /**
   * The window of the limit in seconds, if the option `activities` has it and the request named no tier and gave no
   * number. A granted tier or a live limit can have another window. The client adds this field.
   */
  window?: number;
  /**
   * The subjects of the request. What gives back or renews the action sends them again. The client adds this field.
   */
  subjects?: Readonly<Record<string, string>>;
  /**
   * What the request gave of `limit` and `tier`. What gives back or renews the action sends them again. The client adds this
   * field.
   */
  asked?: Readonly<LimitArgs>;
  /** The window's number, for policies that have one. */
  windowKey?: number;
  /** For a check: how many of `count` were taken. */
  granted?: number;
  /**
   * The receipt, with `requestId`: when the check was counted, in Unix milliseconds. A `delayed` decision has one too,
   * but nothing can be given back: its `granted` is 0.
   */
  at?: number;
  /** The receipt, with `at`: the id under which the check was counted. The message on the delayed queue has it too. */
  requestId?: string;
  /** If the limit is a log: Unix milliseconds when the actions stop counting, by the guard's clock. */
  heldUntil?: number;
  /** A text for the end user, if the request was refused in whole or in part. */
  message?: string;
  /** For example `12-hour pins: 93/100`. */
  display?: string;
  /** For `delayed`: Unix milliseconds when the job's place comes up. */
  readyAt?: number;
  /** For `delayed`: places given in later windows, up to and including this one. */
  enqueued?: number;
  /** With several limits or subjects: the name of the one that refused, such as `room` or `room.minute`. For `blocked`: the subject. */
  limitedBy?: string;
  /** With several limits or subjects: the figures of each. */
  limits?: NamedFigures[];
  /** For a status: the release of Guards that answers, such as `v0.1.0`, if it was built from one. */
  version?: string;
  /** Why the option `onOutage` decided. The client adds this field; a guard's own `unavailable` has none. */
  outage?: OutageError;
}

/** How a call can end early. */
export interface CallOptions {
  /** Ends the call with an AbortError. A check, release or reset that was cancelled may still have been counted or made. */
  signal?: AbortSignal | undefined;
}

/** How to release a decision. */
export interface ReleaseOptions extends CallOptions {
  /**
   * Also end the series of the user's lockout, so that the failures before are forgotten. Only where the user's id is the
   * account, or the account and the address: with an address alone, the owner of one account could clear it between guesses
   * at others. If the user's limit is no lockout, it is a ValidationError. Default: false.
   */
  clear?: boolean | undefined;
}

/** Who is limited. */
export interface UserArgs extends CallOptions {
  /** 1 to 128 printable ASCII characters without spaces. Never take it from the user's own input. */
  userId: string;
}

/** In whose limits an action counts, besides the user's. */
export interface SubjectArgs {
  /**
   * The others in whose limits the action counts, such as `{ room: roomId }`. The app must have checked that the user is
   * in that room.
   */
  subjects?: Subjects | undefined;
}

/**
 * The number of the user's only limit, or the numbers of several limits by the names in a decision's `limits`, such as
 * `{ tenant: 50_000, call_api: 500 }`. Each is a whole number from 0 to 1,000,000. One that is undefined counts as left out.
 */
export type GivenLimit = number | Readonly<Record<string, number | undefined>>;

/** What decides how high a limit is. */
export interface LimitArgs {
  /**
   * The number that holds instead of the guard's own, if the limit has a `max`, such as `100/1h max 10000`. One that is too
   * small for a single action, such as 0, refuses each check, and such a decision has no figures. Never take it from the
   * user's own input. Default: the guard's number.
   */
  limit?: GivenLimit | undefined;
  /** The caller's plan. Never take it from the user's own input. */
  tier?: string | undefined;
}

/** What `status` asks. */
export interface StatusArgs extends UserArgs, SubjectArgs, LimitArgs {
  /** How many actions at once; at least 1, which is the default. */
  count?: number | undefined;
  /** Grant as many of `count` as fit, instead of all or nothing. Default: false. */
  partial?: boolean | undefined;
  /** The caller's roles. Never take them from the user's own input. */
  roles?: readonly string[] | undefined;
}

/** What `check` asks. */
export interface CheckArgs extends StatusArgs {
  /**
   * Identifies the action, so that a repeat is counted once; 1 to 64 printable ASCII characters without spaces.
   * Default: a new id for each call. It can't be combined with `partial`.
   */
  requestId?: string | undefined;
  /** The place that this job was given, in Unix milliseconds. Only for guards that give places. */
  readyAt?: number | undefined;
  /** What to put on the delayed queue: any JSON, at most 32 KiB. Only for guards that give places. */
  job?: unknown;
  /**
   * The decision of this check if the guard does not answer. "deny" also refuses what a guard allows from its memory (reason
   * "unavailable"), even in shadow mode, and gives back what the check counted. Default: the client's option `onOutage`.
   */
  onOutage?: "allow" | "deny" | undefined;
}

/** What `slot` asks. */
export interface SlotArgs extends CheckArgs {
  /** Throw a LimitedError if the check is refused. Default: false. */
  orThrow?: boolean | undefined;
}

/** The receipt of a check, and how much of it to give back or to renew. */
export interface ReleaseArgs extends UserArgs, SubjectArgs, LimitArgs {
  /** `at` of the check's decision, or of the last renewal's, in Unix milliseconds. */
  at: number;
  /** `requestId` of the check's decision. */
  requestId: string;
  /** How many of its actions to give back or to renew; 1 to 1,000,000. Default: 1. */
  count?: number | undefined;
}

/** When the guards answered, by decision, in Unix milliseconds of their own clocks. A copy of a decision has no entry. */
const dates = new WeakMap<Decision, number>();

/** Notes the header Date of the response that brought a decision. Returns the decision. */
export function answeredAt(decision: Decision, date: string | undefined): Decision {
  if (decision.at !== undefined) return decision;
  const at = Date.parse(date ?? "");
  if (!Number.isNaN(at)) dates.set(decision, at);
  return decision;
}

/**
 * Returns when a decision was made by the guard's clock, in Unix milliseconds: its `at`, or else the second when the
 * response was sent. It is undefined for a copy without `at`. This machine's clock can be wrong, so it never counts.
 */
export function madeAt(decision: Decision): number | undefined {
  return decision.at ?? dates.get(decision);
}
