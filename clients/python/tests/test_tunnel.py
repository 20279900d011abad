"""HTTPS behind a proxy, which is reached by HTTP or by HTTPS itself."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from guards import ConfigurationError
from tests.conftest import HASTY, Client
from tests.server import Server, answer, hang, trickle
from tests.test_errors import certificate, secure

__all__ = ["certificate"]


class Tunnel:
    """A proxy that connects, and remembers the heads of requests."""

    def __init__(self, to: int, files: Path | None) -> None:
        self.to = to
        self.heads: list[bytes] = []
        self.context: ssl.SSLContext | None = None
        if files is not None:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(files / "cert.pem", files / "key.pem")
        self.listener = socket.create_server(("127.0.0.1", 0))
        scheme = "https" if files else "http"
        self.url = f"{scheme}://user:p%40ss@127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self.one, args=(connection,), daemon=True).start()

    def one(self, connection: Any) -> None:
        with connection, suppress(OSError):
            if self.context is None:
                self.serve(connection)
                return
            with self.context.wrap_socket(connection, server_side=True) as secured:
                self.serve(secured)

    def serve(self, connection: Any) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += connection.recv(1)
        self.heads.append(head)
        with socket.create_connection(("127.0.0.1", self.to)) as there:
            connection.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
            back = threading.Thread(target=self.copy, args=(there, connection), daemon=True)
            back.start()
            self.copy(connection, there)
            back.join()

    def copy(self, source: Any, target: Any) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        for end in (source, target):
            with suppress(OSError):
                socket.socket.shutdown(end, socket.SHUT_RDWR)


@pytest.fixture(params=["http", "https"])
def tunnel(
    request: pytest.FixtureRequest, server: Server, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Tunnel]:
    secure(server, certificate, monkeypatch)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate / "cert.pem"))
    made = Tunnel(server.server_address[1], certificate if request.param == "https" else None)
    monkeypatch.setenv("HTTPS_PROXY", made.url)
    yield made
    made.listener.close()


def test_a_guard_behind_a_proxy(server: Server, tunnel: Tunnel, new: Callable[..., Client]) -> None:
    client = new()
    for _ in range(3):
        assert client.check("create_post", user_id="u1").reason == "ok"
    (head,) = tunnel.heads  # one connection serves all calls
    address = server.url.removeprefix("https://").encode()
    assert head.startswith(b"CONNECT " + address + b" HTTP/1.1\r\nHost: " + address + b"\r\n")
    assert b"proxy-authorization: Basic dXNlcjpwQHNz\r\n" in head
    assert server.received[0].headers["Proxy-Authorization"] is None
    assert server.received[0].path == "/2015-03-31/functions/posts-guard/invocations"


def test_no_proxy(server: Server, tunnel: Tunnel, new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert new().check("create_post", user_id="u1").reason == "ok"
    assert tunnel.heads == []
    assert len(server.received) == 1


@pytest.mark.parametrize("step", [hang, trickle(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{", b" ")])
@pytest.mark.usefixtures("tunnel")
def test_an_attempt_ends_in_time(server: Server, new: Callable[..., Client], step: Any) -> None:
    server.does(step, answer())
    assert new(**HASTY).check("create_post", user_id="u1").reason == "ok"
    server.received[0].until_closed()


@pytest.mark.usefixtures("tunnel")
def test_a_long_request(server: Server, new: Callable[..., Client]) -> None:
    job = "x" * 3_000_000
    assert new().check("update_member_role", user_id="u1", job=job).reason == "ok"
    assert server.received[0].event["job"] == job


@pytest.mark.parametrize("tunnel", ["https"], indirect=True)
@pytest.mark.usefixtures("tunnel")
def test_a_proxy_with_an_unknown_certificate(new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_CA_BUNDLE")
    with pytest.raises(ConfigurationError, match="certificate verify failed"):
        new().check("create_post", user_id="u1")


def test_the_proxies_of_a_client(
    server: Server, tunnel: Tunnel, new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, certificate: Path
) -> None:
    monkeypatch.delenv("HTTPS_PROXY")
    settings = {"proxy_ca_bundle": str(certificate / "cert.pem")}
    own = boto3.client("lambda", config=Config(proxies={"https": tunnel.url}, proxies_config=settings))
    assert new(client=own).check("create_post", user_id="u1").reason == "ok"
    assert len(tunnel.heads) == 1
    assert len(server.received) == 1
    own.close()
