import type { Call } from "./call.js";
import { OutageError } from "./errors.js";
import { causes } from "./failure.js";
import { inTurn } from "./turn.js";

/** How much of an answer is read, in bytes. A guard's answers are far shorter. */
const maxAnswer = 64 * 1024;

/** The addresses that have sent this process an HTTP response. */
const spoken = new Set<string>();

/** Codes of Node for bytes that are no HTTP or no TLS, and for a proxy that opens no tunnel. */
const noHTTP = /^(HPE_|ERR_SSL_|EPROTO$|ERR_PROXY_TUNNEL$)/;

/** A request that is signed. */
interface Signed {
  body?: unknown;
  protocol?: string;
  hostname?: string;
  port?: number | undefined;
}

/** What is read here of a response. */
interface Received {
  statusCode: number;
  headers: Record<string, string>;
  body?: unknown;
}

/**
 * Sends one request in its turn, and reads at most 64 KiB of its answer.
 *
 * A server that speaks no HTTP is a mistake, such as a wrong port. But if this process has had an HTTP response of the same
 * address, it is an outage.
 */
export async function exchange<R extends Received>(
  call: Call,
  ending: AbortController,
  request: Signed,
  body: Uint8Array,
  send: (request: Signed) => Promise<{ response: unknown }>,
): Promise<{ response: R & { body: Uint8Array } }> {
  const address = `${request.protocol}//${request.hostname}:${request.port}`;
  try {
    const { response } = (await inTurn(call, ending, request, body, send)) as { response: R };
    spoken.add(address);
    call.caller.heard();
    return { response: Object.assign(response, { body: await read(response.body) }) };
  } catch (error) {
    const code = [...causes(error)].map((cause) => String(cause.code)).find((found) => noHTTP.test(found));
    if (code === undefined || !spoken.has(address)) throw error;
    throw new OutageError(`${call.name} did not answer: ${code}`, { guard: call.name, cause: error, retryable: true });
  }
}

/**
 * Reads a body. If it has more than 64 KiB, it returns their text with dots after it, which is no JSON and so no answer of
 * a guard, and closes the connection.
 */
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
