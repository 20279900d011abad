"""botocore's HTTP session, with what an attempt needs of it."""

from __future__ import annotations

import os
import queue
from collections import deque
from http.client import HTTPException, HTTPResponse
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from botocore.awsrequest import AWSHTTPConnection, AWSHTTPConnectionPool, AWSHTTPSConnection, AWSHTTPSConnectionPool
from botocore.httpsession import URLLib3Session
from urllib3.exceptions import HTTPError

from guards._attempt import Attempt, current
from guards._errors import Lost

# The longest body of an answer, in bytes. No guard sends one of this length, so the rest of a longer one is not read.
LONGEST_BODY = 64 * 1024

# The addresses that have answered this process by HTTP, such as https://lambda.eu-west-1.amazonaws.com.
spoke_http: set[str] = set()


class Response(NamedTuple):
    """The response to an attempt."""

    status_code: int
    headers: Any
    content: bytes  # more than LONGEST_BODY bytes if the body is too long, and then not all of it


def address(url: str) -> str:
    """Return the scheme, host and port of a URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


class _Held:
    """A connection that tells the attempt which socket it uses, before a request is sent."""

    sock: Any

    def connect(self) -> None:
        if (attempt := current()) is not None:
            attempt.connects()
        super().connect()  # type: ignore[misc]
        self._tell()

    def request(self, *args: Any, **kwargs: Any) -> Any:
        if self.sock is not None:  # used before
            self._tell()
        return super().request(*args, **kwargs)  # type: ignore[misc]

    def _tell(self) -> None:
        attempt = current()
        if attempt is not None and self.sock is not None:
            attempt.connects()
            attempt.hold(self.sock)


class _Start(HTTPResponse):
    """The start of a response. http.client bounds its headers, but not how often 100 Continue can come before them."""

    _statuses = 0

    def _read_status(self) -> Any:
        self._statuses += 1
        if self._statuses > LONGEST_BODY // len("HTTP/1.1 100 Continue\r\n\r\n"):
            raise HTTPException("a response without end")
        return super()._read_status()  # type: ignore[misc]


class _HTTPConnection(_Held, AWSHTTPConnection):  # type: ignore[misc]
    response_class = _Start


class _HTTPSConnection(_Held, AWSHTTPSConnection):  # type: ignore[misc]
    response_class = _Start


class _Idle:
    """The connections of a pool that nobody uses at the moment, instead of urllib3's own queue.

    A connection belongs to the process that opened it: no other process gets
    it. A deque needs no lock, which a fork could copy while a thread holds it.
    """

    def __init__(self, maxsize: int) -> None:
        self._most = maxsize
        self._idle: deque[tuple[int, Any]] = deque()

    def get(self, block: bool = False, timeout: float | None = None) -> Any:  # noqa: ARG002
        while True:
            try:
                process, connection = self._idle.pop()
            except IndexError:
                raise queue.Empty from None
            if process == os.getpid():
                return connection

    def put(self, connection: Any, block: bool = False) -> None:  # noqa: ARG002
        if len(self._idle) >= self._most:
            raise queue.Full
        self._idle.append((os.getpid(), connection))

    def qsize(self) -> int:
        return len(self._idle)


class _Straight:
    """A pool that follows no redirect. botocore does not either, but urllib3 fails at some before it knows."""

    def urlopen(self, *args: Any, **kwargs: Any) -> Any:
        return super().urlopen(*args, **kwargs, redirect=False)  # type: ignore[misc]


class _HTTPPool(_Straight, AWSHTTPConnectionPool):  # type: ignore[misc]
    ConnectionCls = _HTTPConnection
    QueueCls = _Idle


class _HTTPSPool(_Straight, AWSHTTPSConnectionPool):  # type: ignore[misc]
    ConnectionCls = _HTTPSConnection
    QueueCls = _Idle


class Session(URLLib3Session):  # type: ignore[misc]
    """botocore's HTTP session, with connections that an attempt can break."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._pool_classes_by_scheme = {"http": _HTTPPool, "https": _HTTPSPool}
        self._manager.pool_classes_by_scheme = self._pool_classes_by_scheme

    def exchange(self, attempt: Attempt) -> Response:
        """Send the attempt's request and return the response. No redirect is followed."""
        attempt.prepared.stream_output = True  # the body is read here, because botocore would read one without end
        try:
            response = self.send(attempt.prepared)
            spoke_http.add(address(attempt.prepared.url))
            return Response(response.status_code, response.headers, _body(response))
        finally:
            attempt.let_go()


def _body(response: Any) -> bytes:
    try:
        body: bytes = response.raw.read(LONGEST_BODY + 1)
    except (HTTPError, HTTPException, OSError) as error:
        raise Lost("the connection broke in the middle of the answer") from error
    finally:
        response.raw.close()  # the connection, too, unless all was read and other attempts may use it
    length = response.headers.get("content-length", "")
    if len(body) <= LONGEST_BODY and length.isdecimal() and len(body) != int(length):
        raise Lost("the connection broke in the middle of the answer")
    return body
