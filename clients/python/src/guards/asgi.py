"""Middleware for ASGI apps, such as apps of Starlette, FastAPI, Quart and Django."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from guards import http
from guards._async import AsyncGuards
from guards._attempt import AsyncAttempt
from guards._callbacks import result_of, returned
from guards._decision import Decision
from guards._request import AnyActivity, CheckOptions, Limit, Subjects

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def too_many(decision: Decision) -> App:
    """Return an ASGI app that answers a refused decision. See guards.http.refusal.

    An endpoint of Starlette returns it. Another app calls it: await
    too_many(decision)(scope, receive, send).
    """
    status, headers, body = http.refusal(decision)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001
        encoded = [*_encoded(headers), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": encoded})
        await send({"type": "http.response.body", "body": body})

    return app


class LimitMiddleware:
    """Checks one activity for each HTTP request, before the app sees the request.

    A WebSocket passes unchecked: its endpoint asks for each message.

    guards: asks the guards.
    activity: such as "create_post".
    user_id: returns the user of a request, given its scope.
        Take the user from your own session or token, never from a header that
        the client chooses. A request without a user raises a
        ConfigurationError.
    skip: returns True for requests that pass without a check, given the scope,
        such as reads. By default, none does.
    subjects: returns the others in whose limits the request counts, such as
        {"room": room_id}, given the scope. It must check that the user is in
        that room. By default, there are none.
    limit: how high the limits are: a number, numbers by the names of limits, or
        a function that returns one of these or None, given the scope. Take it
        from the session or from the user's plan, never from the user's own input.
    options: returns further options of the check, such as the user's tier,
        given the scope.
    on_outage: "allow" or "deny", instead of the client's option; with "deny", an
        answer that the guard gave from its memory is refused, too.
    refused: returns an ASGI app, such as a Starlette response, that answers
        instead of the problem document, given the decision.
    count_if: returns whether an allowed request counts, given the response that
        is about to be sent, such as lambda response: response.status == 401. If
        it returns False, the action is given back before. If it fails, or
        returns anything but True and False, the action counts, and warn of the
        client is called. By default, every request counts.

    The functions may be async.

    The app finds the decision in scope["guards.decision"]. If the app fails,
    the action stays counted: AsyncGuards.guarded gives it back. So it does if
    the client goes away first. With count_if, options can't have request_id or
    count.
    """

    def __init__(
        self,
        app: App,
        *,
        guards: AsyncGuards[Any],
        activity: AnyActivity,
        user_id: Callable[[Scope], str | Awaitable[str | None] | None],
        skip: Callable[[Scope], bool | Awaitable[bool]] = lambda scope: False,  # noqa: ARG005
        subjects: Callable[[Scope], Subjects | Awaitable[Subjects | None] | None] = lambda scope: None,  # noqa: ARG005
        limit: Limit | Callable[[Scope], Limit | Awaitable[Limit | None] | None] | None = None,
        options: Callable[[Scope], CheckOptions | Awaitable[CheckOptions]] = lambda scope: {},  # noqa: ARG005
        refused: Callable[[Decision], App | Awaitable[App]] | None = None,
        on_outage: http.OnOutage = None,
        count_if: Callable[[http.Response], bool | Awaitable[bool]] | None = None,
    ) -> None:
        refused = refused or too_many
        functions = {"user_id": user_id, "skip": skip, "subjects": subjects, "options": options, "refused": refused}
        http.check_middleware(guards, AsyncGuards, on_outage, limit, count_if, **functions)
        self.app = app
        self.guards = guards
        self.activity = activity
        self.user_id = user_id
        self.skip = skip
        self.subjects = subjects
        self.limit = limit
        self.options = options
        self.refused = refused
        self.on_outage = on_outage
        self.count_if = count_if

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it to the app."""
        if scope["type"] != "http" or http.skipped(await result_of(self.skip(scope))):
            await self.app(scope, receive, send)
            return
        user = http.named_user(await result_of(self.user_id(scope)), self.activity)
        further = await result_of(self.options(scope))
        limit = await result_of(self.limit(scope)) if callable(self.limit) else self.limit
        others = await result_of(self.subjects(scope))
        options = http.check_options(further, others, self.on_outage, self.count_if, limit)
        if self.count_if is None:
            decision = await self.guards.check(self.activity, user_id=user, **options)
        else:
            attempt = await self.guards._counted(self.activity, user, options)
            decision = attempt.decision
            if decision.allowed:
                receive, send = counting([(attempt, self.count_if)], receive, send)
        scope["guards.decision"] = decision
        answer = self.app if decision.allowed else await result_of(self.refused(decision))
        if not callable(answer):
            raise returned("refused", answer, "an ASGI app")
        await answer(scope, receive, adding(http.rate_limit_headers(decision), send))


Counted = tuple[AsyncAttempt, Callable[[http.Response], Any]]
"""An attempt, and the count_if that decides about it."""


def counting(attempts: list[Counted], receive: Receive, send: Send) -> tuple[Receive, Send]:
    """Return a receive and a send that ask each count_if before the headers of the response are sent.

    If the client has gone away before, none is asked, because an app that stops
    early can look like a success.
    """
    is_gone = False

    async def received() -> Message:
        nonlocal is_gone
        message = await receive()
        is_gone = is_gone or message["type"] == "http.disconnect"
        return message

    async def asking(message: Message) -> None:
        if message["type"] == "http.response.start" and not is_gone:
            for attempt, count_if in attempts:
                await attempt._give_back_unless(count_if, http.Response(message["status"]))
            attempts.clear()
        await send(message)

    return received, asking


def adding(headers: Mapping[str, str], send: Send) -> Send:
    """Return a send that adds headers to the response, unless it has them."""

    async def add(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = list(message.get("headers", ()))
            names = {bytes(name).lower() for name, _ in own}
            own += [pair for pair in _encoded(headers) if pair[0] not in names]
            message = {**message, "headers": own}
        await send(message)

    return add


def _encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(), value.encode()) for name, value in headers.items()]
