"""Stands in for the guards in the unit tests of an app. It needs no process, no network and no AWS.

limits = FakeGuards()
limits.refuse("create_post", wait_time=42_000)
app = new_app(limits.client(ACTIVITIES))  # or async_client

The clients are Guards and AsyncGuards themselves, so middleware, slots,
guarded and attempt run through them as in the app. It counts nothing: it allows everything
but what the test refuses. Only a limit that the app gives, and that is below the request's
count, refuses as with a guard whose limit has a max: no wait helps, so the decision has no
figures. To test against the limits themselves, start guards serve.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from email.utils import formatdate
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from guards._base import Listed
from guards._breaker import Finding
from guards._call import Call as Asking
from guards._client import Guards
from guards._decision import Decision, LimitState, _camel
from guards._errors import GuardsError, Lost
from guards._request import A, Request
from guards._way import Way

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from guards._async import AsyncGuards

__all__ = ["Call", "FakeGuards", "Options"]

_MESSAGE = "Too many requests. Please try again later."
_LIMIT = 1_000_000  # of what is allowed: as high as limits can be
_WINDOW = 60_000  # milliseconds for which what is allowed counts


class Options(TypedDict, total=False):
    """The options of a client in a test. They mean what they mean for Guards, but without warn nothing is logged."""

    on_outage: Literal["allow", "deny"]
    prefix: str
    warn: Callable[[GuardsError], object]
    observe: Callable[[Decision, float, str], object]


@dataclass(frozen=True, kw_only=True)
class Call:
    """What the app asked. A field is None if the request did not have it."""

    op: str
    """check, status, release, renew or reset."""
    guard: str
    """Without the prefix."""
    activity: str
    user_id: str
    count: int | None = None
    partial: bool | None = None
    tier: str | None = None
    limit: int | Mapping[str, int] | None = None
    roles: list[str] | None = None
    subjects: Mapping[str, str] = field(default_factory=dict)
    request_id: str | None = None
    at: int | None = None
    clear: bool | None = None
    ready_at: int | None = None
    job: Any = None


class FakeGuards:
    """Answers the requests of a test. It can be used by several threads at the same time.

    While its attribute outage is True, no guard answers: the client's option
    on_outage decides a check, and each other call raises an OutageError.
    """

    __slots__ = ("_allowed", "_calls", "_refused", "outage")

    def __init__(self) -> None:
        self.outage = False
        self._refused: dict[str, dict[str, Any]] = {}  # by activity
        self._allowed: dict[str, dict[str, Any]] = {}  # by activity: what the decision of a check has
        self._calls: list[Call] = []

    def client(self, activities: Mapping[A, Listed] | Mapping[A, Mapping[str, Any]], /, **options: Unpack[Options]) -> Guards[A]:
        """Return a client that asks these guards. It knows the activities of the app's list."""
        options.setdefault("warn", lambda _: None)
        return Guards(activities=activities, client=_ByTest(self), **options)

    def async_client(
        self, activities: Mapping[A, Listed] | Mapping[A, Mapping[str, Any]], /, **options: Unpack[Options]
    ) -> AsyncGuards[A]:
        """Return a client for asyncio. See client."""
        from guards._async import AsyncGuards

        options.setdefault("warn", lambda _: None)
        return AsyncGuards(activities=activities, client=_ByTest(self), **options)

    def refuse(
        self,
        activity: str,
        *,
        reason: str = "limited",
        wait_time: int = 1000,
        message: str = _MESSAGE,
        limit: int | None = None,
        activity_count: int | None = None,
        remaining: int = 0,
        reset_at: int | None = None,
        locked: bool = False,
        limited_by: str | None = None,
        limits: Sequence[LimitState] = (),
    ) -> None:
        """Refuse an activity from now on. The decision has these fields.

        Times are in milliseconds. By default a limit of one is used up, and
        resets after wait_time. A block has no limit. locked plays a lockout.
        """
        if limit is None and reason != "blocked":
            limit, activity_count = 1, 1 if activity_count is None else activity_count
        given = {
            "limit": limit,
            "activityCount": activity_count,
            "resetAt": reset_at,
            "limitedBy": limited_by,
            "locked": locked or None,
        }
        given["remaining"] = None if limit is None else remaining
        answer = {"allowed": False, "reason": reason, "granted": 0, "waitTime": wait_time, "message": message}
        answer |= {name: value for name, value in given.items() if value is not None}
        if limits:
            answer["limits"] = [{_camel(name): value for name, value in asdict(state).items()} for state in limits]
        self._refused[activity] = answer
        self._allowed.pop(activity, None)

    def allow(
        self, activity: str, *, remaining: int | None = None, crossed: Literal[80, 100] | None = None, locked: bool = False
    ) -> None:
        """Allow an activity again. The decisions of its checks have these fields.

        With remaining=0, crossed=100 and locked=True, each check is the attempt
        that locks: if it fails, on_locked is called.
        """
        self._refused.pop(activity, None)
        given = {"remaining": remaining, "crossed": crossed, "locked": locked or None}
        self._allowed[activity] = {name: value for name, value in given.items() if value is not None}

    @property
    def calls(self) -> list[Call]:
        """What was asked so far, in order."""
        return list(self._calls)

    def _decide(self, request: Request) -> Decision:
        event, now = request.event, time.time_ns() // 1_000_000
        given = {f.name: event[_camel(f.name)] for f in fields(Call) if _camel(f.name) in event}
        self._calls.append(Call(guard=request.guard, **given))
        if self.outage:
            raise Lost("the test plays an outage", again=False, answered=True)
        if low := _too_low(event):
            return request.decision(**low)
        answer = self._refused.get(event["activity"])
        if answer is not None and event["op"] in ("check", "status"):
            return request.decision(**{"resetAt": now + answer["waitTime"], **answer})
        given = self._allowed.get(event["activity"], {}) if event["op"] == "check" else {}
        return request.decision(**_allowed(event, now, given))


class _ByTest(Way):
    """Asks the guards of a test."""

    def __init__(self, guards: FakeGuards) -> None:
        super().__init__()
        self._guards = guards

    def name(self, request: Request) -> str:  # noqa: ARG002
        """Return the way of a request."""
        return "test"

    def attempt(self, request: Request, call: Asking, finding: Finding) -> Decision:
        """Ask once."""
        call.go_on()
        finding.has_response = self.reached = True
        decision = self._guards._decide(request)
        vars(decision)["_date"] = formatdate(usegmt=True)  # for the RateLimit headers of a refusal
        return decision

    def close(self) -> None:
        """Close nothing, because there are no connections."""


def _too_low(event: dict[str, Any]) -> dict[str, Any] | None:
    """Return the refusal of a number that the app gave and that is too low for the request; None if no number is."""
    given, n = event.get("limit"), 1 if event.get("partial") else event.get("count", 1)
    if given is None or event["op"] not in ("check", "status"):
        return None
    numbers = given if isinstance(given, Mapping) else {"": given}
    low = next((name for name, number in numbers.items() if number < n), None)
    if low is None:
        return None
    answer = {"allowed": False, "reason": "limited", "granted": 0, "message": _MESSAGE}
    return answer | {"limitedBy": low} if low else answer


def _allowed(event: dict[str, Any], now: int, given: dict[str, Any]) -> dict[str, Any]:
    """Return the answer that allows a request, with given fields."""
    count, end = event.get("count", 1), now + _WINDOW
    remaining = given.get("remaining", _LIMIT - count)
    answer = {"allowed": True, "reason": "ok", "granted": count, "limit": _LIMIT, "activityCount": _LIMIT - remaining}
    answer |= {"remaining": remaining, "waitTime": 0, "resetAt": end, **given}
    if event["op"] in ("check", "renew"):
        answer |= {"at": now, "heldUntil": end, "requestId": event.get("requestId", "guards.testing")}
    return answer
