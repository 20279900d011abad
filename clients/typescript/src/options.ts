import type { Activities, Known } from "./activities.js";
import type { AgentSettings } from "./agent.js";
import { isPlain, kindOf } from "./args.js";
import type { Way } from "./call.js";
import { addressOf, httpURL } from "./connections.js";
import type { Decision } from "./decision.js";
import { ConfigurationError, type GuardsError } from "./errors.js";
import { doYouMean } from "./nearest.js";
import type { LambdaClientOf } from "./sdk.js";
import type { AwsCredentials } from "./sign.js";

/** How to reach the guards. Every option has a default. */
export interface Options<A extends Activities = Activities> {
  /**
   * The list that `guards generate` writes: activities/activities.ts, or activities.json as an object. Default: none.
   * Then each call names its guard.
   */
  activities?: A | undefined;
  /**
   * The address of an agent beside the app: `http://127.0.0.1:2774`, `unix:/PATH` or one with https:. All guards are then
   * asked there, and nothing about AWS is needed or used. Default: the variable GUARDS_AGENT.
   */
  agent?: string | undefined;
  /** The agent's token. It goes to the agent and nowhere else. Default: the variable GUARDS_AGENT_TOKEN. */
  token?: string | undefined;
  /** AWS's region. Default: found as the AWS SDK finds it. */
  region?: string | undefined;
  /**
   * AWS credentials, or a function that returns them. It is called again 5 minutes before their `expiration`. Until it returns,
   * the old ones are used up to their end. Default: found as the AWS SDK finds them.
   */
  credentials?: AwsCredentials | (() => AwsCredentials | Promise<AwsCredentials>) | undefined;
  /** The address of Lambda's API. Default: found as the AWS SDK finds it. */
  endpoint?: string | undefined;
  /** How many connections each address has at most. Further calls wait. Default: 50. */
  connections?: number | undefined;
  /**
   * A LambdaClient of the AWS SDK, which then sends the requests, with its own region, credentials and endpoint. Its retries
   * are off for these calls. Default: none. This option is there only in 0.1.
   */
  client?: LambdaClientOf | undefined;
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
   * a second. It is also called with the error of each release that `guarded`, `attempt`, `countIf`, a slot, a denied
   * check or a GuardsStore could not make, with each release of an attempt that may be too late, and with what `onLocked` and
   * `countIf` throw.
   * What it throws is ignored, and so is a promise that it returns. Default: writes the message to the console as a
   * warning.
   */
  warn?: ((error: GuardsError) => unknown) | undefined;
  /**
   * Called with each decision, how many milliseconds it took, and its way. The decision has no ids: not the user's, the
   * request's or a subject's. What it throws is ignored, and so is a promise that it returns. Default: none.
   */
  observe?: ((decision: Observed, ms: number, way: "invoke" | "url" | "agent") => unknown) | undefined;
}

/** A decision without the ids of the user, the request and the subjects. */
export type Observed = Omit<Decision, "userId" | "requestId" | "subjects">;

/** The options with their defaults. */
export interface Settings
  extends Pick<Options, "region" | "credentials" | "client" | "observe">,
    Required<Pick<Options, "connections" | "prefix" | "onOutage" | "timeout" | "maxTries" | "warn">> {
  /** A way of a test, which takes the place of all others. */
  way: Way | undefined;
  /** The option `activities`. */
  known: Known;
  agent: AgentSettings | undefined;
  endpoint: URL | undefined;
  urls: ReadonlyMap<string, URL>;
  /** How long an attempt may take if another one can follow, in milliseconds. */
  attemptTimeout: number;
}

/** The time of a request beyond the guard's decision, in milliseconds. */
const overhead = 300;

/** The longest time that a timer of Node can run, in milliseconds. A longer one would fire at once. */
export const maxTimer = 2 ** 31 - 1;

const ofAws = ["region", "credentials", "endpoint", "connections", "client", "urls"];
const names = ["activities", "agent", "token", ...ofAws, "prefix", "onOutage", "timeout", "maxTries", "decisionTimeout", "warn", "observe"];

/** Checks the options and adds the defaults. It throws a ConfigurationError. */
export function settings(options: Options, way?: Way): Settings {
  if (!isPlain(options)) throw new ConfigurationError("The options are no plain object.");
  for (const name of Object.keys(options)) {
    if (!names.includes(name)) bad(name, "not known", `one of ${names.join(", ")}`);
  }
  const { activities = {}, urls = {} } = options;
  if (!isPlain(activities)) throw new ConfigurationError("The option activities is no plain object.");
  if (!isPlain(urls)) throw new ConfigurationError("The option urls is no plain object.");
  const { prefix = "", onOutage = "allow", timeout = 3000, maxTries = 3, decisionTimeout = 1000, warn = log, observe } = options;
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
  if (observe !== undefined && typeof observe !== "function") bad("observe", observe, "a function");
  const known = readList(activities);
  const times = { timeout, maxTries, attemptTimeout };
  const agent = way && options.agent === undefined ? undefined : readAgent(options);
  return { ...readAws(options), way, agent, known, urls: parse(urls, known), prefix, onOutage, ...times, warn, observe };
}

/** Checks the options about AWS, and about how it is reached. */
function readAws(options: Options): Pick<Settings, "region" | "credentials" | "endpoint" | "connections" | "client"> {
  const { region, credentials, endpoint, connections = 50, client } = options;
  if (region !== undefined && (typeof region !== "string" || region === "")) bad("region", region, "a name such as eu-west-1");
  const { accessKeyId, secretAccessKey } = (credentials ?? {}) as Partial<AwsCredentials>;
  const areKeys = typeof accessKeyId === "string" && typeof secretAccessKey === "string";
  if (credentials !== undefined && typeof credentials !== "function" && !areKeys) {
    throw new ConfigurationError("The option credentials has no accessKeyId and secretAccessKey, and is no function that returns them.");
  }
  if (!(Number.isInteger(connections) && connections >= 1)) bad("connections", connections, "a whole number of at least 1");
  if (client !== undefined && typeof client?.send !== "function") {
    throw new ConfigurationError("The option client is no LambdaClient of AWS's SDK.");
  }
  if (client !== undefined && (region ?? credentials ?? endpoint) !== undefined) {
    throw new ConfigurationError("The option client has region, credentials and endpoint itself. Leave out those options.");
  }
  return { region, credentials, endpoint: endpoint === undefined ? undefined : readAddress("endpoint", endpoint), connections, client };
}

/** Reads where the agent is, if the app uses one. */
function readAgent({ agent, token }: Options): AgentSettings | undefined {
  const [name, text] = agent === undefined ? ["variable GUARDS_AGENT", process.env["GUARDS_AGENT"]] : ["option agent", agent];
  if (text === undefined || (agent === undefined && text === "")) return undefined;
  const secret = token ?? process.env["GUARDS_AGENT_TOKEN"];
  if (secret !== undefined && !(typeof secret === "string" && /^[\x21-\x7e]*$/.test(secret))) {
    throw new ConfigurationError("The token of the agent is no text of printable ASCII characters without spaces.");
  }
  const shared = { token: secret || "local", exposed: false, base: "" };
  const path = typeof text === "string" ? /^unix:(?:\/\/)?(\/.+)$/.exec(text)?.[1] : undefined;
  if (path !== undefined) {
    return { ...shared, origin: text, host: "localhost", protocol: "http:", hostname: "", port: "", socketPath: path };
  }
  const url = httpURL(text);
  if (!url || url.search || url.username) {
    throw new ConfigurationError(`The ${name} is ${show(text)}, want an address such as http://127.0.0.1:2774 or unix:/PATH.`);
  }
  const { protocol, hostname, host, pathname } = url;
  const loopback = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
  const exposed = Boolean(secret) && protocol === "http:" && !loopback;
  return { ...shared, ...addressOf(url), host, base: pathname.replace(/\/$/, ""), exposed };
}

/** Returns an address that begins with https: or http:. */
function readAddress(option: string, text: unknown): URL {
  return httpURL(text) ?? bad(option, text, "an address with https:");
}

/** Returns a copy of the list. */
function readList(activities: Activities): Known {
  const known = new Map<string, Activities[string]>();
  for (const [name, entry] of Object.entries(activities)) {
    const { guard, window, subjects, hold } = entry ?? {};
    if (typeof guard !== "string" || guard === "") bad(`activities["${name}"].guard`, guard, "the name of a guard");
    if (window !== undefined && !(Number.isInteger(window) && window >= 1)) {
      bad(`activities["${name}"].window`, window, "whole seconds of at least 1");
    }
    const isName = (subject: unknown) => typeof subject === "string" && subject.replace("?", "") !== "";
    if (subjects !== undefined && !(Array.isArray(subjects) && subjects.every(isName))) {
      bad(`activities["${name}"].subjects`, subjects, 'names, such as ["room", "tenant?"]');
    }
    if (hold !== undefined && typeof hold !== "boolean") bad(`activities["${name}"].hold`, hold, "true or false");
    known.set(name, { guard, window, subjects: subjects && [...subjects], hold });
  }
  return known;
}

function parse(urls: Readonly<Record<string, string>>, known: Known): Map<string, URL> {
  const guards = [...known.values()].map(({ guard }) => guard);
  const parsed = new Map<string, URL>();
  for (const [guard, text] of Object.entries(urls)) {
    if (known.size > 0 && !guards.includes(guard)) {
      throw new ConfigurationError(`The option urls["${guard}"] names no guard of the option activities.${doYouMean(guard, guards)}`);
    }
    parsed.set(guard, readAddress(`urls["${guard}"]`, text));
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
