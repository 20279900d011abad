// The signer against the AWS SDK's own.
import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { test } from "node:test";
import { SignatureV4 } from "@smithy/signature-v4";
import { canonicalQuery, firstLines, sign } from "../dist/sign.js"; // not exported: only this package and its tests know it

/** SHA-256, or HMAC-SHA-256 with a key, as the SDK's signer wants it. */
class Sha256 {
  readonly #hash;
  constructor(key?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = key === undefined ? createHash("sha256") : createHmac("sha256", key as Uint8Array);
  }
  update(data: Uint8Array): void {
    this.#hash.update(data);
  }
  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }
  reset(): void {}
}

/** A generator of numbers from 0 to 1, so that a failure comes again. */
function random(seed: number): () => number {
  return () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed / 2 ** 31;
  };
}

const next = random(20_261_129);
const below = (n: number) => Math.floor(next() * n);
const pick = <T>(list: readonly T[]): T => list[below(list.length)]!;
const characters = [..."abcXYZ019-._~!'()*$&+,;=:@ %\u00e4\u20ac\u{1f600}"];
const text = (longest: number, from: readonly string[] = characters) => Array.from({ length: below(longest + 1) }, () => pick(from)).join("");

test("10,000 random requests are signed as the SDK signs them", async () => {
  for (let n = 0; n < 10_000; n++) {
    const credentials = { accessKeyId: `AKID${below(100)}`, secretAccessKey: text(40) || "s", ...(below(2) && { sessionToken: text(99) || "t" }) };
    const region = pick(["us-east-1", "eu-west-1", "cn-north-1", "us-gov-west-1"]);
    const parts = Array.from({ length: below(5) }, () => pick([text(9), "..", ".", "", "functions"]));
    const path = `/${parts.map(encodeURIComponent).join("/")}${pick(["", "/"])}`;
    const query = new Map(Array.from({ length: below(4) }, () => [text(6), text(6)]));
    query.delete("");
    const headers: Record<string, string> = { host: `host${below(9)}.example:${below(9999)}` };
    for (let i = below(5); i > 0; i--) headers[`x-${text(6, [..."abcdef-"])}`] = text(12, [...characters.slice(0, 20), " ", "  ", "\t"]);
    const body = text(80);
    const signingDate = new Date(1_600_000_000_000 + below(2 ** 31) * 200);
    const signer = new SignatureV4({ credentials, region, service: "lambda", sha256: Sha256, applyChecksum: false });
    const request = { method: pick(["POST", "GET", "PUT"]), path, headers, body };
    const wanted = await signer.sign(
      { ...request, protocol: "https:", hostname: "host", query: Object.fromEntries(query) },
      { signingDate },
    );
    const first = firstLines(request.method, path, [...query]);
    const got = sign({ first, headers, body }, credentials, region, "lambda", signingDate);
    assert.deepEqual(got, wanted.headers, JSON.stringify({ request, query: [...query] }));
  }
});

test("a name that is twice in a query is signed with all its values, in order", async () => {
  const credentials = { accessKeyId: "AKID", secretAccessKey: "secret" };
  const signer = new SignatureV4({ credentials, region: "eu-west-1", service: "lambda", sha256: Sha256, applyChecksum: false });
  const request = { method: "POST", path: "/", headers: { host: "host" }, body: "" };
  const signingDate = new Date(1_700_000_000_000);
  const wanted = await signer.sign({ ...request, protocol: "https:", hostname: "host", query: { b: ["2", "1"], a: "" } }, { signingDate });
  const query = [["b", "2"], ["a", ""], ["b", "1"]] as const;
  const first = firstLines("POST", "/", query);
  assert.deepEqual(sign({ ...request, first }, credentials, "eu-west-1", "lambda", signingDate), wanted.headers);
  assert.equal(canonicalQuery(query), "a=&b=1&b=2");
});
