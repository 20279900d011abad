"""One HTTP request that can be given up at any time."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from typing import Any

from botocore.awsrequest import AWSHTTPConnection, AWSHTTPConnectionPool, AWSHTTPSConnection, AWSHTTPSConnectionPool
from botocore.httpsession import URLLib3Session

from guards._decision import Decision
from guards._errors import Lost

_thread = threading.local()  # its field attempt is the attempt that runs in this thread


class Attempt:
    """Runs one attempt in a thread of its own.

    A timeout of a socket is not enough to end an attempt in time: it begins
    again with each byte that arrives, and the look-up of a host name has none.
    So the caller waits for the attempt's future as long as it likes and then
    gives the attempt up, which breaks its connection. If no thread can be
    started, making an Attempt raises Lost.
    """

    def __init__(self, work: Callable[[Attempt], Decision]) -> None:
        self.future: Future[Decision] = Future()
        self.signed: Future[None] = Future()  # done when the credentials were found, or when the attempt is over
        self.asks_credentials = False  # whether signing has begun
        self.prepared: Any = None  # the signed request
        self.url: str | None = None  # what to sign instead of Lambda's own address
        self._work = work
        self._lock = threading.Lock()
        self._over = False
        self._socket: socket.socket | None = None
        self.future.set_running_or_notify_cancel()
        self.signed.set_running_or_notify_cancel()
        thread = threading.Thread(target=copy_context().run, args=(self._run,), name="guards-attempt", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            raise Lost(f"no thread is left for the request: {error}") from error

    def give_up(self) -> None:
        """End the attempt now. It does nothing if the attempt is over."""
        with self._lock:
            self._over = True
            held, self._socket = self._socket, None
            if held is not None:
                with suppress(OSError):  # the other side was faster
                    socket.socket.shutdown(held, socket.SHUT_RDWR)  # not SSLSocket's, which also changes the reader's state

    def hold(self, connected: socket.socket) -> None:
        """Remember the attempt's connection. If the attempt is over, its request must not be sent any more."""
        with self._lock:
            if self._over:
                raise ConnectionAbortedError("the attempt is over")
            self._socket = getattr(connected, "socket", connected)  # urllib3 wraps a socket behind a proxy with TLS

    def let_go(self) -> None:
        """Forget the connection, which other attempts may use from now on."""
        with self._lock:
            self._socket = None

    def _run(self) -> None:
        _thread.attempt = self
        try:
            decision = self._work(self)
        except BaseException as error:
            self.future.set_exception(error)
        else:
            self.future.set_result(decision)
        finally:
            if not self.signed.done():
                self.signed.set_result(None)


def current() -> Attempt | None:
    """Return the attempt that runs in this thread."""
    return getattr(_thread, "attempt", None)


class _Held:
    """A connection that tells the attempt which socket it uses, before a request is sent."""

    sock: Any

    def connect(self) -> None:
        super().connect()  # type: ignore[misc]
        self._tell()

    def request(self, *args: Any, **kwargs: Any) -> Any:
        if self.sock is not None:  # used before
            self._tell()
        return super().request(*args, **kwargs)  # type: ignore[misc]

    def _tell(self) -> None:
        attempt = current()
        if attempt is not None and self.sock is not None:
            attempt.hold(self.sock)


class _HTTPConnection(_Held, AWSHTTPConnection):  # type: ignore[misc]
    pass


class _HTTPSConnection(_Held, AWSHTTPSConnection):  # type: ignore[misc]
    pass


class _HTTPPool(AWSHTTPConnectionPool):  # type: ignore[misc]
    ConnectionCls = _HTTPConnection


class _HTTPSPool(AWSHTTPSConnectionPool):  # type: ignore[misc]
    ConnectionCls = _HTTPSConnection


class Session(URLLib3Session):  # type: ignore[misc]
    """botocore's HTTP session, with connections that an attempt can break."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._pool_classes_by_scheme = {"http": _HTTPPool, "https": _HTTPSPool}
        self._manager.pool_classes_by_scheme = self._pool_classes_by_scheme

    def exchange(self, attempt: Attempt) -> Any:
        """Send the attempt's request and return the response, read completely."""
        attempt.prepared.stream_output = False
        try:
            return self.send(attempt.prepared)
        finally:
            attempt.let_go()
