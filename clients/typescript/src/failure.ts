import type { Call } from "./call.js";
import { AnswerError, ConfigurationError, GuardsError, isError, OutageError } from "./errors.js";

/** Error codes that AWS returns if it refuses credentials. Some services append "Exception". */
const badCredentials =
  /^(UnrecognizedClient|InvalidClientTokenId|InvalidSignature|SignatureDoesNotMatch|ExpiredToken|IncompleteSignature|MissingAuthenticationToken)(Exception)?$/;

/** Lambda's codes with status 502 for what does not pass by itself. */
const lasting =
  /^(EC2AccessDenied|InvalidRuntime|InvalidSecurityGroupID|InvalidSubnetID|InvalidZipFile|KMSAccessDenied|KMSDisabled|KMSInvalidState|KMSNotFound)(Exception)?$/;

/** Lambda's other codes with status 502. */
const passing = /^(EC2Throttled|EC2Unexpected|ENILimitReached|ResourceNotReady|SubnetIPAddressLimitReached)(Exception)?$/;

/** What the SDK calls a response without a code of AWS, or with a body that is no JSON. */
const unnamed = /^(Unknown|UnknownError|Error|SyntaxError|\d+)$/;

/** Codes of Node for connections that could not be made, or that broke. */
const noConnection =
  /^(EADDRNOTAVAIL|EAI_AGAIN|ECONNABORTED|ECONNREFUSED|ECONNRESET|EHOSTDOWN|EHOSTUNREACH|EMFILE|ENETDOWN|ENETUNREACH|ENFILE|ENOBUFS|EPIPE|ETIMEDOUT|HPE_INVALID_EOF_STATE)$/;

/** What this package reads from an error of the SDK or of Node. */
interface Failure {
  name: string;
  message: string;
  code?: unknown;
  /** The host that was looked up, if that failed. */
  hostname?: string;
  cause?: unknown;
  $metadata?: { httpStatusCode?: number };
}

/** Turns an error of the SDK into one of this package. */
export function failure(error: unknown, call: Call): GuardsError {
  if (error instanceof GuardsError) return error;
  const { name, region, url } = call;
  const e: Failure = isError(error) ? error : { name: "Error", message: String(error) };
  const status = e.$metadata?.httpStatusCode;
  if (status !== undefined && status >= 300) {
    const code = unnamed.test(e.name) ? `HTTP ${status}` : e.name;
    return httpError(status, code, unnamed.test(e.message) || e.name === "SyntaxError" ? "" : e.message, call, error);
  }
  const all = [...causes(e)];
  // ENOTFOUND: the name servers answered that the host does not exist. If none answered, the code is EAI_AGAIN.
  const absent = all.find((c) => c.code === "ENOTFOUND");
  if (absent) {
    // It is usually a misspelt region. So this is a mistake, which lets nobody through.
    const { hostname: host = "with this name" } = absent;
    const check = url?.hostname === host ? `the URL of ${name}` : `the region ${region}`;
    return new ConfigurationError(`There is no host ${host}. Check ${check}.`, { guard: name, cause: error });
  }
  const broken = all.map((c) => c.code).find((code): code is string => typeof code === "string" && noConnection.test(code));
  if (broken !== undefined || e.name === "TimeoutError") return outage(e.message || broken || e.name, call, error);
  // The credentials were found before the first attempt, so they could not be renewed since.
  if (e.name === "CredentialsProviderError") return outage(e.name, call, error);
  // For example a certificate that is not valid. That is a mistake somewhere, so it must not open the door.
  return notInvoked(kind(e), e.message, call, error);
}

/** Returns the code of an error of Node, or else the error's name. */
export function kind(error: unknown): string {
  if (!isError(error)) return "Error";
  const { code } = error as Failure;
  return typeof code === "string" ? code : error.name;
}

/** Turns an error of Lambda into one of this package: an HTTP status that is no success, with AWS's code and message. */
export function httpError(status: number, code: string, message: string, call: Call, cause?: unknown): GuardsError {
  const { name, region, url } = call;
  const details = { guard: name, cause };
  const mistake = (problem: string) => new ConfigurationError(problem, details);
  if (lasting.test(code)) {
    const why = (message ? `${code}: ${hide(message, call)}` : code).replace(/\.$/, "");
    return mistake(`Lambda can't run ${name}: ${why}. Correct the function: this does not pass by itself.`);
  }
  if (url && status === 502 && !passing.test(code)) {
    return new AnswerError(`${name} failed: ${hide(code, call)}. It crashed, can't start or timed out. Its log says why.`, details);
  }
  if (status === 429 || status >= 500 || code === "TooManyRequestsException") return outage(message ? `${code}: ${message}` : code, call, cause);
  if (badCredentials.test(code)) return mistake(`AWS refused the credentials (${code}). Renew them, and check this machine's clock.`);
  if (url && status === 403) {
    return mistake(`The app may not call the URL of ${name}. Allow its role lambda:InvokeFunctionUrl and lambda:InvokeFunction on this function.`);
  }
  if (code === "AccessDeniedException") {
    return mistake(`The app may not invoke ${name} in ${region}. Allow its role the action lambda:InvokeFunction on this function.`);
  }
  if (code === "ResourceNotFoundException" || (url && status === 404)) {
    return mistake(`There is no function ${name} in ${region}. Deploy it, or check the region and the name.`);
  }
  return notInvoked(code, message, call, cause);
}

function outage(why: string, call: Call, cause: unknown): OutageError {
  return new OutageError(`${call.name} did not answer: ${hide(why, call)}`, { guard: call.name, cause, retryable: true });
}

/** Returns the error for a mistake that has no sentence of its own. */
export function notInvoked(code: string, message: string, call: Call, cause?: unknown): ConfigurationError {
  return new ConfigurationError(`${call.name} could not be invoked: ${code}: ${hide(message, call)}`, { guard: call.name, cause });
}

/** A longer id is hidden anywhere. A shorter one, such as "a", is part of ordinary words, so it is hidden only as a whole word. */
const longId = 8;

/** Hides the ids of the event in a text from outside, so that they reach no log. */
export function hide(text: string, { event }: Call): string {
  for (const id of [event.userId, event.requestId, ...Object.values(event.subjects ?? {})]) {
    if (typeof id !== "string" || id === "") continue;
    const escaped = JSON.stringify(id).slice(1, -1);
    const escapedByGo = escaped.replace(/[<>&]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`);
    for (const form of [escapedByGo, escaped, id]) {
      const pattern = form.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
      text = text.replace(new RegExp(id.length < longId ? `(?<![0-9A-Za-z])${pattern}(?![0-9A-Za-z])` : pattern, "g"), "***");
    }
  }
  return text;
}

/** Lists the error, its cause, the cause of that and so on, at most six errors. Some HTTP handlers wrap an error. */
export function* causes(error: unknown): Generator<Failure> {
  for (let depth = 0; isError(error) && depth < 6; depth++) {
    yield error;
    error = error.cause;
  }
}
