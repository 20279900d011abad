"""What it means that a request got no answer."""

from __future__ import annotations

import errno
import socket
import sys
from typing import TYPE_CHECKING, Any

from guards._call import LateError, Time
from guards._connection import NoHostError, NoTunnelError, spoke_http
from guards._errors import ConfigurationError, GuardsError, Lost
from guards._foreign import foreign
from guards._response import BrokenError, NoHTTPError

if TYPE_CHECKING:
    from guards._request import Request
    from guards._sigv4 import Address


def meaning(error: Exception, request: Request, address: Address, time_left: Time, region: str = "") -> Exception:
    """Return what an error of a connection means: an outage, or a mistake that lets nobody through.

    Only what is known to pass by itself is an outage.
    """
    function = request.function
    if isinstance(error, GuardsError | Lost):
        return error
    if isinstance(error, LateError):
        return Lost(f"no answer in {round(time_left.seconds * 1000)} ms")
    if isinstance(error, NoHostError):
        check = "the proxy"
        if error.host == address.host:
            check = f"the region {region}" if request.url is None else f"the URL of {function}"
        return ConfigurationError(f"There is no host {error.host}. Check {check}.", function)
    why = foreign(error, request)
    if is_no_http(error):
        why = f"no HTTP server answers at {address.origin}: {why}"
        if address.origin in spoke_http:
            return Lost(why)
        return ConfigurationError(f"{function} could not be invoked: {why}. Check this address and the proxy.", function)
    if isinstance(error, BrokenError):
        return Lost(why)
    if passes(error):
        return Lost(f"Could not connect to {address.origin}: {why}")
    return ConfigurationError(f"{function} could not be invoked: {why}", function)


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


def is_no_http(error: Exception) -> bool:
    """Report whether something else than HTTP or TLS came, or a proxy refused to connect."""
    return isinstance(error, NoHTTPError | NoTunnelError) or (_is_tls(error) and error.reason in _NO_TLS)  # type: ignore[attr-defined]


def passes(error: Exception) -> bool:
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
