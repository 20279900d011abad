"""The options of a client."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from guards._errors import ConfigurationError

# The time of an attempt in addition to the guard's own decision, in seconds.
NETWORK = 0.3

# The longest timeout of a socket is 2^31 milliseconds. This is a little less, in seconds.
LONGEST = 2_147_483

_REGION = re.compile("[a-z0-9][a-z0-9-]*")

_TOKEN = re.compile("[!-~]+")

LIST = "the list that guards generate writes (activities/activities.py)"


class Entry(NamedTuple):
    """What the list has about an activity."""

    guard: str
    window: int | None = None
    """Of its limit in seconds, if it has a single one."""
    subjects: tuple[str, ...] = ()
    """The names of the others in whose limits it counts. One with a question mark at its end is optional."""
    hold: bool = False
    """Whether what was counted can be given back for 15 minutes, and not only for 20 s."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Options that were checked. Times are in seconds."""

    activities: Mapping[str, Entry] = field(default_factory=dict)  # empty: the client has no list
    urls: Mapping[str, str] = field(default_factory=dict)
    prefix: str
    agent: Agent | None = None  # instead of Lambda
    on_outage: str
    timeout: float
    max_tries: int
    decision_timeout: float
    region: str | None = None
    endpoint: str | None = None
    connections: int = 50

    @property
    def attempt(self) -> float:
        """How long an attempt lasts if another one can follow."""
        return self.decision_timeout + NETWORK

    def __post_init__(self) -> None:
        if self.on_outage not in ("allow", "deny"):
            raise _wrong("on_outage", self.on_outage, '"allow" or "deny"')
        if not isinstance(self.prefix, str):
            raise _wrong("prefix", self.prefix, "a string")
        if not _is_number(self.decision_timeout) or not 0 < self.decision_timeout <= LONGEST:
            raise _wrong("decision_timeout", self.decision_timeout, f"above 0 and at most {LONGEST} seconds")
        # Rounded, because 1.1 + 0.3 is above 1.4.
        if not _is_number(self.timeout) or not round(self.attempt, 6) <= self.timeout <= LONGEST:
            least = f"at least {self.attempt:g} seconds: decision_timeout and {NETWORK} more"
            raise _wrong("timeout", self.timeout, f"{least}. At most {LONGEST} seconds")
        for name in ("max_tries", "connections"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise _wrong(name, value, "a whole number of at least 1")
        self._check_addresses()

    def _check_addresses(self) -> None:
        if self.region is not None and not (isinstance(self.region, str) and _REGION.fullmatch(self.region)):
            raise _wrong("region", self.region, "a region of AWS, such as eu-west-1")
        if self.endpoint is not None and not is_url(self.endpoint):
            raise _wrong("endpoint", self.endpoint, "a URL that begins with https://")
        guards = {entry.guard for entry in self.activities.values()}
        for guard, url in self.urls.items():
            if not isinstance(guard, str):
                raise ConfigurationError(f"The option urls has {guard!r}, want the name of a guard.")
            if guards and guard not in guards:
                raise _unknown_guard(guard, guards)
            if not is_url(url):
                raise _wrong(f"urls[{guard!r}]", url, "a URL that begins with https://")


class Agent(NamedTuple):
    """Where an agent listens."""

    url: str  # without a path; of a socket, http://localhost
    socket: str | None  # its path
    token: str | None
    by_option: bool  # and not by the variable, which is stronger than the options for Lambda

    @property
    def name(self) -> str:
        """The address, for messages."""
        return f"unix:{self.socket}" if self.socket is not None else self.url

    @property
    def is_exposed(self) -> bool:
        """Whether the token would go over the network as it is."""
        host = urlsplit(self.url).hostname or ""
        is_near = self.socket is not None or host in ("localhost", "::1") or host.startswith("127.")
        return self.token is not None and not is_near and self.url.startswith("http:")


def agent_of(option: Any, token: Any) -> Agent | None:
    """Return the agent of an option, or else of GUARDS_AGENT. None: Lambda is asked."""
    value = os.environ.get("GUARDS_AGENT") or None if option is None else option
    if value is None:
        if token is not None:
            raise ConfigurationError("The option token is for an agent, and there is none: set the option agent or GUARDS_AGENT.")
        return None
    name = "variable GUARDS_AGENT" if option is None else "option agent"
    if token is None:
        token = os.environ.get("GUARDS_AGENT_TOKEN") or None
    if token is not None and not (isinstance(token, str) and _TOKEN.fullmatch(token)):
        raise ConfigurationError("The token of the agent has another form, want printable ASCII without spaces.")
    if isinstance(value, str) and value.startswith("unix:/"):
        return Agent("http://localhost", value.removeprefix("unix:"), token, option is not None)
    if not is_url(value) or urlsplit(value).path not in ("", "/") or any(urlsplit(value)[3:]) or "@" in value:
        raise ConfigurationError(f"The {name} is {value!r}, want an address such as http://127.0.0.1:2774 or unix:/PATH.")
    return Agent(value.rstrip("/"), None, token, option is not None)


def entries(activities: Any) -> dict[str, Entry]:
    """Return what the option activities lists. An empty list counts as none."""
    if activities is None:
        return {}
    if not isinstance(activities, Mapping):
        raise _wrong("activities", activities, LIST)
    return {name: _entry(name, listed) for name, listed in activities.items()}


def addresses(urls: Any) -> dict[str, str]:
    """Return the option urls."""
    if urls is not None and not isinstance(urls, Mapping):
        raise _wrong("urls", urls, "a dict, such as {'photos-guard': 'https://...'}")
    return dict(urls or {})


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the one of the names that a misspelt name probably means."""
    from difflib import get_close_matches  # rarely needed

    return next(iter(get_close_matches(name, names, n=1)), None)


def _entry(name: Any, listed: Any) -> Entry:
    guard = window = None
    subjects: Any = ()
    hold: Any = False
    match listed:
        case {"guard": guard}:
            window, subjects, hold = listed.get("window"), listed.get("subjects", ()), listed.get("hold", False)
        case (guard, window):
            pass
        case (guard, window, bool(hold)):
            pass
        case (guard, window, subjects):
            pass
        case (guard, window, subjects, hold):
            pass
    if not isinstance(name, str):
        raise ConfigurationError(f"The option activities has {name!r}, want the name of an activity.")
    if not isinstance(guard, str) or not guard or not (window is None or (type(window) is int and window > 0)):
        raise _wrong(f"activities[{name!r}]", listed, "a guard and a window, such as ('photos-guard', 60)")
    if not isinstance(subjects, list | tuple) or not all(isinstance(s, str) and s.removesuffix("?") for s in subjects):
        message = f"The option activities[{name!r}] has the subjects {subjects!r}, want names, such as ('room', 'tenant?')."
        raise ConfigurationError(message)
    if not isinstance(hold, bool):
        raise ConfigurationError(f"The option activities[{name!r}] has the hold {hold!r}, want True or False.")
    return Entry(guard, window, tuple(subjects), hold)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def is_url(value: Any) -> bool:
    """Report whether a value is a URL of HTTP."""
    try:
        url = urlsplit(value)
        return url.scheme in ("https", "http") and bool(url.hostname) and url.port != 0
    except (AttributeError, TypeError, ValueError):
        return False


def _unknown_guard(name: str, guards: set[str]) -> ConfigurationError:
    """Return the error for a guard that decides no listed activity. It is usually misspelt."""
    near = nearest(name, guards)
    hint = f"did you mean {near!r}?" if near else f"want one of {', '.join(sorted(guards))}."
    return ConfigurationError(f"The option urls has {name!r}, which is not in the option activities; {hint}")


def _wrong(option: str, got: Any, want: str) -> ConfigurationError:
    return ConfigurationError(f"The option {option} is {got!r}, want {want}.")
