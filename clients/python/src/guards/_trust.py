"""TLS, and the certificates that it trusts."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from guards._call import TICK

if TYPE_CHECKING:
    import ssl


class Trust:
    """Makes connections secure. The module ssl takes 10 ms to load, so this happens with the first one."""

    def __init__(self, bundle: Callable[[], str | None], client_cert: str | tuple[str, str] | None = None) -> None:
        self._bundle = bundle  # returns a file, or a folder; None: the usual certificates
        self._client_cert = client_cert
        self._context: ssl.SSLContext | None = None  # that the connections have in common

    def secured(self, sock: Any, host: str, context: ssl.SSLContext | None = None) -> Any:
        """Return the socket with TLS, whose handshake comes next. A context is used instead of the usual one."""
        import ssl

        if context is None:
            if self._context is None:
                self._context = new_context(self._bundle(), self._client_cert)
            context = self._context
        if isinstance(sock, ssl.SSLSocket | Tls):  # TLS to a proxy, and within it to the guard
            return Tls(sock, context, host)
        made = context.wrap_socket(sock, server_hostname=host, do_handshake_on_connect=False)
        made.settimeout(TICK)
        return made


def new_context(bundle: str | None, client_cert: str | tuple[str, str] | None) -> ssl.SSLContext:
    """Return a context that trusts a bundle; without one, what this machine trusts."""
    import ssl

    if bundle:
        is_folder = os.path.isdir(bundle)
        try:
            context = ssl.create_default_context(cafile=None if is_folder else bundle, capath=bundle if is_folder else None)
        except OSError as error:
            raise ValueError(f"the certificates of {bundle} can't be read: {error}") from error
    else:
        context = ssl.create_default_context()
        paths = ssl.get_default_verify_paths()
        if not context.get_ca_certs() and not (paths.capath and os.listdir(paths.capath)):
            context.load_verify_locations(_packaged())
    if client_cert:
        context.load_cert_chain(*([client_cert] if isinstance(client_cert, str) else client_cert))
    return context


def _packaged() -> str:
    """Return the certificates of a package, for a machine that has none, such as a container without ca-certificates."""
    try:
        import certifi
    except ImportError:
        import botocore.httpsession

        return str(botocore.httpsession.DEFAULT_CA_BUNDLE)
    return str(certifi.where())


class Tls:
    """TLS over a socket that has TLS itself, which ssl.SSLSocket can't do."""

    def __init__(self, sock: Any, context: ssl.SSLContext, host: str) -> None:
        import ssl

        self._sock = sock
        self._wants_read = ssl.SSLWantReadError
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._unsent = b""

    def do_handshake(self) -> None:
        self._run(self._tls.do_handshake)

    def send(self, data: bytes) -> int:
        """Encrypt and send. After a TimeoutError, the same data must be sent again."""
        if not self._unsent:
            self._tls.write(data)
        self._flush()
        return len(data)

    def recv(self, size: int) -> bytes:
        received: bytes = self._run(self._tls.read, size)
        return received

    def settimeout(self, seconds: float) -> None:
        self._sock.settimeout(seconds)

    def close(self) -> None:
        self._sock.close()

    def _run(self, operation: Any, *args: Any) -> Any:
        while True:
            self._flush()
            try:
                result = operation(*args)
            except self._wants_read:
                self._flush()
                if more := self._sock.recv(16384):
                    self._incoming.write(more)
                else:
                    self._incoming.write_eof()
            else:
                self._flush()
                return result

    def _flush(self) -> None:
        self._unsent += self._outgoing.read()
        while self._unsent:
            self._unsent = self._unsent[self._sock.send(self._unsent) :]
