"""Failing fast while a guard does not answer."""

from __future__ import annotations

import math
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from guards._errors import OutageError
from guards._moment import Moment

# How long a function is not asked after an outage, in seconds.
PAUSE = 1.0


class Finding:
    """What a call finds out about its function."""

    def __init__(self, function: str, answers: int) -> None:
        self.function = function
        self.answers = answers  # that the function gave before the call began
        self.is_probe = False
        self.has_response = False  # from Lambda or the guard


class _Function:
    def __init__(self) -> None:
        self.answers = 0
        self.paused: Moment | None = None  # since when calls fail at once; None: there is no outage
        self.probe: Finding | None = None  # that asks at the moment; None once it is too old to tell anything


class Breaker:
    """Makes calls fail at once after an outage, for each function on its own.

    For a second after an outage, every call fails. Then one call probes the
    function, and the others fail until it ends or a further second has passed.
    A call without an answer is an outage only if no other call was answered
    since it began. An outage that the guard itself reports does not count:
    perhaps only one user's key is throttled.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._functions: defaultdict[str, _Function] = defaultdict(_Function)

    @contextmanager
    def call(self, function: str) -> Iterator[Finding]:
        """Run a call in this context. It raises an OutageError at once if the function must not be called now."""
        call = self._enter(function)
        end = self._answered
        try:
            yield call
        except OutageError as outage:
            if not outage.answered:
                end = self._lost
            raise
        except BaseException:  # a mistake, or the caller gave up: for example, asyncio cancelled it
            if not call.has_response:
                end = self.undo
            raise
        finally:
            end(call)

    def look(self, function: str) -> None:
        """Raise an OutageError if a call would fail at once. A call that has to wait for a connection begins after that."""
        with self._lock:
            state = self._functions.get(function)
            if state is not None and state.paused is not None and state.paused.age < PAUSE:
                raise _a_moment_ago(function)

    def _enter(self, function: str) -> Finding:
        with self._lock:
            state = self._functions[function]
            call = Finding(function, state.answers)
            if state.paused is not None:
                if state.paused.age < PAUSE:
                    raise _a_moment_ago(function)
                state.probe, state.paused = call, Moment()
                call.is_probe = True
            return call

    def _lost(self, call: Finding) -> None:
        with self._lock:
            state = self._functions[call.function]
            if state.answers != call.answers or (call.is_probe and state.probe is not call):
                return
            state.probe, state.paused = None, Moment()

    def undo(self, call: Finding) -> None:
        """Let the next call probe, if this one is the latest probe. Nobody waits for its end."""
        with self._lock:
            state = self._functions[call.function]
            if state.probe is call:
                state.probe, state.paused = None, Moment(math.inf)

    def _answered(self, call: Finding) -> None:
        with self._lock:
            state = self._functions[call.function]
            state.answers += 1
            state.probe = state.paused = None


def _a_moment_ago(function: str) -> OutageError:
    return OutageError(f"{function} did not answer a moment ago", function)
