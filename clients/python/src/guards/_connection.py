"""Connections to guards, which a call can end at any time."""

from __future__ import annotations

import errno
import os
import select
import socket
import time
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from guards._call import SHORTEST, TICK, Call, LateError, Task, Time
from guards._moment import Moment
from guards._response import LONGEST_BODY, Reader, Response
from guards._sigv4 import Address
from guards._trust import Trust

if TYPE_CHECKING:
    from guards._proxies import Proxy

# How long a connection may be unused, in seconds. AWS's NAT gateways forget one after 350 s.
LONGEST_IDLE = 300.0

# The addresses that have answered this process by HTTP, such as https://lambda.eu-west-1.amazonaws.com.
spoke_http: set[str] = set()


# What getaddrinfo reports for a host that does not exist. EAI_AGAIN is another matter: no name server answered.
_ABSENT = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}


class NoTunnelError(Exception):
    """A proxy refused to connect."""


class NoHostError(Exception):
    """The name servers answered that a host does not exist."""

    def __init__(self, host: str) -> None:
        super().__init__(host)
        self.host = host


class Connection:
    """A connection to an address, which one call uses at a time."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock: Any = sock
        self.raw = sock  # whose end ends the connection
        self.used = Moment()

    def secure(self, trust: Trust, host: str, call: Call, time_left: Time, context: Any = None) -> None:
        """Use TLS from now on."""
        self.sock = trust.secured(self.sock, host, context)
        if isinstance(self.sock, socket.socket):  # it has taken the place of the socket below
            self.raw = self.sock
            call.hold(self.raw)
        time_left.wait(self.sock, self.sock.do_handshake)

    def exchange(self, request: bytes, time_left: Time, *, with_body: bool = True) -> Response:
        """Send a request and read the response."""
        self.sock.settimeout(TICK)
        sent = 0
        while sent < len(request):
            sent += time_left.wait(self.sock, self.sock.send, request[sent:] if sent else request)
        return Reader(lambda: time_left.wait(self.sock, self.sock.recv, LONGEST_BODY)).response(with_body=with_body)

    def is_alive(self) -> bool:
        """Report whether nothing has happened on the connection since it was used."""
        if self.used.age > LONGEST_IDLE:
            return False
        return not _is_ready(self.raw, 0, write=False)

    def close(self) -> None:
        """Close the connection."""
        with suppress(OSError):
            self.sock.close()


class Connections:
    """The connections of one process to one kind of address. Those that nobody uses at the moment are kept."""

    def __init__(
        self, most: int, trust: Trust, proxy: Callable[[Address], Proxy | None] = lambda _: None, path: str | None = None
    ) -> None:
        self._most = most  # that are kept
        self._trust = trust
        self._proxy = proxy
        self._path = path  # of a socket that is used instead of the network
        self._idle: dict[str, deque[Connection]] = {}
        weakref.finalize(self, _close_all, self._idle).atexit = False

    def exchange(
        self, address: Address, headers: dict[str, str], body: bytes, call: Call, time_left: Time, *, fresh: bool
    ) -> Response:
        """Send a POST, or a GET without a body, and return the response. With fresh, it opens a new connection."""
        proxy = self._proxy(address)
        target = address.target
        if proxy is not None and proxy.forwards(address):
            headers, target = {**headers, **proxy.headers}, address.origin + target
        request = _request(target, headers, body)
        idle = self._idle.setdefault(address.origin, deque())
        if fresh:
            _close(idle)  # the others can be dead for the same reason
        connection = _alive(idle) or self._open(address, proxy, call, time_left)
        response = None
        try:
            call.hold(connection.raw)
            response = connection.exchange(request, time_left)
        finally:
            call.let_go()
            if response is None or not response.is_complete or len(idle) >= self._most:
                connection.close()
            else:
                connection.used = Moment()
                idle.append(connection)
        spoke_http.add(address.origin)
        return response

    def close(self) -> None:
        """Close the connections that no call uses."""
        _close_all(self._idle)

    def _open(self, address: Address, proxy: Proxy | None, call: Call, time_left: Time) -> Connection:
        if self._path is not None:
            return Connection(connect_unix(self._path, call, time_left))
        first = address if proxy is None else proxy.address
        connection = Connection(connect(first, call, time_left))
        try:
            if proxy is not None:
                if first.scheme == "https":
                    connection.secure(self._trust, first.host, call, time_left, proxy.context)
                if proxy.forwards(address):
                    return connection
                _tunnel(connection, address, proxy, time_left)
            if address.scheme == "https":
                connection.secure(self._trust, address.host, call, time_left)
        except BaseException:
            call.let_go()
            connection.close()
            raise
        return connection


def connect(address: Address, call: Call, time_left: Time) -> socket.socket:
    """Open a connection to a host and let the call hold it."""
    failure: Exception = OSError(f"this machine can use no address of {address.host}")
    for family, where in _resolved(address, call, time_left):
        try:
            sock = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            if error.errno != errno.EAFNOSUPPORT:
                raise
            continue  # such as ::1 in /etc/hosts, although IPv6 is off
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # without it, a repeated use costs 40 ms
            call.hold(sock)
            sock.setblocking(False)
            number = sock.connect_ex(where)
            if number in (errno.EINPROGRESS, errno.EWOULDBLOCK, getattr(errno, "WSAEWOULDBLOCK", errno.EWOULDBLOCK)):
                time_left.wait(sock, _until_writable, sock, call, time_left)
                call.go_on()
                number = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if number:
                raise OSError(number, os.strerror(number))
            sock.settimeout(TICK)
            return sock
        except BaseException as error:
            call.let_go()
            sock.close()
            if not isinstance(error, OSError):
                raise
            if not isinstance(failure, ConnectionRefusedError):  # another one can be due to this machine, without IPv6
                failure = error
    raise failure


def connect_unix(path: str, call: Call, time_left: Time) -> socket.socket:
    """Open a connection to a socket in the file system and let the call hold it."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.settimeout(TICK)
        call.hold(sock)
        while True:
            with suppress(BlockingIOError, TimeoutError):  # the other side accepts too slowly
                sock.connect(path)
                return sock
            if time_left.left <= 0:
                raise LateError
            time.sleep(SHORTEST)
            time_left.spend(SHORTEST)
            call.go_on()
    except BaseException:
        call.let_go()
        sock.close()
        raise


def _resolved(address: Address, call: Call, time_left: Time) -> list[tuple[int, Any]]:
    for family in (socket.AF_INET, socket.AF_INET6):
        with suppress(OSError):
            socket.inet_pton(family, address.host)
            return [(family, (address.host, address.port))]
    try:
        found = call.result(Task(lambda: socket.getaddrinfo(address.host, address.port, 0, socket.SOCK_STREAM)), time_left)
    except socket.gaierror as error:
        if error.errno in _ABSENT:
            raise NoHostError(address.host) from error
        raise
    return [(family, where) for family, _, _, _, where in found]


def _until_writable(sock: socket.socket, call: Call, time_left: Time) -> None:
    call.go_on()
    if not _is_ready(sock, min(TICK, max(SHORTEST, time_left.left)), write=True):
        raise TimeoutError


def _is_ready(sock: socket.socket, seconds: float, *, write: bool) -> bool:
    """Report whether a socket can be written, or else read, within so many seconds."""
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(sock, select.POLLOUT if write else select.POLLIN)
        return bool(poll.poll(seconds * 1000))
    both = [sock]
    return any(select.select([] if write else both, both if write else [], both, seconds))  # Windows


def _tunnel(connection: Connection, address: Address, proxy: Proxy, time_left: Time) -> None:
    name = f"[{address.host}]" if ":" in address.host else address.host
    lines = [f"CONNECT {name}:{address.port} HTTP/1.1", f"Host: {name}:{address.port}"]
    lines += [f"{key}: {value}" for key, value in proxy.headers.items()]
    reply = connection.exchange("\r\n".join([*lines, "", ""]).encode("latin-1"), time_left, with_body=False)
    if not 200 <= reply.status_code < 300:
        raise NoTunnelError(f"Tunnel connection failed: {reply.status_code} {reply.reason}".rstrip())


def _request(target: str, headers: dict[str, str], body: bytes) -> bytes:
    lines = [f"{'POST' if body else 'GET'} {target} HTTP/1.1"]
    for name, value in headers.items():
        if "\n" in value or "\r" in value:
            raise ValueError(f"the header {name} has a line break")
        lines.append(f"{name}: {value}")
    return "\r\n".join([*lines, f"content-length: {len(body)}", "", ""]).encode("latin-1") + body


def _alive(idle: deque[Connection]) -> Connection | None:
    while idle:
        with suppress(IndexError):  # another thread was faster
            connection = idle.pop()
            if connection.is_alive():
                return connection
            connection.close()
    return None


def _close(idle: deque[Connection]) -> None:
    with suppress(IndexError):
        while True:
            idle.pop().close()


def _close_all(idle: dict[str, deque[Connection]]) -> None:
    for connections in list(idle.values()):
        _close(connections)
