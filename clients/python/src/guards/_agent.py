"""Asking an agent: a program beside the app that decides itself. It needs no AWS SDK, no region and no credentials."""

from __future__ import annotations

import os
import random
from urllib.parse import quote

from guards._answer import json_of, read_url
from guards._call import Call, Time
from guards._connection import Connections, NoHostError
from guards._decision import Decision
from guards._errors import ConfigurationError, GuardsError, Lost, NoThread, ValidationError
from guards._moment import Moment
from guards._options import Agent
from guards._process import Own
from guards._request import Request
from guards._response import Response
from guards._sigv4 import Address
from guards._trust import Trust
from guards._way import USER_AGENT, Signed, Way, is_no_http, traced

# The agents that have answered this process. Before that, an agent that does not answer is a mistake.
answered: set[str] = set()

_ABSENT_FOR = 1.0  # seconds for which calls fail at once after a call without an answer
_REFUSED = 0.1  # seconds between two attempts while nobody listens


class ByAgent(Way):
    """Asks the agent at an address. No proxy is used."""

    def __init__(self, agent: Agent, connections: int) -> None:
        super().__init__()
        self._agent = agent
        self._absent: tuple[str, Moment] | None = None  # the message, and since when it holds
        self._addresses: dict[str, Address] = {}
        bundle = os.environ.get("AWS_CA_BUNDLE") or os.environ.get("REQUESTS_CA_BUNDLE") or None
        trust = Trust(lambda: bundle)
        self.connections = Own(lambda: Connections(connections, trust, path=agent.socket))

    def name(self, request: Request) -> str:  # noqa: ARG002
        """Return the way of a request."""
        return "agent"

    def look(self, request: Request) -> None:
        """Raise the error of a call that had no answer a moment ago, unless another call had one since."""
        if self._absent is not None and self._agent.name not in answered and self._absent[1].age < _ABSENT_FOR:
            raise ConfigurationError(self._absent[0], request.function)

    def sign(self, request: Request, call: Call) -> Signed:  # noqa: ARG002
        """Return the request with the token."""
        path = "health" if request.event["op"] == "health" else quote(request.guard, safe="")
        address = self._addresses.get(path)
        if address is None:
            address = self._addresses[path] = Address(f"{self._agent.url}/{path}")
        headers = {"host": address.authority, "content-type": "application/json", "guards-token": self._agent.token or "local"}
        headers["user-agent"] = USER_AGENT
        return Signed(address, headers | traced())

    def pause(self, lost: Lost, call: Call) -> float | None:
        """Return how long to wait before a further attempt. An agent that has never answered may be about to start."""
        if not lost.refused or self._agent.name in answered:
            return super().pause(lost, call)
        if call.plan.remaining <= 0:
            return None
        pause = min(call.plan.remaining, random.uniform(_REFUSED / 2, _REFUSED))
        call.plan.spend(pause)
        return pause

    def failed(self, request: Request, last: Lost) -> GuardsError:
        """Return the error of a call, given the end of its last attempt."""
        if last.answered or isinstance(last, NoThread) or self._agent.name in answered:
            return super().failed(request, last)
        message = f"No agent answers at {self._agent.name}: {last}. Start it, or correct this address."
        self._absent = (message, Moment())
        return ConfigurationError(message, request.function)

    def meaning(self, error: Exception, request: Request, address: Address, time_left: Time) -> Exception:
        """Return what an error of a connection means."""
        if isinstance(error, NoHostError):
            return ConfigurationError(f"There is no host {error.host}. Check the address of the agent.", request.function)
        if is_no_http(error):
            return self._other_program(request) if self._agent.name not in answered else Lost(request.without_ids(error))
        if isinstance(error, ConnectionRefusedError | FileNotFoundError):
            return Lost(request.without_ids(error.strerror or error), refused=True)
        return super().meaning(error, request, address, time_left)

    def read(self, response: Response, request: Request) -> Decision:
        """Return the decision of a response."""
        if "guards-agent" not in response.headers:
            raise self._other_program(request)
        answered.add(self._agent.name)
        is_health = request.event["op"] == "health"
        if is_health and response.status_code == 200:
            return request.decision(allowed=True, reason="")
        if response.status_code in (200, 400, 429, 503) and not is_health:
            return read_url(response, request, "")
        detail = request.without_ids(json_of(response.content).get("detail") or f"HTTP {response.status_code}")
        if response.status_code == 413:
            raise ValidationError(detail, request.function)
        raise ConfigurationError(f"The agent at {self._agent.name} could not decide: {detail}", request.function)

    def _other_program(self, request: Request) -> ConfigurationError:
        message = f"Another program than the agent answers at {self._agent.name}. Check this address."
        return ConfigurationError(message, request.function)
