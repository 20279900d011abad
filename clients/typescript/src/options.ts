import type { LambdaClient } from "@aws-sdk/client-lambda";
import type { Activities, Known } from "./activities.js";
import { isPlain, kindOf } from "./args.js";
import { ConfigurationError, type GuardsError } from "./errors.js";
import { nearest } from "./nearest.js";

/** How to reach the guards. Every option has a default. */
export interface Options<A extends Activities = Activities> {
  /**
   * The list that `guards generate` writes: activities/activities.ts, or activities.json as an object. Default: none.
   * Then each call names its guard.
   */
  activities?: A | undefined;
  /** AWS's Lambda client. Default: a new one with the SDK's defaults. The SDK's own retries are off for these calls. */
  client?: LambdaClient | undefined;
  /**
   * The Function URLs of the guards that are asked by URL instead of Invoke, by guard. If there is a list, each guard is
   * one of the list. Default: none.
   */
  urls?: Readonly<Record<string, string>> | undefined;
  /** Put before each guard's name to get its function's name. Default: "". */
  prefix?: string | undefined;
  /** The decision of a check if the guard does not answer. Default: "allow". */
  onOutage?: "allow" | "deny" | undefined;
  /**
   * How long a whole call may take, in milliseconds; at most 2,147,483,647. The wait for a socket of the client does not
   * count, nor does time that the app blocks its event loop. Default: 3000.
   */
  timeout?: number | undefined;
  /** How often a request is sent at most, 1 or more. Default: 3. */
  maxTries?: number | undefined;
  /** The guards' DECISION_TIMEOUT, in milliseconds. Default: 1000. */
  decisionTimeout?: number | undefined;
  /**
   * Called with the outage of a check that `onOutage` decided and with the error of a renewal that failed, at most once
   * a second. It is also called with the error of each release that `guarded`, a slot or a GuardsStore could not make.
   * What it throws is ignored, and so is a promise that it returns. Default: writes the message to the console as a
   * warning.
   */
  warn?: ((error: GuardsError) => unknown) | undefined;
}

/** The options with their defaults. */
export interface Settings {
  /** The option `activities`. */
  known: Known;
  urls: ReadonlyMap<string, URL>;
  prefix: string;
  onOutage: "allow" | "deny";
  timeout: number;
  maxTries: number;
  /** How long an attempt may take if another one can follow, in milliseconds. */
  attemptTimeout: number;
  warn: (error: GuardsError) => unknown;
}

/** The time of a request beyond the guard's decision, in milliseconds. */
const overhead = 300;

/** The longest time that a timer of Node can run, in milliseconds. A longer one would fire at once. */
export const maxTimer = 2 ** 31 - 1;

const names = ["activities", "client", "urls", "prefix", "onOutage", "timeout", "maxTries", "decisionTimeout", "warn"];

/** Checks the options and adds the defaults. It throws a ConfigurationError. */
export function settings(options: Options): Settings {
  if (!isPlain(options)) throw new ConfigurationError("The options are no plain object.");
  for (const name of Object.keys(options)) {
    if (!names.includes(name)) bad(name, "not known", `one of ${names.join(", ")}`);
  }
  const { activities = {}, client, urls = {} } = options;
  if (!isPlain(activities)) throw new ConfigurationError("The option activities is no plain object.");
  if (client !== undefined && typeof client?.send !== "function") {
    throw new ConfigurationError("The option client is no LambdaClient of AWS's SDK.");
  }
  if (!isPlain(urls)) throw new ConfigurationError("The option urls is no plain object.");
  const { prefix = "", onOutage = "allow", timeout = 3000, maxTries = 3, decisionTimeout = 1000, warn = log } = options;
  if (typeof prefix !== "string") bad("prefix", prefix, "a string");
  if (onOutage !== "allow" && onOutage !== "deny") bad("onOutage", onOutage, `"allow" or "deny"`);
  if (!(Number.isFinite(decisionTimeout) && decisionTimeout > 0)) bad("decisionTimeout", decisionTimeout, "milliseconds above 0");
  const attemptTimeout = decisionTimeout + overhead;
  if (!(Number.isFinite(timeout) && timeout >= attemptTimeout)) {
    bad("timeout", timeout, `at least decisionTimeout and ${overhead} ms more, ${attemptTimeout} ms`);
  }
  if (timeout > maxTimer) bad("timeout", timeout, `at most ${maxTimer} ms`);
  if (!(Number.isInteger(maxTries) && maxTries >= 1)) bad("maxTries", maxTries, "a whole number of at least 1");
  if (typeof warn !== "function") bad("warn", warn, "a function");
  const known = readList(activities);
  return { known, urls: parse(urls, known), prefix, onOutage, timeout, maxTries, attemptTimeout, warn };
}

/** Returns a copy of the list. */
function readList(activities: Activities): Known {
  const known = new Map<string, Activities[string]>();
  for (const [name, entry] of Object.entries(activities)) {
    const { guard, window, subjects } = entry ?? {};
    if (typeof guard !== "string" || guard === "") bad(`activities["${name}"].guard`, guard, "the name of a guard");
    if (window !== undefined && !(Number.isInteger(window) && window >= 1)) {
      bad(`activities["${name}"].window`, window, "whole seconds of at least 1");
    }
    const isName = (subject: unknown) => typeof subject === "string" && subject.replace("?", "") !== "";
    if (subjects !== undefined && !(Array.isArray(subjects) && subjects.every(isName))) {
      bad(`activities["${name}"].subjects`, subjects, 'names, such as ["room", "tenant?"]');
    }
    known.set(name, { guard, window, subjects: subjects && [...subjects] });
  }
  return known;
}

function parse(urls: Readonly<Record<string, string>>, known: Known): Map<string, URL> {
  const guards = [...known.values()].map(({ guard }) => guard);
  const parsed = new Map<string, URL>();
  for (const [guard, text] of Object.entries(urls)) {
    if (known.size > 0 && !guards.includes(guard)) {
      const near = nearest(guard, guards);
      const question = near === undefined ? "" : ` Do you mean "${near}"?`;
      throw new ConfigurationError(`The option urls["${guard}"] names no guard of the option activities.${question}`);
    }
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (url?.protocol !== "https:" && url?.protocol !== "http:") bad(`urls["${guard}"]`, text, "an address with https:");
    else parsed.set(guard, url);
  }
  return parsed;
}

function bad(option: string, got: unknown, want: string): never {
  throw new ConfigurationError(`The option ${option} is ${got === "not known" ? got : show(got)}, want ${want}.`);
}

function show(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return kindOf(value); // a bigint, or an object that contains itself
  }
}

function log(error: GuardsError): void {
  console.warn(`guards: ${error.message}`);
}
