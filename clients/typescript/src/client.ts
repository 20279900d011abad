// The option client: requests go through a LambdaClient of the AWS SDK, with its middleware and its HTTP handler.
import type { ClientRequest, IncomingHttpHeaders } from "node:http";
import { Readable } from "node:stream";
import { readAnswer } from "./answer.js";
import { findRegion, regionOf } from "./aws.js";
import type { Answer, Call, Way } from "./call.js";
import { heard, maxAnswer, type Response, throwAgain, traceOf } from "./connections.js";
import { Credentials } from "./credentials.js";
import { failure } from "./failure.js";
import { Places } from "./places.js";
import { type Ending, timedOut, within } from "./repeat.js";
import { type LambdaClientOf, loadSDK } from "./sdk.js";
import { Stopwatch } from "./stopwatch.js";

/** A request that a handler of the SDK can send. */
interface Sendable {
  body?: unknown;
  protocol?: string;
  hostname?: string;
  port?: number | undefined;
}

/** Is told which request of Node carries a body. */
type Follow = (carrier: ClientRequest) => void;

/** What a handler of the SDK brought back. */
interface Received {
  statusCode: number;
  headers: Record<string, string>;
  body?: unknown;
}

/** By Invoke and by Function URL, with a client of the SDK. */
export class ByClient implements Way {
  readonly #client: LambdaClientOf;
  readonly #places: Places;
  readonly #credentials: Credentials;
  readonly #trace = traceOf();

  constructor(client: LambdaClientOf, connections: number) {
    this.#client = client;
    this.#places = new Places(connections);
    this.#credentials = new Credentials(async () => client.config.credentials());
  }

  async open(call: Call): Promise<() => void> {
    const region = await within(call.timeout, call, () => findRegion(call.name, () => this.#client.config.region()));
    call.region = regionOf(call.url) ?? region;
    await this.#credentials.find(call);
    return this.#places.enter(call);
  }

  async send(call: Call, ending: Ending): Promise<Answer> {
    const sent = call.url ? this.#post(call, call.url, ending) : this.#invoke(call, ending);
    const response = await sent.catch((error: unknown) => {
      throw failure(error, call);
    });
    return readAnswer(response, call);
  }

  async #invoke(call: Call, ending: Ending): Promise<Response> {
    const { InvokeCommand } = await loadSDK("for the option client");
    const payload = new TextEncoder().encode(call.body);
    const command = new InvokeCommand({ FunctionName: call.name, Payload: payload });
    // This replaces the SDK's retries for this request only. The app can use the same client for other things.
    command.middlewareStack.add((next) => next, { name: "retryMiddleware", step: "finalizeRequest", priority: "high", override: true });
    // This is the last step before the HTTP handler: the request is signed.
    let headers: IncomingHttpHeaders = {};
    command.middlewareStack.add(
      (next) => async (args) => {
        const response = await this.#exchange(call, ending, args.request as Sendable, payload, (request) => next({ ...args, request }));
        headers = response.headers;
        return { response } as Awaited<ReturnType<typeof next>>;
      },
      { step: "deserialize", priority: "low" },
    );
    const output = (await this.#client.send(command, handling(ending))) as { Payload?: Uint8Array; StatusCode?: number };
    return { status: output.StatusCode ?? 200, headers, body: new TextDecoder().decode(output.Payload ?? new Uint8Array()) };
  }

  async #post(call: Call, url: URL, ending: Ending): Promise<Response> {
    const { config } = this.#client;
    const body = new TextEncoder().encode(call.body);
    const request = {
      method: "POST",
      protocol: url.protocol,
      hostname: url.hostname,
      ...(url.port ? { port: Number(url.port) } : {}),
      path: url.pathname,
      query: Object.fromEntries(url.searchParams),
      headers: { host: url.host, "content-type": "application/json", "content-length": String(body.length), ...this.#trace() },
      body,
    };
    const signingDate = new Date(Date.now() + config.systemClockOffset); // the SDK measures the offset of this machine's clock
    const signed = await (await config.signer()).sign(request, { signingDate, signingRegion: call.region, signingService: "lambda" });
    const response = await this.#exchange(call, ending, signed, body, (signed) => config.requestHandler.handle(signed, handling(ending)));
    return { status: response.statusCode, headers: response.headers, body: new TextDecoder().decode(response.body) };
  }

  /** Sends one request when it has a socket, and reads at most 64 KiB of its answer. */
  async #exchange(
    call: Call,
    ending: Ending,
    request: Sendable,
    bytes: Uint8Array,
    send: (request: Sendable) => Promise<{ response: unknown }>,
  ): Promise<Received & { body: Uint8Array }> {
    const address = `${request.protocol}//${request.hostname}:${request.port}`;
    const withBody = (body: unknown) => send(Object.assign(request, { body }));
    try {
      // Handlers that use Node's own HTTP have metadata. With others, such as fetch, no request waits for a socket.
      const followed = this.#client.config.requestHandler.metadata !== undefined;
      const sent = followed ? inTurn(call, ending, (follow) => withBody(followedBody(bytes, follow))) : withBody(bytes);
      const { response } = (await sent) as { response: Received };
      heard(address, call);
      return Object.assign(response, { body: await read(response.body) });
    } catch (error) {
      return throwAgain(error, address, call.name);
    }
  }
}

/** Returns the options for the HTTP handler. A timeout of the handler's own would count the wait for a socket. */
function handling(ending: Ending): { abortSignal: AbortSignal; requestTimeout: number } {
  const controller = new AbortController();
  ending.whenEnded(() => controller.abort());
  return { abortSignal: controller.signal, requestTimeout: 0 };
}

/**
 * Sends a request, and follows it until Node's agent hands it a socket: the app can use the client's sockets for other work.
 * The call's time stands still until then. A handler can have a timeout of its own that ends this wait. Then the request is
 * sent again.
 */
async function inTurn<T>(call: Call, ending: Ending, send: (follow: Follow) => Promise<T>): Promise<T> {
  let leave: (() => void) | undefined; // set while the request waits
  const follow: Follow = (carrier) => {
    leave?.();
    leave = undefined;
    if (!queued(carrier)) return call.caller.begin();
    leave = wait(call, ending);
    carrier.once("socket", () => {
      if (!leave) return;
      leave();
      leave = undefined;
      call.caller.begin();
      call.time.start();
    });
  };
  try {
    for (;;) {
      try {
        return await send(follow);
      } catch (error) {
        if (!leave || !(error instanceof Error) || error.name !== "TimeoutError") throw error;
      }
    }
  } finally {
    leave?.();
  }
}

/** Reports whether the request waits for a socket of its agent. */
function queued(carrier: ClientRequest): boolean {
  const { agent } = carrier as { agent?: { requests?: Record<string, readonly unknown[]> } };
  return Object.values(agent?.requests ?? {}).some((queue) => queue.includes(carrier));
}

/** Stops the time of a call that waits for a socket. Returns a function for the end of the wait. */
function wait({ name, time, timeout, caller }: Call, ending: Ending): () => void {
  time.stop();
  const end = (outage: Error): void => ending.end(outage);
  const leave = caller.wait(end);
  if (!caller.began) return leave;
  // The guard did not answer an attempt of this call. If it answers nobody else, the call need not wait for its turn.
  const patience = new Stopwatch();
  patience.start();
  patience.alarm(timeout - time.elapsed, () => {
    patience.stop();
    if (caller.silent) end(timedOut(name, timeout));
  });
  return () => {
    leave();
    patience.stop();
  };
}

/** Returns a body that tells which request of Node carries it: Node's handlers pipe such a body into the request. */
function followedBody(bytes: Uint8Array, follow: Follow): Readable {
  const read = function (this: Readable): void {
    this.push(bytes);
    this.push(null);
  };
  const pipe = <T extends NodeJS.WritableStream>(carrier: T): T => {
    follow(carrier as unknown as ClientRequest);
    carrier.end(bytes);
    return carrier;
  };
  return Object.assign(new Readable({ read }), { pipe });
}

/** Reads a body. If it has more than 64 KiB, it returns their text with dots after it, and closes the connection. */
async function read(body: unknown): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of iterable(body)) {
    chunks.push(chunk);
    size += chunk.byteLength;
    if (size > maxAnswer) return Buffer.concat([Buffer.concat(chunks, maxAnswer), Buffer.from("...")]);
  }
  return Buffer.concat(chunks);
}

/** Node's handlers have a stream as the body, and others can have a Blob. */
function iterable(body: unknown): AsyncIterable<Uint8Array> | Uint8Array[] {
  if (body === undefined || body === null) return [];
  if (body instanceof Uint8Array) return [body];
  return (body instanceof Blob ? body.stream() : body) as AsyncIterable<Uint8Array>;
}
