"""One attempt to ask a guard, whichever way it takes."""

from __future__ import annotations

import errno
import os
import socket
import sys
from typing import Any, NamedTuple
from urllib.parse import quote

from guards._answer import read_invoke, read_url
from guards._breaker import Finding
from guards._call import Call, GivenUp, LateError, Time
from guards._connection import Connections, NoHostError, NoTunnelError, spoke_http
from guards._decision import Decision
from guards._errors import ConfigurationError, GuardsError, Lost, NoThread, OutageError
from guards._process import Own
from guards._request import Request
from guards._response import BrokenError, NoHTTPError, Response
from guards._sigv4 import Address

USER_AGENT = "cric-talk-guards-python"

# What OpenSSL reports about bytes that are no TLS. A wrong certificate is another matter.
_NO_TLS = {
    "BAD_PACKET_LENGTH",
    "BAD_RECORD_TYPE",
    "HTTP_REQUEST",
    "PACKET_LENGTH_TOO_LONG",
    "RECORD_LAYER_FAILURE",
    "UNEXPECTED_MESSAGE",
    "UNKNOWN_PROTOCOL",
    "WRONG_VERSION_NUMBER",
}

# What the system reports if a network or a host can't be reached, or if this machine has no port or file left for it.
_UNREACHABLE = {errno.ENETDOWN, errno.ENETUNREACH, errno.ENETRESET, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ETIMEDOUT}
_UNREACHABLE |= {errno.EADDRNOTAVAIL, errno.EMFILE, errno.ENFILE, errno.ENOBUFS}


class Signed(NamedTuple):
    """A request that can be sent."""

    address: Address
    headers: dict[str, str]


class Way:
    """A way to ask guards: what all ways have in common."""

    def __init__(self) -> None:
        self.region = ""
        self.reached = False  # whether anything has ever answered
        self.connections: Own[Connections]

    def name(self, request: Request) -> str:
        """Return the way of a request."""
        return "invoke" if request.url is None else "url"

    def look(self, request: Request) -> None:
        """Raise an error if no call can be made at the moment."""

    def pause(self, lost: Lost, call: Call) -> float | None:
        """Return how long to wait before a further attempt, or None if no attempt can follow."""
        return call.plan.pause() if lost.again else None

    def failed(self, request: Request, last: Lost) -> GuardsError:
        """Return the error of a call, given the end of its last attempt."""
        if isinstance(last, NoThread):
            return request.not_invoked(f"no thread is left for the request: {last}")
        return OutageError(f"{request.function} did not answer: {last}", request.function, answered=last.answered)

    def attempt(self, request: Request, call: Call, finding: Finding) -> Decision:
        """Ask once."""
        signed = self.sign(request, call)
        time_left = Time(call.plan.time())
        try:
            response = self._send(signed, request, call, time_left)
            if response.status_code == 403 and self.corrects_clock(response):
                response = self._send(self.sign(request, call), request, call, time_left)
        except GivenUp:
            raise
        except Exception as error:
            call.go_on()  # a call that was given up breaks its connection
            raise self.meaning(error, request, signed.address, time_left) from error
        finally:
            call.plan.spend(time_left.seconds - time_left.left)
        finding.has_response = self.reached = True
        return self.read(response, request)

    def meaning(self, error: Exception, request: Request, address: Address, time_left: Time) -> Exception:
        """Return what an error of a connection means: an outage, or a mistake that lets nobody through.

        Only what is known to pass by itself is an outage.
        """
        if isinstance(error, GuardsError | Lost):
            return error
        if isinstance(error, LateError):
            return Lost(f"no answer in {round(time_left.seconds * 1000)} ms")
        if isinstance(error, NoHostError):
            check = "the proxy"
            if error.host == address.host:
                check = f"the region {self.region}" if request.url is None else f"the URL of {request.function}"
            return ConfigurationError(f"There is no host {error.host}. Check {check}.", request.function)
        why = request.without_ids(error)
        if is_no_http(error):
            why = f"no HTTP server answers at {address.origin}: {why}"
            if address.origin in spoke_http:
                return Lost(why)
            return request.not_invoked(f"{why}. Check this address and the proxy.")
        if isinstance(error, BrokenError):
            return Lost(why)
        if _passes(error):
            return Lost(f"Could not connect to {address.origin}: {why}")
        return request.not_invoked(why)

    def read(self, response: Response, request: Request) -> Decision:
        """Return the decision of a response."""
        return (read_invoke if request.url is None else read_url)(response, request, self.region)

    def sign(self, request: Request, call: Call) -> Signed:
        """Return the request with its signature."""
        raise NotImplementedError

    def corrects_clock(self, response: Response) -> bool:  # noqa: ARG002
        """Report whether a request was refused because of this machine's clock, and can be signed again."""
        return False

    def close(self) -> None:
        """Close the connections that no call uses."""
        self.connections.get().close()

    def _send(self, signed: Signed, request: Request, call: Call, time_left: Time) -> Response:
        # If the last connection gave no answer, the others can be dead for the same reason.
        fresh, call.has_lost = call.has_lost, True
        response = self.connections.get().exchange(signed.address, signed.headers, request.payload, call, time_left, fresh=fresh)
        call.has_lost = False
        return response


def traced() -> dict[str, str]:
    """Return the header with which Lambda and X-Ray follow a request, in a function on Lambda."""
    trace = os.environ.get("_X_AMZN_TRACE_ID")
    if not trace or "AWS_LAMBDA_FUNCTION_NAME" not in os.environ:
        return {}
    return {"x-amzn-trace-id": quote(trace, safe="-=;:+&[]{}\"',")}


def is_no_http(error: Exception) -> bool:
    """Report whether something else than HTTP or TLS came, or a proxy refused to connect."""
    return isinstance(error, NoHTTPError | NoTunnelError) or (_is_tls(error) and error.reason in _NO_TLS)  # type: ignore[attr-defined]


def _passes(error: Exception) -> bool:
    """Report whether a connection broke, was refused or found no way. Other errors are mistakes, such as a missing CA bundle."""
    if isinstance(error, socket.gaierror):
        return error.errno in (socket.EAI_AGAIN, socket.EAI_FAIL)
    if isinstance(error, ConnectionError | TimeoutError):
        return True
    if _is_tls(error):
        return type(error).__name__ in ("SSLEOFError", "SSLZeroReturnError")
    return isinstance(error, OSError) and error.errno in _UNREACHABLE


def _is_tls(error: Exception) -> bool:
    ssl: Any = sys.modules.get("ssl")  # if nobody has loaded it, it has raised nothing
    return ssl is not None and isinstance(error, ssl.SSLError)
