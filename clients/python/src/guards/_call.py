"""One call, and the time that it has."""

from __future__ import annotations

import os
import random
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

from guards._breaker import Finding
from guards._errors import NoThread
from guards._process import Own

T = TypeVar("T")

TICK = 0.1  # seconds
SHORTEST = 0.01
LATE = 0.025  # a tick counts at most this much more than its length

# How many times an answer that has already arrived is read after the end of the attempt's time. It is bounded, so that a
# server that sends without end can't hold a call forever.
GRACE = 8

_FIRST_PAUSE = 0.05  # seconds between two attempts, at most


class LateError(Exception):
    """The time of an attempt is over."""


class GivenUp(Exception):  # noqa: N818
    """Nobody waits for the call any more. It never leaves this package."""


class Time:
    """The time of one attempt, measured in ticks.

    If the machine or the process is busy, the time can pass while the thread
    gets no turn, or while the answer lies unread. That tells nothing about the
    guard, so a tick counts little more than its length: after a pause of a
    minute, the tick that it interrupted counts 125 ms.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = self.left = seconds
        self._grace = GRACE

    def wait(self, sock: Any, operation: Callable[..., T], *args: Any) -> T:
        """Return what an operation of a socket returns, once it is possible.

        The socket's timeout is TICK. An operation that times out has had no
        effect, so it is repeated.
        """
        while True:
            if self.left < TICK:
                if self.left <= 0:
                    self._grace -= 1
                    if self._grace < 0:
                        raise LateError
                sock.settimeout(max(SHORTEST, self.left))
            began = time.monotonic()
            try:
                return operation(*args)
            except TimeoutError as error:
                if error.errno is not None:  # of the network: the other side does not acknowledge
                    raise
                if self.left <= 0:
                    raise LateError from None
            finally:
                self.spend(time.monotonic() - began)

    def spend(self, seconds: float) -> None:
        """Take a tick off what is left."""
        self.left -= min(seconds, TICK + LATE)


class Plan:
    """Divides the time of one call among its attempts. All times are in seconds."""

    def __init__(self, timeout: float, attempt: float, attempts: int) -> None:
        self.remaining = timeout
        self._attempt = attempt
        self._left = attempts  # attempts that have not begun
        self._longest_pause = _FIRST_PAUSE

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


class Call:
    """A call of the app, with all its attempts. Another thread can give it up."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.came = time.monotonic()  # before it waited for a connection
        self.is_over = False
        self.has_lost = False  # whether the last request had no response
        self.finding: Finding | None = None  # once it asks
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None

    def give_up(self) -> None:
        """End the call. It has no effect in a process that was forked meanwhile, because the call is its parent's."""
        if self._process != os.getpid():
            return
        with self._lock:
            self.is_over = True
            if self._socket is not None:
                with suppress(OSError):  # the other side was faster
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)  # not SSLSocket's, which changes its reader's state

    def hold(self, sock: socket.socket) -> None:
        """Remember the connection that the call uses."""
        with self._lock:
            self._socket = sock
        self.go_on()

    def let_go(self) -> None:
        """Forget the connection, which other calls may use from now on."""
        with self._lock:
            self._socket = None

    def go_on(self) -> None:
        """Raise an error if the call was given up."""
        if self.is_over:
            raise GivenUp

    def sleep(self, seconds: float) -> None:
        """Wait between two attempts."""
        time.sleep(seconds)
        self.go_on()

    def result(self, task: Task[T], time_left: Time) -> T:
        """Return what a task returns, unless the time is over before."""
        while not task.ended.is_set():
            if time_left.left <= 0:
                raise LateError
            tick = max(SHORTEST, min(TICK, time_left.left))
            began = time.monotonic()
            task.ended.wait(tick)
            self.go_on()
            if task.counts:
                time_left.spend(min(time.monotonic() - began, tick + LATE))
        return task.result()


class Task(Generic[T]):
    """Work that can't be ended, such as the look-up of a host name, in a thread that lives on until it is done."""

    def __init__(self, work: Callable[[], T], *, counts: bool = True) -> None:
        self.ended = threading.Event()
        self.counts = counts  # whether somebody else than this process has to act
        self._work = work
        self._outcome: T | None = None
        self._error: BaseException | None = None
        try:
            threading.Thread(target=self._run, name="guards-task", daemon=True).start()
        except RuntimeError as error:
            raise NoThread(str(error)) from error

    def _run(self) -> None:
        try:
            self._outcome = self._work()
        except BaseException as error:
            self._error = error
        finally:
            self.ended.set()

    def result(self) -> T:
        """Return what the work returned, or raise its error."""
        if self._error is not None:
            raise self._error
        return self._outcome  # type: ignore[return-value]


class Shared(Generic[T]):
    """Work that several calls wait for. It is done once at a time."""

    def __init__(self, work: Callable[[], T], *, counts: bool = True, forked: Callable[[], None] = lambda: None) -> None:
        self._work = work
        self._counts = counts
        self._forked = forked  # is called in each new process, before the work
        self._maker = os.getpid()
        self._own = Own(self._new_state)

    def result(self, call: Call, time_left: Time) -> T:
        """Return what the work returns, unless the time is over before."""
        state = self._own.get()
        with state.lock:
            task, is_new = self._begin(state)
        if not is_new and call.came < state.late_at:
            # While it had to wait for a connection, another call had no result in time.
            raise LateError
        try:
            return call.result(task, time_left)
        except LateError:
            state.late_at = time.monotonic()
            raise

    def begin(self) -> None:
        """Let the work be done, and do not wait for it."""
        state = self._own.get()
        with state.lock, suppress(NoThread):
            self._begin(state)

    def _begin(self, state: _State[T]) -> tuple[Task[T], bool]:
        """Return the work that is done at the moment, and whether it begins now."""
        task, is_new = state.task, False
        if task is None or task.ended.is_set():
            task, is_new = Task(self._work, counts=self._counts), True
            state.task = task
        return task, is_new

    def _new_state(self) -> _State[T]:
        if self._maker != os.getpid():
            self._forked()
        return _State()


class _State(Generic[T]):
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.task: Task[T] | None = None
        self.late_at = float("-inf")  # when a call stopped waiting for it
