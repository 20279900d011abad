"""The time of a call with all its attempts."""

from __future__ import annotations

import random

from guards._arguments import must_be, must_be_seconds
from guards._decision import Decision

FIRST_PAUSE = 0.05


class Plan:
    """Divides the time of one call among its attempts. All times are in seconds."""

    def __init__(self, timeout: float, attempt: float, attempts: int) -> None:
        self.remaining = timeout
        self._attempt = attempt
        self._left = attempts  # attempts that have not begun
        self._longest_pause = FIRST_PAUSE

    def begin(self) -> None:
        """Begin an attempt."""
        self._left -= 1

    def time(self) -> float:
        """Return how long this attempt may take. If no other one can follow, it gets all the remaining time."""
        if self._left > 0 and self.remaining >= 2 * self._attempt:
            return self._attempt
        return self.remaining

    def spend(self, seconds: float) -> None:
        """Take some time off what remains."""
        self.remaining = max(0.0, self.remaining - seconds)

    def pause(self) -> float | None:
        """Return how long to wait before a further attempt, or None if no attempt can follow."""
        spare = self.remaining - self._attempt
        if self._left == 0 or spare < 0:
            return None
        pause = min(spare, random.uniform(0, self._longest_pause))
        self._longest_pause *= 2
        self.spend(pause)
        return pause


def time_to_wait(decision: Decision, max_wait: float) -> float | None:
    """Return how long to sleep before the same request can pass, in seconds. None means that it can't pass in that time.

    Up to 10 % is added, or up to 50 ms if that is more, so that users who were
    refused together do not come back together.
    """
    must_be("the decision", decision, Decision, "one of this package")
    must_be_seconds("max_wait", max_wait)
    if not decision.wait_time:
        return 0.0 if decision.allowed else None
    if decision.wait_time > max_wait * 1000 or decision.reason == "blocked":
        return None
    wait = decision.wait_time / 1000
    return wait + random.uniform(0, max(wait / 10, 0.05))
