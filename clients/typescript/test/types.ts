// The compiler checks this file: each line after @ts-expect-error must be an error.
import type { ALBHandler, APIGatewayProxyHandler, APIGatewayProxyHandlerV2, AppSyncResolverHandler, LambdaFunctionURLHandler } from "aws-lambda";
import { LambdaClient } from "@aws-sdk/client-lambda";
import type { RequestHandler, Response } from "express";
import { type Activities, type Activity, type Decision, Guards, type Reason, sendTooMany, tooMany, tooManyForLambda } from "@cric-talk/guards";
import { limit } from "@cric-talk/guards/express";
import { GuardsStore } from "@cric-talk/guards/express-rate-limit";
import { limit as fastifyLimit } from "@cric-talk/guards/fastify";
import { limit as honoLimit } from "@cric-talk/guards/hono";
import { TestGuards } from "@cric-talk/guards/testing";
import { activities } from "./activities.js";

const photo = { guard: "photos-guard", activity: "upload_photo" };
const user = { userId: "u1" };
const by = { userId: () => "u1" };

export async function types(guards: Guards<typeof activities>): Promise<string> {
  await guards.check("create_post", { userId: "u1" });
  await guards.check(photo, user);
  // @ts-expect-error The activity is not in the list.
  await guards.check("create_pots", { userId: "u1" });
  // @ts-expect-error The user is missing.
  await guards.check("create_post", {});
  // @ts-expect-error The field is misspelled.
  await guards.check("create_post", { userId: "u1", teir: "premium" });
  // @ts-expect-error A release needs a receipt.
  await guards.release("create_post", { userId: "u1" });
  await guards.release("create_post", { userId: "u1", at: 5, requestId: "r1", clear: true });
  // @ts-expect-error A renewal clears nothing.
  await guards.renew("create_post", { userId: "u1", at: 5, requestId: "r1", clear: true });
  await guards.check("create_post", { userId: "u1", subjects: { room: "r1", tenant: undefined } });
  // @ts-expect-error An id is no number.
  await guards.check("create_post", { userId: "u1", subjects: { room: 42 } });
  await guards.check("create_post", { userId: "u1", limit: 500 });
  await guards.release("create_post", { userId: "u1", at: 5, requestId: "r1", limit: { tenant: 50_000, call_api: undefined }, tier: "premium" });
  // @ts-expect-error A number is no text.
  await guards.check("create_post", { userId: "u1", limit: { tenant: "500" } });
  // @ts-expect-error A reset has no number.
  await guards.reset("create_post", { userId: "u1", limit: 500 });
  await guards.slot("create_post", { userId: "u1", orThrow: true });
  await guards.withSlot(photo, user, (slot) => slot.signal.throwIfAborted());
  // @ts-expect-error The activity is not in the list.
  await guards.slot("create_pots", user);
  const name: string = await guards.attempt("create_post", { ...user, clear: true, onLocked: (d) => d.activity }, async () => "u1");
  const response: globalThis.Response = await guards.attempt("create_post", { ...user, succeeded: (r) => r.ok }, () => fetch(name));
  await guards.attempt(photo, { ...user, succeeded: (r: globalThis.Response) => r.ok }, (d) => fetch(d.activity));
  // @ts-expect-error An attempt has an id of its own.
  await guards.attempt("create_post", { userId: "u1", requestId: response.url }, () => true);
  // @ts-expect-error An attempt is one.
  await guards.attempt("create_post", { userId: "u1", count: 2 }, () => true);
  // @ts-expect-error A renewal needs a receipt.
  await guards.renew("create_post", { userId: "u1" });
  // @ts-expect-error The activity is not in the list.
  await guards.ready("create_post", "create_pots");
  // @ts-expect-error The value is not known.
  new Guards({ onOutage: "open" });
  new Guards({ client: new LambdaClient({}) });
  new Guards({ credentials: new LambdaClient({}).config.credentials });
  // @ts-expect-error A client of another kind.
  new Guards({ client: new Map() });
  // @ts-expect-error An entry has no guard.
  new Guards({ activities: { create_post: { window: 60 } } });

  limit(guards, "create_post", { userId: (request) => request.get("x-user") });
  limit(guards, "create_post", { userId: () => "u1", refused: (_, __, response: Response) => void response.end() });
  limit(guards, "create_post", { userId: () => "u1", countIf: ({ status }) => status === 401 });
  limit(guards, "create_post", { userId: () => "u1", limit: { tenant: 500 } });
  limit(guards, "create_post", { userId: () => "u1", limit: async (request) => (request.get("x-user") ? 500 : null) });
  // @ts-expect-error The user is missing.
  limit(guards, "create_post", {});

  const activity: Activity<typeof activities> = "pin";
  const decision: Decision = await guards.status(activity, { userId: "u1" });
  const reason: Reason = decision.reason;
  const left: number | undefined = decision.remaining;
  return guards.guarded("create_post", { userId: "u1" }, (d) => `${d.reason} ${reason} ${left}`);
}

/** The middleware of each framework takes the activities of the list that its guards have, or of a stand-in. */
export function middleware(guards: Guards<typeof activities>, standIn: Pick<Guards<typeof activities>, "check">): void {
  limit(guards, photo, by);
  fastifyLimit(guards, "create_post", by);
  fastifyLimit(guards, photo, by);
  honoLimit(guards, "create_post", by);
  honoLimit(guards, photo, by);
  // @ts-expect-error The activity is not in the list.
  limit(guards, "create_pots", by);
  // @ts-expect-error The activity is not in the list.
  fastifyLimit(guards, "create_pots", by);
  // @ts-expect-error The activity is not in the list.
  honoLimit(guards, "create_pots", by);
  limit(standIn, "create_post", by);
  // @ts-expect-error The activity is not in the list.
  limit(standIn, "create_pots", by);
  limit({ check: async (activity: string) => ({ activity }) as Decision }, "upload_photo", by);
  const store: GuardsStore = new GuardsStore(guards, "create_post");
  void store.resetKey("u1");
  new GuardsStore(guards, photo);
  // @ts-expect-error The activity is not in the list.
  new GuardsStore(guards, "create_pots");
}

/** Without a list, a call must name its guard. */
export async function without(): Promise<void> {
  for (const guards of [new Guards(), new Guards({}), new Guards({ prefix: "dev-" })]) {
    await guards.check(photo, user);
    limit(guards, photo, by);
    // @ts-expect-error There is no list.
    await guards.check("create_post", user);
    // @ts-expect-error There is no list.
    limit(guards, "create_post", by);
  }
}

/** An agent knows the guard of each activity. */
export async function byAgent(): Promise<void> {
  const guards = new Guards<Activities>({ agent: "unix:/run/guards.sock" });
  await guards.check("upload_photo", user);
  limit(guards, "upload_photo", by);
}

/** A client for tests is the client of the list. */
export async function forTests(): Promise<void> {
  const guards = new TestGuards({ activities, onOutage: "deny" });
  await parts(guards);
  middleware(guards, guards);
  guards.refuse("create_post", { waitTime: 42_000 });
  guards.refuse(photo);
  // @ts-expect-error The activity is not in the list.
  guards.refuse("create_pots");
  // @ts-expect-error The field is misspelled.
  guards.refuse("create_post", { waittime: 42_000 });
  guards.allow("create_post", { crossed: 100, locked: true });
  // @ts-expect-error A refusal does not allow.
  guards.refuse("create_post", { allowed: true });
}

/** A list that the compiler can't see has any name. */
export async function parsed(text: string): Promise<void> {
  const untyped = new Guards({ activities: JSON.parse(text) });
  await untyped.ready("create_post", photo);
  limit(untyped, "create_post", by);
  new GuardsStore(untyped, "create_post");
  const list: Activities = JSON.parse(text);
  const guards = new Guards({ activities: list });
  await guards.ready("create_post", photo);
  limit(guards, "create_post", by);
  new GuardsStore(guards, "create_post");
}

/** A function can ask for guards that know what it needs. */
export async function parts(guards: Guards<typeof activities>): Promise<void> {
  const post = (some: Guards<Pick<typeof activities, "create_post">>) => some.check("create_post", user);
  await post(guards);
  const none = new Guards();
  // @ts-expect-error There is no list.
  await post(none);
  const unlisted = (some: Guards) => some.check(photo, user);
  await unlisted(guards);
}

/** A refusal has the form that calls the handler. */
export function forms(decision: Decision): unknown[] {
  const send: RequestHandler = async (_, response) => sendTooMany(response, decision);
  const rest: APIGatewayProxyHandler = async (event) => tooManyForLambda(event, decision);
  const http: APIGatewayProxyHandlerV2 = async (event) => tooManyForLambda(event, decision);
  const url: LambdaFunctionURLHandler = async (event) => tooManyForLambda(event, decision);
  const balancer: ALBHandler = async (event) => tooManyForLambda(event, decision);
  // @ts-expect-error AppSync would take the result for a success.
  const resolver: AppSyncResolverHandler<{ text: string }, unknown> = async (event) => tooManyForLambda(event, decision);
  // @ts-expect-error A Lambda function can't return a Response.
  const restResponse: APIGatewayProxyHandler = async () => tooMany(decision);
  // @ts-expect-error A Lambda function can't return a Response.
  const httpResponse: APIGatewayProxyHandlerV2 = async () => tooMany(decision);
  // @ts-expect-error A Lambda function can't return a Response.
  const urlResponse: LambdaFunctionURLHandler = async () => tooMany(decision);
  const next = async (): Promise<globalThis.Response> => tooMany(decision);
  // @ts-expect-error A route handler returns a Response, and its request is no event.
  const nextResult = async (request: Request): Promise<globalThis.Response> => tooManyForLambda(request, decision);
  // @ts-expect-error A Response of the Fetch API can't send.
  sendTooMany(new globalThis.Response(), decision);
  return [send, rest, http, url, balancer, resolver, restResponse, httpResponse, urlResponse, next, nextResult];
}
