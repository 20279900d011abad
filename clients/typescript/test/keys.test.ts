// User ids for strangers. internal/endtoend/scenarios compares them with the other clients', on the vectors of
// schema/keys.json and on random input.
import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import vm from "node:vm";
import { accountKey, Guards, ipKey, ValidationError } from "@cric-talk/guards";
import { limit as expressLimit } from "@cric-talk/guards/express";
import { limit as fastifyLimit } from "@cric-talk/guards/fastify";
import express from "express";
import fastify from "fastify";
import { Lambda, ok } from "./lambda.js";

const key = "correct horse battery staple";
const hmac = (text: string, secret: string | Uint8Array = key) => createHmac("sha256", secret).update(text).digest("hex").slice(0, 32);

test("an address is IPv4, or the network of IPv6, without port, brackets and zone", () => {
  for (const [address, want] of [
    ["192.0.2.1", "192.0.2.1"],
    ["192.0.2.1:443", "192.0.2.1"],
    ["::ffff:192.0.2.1", "192.0.2.1"],
    ["[::FFFF:c000:201]:443", "192.0.2.1"],
    ["2001:DB8::1", "2001:db8::/64"],
    ["[2001:db8:1:2:3:4:5:6%eth0]:443", "2001:db8:1:2::/64"],
    ["fe80::1%eth0", "fe80::/64"],
    ["::1", "::/64"],
    ["64:ff9b::192.0.2.1", "64:ff9b::/64"],
  ] as const) {
    assert.equal(ipKey(address), want, address);
    assert.equal(ipKey(address, { prefix: 64, key: undefined }), want, address);
    assert.equal(ipKey(address, { key }), hmac(want), address);
  }
});

test("a prefix of any length", () => {
  const ones = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
  const want = [[1, "8000::/1"], [16, "ffff::/16"], [17, "ffff:8000::/17"], [48, "ffff:ffff:ffff::/48"], [127, `${ones.slice(0, -1)}e/127`], [128, `${ones}/128`]] as const;
  for (const [prefix, network] of want) assert.equal(ipKey(ones, { prefix }), network);
  assert.equal(ipKey("2001:0:0:1:0:0:0:1", { prefix: 128 }), "2001:0:0:1::1/128");
  assert.equal(ipKey("2001:0:0:1:1:0:0:1", { prefix: 128 }), "2001::1:1:0:0:1/128");
  assert.equal(ipKey("192.0.2.1", { prefix: 8 }), "192.0.2.1");
});

test("what is no address is a ValidationError that does not show it", () => {
  const wrong: unknown[] = [undefined, null, 16909060, ["192.0.2.1"], Promise.resolve("192.0.2.1"), "", "192.0.2", "192.0.2.01", "192.0.2.256"];
  wrong.push("192.0.2.1:65536", "192.0.2.1%eth0", "[192.0.2.1]", " 192.0.2.1", "192.0.2.1\n", "192.0.2.1\0", "192.0.2.1, 192.0.2.2");
  wrong.push("2001:db8:1:2:3:4:5:6:443", "1:2:3:4::5:6:7:8", "::1%", "[::1", "[::1]:", "::1/64", "::\u0661", "::01.2.3.4", "localhost", "9".repeat(100_000));
  for (const address of wrong) {
    assert.throws(() => ipKey(address as string), new ValidationError("the address is no IPv4 or IPv6 address, with or without a port"));
  }
});

test("an account's name is trimmed and folded, but for what Unicode and languages disagree about", () => {
  for (const [text, want] of [
    ["ann@example.com", "ann@example.com"],
    [" \t\r\nAnn@Example.COM\n ", "ann@example.com"],
    ["İ \u212a ÄẞΣ", "İ \u212a ÄẞΣ"],
    ["\u00a0Ann\u2028", "\u00a0ann\u2028"],
    ["\0\v", "\0\v"],
    ["😀", "😀"],
    [" ".repeat(100_000) + "A" + " ".repeat(100_000) + "B", "a" + " ".repeat(100_000) + "b"],
  ] as const) {
    assert.equal(accountKey(text, { key }), hmac(want));
    assert.equal(accountKey(text, { key: Buffer.from(key), fold: true }), hmac(want));
    assert.equal(accountKey(text, { key, fold: false }), hmac(text));
    assert.equal(accountKey(text, { key: null }), createHash("sha256").update(want).digest("hex").slice(0, 32));
  }
});

test("what is no name is a ValidationError that does not show it", () => {
  for (const text of ["", " \t\r\n", " ".repeat(100_000)]) {
    for (const fold of [true, false]) assert.throws(() => accountKey(text, { key, fold }), new ValidationError("the account's name is empty"));
  }
  for (const text of [undefined, null, 7, ["ann"], "ann\ud800", "\udc00ann", "\udc00\ud800"]) {
    assert.throws(() => accountKey(text as string, { key }), new ValidationError("the account's name is no string of Unicode"));
  }
});

test("a key is needed, and has at least 16 bytes", () => {
  const want = "16 bytes or more, or a string with 16 or more in UTF-8";
  const given = (options: object) => () => accountKey("ann", options as { key: string });
  assert.throws(given({}), new ValidationError(`key is missing, want ${want}`));
  assert.throws(given({ key: undefined }), new ValidationError(`key is missing, want ${want}`));
  for (const [wrong, kind] of [["", "a string"], ["fifteen bytes..", "a string"], ["ä".repeat(7), "a string"], [key + "\ud800", "a string"], [new Uint8Array(15), "an object"], [7, "a number"]] as const) {
    assert.throws(given({ key: wrong }), new ValidationError(`key is ${kind}, want ${want}`));
    assert.throws(() => ipKey("::1", { key: wrong as string }), new ValidationError(`key is ${kind}, want ${want}`));
  }
  assert.equal(accountKey("ann", { key: "ä".repeat(8) }), hmac("ann", "ä".repeat(8)));
  const foreign = vm.runInNewContext("new Uint8Array(16)") as Uint8Array; // of another realm, as under Jest
  assert.equal(accountKey("ann", { key: foreign }), hmac("ann", new Uint8Array(16)));
  assert.equal(ipKey("::1", { key: null }), "::/64");
});

test("other options are ValidationErrors", () => {
  for (const prefix of [0, 129, -1, 1.5, NaN, "64", null]) assert.throws(() => ipKey("::1", { prefix: prefix as number }), ValidationError);
  assert.throws(() => ipKey("::1", { prefx: 48 } as object), new ValidationError('the argument "prefx" is not known, want only prefix, key. Do you mean "prefix"?'));
  assert.throws(() => ipKey("::1", 48 as unknown as object), ValidationError);
  assert.throws(() => accountKey("ann", { key, fold: "no" as unknown as boolean }), new ValidationError("fold is a string, want true or false"));
  assert.throws(() => accountKey("ann", undefined as unknown as { key: null }), ValidationError);
});

/** Returns whom a guard was asked about by an app, which gets a forged entry in X-Forwarded-For and one of its proxy. */
async function asked(t: TestContext, app: (guards: Guards<{ sign_up: { guard: string } }>) => Promise<string>): Promise<unknown> {
  const lambda = await Lambda.start(t, { answer: ok });
  const url = await app(new Guards({ activities: { sign_up: { guard: "users-guard" } }, client: lambda.client() }));
  const { status } = await fetch(url, { method: "POST", headers: { "X-Forwarded-For": "198.51.100.7, 2001:db8:1:2::3" } });
  assert.equal(status, 200);
  return lambda.requests[0]!.event["userId"];
}

test("in middleware, a framework that knows its proxies gives the address that they have seen", async (t) => {
  const inExpress = (trust: number | boolean) => async (guards: Guards<{ sign_up: { guard: string } }>) => {
    const app = express().set("trust proxy", trust);
    app.post("/", expressLimit(guards, "sign_up", { userId: (request) => ipKey(request.ip) }), (_, response) => void response.send());
    const server = app.listen(0, "127.0.0.1");
    t.after(() => server.close());
    await once(server, "listening");
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  };
  assert.equal(await asked(t, inExpress(1)), "2001:db8:1:2::/64");
  assert.equal(await asked(t, inExpress(false)), "127.0.0.1");
  assert.equal(await asked(t, inExpress(true)), "198.51.100.7"); // as the document warns
  const inFastify = (trustProxy: string | boolean) => async (guards: Guards<{ sign_up: { guard: string } }>) => {
    const app = fastify({ trustProxy });
    app.post("/", { preHandler: fastifyLimit(guards, "sign_up", { userId: (request) => ipKey(request.ip) }) }, async () => "");
    t.after(() => app.close());
    return app.listen({ port: 0, host: "127.0.0.1" });
  };
  assert.equal(await asked(t, inFastify("127.0.0.0/8")), "2001:db8:1:2::/64");
  assert.equal(await asked(t, inFastify(false)), "127.0.0.1");
  assert.equal(await asked(t, inFastify(true)), "198.51.100.7");
});
