// This program makes the calls of the common scenarios with the TypeScript client. It reads a JSON object from each
// line of its input and writes one line for each.
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { Guards } from "@cric-talk/guards";
import { activities } from "./activities.js"; // the test writes it

class SaveError extends Error {}

let guards;

for await (const line of createInterface({ input: process.stdin })) {
  if (line.trim() !== "") process.stdout.write(`${JSON.stringify(await perform(JSON.parse(line)))}\n`);
}

async function perform(step) {
  if (step.together) return { results: await Promise.all(step.together.map(perform)) };
  const start = performance.now();
  const ms = () => Math.round(performance.now() - start);
  try {
    if (step.new) {
      const { noList, ...options } = step.new;
      guards = new Guards({ ...(!noList && { activities }), ...options, warn: () => {} });
      return { ok: true };
    }
    return { answer: plain(await call(step)), ms: ms() };
  } catch (error) {
    const described = { class: error.constructor.name, message: error.message };
    return step.new ? { error: described } : { error: described, ms: ms() };
  }
}

function call({ call, activity, args, save, work, used }) {
  if (call === "slot") return slot(activity, given(args), save, work);
  if (call === "settle") return settle(activity, given(args), used);
  if (call === "ready") return activity ? guards.ready(activity) : guards.ready();
  if (call !== "guarded") return guards[call](activity, given(args));
  return guards.guarded(activity, given(args), (decision) => {
    if (save === "fail") throw new SaveError("the save failed");
    return decision;
  });
}

// Works in a slot, and returns its decision with when the work began and ended.
async function slot(activity, args, save, work = 0) {
  const slot = await guards.slot(activity, args);
  try {
    const began = Date.now();
    if (slot.decision.heldUntil) process.stderr.write(`began ${began}\n`);
    if (slot.allowed) await setTimeout(work, undefined, { signal: slot.signal }).catch(() => {});
    if (save === "fail") throw new SaveError("the work failed");
    return { ...slot.decision, lost: slot.lost, began, ended: Date.now() };
  } finally {
    await slot.release();
  }
}

async function settle(activity, args, used = 0) {
  const decision = await guards.check(activity, args);
  await guards.settle(decision, used);
  await guards.settle(decision, used);
  return decision;
}

// A harness in Go writes the zero value of an argument that the scenario does not have.
function given(args = {}) {
  const zero = (value) => !value || (Array.isArray(value) && value.length === 0);
  return Object.fromEntries(Object.entries(args).filter(([name, value]) => name === "userId" || !zero(value)));
}

// The guard's name and the window are not part of an answer. An outage is written as its message.
function plain({ guard, window, outage, ...answer } = {}) {
  return outage ? { ...answer, outage: outage.message } : answer;
}
