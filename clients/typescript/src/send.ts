import { InvokeCommand } from "@aws-sdk/client-lambda";
import type { Call } from "./call.js";
import { exchange } from "./exchange.js";

/** What Lambda sent back for an Invoke. */
export interface Invoked {
  payload: string;
  /** Set if the function failed: "Unhandled" or "Handled". */
  functionError: string | undefined;
  /** The header Date. */
  date: string | undefined;
}

/** What a Function URL sent back. */
export interface Responded {
  status: number;
  /** AWS's code, if AWS itself answered. */
  code: string | undefined;
  body: string;
  /** The header Date. */
  date: string | undefined;
}

/** Sends one request to Lambda's Invoke API. */
export async function invoke(call: Call, body: string, ending: AbortController): Promise<Invoked> {
  const payload = new TextEncoder().encode(body);
  const command = new InvokeCommand({ FunctionName: call.name, Payload: payload });
  // This replaces the SDK's retries for this request only. The app can use the same client for other things.
  command.middlewareStack.add((next) => next, {
    name: "retryMiddleware",
    step: "finalizeRequest",
    priority: "high",
    override: true,
  });
  // This is the last step before the HTTP handler: the request is signed.
  let date: string | undefined;
  command.middlewareStack.add(
    (next) => async (args) => {
      const { response } = await exchange(call, ending, args.request as object, payload, (request) => next({ ...args, request }));
      date = response.headers["date"];
      return { response } as Awaited<ReturnType<typeof next>>;
    },
    { step: "deserialize", priority: "low" },
  );
  const response = await call.client.send(command, handling(ending));
  return { payload: response.Payload?.transformToString() ?? "", functionError: response.FunctionError, date };
}

/** Sends one request to a Function URL, with the signer and the connections of the Lambda client. */
export async function post(call: Call, url: URL, body: string, ending: AbortController): Promise<Responded> {
  const { config } = call.client;
  const request = {
    method: "POST",
    protocol: url.protocol,
    hostname: url.hostname,
    ...(url.port ? { port: Number(url.port) } : {}),
    path: url.pathname,
    query: Object.fromEntries(url.searchParams),
    headers: { host: url.host, "content-type": "application/json", "content-length": String(Buffer.byteLength(body)) },
    body,
  };
  const signer = await config.signer();
  const signed = await signer.sign(request, {
    signingDate: new Date(Date.now() + config.systemClockOffset), // the SDK measures the offset of this machine's clock
    signingRegion: call.region,
    signingService: "lambda",
  });
  const { response } = await exchange(call, ending, signed, new TextEncoder().encode(body), (request) =>
    config.requestHandler.handle(request as Parameters<typeof config.requestHandler.handle>[0], handling(ending)),
  );
  const { statusCode, headers } = response;
  const text = new TextDecoder().decode(response.body);
  return { status: statusCode, code: headers["x-amzn-errortype"]?.split(":")[0], body: text, date: headers["date"] };
}

/** Returns the options for the HTTP handler. A timeout of the handler's own would count the wait for a socket. */
function handling(ending: AbortController): { abortSignal: AbortSignal; requestTimeout: number } {
  return { abortSignal: ending.signal, requestTimeout: 0 };
}
