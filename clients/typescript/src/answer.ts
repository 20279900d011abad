import type { Call } from "./call.js";
import { AnswerError, OutageError, ValidationError } from "./errors.js";
import { hide, httpError } from "./failure.js";
import type { Invoked, Responded } from "./send.js";

type Fields = Record<string, unknown>;

/** Reads the answer to an Invoke. It throws the error that the guard reported. */
export function readInvoked(reply: Invoked, call: Call): Fields {
  const fields = parse(reply.payload);
  if (reply.functionError === undefined) {
    if (typeof fields["allowed"] === "boolean") return fields;
    throw noAnswer(reply.payload, call);
  }
  const message = String(fields["errorMessage"] ?? "");
  const type = String(fields["errorType"] ?? (/Task timed out after/.test(message) ? "Sandbox.Timedout" : reply.functionError));
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
export function readResponded(reply: Responded, call: Call): Fields {
  const fields = parse(reply.body);
  if ((reply.status === 200 || reply.status === 429) && typeof fields["allowed"] === "boolean") {
    const { type, title, status, "violated-policies": violated, ...answer } = fields; // a 429 is a problem document too
    return answer;
  }
  if (reply.status === 400 && fields["errorType"] === "ValidationError") {
    throw new ValidationError(String(fields["detail"] ?? ""), { guard: call.name });
  }
  if (reply.status === 503 && fields["errorType"] === "Unavailable") {
    throw unavailable(String(fields["detail"] ?? ""), call);
  }
  if (reply.status >= 300) {
    const message = String(fields["Message"] ?? fields["message"] ?? fields["detail"] ?? "");
    throw httpError(reply.status, reply.code ?? `HTTP ${reply.status}`, message, call);
  }
  throw noAnswer(reply.body, call);
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
