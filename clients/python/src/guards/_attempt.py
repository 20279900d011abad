"""One HTTP request that can be given up at any time."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from typing import Any, Literal

from urllib3.util.wait import wait_for_read

from guards._decision import Decision
from guards._errors import Lost

_thread = threading.local()  # its field attempt is the attempt that runs in this thread


class Attempt:
    """One attempt of a call. A thread of the Queue runs it.

    A timeout of a socket is not enough to end an attempt in time: it begins
    again with each byte that arrives, and the look-up of a host name has none.
    So the caller waits for the attempt's future as long as it likes and then
    gives the attempt up, which breaks its connection.
    """

    def __init__(self, work: Callable[[Attempt], Decision], call: object, function: str) -> None:
        self.call = call
        self.function = function
        self.begun: Future[None] = Future()  # done when the attempt has a thread
        self.future: Future[Decision] = Future()  # has the decision, or Lost, or another error of this package
        self.waits_for: Literal["app", "credentials", "guard"] = "app"  # who has to act next
        self.asks_credentials = False  # whether signing has begun
        self.prepared: Any = None  # the signed request
        self.url: str | None = None  # what to sign instead of Lambda's own address
        self.has_response = False  # from Lambda or the guard
        self.is_over = False
        self._process = os.getpid()
        self._work = work
        self._context = copy_context()
        self._outcome: Decision | BaseException | None = None
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self.begun.set_running_or_notify_cancel()
        self.future.set_running_or_notify_cancel()

    def run(self) -> None:
        """Do the work in this thread."""
        _thread.attempt = self
        self.begun.set_result(None)
        try:
            self._outcome = self._context.run(self._work, self)
        except BaseException as error:
            self._outcome = error
        finally:
            _thread.attempt = None

    @property
    def is_last(self) -> bool:
        """Whether the call ends with this attempt, which has run."""
        return not isinstance(self._outcome, Lost)

    def deliver(self) -> None:
        """Give the outcome to the caller."""
        if isinstance(self._outcome, BaseException):
            self.future.set_exception(self._outcome)
        elif self._outcome is not None:
            self.future.set_result(self._outcome)

    def give_up(self) -> None:
        """End the attempt now. It has no effect if the attempt is over, or belongs to the process that forked this one."""
        if self._process != os.getpid():
            return
        with self._lock:
            self.is_over = True
            held, self._socket = self._socket, None
            if held is not None:
                with suppress(OSError):  # the other side was faster
                    socket.socket.shutdown(held, socket.SHUT_RDWR)  # not SSLSocket's, which also changes the reader's state

    def connects(self) -> None:
        """Note that the request has its connection, or opens one. From now on, the guard has to act."""
        self.waits_for = "guard"

    def hold(self, connected: socket.socket) -> None:
        """Remember the attempt's connection. If the attempt is over, its request must not be sent any more."""
        with self._lock:
            if self.is_over:
                raise ConnectionAbortedError("the attempt is over")
            self._socket = getattr(connected, "socket", connected)  # urllib3 wraps a socket behind a proxy with TLS

    def let_go(self) -> None:
        """Forget the connection, which other attempts may use from now on."""
        with self._lock:
            self._socket = None
            self.waits_for = "app"

    def has_unread(self) -> bool:
        """Report whether something has arrived that the attempt's thread has not read."""
        with self._lock:
            try:
                return self._socket is not None and wait_for_read(self._socket, timeout=0)
            except (OSError, ValueError):  # the connection was closed
                return False


def current() -> Attempt | None:
    """Return the attempt that runs in this thread."""
    return getattr(_thread, "attempt", None)
