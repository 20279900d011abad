"""A guard's answer."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

from guards._arguments import must_be, must_be_seconds
from guards._errors import OutageError


@dataclass(frozen=True, kw_only=True)
class LimitState:
    """One of several limits on an activity, or on its subjects."""

    name: str
    limit: int
    activity_count: int
    remaining: int
    wait_time: int
    """Milliseconds."""
    reset_at: int
    """Unix milliseconds."""
    crossed: int | None = None
    """As in Decision, for this limit."""
    locked: bool | None = None
    """Whether this limit is a lockout that is locked; None if it is not."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """A guard's answer. A field is None if the answer does not have it.

    Times are the guard's own: waits in milliseconds, moments in Unix
    milliseconds. The user id, the request id and the subjects are not in its
    repr.
    """

    allowed: bool
    """Whether the user may go on."""
    reason: str = ""
    """ok, limited, delayed, unlimited, bypassed, shadow, duplicate, unavailable or blocked; of a renewal also expired."""
    user_id: str = field(default="", repr=False)
    activity: str = ""
    op: str = ""
    """check, status, release, renew or reset."""
    limit: int | None = None
    """Actions allowed per window."""
    activity_count: int | None = None
    """Actions counted in the current window, after this answer."""
    remaining: int | None = None
    """Actions left now."""
    wait_time: int | None = None
    """Milliseconds until the same request can pass; 0 if nothing was refused."""
    reset_at: int | None = None
    """Unix milliseconds when everything that counts now has expired."""
    window_key: int | None = None
    granted: int | None = None
    """How many actions a check counted."""
    at: int | None = None
    """The receipt for a release or a renewal, together with request_id."""
    request_id: str | None = field(default=None, repr=False)
    held_until: int | None = None
    """If the limit is a log: Unix milliseconds when the actions stop counting."""
    message: str | None = None
    """A text for the end user, if the request was refused in whole or part."""
    display: str | None = None
    """For example "12-hour pins: 93/100"."""
    ready_at: int | None = None
    """Unix milliseconds when the place of a delayed job comes up."""
    enqueued: int | None = None
    crossed: int | None = None
    """80 or 100 if this check raised the count of a fixed window to 80 % or to 100 % of its limit; 100 if it crossed both.

    At most one check in a window has each number, so an app that sends a mail when
    it is there sends at most two. If the activity has several limits, it is about
    the limit whose figures the decision has. Of a lockout, the attempt that locks
    has 100, and none has 80.
    """
    locked: bool | None = None
    """Whether a lockout is locked, so that nothing is allowed until reset_at; None if it is not."""
    limited_by: str | None = None
    """The limit or subject that refused, if there are several, such as "room" or "room.minute"; of a block the subject."""
    limits: tuple[LimitState, ...] = ()
    version: str | None = None
    """Of a status: the release of Guards that answers, such as "v0.1.0", if it was built from one."""

    outage: OutageError | None = None
    """Why the guard did not decide. Then the option on_outage decided."""
    guard: str = ""
    """The guard that was asked, without the prefix."""
    subjects: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The subjects of the request. What gives back or renews the action sends them again."""
    asked: Mapping[str, Any] | None = None
    """The tier and the limit of the request, if it had them. They are sent again, as the subjects are."""
    window: int | None = field(default=None, repr=False)
    """The window of the limit in seconds, if the client knows it."""
    answer: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The answer as the guard sent it, with all its fields."""

    @property
    def has_receipt(self) -> bool:
        """Whether the decision has the receipt of something that a release can give back.

        A duplicate has none, and a delayed job's place can't be given back.
        """
        return bool(self.granted and self.at and self.request_id)

    _client: ClassVar[Any] = None  # of a check: the client that made it, in the decision's own __dict__
    _is_settled: ClassVar[bool] = False
    _slot: ClassVar[bool] = False  # whether a slot renews and releases what this check counted
    _date: ClassVar[str | None] = None  # the header of the server that answered

    @property
    def _made_at(self) -> int | None:
        """Unix milliseconds when the guard decided, on its own clock. This machine's clock can be wrong, so it never counts."""
        return date_of(self._date) if self.at is None else self.at

    def settle(self, used: int) -> Any:
        """Give back what this check granted and the app did not use. See Guards.settle. With AsyncGuards, await it.

        A decision that was stored has no client. Pass it to the method settle of one.
        """
        if self._client is None:
            raise TypeError("this decision comes from no check of this process: use settle or release of a client")
        return self._client.settle(self, used)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the client, which can't be pickled."""
        return {name: value for name, value in vars(self).items() if name != "_client"}

    @classmethod
    def read(
        cls,
        answer: Mapping[str, Any],
        *,
        guard: str,
        window: int | None = None,
        subjects: Mapping[str, str] | None = None,
        asked: Mapping[str, Any] | None = None,
        outage: OutageError | None = None,
    ) -> Decision:
        """Return the decision of an answer in the guard's own form. Unknown fields stay in its field answer."""
        return cls(
            **{name: answer[key] for name, key in _KEYS.items() if key in answer},
            limits=tuple(
                LimitState(**{name: limit.get(key) for name, key in _LIMIT_KEYS.items()}) for limit in answer.get("limits") or ()
            ),
            guard=guard,
            window=window,
            subjects=subjects or {},
            asked=asked,
            outage=outage,
            answer=answer,
        )


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


# The answer's field for each of a class's fields, such as waitTime for wait_time.
_OWN = {"limits", "outage", "guard", "subjects", "asked", "window", "answer"}
_KEYS = {f.name: _camel(f.name) for f in fields(Decision) if f.name not in _OWN}
_LIMIT_KEYS = {f.name: _camel(f.name) for f in fields(LimitState)}


def anonymous(decision: Decision) -> Decision:
    """Return a decision without the ids of the user, the request and the subjects."""
    answer = {name: value for name, value in decision.answer.items() if name not in ("userId", "requestId", "subjects")}
    return replace(decision, user_id="", request_id=None, subjects={}, answer=answer)


def time_to_wait(decision: Decision, max_wait: float) -> float | None:
    """Return how long to sleep before the same request can pass, in seconds. None means that it can't pass in that time.

    Up to 10 % is added, or up to 50 ms if that is more, so that users who were
    refused together do not come back together.
    """
    must_be("the decision", decision, Decision, "one of this package")
    must_be_seconds("max_wait", max_wait)
    if not decision.wait_time or decision.reason == "shadow":
        return 0.0 if decision.allowed else None
    if decision.wait_time > max_wait * 1000 or decision.reason == "blocked":
        return None
    wait = decision.wait_time / 1000
    return wait + random.uniform(0, max(wait / 10, 0.05))


def date_of(header: str | None) -> int | None:
    """Return the time of the header Date in Unix milliseconds; None if there is none."""
    from email.utils import parsedate_to_datetime  # takes 15 ms to load, and is rarely needed

    try:
        return round(parsedate_to_datetime(header or "").timestamp() * 1000)
    except (TypeError, ValueError, OverflowError):
        return None
