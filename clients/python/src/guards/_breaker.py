"""Failing fast while a guard does not answer."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from guards._errors import OutageError

# How long a function is not asked after an outage, in seconds.
PAUSE = 1.0


@dataclass(eq=False)
class Call:
    """A call to a function."""

    function: str
    answers: int  # that the function gave before the call began
    is_probe: bool = False
    has_begun: bool = False
    has_response: bool = False  # from Lambda or the guard


@dataclass
class _Function:
    answers: int = 0
    probe_at: float | None = None  # when the next call may ask; None: there is no outage
    probe: Call | None = None  # that asks at the moment; None once it is too old to tell anything


class Breaker:
    """Makes calls fail at once after an outage, for each function on its own.

    For a second after an outage, every call fails. Then one call probes the
    function, and the others fail until it ends or a further second has passed.
    A call without an answer is an outage only if no other call was answered
    since it began. An outage that the guard itself reports does not count:
    perhaps only one user's key is throttled.
    """

    def __init__(self, opened: Callable[[OutageError], None]) -> None:
        self._opened = opened  # is called with the error of the calls that wait at an outage
        self._lock = threading.Lock()
        self._functions: defaultdict[str, _Function] = defaultdict(_Function)

    @contextmanager
    def call(self, function: str) -> Iterator[Call]:
        """Run a call in this context. It raises an OutageError at once if the function must not be called now."""
        call = self._enter(function)
        try:
            yield call
        except OutageError as outage:
            if outage.answered:
                self._answered(call)
            elif call.has_begun:
                self._lost(call)
            else:
                self._undo(call)
            raise
        except BaseException:  # a mistake, or the caller gave up: for example, asyncio cancelled it
            if call.has_response:
                self._answered(call)
            else:
                self._undo(call)
            raise
        else:
            self._answered(call)

    def begin(self, call: Call) -> None:
        """Begin a call that waited in the app's own queue. Its wait tells nothing about its function."""
        with self._lock:
            if not call.has_begun:
                call.has_begun, call.answers = True, self._functions[call.function].answers

    def _enter(self, function: str) -> Call:
        now = time.monotonic()
        with self._lock:
            state = self._functions[function]
            call = Call(function, state.answers)
            if state.probe_at is not None:
                if now < state.probe_at:
                    raise _a_moment_ago(function)
                state.probe, state.probe_at = call, now + PAUSE
                call.is_probe = True
            return call

    def _lost(self, call: Call) -> None:
        with self._lock:
            state = self._functions[call.function]
            if state.answers != call.answers or (call.is_probe and state.probe is not call):
                return
            state.probe, state.probe_at = None, time.monotonic() + PAUSE
        self._opened(_a_moment_ago(call.function))

    def _undo(self, call: Call) -> None:
        """Let the next call probe, if this one is the latest probe."""
        with self._lock:
            state = self._functions[call.function]
            if state.probe is call:
                state.probe, state.probe_at = None, time.monotonic()

    def _answered(self, call: Call) -> None:
        with self._lock:
            state = self._functions[call.function]
            state.answers += 1
            state.probe = state.probe_at = None


def _a_moment_ago(function: str) -> OutageError:
    return OutageError(f"{function} did not answer a moment ago", function)
