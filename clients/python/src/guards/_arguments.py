"""What is wrong with the arguments of a call.

The guard would refuse them, too. But in an outage it can't, and then a mistake
would let everybody pass. So each call looks at its arguments before it sends
anything. No message shows a value, because it could be an id.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from guards._errors import ValidationError


def wrong_field(event: dict[str, Any]) -> str | None:
    """Return what is wrong with the type of one of a request's fields; None: nothing is."""
    for key, value in event.items():
        if key in _FIELDS:
            name, is_right, want = _FIELDS[key]
            if not is_right(value):
                return f"{name} is {described(value)}, want {want}"
    if "limit" in event and (problem := _wrong_limit(event["limit"])):
        return problem
    subjects = event.get("subjects", {})
    if not isinstance(subjects, dict) or not all(map(_is_text, subjects)):
        return 'subjects has another form, want one such as {"room": "r42"}'
    if not all(map(_is_string, subjects.values())):
        return "subjects has an id that is no string, want its value as a string"
    if "" in subjects.values():  # left out, an optional subject would not limit
        return "subjects has an empty id, want its value, or None to leave it out"
    return None


# The names in an answer's limits, such as call_api, tenant and room.minute.
_LIMIT_NAME = re.compile(r"[a-z]([a-z_]{0,34}[a-z])?(\.[a-z]{1,8})?")


def _wrong_limit(limit: Any) -> str | None:
    """Return what is wrong with a number, or with numbers by the names of limits. A name of another form could be an id."""
    if not isinstance(limit, Mapping):
        want = f"{_NUMBER}, or such numbers by the names of limits, such as {_NUMBERS}"
        return None if _is_number(limit) else f"limit is {_shown(limit)}, want {want}"
    for name, value in limit.items():
        if not isinstance(name, str) or not _LIMIT_NAME.fullmatch(name):
            return "limit has a name of another form, want those in the answer's limits, such as tenant or room.minute"
        if not _is_number(value):
            return f"limit.{name} is {_shown(value)}, want {_NUMBER}"
    return None


def _shown(value: object) -> str:
    """Return a number as it is, and what anything else is."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else described(value)


def must_be(name: str, value: object, kind: type, want: str) -> None:
    """Raise a ValidationError for an argument of another type."""
    if not isinstance(value, kind):
        raise ValidationError(f"{name} is {described(value)}, want {want}")


def must_be_count(name: str, value: object) -> None:
    """Raise a ValidationError for an argument that is no whole number of at least 0."""
    if not _is_whole(value) or value < 0:  # type: ignore[operator]
        raise ValidationError(f"{name} is {described(value)}, want a whole number of at least 0")


def must_be_seconds(name: str, value: object) -> None:
    """Raise a ValidationError for an argument that is no number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value) or value < 0:
        raise ValidationError(f"{name} is {described(value)}, want a number of seconds")


def described(value: object) -> str:
    """Return what a value is, without the value itself."""
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    if isinstance(value, int | float) and value <= 0:
        return "0" if value == 0 else "negative"
    return "empty" if isinstance(value, str) and not value else f"of the type {type(value).__name__}"


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_string, value))


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_whole(value) and value >= 1


def _is_number(value: Any) -> bool:
    return _is_whole(value) and 0 <= value <= 1_000_000


_NUMBER, _NUMBERS = "a whole number from 0 to 1,000,000", '{"tenant": 50000}'

# For each field of a request: the argument, whether a value has the right type, and what it must be.
_FIELDS: dict[str, tuple[str, Callable[[Any], bool], str]] = {
    "userId": ("user_id", _is_text, "a string that is not empty"),
    "requestId": ("request_id", _is_text, "a string that is not empty"),
    "tier": ("tier", _is_string, "a string"),
    "roles": ("roles", _is_texts, "a list of strings"),
    "count": ("count", _is_count, "a whole number of at least 1"),
    "partial": ("partial", _is_bool, "True or False"),
    "clear": ("clear", _is_bool, "True or False"),
    "at": ("at", _is_count, "Unix milliseconds as a whole number"),
    "readyAt": ("ready_at", _is_count, "Unix milliseconds as a whole number"),
}
