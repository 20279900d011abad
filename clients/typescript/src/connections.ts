import * as http from "node:http";
import * as https from "node:https";
import type { Call } from "./call.js";
import { OutageError } from "./errors.js";
import { causes } from "./failure.js";
import { Places } from "./places.js";

/** How much of an answer is read, in bytes. A guard's answers are far shorter. */
export const maxAnswer = 64 * 1024;

/** Where a request goes. */
export interface Address {
  /** The name of the address in errors, such as `http://127.0.0.1:2774`. */
  origin: string;
  protocol: string;
  hostname: string;
  port: string;
  /** The path of a socket's file, instead of a host. */
  socketPath?: string | undefined;
}

/** What came back. */
export interface Response {
  status: number;
  headers: http.IncomingHttpHeaders;
  /** At most 64 KiB. A longer body ends with dots, so that it is no JSON and no answer of a guard. */
  body: string;
}

/** Codes of Node for bytes that are no HTTP or no TLS, and for a proxy that opens no tunnel. */
const noHTTP = /^(HPE_|ERR_SSL_|EPROTO$|ERR_PROXY_TUNNEL$)/;

/** The addresses that have sent this process an HTTP response. */
const spoken = new Set<string>();

/** Notes that an address has sent an HTTP response. */
export function hasSpoken(address: string): void {
  spoken.add(address);
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

  constructor(max: number) {
    this.#max = max;
  }

  /** Returns the places of an address. */
  places(origin: string): Places {
    let places = this.#places.get(origin);
    if (!places) this.#places.set(origin, (places = new Places(this.#max)));
    return places;
  }

  /** Sends one POST and reads the response. */
  async post(call: Call, address: Address, path: string, headers: Record<string, string>, body: string, ending: AbortSignal): Promise<Response> {
    ending.throwIfAborted();
    const tls = address.protocol === "https:";
    const { hostname, port, socketPath } = address;
    const options = {
      method: "POST",
      path,
      headers: { ...headers, "content-length": Buffer.byteLength(body) },
      agent: tls ? this.#tls : this.#plain,
      ...(socketPath === undefined ? { hostname: hostname.replace(/^\[|\]$/g, ""), port } : { socketPath }),
    };
    try {
      const response = await exchange((tls ? https : http).request(options), body, ending);
      call.caller.heard();
      spoken.add(address.origin);
      return { status: response.statusCode ?? 0, headers: response.headers, body: await read(response) };
    } catch (error) {
      this.#closeIdle();
      return throwAgain(error, address.origin, call.name);
    }
  }

  /**
   * Closes the connections that wait for their next request. After a freeze, or a restart of the other side, they can be as
   * dead as the one that just failed, so a repeat takes a new one.
   */
  #closeIdle(): void {
    for (const agent of [this.#plain, this.#tls]) {
      for (const sockets of Object.values(agent.freeSockets)) for (const socket of [...(sockets ?? [])]) socket.destroy();
    }
  }
}

/** Sends a request and waits for the beginning of its response. When `ending` aborts, the connection is closed. */
function exchange(request: http.ClientRequest, body: string, ending: AbortSignal): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => {
    const end = () => request.destroy();
    request.on("response", resolve);
    request.on("error", reject);
    request.on("close", () => ending.removeEventListener("abort", end));
    ending.addEventListener("abort", end);
    request.end(body);
  });
}

/** Reads at most 64 KiB of a body. After more, it closes the connection. */
function read(response: http.IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    response.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      size += chunk.length;
      if (size <= maxAnswer) return;
      response.destroy();
      resolve(`${Buffer.concat(chunks, maxAnswer).toString()}...`);
    });
    response.on("end", () => resolve(chunks.length === 1 ? chunks[0]!.toString() : Buffer.concat(chunks).toString()));
    response.on("error", reject);
  });
}
