import type { ClientRequest } from "node:http";
import { Readable } from "node:stream";
import type { Call } from "./call.js";
import { timedOut } from "./repeat.js";
import { Stopwatch } from "./stopwatch.js";

/** A request that a handler of the SDK can send. */
interface Sendable {
  body?: unknown;
}

/**
 * Sends a request, and follows it until Node's agent hands it a socket. The SDK has 50 sockets by default, and the app
 * can use them for other work, too. A request that waits for one is no sign of an outage. So the call's time stands
 * still until then.
 *
 * `ending` ends the attempt. A handler can have a timeout of its own that ends the wait for a socket. Then the request
 * is sent again.
 */
export async function inTurn<R extends Sendable, T>(
  call: Call,
  ending: AbortController,
  request: R,
  body: Uint8Array,
  send: (request: R) => Promise<T>,
): Promise<T> {
  let leave: (() => void) | undefined; // set while the request waits
  const follow = (carrier: ClientRequest): void => {
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
  // Handlers that use Node's own HTTP have metadata. With others, such as fetch, no request waits for a socket.
  const followed = call.client.config.requestHandler.metadata !== undefined;
  try {
    for (;;) {
      request.body = followed ? new Body(body, follow) : body;
      try {
        return await send(request);
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
function wait({ name, time, timeout, caller }: Call, ending: AbortController): () => void {
  time.stop();
  const end = (outage: Error): void => ending.abort(outage);
  const leave = caller.wait(end);
  if (!caller.began) return leave;
  // The guard did not answer an attempt of this call. If it answers nobody else, the call need not wait for its turn.
  const patience = new Stopwatch();
  patience.alarm(timeout - time.elapsed, () => {
    patience.stop();
    if (caller.silent) end(timedOut(name, timeout));
  });
  return () => {
    leave();
    patience.stop();
  };
}

/** A body that tells which request of Node carries it: Node's handlers pipe such a body into the request. */
class Body extends Readable {
  readonly #bytes: Uint8Array;
  readonly #follow: (carrier: ClientRequest) => void;

  constructor(bytes: Uint8Array, follow: (carrier: ClientRequest) => void) {
    super();
    this.#bytes = bytes;
    this.#follow = follow;
  }

  override pipe<T extends NodeJS.WritableStream>(carrier: T): T {
    this.#follow(carrier as unknown as ClientRequest);
    carrier.end(this.#bytes);
    return carrier;
  }

  override _read(): void {
    this.push(this.#bytes);
    this.push(null);
  }
}
