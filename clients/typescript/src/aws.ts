import { readAnswer } from "./answer.js";
import type { Answer, Call, Way } from "./call.js";
import { type Address, addressOf, type Connections, type Response } from "./connections.js";
import { Credentials } from "./credentials.js";
import type { Environment } from "./environment.js";
import { ConfigurationError } from "./errors.js";
import { failure } from "./failure.js";
import { type Ending, within } from "./repeat.js";
import { canonicalQuery, escape, firstLines, sign } from "./sign.js";

/** A clock that differs from AWS's by so much is wrong, in milliseconds: AWS refuses signatures from five minutes on. */
const tooWrong = 4 * 60_000;

/** Where the requests for a function go. */
interface Target {
  address: Address;
  /** The path and the query as they are sent. */
  path: string;
  /** What the signatures of its requests begin with. */
  first: string;
  /** The headers of each request before it is signed. */
  headers: Record<string, string>;
}

/** By Lambda's API Invoke, and by Function URL: each request is signed here. */
export class Aws implements Way {
  readonly #environment: Environment;
  readonly #connections: Connections;
  readonly #credentials: Credentials;
  /** By the names of functions. */
  readonly #targets = new Map<string, Target>();
  readonly #agent: string;
  /** The address of Lambda's API. */
  #endpoint: URL | undefined;
  #region = "";
  /** What this machine's clock lacks, in milliseconds. */
  #offset = 0;

  constructor(environment: Environment, connections: Connections) {
    this.#environment = environment;
    this.#connections = connections;
    this.#credentials = new Credentials(() => environment.credentials());
    const app = process.env["AWS_SDK_UA_APP_ID"];
    this.#agent = `guards-typescript${app ? ` app/${app.replace(/[^!#-'*+.^`|~\w-]/g, "-")}` : ""}`;
  }

  async open(call: Call): Promise<() => void> {
    // The SDK can need seconds to find these, so it is no part of an attempt.
    const find = () => findRegion(call.name, () => this.#environment.region());
    call.region = regionOf(call.url) ?? (this.#region ||= await within(call.timeout, call, find));
    call.credentials = await this.#credentials.find(call);
    const { address } = this.#targets.get(call.name) ?? (await this.#findTarget(call));
    return this.#connections.enter(call, address);
  }

  async send(call: Call, ending: Ending): Promise<Answer> {
    try {
      let response = await this.#signed(call, ending);
      if (response.status === 403 && this.#clockWasWrong(response)) response = await this.#signed(call, ending);
      return readAnswer(response, call);
    } catch (error) {
      throw failure(error, call);
    }
  }

  /** Reports whether AWS refused a request because this machine's clock is wrong, and follows AWS's clock from now on. */
  #clockWasWrong({ headers }: Response): boolean {
    const offset = Date.parse(headers.date ?? "") - Date.now();
    if (Number.isNaN(offset) || Math.abs(offset - this.#offset) < tooWrong) return false;
    this.#offset = offset;
    return true;
  }

  #signed(call: Call, ending: Ending): Promise<Response> {
    const { address, path, first, headers } = this.#targets.get(call.name)!;
    const { body, region } = call;
    const now = new Date(Date.now() + this.#offset);
    const sent = sign({ first, headers, body }, call.credentials!, region, "lambda", now);
    sent["user-agent"] = this.#agent;
    return this.#connections.send(call, address, path, sent, body, ending);
  }

  async #findTarget(call: Call): Promise<Target> {
    const url = call.url ?? (this.#endpoint ??= await within(call.timeout, call, () => this.#findEndpoint(call)));
    const base = url.pathname.replace(/\/$/, "");
    const path = call.url ? url.pathname : `${base}/2015-03-31/functions/${escape(call.name)}/invocations`;
    const query = [...url.searchParams];
    const search = query.length > 0 ? `?${canonicalQuery(query)}` : "";
    const headers = { "content-type": call.url ? "application/json" : "application/octet-stream", host: url.host };
    const target = { address: addressOf(url), path: path + search, first: firstLines("POST", path, query), headers };
    this.#targets.set(call.name, target);
    return target;
  }

  #findEndpoint({ name, region }: Call): Promise<URL> {
    return this.#environment.endpoint(region).catch((error: unknown) => {
      throw notInvoked(name, error);
    });
  }
}

/** Finds the region. Without one it throws a ConfigurationError. */
export async function findRegion(name: string, find: () => Promise<string>): Promise<string> {
  try {
    const region = await find();
    if (region) return region;
  } catch (error) {
    if (!/region is missing|region=""|to find the region:/i.test(String(error))) throw notInvoked(name, error);
    const install = error instanceof ConfigurationError ? ` ${error.message}` : "";
    throw new ConfigurationError(`${noRegion}${install}`, { guard: name, cause: error });
  }
  throw new ConfigurationError(noRegion, { guard: name });
}

const noRegion = "No AWS region is set. Set AWS_REGION, or pass a Lambda client that has one.";

function notInvoked(name: string, error: unknown): ConfigurationError {
  const why = error instanceof ConfigurationError ? error.message : String(error);
  return new ConfigurationError(`${name} could not be invoked: ${why}`, { guard: name, cause: error });
}

/** The region of a Function URL is part of its address. */
export function regionOf(url: URL | undefined): string | undefined {
  return url?.hostname.match(/\.lambda-url\.([a-z0-9-]+)\.on\.aws$/)?.[1];
}
