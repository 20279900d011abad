"""Requests to a guard."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict

from guards._arguments import described, wrong_field
from guards._decision import Decision
from guards._errors import ConfigurationError, OutageError, ValidationError
from guards._options import LIST, Entry, Settings, nearest

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

Subjects = Mapping[str, str | None]
"""The ids of the others in whose limits an action counts, such as {"room": "r42"}. None is as if it were left out."""


Limit = int | Mapping[str, int]
"""How many actions the user's only limit allows, or such numbers by the names of limits, such as {"tenant": 50000}."""


class _Limits(TypedDict, total=False):
    """Which limits decide. What follows a check sends the same."""

    tier: str | None
    """The user's plan. Never copy it from the user's own input."""
    limit: Limit | None
    """How high the limits with max are for this request, 0 to 1,000,000. Never copy it from the user's own input."""
    subjects: Subjects | None
    """The others in whose limits the action counts, such as {"room": room_id}. Check first that the user is in that room."""


class _Asker(_Limits, total=False):
    """On whose behalf a guard is asked."""

    roles: Iterable[str]
    """The user's roles. Never copy them from the user's own input."""


class _Counted(_Limits, total=False):
    count: int | None
    """How many actions; 1 by default."""


class Receipt(_Counted):
    """The fields of a check's receipt, for an app that has not kept the decision."""

    at: int
    """at of the check's decision, or of its last renewal's, in Unix milliseconds."""
    request_id: str
    """request_id of the same decision."""


class StatusOptions(_Asker, total=False):
    """The options of a status."""

    count: int
    """How many actions at once; 1 by default."""
    partial: bool
    """Whether to grant as many of count as fit, instead of all or nothing. Such a check is sent only once."""


class AttemptOptions(_Asker, total=False):
    """The options of an attempt's check."""

    on_outage: Literal["allow", "deny"] | None
    """As in CheckOptions."""


class CheckOptions(StatusOptions, total=False):
    """The options of a check."""

    request_id: str
    """A check with the same id is counted once. By default, each call has an id of its own."""
    ready_at: int
    """For a delayed job: ready_at of the delayed decision, in Unix milliseconds."""
    job: Any
    """What to put on the delayed queue: any JSON of at most 32 KiB."""
    on_outage: Literal["allow", "deny"] | None
    """What an outage does to this check, instead of the client's option. With "deny", an answer that the guard gave from
    its memory is refused, too, and what the check counted is given back."""


# Go escapes these characters in JSON, too.
_ESCAPED_BY_GO = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})

# A longer id is hidden anywhere. A shorter one, such as "a", is part of ordinary words, so it is hidden only as a whole word.
_LONG_ID = 8


@dataclass(frozen=True)
class Request:
    """One request to a guard, the same in each attempt."""

    guard: str  # without the prefix
    function: str  # with the prefix
    url: str | None  # None: asked by Invoke
    event: dict[str, Any]
    payload: bytes  # the event as JSON
    subjects: dict[str, str]  # of the event; empty: none
    window: int | None  # of the activity's limit in seconds, if it is known
    max_tries: int  # at most
    on_outage: str | None = None  # instead of the client's option

    def decision(self, *, allowed: bool, reason: str, outage: OutageError | None = None, **answer: Any) -> Decision:
        """Return a decision about this request that no guard wrote."""
        asked = {name: self.event[name] for name in ("userId", "activity", "op")}
        return self.read({"allowed": allowed, "reason": reason, **asked, **answer}, outage)

    def read(self, answer: Mapping[str, Any], outage: OutageError | None = None) -> Decision:
        """Return the decision of an answer to this request."""
        asked = {name: self.event[name] for name in ("tier", "limit") if name in self.event}
        kept: dict[str, Any] = {"window": self.window, "subjects": self.subjects, "asked": asked or None}
        return Decision.read(answer, guard=self.guard, outage=outage, **kept)

    def not_invoked(self, why: object) -> ConfigurationError:
        """Return the error if a mistake of the app or of this machine kept the request from the guard."""
        return ConfigurationError(f"{self.function} could not be invoked: {why}", self.function)

    def without_ids(self, text: object, most: int = 500) -> str:
        """Return a text of others for a message: at most so many characters, without the ids, even if JSON escaped them."""
        shown = str(text)
        for value in (self.event["userId"], self.event.get("requestId"), *self.subjects.values()):
            for form in _forms(str(value)) if value else ():
                pattern = re.escape(form)
                if len(str(value)) < _LONG_ID:
                    pattern = f"(?<![0-9A-Za-z]){pattern}(?![0-9A-Za-z])"
                shown = re.sub(pattern, "***", shown)
        return shown[:most]


def _forms(value: str) -> list[str]:
    """Return a value as it is and as JSON in different programs, the longest form first."""
    plain = json.dumps(value, ensure_ascii=False)[1:-1]
    forms = {value, plain, json.dumps(value)[1:-1], plain.translate(_ESCAPED_BY_GO)}
    return sorted(forms, key=len, reverse=True)


def new_request(
    settings: Settings,
    op: str,
    activity: AnyActivity,
    *,
    user_id: str,
    count: int | None = None,
    partial: bool = False,
    tier: str | None = None,
    limit: Limit | None = None,
    roles: Iterable[str] | None = None,
    subjects: Subjects | None = None,
    request_id: str | None = None,
    at: int | None = None,
    clear: bool = False,
    ready_at: int | None = None,
    job: Any = None,
    on_outage: Any = None,
) -> Request:
    """Return a request. A check that can be repeated always has a request id."""
    guard, name, entry = _find(settings, activity)
    if on_outage is not None and op != "check":
        raise TypeError(f"{op} has no on_outage: it fails with an OutageError")
    if on_outage not in (None, "allow", "deny"):
        raise ValidationError(f'on_outage is {described(on_outage)}, want "allow" or "deny"', settings.prefix + guard)
    if op == "check" and partial is not True and request_id is None:
        request_id = _new_id()
    optional = {"count": count, "partial": partial or None, "tier": tier, "roles": _list(roles)}
    optional["limit"] = dict(limit) or None if isinstance(limit, Mapping) else limit
    optional |= {"requestId": request_id, "at": at, "clear": clear or None, "readyAt": ready_at, "job": job}
    optional["subjects"] = _given(subjects)
    event: dict[str, Any] = {"userId": user_id, "activity": name, "op": op}
    event |= {key: value for key, value in optional.items() if value is not None}
    others: Any = event.get("subjects", {})
    problem = wrong_field(event) or (entry and _wrong_subjects(op, name, entry.subjects, others))
    if problem:
        raise ValidationError(problem, settings.prefix + guard)
    try:
        payload = json.dumps(event, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ValidationError(f"the request is not JSON: {error}", settings.prefix + guard) from None
    return Request(
        guard=guard,
        function=settings.prefix + guard if guard else "the agent",
        url=settings.urls.get(guard),
        event=event,
        payload=payload,
        subjects=others,
        window=None if tier or "limit" in event or entry is None else entry.window,
        # A repeat of a check without an id would count twice. A repeat of a reset could delete what was counted since.
        max_tries=1 if op == "reset" or (op == "check" and partial) else settings.max_tries,
        on_outage=on_outage,
    )


def _new_id() -> str:
    """Return a random UUID. The module uuid takes 5 ms to load."""
    value = int.from_bytes(os.urandom(16), "big") & ~(0xF << 76 | 0x3 << 62) | 0x4 << 76 | 0x2 << 62
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _list(roles: Any) -> Any:
    """Return roles as JSON has them, or what they are if they are no list."""
    return list(roles) if isinstance(roles, Iterable) and not isinstance(roles, str | bytes | Mapping) else roles


def _given(subjects: Any) -> Any:
    """Return subjects without those that are None, or what they are if they have another form. None: there are none."""
    if not isinstance(subjects, Mapping):
        return subjects
    return {name: value for name, value in subjects.items() if value is not None} or None


def with_receipt(settings: Settings, op: str, decision: Decision, count: int | None = None, *, clear: bool = False) -> Request:
    """Return the request that gives back or renews what a check counted: all of it, or count actions."""
    if not decision.has_receipt:
        what = "give back" if op == "release" else "renew"
        raise ValidationError(f"the decision has no receipt, so there is nothing to {what}", settings.prefix + decision.guard)
    activity = GuardActivity(decision.guard, decision.activity) if decision.guard else decision.activity
    asked = decision.asked or {}
    return new_request(
        settings,
        op,
        activity,
        user_id=decision.user_id,
        at=decision.at,
        request_id=decision.request_id,
        count=count or decision.granted,
        clear=clear,
        subjects=decision.subjects,
        tier=asked.get("tier"),
        limit=asked.get("limit"),
    )


_READY = "ready"  # the id of the user and of the subjects of ready()
_NAME_THE_GUARD = "or name the guard: GuardActivity(guard, activity)"
_PASS_THE_LIST = f"pass {LIST} as the option activities, {_NAME_THE_GUARD}"


def ready_requests(settings: Settings, activities: Iterable[AnyActivity]) -> list[Request]:
    """Return a request about the first activity of each guard; without activities, of each guard in the client's list."""
    asked = list(activities) or [GuardActivity(entry.guard, name) for name, entry in settings.activities.items()]
    if not asked and settings.agent is not None:  # the agent tells whether its limits and settings are right
        health = {"userId": "", "activity": "", "op": "health"}
        return [Request("", "the agent", url=None, event=health, payload=b"", subjects={}, window=None, max_tries=3)]
    if not asked:
        raise ConfigurationError(f"no guard is known: {_PASS_THE_LIST}")
    requests: dict[str, Request] = {}
    for activity in asked:
        guard, _, entry = _find(settings, activity)
        if guard not in requests:
            subjects = {name: _READY for name in (entry.subjects if entry else ()) if not name.endswith("?")}
            requests[guard] = new_request(settings, "status", activity, user_id=_READY, subjects=subjects)
    return list(requests.values())


def holds(settings: Settings, activity: AnyActivity) -> bool:
    """Report whether the list says that the activity has Hold. Without a list, nobody knows."""
    entry = _find(settings, activity)[2]
    return entry is not None and entry.hold


def _wrong_subjects(op: str, activity: str, listed: tuple[str, ...], given: Mapping[str, str]) -> str | None:
    """Return what is wrong with the subjects of a request.

    A reset may leave them out, because it clears the user alone. The message
    never shows what the app sent, because that could be an id.
    """
    names = ", ".join(listed).replace("?", " (optional)")
    for name in listed:
        if not name.endswith("?") and name not in given and op != "reset":
            return f"subjects has no {name}: the activity {json.dumps(activity)} needs {names}"
    if not given.keys() - {name.removesuffix("?") for name in listed}:
        return None
    if listed:
        return f"subjects has an unknown name: the activity {json.dumps(activity)} has {names}"
    return (
        f"subjects does not go with the activity {json.dumps(activity)}: the list has none for it. "
        "Write the list again with guards generate if it is old."
    )


def _find(settings: Settings, activity: AnyActivity) -> tuple[str, str, Entry | None]:
    """Return the activity's guard, its name, and what the list has about it."""
    listed = settings.activities
    if isinstance(activity, GuardActivity):
        if not all(isinstance(name, str) and name for name in activity):
            raise ValidationError('the activity has another form, want GuardActivity("photos-guard", "upload_photo")')
        entry = listed.get(activity.activity)
        return activity.guard, activity.activity, entry if entry and entry.guard == activity.guard else None
    if isinstance(activity, str) and activity in listed:
        entry = listed[activity]
        return entry.guard, activity, entry
    if not isinstance(activity, str):
        raise ValidationError(f"the activity is {described(activity)}, want its name or a GuardActivity")
    if settings.agent is not None and activity and not listed:
        return "", activity, None  # the agent knows its activities
    name = activity[:64]
    advice = f"write the list again with guards generate, {_NAME_THE_GUARD}" if listed else _PASS_THE_LIST
    if near := nearest(name, listed):
        advice = f"did you mean {json.dumps(near)}?"
    raise ValidationError(f"no guard is known for the activity {json.dumps(name)}: {advice}")
