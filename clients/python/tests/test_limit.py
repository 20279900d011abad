"""Numbers at run time: how high a limit is for this request."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import json
import pickle
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Any

import fastapi
import flask
import httpx
import pytest
from starlette.responses import PlainTextResponse

from guards import AsyncGuards, ConfigurationError, Decision, Guards, ValidationError
from guards import fastapi as guards_fastapi
from guards import flask as guards_flask
from guards.asgi import LimitMiddleware
from guards.http import refusal
from guards.testing import FakeGuards
from tests.activities import ACTIVITIES
from tests.conftest import PATIENT, Client
from tests.server import Server, answer, lambda_error, refuse
from tests.test_count_if import COUNTS_401, answers, by_asgi, by_fastapi, by_flask
from tests.test_mistakes import coroutine
from tests.test_sign_in import attempt
from tests.test_slot import hold, slots

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::pytest.PytestUnraisableExceptionWarning")

NAMED = {"tenant": 50_000, "create_post": 500}
RECEIPT: dict[str, Any] = {"at": 5, "request_id": "r1"}
# What the guard answers if the number is below the cost of the action.
TOO_SMALL = refuse(limit=None, activityCount=None, remaining=None, waitTime=None, resetAt=None)


@pytest.fixture(autouse=True)
def _unawaited() -> Iterator[None]:
    """Let coroutines that nobody awaits end in this module, whose warnings are ignored."""
    yield
    gc.collect()


def sent(server: Server) -> list[tuple[Any, ...]]:
    return [tuple(received.event.get(name) for name in ("op", "limit", "tier")) for received in server.received]


@pytest.mark.parametrize("limit", [0, 1, 1_000_000, NAMED, MappingProxyType(NAMED)], ids=range(5))
def test_a_number_is_sent_with_the_check_and_with_what_follows(server: Server, new: Callable[..., Client], limit: Any) -> None:
    client = new()
    want = dict(limit) if limit is NAMED or isinstance(limit, MappingProxyType) else limit
    mine = dict(want) if limit is NAMED else limit
    decision = client.check("create_post", user_id="u1", count=3, limit=mine, tier="pro")
    if limit is NAMED:
        mine["tenant"] = 7  # the app may use its dict again
    client.release(decision)
    client.renew(decision)
    client.settle(decision, 1)
    assert sent(server) == [(op, want, "pro") for op in ("check", "release", "renew", "release")]
    assert decision.asked == {"limit": want, "tier": "pro"}


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ({}, None),
        ({"limit": None, "tier": None}, None),
        ({"limit": {}}, None),
        ({"limit": 0}, {"limit": 0}),
        ({"limit": NAMED}, {"limit": NAMED}),
        ({"tier": "pro"}, {"tier": "pro"}),
    ],
)
def test_a_decision_keeps_what_was_asked(server: Server, new: Callable[..., Client], given: Any, asked: Any) -> None:
    server.does(answer(asked={"limit": 7}), lambda_error(500, "ServiceException"))
    client = new()
    assert client.check("create_post", user_id="u1", **given).asked == asked
    outage = client.check("create_post", user_id="u1", **given)
    assert (outage.reason, outage.asked) == ("unavailable", asked)
    want = asked or {}
    assert sent(server)[0] == ("check", want.get("limit"), want.get("tier"))


def by_json(decision: Decision) -> Decision:
    return Decision(**json.loads(json.dumps(dataclasses.asdict(decision))))


def by_pickle(decision: Decision) -> Any:
    return pickle.loads(pickle.dumps(decision))


@pytest.mark.parametrize("store", [by_json, by_pickle])
@pytest.mark.parametrize("asked", [{}, {"limit": NAMED}, {"limit": 500, "tier": "pro"}])
def test_a_stored_decision_keeps_what_was_asked(
    server: Server, new: Callable[..., Client], store: Callable[[Decision], Decision], asked: dict[str, Any]
) -> None:
    client = new()
    stored = store(client.check("create_post", user_id="u1", count=2, **asked))
    client.release(stored)
    client.settle(stored, 1)
    assert sent(server) == [(op, asked.get("limit"), asked.get("tier")) for op in ("check", "release", "release")]


def test_a_stored_decision_asks_nothing_else(server: Server, new: Callable[..., Client]) -> None:
    client = new()
    decision = client.check("create_post", user_id="u1", limit=5)
    client.release(dataclasses.replace(decision, asked={"limit": 5, "user_id": "u2", "partial": True}))
    event = server.received[1].event
    assert (event["userId"], event["limit"], event.get("partial")) == ("u1", 5, None)


def test_a_decision_that_an_older_client_has_stored(server: Server, new: Callable[..., Client]) -> None:
    client = new()
    old = client.check("create_post", user_id="u1")
    del vars(old)["asked"]
    client.release(by_pickle(old))
    assert sent(server) == [("check", None, None), ("release", None, None)]


def test_each_verb_takes_a_number_but_reset(server: Server, new: Callable[..., Client]) -> None:
    client = new()
    client.status("create_post", user_id="u1", limit=5)
    client.release("create_post", user_id="u1", limit=NAMED, **RECEIPT)
    client.renew("create_post", user_id="u1", limit=5, tier="pro", **RECEIPT)
    assert sent(server) == [("status", 5, None), ("release", NAMED, None), ("renew", 5, "pro")]
    with pytest.raises(TypeError, match="limit"):
        client.reset("create_post", user_id="u1", limit=5)
    decision = client.check("create_post", user_id="u1")
    with pytest.raises(TypeError, match=r"^release takes either a decision or the fields of its receipt$"):
        client.release(decision, limit=5)


def test_guarded_and_attempt_give_back_with_the_number(server: Server, new: Callable[..., Client]) -> None:
    def fails(_: Decision) -> None:
        raise RuntimeError

    client = new()
    for form in ("function", "context"):
        with pytest.raises(RuntimeError):
            client.guarded_call(fails, form, limit=5, tier="pro")
        attempt(client, lambda _: True, form, "create_post", limit=5, tier="pro")
    assert sent(server) == [("check", 5, "pro"), ("release", 5, "pro")] * 4


def test_a_slot_is_renewed_and_released_with_the_number(
    server: Server, new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("guards._slot.EARLY", 0.1)
    server.does(slots(3))
    client = new()

    def until_renewed_twice(_: Any) -> None:
        for _ in range(1000):
            if len(server.received) >= 3:
                return
            time.sleep(0.01)

    hold(client, until_renewed_twice, limit=NAMED, tier="pro")
    assert sent(server) == [(op, NAMED, "pro") for op in ("check", "renew", "renew", "release")]


@pytest.mark.parametrize("middleware", [by_flask, by_fastapi, by_asgi])
def test_count_if_gives_back_with_the_number(server: Server, middleware: Any) -> None:
    guards = (Guards if middleware is by_flask else AsyncGuards)(**PATIENT)
    assert middleware(guards, {"limit": 5, **COUNTS_401}, answers(200)).status_code == 200
    assert sent(server) == [("check", 5, None), ("release", 5, None)]
    guards.close()


@pytest.mark.usefixtures("server")
def test_the_window_is_not_known_with_a_number(new: Callable[..., Client]) -> None:
    """The list does not say which limits are buckets, whose windows change with the number."""
    client = new()
    assert client.check("create_post", user_id="u1").window == 60
    assert client.check("create_post", user_id="u1", limit=0).window is None
    assert client.check("create_post", user_id="u1", limit={"create_post": 500}).window is None
    assert client.check("create_post", user_id="u1", limit=None).window == 60


def test_a_number_that_is_too_small(server: Server, new: Callable[..., Client]) -> None:
    server.does(TOO_SMALL)
    client = new()
    decision: Decision = client.check("create_post", user_id="u1", limit=0)
    assert (decision.allowed, decision.reason, decision.message, decision.granted) == (False, "limited", "Too many.", 0)
    figures = (decision.limit, decision.activity_count, decision.remaining, decision.wait_time, decision.reset_at)
    assert (figures, decision.limits, decision.has_receipt) == ((None,) * 5, (), False)
    assert client.wait(decision) is False
    # No wait would help, so the user's program is told none, and nothing about the app's plans.
    status, headers, body = refusal(decision)
    assert (status, headers) == (429, {"Content-Type": "application/problem+json"})
    assert json.loads(body) == {"title": "Too Many Requests", "status": 429, **decision.answer}


@pytest.mark.parametrize(("given", "after"), [({"waitTime": 41_001}, "42"), ({"reason": "blocked", "waitTime": 0}, "1")])
def test_another_refusal_with_a_number_has_a_wait(server: Server, new: Callable[..., Client], given: Any, after: str) -> None:
    server.does(refuse(**given))
    assert refusal(new().check("create_post", user_id="u1", limit=5)).headers["Retry-After"] == after


def test_a_tier_is_no_number(server: Server, new: Callable[..., Client]) -> None:
    server.does(TOO_SMALL)
    assert refusal(new().check("create_post", user_id="u1", tier="pro")).headers["Retry-After"] == "1"


NUMBER = "want a whole number from 0 to 1,000,000"
ALONE = f'{NUMBER}, or such numbers by the names of limits, such as {{"tenant": 50000}}'
FORM = "limit has a name of another form, want those in the answer's limits, such as tenant or room.minute"
OF_NO_NUMBER: list[tuple[Any, str]] = [
    (True, "True"),
    (False, "False"),
    (1.0, "1.0"),
    (float("nan"), "nan"),
    (-1, "-1"),
    (1_000_001, "1000001"),
    (2**53, "9007199254740992"),
    ("5", "of the type str"),
    ("", "empty"),
    ([5], "of the type list"),
    (Decimal(5), "of the type Decimal"),
    (lambda: 5, "of the type function"),
]
WRONG: list[tuple[Any, str]] = [
    *((value, f"limit is {what}, {ALONE}") for value, what in OF_NO_NUMBER),
    *(({"tenant": value}, f"limit.tenant is {what}, {NUMBER}") for value, what in OF_NO_NUMBER),
    ({"tenant": None}, f"limit.tenant is None, {NUMBER}"),
    ({"create_post": 5, "room.minute": {}}, f"limit.room.minute is of the type dict, {NUMBER}"),
    *(
        ({name: 5}, FORM)
        for name in ("t-4711", 7, "", None, "Tenant", "_", ".minute", "room.", "room.minute.day", "tenant\n", "a" * 37)
    ),
]


@pytest.mark.parametrize(("limit", "message"), WRONG, ids=range(len(WRONG)))
def test_a_wrong_number_is_not_sent(server: Server, new: Callable[..., Client], limit: Any, message: str) -> None:
    client = new()
    for verb, more in (("check", {}), ("status", {}), ("release", RECEIPT), ("renew", RECEIPT)):
        with pytest.raises(ValidationError) as error:
            getattr(client, verb)("create_post", user_id="u1", limit=limit, **more)
        assert str(error.value) == message
        assert error.value.guard == "posts-guard"
    assert server.received == []


@pytest.mark.parametrize("make", [coroutine, lambda: {"tenant": coroutine()}])
def test_a_coroutine_is_no_number(server: Server, new: Callable[..., Client], make: Callable[[], Any]) -> None:
    with pytest.raises(ValidationError, match=r"^limit(\.tenant)? is of the type coroutine, want"):
        new().check("create_post", user_id="u1", limit=make())
    assert server.received == []


# The middleware of each framework takes a value, or a function of the request.


def flask_with(guards: Any, limited: dict[str, Any]) -> httpx.Response:
    app = flask.Flask("test")
    limited = {"limit": lambda: int(flask.request.headers["X-Plan"]), **limited}
    app.post("/post")(guards_flask.limit(guards, "create_post", user_id=lambda: "u1", **limited)(lambda: "created"))
    with httpx.Client(transport=httpx.WSGITransport(app, raise_app_exceptions=False), base_url="http://app") as client:
        return client.post("/post", headers={"X-Plan": "500"})


def post(app: Any) -> httpx.Response:
    async def main() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:
            return await client.post("/post", headers={"X-Plan": "500"})

    return asyncio.run(main())


def fastapi_with(guards: Any, limited: dict[str, Any]) -> httpx.Response:
    app = fastapi.FastAPI()
    guards_fastapi.install(app)

    async def plan(x_plan: Annotated[int, fastapi.Header()]) -> int:
        return x_plan

    limit = guards_fastapi.limit(guards, "create_post", user_id=lambda: "u1", **{"limit": plan, **limited})
    app.post("/post", dependencies=[fastapi.Depends(limit)])(lambda: "created")
    return post(app)


def asgi_with(guards: Any, limited: dict[str, Any]) -> httpx.Response:
    async def plan(scope: Any) -> int:
        return int(dict(scope["headers"])[b"x-plan"])

    limited = {"guards": guards, "activity": "create_post", "user_id": lambda _: "u1", "limit": plan, **limited}
    return post(LimitMiddleware(PlainTextResponse("created"), **limited))


WITH = pytest.mark.parametrize("framework", [flask_with, fastapi_with, asgi_with])


def client_of(framework: Any) -> Any:
    return (Guards if framework is flask_with else AsyncGuards)(**PATIENT, warn=lambda _: None)


@WITH
def test_middleware_takes_the_number_from_the_request(server: Server, framework: Any) -> None:
    guards = client_of(framework)
    server.does(answer(limit=500), TOO_SMALL, answer())
    allowed, refused = framework(guards, {}), framework(guards, {})
    assert allowed.status_code == 200
    assert allowed.headers["RateLimit"].startswith('"create_post";r=9;t=')
    assert "RateLimit-Policy" not in allowed.headers
    assert refused.status_code == 429
    assert "Retry-After" not in refused.headers
    assert refused.json()["message"] == "Too many."
    assert "RateLimit" not in refused.headers
    own = {"options": lambda *_: {"tier": "pro", "limit": 7}}
    for limited in ({"limit": MappingProxyType(NAMED)}, {"limit": 0}, own, {"limit": None, **own}, {"limit": None}):
        assert framework(guards, limited).status_code == 200
    assert [limit for _, limit, _ in sent(server)] == [500, 500, NAMED, 0, 500, 7, None]
    guards.close()


@WITH
def test_a_function_can_leave_the_number_out(server: Server, framework: Any) -> None:
    guards = client_of(framework)
    number: Callable[..., Any] = (lambda: None) if framework is not asgi_with else lambda _: None
    assert framework(guards, {"limit": number}).headers["RateLimit-Policy"] == '"create_post";q=10;w=60'
    assert sent(server) == [("check", None, None)]
    guards.close()


@WITH
def test_a_wrong_number_of_a_middleware_is_an_error_at_once(server: Server, framework: Any) -> None:
    guards = client_of(framework)
    for limit, message in WRONG:
        if callable(limit):
            continue
        with pytest.raises(ConfigurationError) as error:
            framework(guards, {"limit": limit})
        assert str(error.value) == f"The option {message}."
    assert server.received == []


def test_flask_takes_no_async_number() -> None:
    async def later() -> int:
        return 5

    with pytest.raises(ConfigurationError, match=r"^The option limit is async, want a function that is not async\.$"):
        guards_flask.limit(Guards(), "create_post", user_id=lambda: "u1", limit=later)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (coroutine, ConfigurationError, "The option limit is async, want a function that is not async."),
        (lambda: "5", ConfigurationError, "The option limit returned a value of the type str, want a number, a dict or None."),
        (lambda: True, ValidationError, f"limit is True, {ALONE}"),
        (lambda: {"tenant": None}, ValidationError, f"limit.tenant is None, {NUMBER}"),
    ],
)
def test_what_a_function_returns_is_checked(server: Server, value: Any, error: Any, message: str) -> None:
    view = guards_flask.limit(Guards(**PATIENT), "create_post", user_id=lambda: "u1", limit=lambda: value())(lambda: "created")
    with flask.Flask("test").test_request_context(), pytest.raises(error) as raised:
        view()
    assert str(raised.value) == message
    assert server.received == []


def test_fastapi_needs_types_of_the_number() -> None:
    with pytest.raises(ConfigurationError, match=r'^The parameter "plan" of limit needs a type, such as Request\.$'):
        guards_fastapi.limit(AsyncGuards(), "create_post", user_id=lambda: "u1", limit=lambda plan: plan)


def test_the_stand_in_sees_numbers() -> None:
    limits = FakeGuards()
    guards = limits.client(ACTIVITIES)
    guards.release(guards.check("create_post", user_id="u1", limit=NAMED, tier="pro"))
    guards.check("create_post", user_id="u1", limit=0)
    guards.check("create_post", user_id="u1")
    assert [call.limit for call in limits.calls] == [NAMED, NAMED, 0, None]
    assert [call.tier for call in limits.calls] == ["pro", "pro", None, None]
