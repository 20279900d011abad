"""Ask rate-limit guards on AWS Lambda before a write.

from activities import ACTIVITIES  # guards generate writes this file
from guards import Guards

guards = Guards(activities=ACTIVITIES)
decision = guards.check("create_post", user_id=user.id)
if not decision.allowed:
    return too_many(decision)  # of guards.flask, guards.fastapi, guards.asgi or guards.http
"""

from typing import TYPE_CHECKING, Any

from guards._attempt import AsyncAttempt, Attempt
from guards._client import Guards
from guards._decision import Decision, LimitState
from guards._errors import AnswerError, ConfigurationError, GuardsError, LimitedError, OutageError, ValidationError
from guards._keys import account_key, ip_key
from guards._request import AnyActivity, AttemptOptions, CheckOptions, GuardActivity, Limit, StatusOptions, Subjects
from guards._sigv4 import Credentials
from guards._slot import Slot

if TYPE_CHECKING:
    from guards._async import AsyncGuards

__all__ = [
    "AnswerError",
    "AnyActivity",
    "AsyncAttempt",
    "AsyncGuards",
    "Attempt",
    "AttemptOptions",
    "CheckOptions",
    "ConfigurationError",
    "Credentials",
    "Decision",
    "GuardActivity",
    "Guards",
    "GuardsError",
    "Limit",
    "LimitState",
    "LimitedError",
    "OutageError",
    "Slot",
    "StatusOptions",
    "Subjects",
    "ValidationError",
    "account_key",
    "ip_key",
]


def __getattr__(name: str) -> Any:
    """Return AsyncGuards when it is first used, because asyncio takes 45 ms to load."""
    if name == "AsyncGuards":
        from guards._async import AsyncGuards

        return AsyncGuards
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
