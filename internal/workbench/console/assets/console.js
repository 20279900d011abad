// The page's script. The server sends views, which are explained in view.go, and
// the script shows them. A view fills a copy of a template: the element with
// data-text="user" gets the view's field user as its text.

const $ = (id) => document.getElementById(id);
const answers = $("answer-list");
const windows = $("window-list");
const maxAnswers = 100;

// ---- The guards' clock

let difference = 0; // the guards' clock minus this browser's clock, in milliseconds
const guardsNow = () => Date.now() + difference;

function setClock(clock) {
  difference = clock.now - Date.now();
  $("ahead").textContent = clock.ahead ? `${clock.ahead} ahead` : "real time";
  $("ahead").classList.toggle("moved", clock.ahead !== "");
  tick();
}

async function moveClock(how) {
  const response = await post("/console/clock", how);
  if (!response.ok) return say(await response.text(), "!");
  const clock = await response.json();
  setClock(clock);
  say(clock.ahead ? `The guards’ clock is ${clock.ahead} ahead.` : "The guards’ clock shows the real time. What was counted ahead of it stays: clear those windows.");
}

// duration returns a time in words. It rounds up, so that zero means now.
function duration(ms) {
  const s = Math.ceil(ms / 1000);
  if (s < 120) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 172800) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} days`;
}

// ---- Views

// put changes a text only if it differs: a selection in it stays.
function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function fill(element, view) {
  for (const field of element.querySelectorAll("[data-text]")) {
    const text = String(view[field.dataset.text] ?? "");
    put(field, text);
    if (field.matches(".note, .aside")) field.hidden = text === "";
  }
}

const copy = (template) => $(template).content.firstElementChild.cloneNode(true);

// show shows or hides an element. If it has the focus, the focus moves to the
// heading, so that a keyboard user does not start at the top again.
function show(element, visible, heading) {
  if (!visible && element === document.activeElement) heading.focus();
  element.hidden = !visible;
}

function setWindows(views) {
  const known = new Map([...windows.children].map((li) => [li.dataset.id, li]));
  let place = windows.firstElementChild;
  for (const view of views) {
    let li = known.get(view.id);
    if (li === undefined) {
      li = copy("window-template");
      li.dataset.id = view.id;
    }
    known.delete(view.id);
    if (li === place) place = place.nextElementSibling;
    else windows.insertBefore(li, place);
    setWindow(li, view);
  }
  for (const li of known.values()) li.remove();
  windows.parentElement.querySelector(".empty").hidden = views.length > 0;
  tick();
}

function setWindow(li, view) {
  li.view = view;
  fill(li, view);
  const bars = li.querySelector(".bars");
  while (bars.children.length > view.bars.length) bars.lastElementChild.remove();
  view.bars.forEach((bar, i) => {
    const element = bars.children[i] ?? bars.appendChild(copy("bar-template"));
    fill(element, bar);
    const meter = element.querySelector("meter");
    meter.max = bar.limit;
    meter.value = bar.used;
    meter.classList.toggle("full", bar.used >= bar.limit);
    meter.setAttribute("aria-label", `${bar.name} used by ${view.user} for ${view.activity}`.trim());
  });
  const heading = li.querySelector("h3");
  li.querySelector(".held").hidden = view.refused === "";
  show(act(li, "again"), view.again !== "", heading);
  show(act(li, "skip"), view.resetAt > 0 && $("moves") !== null, heading);
  show(act(li, "clear"), view.resetAt > 0 && view.reset !== "", heading);
  act(li, "picture").href = view.picture;
  if (view.again === "") arm(li, false);
}

const act = (li, name) => li.querySelector(`[data-act=${name}]`);

function addAnswer(view) {
  const li = copy("answer-template");
  li.className = `answer ${view.kind}`;
  fill(li, view);
  const release = act(li, "release");
  release.value = view.release;
  release.hidden = view.release === "";
  li.querySelector("details").addEventListener("toggle", (e) => (li.open = e.target.open));
  answers.prepend(li);
  while (answers.children.length > maxAnswers) answers.lastElementChild.remove();
  answers.parentElement.querySelector(".empty").hidden = true;
  if (view.release !== "") keepReceipt(JSON.parse(view.release));
  if (view.from === "app") count(view);
}

// ---- Countdowns

// arm decides whether the page asks again when the refused request can pass.
function arm(li, on) {
  li.armed = on;
  act(li, "again").setAttribute("aria-pressed", String(on));
}

// tick shows the time and what is left of each countdown.
function tick() {
  const now = guardsNow();
  put($("now"), new Date(now).toISOString().slice(11, 19));
  for (const li of windows.children) {
    const view = li.view;
    if (view === undefined) continue;
    li.querySelectorAll(".reset").forEach((reset, i) => {
      const at = view.bars[i].resetAt;
      put(reset, at === 0 ? "" : `resets in ${duration(Math.max(0, at - now))}`);
    });
    if (view.again === "") {
      put(act(li, "skip"), "Skip to the reset");
      continue;
    }
    const left = view.passesAt - now;
    put(li.querySelector(".passes"), left > 0 ? `The same request can pass in ${duration(left)}.` : "The same request can pass now.");
    put(act(li, "again"), left > 0 ? "Ask again then" : "Ask again");
    put(act(li, "skip"), left > 0 ? "Skip the wait" : "Skip to the reset");
    li.querySelector(".held").classList.toggle("over", left <= 0);
    if (left <= 0 && li.armed) {
      arm(li, false);
      ask(view.guard, JSON.parse(view.again));
    }
  }
}
setInterval(tick, 100);

// ---- Asking

const post = (path, body) =>
  fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

// say shows a sentence below the form. Screen readers read it out.
function say(sentence, mark = "") {
  $("result").dataset.mark = mark && `${mark} `;
  put($("result"), sentence);
}

// call sends an event and returns what the guard said.
async function call(guard, event) {
  const response = await post("/console/ask", { function: guard, event });
  const text = await response.text();
  if (!response.ok) return { error: text };
  const reply = JSON.parse(text);
  return response.headers.has("X-Amz-Function-Error") ? { error: `${reply.errorType}: ${reply.errorMessage}` } : { reply };
}

// by names the subject that refused, such as room=r42, after a space. It is empty for the user.
function by(event, reply) {
  const name = (reply.limitedBy ?? "").split(".")[0];
  const id = event.subjects?.[name];
  return id === undefined ? "" : ` by ${name}=${id}`;
}

// ask sends an event several times, one after the other, and says how it went.
async function ask(guard, event, times = 1) {
  let allowed = 0;
  let last;
  try {
    for (let i = 0; i < times; i++) {
      last = await call(guard, event);
      if (last.error !== undefined) break;
      if (last.reply.allowed) allowed++;
    }
  } catch {
    return say("guards serve does not answer. Is it still running?", "!");
  }
  if (last.error !== undefined) return say(last.error, "!");
  const { reply } = last;
  let sentence = times > 1 ? `${allowed} of ${times} allowed. ` : "";
  let mark = "●";
  if (event.op === "release" || event.op === "reset") {
    sentence += "Done.";
    mark = "○";
  } else if (event.op === "renew") {
    sentence += reply.allowed ? "Renewed." : "Expired: the slot does not count any more.";
    mark = reply.allowed ? "○" : "✕";
  } else if (reply.allowed) {
    sentence += event.op === "status" ? "Would be allowed." : times > 1 ? "" : "Allowed.";
  } else {
    const delayed = reply.readyAt !== undefined;
    sentence += `${event.op === "status" ? "Would be refused" : delayed ? "Delayed" : "Refused"}${by(event, reply)}.`;
    sentence += reply.reason === "limited" && reply.limit === undefined ? " The number is too low." : ` It can pass in ${duration(reply.waitTime)}.`;
    mark = delayed ? "◆" : "✕";
  }
  if (reply.heldUntil !== undefined) sentence += ` Held until ${new Date(reply.heldUntil).toISOString().slice(11, 19)} UTC.`;
  if (reply.limit !== undefined) sentence += ` ${reply.activityCount} of ${reply.limit} used, ${reply.remaining} left.`;
  else if (reply.reason !== "ok") sentence += ` Reason: ${reply.reason}.`;
  say(sentence, mark);
}

// ---- The form

const form = $("ask");
const receipts = new Map(); // the event that releases the last check, by user and activity
const receiptKey = (user, activity) => `${user}\n${activity}`;
const maxReceipts = 1000;
const receiptOps = new Set(["release", "renew"]); // the operations that need one

function keepReceipt(receipt) {
  const k = receiptKey(receipt.userId, receipt.activity);
  receipts.delete(k);
  receipts.set(k, receipt); // the newest comes last
  if (receipts.size > maxReceipts) receipts.delete(receipts.keys().next().value);
}

// eventOf returns the event that the form describes. It leaves out defaults.
function eventOf() {
  const event = { userId: form.userId.value, activity: form.activity.value };
  const op = form.op.value;
  if (op !== "check") event.op = op;
  if (op !== "reset" && form.count.value !== "1" && form.count.value !== "") event.count = Number(form.count.value);
  if (form.partial.checked) event.partial = true;
  if (form.tier.value !== "") event.tier = form.tier.value;
  const roles = form.roles.value.split(/[\s,]+/).filter((role) => role !== "");
  if (roles.length > 0) event.roles = roles;
  const subjects = (form.subjects?.value ?? "").split(/\s+/).filter((subject) => subject !== "");
  if (subjectsOf() !== undefined && op !== "reset" && subjects.length > 0) {
    event.subjects = Object.fromEntries(subjects.map((subject) => {
      const at = subject.indexOf("=");
      return at < 0 ? [subject, ""] : [subject.slice(0, at), subject.slice(at + 1)];
    }));
  }
  const numbers = form.limit.value.split(/[\s,]+/).filter((number) => number !== "");
  if (takesNumber() && op !== "reset" && numbers.length > 0) {
    const named = numbers.map((number) => number.split("=")).map(([name, number]) => [name, Number(number)]);
    event.limit = numbers[0].includes("=") ? Object.fromEntries(named) : Number(numbers[0]);
  }
  if (receiptOps.has(op)) {
    if (form.at.value !== "") event.at = Number(form.at.value);
    if (form.requestId.value !== "") event.requestId = form.requestId.value;
  }
  return event;
}

const guardOf = () => form.activity.selectedOptions[0].dataset.guard;
const subjectsOf = () => form.activity.selectedOptions[0].dataset.subjects; // a sample; undefined: the activity has none

const takesNumber = () => form.activity.selectedOptions[0].dataset.number !== undefined;

// offerFields shows the field of a number if a limit of the activity has a max. It also shows the
// field of subjects if the activity has some, with a sample in it.
function offerFields() {
  $("limit-field").hidden = !takesNumber();
  const sample = subjectsOf();
  if ($("subjects-field") === null) return;
  $("subjects-field").hidden = sample === undefined;
  if (sample !== undefined) form.subjects.value = sample;
}

function preview() {
  for (const field of form.querySelectorAll(".receipt")) field.hidden = !receiptOps.has(form.op.value);
  put($("event"), `POST /2015-03-31/functions/${guardOf()}/invocations\n\n${JSON.stringify(eventOf(), null, 2)}`);
}

// offerReceipt fills in the receipt of the last check, which a release or a renewal needs.
function offerReceipt() {
  const last = receipts.get(receiptKey(form.userId.value, form.activity.value));
  if (!receiptOps.has(form.op.value)) return;
  form.requestId.value = last?.requestId ?? "";
  form.at.value = last?.at ?? "";
}

form.addEventListener("input", (e) => {
  if (e.target.id === "activity") offerFields();
  if (["op", "activity", "user"].includes(e.target.id)) offerReceipt();
  preview();
});
form.addEventListener("submit", (e) => {
  e.preventDefault();
  const times = Math.min(Math.max(1, Number($("times").value) || 1), 200);
  ask(guardOf(), eventOf(), times);
});

// ---- Buttons

const acts = {
  again: (li) => {
    arm(li, !li.armed);
    tick();
  },
  skip: (li) => moveClock({ to: li.view.again !== "" && li.view.passesAt > guardsNow() ? li.view.passesAt : li.view.resetAt }),
  clear: (li) => ask(li.view.guard, JSON.parse(li.view.reset)),
  release: (li, button) => ask(li.querySelector("[data-text=guard]").textContent, JSON.parse(button.value)),
  picture: (li, link) => {
    const dialog = $("picture");
    const { user, activity } = li.view;
    $("picture-title").textContent = `The last requests of ${user} for ${activity}`;
    const image = dialog.querySelector("img");
    image.alt = `A picture of the requests of ${user} for ${activity} and the count below the limit`;
    image.src = `${link.getAttribute("href")}&t=${Date.now()}`;
    dialog.querySelector("a").href = link.getAttribute("href");
    dialog.showModal();
  },
};

document.querySelector("main").addEventListener("click", (e) => {
  const button = e.target.closest("[data-act]");
  if (button === null || e.ctrlKey || e.metaKey || e.shiftKey) return;
  const li = button.closest("li");
  if (button.dataset.act === "picture") e.preventDefault();
  acts[button.dataset.act](li, button);
});
$("moves")?.addEventListener("click", (e) => {
  if (e.target.dataset.move !== undefined) moveClock({ move: Number(e.target.dataset.move) });
  else if (e.target.id === "real") moveClock({ reset: true });
});

// ---- News of the app

// A busy app must not keep a screen reader talking: there is one sentence in ten
// seconds, with the number of answers.
let heard = { all: 0, refused: 0 };

function count(view) {
  if (heard.all === 0) setTimeout(report, 10_000);
  heard.all++;
  if (view.kind === "refused") heard.refused++;
}

function report() {
  $("news").textContent = `${heard.all} answers to your app, ${heard.refused} refused.`;
  heard = { all: 0, refused: 0 };
}

// ---- Start

const events = new EventSource(`/console/events?after=${document.body.dataset.last}`);
events.addEventListener("clock", (e) => setClock(JSON.parse(e.data)));
events.addEventListener("windows", (e) => setWindows(JSON.parse(e.data)));
events.addEventListener("answer", (e) => addAnswer(JSON.parse(e.data)));
events.addEventListener("error", async () => {
  if (events.readyState !== EventSource.CLOSED) return say("The connection to guards serve is lost. The page tries again.", "!");
  const refused = await fetch(events.url); // the event does not tell why
  if (refused.ok) return location.reload();
  say(await refused.text(), "!");
});
events.addEventListener("open", () => {
  if ($("result").textContent.startsWith("The connection")) say("Connected again.");
});

for (const set of document.querySelectorAll("fieldset")) set.disabled = false;
const releases = [...document.querySelectorAll(".answer [data-act=release]:not([hidden])")];
for (const release of releases.reverse()) keepReceipt(JSON.parse(release.value)); // the page shows the newest first
offerFields();
preview();
