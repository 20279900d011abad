"""Times that are longer than a call."""

from __future__ import annotations

import time


class Moment:
    """A moment in the past, for times that go on between calls.

    Lambda freezes a process between invocations. The monotonic clock can stand
    still meanwhile. The wall clock goes on, but somebody can set it back. So
    the age is by the clock that says more. It is not for the time of one call,
    which does not count a freeze.
    """

    def __init__(self, age: float = 0.0) -> None:
        self._monotonic, self._wall = time.monotonic() - age, time.time() - age

    @property
    def age(self) -> float:
        """How long ago the moment was, in seconds."""
        return max(time.monotonic() - self._monotonic, time.time() - self._wall)
