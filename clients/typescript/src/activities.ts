import { kindOf } from "./args.js";
import { ValidationError } from "./errors.js";
import { doYouMean } from "./nearest.js";

/**
 * A list of activities, as `guards generate` writes it: the guard of each one, the window of its limit in seconds, the
 * names of its subjects, and whether it has `Hold`. An activity that is unlimited, or has several limits or subjects, has no
 * window. A subject whose name ends with a question mark is optional.
 */
export type Activities = Readonly<
  Record<
    string,
    {
      readonly guard: string;
      readonly window?: number | undefined;
      readonly subjects?: readonly string[] | undefined;
      readonly hold?: boolean | undefined;
    }
  >
>;

/** An activity of a list, or any activity of any guard. */
export type Activity<A extends Activities = Activities> =
  | (keyof A & string)
  | { readonly guard: string; readonly activity: string };

/** The list of the app by name. It is empty if the app has no list. */
export type Known = ReadonlyMap<string, Activities[string]>;

/** What an app without a list can do. */
export const passList = "pass the list that guards generate writes (activities/activities.ts) as the option activities";

/** Where an activity is decided. */
export interface Place {
  /** Empty if the agent finds it. */
  guard: string;
  activity: string;
  /** The window of its limit in seconds, if the list has it. */
  window: number | undefined;
  /** The names of its subjects, with a question mark after an optional one; undefined if the list does not have the activity. */
  subjects: readonly string[] | undefined;
  /** Whether the list says that the activity has `Hold`, so that a release may come 15 minutes after its check. */
  hold: boolean;
}

/**
 * Finds the guard of an activity. If the call does not name it and the list does not have it, that is a ValidationError. But
 * without a list, an agent finds the guard. Its name is then empty.
 */
export function find(asked: Activity, known: Known, byAgent = false): Place {
  if (!isActivity(asked)) throw new ValidationError(`the activity is ${kindOf(asked)}, want its name or { guard, activity }`);
  const activity = typeof asked === "string" ? asked : asked.activity;
  const listed = known.get(activity);
  const named = typeof asked === "string" ? listed?.guard : asked.guard || undefined;
  const guard = named ?? (byAgent && known.size === 0 ? "" : undefined);
  if (guard !== undefined) {
    const own = listed?.guard === guard ? listed : undefined;
    return { guard, activity, window: own?.window, subjects: own && (own.subjects ?? []), hold: own?.hold ?? false };
  }
  const problem = `no guard is known for the activity ${JSON.stringify(activity)}`;
  const question = typeof asked === "string" && doYouMean(asked, [...known.keys()]);
  if (question) throw new ValidationError(`${problem}.${question}`);
  const list = known.size > 0 ? "write the list again with guards generate" : passList;
  throw new ValidationError(`${problem}: ${list}, or name the guard: { guard, activity }`);
}

/** Reports whether a value names an activity. A decision does. */
export function isActivity(value: unknown): value is Activity {
  if (typeof value !== "object" || value === null) return typeof value === "string";
  const { guard, activity } = value as Record<string, unknown>;
  return typeof activity === "string" && (guard === undefined || typeof guard === "string");
}
