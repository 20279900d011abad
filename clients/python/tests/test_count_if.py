"""count_if of the middleware: the response decides whether a request counts."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Annotated, Any

import fastapi
import flask
import httpx
import pytest
from starlette.responses import PlainTextResponse, StreamingResponse

from guards import AsyncGuards, ConfigurationError, Guards, GuardsError
from guards import fastapi as guards_fastapi
from guards import flask as guards_flask
from guards.asgi import LimitMiddleware
from tests.conftest import PATIENT
from tests.server import Server, answer, function_error, lambda_error, refuse
from tests.test_mistakes import RAISED, VALUES, Mistake, send

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::pytest.PytestUnraisableExceptionWarning")

Handler = Callable[[], int]  # returns the status of the response, or raises an error
Post = Callable[..., httpx.Response]


@pytest.fixture(autouse=True)
def _unawaited() -> Iterator[None]:
    """Let coroutines that nobody awaits end in this module, whose warnings are ignored."""
    yield
    gc.collect()


class AbortError(Exception):
    """The app's own error handler answers it with 401."""


def by_flask(guards: Any, options: dict[str, Any], handler: Handler) -> httpx.Response:
    app = flask.Flask("test")
    app.register_error_handler(AbortError, lambda _: ("no", 401))

    @app.post("/post")
    @guards_flask.limit(guards, "create_post", user_id=lambda: "u1", **options)
    def post() -> tuple[str, int]:
        return "done", handler()

    with httpx.Client(transport=httpx.WSGITransport(app, raise_app_exceptions=False), base_url="http://app") as client:
        return client.post("/post")


def by_fastapi(guards: Any, options: dict[str, Any], handler: Handler) -> httpx.Response:
    app = fastapi.FastAPI()
    app.add_exception_handler(AbortError, lambda *_: PlainTextResponse("no", 401))
    guards_fastapi.install(app)
    limit = guards_fastapi.limit(guards, "create_post", user_id=lambda: "u1", **options)
    app.post("/post", dependencies=[fastapi.Depends(limit)])(lambda: PlainTextResponse("done", handler()))
    return send(app)


def by_asgi(guards: Any, options: dict[str, Any], handler: Handler) -> httpx.Response:
    app = fastapi.FastAPI()
    app.add_exception_handler(AbortError, lambda *_: PlainTextResponse("no", 401))
    app.add_middleware(LimitMiddleware, guards=guards, activity="create_post", user_id=lambda _: "u1", **options)
    app.post("/post")(lambda: PlainTextResponse("done", handler()))
    return send(app)


MIDDLEWARE = pytest.mark.parametrize("middleware", [by_flask, by_fastapi, by_asgi])
COUNTS_401: dict[str, Any] = {"count_if": lambda response: response.status == 401}


class Sent(SimpleNamespace):
    """What a middleware did with one request."""

    status: int
    ops: list[str]
    warnings: list[GuardsError]


def request(server: Server, middleware: Post, options: dict[str, Any], handler: Handler) -> Sent:
    server.received.clear()
    warnings: list[GuardsError] = []
    guards = (Guards if middleware is by_flask else AsyncGuards)(**PATIENT, warn=warnings.append)
    status = middleware(guards, options, handler).status_code
    guards.close()
    return Sent(status=status, ops=[received.event["op"] for received in server.received], warnings=warnings)


def answers(status: int) -> Handler:
    return lambda: status


def fails(error: Exception) -> Handler:
    def handler() -> int:
        raise error

    return handler


def test_flask_asks_once_even_if_an_after_request_fails(server: Server) -> None:
    app = flask.Flask("test")

    @app.after_request
    def fail(response: flask.Response) -> flask.Response:
        raise AbortError if response.status_code == 401 else RuntimeError

    @app.post("/post")
    @guards_flask.limit(Guards(**PATIENT), "create_post", user_id=lambda: "u1", **COUNTS_401)
    def post() -> tuple[str, int]:
        return "no", 401

    with httpx.Client(transport=httpx.WSGITransport(app, raise_app_exceptions=False), base_url="http://app") as client:
        assert client.post("/post").status_code == 500
    assert [received.event["op"] for received in server.received] == ["check"]


@MIDDLEWARE
def test_the_status_of_the_response_decides(server: Server, middleware: Post) -> None:
    for status, ops in ((401, ["check"]), (200, ["check", "release"]), (404, ["check", "release"]), (500, ["check", "release"])):
        assert request(server, middleware, COUNTS_401, answers(status)) == Sent(status=status, ops=ops, warnings=[])
    check, release = (received.event for received in server.received)
    assert (release["requestId"], release["count"]) == (check["requestId"], 1)


@MIDDLEWARE
def test_without_it_every_request_counts(server: Server, middleware: Post) -> None:
    assert request(server, middleware, {}, lambda: 200).ops == ["check"]
    assert request(server, middleware, {"count_if": None}, lambda: 200).ops == ["check"]


@MIDDLEWARE
def test_the_action_is_given_back_before_the_response(server: Server, middleware: Post) -> None:
    """At once, so that the next request of the same user does not find it counted."""
    asked: list[list[str]] = []

    def count_if(_: Any) -> bool:
        asked.append([received.event["op"] for received in server.received])
        return False

    assert request(server, middleware, {"count_if": count_if}, lambda: 200).ops == ["check", "release"]
    assert asked == [["check"]]


@MIDDLEWARE
def test_a_refused_request_is_not_asked_about(server: Server, middleware: Post) -> None:
    asked: list[Any] = []
    for step, options, status in ((refuse(), {}, 429), (answer(reason="unavailable", at=None), {"on_outage": "deny"}, 503)):
        server.does(step)
        sent = request(server, middleware, {"count_if": asked.append, **options}, lambda: 200)
        assert (sent.status, sent.ops, asked) == (status, ["check"], [])
    server.does(answer())
    assert request(server, middleware, {"count_if": asked.append, "skip": lambda *_: True}, lambda: 200).ops == []
    assert asked == []


@MIDDLEWARE
def test_what_was_not_counted_is_not_given_back(server: Server, middleware: Post) -> None:
    for step in (answer(reason="duplicate", at=None, requestId=None), lambda_error(500, "ServiceException")):
        server.does(step)
        sent = request(server, middleware, COUNTS_401 | {"on_outage": "allow"}, lambda: 200)
        assert (sent.status, set(sent.ops)) == (200, {"check"})


@MIDDLEWARE
def test_a_handler_that_fails(server: Server, middleware: Post) -> None:
    assert request(server, middleware, COUNTS_401, fails(AbortError())) == Sent(status=401, ops=["check"], warnings=[])
    unhandled = request(server, middleware, {"count_if": lambda _: False}, fails(RuntimeError()))
    # Flask answers inside of the decorator. With ASGI, the server or an outer middleware answers.
    assert (unhandled.status, unhandled.ops) == (500, ["check", "release"] if middleware is by_flask else ["check"])


@MIDDLEWARE
def test_a_count_if_that_fails_counts(server: Server, middleware: Post) -> None:
    for kind, make in {**VALUES, **RAISED}.items():
        if kind in ("True", "coroutine"):
            continue
        sent = request(server, middleware, {"count_if": lambda _, make=make: make()}, lambda: 200)
        assert (sent.status, sent.ops) == (200, ["check"]), kind
        (warning,) = sent.warnings
        assert str(warning).startswith("the option count_if raised "), kind
        assert str(warning).endswith(" for create_post")
    (warning,) = request(server, middleware, {"count_if": lambda _: 1}, lambda: 200).warnings
    assert str(warning.__cause__) == "The option count_if returned a value of the type int, want True or False."
    (warning,) = request(server, middleware, {"count_if": lambda _: RAISED["raises Mistake"]()}, lambda: 200).warnings
    assert isinstance(warning.__cause__, Mistake)


@pytest.mark.parametrize("counts", [True, False])
def test_count_if_may_be_async_but_not_in_flask(server: Server, counts: bool) -> None:
    async def count_if(_: Any) -> bool:
        await asyncio.sleep(0)
        return counts

    for middleware in (by_fastapi, by_asgi):
        for form in (count_if, lambda response: count_if(response)):
            assert request(server, middleware, {"count_if": form}, lambda: 200).ops == ["check", *([] if counts else ["release"])]
    with pytest.raises(ConfigurationError, match=r"^The option count_if is async, want a function that is not async\.$"):
        guards_flask.limit(Guards(**PATIENT), "create_post", user_id=lambda: "u1", count_if=count_if)  # type: ignore[arg-type]
    hidden = request(server, by_flask, {"count_if": lambda response: count_if(response)}, lambda: 200)
    assert (hidden.ops, len(hidden.warnings)) == (["check"], 1)


@MIDDLEWARE
def test_an_id_of_the_caller_does_not_go_with_it(server: Server, middleware: Post) -> None:
    """A repeat of an id would not be counted, so it would be a guess for nothing."""
    for name, value in (("request_id", "r1"), ("count", 2), ("partial", True), ("job", {})):
        further = {"options": lambda *_, given={name: value}: given}
        sent = request(server, middleware, COUNTS_401 | further, lambda: 200)
        assert (sent.status, sent.ops) == (500, [])
    further = COUNTS_401 | {"options": lambda *_: {"tier": "t", "request_id": None}}
    assert request(server, middleware, further, lambda: 200).ops == ["check", "release"]


@MIDDLEWARE
def test_a_wrong_option_is_an_error_at_once(server: Server, middleware: Post) -> None:
    guards = (Guards if middleware is by_flask else AsyncGuards)(**PATIENT)

    def make(guards: Any, count_if: Any) -> None:
        if middleware is by_asgi:  # FastAPI makes it with the first request
            LimitMiddleware(run_asgi, guards=guards, activity="create_post", user_id=lambda _: "u1", count_if=count_if)  # type: ignore[arg-type]
        else:
            middleware(guards, {"count_if": count_if}, lambda: 200)

    for value in (401, "401", [401], True):
        with pytest.raises(ConfigurationError, match=r"^The option count_if is .*, want a function\.$"):
            make(guards, value)
    with pytest.raises(ConfigurationError, match="needs a client of this package"):
        make(SimpleNamespace(check=guards.check), lambda _: True)
    assert server.received == []
    guards.close()


@MIDDLEWARE
def test_a_release_that_fails_goes_to_warn(server: Server, middleware: Post) -> None:
    server.does(answer(), function_error("Unavailable", "m"))
    sent = request(server, middleware, COUNTS_401, lambda: 200)
    assert (sent.status, len(sent.warnings)) == (200, 1)


def test_fastapi_needs_install(server: Server) -> None:
    app = fastapi.FastAPI()
    limit = guards_fastapi.limit(AsyncGuards(**PATIENT), "create_post", user_id=lambda: "u1", **COUNTS_401)
    app.post("/post", dependencies=[fastapi.Depends(limit)])(lambda: "done")

    async def main() -> None:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:
            with pytest.raises(ConfigurationError, match=r"call install\(app\) of guards.fastapi\.$"):
                await client.post("/post")

    asyncio.run(main())
    assert server.received == []


def test_fastapi_asks_for_each_activity(server: Server) -> None:
    app = fastapi.FastAPI()
    guards_fastapi.install(app)
    guards = AsyncGuards(**PATIENT)

    def account(x_account: Annotated[str, fastapi.Header()] = "a7") -> str:
        return x_account

    kept = guards_fastapi.limit(guards, "pin", user_id=account, count_if=lambda _: True)
    given = guards_fastapi.limit(guards, "create_post", user_id=account, count_if=lambda response: response.status != 200)
    app.post("/post", dependencies=[fastapi.Depends(kept), fastapi.Depends(given)])(lambda: "done")
    assert send(app).status_code == 200
    sent = [(received.event["op"], received.event["activity"]) for received in server.received]
    assert sent == [("check", "pin"), ("check", "create_post"), ("release", "create_post")]
    guards.close()


def test_flask_asks_about_an_error_of_http(server: Server) -> None:
    assert request(server, by_flask, COUNTS_401, lambda: flask.abort(401)).ops == ["check"]
    assert request(server, by_flask, COUNTS_401, lambda: flask.abort(404)).ops == ["check", "release"]


def run_asgi(app: Any, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Run an ASGI app with what the server tells it, and return what it sent."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app({"type": "http", "method": "POST", "path": "/post", "headers": []}, receive, send))
    return sent


@pytest.mark.parametrize("gone", [True, False])
def test_a_client_that_went_away_counts(server: Server, gone: bool) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        assert message["type"] == ("http.disconnect" if gone else "http.request")
        await PlainTextResponse("done")(scope, receive, send)

    guards = AsyncGuards(**PATIENT)
    limited = LimitMiddleware(app, guards=guards, activity="create_post", user_id=lambda _: "u1", count_if=lambda _: False)
    run_asgi(limited, [{"type": "http.disconnect" if gone else "http.request"}])
    assert [received.event["op"] for received in server.received] == ["check", *([] if gone else ["release"])]
    guards.close()


def test_an_app_that_sends_no_response_counts(server: Server) -> None:
    async def app(_: Any, __: Any, ___: Any) -> None: ...

    guards = AsyncGuards(**PATIENT)
    run_asgi(LimitMiddleware(app, guards=guards, activity="create_post", user_id=lambda _: "u1", count_if=lambda _: False), [])
    assert [received.event["op"] for received in server.received] == ["check"]
    guards.close()


def test_a_stream_is_asked_about_once_and_at_its_beginning(server: Server) -> None:
    during: list[list[str]] = []

    async def body() -> Any:
        for part in ("a", "b"):
            during.append([received.event["op"] for received in server.received])
            yield part

    app = fastapi.FastAPI()
    guards = AsyncGuards(**PATIENT)
    app.add_middleware(LimitMiddleware, guards=guards, activity="create_post", user_id=lambda _: "u1", count_if=lambda _: False)
    app.post("/post")(lambda: StreamingResponse(body()))
    assert send(app).text == "ab"
    assert during[-1] == ["check", "release"]
    assert len(server.received) == 2
    guards.close()
