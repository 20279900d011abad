"""Measuring how long a guard takes, without the time when this process itself was late."""

from __future__ import annotations

import time
from collections.abc import Iterator

from guards._attempt import Attempt
from guards._retry import Plan

TICK = 0.1  # seconds
SHORTEST = 0.01
LATE = 0.025  # a tick counts at most this much more than its length

# The share that counts of a tick at whose end a part of the answer lies unread. It is not 0, so that a server that sends
# without end can't hold a call forever.
UNREAD = 0.1


class Stopwatch:
    """Counts the time of one attempt, in short ticks.

    If the machine or the event loop is busy, the attempt's time can pass while
    its thread gets no turn, or while its answer lies unread. That tells nothing
    about the guard, so this time does not count. Neither does time when the
    process did not run at all: after a pause of a minute, the tick that it
    interrupted counts 125 ms.
    """

    def __init__(self, plan: Plan, attempt: Attempt) -> None:
        self.seconds: float | None = None  # how long the attempt may last; None: it has had no connection
        self._plan = plan
        self._attempt = attempt

    def ticks(self) -> Iterator[float]:
        """Yield how long to wait for the attempt's future next, until the attempt's time is over."""
        attempt, plan = self._attempt, self._plan
        left = plan.remaining
        while left > 0:
            tick = max(SHORTEST, min(TICK, left))
            began = time.monotonic()
            yield tick
            if attempt.waits_for == "app" or attempt.future.done():
                continue
            took = min(time.monotonic() - began, tick + LATE)
            if attempt.waits_for == "guard":
                if self.seconds is None:
                    left = self.seconds = plan.time()
                if attempt.has_unread():
                    took *= UNREAD
            plan.spend(took)
            left -= took
