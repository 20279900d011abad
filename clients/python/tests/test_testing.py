"""The stand-in for unit tests of an app."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import flask
import httpx
import pytest
from starlette.responses import PlainTextResponse

from guards import (
    AsyncGuards,
    ConfigurationError,
    Decision,
    GuardActivity,
    Guards,
    GuardsError,
    LimitedError,
    LimitState,
    OutageError,
    ValidationError,
)
from guards import flask as guards_flask
from guards.asgi import LimitMiddleware
from guards.testing import Call, FakeGuards
from tests.activities import ACTIVITIES
from tests.conftest import Client


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing connect, whatever the machine's settings are."""

    def refused(*_: object) -> None:
        raise AssertionError("a test used the network")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.setenv("GUARDS_AGENT", "http://127.0.0.1:1")


@pytest.fixture
def limits() -> FakeGuards:
    return FakeGuards()


@pytest.fixture(params=["sync", "async"])
def new(request: pytest.FixtureRequest, limits: FakeGuards) -> Callable[..., Any]:
    """Makes clients of limits, whose verbs are ordinary functions."""

    def make(**options: Any) -> Client:
        made = Client(request.param, {})
        is_async = request.param == "async"
        made.guards = (limits.async_client if is_async else limits.client)(ACTIVITIES, **options)
        assert type(made.guards) is (AsyncGuards if is_async else Guards)
        return made

    return make


def test_everything_is_allowed(new: Callable[..., Any], limits: FakeGuards) -> None:
    guards = new()
    decision: Decision = guards.check("create_post", user_id="u1", count=3, tier="pro", subjects=None)
    assert (decision.allowed, decision.reason, decision.granted, decision.guard) == (True, "ok", 3, "posts-guard")
    assert decision.remaining
    assert decision.has_receipt
    assert guards.release(decision).allowed
    assert guards.status("create_post", user_id="u2").allowed
    guards.ready("pin")
    check, release, status, ready = limits.calls
    assert (check.op, check.user_id, check.count, check.tier, check.roles) == ("check", "u1", 3, "pro", None)
    assert (release.op, release.count, release.at) == ("release", 3, decision.at)
    assert release.request_id == check.request_id == decision.request_id
    assert status == Call(op="status", guard="posts-guard", activity="create_post", user_id="u2")
    assert (ready.op, ready.guard) == ("status", "pins-guard")
    assert guards.check("create_post", user_id="u1", count=2, partial=True).has_receipt
    guards.guards.close()


def test_a_refusal(new: Callable[..., Any], limits: FakeGuards) -> None:
    guards = new()
    limits.refuse("create_post", wait_time=42_000)
    for verb in (guards.check, guards.status):
        decision: Decision = verb("create_post", user_id="u1")
        assert (decision.allowed, decision.reason, decision.wait_time, decision.granted) == (False, "limited", 42_000, 0)
        assert (decision.limit, decision.activity_count, decision.remaining) == (1, 1, 0)
        assert decision.message == "Too many requests. Please try again later."
        assert not decision.has_receipt
    assert guards.check("delete_post", user_id="u1").allowed
    saved: list[Decision] = []
    with pytest.raises(LimitedError):
        guards.guarded_call(saved.append, "context")
    assert not saved
    assert limits.calls[-1].op == "check"
    limits.allow("create_post")
    limits.allow("create_post")
    assert guards.check("create_post", user_id="u1").allowed


def test_the_fields_of_a_refusal(limits: FakeGuards) -> None:
    guards = limits.client(ACTIVITIES)
    limits.refuse("create_post", reason="blocked", message="Not at the moment.")
    blocked = guards.check("create_post", user_id="u1")
    assert (blocked.reason, blocked.message, blocked.limit, blocked.remaining) == ("blocked", "Not at the moment.", None, None)
    minute = LimitState(name="minute", limit=5, activity_count=5, remaining=0, wait_time=900, reset_at=7000)
    limits.refuse("create_post", limit=5, activity_count=4, remaining=1, reset_at=7000, limited_by="minute", limits=[minute])
    decision = guards.check("create_post", user_id="u1", count=2)
    assert (decision.limit, decision.activity_count, decision.remaining, decision.reset_at) == (5, 4, 1, 7000)
    assert (decision.limited_by, decision.limits) == ("minute", (minute,))


@pytest.mark.parametrize(
    ("given", "by"),
    [
        ({"limit": 0}, None),
        ({"limit": 0, "partial": True}, None),
        ({"limit": 500, "count": 1000}, None),
        ({"limit": {"tenant": 0, "call_api": 5}}, "tenant"),
    ],
)
def test_a_number_that_is_too_low(new: Callable[..., Any], given: dict[str, Any], by: str | None) -> None:
    guards = new()
    for verb in (guards.check, guards.status):
        decision: Decision = verb("create_post", user_id="u1", **given)
        assert (decision.allowed, decision.reason, decision.granted, decision.limited_by) == (False, "limited", 0, by)
        assert (decision.limit, decision.remaining, decision.wait_time, decision.reset_at) == (None, None, None, None)
        assert decision.message == "Too many requests. Please try again later."


@pytest.mark.parametrize(
    "given", [{"limit": 1}, {"limit": 500, "count": 1000, "partial": True}, {"limit": {"tenant": 3}, "count": 3}]
)
def test_a_number_with_room_for_the_request(new: Callable[..., Any], given: dict[str, Any]) -> None:
    guards = new()
    assert guards.check("create_post", user_id="u1", **given).allowed
    assert guards.release("create_post", user_id="u1", at=1, request_id="r1", limit=0).allowed


def test_an_outage(new: Callable[..., Any], limits: FakeGuards) -> None:
    warnings: list[GuardsError] = []
    guards, denying = new(warn=warnings.append), new(on_outage="deny")
    decision = guards.check("create_post", user_id="u1")
    limits.outage = True
    assert guards.check("create_post", user_id="u1").allowed
    assert not guards.check("create_post", user_id="u1", on_outage="deny").allowed
    denied: Decision = denying.check("create_post", user_id="u1")
    assert (denied.allowed, denied.reason) == (False, "unavailable")
    assert isinstance(denied.outage, OutageError)
    assert [str(w) for w in warnings] == ["posts-guard did not answer: the test plays an outage"]
    with pytest.raises(OutageError):
        guards.release(decision)
    with pytest.raises(OutageError):
        guards.settle(decision, 0)
    assert [call.op for call in limits.calls] == ["check"] * 4 + ["release"] * 2
    limits.outage = False
    assert guards.check("create_post", user_id="u1").reason == "ok"  # at once
    guards.settle(decision, 0)


def test_an_outage_is_an_attribute(limits: FakeGuards) -> None:
    with pytest.raises(AttributeError):
        limits.outtage = True  # type: ignore[attr-defined]


def test_mistakes(new: Callable[..., Any], limits: FakeGuards) -> None:
    guards = new()
    limits.outage = True
    for activity, options in (
        ("craete_post", {}),
        ("create_post", {"count": 0}),
        ("create_post", {"user_id": ""}),
        ("create_post", {"subjects": {"room": "r1"}}),
    ):
        with pytest.raises(ValidationError):
            guards.check(activity, **{"user_id": "u1", **options})
    with pytest.raises(TypeError):
        guards.check("create_post", user_id="u1", cuont=1)
    with pytest.raises(ConfigurationError):
        new(on_outage="maybe")
    assert not limits.calls


def test_without_a_list(limits: FakeGuards) -> None:
    guards = limits.client({}, prefix="my-")
    assert guards.check(GuardActivity("photos-guard", "upload_photo"), user_id="u1").allowed
    assert limits.calls[0].guard == "photos-guard"
    limits.outage = True
    with pytest.raises(OutageError, match="my-photos-guard did not answer"):
        guards.status(GuardActivity("photos-guard", "upload_photo"), user_id="u1")


def test_a_failed_save_gives_its_action_back(new: Callable[..., Any], limits: FakeGuards) -> None:
    def save(_: Decision) -> None:
        raise RuntimeError("full")

    with pytest.raises(RuntimeError):
        new().guarded_call(save, "function")
    assert [call.op for call in limits.calls] == ["check", "release"]


def test_slots_and_settling(limits: FakeGuards) -> None:
    async def main() -> None:
        guards = limits.async_client(ACTIVITIES)
        async with guards.slot("pin", user_id="u1") as slot:
            assert slot.allowed
            assert not slot.lost
        decision = await guards.check("pin", user_id="u1", count=5)
        await decision.settle(2)

    asyncio.run(main())
    guards = limits.client(ACTIVITIES)
    with guards.slot("pin", user_id="u1") as slot:
        assert guards.renew(slot.decision).held_until
    assert [(call.op, call.count) for call in limits.calls] == [
        *(("check", None), ("release", 1), ("check", 5), ("release", 3)),
        *(("check", None), ("renew", 1), ("release", 1)),
    ]


def test_attempts_and_locks(new: Callable[..., Any], limits: FakeGuards) -> None:
    client, locked = new(), list[Decision]()

    def sign_in(right: bool) -> Any:
        tried = client.guards.attempt("create_post", lambda _: right, user_id="a7", clear=True, on_locked=locked.append)
        return asyncio.run(_awaited(tried)) if isinstance(client.guards, AsyncGuards) else tried

    assert sign_in(True) is True
    assert [(call.op, call.clear) for call in limits.calls] == [("check", None), ("release", True)]
    limits.allow("create_post", remaining=1)
    assert client.check("create_post", user_id="a7").remaining == 1
    assert sign_in(False) is False
    assert locked == []
    limits.allow("create_post", remaining=0, crossed=100, locked=True)
    assert sign_in(False) is False
    (decision,) = locked
    assert (decision.remaining, decision.crossed, decision.locked, decision.limit) == (0, 100, True, decision.activity_count)
    assert client.status("create_post", user_id="a7").crossed is None
    limits.refuse("create_post", wait_time=60_000, locked=True)
    with pytest.raises(LimitedError) as error:
        sign_in(True)
    assert (error.value.decision.locked, error.value.decision.wait_time) == (True, 60_000)
    limits.allow("create_post")
    assert client.check("create_post", user_id="a7").locked is None
    assert [call.op for call in limits.calls[2:]] == ["check"] * 3 + ["status", "check", "check"]


async def _awaited(value: Any) -> Any:
    return await value


def test_observe(new: Callable[..., Any]) -> None:
    seen: list[tuple[str, str, str]] = []
    guards = new(observe=lambda decision, _, way: seen.append((decision.activity, decision.user_id, way)))
    guards.check("view", user_id="u1")
    assert seen == [("view", "", "test")]


def test_the_middleware_of_flask(limits: FakeGuards) -> None:
    app = flask.Flask("test")
    guards = limits.client(ACTIVITIES, on_outage="deny")

    @app.post("/posts")
    @guards_flask.limit(guards, "create_post", user_id=lambda: "u1")
    def create_post() -> tuple[str, int]:
        return "created", 201

    browser = app.test_client()
    assert browser.post("/posts").status_code == 201
    limits.refuse("create_post", wait_time=1500)
    response = browser.post("/posts")
    assert (response.status_code, response.headers["Retry-After"]) == (429, "2")
    assert response.headers["RateLimit-Policy"] == '"create_post";q=1;w=60'
    assert response.headers["RateLimit"].startswith('"create_post";r=0;t=')
    limits.outage = True
    assert browser.post("/posts").status_code == 503


def test_the_middleware_of_asgi(limits: FakeGuards) -> None:
    guards = limits.async_client(ACTIVITIES)
    app = LimitMiddleware(PlainTextResponse("created", 201), guards=guards, activity="create_post", user_id=lambda _: "u1")

    async def statuses() -> list[int]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as browser:
            first = await browser.post("/posts")
            limits.refuse("create_post")
            return [first.status_code, (await browser.post("/posts")).status_code]

    assert asyncio.run(statuses()) == [201, 429]
