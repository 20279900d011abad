import { setTimeout as sleep } from "node:timers/promises";
import { readAgent } from "./answer.js";
import type { Answer, Call, Way } from "./call.js";
import type { Address, Connections } from "./connections.js";
import { ConfigurationError, type GuardsError, OutageError } from "./errors.js";
import { causes, failure } from "./failure.js";
import type { Ending } from "./repeat.js";

/** Where an agent is, and what it wants to be told. */
export interface AgentSettings extends Address {
  /** The path before the guard's name, without a slash at its end. */
  base: string;
  token: string;
  /** The header Host. */
  host: string;
  /** Whether others on the network can read a token on its way. */
  exposed: boolean;
}

/** The longest pause before an agent that refuses connections is asked again, in milliseconds. */
const maxPause = 250;

/** The agents that have answered this process. Until then, an absent one is a mistake, such as a wrong port. */
const answered = new Set<string>();

/** The errors for agents that have never answered. */
const missing = new WeakSet<object>();

/** Reports whether an error is about an agent that has never answered this process. */
export function isMissing(error: unknown): error is ConfigurationError {
  return error instanceof ConfigurationError && missing.has(error);
}

/** Through an agent beside the app: plain HTTP, no AWS, no proxy and no redirect. */
export class ByAgent implements Way {
  readonly circuit = "agent";
  readonly #agent: AgentSettings;
  readonly #connections: Connections;
  readonly #headers: Record<string, string>;
  /** Why the last connection was refused. */
  #refused = "";

  constructor(agent: AgentSettings, connections: Connections) {
    this.#agent = agent;
    this.#connections = connections;
    this.#headers = { host: agent.host, "content-type": "application/json", "guards-token": agent.token };
  }

  /** Whether the first attempt is the only one. An agent that has never answered is waited for in this attempt. */
  get once(): boolean {
    return !answered.has(this.#agent.origin);
  }

  open(call: Call): Promise<() => void> {
    return this.#connections.enter(call, this.#agent);
  }

  async send(call: Call, ending: Ending): Promise<Answer> {
    const { origin, base } = this.#agent;
    const health = call.event.op === "health";
    const path = `${base}/${health ? "health" : encodeURIComponent(call.guard)}`;
    for (let n = 0; ; n++) {
      try {
        const response = await this.#connections.send(call, this.#agent, path, { ...this.#headers }, health ? "" : call.body, ending);
        if (response.headers["guards-agent"] !== undefined) answered.add(origin);
        return { fields: readAgent(response, call, origin), date: response.headers.date };
      } catch (error) {
        const refusal = [...causes(error)].find(({ code }) => code === "ECONNREFUSED" || code === "ENOENT");
        if (!refusal) throw failure(error, call);
        this.#refused = refusal.message || String(refusal.code);
        if (!this.once) {
          const details = { guard: call.name, cause: error, retryable: true };
          throw new OutageError(`${call.name} did not answer: ${this.#refused}`, details);
        }
        await sleep(Math.random() * Math.min(maxPause, 50 * 2 ** n)); // the agent may still be starting
      }
    }
  }

  /** Until an agent has answered this process, its absence is a mistake. */
  outage(error: OutageError, { name }: Call): GuardsError {
    const { origin } = this.#agent;
    if (answered.has(origin)) return error;
    const why = this.#refused || error.message.slice(`${name} did not answer: `.length);
    const message = `No agent has answered at ${origin}: ${why}. Start guards-agent there, or correct the option agent or GUARDS_AGENT.`;
    const mistake = new ConfigurationError(message, { guard: name, cause: error });
    missing.add(mistake);
    return mistake;
  }
}
