"""Failing fast while a guard does not answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from guards._errors import OutageError

# How long a function is not asked after an outage, in seconds.
CLOSED_FOR = 1.0


class Breaker:
    """Makes calls fail at once after an outage, for each function on its own.

    For a second after an outage, every call fails. Then one call probes the
    function, and the others fail until it ends or a further second has passed.
    An outage that the guard itself reports does not count: perhaps only one
    user's key is throttled.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._probe_at: dict[str, float] = {}  # when the next call may ask, for functions that had an outage

    @contextmanager
    def call(self, function: str) -> Iterator[None]:
        """Run a call in this context. It raises an OutageError at once if the function is to be left alone."""
        probe = self._enter(function)
        try:
            yield
        except OutageError as outage:
            if outage.answered:
                self._answered(function)
            else:
                self._close(function)
            raise
        except Exception:
            self._answered(function)  # a mistake, but no outage
            raise
        except BaseException:  # the caller gave up, for example asyncio cancelled it
            self._undo(function, probe)
            raise
        else:
            self._answered(function)

    def _enter(self, function: str) -> float | None:
        """Return None, or for a probe the time at which the next one may begin."""
        now = time.monotonic()
        with self._lock:
            at = self._probe_at.get(function)
            if at is None:
                return None
            if now < at:
                raise OutageError(f"{function} did not answer a moment ago", function)
            self._probe_at[function] = now + CLOSED_FOR
            return now + CLOSED_FOR

    def _close(self, function: str) -> None:
        with self._lock:
            self._probe_at[function] = time.monotonic() + CLOSED_FOR

    def _undo(self, function: str, probe: float | None) -> None:
        """Let the next call probe, if no other call has found anything since the probe began."""
        with self._lock:
            if probe is not None and self._probe_at.get(function) == probe:
                self._probe_at[function] = time.monotonic()

    def _answered(self, function: str) -> None:
        with self._lock:
            self._probe_at.pop(function, None)
