import * as http from "node:http";
import * as https from "node:https";
import type { Socket } from "node:net";
import type { Call } from "./call.js";
import { OutageError } from "./errors.js";
import { causes } from "./failure.js";
import { Moment } from "./moment.js";
import { Places } from "./places.js";
import type { Ending } from "./repeat.js";

/** How much of an answer is read, in bytes. A guard's answers are far shorter. */
export const maxAnswer = 64 * 1024;

/** How long a connection may be unused, in milliseconds. AWS's NAT gateways forget one after 350 s. */
const longestIdle = 300_000;

/** Where a request goes. The name of a host is without the brackets of IPv6. */
export interface Address {
  /** The name of the address in errors, such as `http://127.0.0.1:2774`. */
  origin: string;
  protocol: string;
  hostname: string;
  port: string;
  /** The path of a socket's file, instead of a host. */
  socketPath?: string | undefined;
}

/** Returns a text as a URL; undefined if it is none with https: or http:. */
export function httpURL(text: unknown): URL | undefined {
  const url = typeof text === "string" && URL.canParse(text) ? new URL(text) : undefined;
  return url?.protocol === "https:" || url?.protocol === "http:" ? url : undefined;
}

/** Returns where a URL leads. */
export function addressOf({ origin, protocol, hostname, port }: URL): Address {
  return { origin, protocol, hostname: hostname.replace(/^\[|\]$/g, ""), port };
}

/** What came back. */
export interface Response {
  status: number;
  headers: http.IncomingHttpHeaders;
  /** At most 64 KiB. A longer body ends with dots, so that it is no JSON and no answer of a guard. */
  body: string;
}

/** Lambda's store for what belongs to one invocation, in functions that run several at once. */
interface Lambda {
  awslambda?: { InvokeStore?: { getXRayTraceId?: () => string | undefined } };
}

/**
 * Returns a function for the header that continues the app's trace, if the app is a Lambda function. Lambda's own detection
 * of loops needs it, too.
 */
export function traceOf(): () => Record<string, string> | undefined {
  if (!process.env["AWS_LAMBDA_FUNCTION_NAME"]) return () => undefined;
  return () => {
    const id = (globalThis as Lambda).awslambda?.InvokeStore?.getXRayTraceId?.() ?? process.env["_X_AMZN_TRACE_ID"];
    return id ? { "x-amzn-trace-id": id } : undefined;
  };
}

/** Codes of Node for bytes that are no HTTP or no TLS, and for a proxy that opens no tunnel. */
const noHTTP = /^(HPE_|ERR_SSL_|EPROTO$|ERR_PROXY_TUNNEL$)/;

/** The addresses that have sent this process an HTTP response. */
const spoken = new Set<string>();

/** Notes that an address has sent the HTTP response of a call. */
export function heard(address: string, call: Call): void {
  spoken.add(address);
  call.caller.heard();
}

/**
 * Throws the error of a request again. A server that speaks no HTTP is a mistake, such as a wrong port. But if this process
 * has had an HTTP response of the same address, it is an outage.
 */
export function throwAgain(error: unknown, address: string, name: string): never {
  const code = [...causes(error)].map((cause) => String(cause.code)).find((found) => noHTTP.test(found));
  if (code === undefined || !spoken.has(address)) throw error;
  throw new OutageError(`${name} did not answer: ${code}`, { guard: name, cause: error, retryable: true });
}

/**
 * Connections are the open connections of one client, without a proxy. Each address has at most so many at once. No
 * redirect is followed.
 */
export class Connections {
  readonly #max: number;
  readonly #places = new Map<string, Places>();
  readonly #plain = new http.Agent({ keepAlive: true });
  readonly #tls = new https.Agent({ keepAlive: true });
  /** When each connection was given to a request last. */
  readonly #used = new WeakMap<Socket, Moment>();
  readonly #trace = traceOf();

  constructor(max: number) {
    this.#max = max;
  }

  /** Waits for a connection to an address, and begins the call. Returns a function that gives the connection to the next call. */
  async enter(call: Call, { origin }: Address): Promise<() => void> {
    let places = this.#places.get(origin);
    if (!places) this.#places.set(origin, (places = new Places(this.#max)));
    const leave = await places.enter(call);
    call.caller.begin();
    return leave;
  }

  /** Sends one request with these headers and its own, and reads the response. Without a body, it is a GET. */
  send(call: Call, address: Address, path: string, headers: Record<string, string>, body: string, ending: Ending): Promise<Response> {
    ending.check();
    const tls = address.protocol === "https:";
    const { hostname, port, socketPath } = address;
    headers["content-length"] = String(Buffer.byteLength(body));
    Object.assign(headers, this.#trace());
    const options = { method: body ? "POST" : "GET", path, headers, agent: tls ? this.#tls : this.#plain, hostname, port, socketPath };
    this.#closeIdle(longestIdle);
    const request = (tls ? https : http).request(options);
    request.on("socket", (socket) => this.#used.set(socket, new Moment()));
    const sent = exchange(request, body, ending, () => heard(address.origin, call));
    return sent.catch((error: unknown) => {
      if (!call.signal?.aborted) this.#closeIdle();
      return throwAgain(error, address.origin, call.name);
    });
  }

  /**
   * Closes the connections that have waited longer for their next request; by default, all that wait. After a freeze, or a
   * restart of the other side, they can be as dead as the one that just failed, so a repeat takes a new one.
   */
  #closeIdle(longest = -1): void {
    for (const agent of [this.#plain, this.#tls]) {
      for (const sockets of Object.values(agent.freeSockets)) {
        for (const socket of [...(sockets ?? [])]) {
          if ((this.#used.get(socket)?.age ?? Infinity) <= longest) break; // the others became idle later
          socket.destroy();
        }
      }
    }
  }
}

/**
 * Sends a request, and reads at most 64 KiB of the response. It calls `heard` at the beginning of the response. When the
 * attempt ends early, it closes the connection, and also after 64 KiB.
 */
function exchange(request: http.ClientRequest, body: string, ending: Ending, heard: () => void): Promise<Response> {
  return new Promise((resolve, reject) => {
    ending.whenEnded(() => request.destroy());
    request.on("error", reject);
    request.on("response", (response) => {
      heard();
      const { statusCode: status = 0, headers } = response;
      const chunks: Buffer[] = [];
      let size = 0;
      response.on("data", (chunk: Buffer) => {
        chunks.push(chunk);
        size += chunk.length;
        if (size <= maxAnswer) return;
        response.destroy();
        resolve({ status, headers, body: `${Buffer.concat(chunks, maxAnswer).toString()}...` });
      });
      response.on("end", () => resolve({ status, headers, body: Buffer.concat(chunks).toString() }));
      response.on("error", reject);
    });
    request.end(body);
  });
}
