"""Asking guards by Lambda's Invoke and by their Function URLs, without the AWS SDK."""

from __future__ import annotations

import os
import re
import time
from typing import Any
from urllib.parse import quote

from guards import _credentials, _proxies
from guards._answer import read_invoke, read_url
from guards._breaker import Finding
from guards._call import Call, GivenUp, Shared, Time
from guards._connection import Connections
from guards._credentials import Source
from guards._decision import Decision, date_of
from guards._errors import ConfigurationError, GuardsError, Lost, NoThread, OutageError
from guards._failure import meaning
from guards._foreign import foreign
from guards._process import Own
from guards._request import Request
from guards._response import Response
from guards._settings import Found, Settings
from guards._sigv4 import Address, Signer
from guards._trust import Trust

USER_AGENT = "cric-talk-guards-python"

# A Function URL with a region in its name may be in another region than the app.
URL_HOST = re.compile(r"\.lambda-url\.([a-z0-9-]+)\.on\.aws$")

# A clock that is wrong by more than so many seconds makes AWS refuse a signature.
_WRONG_CLOCK = 300

_SIGNED = {"content-type": "application/json"}


class Signed:
    """A request that can be sent."""

    def __init__(self, address: Address, headers: dict[str, str]) -> None:
        self.address = address
        self.headers = headers


class Lambda:
    """What all ways to ask Lambda have in common."""

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
            message = f"{request.function} could not be invoked: no thread is left for the request: {last}"
            return ConfigurationError(message, request.function)
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
        """Return what an error of a connection means."""
        return meaning(error, request, address, time_left, self.region)

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


class Lean(Lambda):
    """Asks Lambda with the settings of options and variables. What is in neither is left to botocore."""

    def __init__(self, credentials: Any, region: str | None, endpoint: str | None, connections: int) -> None:
        super().__init__()
        self._settings = Settings(region, endpoint)
        self._source = self._source_of(credentials)
        self._signer = Signer()
        self._offset = 0.0  # of AWS's clock, in seconds
        self._found: Found | None = None
        self._finding = Shared(self._find, counts=False)  # it takes botocore a while to load, which is no time of the guard
        self._addresses: dict[str, tuple[Address, str]] = {}
        proxy = _proxies.of_environment()
        trust = Trust(lambda: self._found.ca_bundle if self._found else None)
        self.connections = Own(lambda: Connections(connections, trust, proxy))

    def sign(self, request: Request, call: Call) -> Signed:
        """Return the request with its signature."""
        found = self._found or self._wait(request, call)
        address, region = self._address(request, found)
        time_left = Time(call.plan.remaining)
        try:
            credentials = self._source.get(call, time_left, request.function)
        finally:
            call.plan.spend(time_left.seconds - time_left.left)
        now = time.time() + self._offset
        headers = self._signer.sign(address, _SIGNED, request.payload, credentials, region, now)
        headers["user-agent"] = USER_AGENT
        headers.update(traced())
        return Signed(address, headers)

    def corrects_clock(self, response: Response) -> bool:
        """Take the time of AWS from its response, if this machine's clock is wrong."""
        date = date_of(response.headers.get("date"))
        if date is None:
            return False
        offset = date / 1000 - time.time()
        if abs(offset - self._offset) <= _WRONG_CLOCK:
            return False
        self._offset = offset
        return True

    def _source_of(self, credentials: Any) -> Source:
        if credentials is not None:
            return _credentials.of_option(credentials)
        found = None if self._settings.sdk.has_default else _credentials.of_environment()
        return found or Source(self._settings.credentials)

    def _wait(self, request: Request, call: Call) -> Found:
        try:
            self._found = self._find() if self._settings.are_lean else self._finding.result(call, Time(call.plan.remaining))
        except (GivenUp, Lost):
            raise
        except Exception as error:
            shown = str(error)
            if not isinstance(error, GuardsError):
                shown = f"{request.function} could not be invoked: {foreign(error, request)}"
            raise ConfigurationError(shown, request.function) from error
        self.region = self._found.region
        return self._found

    def _find(self) -> Found:
        return self._settings.find()

    def _address(self, request: Request, found: Found) -> tuple[Address, str]:
        """Return where a request goes, and the region of its signature."""
        key = request.url or request.function
        known = self._addresses.get(key)
        if known is None:
            if request.url is None:
                name = quote(request.function, safe="-_.~")
                known = Address(f"{found.endpoint.rstrip('/')}/2015-03-31/functions/{name}/invocations"), found.region
            else:
                address = Address(request.url)
                match = URL_HOST.search(address.host)
                known = address, match[1] if match else found.region
            self._addresses[key] = known
        return known


def traced() -> dict[str, str]:
    """Return the header with which Lambda and X-Ray follow a request, in a function on Lambda."""
    trace = os.environ.get("_X_AMZN_TRACE_ID")
    if not trace or "AWS_LAMBDA_FUNCTION_NAME" not in os.environ:
        return {}
    return {"x-amzn-trace-id": quote(trace, safe="-=;:+&[]{}\"',")}
