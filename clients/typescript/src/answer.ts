import type { Answer, Call } from "./call.js";
import type { Response } from "./connections.js";
import { AnswerError, ConfigurationError, type GuardsError, OutageError, ValidationError } from "./errors.js";
import { hide, httpError, notInvoked } from "./failure.js";

type Fields = Record<string, unknown>;

/** Reads the answer to an Invoke, or the response of a Function URL. It throws the error that the guard reported. */
export function readAnswer(response: Response, call: Call): Answer {
  return { fields: call.url ? readResponded(response, call) : readInvoked(response, call), date: response.headers.date };
}

function readInvoked(response: Response, call: Call): Fields {
  const fields = parse(response.body);
  const functionError = response.headers["x-amz-function-error"];
  if (response.status >= 300) throw byLambda(response, fields, call);
  if (functionError === undefined) {
    if (typeof fields["allowed"] === "boolean") return fields;
    throw noAnswer(response.body, call);
  }
  const message = String(fields["errorMessage"] ?? "");
  const type = String(fields["errorType"] ?? (/Task timed out after/.test(message) ? "Sandbox.Timedout" : functionError));
  switch (type) {
    case "ValidationError":
      throw new ValidationError(message, { guard: call.name });
    case "RateLimitExceeded": {
      const { userId, activity, op } = call.event;
      return { allowed: false, reason: "limited", userId, activity, op, granted: 0, message };
    }
    case "Unavailable": // the guard has made all its own attempts
      throw unavailable(message, call);
    case "Sandbox.Timedout":
      throw new OutageError(`${call.name} did not answer: the function timed out`, { guard: call.name });
    default:
      throw new AnswerError(`${call.name} failed: ${hide(type, call).slice(0, 100)}. Its log says why.`, { guard: call.name });
  }
}

/** Reads the response of a Function URL. It throws the error that the guard, or AWS for it, reported. */
function readResponded(response: Response, call: Call): Fields {
  const fields = parse(response.body);
  if ((response.status === 200 || response.status === 429) && typeof fields["allowed"] === "boolean") {
    const { type, title, status, "violated-policies": violated, ...answer } = fields; // a 429 is a problem document too
    return answer;
  }
  if (response.status === 400 && fields["errorType"] === "ValidationError") {
    throw new ValidationError(String(fields["detail"] ?? ""), { guard: call.name });
  }
  if (response.status === 503 && fields["errorType"] === "Unavailable") {
    throw unavailable(String(fields["detail"] ?? ""), call);
  }
  if (response.status >= 300) throw byLambda(response, fields, call);
  throw noAnswer(response.body, call);
}

/** Reads the response of an agent. It throws the error that the guard or the agent reported. */
export function readAgent(response: Response, call: Call, address: string): Fields {
  const { status, headers, body } = response;
  if (headers["guards-agent"] === undefined) {
    throw new ConfigurationError(
      `Another program than an agent of Guards answers at ${address} (HTTP ${status}). Correct the option agent or GUARDS_AGENT.`,
      { guard: call.name },
    );
  }
  const health = call.event.op === "health";
  if (health && status === 200) return {};
  if (!health && [200, 400, 429, 503].includes(status)) return readResponded(response, call);
  const { detail, title } = parse(body);
  const why = String(detail ?? title ?? "");
  if (status === 413) throw new ValidationError(hide(why, call), { guard: call.name });
  throw notInvoked(`HTTP ${status}`, why, call);
}

/** Returns the error for a status that is no success, with AWS's code and message. */
function byLambda({ status, headers }: Response, fields: Fields, call: Call): GuardsError {
  const given = String(headers["x-amzn-errortype"] ?? fields["__type"] ?? fields["code"] ?? "");
  const code = given.split(/[,:]/)[0]!.split("#").at(-1);
  const message = String(fields["Message"] ?? fields["message"] ?? fields["detail"] ?? "");
  return httpError(status, code || `HTTP ${status}`, message, call);
}

/** Returns the error for an outage that the guard itself reported. */
function unavailable(why: string, call: Call): OutageError {
  return new OutageError(`${call.name} did not answer: ${hide(why, call)}`, { guard: call.name, answered: true });
}

function noAnswer(text: string, call: Call): AnswerError {
  const first = [...hide(text, call).slice(0, 200)].slice(0, 100).join(""); // 100 characters have at most 200 UTF-16 units
  const start = JSON.stringify(first).slice(1, -1);
  return new AnswerError(`${call.name} answered something that no guard answers: ${start}. Check the function's name.`, {
    guard: call.name,
  });
}

/** Returns the fields of a JSON object; none if the text is anything else. */
function parse(text: string): Fields {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Fields) : {};
  } catch {
    return {};
  }
}
