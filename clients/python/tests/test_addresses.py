"""What answers at an address without being a guard: something else than HTTP, a redirect, an answer without end."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import boto3
import pytest

from guards import AnswerError, ConfigurationError
from guards._connection import spoke_http
from guards._response import LONGEST_BODY
from tests.conftest import SHORT, Client
from tests.server import Handler, Server, answer, hang, raw

FORMS = pytest.mark.parametrize("url", [False, True], ids=["invoke", "url"])

# What a port says that speaks no HTTP, and whether it waits for the request.
BANNERS = {
    "SSH": (b"SSH-2.0-OpenSSH_9.6\r\n", False),
    "Redis": (b"-ERR unknown command 'POST'\r\n", True),
    "SMTP": (b"220 mail ESMTP\r\n", False),
    "TLS alert": (b"\x15\x03\x03\x00\x02\x02\x46", True),
    "MySQL": (b"J\x00\x00\x00\n8.0.36\x00", False),
    "HTTP/3.0": (b"HTTP/3.0 200 OK\r\n\r\n", True),
}


class Port:
    """A port that does what a test tells it with each connection."""

    def __init__(self, serve: Callable[[socket.socket], None]) -> None:
        self.serve = serve
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def _one(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            self.serve(connection)

    def close(self) -> None:
        with suppress(OSError):  # closed before
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture
def port() -> Iterator[Callable[..., Port]]:
    made: list[Port] = []

    def make(serve: Callable[[socket.socket], None]) -> Port:
        made.append(Port(serve))
        spoke_http.discard(made[-1].address)  # a port of another test can have had this number
        return made[-1]

    yield make
    for one in made:
        one.close()


def says(text: bytes, waits: bool) -> Callable[[socket.socket], None]:
    def serve(connection: socket.socket) -> None:
        if waits:
            connection.recv(4096)
        connection.sendall(text)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(4096):
            pass

    return serve


def http_answer(connection: socket.socket) -> None:
    connection.recv(4096)
    body = b'{"allowed": true, "reason": "ok"}'
    connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))


def client_at(new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, address: str, url: bool, **options: Any) -> Client:
    monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", address)
    return new(**options, **({"urls": {"posts-guard": address}} if url else {}))


@FORMS
@pytest.mark.parametrize("banner", BANNERS)
def test_a_port_without_http_is_a_mistake_unless_it_spoke_http(
    new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, port: Callable[..., Port], url: bool, banner: str
) -> None:
    listener = port(says(*BANNERS[banner]))
    client = client_at(new, monkeypatch, listener.address, url)
    for _ in range(2):
        with pytest.raises(
            ConfigurationError, match=rf"^posts-guard could not be invoked: no HTTP server answers at {listener.address}"
        ):
            client.check("create_post", user_id="u1")
    assert listener.connections == 2
    assert client.warnings == []
    listener.serve = http_answer
    assert client.check("create_post", user_id="u1").reason == "ok"
    listener.serve = says(*BANNERS[banner])
    assert client.check("create_post", user_id="u1").outage is not None


@FORMS
def test_tls_at_a_port_without_it(
    new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, port: Callable[..., Port], url: bool
) -> None:
    listener = port(says(b"SSH-2.0-OpenSSH_9.6\r\n", True))
    secure = listener.address.replace("http:", "https:")
    client = client_at(new, monkeypatch, secure, url)
    with pytest.raises(ConfigurationError, match="no HTTP server answers at https://"):
        client.check("create_post", user_id="u1")
    spoke_http.add(secure)
    assert client.check("create_post", user_id="u1").outage is not None
    spoke_http.discard(secure)


@FORMS
@pytest.mark.parametrize("status", [b"403 Forbidden", b"407 Proxy Authentication Required", b"503 Service Unavailable"])
def test_a_proxy_that_refuses_to_connect(
    new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, port: Callable[..., Port], url: bool, status: bytes
) -> None:
    proxy = port(says(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n", True))
    monkeypatch.setenv("HTTPS_PROXY", proxy.address)
    address = "https://guard.example"
    client = client_at(new, monkeypatch, address, url)
    with pytest.raises(
        ConfigurationError, match="no HTTP server answers at https://guard.example: Tunnel connection failed: " + status.decode()
    ):
        client.check("create_post", user_id="u1")
    assert proxy.connections == 1
    spoke_http.add(address)
    assert client.check("create_post", user_id="u1").outage is not None
    spoke_http.discard(address)


@FORMS
def test_silence_and_a_connection_that_breaks_are_outages(
    server: Server, new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, port: Callable[..., Port], url: bool
) -> None:
    server.does(hang)
    spoke_http.discard(server.url)
    assert client_at(new, monkeypatch, server.url, url, **SHORT).check("create_post", user_id="u1").outage is not None
    listener = port(lambda connection: connection.recv(4096))
    assert client_at(new, monkeypatch, listener.address, url).check("create_post", user_id="u1").outage is not None
    listener.close()
    refused = client_at(new, monkeypatch, listener.address, url)
    assert refused.check("create_post", user_id="u1").outage is not None


def test_a_missing_certificate_bundle_is_no_outage(
    new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, port: Callable[..., Port]
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "none.pem"))
    client = client_at(new, monkeypatch, port(says(b"", True)).address.replace("http:", "https:"), False)
    with pytest.raises(ConfigurationError, match=r"^posts-guard could not be invoked: "):
        client.check("create_post", user_id="u1")


@pytest.mark.usefixtures("server")
def test_an_error_of_the_apps_own_hook_is_no_outage(new: Callable[..., Client]) -> None:
    def fail(**_: Any) -> None:
        raise TimeoutError("the hook of the app")

    own = boto3.client("lambda")
    client = new(client=own)
    assert client.check("create_post", user_id="u1").reason == "ok"  # from now on, credentials that fail are an outage
    own.meta.events.register("after-call.lambda.Invoke", fail)
    with pytest.raises(ConfigurationError, match="the hook of the app"):
        client.check("create_post", user_id="u1")
    own.close()


@FORMS
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(server: Server, new: Callable[..., Client], url: bool, status: int) -> None:
    with Server() as other:
        threading.Thread(target=other.serve_forever, args=(0.01,), daemon=True).start()
        server.does(raw("", status, Location=f"{other.url}/other"), answer())
        client = new(urls={"posts-guard": server.url} if url else {})
        with pytest.raises(ConfigurationError, match=f"^posts-guard could not be invoked: HTTP {status}: $"):
            client.check("create_post", user_id="u1")
        assert other.received == []
        assert len(server.received) == 1
        other.shutdown()


def endless(start: bytes, sent: list[int]) -> Callable[[Handler], None]:
    """Send a start and then spaces, until the client closes the connection."""

    def step(handler: Handler) -> None:
        sent.append(0)
        try:
            handler.wfile.write(start)
            while sent[-1] < 200 << 20:
                sent[-1] += handler.connection.send(b" " * 65536)
        except OSError:
            handler.received.closed_at = time.monotonic()
        handler.close_connection = True

    return step


HEAD = b"HTTP/1.1 %b\r\nContent-Type: application/json\r\n\r\n"


@FORMS
@pytest.mark.parametrize(
    ("start", "error"),
    [
        (HEAD % b"200 OK" + b'{"allowed": true, "reason": "ok"}', AnswerError),
        (HEAD % b"200 OK" + b'{"allowed": true, "reason": "', AnswerError),
        (HEAD % b"403 Forbidden" + b'{"Message": "', ConfigurationError),
        (HEAD % b"503 Service Unavailable" + b"{", None),
    ],
    ids=["answer", "text", "error", "outage"],
)
def test_an_answer_without_end(server: Server, new: Callable[..., Client], url: bool, start: bytes, error: Any) -> None:
    sent: list[int] = []
    server.does(endless(start, sent))
    client = new(urls={"posts-guard": server.url} if url else {})
    began = time.monotonic()
    if error is None:
        assert client.check("create_post", user_id="u1").outage is not None
    else:
        with pytest.raises(error):
            client.check("create_post", user_id="u1")
        assert len(server.received) == 1
    assert time.monotonic() - began < 15  # the whole time of the call is 20 s
    server.wait_until_closed()
    assert max(sent) < 32 << 20  # what the buffers of both sides hold


@FORMS
def test_the_longest_answer(server: Server, new: Callable[..., Client], url: bool) -> None:
    client = new(urls={"posts-guard": server.url} if url else {})
    longest = '{"allowed": true, "reason": "ok"}'.ljust(LONGEST_BODY)
    server.does(raw(longest), raw(longest + " "), answer())
    assert client.check("create_post", user_id="u1").reason == "ok"
    with pytest.raises(AnswerError, match="answered something that no guard answers"):
        client.check("create_post", user_id="u1")
    assert client.check("create_post", user_id="u1").reason == "ok"


def test_a_response_that_never_begins(
    new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, port: Callable[..., Port]
) -> None:
    def serve(connection: socket.socket) -> None:
        connection.recv(4096)
        while True:
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)

    client = client_at(new, monkeypatch, port(serve).address, False)
    with pytest.raises(ConfigurationError, match="a response without end"):
        client.check("create_post", user_id="u1")
