import { createHmac, hash } from "node:crypto";
import { posix } from "node:path";

/** AWS credentials, as the AWS SDK has them. */
export interface AwsCredentials {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string | undefined;
  /** When they end. They are renewed 5 minutes earlier. Default: never. */
  expiration?: Date | undefined;
}

/** The names and values of a query. */
export type Query = readonly (readonly [name: string, value: string])[];

/** A request before it is signed. */
export interface Unsigned {
  /** What `firstLines` returns. */
  first: string;
  /** By name in small letters. All of them are signed. */
  headers: Readonly<Record<string, string>>;
  body: string;
}

/** How many signing keys are kept. There is one for each region, day and secret. */
const maxKeys = 16;

const keys = new Map<string, Buffer>();

/**
 * Signs a request for a service with AWS Signature Version 4. It returns the headers with those of the signature. The body
 * is in the signature.
 */
export function sign(request: Unsigned, credentials: AwsCredentials, region: string, service: string, now: Date): Record<string, string> {
  const time = now.toISOString().replace(/[-:]|\.\d{3}/g, "");
  const day = time.slice(0, 8);
  const headers: Record<string, string> = { ...request.headers, "x-amz-date": time };
  if (credentials.sessionToken) headers["x-amz-security-token"] = credentials.sessionToken;
  const names = Object.keys(headers).sort();
  let lines = "";
  for (const name of names) lines += `${name}:${headers[name]!.replace(/[ \t\r\n]+/g, " ").trim()}\n`;
  const signed = names.join(";");
  const canonical = `${request.first}\n${lines}\n${signed}\n${hash("sha256", request.body)}`;
  const scope = `${day}/${region}/${service}/aws4_request`;
  const key = signingKey(credentials.secretAccessKey, day, region, service);
  const text = `AWS4-HMAC-SHA256\n${time}\n${scope}\n${hash("sha256", canonical)}`;
  const signature = createHmac("sha256", key).update(text).digest("hex");
  const id = `${credentials.accessKeyId}/${scope}`;
  headers["authorization"] = `AWS4-HMAC-SHA256 Credential=${id}, SignedHeaders=${signed}, Signature=${signature}`;
  return headers;
}

/**
 * Returns the lines that a signature begins with. They are the same for all requests to one place. The path begins with a
 * slash, and is encoded as it is sent.
 */
export function firstLines(method: string, path: string, query: Query): string {
  return `${method}\n${canonicalPath(path)}\n${canonicalQuery(query)}`;
}

/** Encodes a text as AWS does, for a part of a path or a query. */
export function escape(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** Returns a query as it is signed, which is also a way to send it: each part encoded, in order. */
export function canonicalQuery(query: Query): string {
  return query
    .map(([name, value]) => [escape(name), escape(value)] as const)
    .sort(([a, x], [b, y]) => (a < b ? -1 : a > b ? 1 : x < y ? -1 : x > y ? 1 : 0))
    .map(([name, value]) => `${name}=${value}`)
    .join("&");
}

/** All services but S3 encode the path a second time, without its empty parts and dots. */
function canonicalPath(path: string): string {
  return posix.normalize(path).split("/").map(escape).join("/");
}

/** Derives the key of a day, which takes four hashes, and keeps it. */
function signingKey(secret: string, day: string, region: string, service: string): Buffer {
  const id = `${day}/${region}/${service}/${secret}`;
  let key = keys.get(id);
  if (!key) {
    key = [day, region, service, "aws4_request"].reduce<Buffer | string>(hmac, `AWS4${secret}`) as Buffer;
    if (keys.size >= maxKeys) keys.clear();
    keys.set(id, key);
  }
  return key;
}

function hmac(key: Buffer | string, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
