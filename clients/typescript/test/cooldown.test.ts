import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { cooldown } from "@cric-talk/guards/cooldown";
import { until } from "./lambda.js";

test("cooldown counts down the seconds to 0", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"] });
  const ticks: number[] = [];
  cooldown(3, (left) => ticks.push(left));
  assert.deepEqual(ticks, [3]);
  t.mock.timers.tick(999);
  assert.deepEqual(ticks, [3]);
  t.mock.timers.tick(1);
  assert.deepEqual(ticks, [3, 2]);
  for (let n = 0; n < 10; n++) t.mock.timers.tick(1000);
  assert.deepEqual(ticks, [3, 2, 1, 0]);
});

test("a part of a second counts as one", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"] });
  const ticks: number[] = [];
  cooldown({ waitTime: 2400 }, (left) => ticks.push(left));
  t.mock.timers.tick(400);
  assert.deepEqual(ticks, [3, 2]);
  for (let n = 0; n < 2; n++) t.mock.timers.tick(1000);
  assert.deepEqual(ticks, [3, 2, 1, 0]);
});

test("after a sleep, the countdown follows the clock", (t) => {
  const clock = t.mock.timers;
  clock.enable({ apis: ["setTimeout", "Date"], now: 1_000_000 });
  const ticks: number[] = [];
  cooldown({ waitTime: 60_000 }, (left) => ticks.push(left));
  clock.setTime(1_045_500); // timers did not run meanwhile
  clock.tick(1000);
  assert.equal(ticks.at(-1), 14);
  assert.ok(ticks.length < 5, `a sleep makes no tick for each second: ${ticks.join(" ")}`);
  clock.tick(13_500);
  assert.equal(ticks.at(-1), 0);
});

test("with real timers, no number comes twice or too early", async () => {
  const start = performance.now();
  const ticks: [left: number, at: number][] = [];
  await new Promise<void>((done) => {
    cooldown({ waitTime: 2100 }, (left) => {
      ticks.push([left, performance.now() - start]);
      if (left === 0) done();
    });
  });
  const numbers = ticks.map(([left]) => left);
  assert.deepEqual([numbers[0], numbers.at(-1)], [3, 0]); // a machine that is busy for a second can skip a number
  for (let n = 1; n < ticks.length; n++) {
    const [left, at] = ticks[n] as [number, number];
    assert.ok(left < (numbers[n - 1] as number) && at > 2100 - left * 1000 - 5, `${left} at ${at} ms`);
  }
});

test("stop ends the countdown", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"] });
  const ticks: number[] = [];
  const stop = cooldown(3, (left) => ticks.push(left));
  t.mock.timers.tick(1000);
  stop();
  t.mock.timers.tick(10_000);
  assert.deepEqual(ticks, [3, 2]);
});

const sources: [name: string, source: () => Parameters<typeof cooldown>[0], first: number][] = [
  ["seconds", () => 7, 7],
  ["a problem", () => ({ waitTime: 6001 }), 7],
  ["a response with Retry-After", () => new Response("{}", { headers: { "Retry-After": "7" } }), 7],
  ["a response with a date", () => new Response("", { headers: { "Retry-After": new Date(Date.now() + 7000).toUTCString() } }), 7],
  ["a response whose headers are hidden", () => Response.json({ waitTime: 6001 }), 7],
  ["0", () => 0, 0],
  ["a negative number", () => -5, 0],
  ["no number", () => Number.NaN, 0],
  ["a problem without waitTime", () => ({}), 0],
  ["a response that says nothing", () => new Response("<html>"), 0],
  ["a response with another body", () => Response.json(null), 0],
];

for (const [name, source, first] of sources) {
  test(`cooldown of ${name} begins with ${first}`, async () => {
    const ticks: number[] = [];
    const stop = cooldown(source(), (left) => ticks.push(left));
    await until(() => ticks.length > 0);
    stop();
    // A date in HTTP has whole seconds, so it can be up to a second earlier.
    assert.ok(ticks[0] === first || (name === "a response with a date" && ticks[0] === first - 1), `got ${ticks.join(" ")}`);
  });
}

test("the app can still read the response", async () => {
  const response = Response.json({ waitTime: 6001 });
  const stop = cooldown(response, () => {});
  assert.deepEqual(await response.json(), { waitTime: 6001 });
  stop();
});

test("a response that was stopped before its body came makes no tick", async () => {
  const ticks: number[] = [];
  cooldown(Response.json({ waitTime: 6001 }), (left) => ticks.push(left))();
  await sleep(20);
  assert.deepEqual(ticks, []);
});

// A browser can load cooldown, and a framework's middleware needs nothing but the framework.
test("no file imports a package, and only the client itself those of Node", () => {
  const imported = (entry: string) => [...new Set(packages(fileURLToPath(import.meta.resolve(entry))))].sort();
  for (const name of ["cooldown", "express", "fastify", "hono", "express-rate-limit"]) {
    assert.deepEqual(imported(`@cric-talk/guards/${name}`), [], name);
  }
  assert.deepEqual(imported("@cric-talk/guards"), [
    "node:crypto",
    "node:fs/promises",
    "node:http",
    "node:https",
    "node:net",
    "node:os",
    "node:path",
    "node:stream",
    "node:timers/promises",
  ]);
});

/** Returns the packages that a file imports, also through other files. */
function packages(file: string): string[] {
  const imports = [...readFileSync(file, "utf8").matchAll(/^(?:import|export) (?:.* from )?"([^"]+)"/gm)].map((match) => match[1] ?? "");
  return imports.flatMap((name) => (name.startsWith(".") ? packages(join(dirname(file), name)) : [name]));
}
