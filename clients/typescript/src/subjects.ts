import type { Place } from "./activities.js";
import { isPlain } from "./args.js";
import { ValidationError } from "./errors.js";

/**
 * The ids of the others in whose limits an action counts, such as `{ room: "r42" }`. Each id is 1 to 128 printable ASCII
 * characters without spaces. One that is undefined or null counts as left out.
 */
export type Subjects = Readonly<Record<string, string | null | undefined>>;

/**
 * Returns the subjects that a request sends; undefined if there are none. If the list has others for the activity, that is
 * a ValidationError. A reset may leave them out, because it clears the user alone. The message never shows what the app
 * sent, because that could be an id.
 */
export function readSubjects(op: string, { activity, subjects: listed }: Place, given: unknown, guard: string): Record<string, string> | undefined {
  const wrong = (problem: string): never => {
    throw new ValidationError(problem, { guard });
  };
  if (given !== undefined && given !== null && !isPlain(given)) {
    wrong('subjects has another form, want one such as { room: "r42" }');
  }
  const sent = Object.entries(given ?? {}).filter(([, id]) => id !== undefined && id !== null);
  if (sent.some(([, id]) => typeof id !== "string")) wrong("subjects has an id that is no string, want its value as a string");
  // Left out, an optional subject would not limit.
  if (sent.some(([, id]) => id === "")) wrong("subjects has an empty id, want its value, or undefined to leave it out");
  const subjects = Object.fromEntries(sent) as Record<string, string>;
  if (listed !== undefined) {
    const quoted = JSON.stringify(activity);
    const names = listed.join(", ").replaceAll("?", " (optional)");
    const missing = listed.find((name) => !name.endsWith("?") && !Object.hasOwn(subjects, name));
    if (missing !== undefined && op !== "reset") wrong(`subjects has no ${missing}: the activity ${quoted} needs ${names}`);
    if (sent.some(([name]) => !listed.includes(name) && !listed.includes(`${name}?`))) {
      if (listed.length > 0) wrong(`subjects has an unknown name: the activity ${quoted} has ${names}`);
      const advice = "Write the list again with guards generate if it is old.";
      wrong(`subjects does not go with the activity ${quoted}: the list has none for it. ${advice}`);
    }
  }
  return sent.length > 0 ? subjects : undefined;
}

/** Returns the subjects that a request about an activity must have, all with one id. */
export function anySubjects({ subjects = [] }: Place, id: string): Record<string, string> {
  return Object.fromEntries(subjects.filter((name) => !name.endsWith("?")).map((name) => [name, id]));
}
