import type { Place } from "./activities.js";
import { ByAgent, isMissing } from "./agent.js";
import { Aws } from "./aws.js";
import { Breaker } from "./breaker.js";
import type { Call, Event, Way } from "./call.js";
import { ByClient } from "./client.js";
import { Connections } from "./connections.js";
import { answeredAt, type CheckArgs, type Decision, type LimitArgs, type UserArgs } from "./decision.js";
import { Environment } from "./environment.js";
import { GuardsError, OutageError, ValidationError } from "./errors.js";
import { Moment } from "./moment.js";
import type { Settings } from "./options.js";
import { checkSignal, repeat } from "./repeat.js";
import { Stopwatch } from "./stopwatch.js";
import { readSubjects } from "./subjects.js";

/** An outage is reported at most once in this time, in milliseconds. */
const warnEvery = 1000;

/** What a warning adds to an outage if nothing has ever answered this client. */
const neverReached =
  ". Lambda has not answered this client since it started: check the network. " +
  "In a VPC, the app needs a NAT gateway or an endpoint for Lambda.";

/** Asker sends what the methods of Guards ask, and calls the app's functions `warn` and `observe`. */
export class Asker {
  readonly #settings: Settings;
  readonly #way: Way;
  readonly #breaker = new Breaker();
  #lastWarning = new Moment(Infinity);

  constructor(settings: Settings) {
    this.#settings = settings;
    this.#way = wayOf(settings);
    if (settings.agent?.exposed) {
      const { origin } = settings.agent;
      this.warn(new GuardsError(`The agent's token goes to ${origin} over plain HTTP, where others can read it. Use https:.`));
    }
  }

  /** Returns what errors call a guard: its function. An agent needs no functions, and can find the guard. */
  nameOf(guard: string): string {
    return this.#settings.agent ? guard || "guards-agent" : this.#settings.prefix + guard;
  }

  /** Asks a guard, unless it did not answer a moment ago. */
  async ask(place: Place, op: Event["op"], args: Partial<CheckArgs> & UserArgs, maxTries = this.#settings.maxTries): Promise<Decision> {
    const { guard, activity, window } = place;
    const name = this.nameOf(guard);
    const { signal, subjects: given, ...rest } = args;
    const subjects = readSubjects(op, place, given, name);
    const event = { ...rest, ...(subjects && { subjects }), activity, op };
    const body = json(event, name);
    checkSignal(signal);
    const caller = this.#breaker.enter(name, this.#way.circuit);
    const time = new Stopwatch();
    const { timeout, urls } = this.#settings;
    const call: Call = { guard, name, event, body, url: urls.get(guard), region: "", signal, timeout, time, caller };
    let leave: (() => void) | undefined;
    try {
      leave = await this.#way.open(call);
      const budget = { maxTries: this.#way.once ? 1 : maxTries, attemptTimeout: this.#settings.attemptTimeout };
      const { fields, date } = await repeat(call, budget, (ending) => this.#way.send(call, ending));
      caller.answered();
      const known = window === undefined || args.tier || args.limit !== undefined ? {} : { window };
      return answeredAt(Object.assign(fields as unknown as Decision, { guard }, known, subjects && { subjects }, askedOf(args)), date);
    } catch (thrown) {
      const error = thrown instanceof OutageError ? (this.#way.outage?.(thrown, call) ?? thrown) : thrown;
      if ((error instanceof OutageError && !error.answered) || isMissing(error)) caller.lost(error);
      else if (error instanceof GuardsError) caller.answered();
      else caller.cancelled();
      throw error;
    } finally {
      time.stop();
      leave?.(); // after the outage is known, because the next call need not begin then
    }
  }

  /** Asks an agent whether its limits and settings are right. Throws what is wrong. */
  async health(): Promise<void> {
    await this.ask({ guard: "", activity: "", window: undefined, subjects: undefined, hold: false }, "health", { userId: "" });
  }

  /** Returns the outage of a guard whose table did not answer, so that its memory decided. */
  fromMemory({ guard }: Place): OutageError {
    const name = this.nameOf(guard);
    return new OutageError(`${name} decided from its memory, because its table did not answer`, { guard: name, answered: true });
  }

  /** Tells the app's function about a decision, and returns the decision. */
  observe(decision: Decision, began: number): Decision {
    const { observe, agent, urls } = this.#settings;
    if (observe) {
      const { userId, requestId, subjects, ...anonymous } = decision;
      const ms = performance.now() - began;
      callOf(() => observe(anonymous, ms, agent ? "agent" : urls.has(decision.guard) ? "url" : "invoke"));
    }
    return decision;
  }

  warnSometimes(error: GuardsError): void {
    if (this.#lastWarning.age < warnEvery) return;
    this.#lastWarning = new Moment();
    const never = !this.#breaker.reached && error instanceof OutageError && !error.answered;
    this.warn(never ? new OutageError(error.message + neverReached, { guard: error.guard, cause: error }) : error);
  }

  warn(error: GuardsError): void {
    callOf(() => this.#settings.warn(error));
  }
}

/** Returns the field of a decision that keeps what its request gave, if it gave something. */
export function askedOf({ limit, tier }: LimitArgs): Pick<Decision, "asked"> {
  if (limit === undefined && tier === undefined) return {};
  return { asked: { ...(limit !== undefined && { limit }), ...(tier !== undefined && { tier }) } };
}

/**
 * Calls a function of the app. If it fails, that must not change the decision. A rejection that nobody catches would end the
 * process.
 */
function callOf(run: () => unknown): void {
  (async () => run())().catch(() => {});
}

function wayOf({ way, agent, client, region, credentials, endpoint, timeout, connections }: Settings): Way {
  if (way) return way;
  if (agent) return new ByAgent(agent, new Connections(connections));
  if (client) return new ByClient(client, connections);
  return new Aws(new Environment({ region, credentials, endpoint, timeout }), new Connections(connections));
}

function json(event: Event, name: string): string {
  try {
    return JSON.stringify(event);
  } catch (error) {
    throw new ValidationError(`the request is not JSON: ${(error as Error).message}`, { guard: name, cause: error });
  }
}
