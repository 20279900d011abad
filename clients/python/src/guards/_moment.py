"""Times that go on between calls."""

from __future__ import annotations

import time


class Moment:
    """A moment in the past. Its age is in seconds.

    The monotonic clock can stand still while Lambda freezes a process between
    invocations. The wall clock goes on, but it can be set back. So the clock
    by which more time has passed counts. The time of one call is another
    matter: a freeze is no part of it.
    """

    def __init__(self, age: float = 0.0) -> None:
        self._monotonic, self._wall = time.monotonic() - age, time.time() - age

    @property
    def age(self) -> float:
        """How long ago the moment was."""
        return max(time.monotonic() - self._monotonic, time.time() - self._wall)
