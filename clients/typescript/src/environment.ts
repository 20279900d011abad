import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { httpURL } from "./connections.js";
import { ConfigurationError } from "./errors.js";
import { Moment } from "./moment.js";
import type { Settings } from "./options.js";
import { endpointBySDK, loadClient, type Sdk } from "./sdk.js";
import type { AwsCredentials } from "./sign.js";

/** What the app's options say about AWS, and how long a call may take. */
type Given = Partial<Pick<Settings, "region" | "credentials" | "endpoint" | "timeout">>;

/** The partitions of AWS whose names are known here: the form of their regions, and their suffixes. */
const partitions = [
  { region: /^(us|eu|ap|sa|ca|me|af|il|mx)-\w+-\d+$/, suffix: "amazonaws.com", dual: "api.aws" },
  { region: /^cn-\w+-\d+$/, suffix: "amazonaws.com.cn", dual: "api.amazonwebservices.com.cn" },
  { region: /^us-gov-\w+-\d+$/, suffix: "amazonaws.com", dual: "api.aws" },
];

/** The settings of a profile that say where Lambda is, if no variable does. */
const urls = /^\s*(endpoint_url|services)\s*=/m;

/** The settings of a profile that count even beside a variable. */
const modes = /^\s*(ignore_configured_endpoint_urls|use_(fips|dualstack)_endpoint)\s*=/m;

/**
 * Environment finds region, credentials and endpoint as the AWS SDK does. It knows the options of the app and the variables
 * of the environment itself. For everything else, such as a profile, it loads the SDK.
 */
export class Environment {
  readonly #given: Given;
  readonly #env: NodeJS.ProcessEnv;
  #loaded: Promise<Sdk> | undefined;
  #sources: Promise<() => AwsCredentials | Promise<AwsCredentials>> | undefined;
  /** The credentials as they were found last. */
  #found: AwsCredentials | undefined;
  #renewing: Promise<AwsCredentials> | undefined;
  /** When the source was asked last. */
  #asked = new Moment(Infinity);

  constructor(given: Given, env: NodeJS.ProcessEnv = process.env) {
    this.#given = given;
    this.#env = env;
  }

  /** Returns the region, or an empty text if there is none. */
  async region(): Promise<string> {
    const region = this.#given.region ?? this.#env["AWS_REGION"];
    if (region && partitionOf(region)) return region;
    return (await this.#sdk("to find the region")).config.region();
  }

  /**
   * Returns the credentials that were found last, until their end. In their last 5 minutes, their source is asked for others, at
   * most once a second. Without any, it is asked again if it is silent for the time of a call.
   */
  credentials(): AwsCredentials | Promise<AwsCredentials> {
    const { expiration } = this.#found ?? {};
    const left = expiration ? expiration.getTime() - Date.now() : Infinity;
    if (this.#found && left >= 300_000) return this.#found;
    const { timeout = Infinity } = this.#given;
    const usable = left > 0 ? this.#found : undefined;
    if (this.#asked.age >= (usable ? 1000 : timeout) || !(usable ?? this.#renewing)) {
      this.#asked = new Moment();
      const renewing = (this.#renewing = this.#renew());
      const ended = (): void => {
        if (this.#renewing === renewing) this.#renewing = undefined;
      };
      renewing.then(ended, ended);
    }
    return usable ?? this.#renewing!;
  }

  async #renew(): Promise<AwsCredentials> {
    this.#sources ??= this.#source().catch((error: unknown) => {
      this.#sources = undefined;
      throw error;
    });
    const found = await (await this.#sources)();
    if (typeof found?.accessKeyId !== "string" || typeof found.secretAccessKey !== "string") {
      throw new ConfigurationError("The option credentials returned none, want accessKeyId and secretAccessKey.");
    }
    return (this.#found = found);
  }

  /** As in the SDK for JavaScript, AWS_PROFILE wins over keys in the environment. */
  async #source(): Promise<() => AwsCredentials | Promise<AwsCredentials>> {
    const { credentials } = this.#given;
    if (credentials) return typeof credentials === "function" ? credentials : () => credentials;
    const fromVariables = () => keysOf(this.#env);
    if (!this.#env["AWS_PROFILE"] && fromVariables()) return fromVariables as () => AwsCredentials;
    const { config } = await this.#sdk("to find credentials outside of the environment, such as those of a profile");
    return () => config.credentials();
  }

  /** Returns the address of Lambda's API, with the path that is before all others. */
  async endpoint(region: string): Promise<URL> {
    const { endpoint: given } = this.#given;
    const env = this.#env;
    const fips = flag(env, "AWS_USE_FIPS_ENDPOINT");
    const dual = flag(env, "AWS_USE_DUALSTACK_ENDPOINT");
    const ignored = flag(env, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
    const variable = ignored ? undefined : (address(env, "AWS_ENDPOINT_URL_LAMBDA") ?? address(env, "AWS_ENDPOINT_URL"));
    const custom = given ?? variable;
    if (custom && (fips || dual)) {
      throw new ConfigurationError(`${fips ? "FIPS" : "Dualstack"} and a custom endpoint are not supported together.`);
    }
    if (given) return given;
    const profiles = (await this.#profiles()).join("\n");
    const partition = partitionOf(region);
    if (modes.test(profiles) || (!custom && (!partition || urls.test(profiles)))) {
      return endpointBySDK(this.#given.region ? { region: this.#given.region } : {});
    }
    return custom ?? new URL(`https://lambda${fips ? "-fips" : ""}.${region}.${dual ? partition!.dual : partition!.suffix}`);
  }

  /** Returns the texts of the files that have profiles. */
  async #profiles(): Promise<string[]> {
    const home = this.#env["HOME"] || this.#env["USERPROFILE"] || homedir();
    const files = [
      this.#env["AWS_CONFIG_FILE"] || join(home, ".aws", "config"),
      this.#env["AWS_SHARED_CREDENTIALS_FILE"] || join(home, ".aws", "credentials"),
    ];
    return Promise.all(files.map((file) => readFile(file, "utf8").catch(() => "")));
  }

  /** Loads the AWS SDK when it is first needed. */
  #sdk(why: string): Promise<Sdk> {
    const { region, credentials } = this.#given;
    this.#loaded ??= loadClient(why, { ...(region && { region }), ...(credentials && { credentials }) });
    this.#loaded.catch(() => (this.#loaded = undefined));
    return this.#loaded;
  }
}

function partitionOf(region: string): (typeof partitions)[number] | undefined {
  return partitions.find((partition) => partition.region.test(region));
}

/** Returns the credentials in the environment, if there are any. */
function keysOf(env: NodeJS.ProcessEnv): AwsCredentials | undefined {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = env;
  const { AWS_SESSION_TOKEN: sessionToken, AWS_CREDENTIAL_EXPIRATION: end } = env;
  if (!accessKeyId || !secretAccessKey) return undefined;
  return { accessKeyId, secretAccessKey, ...(sessionToken && { sessionToken }), ...(end && { expiration: new Date(end) }) };
}

function flag(env: NodeJS.ProcessEnv, name: string): boolean {
  const value = env[name];
  if (value === undefined || value === "true" || value === "false") return value === "true";
  throw new ConfigurationError(`${name} is ${JSON.stringify(value)}, want true or false.`);
}

function address(env: NodeJS.ProcessEnv, name: string): URL | undefined {
  const value = env[name];
  if (!value) return undefined;
  const url = httpURL(value);
  if (url) return url;
  throw new ConfigurationError(`${name} is ${JSON.stringify(value)}, want an address with https:.`);
}
