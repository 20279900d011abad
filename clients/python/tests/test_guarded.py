from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from guards import AsyncGuards, ConfigurationError, Decision, Guards, LimitedError, OutageError
from guards._decision import time_to_wait
from tests.activities import ACTIVITIES
from tests.conftest import PATIENT, Client
from tests.server import Handler, Server, answer, function_error, lambda_error, refuse

FORMS = pytest.mark.parametrize("form", ["function", "context"])


class SaveError(Exception):
    pass


def fail(decision: Decision) -> None:
    raise SaveError(decision.reason)


@FORMS
def test_an_allowed_action_runs(server: Server, new: Callable[..., Client], form: str) -> None:
    assert new().guarded_call(lambda d: (d.reason, d.granted), form, count=2) == ("ok", 2)
    assert [received.event["op"] for received in server.received] == ["check"]


@FORMS
@pytest.mark.parametrize("step", [refuse(), refuse(reason="delayed", at=5, requestId="r1", readyAt=10)])
def test_a_refused_action_does_not_run(server: Server, new: Callable[..., Client], form: str, step: Any) -> None:
    server.does(step)
    with pytest.raises(LimitedError, match=r"^Too many\.$") as error:
        new().guarded_call(fail, form)
    assert not error.value.decision.allowed
    assert error.value.decision.wait_time == 1500
    assert error.value.guard == "posts-guard"
    assert error.value.__cause__ is None
    assert len(server.received) == 1


@FORMS
def test_a_failed_action_is_given_back(server: Server, new: Callable[..., Client], form: str) -> None:
    server.does(answer(granted=2))
    with pytest.raises(SaveError, match="ok"):
        new().guarded_call(fail, form, count=3, request_id="r1")
    check, release = (received.event for received in server.received)
    assert check["op"] == "check"
    expected = {
        "userId": "u1",
        "activity": "create_post",
        "op": "release",
        "at": 1_700_000_000_000,
        "requestId": "r1",
        "count": 2,
    }
    assert release == expected


@FORMS
@pytest.mark.parametrize("reason", ["duplicate", "bypassed", "unlimited", "shadow", "unavailable"])
def test_what_was_not_counted_is_not_given_back(server: Server, new: Callable[..., Client], form: str, reason: str) -> None:
    server.does(answer(reason=reason, at=None, requestId=None))
    with pytest.raises(SaveError):
        new().guarded_call(fail, form)
    assert len(server.received) == 1


@FORMS
def test_an_action_in_an_outage(server: Server, new: Callable[..., Client], form: str) -> None:
    server.does(lambda_error(500, "ServiceException"))
    assert new().guarded_call(lambda d: d.reason, form) == "unavailable"
    with pytest.raises(SaveError):
        new().guarded_call(fail, form)
    with pytest.raises(LimitedError, match=r"^Please try again later\.$") as error:
        new(on_outage="deny", prefix="test-").guarded_call(fail, form)
    assert error.value.guard == "test-posts-guard"
    assert error.value.decision.guard == "posts-guard"
    assert isinstance(error.value.__cause__, OutageError)
    assert error.value.__cause__ is error.value.decision.outage
    assert all(received.event["op"] == "check" for received in server.received)


@FORMS
def test_a_release_that_fails_is_a_warning(server: Server, new: Callable[..., Client], form: str) -> None:
    server.does(answer(), lambda_error(403, "AccessDeniedException"))
    client = new()
    with pytest.raises(SaveError):
        client.guarded_call(fail, form)
    (warning,) = client.warnings
    assert isinstance(warning, ConfigurationError)


@FORMS
def test_every_release_that_fails_is_a_warning(server: Server, new: Callable[..., Client], form: str) -> None:
    client = new(max_tries=1)
    server.does(lambda_error(500, "ServiceException"), answer())
    client.check("pin", user_id="u1")  # the warning of an outage holds no other one back
    server.does(lambda handler: (lost if handler.received.event["op"] == "release" else answer())(handler))
    lost = lambda_error(403, "AccessDeniedException")
    for _ in range(3):
        with pytest.raises(SaveError):
            client.guarded_call(fail, form)
    assert [type(warning) for warning in client.warnings] == [OutageError] + [ConfigurationError] * 3
    lost = lambda_error(500, "ServiceException")
    with pytest.raises(SaveError):
        client.guarded_call(fail, form)
    assert type(client.warnings[-1]) is OutageError
    assert len(client.warnings) == 5


@FORMS
def test_a_warning_that_fails_hides_nothing(
    server: Server, new: Callable[..., Client], form: str, caplog: pytest.LogCaptureFixture
) -> None:
    def warn(_: Exception) -> None:
        raise RuntimeError("no log")

    server.does(answer(), lambda_error(403, "AccessDeniedException"))
    with pytest.raises(SaveError):
        new(warn=warn).guarded_call(fail, form)
    assert "the option warn raised an error" in caplog.text


async def save(decision: Decision) -> str:
    return decision.reason


@pytest.mark.parametrize("hidden", [False, True])
def test_an_async_function_is_a_mistake_without_asyncio(server: Server, hidden: bool) -> None:
    client = Guards(**PATIENT)
    with pytest.raises(ConfigurationError, match=r"^The function of guarded is async, want a function that is not async\.$"):
        _ = client.guarded("create_post", (lambda decision: save(decision)) if hidden else save, user_id="u1")
    assert [received.event["op"] for received in server.received] == (["check", "release"] if hidden else [])
    client.close()


def test_an_ordinary_function_runs_with_asyncio_too(server: Server) -> None:
    client: Any = AsyncGuards(**PATIENT)
    for fn in (lambda decision: decision.reason, lambda decision: save(decision), save):
        server.received.clear()
        assert asyncio.run(client.guarded("create_post", fn, user_id="u1")) == "ok"
        assert [received.event["op"] for received in server.received] == ["check"]  # nothing was given back
    client.close()


def test_a_warn_that_returns_a_coroutine_is_logged(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    async def warn(_: Exception) -> None: ...

    server.does(lambda_error(500, "ServiceException"))
    client = Guards(**PATIENT, warn=lambda error: warn(error))
    assert client.check("create_post", user_id="u1").reason == "unavailable"
    assert "The option warn is async, want a function that is not async." in caplog.text
    client.close()


@FORMS
def test_an_interrupted_action_is_given_back(server: Server, new: Callable[..., Client], form: str) -> None:
    def interrupt(_: Decision) -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        new().guarded_call(interrupt, form)
    assert [received.event["op"] for received in server.received] == ["check", "release"]


def test_the_default_warning_names_no_user(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    server.does(function_error("Unavailable", "u-secret-1 asked for r-secret-1"))
    client = Guards(**PATIENT)
    with caplog.at_level(logging.WARNING):
        client.check("create_post", user_id="u-secret-1", request_id="r-secret-1")
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("guards", "WARNING")
    assert record.getMessage() == "posts-guard did not answer: *** asked for ***"
    assert "secret" not in caplog.text
    client.close()


def test_ready_asks_each_guard_once(server: Server, new: Callable[..., Client]) -> None:
    new().ready()
    paths = sorted(received.path.split("/")[3] for received in server.received)
    known = {guard for guard, _ in ACTIVITIES.values()}
    assert "posts-guard" in known
    assert paths == sorted(known)
    assert {(received.event["userId"], received.event["op"]) for received in server.received} == {("ready", "status")}


def test_ready_for_some_activities(server: Server, new: Callable[..., Client]) -> None:
    server.does(refuse())  # a refusal is an answer
    new().ready("create_post", "delete_post", "pin")
    assert sorted(received.event["activity"] for received in server.received) == ["create_post", "pin"]


def test_ready_asks_the_guards_at_the_same_time(server: Server, new: Callable[..., Client]) -> None:
    known = {guard for guard, _ in ACTIVITIES.values()}
    together = threading.Barrier(len(known), timeout=15)

    def step(handler: Handler) -> None:
        together.wait()
        answer()(handler)

    server.does(step)
    new(max_tries=1).ready()


def test_ready_finds_mistakes_and_outages(server: Server, new: Callable[..., Client]) -> None:
    server.does(answer(), lambda_error(404, "ResourceNotFoundException"))
    with pytest.raises(ConfigurationError, match="There is no function"):
        new().ready()
    server.does(lambda_error(500, "ServiceException"))
    with pytest.raises(OutageError, match=r"^posts-guard did not answer"):
        new().ready("create_post")


def test_wait(server: Server, new: Callable[..., Client]) -> None:
    client = new()
    server.does(refuse(waitTime=200))
    decision = client.check("create_post", user_id="u1")
    began = time.monotonic()
    assert client.wait(decision) is True
    assert 0.2 <= time.monotonic() - began < 10
    assert client.wait(decision, max_wait=0.1) is False


@pytest.mark.parametrize(
    ("step", "can_pass"),
    [
        (answer(waitTime=0), True),
        (answer(reason="bypassed", waitTime=None), True),
        (lambda_error(500, "ServiceException"), False),
        (refuse(waitTime=None), False),
    ],
    ids=range(4),
)
def test_nothing_to_wait_for(
    server: Server, new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, step: Any, can_pass: bool
) -> None:
    server.does(step)
    client = new(on_outage="deny", max_tries=1)
    decision = client.check("create_post", user_id="u1")
    monkeypatch.setattr(random, "uniform", lambda _, most: most)  # at most 50 ms would be added
    assert time_to_wait(decision, 60) == (0 if can_pass else None)
    assert client.wait(decision) is can_pass
