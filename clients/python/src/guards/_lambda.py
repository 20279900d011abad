"""Asking guards by Lambda's Invoke and by their Function URLs, signed and sent without the AWS SDK."""

from __future__ import annotations

import os
import re
import time
from typing import Any
from urllib.parse import quote

from guards import _credentials, _proxies
from guards._call import Call, GivenUp, Shared, Time
from guards._connection import Connections
from guards._credentials import Source
from guards._decision import date_of
from guards._errors import ConfigurationError, GuardsError, Lost
from guards._process import Own
from guards._request import Request
from guards._response import Response
from guards._settings import Found, Settings
from guards._sigv4 import Address, Signer
from guards._trust import Trust
from guards._way import USER_AGENT, Signed, Way, traced

# A Function URL with a region in its name may be in another region than the app.
URL_HOST = re.compile(r"\.lambda-url\.([a-z0-9-]+)\.on\.aws$")

# A clock that is wrong by more than so many seconds makes AWS refuse a signature.
_WRONG_CLOCK = 300

_SIGNED = {"content-type": "application/json"}


class Lean(Way):
    """Asks Lambda with the settings of options and variables. What is in neither is left to botocore."""

    def __init__(self, credentials: Any, region: str | None, endpoint: str | None, connections: int) -> None:
        super().__init__()
        self._settings = Settings(region, endpoint)
        self._source = self._source_of(credentials)
        self._signer = Signer()
        app = re.sub(r"[^\w!#$%&'*+.^`|~-]", "-", os.environ.get("AWS_SDK_UA_APP_ID", ""), flags=re.ASCII)
        self._user_agent = f"{USER_AGENT} app/{app}" if app else USER_AGENT
        self._offset = 0.0  # of AWS's clock, in seconds
        self._found: Found | None = None
        self._settling = Shared(self._settings.find, counts=False)  # botocore loads slowly, which is no time of the guard
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
        headers["user-agent"] = self._user_agent
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
        found = None if self._settings.has_default else _credentials.of_environment()
        return found or Source(self._settings.credentials)

    def _wait(self, request: Request, call: Call) -> Found:
        try:
            found = self._settings.find() if self._settings.are_lean else self._settling.result(call, Time(call.plan.remaining))
        except (GivenUp, Lost):
            raise
        except GuardsError as error:
            raise ConfigurationError(str(error), request.function) from error
        except Exception as error:
            raise request.not_invoked(request.without_ids(error)) from error
        self.region, self._found = found.region, found
        return found

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
