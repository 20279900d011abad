import assert from "node:assert/strict";
import { open } from "node:fs";
import { test, type TestContext } from "node:test";
import { Stopwatch } from "../dist/stopwatch.js";

/** Replaces the timers and the clock of this process. */
function fakeTime(t: TestContext) {
  let now = 0;
  t.mock.method(performance, "now", () => now);
  t.mock.timers.enable({ apis: ["setTimeout", "setImmediate"] });
  return {
    /** Lets the event loop turn each millisecond. */
    turn(ms: number): void {
      for (let n = 0; n < ms; n++) {
        now++;
        t.mock.timers.tick(1);
      }
    },
    /** The event loop is blocked, and then it turns once. */
    block(ms: number): void {
      now += ms;
      t.mock.timers.tick(1);
    },
    /** Time passes, but no timer fires. */
    pass: (ms: number) => void (now += ms),
  };
}

test("a stopwatch counts the time in which the event loop turns", (t) => {
  const time = fakeTime(t);
  const watch = new Stopwatch();
  watch.start();
  time.turn(1234);
  assert.equal(watch.elapsed, 1234);
});

test("a stopwatch counts little of the time in which the event loop is blocked", (t) => {
  const time = fakeTime(t);
  const watch = new Stopwatch();
  watch.start();
  time.turn(100);
  time.pass(60_000);
  assert.equal(watch.elapsed, 175);
  time.turn(49);
  time.block(1);
  const after = watch.elapsed;
  assert.ok(after <= 100 + 75 + 50, `${after}`);
});

test("a stopwatch that is stopped stands still", (t) => {
  const time = fakeTime(t);
  const watch = new Stopwatch();
  watch.start();
  time.turn(20);
  watch.stop();
  watch.stop();
  time.turn(500);
  assert.equal(watch.elapsed, 20);
  watch.start();
  time.turn(30);
  watch.start();
  time.turn(30);
  assert.equal(watch.elapsed, 80);
});

test("an alarm rings when its time has been counted", (t) => {
  const time = fakeTime(t);
  const watch = new Stopwatch();
  watch.start();
  time.turn(33);
  const rings: number[] = [];
  watch.alarm(120, () => rings.push(watch.elapsed));
  time.turn(60);
  watch.stop();
  time.turn(1000);
  watch.start();
  time.turn(59);
  assert.deepEqual(rings, []);
  time.turn(2); // the timer and the immediate
  time.turn(500);
  assert.equal(rings.length, 1);
  assert.ok(rings[0] === 153 || rings[0] === 154, String(rings));
});

test("an alarm that was switched off does not ring, not even between its timer and its turn", (t) => {
  const time = fakeTime(t);
  const watch = new Stopwatch();
  watch.start();
  watch.alarm(10, () => assert.fail("it rang"))();
  time.turn(100);
  const off = watch.alarm(50, () => assert.fail("it rang"));
  t.mock.method(globalThis, "setImmediate", (call: () => void) => {
    off();
    call();
  });
  time.turn(500);
});

// The answer lies in the socket while the event loop is blocked. The timer fires first, and then Node reads the socket.
test("before an alarm rings, the event loop reads what has arrived", async () => {
  const watch = new Stopwatch();
  watch.start();
  const order: string[] = [];
  const rang = new Promise<void>((resolve) => {
    watch.alarm(1, () => {
      order.push("alarm");
      resolve();
    });
  });
  open("/dev/null", () => order.push("answer")); // it calls back when the loop reads sockets
  const end = performance.now() + 200;
  while (performance.now() < end); // blocked
  await rang;
  watch.stop();
  assert.deepEqual(order, ["answer", "alarm"]);
});
