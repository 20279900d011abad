import type { AttemptArgs } from "./attempt.js";
import type { CheckArgs, ReleaseArgs } from "./decision.js";
import { ValidationError } from "./errors.js";
import { doYouMean } from "./nearest.js";

/** What one argument accepts. */
interface Accepted {
  want: string;
  fits: (value: unknown) => boolean;
  /** Whether a message can show a number. Others could be ids. */
  shown?: boolean;
  /** Whether it is a function that the client calls. */
  called?: boolean;
}

const text: Accepted = { want: "a string", fits: (value) => typeof value === "string" };
const id: Accepted = { want: "a string that is not empty", fits: (value) => typeof value === "string" && value !== "" };
const flag: Accepted = { want: "true or false", fits: (value) => typeof value === "boolean" };
const callback: Accepted = { want: "a function", fits: (value) => typeof value === "function", called: true };
const moment: Accepted = { want: "Unix milliseconds", fits: Number.isInteger, shown: true };
const whole = (range: string, min: number, max = Infinity): Accepted => {
  return { want: `a whole number ${range}`, fits: (value) => Number.isInteger(value) && (value as number) >= min && (value as number) <= max, shown: true };
};
/** The names in an answer's limits, such as call_api, tenant and room.minute. */
const limitName = /^[a-z]([a-z_]{0,34}[a-z])?(\.[a-z]{1,8})?$/;
const limitNumber = whole("from 0 to 1,000,000", 0, 1_000_000);

/** The arguments of all methods. The guard knows which op takes which, and the ranges of ids. */
const accepted: Readonly<Record<string, Accepted>> = {
  userId: id,
  count: whole("of at least 1", 1),
  limit: {
    ...limitNumber,
    want: `${limitNumber.want}, or an object of such numbers, such as { tenant: 50000 }`,
    fits: (value) => limitNumber.fits(value) || isPlain(value), // see read
  },
  partial: flag,
  tier: text,
  roles: { want: "an array of strings", fits: (value) => Array.isArray(value) && value.every(text.fits) },
  subjects: { want: "", fits: () => true }, // see readSubjects
  requestId: id,
  readyAt: moment,
  job: { want: "any JSON", fits: isJSON },
  at: moment,
  signal: { want: "an AbortSignal, such as controller.signal", fits: isSignal },
  orThrow: flag,
  clear: flag,
  succeeded: callback,
  onLocked: callback,
  onOutage: { want: '"allow" or "deny"', fits: (value) => value === "allow" || value === "deny" },
  maxWait: { want: "milliseconds of at least 0", fits: (value) => typeof value === "number" && value >= 0, shown: true },
  prefix: whole("from 1 to 128", 1, 128),
  key: { want: "16 bytes or more, or a string with 16 or more in UTF-8", fits: (value) => value === null || isKey(value) },
  fold: flag,
};

/** The arguments that an op must have. The guard's others have defaults. */
const required: Readonly<Record<string, readonly string[]>> = {
  release: ["userId", "at", "requestId"],
  renew: ["userId", "at", "requestId"],
};

/** The arguments that not every op has. */
const special: Readonly<Record<string, readonly string[]>> = { check: ["onOutage"], slot: ["onOutage", "orThrow"], release: ["clear"] };

const ofOps = ["userId", "count", "limit", "partial", "tier", "roles", "subjects", "requestId", "readyAt", "job", "at", "signal"];
const ofAttempts = ["userId", "limit", "tier", "roles", "subjects", "signal", "onOutage", "clear", "succeeded", "onLocked"];

/**
 * Returns a copy of an op's arguments. A mistake is a ValidationError before anything is sent: JSON would leave out a
 * function, turn NaN into null and a promise into {}, and an outage would let the user pass.
 */
export function readArgs(op: string, given: unknown, guard?: string): CheckArgs & Partial<ReleaseArgs> {
  const names = op === "reset" ? ofOps.filter((name) => name !== "limit") : ofOps;
  return read(given, [...names, ...(special[op] ?? [])], required[op] ?? ["userId"], guard);
}

/** Returns a copy of the arguments of `attempt`. A mistake is a ValidationError. */
export function readAttempt<T>(given: AttemptArgs<T>, guard: string): AttemptArgs<T> {
  for (const name of isPlain(given) ? ["requestId", "count"] : []) {
    if (!(name in given)) continue;
    throw new ValidationError(`${name} does not go with attempt: each call is one attempt, with an id of its own`, { guard });
  }
  return read(given, ofAttempts, ["userId"], guard);
}

/** Returns a copy of what a method was given: nothing but these names, and all that are needed. A mistake is a ValidationError. */
export function read<T>(given: unknown, names: readonly string[], needed: readonly string[] = [], guard?: string): T {
  const wrong = (problem: string): never => {
    throw new ValidationError(problem, { guard });
  };
  const check = (field: string, value: unknown, { want, fits, shown, called }: Accepted): void => {
    const kind = kindOf(value);
    if (unresolved.has(kind) && !called) wrong(`${field} is ${kind}, want its value`);
    if (!fits(value)) wrong(`${field} is ${shown && typeof value === "number" ? value : kind}, want ${want}`);
  };
  if (!isPlain(given)) return wrong(`the arguments are ${kindOf(given)}, want an object`);
  const args: Record<string, unknown> = { ...(given as object) };
  for (const name of needed) if (args[name] === undefined) wrong(`${name} is missing, want ${accepted[name]!.want}`);
  for (const [name, value] of Object.entries(args)) {
    if (!names.includes(name)) {
      const question = doYouMean(name, names);
      wrong(`the argument ${JSON.stringify(name)} is not known, want only ${names.join(", ")}${question && `.${question}`}`);
    }
    if (value === undefined || name === "subjects") continue;
    check(name, value, accepted[name]!);
    if (name !== "limit" || typeof value === "number") continue;
    // Like the id of a subject, a number that is undefined counts as left out.
    const numbers = Object.entries(value as object).filter(([, number]) => number !== undefined);
    for (const [of, number] of numbers) {
      // A name of another form could be a user's id, so no message shows it.
      if (!limitName.test(of)) wrong("limit has a name of another form, want those in the answer's limits, such as tenant or room.minute");
      check(`limit.${of}`, number, limitNumber);
    }
    args[name] = numbers.length > 0 ? Object.fromEntries(numbers) : undefined; // a decision keeps this copy
  }
  return args as T;
}

/** Reports whether JSON has a form for a value. What is inside of it is not looked at. */
function isJSON(value: unknown): boolean {
  return typeof value === "number" ? Number.isFinite(value) : !["symbol", "bigint"].includes(typeof value);
}

/** Reports whether a value is a secret for an HMAC. Bytes can come from another realm. */
function isKey(value: unknown): boolean {
  if (typeof value === "string") return value.isWellFormed() && Buffer.byteLength(value) >= 16;
  return Object.prototype.toString.call(value) === "[object Uint8Array]" && (value as Uint8Array).byteLength >= 16;
}

/** Reports whether a value has what this package calls of an AbortSignal. It can come from another realm or a library. */
function isSignal(value: unknown): boolean {
  const { aborted, addEventListener, removeEventListener } = (value ?? {}) as Partial<AbortSignal>;
  return typeof aborted === "boolean" && typeof addEventListener === "function" && typeof removeEventListener === "function";
}

/** Reports whether the fields of a value can be listed. A promise, a function and a Map would seem empty. */
export function isPlain(value: unknown): boolean {
  return Object.prototype.toString.call(value) === "[object Object]";
}

/** What stands for a value that the app has not got yet. */
export const unresolved: ReadonlySet<string> = new Set(["a promise", "a function", "a generator"]);

/** Returns what a value is, without showing it, because it could be an id. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value === "number") return Number.isFinite(value) ? "a number" : String(value);
  if (Array.isArray(value)) return "an array";
  const { then, next } = value as { then?: unknown; next?: unknown };
  if (typeof then === "function") return "a promise";
  if (typeof value !== "object") return `a ${typeof value}`;
  return typeof next === "function" ? "a generator" : "an object";
}
