import assert from "node:assert/strict";
import { test } from "node:test";
import { Breaker, type Caller } from "../dist/breaker.js";
import { type Clock, stopClock } from "./lambda.js";

const paused = { name: "OutageError", message: "f did not answer a moment ago", guard: "f" };

/** Loses a call, so that the pause begins. */
function outage(breaker: Breaker): void {
  breaker.enter("f").lost();
  assert.throws(() => breaker.enter("f"), paused);
}

/** Begins a pause, waits for its end, and returns the probe. */
function probe(breaker: Breaker, clock: Clock): Caller {
  outage(breaker);
  clock.advance(1000);
  return breaker.enter("f");
}

test("one lost call does not begin the pause if another one was answered meanwhile", (t) => {
  stopClock(t);
  const breaker = new Breaker();
  const lost = breaker.enter("f");
  breaker.enter("f").answered();
  lost.lost();
  breaker.enter("f");
});

test("an answer of another function does not count", (t) => {
  stopClock(t);
  const breaker = new Breaker();
  const lost = breaker.enter("f");
  breaker.enter("g").answered();
  lost.lost();
  assert.throws(() => breaker.enter("f"), paused);
  breaker.enter("g");
});

test("a call begins when its first request has its socket", (t) => {
  stopClock(t);
  const breaker = new Breaker();
  const waited = breaker.enter("f");
  assert.equal(waited.began, false);
  breaker.enter("f").answered();
  waited.begin();
  assert.equal(waited.began, true);
  waited.lost();
  assert.throws(() => breaker.enter("f"), paused);

  const repeated = new Breaker();
  const lost = repeated.enter("f");
  lost.begin();
  repeated.enter("f").answered();
  lost.begin();
  lost.lost();
  repeated.enter("f");
});

test("a stale probe does not begin the pause again after the function has answered", (t) => {
  const clock = stopClock(t);
  const breaker = new Breaker();
  const stale = probe(breaker, clock);
  clock.advance(1000);
  breaker.enter("f").answered(); // the next probe
  stale.lost();
  breaker.enter("f");
  stale.cancelled();
  breaker.enter("f");
});

test("a probe that is no longer the latest lets no other probe through, and does not make the pause longer", (t) => {
  const clock = stopClock(t);
  const breaker = new Breaker();
  const stale = probe(breaker, clock);
  clock.advance(1000);
  breaker.enter("f"); // the next probe
  stale.cancelled();
  assert.throws(() => breaker.enter("f"), paused);
  clock.advance(999);
  stale.lost();
  assert.throws(() => breaker.enter("f"), paused);
  clock.advance(1);
  breaker.enter("f");
});

test("an old probe means nothing in a later pause", (t) => {
  const clock = stopClock(t);
  const breaker = new Breaker();
  const old = probe(breaker, clock);
  clock.advance(1000);
  breaker.enter("f").answered();
  outage(breaker);
  old.cancelled();
  assert.throws(() => breaker.enter("f"), paused);
  old.lost();
  clock.advance(1000);
  breaker.enter("f");
});

test("a probe that is cancelled after the function has answered another call begins no pause, and ends none", (t) => {
  const clock = stopClock(t);
  for (const again of [false, true]) {
    const breaker = new Breaker();
    const answered = probe(breaker, clock);
    clock.advance(1000);
    const cancelled = breaker.enter("f"); // the latest probe
    answered.answered();
    if (again) outage(breaker);
    cancelled.cancelled();
    if (again) assert.throws(() => breaker.enter("f"), paused);
    else for (let n = 0; n < 2; n++) breaker.enter("f");
  }
});

test("calls that were lost before the pause do not make it longer", (t) => {
  const clock = stopClock(t);
  const breaker = new Breaker();
  const lost = breaker.enter("f");
  outage(breaker);
  clock.advance(999);
  lost.lost();
  clock.advance(1);
  breaker.enter("f");
});

test("the latest probe begins the pause again, and an answer of any probe ends it", (t) => {
  const clock = stopClock(t);
  const breaker = new Breaker();
  const first = probe(breaker, clock);
  clock.advance(500);
  first.lost();
  clock.advance(999);
  assert.throws(() => breaker.enter("f"), paused);
  clock.advance(1);
  const second = breaker.enter("f");
  clock.advance(1000);
  breaker.enter("f");
  second.answered();
  breaker.enter("f");
  breaker.enter("f");
});

// Lambda freezes a process between invocations, and performance.now can stand still meanwhile. Date.now can be set back.
for (const [advanced, frozen] of [[0, 1000], [0, 10_000], [1000, -1000], [1000, -3_600_000], [500, 500]] as const) {
  test(`a pause is over by either clock: ${advanced} ms, and ${frozen} ms of a freeze`, (t) => {
    const clock = stopClock(t);
    const breaker = new Breaker();
    outage(breaker);
    clock.advance(advanced);
    clock.freeze(frozen);
    breaker.enter("f");
    clock.advance(999);
    clock.freeze(-3_600_000);
    assert.throws(() => breaker.enter("f"), paused);
    clock.freeze(3_600_000);
    assert.throws(() => breaker.enter("f"), paused);
    clock.freeze(1);
    breaker.enter("f");
  });
}

test("calls that wait are ended when the pause begins, but the latest probe is not", (t) => {
  const clock = stopClock(t);
  const breaker = new Breaker();
  const ended: string[] = [];
  breaker.enter("f").wait(({ message }) => ended.push(`first: ${message}`));
  breaker.enter("f").wait(() => ended.push("left"))();
  breaker.enter("g").wait(() => ended.push("of another function"));
  const late = breaker.enter("f");
  outage(breaker);
  assert.deepEqual(ended, ["first: f did not answer a moment ago"]);
  late.wait(() => ended.push("late"))();
  assert.deepEqual(ended.slice(1), ["late"]);
  clock.advance(1000);
  breaker.enter("f").wait(() => ended.push("probe"));
  assert.equal(ended.length, 2);
});
