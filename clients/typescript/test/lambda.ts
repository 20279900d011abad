// A real HTTP server in the place of Lambda, and clients that use it.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from "node:http";
import { syncBuiltinESMExports } from "node:module";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import timers, { setTimeout as sleep } from "node:timers/promises";
import { LambdaClient } from "@aws-sdk/client-lambda";
import { Guards, type GuardsError, type Options } from "@cric-talk/guards";
import { activities } from "./activities.js";

/** An answer of a guard to a check. */
export const ok = {
  allowed: true,
  reason: "ok",
  userId: "u1",
  activity: "create_post",
  op: "check",
  limit: 10,
  activityCount: 3,
  remaining: 7,
  waitTime: 0,
  resetAt: 1_700_000_100_000,
  windowKey: 28_333_334,
  granted: 1,
  at: 1_700_000_058_000,
  requestId: "r1",
};

/** A refusal. */
export const limited = {
  allowed: false,
  reason: "limited",
  userId: "u1",
  activity: "create_post",
  op: "check",
  limit: 10,
  activityCount: 10,
  remaining: 0,
  waitTime: 41_001,
  resetAt: 1_700_000_100_000,
  windowKey: 28_333_334,
  granted: 0,
  message: "Rate limit exceeded: Too many requests in a short period",
};

/** How the server treats one request. */
export type Reply =
  | "hang" // no response
  | "reset" // breaks the connection
  | "halfway" // sends the start of a response
  | "cut" // breaks the connection in the middle of a response
  | { answer: unknown; headers?: Record<string, string> } // JSON, as a function answers
  | { text: string } // what a function answers that is no guard
  | { functionError: unknown } // the function failed
  | { status: number; code?: string; message?: string; body?: string; headers?: Record<string, string> }; // Lambda failed

export interface Received {
  path: string;
  headers: IncomingHttpHeaders;
  text: string;
  event: Record<string, unknown>;
  /** The port of the client. */
  port: number | undefined;
  /** When it arrived, in milliseconds on the clock of performance.now. */
  at: number;
  /** When its connection closed before the response was complete. */
  brokenAt?: number;
}

export class Lambda {
  readonly requests: Received[] = [];
  /** The replies to the next requests. The last one serves all further requests. */
  replies: Reply[];
  /** How long a reply takes, in milliseconds. */
  delay = 0;
  readonly url: string;
  readonly #hanging: ServerResponse[] = [];

  private constructor(url: string, replies: Reply[]) {
    this.replies = replies;
    this.url = url;
  }

  static async start(t: TestContext, ...replies: Reply[]): Promise<Lambda> {
    const server = createServer();
    const lambda = new Lambda(await address(t, server.listen(0, "127.0.0.1")), replies);
    server.on("request", (request, response) => {
      const received: Received = { path: request.url ?? "", port: request.socket.remotePort, headers: request.headers, text: "", event: {}, at: performance.now() };
      lambda.requests.push(received);
      const reply = lambda.replies.length > 1 ? lambda.replies.shift() : lambda.replies[0];
      assert.ok(reply, "the test has a reply");
      response.on("close", () => {
        if (!response.writableFinished) received.brokenAt = performance.now();
      });
      request.on("data", (chunk) => (received.text += chunk));
      request.on("end", () => {
        received.event = JSON.parse(received.text);
        setTimeout(() => lambda.reply(response, reply), lambda.delay);
      });
    });
    return lambda;
  }

  private reply(response: ServerResponse, reply: Reply): void {
    if (reply === "hang") return void this.#hanging.push(response);
    if (reply === "reset") return void response.socket?.resetAndDestroy();
    if (reply === "halfway") return void response.writeHead(200, { "content-length": "100" }).write('{"allowed":');
    if (reply === "cut") {
      response.writeHead(200, { "content-length": "100" });
      return void response.write('{"allowed":', () => response.socket?.destroy());
    }
    if ("answer" in reply) response.writeHead(200, reply.headers).end(JSON.stringify(reply.answer));
    else if ("text" in reply) response.writeHead(200).end(reply.text);
    else if ("functionError" in reply) {
      response.writeHead(200, { "x-amz-function-error": "Unhandled" }).end(JSON.stringify(reply.functionError));
    } else {
      const headers = reply.code ? { "x-amzn-errortype": `${reply.code}:http://internal.amazon.com/` } : {};
      response.writeHead(reply.status, { "content-type": "application/json", ...headers, ...reply.headers });
      response.end(reply.body ?? JSON.stringify({ message: reply.message }));
    }
  }

  /** Breaks the connections of all requests that hang. */
  drop(): void {
    for (const response of this.#hanging.splice(0)) response.socket?.destroy();
  }

  /** Returns a client of AWS's SDK for this server. */
  client(credentials: () => Promise<typeof keys> = async () => keys): LambdaClient {
    return new LambdaClient({
      region: "eu-west-1",
      endpoint: this.url,
      credentials,
      maxAttempts: 5,
    });
  }

  /** Returns guards on this server, with the list of these tests. Warnings go to the array `warnings`, if there is one. */
  guards(options: Omit<Options, "activities"> & { warnings?: GuardsError[] } = {}): Guards<typeof activities> {
    const { warnings, ...rest } = options;
    const aws = rest.client ? {} : { region: "eu-west-1", endpoint: this.url, credentials: keys };
    return new Guards({ activities, ...aws, warn: (error) => warnings?.push(error), ...patient, ...rest });
  }
}

/** Returns the address of a server that begins to listen, and closes it at the end of the test. */
export async function address(t: TestContext, server: Server): Promise<string> {
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  if (!server.listening) await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** The credentials of these tests. */
export const keys = { accessKeyId: "AKID", secretAccessKey: "secret", sessionToken: "token" };

/** The default of these tests: on a busy machine, too, only a server that hangs is late. */
const patient = { decisionTimeout: 5000, timeout: 20_000 };

/** Options for tests that wait: an attempt takes 600 ms, and the last one what is left of 1500 ms. */
export const quick = { decisionTimeout: 300, timeout: 1500 };

/** More milliseconds than a step of a test needs, also on a busy machine. */
export const forever = 15_000;

/** Returns the milliseconds in the message of an outage after a timeout. */
export function timeoutOf(error: Error | undefined): number {
  return Number(/^posts-guard did not answer: timeout after (\d+) ms$/.exec(error?.message ?? "")?.[1]);
}

/** Clocks that only the test moves. Timers still follow the machine's clock, but no call takes time. */
export interface Clock {
  advance: (ms: number) => void;
  /** Moves only the clock of Date.now, as if Lambda froze the process; with a negative number, somebody sets it back. */
  freeze: (ms: number) => void;
}

/** Stops the clocks of performance.now and Date.now until the test ends, so that no pause of the machine counts. */
export function stopClock(t: TestContext): Clock {
  let now = Math.ceil(performance.now()); // sums of whole numbers are exact
  let ahead = Date.now() - now;
  t.mock.method(performance, "now", () => now);
  t.mock.method(Date, "now", () => now + ahead);
  return { advance: (ms) => void (now += ms), freeze: (ms) => void (ahead += ms) };
}

/** Replaces the sleeps of node:timers/promises until the test ends. Returns their milliseconds, rounded. */
export function recordSleeps(t: TestContext, clock: Clock): number[] {
  const sleeps: number[] = [];
  t.mock.method(timers, "setTimeout", async (ms: number) => {
    sleeps.push(Math.round(ms));
    clock.advance(ms);
  });
  syncBuiltinESMExports(); // for modules that have imported it by name
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  return sleeps;
}

/** Returns the milliseconds that something takes, also with a stopped clock. */
export async function duration(run: () => Promise<unknown>): Promise<number> {
  const start = realNow();
  await run();
  return realNow() - start;
}

const realNow = performance.now.bind(performance);

/** Waits until something has happened on the other side, for at most 5 s. */
export async function until(happened: () => boolean): Promise<void> {
  for (let n = 0; n < 500 && !happened(); n++) await sleep(10);
  assert.ok(happened(), happened.toString());
}

/** Checks that a number is in a range. Busy machines can be late, but never early. */
export function between(got: number, from: number, to: number): void {
  assert.ok(got >= from && got <= to, `got ${got}, want ${from} to ${to}`);
}

/** Removes everything about AWS from the environment until the end of the test. */
export function noAWS(t: { after: (restore: () => void) => void }): void {
  const saved = { ...process.env };
  t.after(() => {
    process.env = saved;
  });
  for (const name of Object.keys(process.env)) if (/^(AWS|GUARDS)_|_PROXY$/i.test(name)) delete process.env[name];
  process.env["AWS_EC2_METADATA_DISABLED"] = "true";
  process.env["AWS_CONFIG_FILE"] = process.env["AWS_SHARED_CREDENTIALS_FILE"] = join(tmpdir(), "guards-no-such-file");
}
