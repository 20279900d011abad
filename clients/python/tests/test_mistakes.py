"""Callbacks and arguments of the wrong kind: nobody passes by mistake, and a wrong argument is not sent."""

from __future__ import annotations

import asyncio
import gc
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import fastapi
import flask
import httpx
import pytest
from starlette.responses import PlainTextResponse

from guards import AsyncGuards, AttemptOptions, CheckOptions, ConfigurationError, Decision, Guards, StatusOptions, ValidationError
from guards import fastapi as guards_fastapi
from guards import flask as guards_flask
from guards._request import Receipt
from guards.asgi import LimitMiddleware
from tests.conftest import PATIENT, Client
from tests.server import Server, function_error, refuse

CREATED = "created"


pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def _unawaited() -> Iterator[None]:
    """Let coroutines that nobody awaits end in this module, whose warnings are ignored."""
    yield
    gc.collect()


class Thing:
    """An object that is nothing in particular."""


async def coroutine() -> Any:
    return Thing()


async def async_generator() -> Any:
    yield True


# What an app can return or pass by mistake. None is right in some places.
VALUES: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "empty": lambda: "",
    "string": lambda: "no",
    "zero": lambda: 0,
    "number": lambda: 7,
    "float": lambda: 1.5,
    "nan": lambda: float("nan"),
    "object": Thing,
    "class": lambda: Thing,
    "function": lambda: lambda *_: True,
    "generator": lambda: (value for value in ("no",)),
    "async generator": lambda: async_generator(),
    "coroutine": coroutine,
    "exception": lambda: ValueError("no"),
    "list": lambda: [True],
    "dict": lambda: {"cuont": 1},
    "True": lambda: True,
}


class Mistake(Exception):  # noqa: N818
    pass


def raises(error: BaseException) -> Callable[[], Any]:
    def value() -> Any:
        raise error

    return value


RAISED = {f"raises {type(e).__name__}": raises(e) for e in (Mistake(), StopIteration(), OSError(), TimeoutError(), KeyError(1))}


def by_flask(guards: Any, options: dict[str, Any]) -> httpx.Response:
    app = flask.Flask("test")
    limited = {"user_id": lambda: "u1", **options}
    app.post("/post")(guards_flask.limit(guards, "create_post", **limited)(lambda: CREATED))
    with httpx.Client(transport=httpx.WSGITransport(app, raise_app_exceptions=False), base_url="http://app") as client:
        return client.post("/post")


def send(app: Any) -> httpx.Response:
    async def main() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:
            return await client.post("/post")

    return asyncio.run(main())


def by_fastapi(guards: Any, options: dict[str, Any]) -> httpx.Response:
    app = fastapi.FastAPI()
    guards_fastapi.install(app)
    given: dict[str, Any] = {"user_id": lambda: "u1"}
    for name, function in options.items():
        given[name] = (
            (lambda f: lambda: f())(function) if name in ("user_id", "subjects", "limit") and callable(function) else function
        )
    limit = guards_fastapi.limit(guards, "create_post", **given)
    app.post("/post", dependencies=[fastapi.Depends(limit)])(lambda: PlainTextResponse(CREATED))
    return send(app)


def by_asgi(guards: Any, options: dict[str, Any]) -> httpx.Response:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await PlainTextResponse(CREATED)(scope, receive, send)

    limited = {"user_id": lambda _: "u1", **options}
    return send(LimitMiddleware(app, guards=guards, activity="create_post", **limited))


Middleware = Callable[[Any, dict[str, Any]], httpx.Response]
MIDDLEWARE = pytest.mark.parametrize("middleware", [by_flask, by_fastapi, by_asgi])


def client_of(middleware: Middleware, on_outage: Any = "allow") -> Any:
    return (Guards if middleware is by_flask else AsyncGuards)(**PATIENT, on_outage=on_outage, warn=lambda _: None)


# What each option may return by its documentation, and is not a mistake. A coroutine of Thing is not among them.
RIGHT = {
    "user_id": {"string"},
    "skip": {"True"},
    "subjects": {"None"},
    "limit": {"None", "zero", "number", "dict"},
    "options": set[str](),
    "refused": set[str](),
}


@MIDDLEWARE
@pytest.mark.parametrize("option", RIGHT)
def test_a_callback_of_the_wrong_kind_lets_nobody_pass(server: Server, middleware: Middleware, option: str) -> None:
    """The guard refuses, and then it is out. So only a request that was not limited by mistake reaches the app."""
    if middleware is by_fastapi and option == "refused":
        return  # has no such option
    allow, deny = client_of(middleware), client_of(middleware, "deny")
    for kind, make in {**VALUES, **RAISED}.items():
        if kind in RIGHT[option]:
            continue
        options = {option: lambda *_, make=make: make()}
        server.does(refuse())
        assert CREATED not in middleware(allow, options).text, kind
        server.does(function_error("Unavailable", "m"))
        denied = middleware(deny, options)
        assert CREATED not in denied.text, kind
        assert denied.status_code >= 400, kind
        is_limited = option == "refused" or (option == "skip" and kind == "None")
        assert (middleware(allow, options).text == CREATED) is is_limited, kind  # an outage lets right requests pass
    allow.close()
    deny.close()


@MIDDLEWARE
def test_an_option_that_is_no_function_is_an_error_at_once(middleware: Middleware) -> None:
    client = client_of(middleware)
    for option in ("user_id", "skip", "subjects", "options"):
        for value in (None, "u1", 7, Thing()):
            with pytest.raises(ConfigurationError, match=rf"^The option {option} is .*, want a function\.$"):
                middleware(client, {option: value})


@MIDDLEWARE
def test_an_unknown_option_is_an_error(server: Server, middleware: Middleware) -> None:
    client = client_of(middleware)
    with pytest.raises(TypeError, match="cuont"):
        middleware(client, {"cuont": lambda *_: 2})
    assert middleware(client, {"options": lambda *_: {"cuont": 2}}).status_code == 500
    assert server.received == []


@pytest.mark.parametrize(
    "value",
    [
        "slow down",
        {"slow": "down"},
        (part for part in ("slow", " down")),
        ("slow down", {"X-Own": "1"}),
        ("slow down", [("X-Own", "1")]),
        ("slow down", None, {"X-Own": "1"}),
        flask.Response("slow down"),
        (flask.Response("slow down"), {"X-Own": "1"}),
    ],
)
def test_flask_answers_a_body_without_a_status_with_429(server: Server, value: Any) -> None:
    server.does(refuse())
    client = client_of(by_flask)
    response = by_flask(client, {"refused": lambda _: value})
    assert response.status_code == 429
    assert "slow" in response.text
    assert response.headers.get("X-Own") == ("1" if isinstance(value, tuple) else None)
    whole = flask.Response("slow down", 430)
    with_status: list[Any] = [
        whole,
        (whole, {"X-Own": "1"}),
        ("slow down", 430),
        ("slow down", "430 Slow Down"),
        ("slow down", 430, {}),
    ]
    for own in with_status:
        assert by_flask(client, {"refused": lambda _, own=own: own}).status_code == 430
    assert by_flask(client, {"refused": lambda _: (flask.Response("slow down"), 200)}).status_code == 200
    client.close()


# For each argument, the kinds that are right. None counts as left out. What is false is no partial check, which lets
# nobody pass, and clears nothing.
FALSE_OR_TRUE = {"None", "empty", "zero", "True"}
ARGUMENTS = {
    "user_id": {"string"},
    "count": {"None", "number"},
    "partial": FALSE_OR_TRUE,
    "tier": {"None", "string", "empty"},
    "limit": {"None", "zero", "number", "dict"},
    "roles": {"None", "generator"},
    "subjects": {"None"},
    "request_id": {"None", "string"},
    "ready_at": {"None", "number"},
    "job": {"None", "empty", "string", "zero", "number", "float", "list", "dict", "True"},
    "on_outage": {"None"},
}
RECEIPT = {"at": 1, "request_id": "r1"}
VERBS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "check": ({}, set(ARGUMENTS)),
    "status": ({}, set(ARGUMENTS) - {"request_id", "ready_at", "job", "on_outage"}),
    "release": (RECEIPT, {"user_id", "clear", *Receipt.__annotations__}),
    "renew": (RECEIPT, {"user_id", *Receipt.__annotations__}),
    "reset": ({}, {"user_id"}),
    "guarded": ({}, set(ARGUMENTS)),
    "slot": ({}, {*ARGUMENTS, "or_raise"}),
    "attempt": ({}, {"user_id", "clear", *AttemptOptions.__annotations__}),
}


@pytest.mark.parametrize("verb", VERBS)
def test_an_argument_of_the_wrong_kind_is_not_sent(server: Server, new: Callable[..., Client], verb: str) -> None:
    server.does(function_error("Unavailable", "m"))  # in an outage, a mistake could let the user pass
    client = new()
    needed, names = VERBS[verb]
    for argument in sorted(names):
        right = {**ARGUMENTS, "at": {"number"}, "or_raise": {"True"}, "clear": FALSE_OR_TRUE}[argument]
        for kind in VALUES.keys() - right:
            is_missing = kind == "None" and verb in ("release", "renew") and argument in ("user_id", *needed)
            with pytest.raises(TypeError if is_missing else ValidationError):
                _run(client, verb, {"user_id": "u1", **needed, argument: VALUES[kind]()})
            assert server.received == [], (argument, kind)
    assert client.warnings == []


def _run(client: Client, verb: str, arguments: dict[str, Any]) -> None:
    if verb not in ("guarded", "slot", "attempt"):
        getattr(client, verb)("create_post", **arguments)
        return

    async def within() -> None:
        async with getattr(client.guards, verb)("create_post", **arguments):
            pass

    if isinstance(client.guards, AsyncGuards):
        asyncio.run(within())
        return
    with getattr(client.guards, verb)("create_post", **arguments):
        pass


def test_an_activity_of_the_wrong_kind_is_not_sent(server: Server, new: Callable[..., Client]) -> None:
    client = new()
    for make in VALUES.values():
        with pytest.raises(ValidationError):
            client.check(make(), user_id="u1")
        with pytest.raises(ValidationError):
            client.ready(make())
    assert server.received == []


@pytest.mark.parametrize(
    ("subjects", "message"),
    [
        ({"room": ""}, "subjects has an empty id, want its value, or None to leave it out"),
        ({"room": "r1", "tenant": ""}, "subjects has an empty id, want its value, or None to leave it out"),
        ({"room": "r1", "tenant": 7}, "subjects has an id that is no string, want its value as a string"),
        ({"room": "r1", "tenant": float("nan")}, "subjects has an id that is no string, want its value as a string"),
        ({7: "r1"}, 'subjects has another form, want one such as {"room": "r42"}'),
        ("", 'subjects has another form, want one such as {"room": "r42"}'),
        ([], 'subjects has another form, want one such as {"room": "r42"}'),
    ],
)
def test_a_subject_without_an_id_is_not_sent(server: Server, new: Callable[..., Client], subjects: Any, message: str) -> None:
    listed = {"write": ("rooms-guard", None, ("room", "tenant?"))}
    client = new(activities=listed)
    for verb, more in (("check", {}), ("status", {}), ("release", RECEIPT), ("renew", RECEIPT)):
        with pytest.raises(ValidationError) as error:
            getattr(client, verb)("write", user_id="u1", subjects=subjects, **more)
        assert str(error.value) == message
    assert server.received == []


def test_what_was_used_is_a_whole_number(server: Server, new: Callable[..., Client]) -> None:
    client = new()
    reserved = client.check("create_post", user_id="u1", count=4)
    wrong = [make() for kind, make in VALUES.items() if kind not in ("zero", "number")]
    for used in (*wrong, -1):
        with pytest.raises(ValidationError, match=r"^used is .*, want a whole number of at least 0$"):
            client.settle(reserved, used)
    for make in VALUES.values():
        with pytest.raises(ValidationError, match=r"^the decision is .*, want that of a check$"):
            client.settle(make(), 1)
    assert len(server.received) == 1
    client.settle(reserved, 1)
    assert len(server.received) == 2


def test_how_long_to_wait_is_a_number(new: Callable[..., Client]) -> None:
    client, decision = new(), Decision(allowed=False, wait_time=3_600_000)
    for kind, make in VALUES.items():
        with pytest.raises(ValidationError, match=r"^the decision is .*, want one of this package$"):
            client.wait(make())
        if kind not in ("zero", "number", "float"):
            with pytest.raises(ValidationError, match=r"^max_wait is .*, want a number of seconds$"):
                client.wait(decision, max_wait=make())


def test_guarded_runs_only_functions(server: Server, new: Callable[..., Client]) -> None:
    client = new()
    for kind, make in VALUES.items():
        if kind not in ("None", "function", "class"):
            with pytest.raises(ValidationError, match=r"^the function of guarded is .*, want a function$"):
                client.guards.guarded("create_post", make(), user_id="u1")
    assert server.received == []


# Options of the client whose wrong value is none of a request: each is an error at once.
CLIENT = {
    "activities": {"None", "dict"},
    "urls": {"None", "dict"},
    "prefix": {"empty", "string"},
    "on_outage": set[str](),
    "timeout": {"number", "float"},
    "max_tries": {"number"},
    "decision_timeout": {"float"},
    "warn": {"None", "function", "class"},
    "observe": {"None", "function", "class"},
    "agent": {"None"},
    "token": {"None"},
    "credentials": {"None", "function"},
    "region": {"None", "string"},
    "endpoint": {"None"},
    "connections": {"number"},
    "client": {"None"},
}


@pytest.mark.parametrize("option", CLIENT)
def test_a_wrong_option_of_the_client_is_an_error_at_once(option: str) -> None:
    for kind in VALUES.keys() - CLIENT[option]:
        for form in (Guards, AsyncGuards):
            with pytest.raises(ConfigurationError):
                form(**{option: VALUES[kind]()})


def test_every_argument_is_in_the_table() -> None:
    """A new argument needs a row above."""
    for form in (Guards, AsyncGuards):
        assert set(inspect.signature(form.__init__).parameters) - {"self"} == set(CLIENT)
    assert {"user_id", *CheckOptions.__annotations__, *StatusOptions.__annotations__} == set(ARGUMENTS)
    for middleware in (guards_flask.limit, guards_fastapi.limit, LimitMiddleware.__init__):
        assert set(inspect.signature(middleware).parameters) - {
            "self",
            "app",
            "guards",
            "activity",
            "on_outage",
            "count_if",
        } <= set(RIGHT)
