"""Reading HTTP responses.

http.client would take 25 ms to load, and a third of the time of a call.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

# The longest head, and the longest body of an answer, in bytes. No guard sends one of this length, so the rest of a longer
# body is not read.
LONGEST_BODY = 64 * 1024

_START = re.compile(r"HTTP/1\.([01]) (\d{3})(?: (.*))?$")


class NoHTTPError(Exception):
    """Something else than HTTP came."""


class BrokenError(Exception):
    """The connection ended in the middle of a response."""


class Response(NamedTuple):
    """An HTTP response. The names of the headers are lower case."""

    status_code: int
    headers: dict[str, str]
    content: bytes  # more than LONGEST_BODY bytes if the body is too long, and then not all of it
    is_complete: bool = False  # whether the connection can be used again
    reason: str = ""


class Reader:
    """Reads one response. receive returns the next bytes of the connection, and none at its end."""

    def __init__(self, receive: Callable[[], bytes]) -> None:
        self._receive = receive
        self._unread = b""

    def response(self, *, with_body: bool = True) -> Response:
        """Read the response. Answers before it, such as 100 Continue, are left out."""
        room = LONGEST_BODY
        while True:
            start, headers, length = self._head()
            status = int(start[2])
            room -= length
            if room < 0:
                raise NoHTTPError("a response without end")
            if status >= 200 or status == 101:
                break
        keeps = headers.get("connection", "keep-alive" if start[1] == "1" else "close").lower() == "keep-alive"
        if not with_body or status in (101, 204, 304):
            return Response(status, headers, b"", reason=start[3] or "")
        body, is_complete = self._body(headers)
        return Response(status, headers, body, is_complete and keeps and not self._unread)

    def _head(self) -> tuple[re.Match[str], dict[str, str], int]:
        while (end := self._unread.find(b"\r\n\r\n")) < 0:
            begin = self._unread[:7]
            if begin != b"HTTP/1."[: len(begin)]:
                raise NoHTTPError(_shown(self._unread))
            if len(self._unread) > LONGEST_BODY:
                raise NoHTTPError("a head without end")
            self._more("the connection was closed without an answer" if not self._unread else _MIDDLE)
        start, *lines = self._unread[:end].decode("latin-1").split("\r\n")
        self._unread = self._unread[end + 4 :]
        match = _START.match(start)
        if match is None:
            raise NoHTTPError(_shown(start.encode("latin-1")))
        headers: dict[str, str] = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers.setdefault(name.lower(), value.strip())
        return match, headers, end

    def _body(self, headers: dict[str, str]) -> tuple[bytes, bool]:
        """Return the body, and whether all of it was read and the connection can go on."""
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return self._chunks()
        length = headers.get("content-length", "")
        if length.isdecimal() and length.isascii():
            wanted = min(int(length), LONGEST_BODY + 1)
            return self._exactly(wanted), wanted == int(length)
        while len(self._unread) <= LONGEST_BODY and (more := self._receive()):
            self._unread += more
        return self._unread[: LONGEST_BODY + 1], False

    def _chunks(self) -> tuple[bytes, bool]:
        body = b""
        while True:
            size = self._line().partition(b";")[0].strip()
            if not re.fullmatch(rb"[0-9A-Fa-f]{1,8}", size):
                raise NoHTTPError(_shown(size))
            left = int(size, 16)
            if left == 0:
                break
            body += self._exactly(min(left, LONGEST_BODY + 1 - len(body)))
            if len(body) > LONGEST_BODY:
                return body, False
            self._line()
        while self._line():  # trailers
            pass
        return body, True

    def _line(self) -> bytes:
        while (end := self._unread.find(b"\r\n")) < 0:
            if len(self._unread) > LONGEST_BODY:
                raise NoHTTPError("a line without end")
            self._more(_MIDDLE)
        line, self._unread = self._unread[:end], self._unread[end + 2 :]
        return line

    def _exactly(self, size: int) -> bytes:
        while len(self._unread) < size:
            self._more(_MIDDLE)
        taken, self._unread = self._unread[:size], self._unread[size:]
        return taken

    def _more(self, problem: str) -> None:
        more = self._receive()
        if not more:
            raise BrokenError(problem)
        self._unread += more


_MIDDLE = "the connection broke in the middle of the answer"


def _shown(text: bytes) -> str:
    return repr(text[:100])[1:]
