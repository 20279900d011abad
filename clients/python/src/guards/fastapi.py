"""A dependency and a response for FastAPI."""

# Annotations are not postponed here: FastAPI reads the inner function's annotations.
import inspect
import json
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.requests import HTTPConnection

from guards import http
from guards._async import AsyncGuards
from guards._callbacks import result_of
from guards._decision import Decision
from guards._errors import ConfigurationError
from guards._request import A, CheckOptions, GuardActivity, Limit
from guards.asgi import App, Counted, Receive, Scope, Send, adding, counting

_ATTEMPTS = "guards.attempts"  # of the scope: attempts whose count_if waits for the response
_HEADERS = "guards.headers"  # of the scope: what the response gets


def too_many(decision: Decision) -> Response:
    """Return the response for a refused decision, from an endpoint that calls guards.check itself. See guards.http.refusal."""
    status, headers, body = http.refusal(decision)
    return Response(body, status, headers)


class Refused(HTTPException):
    """The request was refused. install makes the app answer it with the problem document."""

    decision: Decision

    def __init__(self, decision: Decision) -> None:
        refusal = http.refusal(decision)
        headers = {name: value for name, value in refusal.headers.items() if name != "Content-Type"}
        super().__init__(refusal.status, detail=json.loads(refusal.body), headers=headers)
        self.decision = decision


def install(app: FastAPI) -> None:
    """Let the app answer refused requests with the problem document, and let count_if of limit see responses.

    It also adds the RateLimit headers to errors, and to each Response that an
    endpoint returns. Without it, they have none, the document is in the field
    "detail" of FastAPI's own answer, and count_if is an error. For another
    answer, add an exception handler of your own for Refused.
    """

    async def answer(request: Request, error: Exception) -> Response:  # noqa: ARG001
        assert isinstance(error, Refused)  # noqa: S101
        return too_many(error.decision)

    app.add_exception_handler(Refused, answer)
    app.add_middleware(_Responses)


class _Responses:
    """Shows responses to each count_if of a request, and adds headers. The scope has what the dependencies leave there."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            attempts: list[Counted] = []
            headers: dict[str, str] = {}
            scope[_ATTEMPTS], scope[_HEADERS] = attempts, headers
            receive, send = counting(attempts, receive, adding(headers, send))
        await self.app(scope, receive, send)


async def _request(connection: HTTPConnection) -> Request:
    """Return the request. A WebSocket is an error here, before it is one of what needs a request."""
    if not isinstance(connection, Request):
        raise ConfigurationError("limit can't check a WebSocket: let its endpoint ask for each message.")
    return connection


def _fixed(value: Any) -> Callable[..., Any]:
    """Return a dependency whose value is always the same. It is async, because FastAPI runs any other in a thread."""

    async def dependency() -> Any:
        return value

    return dependency


def limit(
    guards: AsyncGuards[A],
    activity: A | GuardActivity,
    *,
    user_id: Callable[..., Any],
    subjects: Callable[..., Any] = lambda: None,
    limit: Limit | Callable[..., Any] | None = None,
    skip: Callable[[Request], bool | Awaitable[bool]] = lambda request: False,  # noqa: ARG005
    options: Callable[[Request], CheckOptions | Awaitable[CheckOptions]] = lambda request: {},  # noqa: ARG005
    on_outage: http.OnOutage = None,
    count_if: Callable[[http.Response], bool | Awaitable[bool]] | None = None,
) -> Callable[..., Awaitable[Decision | None]]:
    """Return a dependency that checks the activity. Its value is the decision, or None for a skipped request.

    user_id is itself a dependency, such as def user_id(user: Annotated[User,
    Depends(current_user)]) -> str. Take the user from your own session or
    token, never from a header that the client chooses. A request without a
    user raises a ConfigurationError. skip returns True for requests that pass
    without a check. subjects is a dependency, too, and returns the others in
    whose limits the request counts, such as {"room": room_id}. It must check
    that the user is in that room. limit says how high the limits are: a number,
    numbers by the names of limits, or a dependency that returns one of these or
    None. Take it from the session or from the user's plan, never from the
    user's own input. options returns further options of the check, such as the
    user's tier. Each of these functions may be async. on_outage is "allow" or
    "deny", instead of the client's option; with "deny", an answer that the
    guard gave from its memory is refused, too.

    count_if returns whether an allowed request counts, given the response, such
    as lambda response: response.status == 401. It may be async, and needs
    install. If it returns False, the action is given back before the response
    is sent. If it fails, or returns anything but True and False, the action
    counts, and warn of the client is called. With it, options can't have
    request_id or count.

    If the endpoint fails, the action stays counted: AsyncGuards.guarded gives
    it back.
    """
    functions = {"user_id": user_id, "subjects": subjects, "skip": skip, "options": options}
    http.check_middleware(guards, AsyncGuards, on_outage, limit, count_if, **functions)
    number_of = limit if callable(limit) else _fixed(limit)
    for name, dependency in (("user_id", user_id), ("subjects", subjects), ("limit", number_of)):
        for parameter in inspect.signature(dependency).parameters.values():
            if parameter.annotation is parameter.empty and parameter.default is parameter.empty:
                raise ConfigurationError(f'The parameter "{parameter.name}" of {name} needs a type, such as Request.')

    async def check(
        request: Annotated[Any, Depends(_request)],
        response: Response,
        user: Any = Depends(user_id),  # noqa: B008
        others: Any = Depends(subjects),  # noqa: B008
        number: Any = Depends(number_of),  # noqa: B008
    ) -> Decision | None:
        if http.skipped(await result_of(skip(request))):
            return None
        attempts: list[Counted] | None = request.scope.get(_ATTEMPTS)
        if count_if is not None and attempts is None:
            raise ConfigurationError("count_if can't see the response: call install(app) of guards.fastapi.")
        user = http.named_user(await result_of(user), activity)
        given, others, number = await result_of(options(request)), await result_of(others), await result_of(number)
        further = http.check_options(given, others, on_outage, count_if, number)
        if count_if is None or attempts is None:
            decision = await guards.check(activity, user_id=user, **further)
        else:
            attempt = await guards._counted(activity, user, further)
            decision = attempt.decision
            if decision.allowed:
                attempts.append((attempt, count_if))
        headers = http.rate_limit_headers(decision)
        kept: dict[str, str] = request.scope.get(_HEADERS, {})
        kept.clear()  # those of an earlier limit
        kept.update(headers)
        if not decision.allowed:
            raise Refused(decision)
        response.headers.update(headers)
        return decision

    return check
