"""Runs the Python client for the scenarios.

It reads one JSON object a line and prints one JSON object a line. With the
argument --async it uses AsyncGuards.
"""

import asyncio
import concurrent.futures
import json
import re
import sys
import threading
import time

import guards
from activities import ACTIVITIES  # the test writes it

OPTIONS = {"onOutage": "on_outage", "decisionTimeout": "decision_timeout", "maxTries": "max_tries"}
SECONDS = {"timeout", "decisionTimeout"}  # the scenarios have milliseconds
OPTIONAL = {"tier", "roles", "subjects", "requestId", "at", "readyAt", "partial", "job"}  # absent if they are empty


class SaveError(Exception):
    """What a failed save raises."""


class Sync:
    """The ordinary client, with the methods of AsyncGuards."""

    def __init__(self, **options):
        self.client = guards.Guards(**options)

    def __getattr__(self, verb):
        async def call(*args, **named):
            return getattr(self.client, verb)(*args, **named)

        return call


def snake(name):
    return re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), name)


def new(options):
    known = {OPTIONS.get(k, k): v / 1000 if k in SECONDS else v for k, v in options.items() if v is not None}
    if not known.pop("noList", False):
        known.setdefault("activities", ACTIVITIES)
    return guards.AsyncGuards(**known) if "--async" in sys.argv else Sync(**known)


async def call(client, line):
    """Return the fields of the decision."""
    activity, verb = line.get("activity"), line["call"]
    if isinstance(activity, dict):
        activity = guards.GuardActivity(activity["guard"], activity["activity"])
    if verb == "ready":
        await (client.ready(activity) if activity else client.ready())
        return {}
    args = line.get("args") or {}
    args = {snake(name): value for name, value in args.items() if name not in OPTIONAL or value}
    if verb == "slot":
        return await slot(client, activity, line, args)
    if verb == "settle":
        decision = await client.check(activity, **args)
        for _ in range(2):
            settled = decision.settle(line.get("used", 0))
            await settled if settled else None
    elif verb == "guarded":
        decision = await client.guarded(activity, save(client, line), **args)
    else:
        decision = await getattr(client, verb)(activity, **args)
    return plain(decision)


def plain(decision):
    answer = dict(decision.answer)
    if decision.outage is not None:
        answer["outage"] = str(decision.outage)
    return answer


async def slot(client, activity, line, args):
    """Work in a slot, and return its decision with when the work began and ended."""

    def steps(slot):
        """Yield until the work is done."""
        end = time.monotonic() + line.get("work", 0) / 1000
        while slot.allowed and not slot.lost and time.monotonic() < end:
            yield
        if line.get("save") == "fail":
            raise SaveError("the work failed")

    def begin(slot):
        if slot.decision.held_until:
            print("began", round(time.time() * 1000), file=sys.stderr, flush=True)
        return round(time.time() * 1000)

    def done(slot, began):
        return {**plain(slot.decision), "lost": slot.lost, "began": began, "ended": round(time.time() * 1000)}

    if isinstance(client, Sync):
        with client.client.slot(activity, **args) as held:
            began = begin(held)
            for _ in steps(held):
                time.sleep(0.01)
            return done(held, began)
    async with client.slot(activity, **args) as held:
        began = begin(held)
        for _ in steps(held):
            await asyncio.sleep(0.01)
        return done(held, began)


def save(client, line):
    """Return the function that guarded calls. It returns the decision."""

    def saved(decision):
        if line.get("save") == "fail":
            raise SaveError("the save failed")
        return decision

    async def saved_later(decision):
        return saved(decision)

    return saved if isinstance(client, Sync) else saved_later


def failure(error):
    return {"class": type(error).__name__, "message": str(error)}


def milliseconds(began):
    return round((time.monotonic() - began) * 1000)


async def perform(client, asked):
    """Make a call and return its result."""
    began = time.monotonic()
    try:
        return {"answer": await call(client, asked), "ms": milliseconds(began)}
    except Exception as error:
        return {"error": failure(error), "ms": milliseconds(began)}


def in_thread(client, asked):
    """Make a call of the ordinary client, which never waits for the event loop."""
    try:
        perform(client, asked).send(None)
    except StopIteration as done:
        return done.value


async def together(client, calls):
    if not isinstance(client, Sync):
        return await asyncio.gather(*(perform(client, asked) for asked in calls))
    threading.stack_size(256 * 1024)
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(lambda asked: in_thread(client, asked), calls))


async def main():
    client = None
    while line := await asyncio.to_thread(sys.stdin.readline):
        asked = json.loads(line)
        if "new" in asked:
            try:
                client = new(asked["new"] or {})
                result = {"ok": True}
            except Exception as error:
                result = {"error": failure(error)}
        elif "together" in asked:
            result = {"results": await together(client, asked["together"])}
        else:
            result = await perform(client, asked)
        print(json.dumps(result), flush=True)


asyncio.run(main())
