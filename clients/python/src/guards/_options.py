"""The options of a client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from numbers import Real
from typing import Any
from urllib.parse import urlsplit

from guards._activities import ACTIVITIES
from guards._errors import ConfigurationError

# The time of an attempt in addition to the guard's own decision, in seconds.
NETWORK = 0.3

_GUARDS = {guard for guard, _ in ACTIVITIES.values()}

# The longest timeout of a socket is 2^31 milliseconds. This is a little less, in seconds.
LONGEST = 2_147_483


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Options that were checked. Times are in seconds."""

    urls: Mapping[str, str] = field(default_factory=dict)
    prefix: str
    on_outage: str
    timeout: float
    attempts: int
    decision_timeout: float

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
        if not isinstance(self.attempts, int) or isinstance(self.attempts, bool) or self.attempts < 1:
            raise _wrong("attempts", self.attempts, "a whole number of at least 1")
        for guard, url in self.urls.items():
            if guard not in _GUARDS:
                raise _unknown_guard(guard)
            if not _is_url(url):
                raise _wrong(f"urls[{guard!r}]", url, "a URL that begins with https://")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_url(value: Any) -> bool:
    try:
        url = urlsplit(value)
        return url.scheme in ("https", "http") and bool(url.hostname)
    except (AttributeError, TypeError, ValueError):
        return False


def _unknown_guard(name: Any) -> ConfigurationError:
    """Return the error for a guard whose activities this package does not know. It is usually misspelt."""
    near = get_close_matches(str(name), _GUARDS, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"want one of {', '.join(sorted(_GUARDS))}."
    return ConfigurationError(f"The option urls has {name!r}, a guard without a known activity; {hint}")


def _wrong(option: str, got: Any, want: str) -> ConfigurationError:
    return ConfigurationError(f"The option {option} is {got!r}, want {want}.")
