// The AWS SDK, for what this package does not know itself. It is loaded when it is first needed.
import { ConfigurationError } from "./errors.js";
import type { AwsCredentials } from "./sign.js";

/** What is used here of a LambdaClient. The published types name none of the SDK's, because an app need not have it. */
export interface Sdk {
  readonly config: {
    region(): Promise<string>;
    credentials(): Promise<AwsCredentials>;
  };
  send(command: any, options?: any): Promise<unknown>;
}

/** What is used here of a client that the app made. */
export interface LambdaClientOf extends Sdk {
  readonly config: Sdk["config"] & {
    readonly systemClockOffset: number;
    readonly requestHandler: { metadata?: unknown; handle(request: any, options?: any): Promise<{ response: any }> };
    signer(): Promise<any>;
  };
}

/**
 * Returns the SDK's package for Lambda.
 *
 * @internal
 */
export async function loadSDK(why: string): Promise<typeof import("@aws-sdk/client-lambda")> {
  try {
    return await import("@aws-sdk/client-lambda"); // inside of try, bundlers accept that it is missing
  } catch (cause) {
    const { code } = cause as { code?: unknown };
    const problem = code === "ERR_MODULE_NOT_FOUND" ? "is not installed" : `can't be loaded (${String(code ?? cause)})`;
    throw new ConfigurationError(`The AWS SDK ${problem}, and is needed ${why}: npm install @aws-sdk/client-lambda`, { cause });
  }
}

/** Returns a client of the SDK. */
export async function loadClient(why: string, options: object): Promise<Sdk> {
  const { LambdaClient } = await loadSDK(why);
  return new LambdaClient(options) as Sdk;
}

const end = "/2015-03-31/functions/f/invocations";

/** Returns the address of Lambda's API as the SDK finds it: it lets the SDK make a request, and does not send it. */
export async function endpointBySDK(options: { region?: string | undefined }): Promise<URL> {
  const why = "to find the endpoint of Lambda";
  const { InvokeCommand } = await loadSDK(why);
  const client = await loadClient(why, { ...options, credentials: { accessKeyId: "none", secretAccessKey: "none" } }); // it wants some
  const command = new InvokeCommand({ FunctionName: "f" });
  let found: { protocol: string; hostname: string; port?: number; path: string } | undefined;
  command.middlewareStack.add(
    () => async ({ request }) => {
      found = request as NonNullable<typeof found>;
      return { response: undefined, output: { $metadata: {} } };
    },
    { step: "build", priority: "low" },
  );
  await client.send(command);
  const { protocol, hostname, port, path } = found!;
  return new URL(`${protocol}//${hostname}${port ? `:${port}` : ""}${path.slice(0, -end.length)}`);
}
