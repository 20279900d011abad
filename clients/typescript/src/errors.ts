import type { Decision } from "./decision.js";

/** What an error is about. */
export interface ErrorDetails {
  /** The function that was asked, with its prefix. */
  guard?: string | undefined;
  cause?: unknown;
}

/** The base of all errors that this package throws. No message contains a user id or a request id. */
export class GuardsError extends Error {
  static { this.prototype.name = "GuardsError"; }

  /** The function that was asked, with its prefix; undefined if none was asked. */
  readonly guard: string | undefined;

  constructor(message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? {} : { cause: details.cause });
    this.guard = details.guard;
  }
}

/**
 * The app is not set up to ask this guard: no region, credentials, permission, function or host, or a bad option. Or
 * Lambda can't run the function until its settings are corrected.
 */
export class ConfigurationError extends GuardsError {
  static { this.prototype.name = "ConfigurationError"; }
}

/** The request contains a mistake. Nothing was counted. */
export class ValidationError extends GuardsError {
  static { this.prototype.name = "ValidationError"; }
}

/** The function answered, but not as a guard does, or it crashed. By Function URL, a timeout looks like a crash. */
export class AnswerError extends GuardsError {
  static { this.prototype.name = "AnswerError"; }
}

/** The guard did not answer in time, or it could not be reached, or it reported that its table did not answer. */
export class OutageError extends GuardsError {
  static { this.prototype.name = "OutageError"; }

  /** Whether the same request could succeed at once, so that the client sends it again. */
  readonly retryable: boolean;

  /** Whether the guard itself reported that it can't decide. Then it may still decide about other users. */
  readonly answered: boolean;

  constructor(message: string, details: ErrorDetails & { retryable?: boolean; answered?: boolean } = {}) {
    super(message, details);
    this.retryable = details.retryable ?? false;
    this.answered = details.answered ?? false;
  }
}

/** `guarded`, `attempt` or `withSlot` was refused. Its function was not called. */
export class LimitedError extends GuardsError {
  static { this.prototype.name = "LimitedError"; }

  readonly decision: Decision;

  /** The cause is the outage that refused, if there is one. */
  constructor(decision: Decision, guard: string) {
    super(decision.message ?? "Please try again later.", { guard, cause: decision.outage });
    this.decision = decision;
  }
}

/** Reports whether a value is an error. It can come from another realm: in Jest, Node's errors are no instances of the app's Error. */
export function isError(value: unknown): value is Error {
  return value instanceof Error || Object.prototype.toString.call(value) === "[object Error]";
}
