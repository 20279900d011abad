"""Texts of others in this package's messages."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from guards._request import Request

# Go escapes these characters in JSON, too.
_ESCAPED_BY_GO = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})


# A longer id is hidden anywhere. A shorter one, such as "a", is part of ordinary words, so it is hidden only as a whole word.
_LONG_ID = 8


def foreign(text: object, request: Request, most: int = 500) -> str:
    """Return a text for a message: without the ids of the request, even if JSON escaped them, and at most so many characters."""
    shown = str(text)
    for value in (request.event["userId"], request.event.get("requestId"), *request.subjects.values()):
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
