import type { Caller } from "./breaker.js";
import type { Decision } from "./decision.js";
import type { GuardsError, OutageError } from "./errors.js";
import type { Ending } from "./repeat.js";
import type { AwsCredentials } from "./sign.js";
import type { Stopwatch } from "./stopwatch.js";

/** What a guard is asked, as it is sent. */
export interface Event {
  userId: string;
  activity: string;
  /** "health" asks an agent whether it can decide. */
  op: Decision["op"] | "health";
  requestId?: string | undefined;
  subjects?: Readonly<Record<string, string>> | undefined;
}

/** One call of a guard, with all its attempts. */
export interface Call {
  /** The name of the guard; empty if the agent finds it. */
  guard: string;
  /** What errors call the guard: by Invoke and URL, the function's name, which is the guard's with its prefix. */
  name: string;
  event: Event;
  /** The event as JSON. */
  body: string;
  /** The Function URL, if the function is asked by URL. */
  url: URL | undefined;
  /** The region of the function, once it is found. */
  region: string;
  /** The AWS credentials that sign its requests, once they are found. */
  credentials?: AwsCredentials;
  /** Set if the app can cancel the call. */
  signal: AbortSignal | undefined;
  /** How long the call may take, in milliseconds. */
  timeout: number;
  /** How long it has taken, without the time that it waited for a connection. */
  time: Stopwatch;
  caller: Caller;
}

/** What a guard answered. */
export interface Answer {
  fields: Record<string, unknown>;
  /** The header Date. */
  date: string | undefined;
}

/** A way to ask guards: by Lambda's API and by Function URL, or by an agent. */
export interface Way {
  /** What all calls have in common if they fail together. By default, only those of one function do. */
  readonly circuit?: string;
  /** Whether only one attempt is made now, which has all the time. */
  readonly once?: boolean;
  /**
   * Finds what the requests of a call need, and waits for a connection. Returns a function that gives the connection to the
   * next call.
   */
  open(call: Call): Promise<() => void>;
  /** Sends the event once. */
  send(call: Call, ending: Ending): Promise<Answer>;
  /** Returns what the outage of a call is, if it is something else for this way. */
  outage?(error: OutageError, call: Call): GuardsError;
}
