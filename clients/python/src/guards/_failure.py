"""What it means that a request got no answer."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Iterator
from http.client import HTTPException, IncompleteRead, RemoteDisconnected
from urllib.parse import urlsplit

from botocore.exceptions import (
    BotoCoreError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    NoRegionError,
    PartialCredentialsError,
    ProxyConnectionError,
    ReadTimeoutError,
)

from guards._credentials import no_credentials
from guards._errors import ConfigurationError, Lost
from guards._foreign import foreign
from guards._request import Request
from guards._session import address, spoke_http

_NO_REGION = "No AWS region is set. Set AWS_DEFAULT_REGION, or pass a Lambda client that has one."


def meaning(error: Exception, request: Request, region: str = "", url: str | None = None) -> Exception:
    """Return what an error of botocore means: an outage, or a mistake that lets nobody through.

    The URL is where the request was sent; None if it was not sent. Only what is
    known to pass by itself is an outage.
    """
    function = request.function
    if isinstance(error, NoRegionError):
        return ConfigurationError(_NO_REGION, function)
    if isinstance(error, CredentialRetrievalError | PartialCredentialsError):
        return no_credentials(function, error)
    causes = list(_causes(getattr(error, "kwargs", {}).get("error")))
    if isinstance(error, EndpointConnectionError | ProxyConnectionError) and any(map(_is_absent_host, causes)):
        return _no_host(error, request, region)
    why = foreign(error, request)
    if url is not None and (no_http := next(filter(_is_no_http, causes), None)) is not None:
        why = f"no HTTP server answers at {address(url)}: {foreign(no_http, request)}"
        if address(url) in spoke_http:
            return Lost(why)
        return ConfigurationError(f"{function} could not be invoked: {why}. Check this address and the proxy.", function)
    if url is not None and (isinstance(error, ReadTimeoutError | ConnectTimeoutError) or any(map(_passes, causes))):
        return Lost(why)
    return ConfigurationError(f"{function} could not be invoked: {why}", function)


# What getaddrinfo reports for a host that does not exist. EAI_AGAIN is another matter: no name server answered.
_ABSENT = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}

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


def _is_absent_host(error: BaseException) -> bool:
    """Report whether the name servers answered that the host does not exist."""
    return isinstance(error, socket.gaierror) and error.errno in _ABSENT


def _is_no_http(error: BaseException) -> bool:
    """Report whether something else than HTTP or TLS came, or a proxy refused to connect."""
    if isinstance(error, ssl.SSLError):
        return error.reason in _NO_TLS
    if isinstance(error, HTTPException):
        return not isinstance(error, IncompleteRead | RemoteDisconnected)
    return type(error) is OSError and str(error).startswith("Tunnel connection failed")  # of http.client


def _is_broken_tls(error: BaseException) -> bool:
    return isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError)


def _passes(error: BaseException) -> bool:
    """Report whether a connection broke, was refused or found no way. Other errors are mistakes, such as a missing CA bundle."""
    if isinstance(error, socket.gaierror):
        return error.errno in (socket.EAI_AGAIN, socket.EAI_FAIL)
    if isinstance(error, ConnectionError | TimeoutError | IncompleteRead):
        return True
    return _is_broken_tls(error) or (isinstance(error, OSError) and error.errno in _UNREACHABLE)


def _no_host(error: BotoCoreError, request: Request, region: str) -> ConfigurationError:
    """Return the error for a host that does not exist. It is usually a misspelt region, so it must let nobody through."""
    if isinstance(error, ProxyConnectionError):
        host, check = urlsplit(error.kwargs["proxy_url"]).hostname, "the proxy"
    else:
        host, check = urlsplit(error.kwargs["endpoint_url"]).hostname, f"the region {region}"
    if request.url is not None and urlsplit(request.url).hostname == host:
        check = f"the URL of {request.function}"
    return ConfigurationError(f"There is no host {host}. Check {check}.", request.function)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and the errors behind it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__ or next((a for a in error.args if isinstance(a, BaseException)), None)
