"""What an app answers to its own user over HTTP. All middleware of this package uses it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from guards._arguments import wrong_field
from guards._attempt import wrong_option
from guards._base import Base
from guards._callbacks import returned, true_or_false
from guards._decision import Decision
from guards._errors import ConfigurationError
from guards._request import CheckOptions

OnOutage = Literal["allow", "deny"] | None
"""What an outage does to the checks of a middleware. None: the option of the client decides."""


class Response(NamedTuple):
    """What the option count_if of a middleware is asked about: a response whose headers are about to be sent."""

    status: int
    """Such as 401."""


CountIf = Callable[[Response], bool]
"""Reports whether a request counts, by its response. If not, what its check counted is given back."""

_TYPES = "https://iana.org/assignments/http-problem-types#"


class Refusal(NamedTuple):
    """An HTTP response to a user who was refused."""

    status: int
    headers: dict[str, str]
    body: bytes


def refusal(decision: Decision) -> Refusal:
    """Return the response for a refused decision: 429, or 503 if the guard did not answer.

    The body is a problem document (RFC 9457). A 429 has the fields of the
    guard's answer in it. Retry-After is in whole seconds, at least 1. If the
    limit of the request is too small, no wait helps, so there is none.
    """
    if decision.outage is not None:
        status, after = 503, 1
        problem = {
            "type": _TYPES + "temporary-reduced-capacity",
            "title": "Unavailable",
            "status": status,
            "detail": decision.message,
        }
    else:
        never = decision.wait_time is None and "limit" in (decision.asked or {})
        status, after = 429, 0 if never else max(1, _seconds(decision.wait_time or 0))
        problem = {"title": "Too Many Requests", "status": status}
        if decision.reason != "blocked" and not never:  # a block violates no policy, and neither does such a limit
            violated = [decision.limited_by or decision.activity]
            problem = {"type": _TYPES + "quota-exceeded", **problem, "violated-policies": violated}
        problem |= decision.answer
    wait = {"Retry-After": str(after)} if after else {}
    headers = {"Content-Type": "application/problem+json", **wait, **rate_limit_headers(decision)}
    return Refusal(status, headers, json.dumps(problem, separators=(",", ":")).encode())


def too_many_for_lambda(event: Mapping[str, Any], decision: Decision) -> dict[str, Any]:
    """Return refusal as a Lambda handler returns it to API Gateway, a Function URL or a load balancer.

    Anything else would take the dict for a success, so it needs the handler's
    event. In Flask, FastAPI and Starlette, use too_many of guards.flask,
    guards.fastapi or guards.asgi. In AppSync, use guarded, whose LimitedError
    has the message for the user.
    """
    if not isinstance(event, Mapping) or event.get("requestContext") is None:
        raise ConfigurationError(
            "too_many_for_lambda got no event of an HTTP request, want that of API Gateway, a Function URL or a load balancer, "
            "and then the decision. In AppSync, use guarded."
        )
    status, headers, body = refusal(decision)
    result = {"statusCode": status, "body": body.decode(), "isBase64Encoded": False}
    if event.get("headers") is not None or event.get("multiValueHeaders") is None:
        return {**result, "headers": headers}
    # A load balancer that sends headers of several values instead reads only these.
    return {**result, "multiValueHeaders": {name: [value] for name, value in headers.items()}}


def rate_limit_headers(decision: Decision) -> dict[str, str]:
    """Return RateLimit and RateLimit-Policy as the guard itself sends them over HTTP.

    The seconds t until the reset count from the decision's at, or else from
    when the guard answered. A decision that has neither, because the app made
    or replaced it, has no t. This machine's clock never counts.

    A decision without figures has neither. RateLimit-Policy needs the window
    of the limit. It is missing if the client does not know the window: if the
    request has a tier or a limit, for several limits or subjects, and for an
    activity that is not in the client's list. A granted tier or a live limit
    can have another window; the guard's own URL is exact about it.
    """
    made = decision._made_at

    def item(name: str, remaining: int, reset_at: int) -> str:
        return f"{json.dumps(name)};r={remaining}" + ("" if made is None else f";t={_seconds(reset_at - made)}")

    items = [item(limit.name, limit.remaining, limit.reset_at) for limit in decision.limits]
    name = json.dumps(decision.activity)
    if not items:
        if not decision.limit or decision.remaining is None or decision.reset_at is None:
            return {}
        items = [item(decision.activity, decision.remaining, decision.reset_at)]
    headers = {"RateLimit": ", ".join(items)}
    if decision.window is not None and not decision.limits:
        headers["RateLimit-Policy"] = f"{name};q={decision.limit};w={decision.window}"
    return headers


def named_user(user_id: object, activity: object) -> str:
    """Return the user id. A request without a user is an error, so that a missing user never opens the door."""
    if user_id is None or user_id == "":
        raise ConfigurationError(f"user_id returned no user for {activity}. To let such requests pass, use the option skip.")
    if not isinstance(user_id, str):
        raise returned("user_id", user_id, "a string")
    return user_id


def skipped(value: object) -> bool:
    """Return what skip returned. None counts as False."""
    return true_or_false("skip", value)


def check_options(options: Any, subjects: Any, on_outage: OnOutage, count_if: object = None, limit: Any = None) -> CheckOptions:
    """Return the options of a check: those of the request, its subjects and limit, and on_outage of the middleware.

    None as the subjects or the limit leaves those of the options, if any.
    on_outage of the options wins, unless it is None. With count_if, a check has an id of its own
    and counts once.
    """
    if not isinstance(options, Mapping):
        raise returned("options", options, "a dict")
    if count_if is not None and (problem := wrong_option(options)):
        raise ConfigurationError(f"The option options returned what does not go with count_if: {problem}.")
    if not (subjects is None or isinstance(subjects, Mapping)):
        raise returned("subjects", subjects, "a dict or None")
    if not (limit is None or isinstance(limit, int | Mapping)):
        raise returned("limit", limit, "a number, a dict or None")
    given: dict[str, Any] = {name: value for name, value in (("subjects", subjects), ("limit", limit)) if value is not None}
    if options.get("on_outage") is None:
        given["on_outage"] = on_outage
    return {**options, **given}  # type: ignore[typeddict-item]


def check_middleware(
    guards: object, want: type[Base[Any]], on_outage: object, limit: object, count_if: object, **functions: object
) -> None:
    """Raise an error for a wrong option of a middleware. What a function returns is checked for each request."""
    if isinstance(guards, Base) and not isinstance(guards, want):  # it could not use the check of the other kind
        raise ConfigurationError(f"The option guards is a client of the class {type(guards).__name__}, want {want.__name__}.")
    if on_outage not in (None, "allow", "deny"):
        raise ConfigurationError(f'The option on_outage is {on_outage!r}, want "allow" or "deny".')
    if not callable(limit) and limit is not None and (problem := wrong_field({"limit": limit})):
        raise ConfigurationError(f"The option {problem}.")
    if count_if is not None:
        functions["count_if"] = count_if
    for name, function in functions.items():
        if not callable(function):
            raise ConfigurationError(f"The option {name} is {function!r}, want a function.")
    if count_if is not None and not isinstance(guards, Base):
        raise ConfigurationError(f"The option count_if needs a client of this package, and guards is {type(guards).__name__}.")


def _seconds(milliseconds: float) -> int:
    """Convert milliseconds to seconds, rounded up; at least 0."""
    return max(0, math.ceil(milliseconds / 1000))
