import type { LambdaClient } from "@aws-sdk/client-lambda";
import type { Caller } from "./breaker.js";
import type { Decision } from "./decision.js";
import { ConfigurationError } from "./errors.js";
import type { Stopwatch } from "./stopwatch.js";

/** What a guard is asked, as it is sent. */
export interface Event {
  userId: string;
  activity: string;
  op: Decision["op"];
  requestId?: string | undefined;
  subjects?: Readonly<Record<string, string>> | undefined;
}

/** One call of a guard, with all its attempts. */
export interface Call {
  client: LambdaClient;
  /** The function's name: the guard's name with its prefix. */
  name: string;
  region: string;
  /** The Function URL, if the function is asked by URL. */
  url: URL | undefined;
  event: Event;
  /** Set if the app can cancel the call. */
  signal: AbortSignal | undefined;
  /** How long the call may take, in milliseconds. */
  timeout: number;
  /** How long it has taken, without the time that a request waited for a socket. */
  time: Stopwatch;
  caller: Caller;
}

/** Finds the region. Without one it throws a ConfigurationError. */
export async function newCall(asked: Omit<Call, "region">): Promise<Call> {
  const { client, name, url } = asked;
  try {
    const region = await client.config.region();
    if (region) return { ...asked, region: regionOf(url) ?? region };
  } catch (error) {
    if (!/region is missing|region=""/i.test(String(error))) {
      throw new ConfigurationError(`${name} could not be invoked: ${String(error)}`, { guard: name, cause: error });
    }
  }
  throw new ConfigurationError("No AWS region is set. Set AWS_REGION, or pass a Lambda client that has one.", { guard: name });
}

/** The region of a Function URL is part of its address. */
function regionOf(url: URL | undefined): string | undefined {
  return url?.hostname.match(/\.lambda-url\.([a-z0-9-]+)\.on\.aws$/)?.[1];
}
