"""Requests to a guard."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict
from uuid import uuid4

from guards._decision import Decision
from guards._errors import ConfigurationError, ValidationError
from guards._options import LIST, Settings, nearest

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    A = TypeVar("A", bound=str, default=str)
    """The activities of a client's list."""
else:
    from typing import TypeVar

    A = TypeVar("A")


class GuardActivity(NamedTuple):
    """An activity and its guard, for an activity that the client's list does not have."""

    guard: str
    """Such as "photos-guard"."""
    activity: str
    """Such as "upload_photo"."""


AnyActivity = str | GuardActivity


class StatusOptions(TypedDict, total=False):
    """The options of a status."""

    count: int
    """How many actions at once; 1 by default."""
    partial: bool
    """Whether to grant as many of count as fit, instead of all or nothing. Such a check is sent only once."""
    tier: str
    """The user's plan. Never copy it from the user's own input."""
    roles: Iterable[str]
    """The user's roles. Never copy them from the user's own input."""


class CheckOptions(StatusOptions, total=False):
    """The options of a check."""

    request_id: str
    """A check with the same id is counted once. By default, each call has an id of its own."""
    ready_at: int
    """For a delayed job: ready_at of the delayed decision, in Unix milliseconds."""
    job: Any
    """What to put on the delayed queue: any JSON of at most 32 KiB."""


@dataclass(frozen=True)
class Request:
    """One request to a guard, the same in each attempt."""

    guard: str  # without the prefix
    function: str  # with the prefix
    url: str | None  # None: asked by Invoke
    event: dict[str, Any]
    payload: bytes  # the event as JSON
    window: int | None  # of the activity's limit in seconds, if it is known
    attempts: int  # at most

    def decision(self, **answer: Any) -> Decision:
        """Return a decision about this request that no guard wrote."""
        asked = {"userId": self.event["userId"], "activity": self.event["activity"], "op": self.event["op"]}
        first = {"allowed": answer.pop("allowed"), "reason": answer.pop("reason")}
        outage = answer.pop("outage", None)
        return Decision.read({**first, **asked, **answer}, guard=self.guard, window=self.window, outage=outage)


def new_request(
    settings: Settings,
    op: str,
    activity: AnyActivity,
    *,
    user_id: str,
    count: int | None = None,
    partial: bool = False,
    tier: str | None = None,
    roles: Iterable[str] | None = None,
    request_id: str | None = None,
    at: int | None = None,
    ready_at: int | None = None,
    job: Any = None,
) -> Request:
    """Return a request. A check that can be repeated always has a request id."""
    guard, name, window = _find(settings, activity)
    if op == "check" and not partial and request_id is None:
        request_id = str(uuid4())
    optional = {"count": count, "partial": partial or None, "tier": tier, "roles": roles}
    optional |= {"requestId": request_id, "at": at, "readyAt": ready_at, "job": job}
    event: dict[str, Any] = {"userId": user_id, "activity": name, "op": op}
    event |= {key: value for key, value in optional.items() if value is not None}
    try:
        if roles is not None and not isinstance(roles, str):
            event["roles"] = list(roles)
        payload = json.dumps(event, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise ValidationError(f"the request is not JSON: {error}", settings.prefix + guard) from None
    return Request(
        guard=guard,
        function=settings.prefix + guard,
        url=settings.urls.get(guard),
        event=event,
        payload=payload,
        window=None if tier else window,
        # A repeat of a check without an id would count twice. A repeat of a reset could delete what was counted since.
        attempts=1 if op == "reset" or (op == "check" and partial) else settings.attempts,
    )


def with_receipt(settings: Settings, op: str, decision: Decision, count: int | None = None) -> Request:
    """Return the request that gives back or renews what a check counted: all of it, or count actions."""
    if not decision.has_receipt:
        what = "give back" if op == "release" else "renew"
        raise ValidationError(f"the decision has no receipt, so there is nothing to {what}", settings.prefix + decision.guard)
    activity = GuardActivity(decision.guard, decision.activity)
    return new_request(
        settings,
        op,
        activity,
        user_id=decision.user_id,
        at=decision.at,
        request_id=decision.request_id,
        count=count or decision.granted,
    )


_NAME_THE_GUARD = "or name the guard: GuardActivity(guard, activity)"
_PASS_THE_LIST = f"pass {LIST} as the option activities, {_NAME_THE_GUARD}"


def one_for_each_guard(settings: Settings, activities: Iterable[A | GuardActivity]) -> list[A | GuardActivity]:
    """Return the first activity of each guard; without activities, of each guard in the client's list."""
    asked = list(activities) or [GuardActivity(guard, name) for name, (guard, _) in settings.activities.items()]
    if not asked:
        raise ConfigurationError(f"no guard is known: {_PASS_THE_LIST}")
    first: dict[str, A | GuardActivity] = {}
    for activity in asked:
        first.setdefault(_find(settings, activity)[0], activity)
    return list(first.values())


def _find(settings: Settings, activity: AnyActivity) -> tuple[str, str, int | None]:
    """Return the activity's guard, its name, and its window in seconds."""
    listed = settings.activities
    if isinstance(activity, GuardActivity):
        guard, window = listed.get(activity.activity, (None, None))
        return activity.guard, activity.activity, window if guard == activity.guard else None
    if isinstance(activity, str) and activity in listed:
        guard, window = listed[activity]
        return guard, activity, window
    name = str(activity)[:64]
    advice = f"write the list again with guards generate, {_NAME_THE_GUARD}" if listed else _PASS_THE_LIST
    if near := nearest(name, listed):
        advice = f"did you mean {json.dumps(near)}?"
    raise ValidationError(f"no guard is known for the activity {json.dumps(name)}: {advice}")
