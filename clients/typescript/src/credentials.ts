import type { Call } from "./call.js";
import { ConfigurationError, OutageError } from "./errors.js";
import { kind } from "./failure.js";
import { within } from "./repeat.js";
import type { AwsCredentials } from "./sign.js";

/**
 * Credentials finds the AWS credentials before the first attempt of a call. Their source can need seconds to find them, or
 * to learn that there are none. In an attempt, such a mistake would look like a timeout of the guard.
 */
export class Credentials {
  readonly #source: () => AwsCredentials | Promise<AwsCredentials>;
  #found = false;

  constructor(source: () => AwsCredentials | Promise<AwsCredentials>) {
    this.#source = source;
  }

  /**
   * Waits for the credentials, for at most the time of the call. Until they were found once, it throws a
   * ConfigurationError. Credentials that were found before and can't be renewed are an outage.
   */
  async find(call: Call): Promise<AwsCredentials> {
    const { name, timeout } = call;
    const asked = this.#source();
    if (!(asked instanceof Promise)) {
      this.#found = true;
      return asked;
    }
    // Only what the source threw, or its silence, is about the credentials.
    const ask = () => asked.then((found) => ({ found }), (error: unknown) => ({ error }));
    const result = await within<{ found: AwsCredentials } | { error: unknown }>(timeout, call, ask).catch((error: unknown) => {
      if (error instanceof OutageError) return { error };
      throw error;
    });
    if ("found" in result) {
      this.#found = true;
      return result.found;
    }
    const why = whyNot(result.error);
    const details = { guard: name, cause: result.error };
    if (this.#found) throw new OutageError(`${name} did not answer: the AWS credentials could not be renewed${why}`, details);
    throw new ConfigurationError(
      `No AWS credentials were found${why}. Give the app a role, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.`,
      details,
    );
  }
}

/** Returns why there are no credentials, without the source's own message, which could contain a secret. */
function whyNot(error: unknown): string {
  if (error instanceof OutageError) return ": their source did not answer in time";
  if (error instanceof ConfigurationError) return `: ${error.message.replace(/\.$/, "")}`; // of this package
  const why = kind(error);
  return why === "CredentialsProviderError" ? "" : `: their source failed (${why})`;
}
