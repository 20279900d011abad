"""A local server with Lambda's Invoke API and Function URLs, which does what a test tells it."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Step = Callable[["Handler"], None]


class Received:
    """A request that arrived."""

    def __init__(self, handler: Handler) -> None:
        self.path = handler.path
        self.headers = handler.headers
        self.body = handler.rfile.read(int(handler.headers["Content-Length"] or 0))
        is_json = self.body.startswith(b"{")
        self.event: dict[str, Any] = json.loads(self.body) if is_json else {}
        self.at = time.monotonic()
        self.closed_at: float | None = None  # when a hanging request's client closed the connection

    def until_closed(self) -> float:
        """Wait until the client has closed the connection, and return how long after the request that was, in seconds."""
        end = time.monotonic() + 20
        while self.closed_at is None:
            assert time.monotonic() < end, "a request was left running"
            time.sleep(0.01)
        return self.closed_at - self.at


class Server(ThreadingHTTPServer):
    """Does the steps one after the other, and then the last one for all further requests."""

    daemon_threads = True
    request_queue_size = 200

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.steps: list[Step] = [answer()]
        self.received: list[Received] = []
        self.lock = threading.Lock()
        self.scheme = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}"

    def does(self, *steps: Step) -> None:
        self.steps = list(steps)

    def wait_until_closed(self) -> None:
        """Wait until the clients have closed the connections of all requests that hang or trickle."""
        for received in self.received:
            received.until_closed()

    def next_step(self, received: Received) -> Step:
        with self.lock:
            self.received.append(received)
            return self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients close connections on purpose."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server
    received: Received

    def do_POST(self) -> None:
        self.received = Received(self)
        self.server.next_step(self.received)(self)

    def reply(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


def answer(**fields: Any) -> Step:
    """Answer as a guard does. By default the request is allowed and counted."""

    def step(handler: Handler) -> None:
        asked = handler.received.event
        body: dict[str, Any] = {"allowed": True, "reason": "ok"}
        body |= {name: asked[name] for name in ("userId", "activity", "op")}
        body |= {"limit": 10, "activityCount": 1, "remaining": 9, "waitTime": 0, "resetAt": 60_000 + round(time.time() * 1000)}
        if asked["op"] == "check":
            body |= {"granted": asked.get("count", 1), "at": 1_700_000_000_000, "requestId": asked.get("requestId", "made")}
        body |= fields
        kept = {name: value for name, value in body.items() if value is not None}
        handler.reply(200, json.dumps(kept).encode(), {"Content-Type": "application/json"})

    return step


def refuse(**fields: Any) -> Step:
    """Answer that the user is over the limit."""
    figures = {"activityCount": 10, "remaining": 0, "waitTime": 1500, "granted": 0, "at": None, "requestId": None}
    return answer(**{"allowed": False, "reason": "limited", "message": "Too many.", **figures, **fields})


def raw(body: str | bytes, status: int = 200, **headers: str) -> Step:
    """Answer with any body."""
    payload = body.encode() if isinstance(body, str) else body
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler: handler.reply(status, payload, named)


def function_error(kind: str, message: str = "") -> Step:
    return raw(json.dumps({"errorType": kind, "errorMessage": message}), x_amz_function_error="Unhandled")


def lambda_error(status: int, code: str, message: str = "No.") -> Step:
    return raw(json.dumps({"Type": "User", "Message": message}), status, x_amzn_errortype=code)


def problem(status: int, kind: str, detail: str) -> Step:
    body = {"title": "x", "status": status, "detail": detail, "errorType": kind}
    return raw(json.dumps(body), status, content_type="application/problem+json")


def hang(handler: Handler) -> None:
    """Do not answer until the client closes the connection."""
    handler.connection.settimeout(60)
    try:
        handler.connection.recv(1)
        handler.received.closed_at = time.monotonic()
    except TimeoutError:
        pass
    handler.close_connection = True


def after(seconds: float, step: Step) -> Step:
    def late(handler: Handler) -> None:
        time.sleep(seconds)
        step(handler)

    return late


def trickle(start: bytes, more: bytes) -> Step:
    """Send a start, and then more again and again, until the client closes the connection."""

    def step(handler: Handler) -> None:
        try:
            handler.wfile.write(start)
            for _ in range(6000):
                handler.wfile.write(more)
                time.sleep(0.01)
        except OSError:
            handler.received.closed_at = time.monotonic()
        handler.close_connection = True

    return step


def cut(handler: Handler) -> None:
    """Send half an answer and close the connection."""
    handler.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"allowed": true')
    handler.close_connection = True


def close(handler: Handler) -> None:
    """Close the connection without an answer."""
    handler.close_connection = True


def reset(handler: Handler) -> None:
    """Reset the connection."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True
