"""A decorator and a response for Flask."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import flask

from guards import http
from guards._attempt import Attempt
from guards._callbacks import is_async, must_not_be_async, not_async
from guards._client import Guards
from guards._decision import Decision
from guards._request import A, CheckOptions, GuardActivity, Limit, Subjects

View = Callable[..., Any]


def too_many(decision: Decision) -> flask.Response:
    """Return the response for a refused decision, from a view that calls guards.check itself. See guards.http.refusal."""
    status, headers, body = http.refusal(decision)
    return flask.Response(body, status, headers)


def limit(
    guards: Guards[A],
    activity: A | GuardActivity,
    *,
    user_id: Callable[[], str | None],
    skip: Callable[[], bool] = lambda: False,
    subjects: Callable[[], Subjects | None] = lambda: None,
    limit: Limit | Callable[[], Limit | None] | None = None,
    options: Callable[[], CheckOptions] = lambda: {},  # noqa: PIE807
    refused: Callable[[Decision], Any] | None = None,
    on_outage: http.OnOutage = None,
    count_if: http.CountIf | None = None,
) -> Callable[[View], View]:
    """Return a decorator of a view that checks the activity first. Put it below @app.post.

    user_id returns the user of flask.request. Take the user from your own
    session or token, never from a header that the client chooses. A request
    without a user raises a ConfigurationError. skip returns True for requests
    that pass without a check. subjects returns the others in whose limits the
    request counts, such as {"room": room_id}. It must check that the user is in
    that room. limit says how high the limits are: a number, numbers by the
    names of limits, or a function that returns one of these or None. Take it
    from the session or from the user's plan, never from the user's own input.
    options returns further options of the check, such as the user's tier.
    refused returns the response to a refused request, instead of the problem
    document; without a status of its own, it is 429, or 503 in an outage. A
    response with 200 counts as one without a status, but not (response, 200).
    on_outage is "allow" or "deny", instead of the client's option; with "deny",
    an answer that the guard gave from its memory is refused, too. count_if
    returns whether an allowed request counts, given the response, such as
    lambda response: response.status == 401. If it returns False, the action is
    given back before the response is sent. If it fails, or returns anything but
    True and False, the action counts, and warn of the client is called. With
    it, options can't have request_id or count. None of these functions may be
    async. The view may be.

    The view finds the decision in flask.g.guards_decision. If the view fails,
    the action stays counted: Guards.guarded gives it back. Only with count_if,
    Flask's response to the error decides.
    """
    answer = refused or too_many
    functions: dict[str, Any] = {"user_id": user_id, "skip": skip, "subjects": subjects, "options": options, "refused": answer}
    http.check_middleware(guards, Guards, on_outage, limit, count_if, **functions)
    for name, function in {**functions, "limit": limit, "count_if": count_if}.items():
        if callable(function) and is_async(function):
            raise must_not_be_async(f"The option {name}")

    def decorate(view: View) -> View:
        @wraps(view)
        def checked(*args: Any, **kwargs: Any) -> Any:
            if http.skipped(not_async(skip(), "The option skip")):
                return flask.current_app.ensure_sync(view)(*args, **kwargs)
            user = http.named_user(not_async(user_id(), "The option user_id"), activity)
            others = not_async(subjects(), "The option subjects")
            number = not_async(limit() if callable(limit) else limit, "The option limit")
            further = http.check_options(not_async(options(), "The option options"), others, on_outage, count_if, number)
            if count_if is None:
                decision = guards.check(activity, user_id=user, **further)
            else:
                decision = _decided_at_the_end(guards._counted(activity, user, further), count_if)
            flask.g.guards_decision = decision
            add = _adding(http.rate_limit_headers(decision))
            flask.after_this_request(add)  # if the view fails, to the response of Flask or of an error handler
            if decision.allowed:
                return add(flask.make_response(flask.current_app.ensure_sync(view)(*args, **kwargs)))
            value = not_async(answer(decision), "The option refused")
            response = flask.make_response(value)
            if not _has_status(value):  # Flask would give it the status 200
                response.status_code = http.refusal(decision).status
            return add(response)

        return checked

    return decorate


def _adding(headers: Mapping[str, str]) -> Callable[[flask.Response], flask.Response]:
    """Return a function that adds headers to a response, unless it has them."""

    def add(response: flask.Response) -> flask.Response:
        for name, value in headers.items():
            response.headers.setdefault(name, value)
        return response

    return add


def _has_status(value: Any) -> bool:
    """Report whether what a view returns has a status of its own. A body has none, and (body, headers) neither.

    A response that nobody gave a status has 200. To mean 200, a view returns (response, 200).
    """
    if isinstance(value, tuple):
        return isinstance(value[1], int | str) or _has_status(value[0])
    return callable(value) and getattr(value, "status_code", None) != 200  # a response, or another WSGI application


def _decided_at_the_end(attempt: Attempt, count_if: http.CountIf) -> Decision:
    """Return the decision of an attempt. If it is allowed, the response decides at last, even the one of an error handler.

    If the app's own after_request fails, Flask makes another response, about
    which nobody is asked any more.
    """
    is_over = False

    def ask(response: flask.Response) -> flask.Response:
        nonlocal is_over
        if not is_over:
            is_over = True
            attempt._give_back_unless(count_if, http.Response(response.status_code))
        return response

    if attempt.decision.allowed:
        flask.after_this_request(ask)
    return attempt.decision
