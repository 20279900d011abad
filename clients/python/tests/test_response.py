"""Reading of HTTP responses, in pieces of any size."""

from __future__ import annotations

import pytest

from guards._response import LONGEST_BODY, BrokenError, NoHTTPError, Reader, Response


def read(text: bytes, piece: int = 7, **options: bool) -> Response:
    pieces = [text[i : i + piece] for i in range(0, len(text), piece)]
    return Reader(lambda: pieces.pop(0) if pieces else b"").response(**options)


PIECES = pytest.mark.parametrize("piece", [1, 3, 7, 1000])
OK = b"HTTP/1.1 200 OK\r\n"


@PIECES
@pytest.mark.parametrize(
    ("text", "body", "is_complete"),
    [
        (OK + b"Content-Length: 2\r\n\r\n{}", b"{}", True),
        (OK + b"content-length:0\r\n\r\n", b"", True),
        (OK + b"Content-Length: 2\r\nConnection: close\r\n\r\n{}", b"{}", False),
        (OK + b"Content-Length: 2\r\nConnection: Keep-Alive\r\n\r\n{}", b"{}", True),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", b"{}", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\n{}", b"{}", True),
        (b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\n{}", b"{}", True),
        (OK + b"\r\nuntil the end", b"until the end", False),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", b"{}", True),
        (OK + b"Transfer-Encoding: Chunked\r\n\r\n1;x=y\r\n{\r\n1 \r\n}\r\n00\r\nTrailer: x\r\n\r\n", b"{}", True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b"", False),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 x\r\nA: b\r\n\r\n" + OK + b"Content-Length: 2\r\n\r\n{}", b"{}", True),
    ],
)
def test_a_response(text: bytes, body: bytes, is_complete: bool, piece: int) -> None:
    response = read(text, piece)
    assert (response.content, response.is_complete) == (body, is_complete)


def test_headers() -> None:
    response = read(OK + b"X-Amz-Function-Error:  Unhandled \r\nX: 1\r\nx: 2\r\nno colon\r\nContent-Length: 0\r\n\r\n")
    assert response.headers["x-amz-function-error"] == "Unhandled"
    assert response.headers["x"] == "1"
    assert response.status_code == 200


def test_a_connection_with_more_than_the_answer_is_not_used_again() -> None:
    assert not read(OK + b"Content-Length: 2\r\n\r\n{}HTTP/1.1", 1000).is_complete


@PIECES
@pytest.mark.parametrize(
    "text",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/3.0 200 OK\r\n\r\n",
        b"HTTP/1.1 two OK\r\n\r\n",
        b"HTTP/1.1 2000\r\n\r\n",
        b"\r\n" + OK,
        OK + b"x: " + b"x" * (LONGEST_BODY + 9),
        OK + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 4000,
    ],
)
def test_what_is_no_http(text: bytes, piece: int) -> None:
    with pytest.raises(NoHTTPError):
        read(text, max(piece, len(text) // 100))


@PIECES
@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"HTTP/1",
        OK + b"Content-Length: 5\r\n",
        OK + b"Content-Length: 5\r\n\r\n{}",
        OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{}",
        OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
    ],
)
def test_a_connection_that_ends(text: bytes, piece: int) -> None:
    with pytest.raises(BrokenError):
        read(text, piece)


@pytest.mark.parametrize(
    "head",
    [b"Content-Length: 9999999\r\n\r\n", b"\r\n", b"Transfer-Encoding: chunked\r\n\r\nFFFFFFF\r\n"],
)
def test_a_body_that_is_too_long_is_not_read_to_its_end(head: bytes) -> None:
    read_bytes = 0

    def receive() -> bytes:
        nonlocal read_bytes
        read_bytes += 1000
        return (OK + head).ljust(1000, b"x") if read_bytes == 1000 else b"x" * 1000

    response = Reader(receive).response()
    assert len(response.content) == LONGEST_BODY + 1
    assert not response.is_complete
    assert read_bytes < LONGEST_BODY + 3000


def test_the_answer_of_a_proxy_has_no_body() -> None:
    response = read(b"HTTP/1.1 403 Not today\r\nContent-Length: 5\r\n\r\n", with_body=False)
    assert (response.status_code, response.reason) == (403, "Not today")
