"""The answers of the middleware to an app's own users."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import fastapi
import flask
import httpx
import pytest
from starlette.responses import PlainTextResponse
from werkzeug.serving import make_server

from guards import AsyncGuards, ConfigurationError, Decision, GuardActivity, Guards, LimitState
from guards import fastapi as guards_fastapi
from guards import flask as guards_flask
from guards.asgi import LimitMiddleware
from guards.http import rate_limit_headers, refusal
from tests.conftest import PATIENT
from tests.server import Server, answer, function_error, lambda_error, refuse

POLICY = '"create_post";q=10;w=60'
BROKEN = "broken"  # for this user, each app fails after the check


@pytest.fixture
def flask_get() -> Iterator[Callable[..., httpx.Response]]:
    """Sends POST /post to a Flask app that a real server serves."""
    servers: list[Any] = []

    def get(options: dict[str, Any], limited: dict[str, Any], user: str | None = "u1") -> httpx.Response:
        app = flask.Flask("test")
        guards = Guards(**PATIENT, warn=lambda _: None, **options)

        @app.post("/post")
        @guards_flask.limit(guards, "create_post", user_id=lambda: flask.request.headers.get("X-Test-User"), **limited)
        def post() -> tuple[str, int]:
            decision = flask.g.get("guards_decision")
            if user == BROKEN:
                raise RuntimeError
            return f"created {decision.reason if decision else 'unchecked'}", 201

        server = make_server("127.0.0.1", 0, app, threaded=True)
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            return httpx.post(
                f"http://127.0.0.1:{server.port}/post", headers={"X-Test-User": user} if user else {}, trust_env=False
            )
        finally:
            guards.close()

    yield get
    for server in servers:
        server.shutdown()
        server.server_close()


def send(app: Any, user: str | None, path: str = "/post") -> httpx.Response:
    async def main() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:
            return await client.post(path, headers={"X-Test-User": user} if user else {})

    return asyncio.run(main())


def fastapi_get(options: dict[str, Any], limited: dict[str, Any], user: str | None = "u1") -> httpx.Response:
    """Send POST /post to a FastAPI app."""
    app = fastapi.FastAPI()
    guards = AsyncGuards(**PATIENT, warn=lambda _: None, **options)

    def user_id(x_test_user: Annotated[str | None, fastapi.Header()] = None) -> str | None:
        return x_test_user

    refused = limited.pop("refused", None)
    if refused is None:
        guards_fastapi.install(app)
    else:
        app.add_exception_handler(guards_fastapi.Refused, lambda _, error: refused(error.decision))
    limit = guards_fastapi.limit(guards, "create_post", user_id=user_id, **limited)

    @app.post("/post", status_code=201)
    async def post(decision: Decision | None = fastapi.Depends(limit)) -> str:  # noqa: B008
        if user == BROKEN:
            raise RuntimeError
        return f"created {decision.reason if decision else 'unchecked'}"

    response = send(app, user)
    guards.close()
    return response


def asgi_get(options: dict[str, Any], limited: dict[str, Any], user: str | None = "u1") -> httpx.Response:
    """Send POST /post to an ASGI app."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        decision = scope.get("guards.decision")
        if user == BROKEN:
            raise RuntimeError
        response = PlainTextResponse(f"created {decision.reason if decision else 'unchecked'}", 201)
        await response(scope, receive, send)

    async def user_id(scope: Any) -> str | None:
        return str(dict(scope["headers"]).get(b"x-test-user", b"").decode())

    guards = AsyncGuards(**PATIENT, warn=lambda _: None, **options)
    response = send(LimitMiddleware(app, guards=guards, activity="create_post", user_id=user_id, **limited), user)
    guards.close()
    return response


Get = Callable[..., httpx.Response]


@pytest.fixture(params=["flask", "fastapi", "asgi"])
def get(request: pytest.FixtureRequest, flask_get: Get) -> Get:
    return {"flask": flask_get, "fastapi": fastapi_get, "asgi": asgi_get}[request.param]


def test_an_allowed_request(server: Server, get: Get) -> None:
    server.does(answer(at=1_700_000_000_250, resetAt=1_700_000_059_751))
    response = get({}, {})
    assert response.status_code == 201
    assert "created ok" in response.text
    assert response.headers["RateLimit-Policy"] == POLICY
    assert response.headers["RateLimit"] == '"create_post";r=9;t=60'
    assert server.received[0].event["userId"] == "u1"


def test_a_refused_request(server: Server, get: Get) -> None:
    server.does(refuse(resetAt=1_000))
    response = get({}, {})
    assert response.status_code == 429
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["Retry-After"] == "2"
    assert response.headers["RateLimit"] == '"create_post";r=0;t=0'
    assert response.headers["RateLimit-Policy"] == POLICY
    problem = {
        "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
        "title": "Too Many Requests",
        "status": 429,
        "violated-policies": ["create_post"],
    }
    fields = {"allowed": False, "reason": "limited", "userId": "u1", "activity": "create_post", "op": "check", "limit": 10}
    figures = {"activityCount": 10, "remaining": 0, "waitTime": 1500, "resetAt": 1_000, "granted": 0, "message": "Too many."}
    assert response.json() == {**problem, **fields, **figures}
    assert list(response.json())[:5] == ["type", "title", "status", "violated-policies", "allowed"]
    assert int(response.headers["Content-Length"]) == len(response.content)


def test_a_blocked_request(server: Server, get: Get) -> None:
    server.does(refuse(reason="blocked", limit=None, activityCount=None, remaining=None))
    response = get({}, {})
    assert response.status_code == 429
    assert response.headers["Retry-After"] == "2"
    assert "RateLimit" not in response.headers
    problem = response.json()
    assert (problem["title"], problem["reason"]) == ("Too Many Requests", "blocked")
    assert "type" not in problem
    assert "violated-policies" not in problem


def test_a_handler_that_fails_gives_nothing_back(server: Server, get: Get) -> None:
    assert get({}, {}, BROKEN).status_code == 500
    assert [received.event["op"] for received in server.received] == ["check"]


def test_an_apps_own_answer_to_a_refused_request(server: Server, get: Get) -> None:
    server.does(refuse(), refuse())

    def refused(decision: Decision) -> Any:
        body, status = f"slow down, {decision.wait_time} ms", 430
        return flask.Response(body, status) if flask.has_app_context() else PlainTextResponse(body, status)

    response = get({}, {"refused": refused})
    assert (response.status_code, response.text) == (430, "slow down, 1500 ms")


def test_an_outage(server: Server, get: Get) -> None:
    server.does(lambda_error(500, "ServiceException"))
    assert "created unavailable" in get({}, {}).text
    response = get({"on_outage": "deny"}, {})
    assert response.status_code == 503
    assert response.headers["Retry-After"] == "1"
    assert response.headers["content-type"] == "application/problem+json"
    assert "RateLimit" not in response.headers
    problem = response.json()
    assert (problem["title"], problem["status"], problem["detail"]) == ("Unavailable", 503, "Please try again later.")


def test_a_missing_user_does_not_open_the_door(server: Server, get: Get) -> None:
    response = get({}, {}, user=None)
    assert response.status_code == 500
    assert server.received == []


def test_a_mistake_does_not_open_the_door(server: Server, get: Get) -> None:
    server.does(lambda_error(404, "ResourceNotFoundException"))
    assert get({}, {}).status_code == 500


def test_a_skipped_request(server: Server, get: Get) -> None:
    response = get({}, {"skip": lambda *_: True}, user=None)
    assert response.status_code == 201
    assert "created unchecked" in response.text
    assert "RateLimit" not in response.headers
    assert server.received == []


def later(value: Any) -> Callable[..., Any]:
    """Return an async function."""

    async def function(*_: Any) -> Any:
        return value

    return function


def hidden(value: Any) -> Callable[..., Any]:
    """Return a function that is not async, but returns a coroutine."""
    return lambda *_: later(value)()


class AsyncObject:
    """An object that is an async function."""

    def __init__(self, value: Any) -> None:
        self.value = value

    async def __call__(self, *_: Any) -> Any:
        return self.value


ASYNC = pytest.mark.parametrize("form", [later, hidden, AsyncObject])


@ASYNC
@pytest.mark.parametrize("skipped", [True, False])
def test_async_functions_are_awaited(server: Server, form: Callable[..., Any], skipped: bool) -> None:
    for get in (asgi_get, fastapi_get):
        server.received.clear()
        server.does(answer(), refuse())
        limited = {"skip": form(skipped), "options": form({"tier": "premium"})}
        assert ("created unchecked" if skipped else "created ok") in get({}, limited).text
        assert [received.event.get("tier") for received in server.received] == ([] if skipped else ["premium"])
    server.does(refuse())
    response = asgi_get({}, {"refused": form(PlainTextResponse("slow down", 430))})
    assert (response.status_code, response.text) == (430, "slow down")


@ASYNC
def test_fastapi_awaits_any_user(server: Server, form: Callable[..., Any]) -> None:
    guards = AsyncGuards(**PATIENT)
    app = fastapi.FastAPI()
    function = form("u1")

    def user_id() -> Any:
        return function()

    app.post("/post", dependencies=[fastapi.Depends(guards_fastapi.limit(guards, "create_post", user_id=user_id))])(lambda: "ok")
    assert send(app, None).status_code == 200
    assert server.received[0].event["userId"] == "u1"
    guards.close()


@pytest.mark.parametrize("option", ["user_id", "skip", "options", "refused"])
def test_flask_takes_no_async_functions(server: Server, option: str) -> None:
    guards = Guards(**PATIENT)
    app = flask.Flask("test")
    app.testing = True
    user: dict[str, Any] = {"user_id": lambda: "u1"}
    message = f"^The option {option} is async, want a function that is not async.$"
    for form in (later, AsyncObject):
        with pytest.raises(ConfigurationError, match=message):
            guards_flask.limit(guards, "create_post", **user | {option: form({})})
    server.does(refuse())
    app.post("/post")(guards_flask.limit(guards, "create_post", **user | {option: hidden({})})(lambda: "ok"))
    with pytest.raises(ConfigurationError, match=message):
        app.test_client().post("/post")
    assert len(server.received) == (1 if option == "refused" else 0)
    guards.close()


def test_a_client_of_the_other_kind_is_an_error_at_once() -> None:
    for_functions: Any = Guards()
    for_asyncio: Any = AsyncGuards()
    want = r"^The option guards is a client of the class {}, want {}\.$"
    with pytest.raises(ConfigurationError, match=want.format("AsyncGuards", "Guards")):
        guards_flask.limit(for_asyncio, "create_post", user_id=lambda: "u1")
    with pytest.raises(ConfigurationError, match=want.format("Guards", "AsyncGuards")):
        guards_fastapi.limit(for_functions, "create_post", user_id=lambda: "u1")
    with pytest.raises(ConfigurationError, match=want.format("Guards", "AsyncGuards")):
        LimitMiddleware(fastapi.FastAPI(), guards=for_functions, activity="create_post", user_id=lambda _: "u1")


def test_further_options_of_the_check(server: Server, get: Get) -> None:
    response = get({}, {"options": lambda *_: {"tier": "premium", "count": 2}})
    assert response.headers["RateLimit"].startswith('"create_post";r=9')
    assert "RateLimit-Policy" not in response.headers  # a tier can have another window
    assert server.received[0].event["tier"] == "premium"
    assert server.received[0].event["count"] == 2


def test_an_exempt_request_has_no_headers(server: Server, get: Get) -> None:
    server.does(answer(reason="bypassed", limit=None, remaining=None, resetAt=None, activityCount=None, at=None))
    response = get({}, {})
    assert response.status_code == 201
    assert not [name for name in response.headers if name.lower().startswith("ratelimit")]


def test_a_refusal_without_figures(server: Server, get: Get) -> None:
    server.does(function_error("RateLimitExceeded", "Too many."))
    response = get({}, {})
    assert response.status_code == 429
    assert response.headers["Retry-After"] == "1"
    assert response.json()["message"] == "Too many."
    assert "RateLimit" not in response.headers


def test_fastapi_without_install(server: Server) -> None:
    server.does(refuse())
    app = fastapi.FastAPI()
    guards = AsyncGuards(**PATIENT)

    def user_id(request: fastapi.Request) -> str:
        return request.headers["X-Test-User"]

    @app.post("/post", dependencies=[fastapi.Depends(guards_fastapi.limit(guards, "create_post", user_id=user_id))])
    def post() -> str:
        raise AssertionError

    response = send(app, "u1")
    assert (response.status_code, response.headers["Retry-After"]) == (429, "2")
    assert response.json()["detail"]["title"] == "Too Many Requests"
    guards.close()


def test_fastapi_needs_types() -> None:
    with pytest.raises(ConfigurationError, match=r'^The parameter "request" of user_id needs a type, such as Request\.$'):
        guards_fastapi.limit(AsyncGuards(), "create_post", user_id=lambda request: request.user)


def test_fastapi_checks_no_websocket(server: Server) -> None:
    app = fastapi.FastAPI()
    guards_fastapi.install(app)

    def user_id(request: fastapi.Request) -> str:
        raise AssertionError(request)

    limit = guards_fastapi.limit(AsyncGuards(**PATIENT), "create_post", user_id=user_id)
    app.websocket("/socket", dependencies=[fastapi.Depends(limit)])(lambda: None)
    with pytest.raises(ConfigurationError, match=r"^limit can't check a WebSocket: "):
        asyncio.run(app({"type": "websocket", "path": "/socket", "query_string": b"", "headers": []}, None, None))  # type: ignore[arg-type]
    assert server.received == []


def test_asgi_passes_other_scopes() -> None:
    seen = []

    async def app(scope: Any, receive: Any, send: Any) -> None:  # noqa: ARG001
        seen.append(scope["type"])

    middleware = LimitMiddleware(app, guards=AsyncGuards(), activity="create_post", user_id=lambda _: None)
    for kind in ("lifespan", "websocket"):
        asyncio.run(middleware({"type": kind}, None, None))  # type: ignore[arg-type]
    assert seen == ["lifespan", "websocket"]


def test_asgi_keeps_the_apps_own_headers(server: Server) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await PlainTextResponse("ok", headers={"RateLimit": "mine"})(scope, receive, send)

    guards = AsyncGuards(**PATIENT)
    response = send(LimitMiddleware(app, guards=guards, activity="create_post", user_id=lambda _: "u1"), "u1")
    assert response.headers.get_list("RateLimit") == ["mine"]
    assert response.headers["RateLimit-Policy"] == POLICY
    assert len(server.received) == 1
    guards.close()


def test_headers_of_several_limits() -> None:
    soon = 1_700_000_001_500
    minute = LimitState(name="minute", limit=10, activity_count=9, remaining=1, wait_time=0, reset_at=soon)
    day = LimitState(name="day", limit=10, activity_count=10, remaining=0, wait_time=0, reset_at=soon + 9000)
    figures: dict[str, Any] = {"limited_by": "day", "limits": (minute, day), "window": 60, "at": 1_700_000_000_000}
    decision = Decision(allowed=False, activity="create_post", **figures)
    assert rate_limit_headers(decision) == {"RateLimit": '"minute";r=1;t=2, "day";r=0;t=11'}
    assert json.loads(refusal(decision).body)["violated-policies"] == ["day"]


def test_the_window_of_an_activity_that_is_named_with_its_guard(server: Server) -> None:
    guards = Guards(**PATIENT)
    named = guards.check(GuardActivity("posts-guard", "create_post"), user_id="u1")
    assert rate_limit_headers(named)["RateLimit-Policy"] == POLICY
    for unknown in (GuardActivity("my-guard", "create_post"), GuardActivity("posts-guard", "publish_post")):
        assert "RateLimit-Policy" not in rate_limit_headers(guards.check(unknown, user_id="u1"))
    assert rate_limit_headers(guards.check("send_message", user_id="u1"))["RateLimit-Policy"] == '"send_message";q=10;w=5'
    assert len(server.received) == 4
    guards.close()


@pytest.mark.parametrize(("wait", "after"), [(None, "1"), (0, "1"), (1, "1"), (1000, "1"), (1001, "2"), (59_999, "60")])
def test_retry_after(wait: int | None, after: str) -> None:
    assert refusal(Decision(allowed=False, wait_time=wait)).headers["Retry-After"] == after
