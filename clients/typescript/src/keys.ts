import { createHmac, hash } from "node:crypto";
import { isIPv4 } from "node:net";
import { read } from "./args.js";
import { ValidationError } from "./errors.js";

/** A secret of at least 16 bytes. A string means its UTF-8. */
export type HmacKey = string | Uint8Array;

/** The options of `ipKey`. */
export interface IPKeyOptions {
  /**
   * How many bits of an IPv6 address count, 1 to 128. Default: 64, because a home or a phone has at least a /64 and can take
   * any address in it.
   */
  prefix?: number | undefined;
  /** With a key, the result is 32 hex digits that do not show the address. Default: none. */
  key?: HmacKey | null | undefined;
}

/** The options of `accountKey`. */
export interface AccountKeyOptions {
  /**
   * The same key in each backend that asks. Without one, somebody who reads a table can try all likely names; null says that
   * plain SHA-256 is meant. An undefined key is a ValidationError.
   */
  key: HmacKey | null;
  /** False takes the text as it is. Use it if your database tells Ann from ann. Default: true. */
  fold?: boolean | undefined;
}

/** An address alone or in brackets, with what can follow: a zone, which IPv4 has not, and a port. */
const form = /^(?:\[(?<inside>[0-9a-f:.]+)(?:%[\w.~-]+)?\](?::(?<after>\d{1,5}))?|(?<v4>[\d.]+)(?::(?<port>\d{1,5}))?|(?<v6>[0-9a-f:.]+)(?:%[\w.~-]+)?)$/i;

/**
 * Returns the user id, or the id of a subject, of somebody who has no account: of their IP address. An IPv4 address stays
 * as it is. An IPv6 address becomes its network, such as `2001:db8::/64`, in the form of RFC 5952. An IPv4-mapped address,
 * such as `::ffff:192.0.2.1`, is the IPv4 address.
 *
 * The address may have a port, brackets and a zone, as in `[2001:db8::1]:443`, `192.0.2.1:443` or `fe80::1%eth0`. These
 * never are in the result. Behind a proxy, pass the address that the proxy has seen, because users can send any
 * X-Forwarded-For. Anything else, such as undefined, a leading zero in IPv4 or a space, is a ValidationError.
 */
export function ipKey(address: string | undefined, options: IPKeyOptions = {}): string {
  const { prefix = 64, key } = read<IPKeyOptions>(options, ["prefix", "key"]);
  const network = networkOf(address, prefix);
  if (network === undefined) throw new ValidationError("the address is no IPv4 or IPv6 address, with or without a port");
  return key === undefined || key === null ? network : keyed(key, network);
}

/** Returns an IPv4 address, or an IPv6 network with a slash and its length. It returns undefined for what is no address. */
function networkOf(address: unknown, prefix: number): string | undefined {
  const parts = typeof address === "string" ? form.exec(address)?.groups : undefined;
  if (parts === undefined || Number(parts["after"] ?? parts["port"] ?? 0) > 65_535) return undefined;
  if (parts["v4"] !== undefined) return isIPv4(parts["v4"]) ? parts["v4"] : undefined;
  const canonical = shortest(parts["inside"] ?? parts["v6"]!);
  if (canonical === undefined) return undefined;
  const [before, after] = canonical.split("::").map((side) => (side === "" ? [] : side.split(":").map((group) => parseInt(group, 16))));
  const groups = after === undefined ? before! : [...before!, ...Array<number>(8 - before!.length - after.length).fill(0), ...after];
  if (groups.slice(0, 6).join() === "0,0,0,0,0,65535") return groups.slice(6).flatMap((group) => [group >> 8, group & 255]).join(".");
  const masked = groups.map((group, i) => group & (0xffff << Math.min(16, Math.max(0, 16 * (i + 1) - prefix))));
  return `${shortest(masked.map((group) => group.toString(16)).join(":"))}/${prefix}`;
}

/** Returns the form of RFC 5952 of an IPv6 address in hexadecimal digits, as hosts in URLs have it; undefined: it is none. */
function shortest(text: string): string | undefined {
  const url = `http://[${text}]`;
  return URL.canParse(url) ? new URL(url).hostname.slice(1, -1) : undefined;
}

/**
 * Returns the user id, or the id of a subject, for the name of an account, such as a mail address that somebody types to
 * sign in: the first 32 hex digits of its HMAC-SHA-256. The spaces, tabs and line ends around the text go before that, and
 * A to Z become a to z. No other letters change, because languages and versions of Unicode disagree about them.
 *
 * Pass the name as your database compares it. If the account is known, its own id is the better user id. A text of spaces,
 * one with half of a surrogate pair, and what is no string is a ValidationError.
 */
export function accountKey(text: string, options: AccountKeyOptions): string {
  const { key, fold = true } = read<AccountKeyOptions>(options, ["key", "fold"], ["key"]);
  if (typeof text !== "string" || !text.isWellFormed()) throw new ValidationError("the account's name is no string of Unicode");
  let [start, end] = [0, text.length]; // a pattern would take the square of a long text's time
  while (start < end && isAround(text[end - 1]!)) end--;
  while (start < end && isAround(text[start]!)) start++;
  if (start === end) throw new ValidationError("the account's name is empty");
  const name = fold ? text.slice(start, end).replace(/[A-Z]+/g, (letters) => letters.toLowerCase()) : text;
  return key === null ? hash("sha256", name).slice(0, 32) : keyed(key, name);
}

/** Reports whether a character goes from both ends of a name. */
function isAround(character: string): boolean {
  return character === " " || character === "\t" || character === "\r" || character === "\n";
}

/** Returns the first half of the HMAC-SHA-256, so that a user id has room for two. */
function keyed(key: HmacKey, text: string): string {
  return createHmac("sha256", key).update(text).digest("hex").slice(0, 32);
}
