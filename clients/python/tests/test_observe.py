"""The option observe: each decision, how long it took, and by which way."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any
from unittest.mock import AsyncMock

import pytest

from guards import ConfigurationError, Decision, Guards
from tests.conftest import LISTED, Client
from tests.server import Server, after, answer, lambda_error, refuse
from tests.test_agent import as_agent

SUBJECTS = {"room": "r-secret"}
WRITE: dict[str, Any] = {"activities": {**LISTED["activities"], "write": ("posts-guard", None, ("room",))}}


class Seen:
    def __init__(self) -> None:
        self.all: list[tuple[Decision, float, str]] = []

    def __call__(self, *seen: Any) -> None:
        self.all.append(seen)


def test_each_decision_is_observed(server: Server, new: Callable[..., Client]) -> None:
    seen = Seen()
    client = new(observe=seen, urls={"pins-guard": server.url})
    server.does(after(0.2, answer()), refuse(), answer())
    client.check("create_post", user_id="u1")
    client.check("create_post", user_id="u1")
    client.check("pin", user_id="u1")
    client.status("create_post", user_id="u1")
    client.reset("create_post", user_id="u1")
    client.release("create_post", user_id="u1", at=5, request_id="r1")
    assert [(d.op, d.reason, d.guard, way) for d, _, way in seen.all] == [
        ("check", "ok", "posts-guard", "invoke"),
        ("check", "limited", "posts-guard", "invoke"),
        ("check", "ok", "pins-guard", "url"),
        ("status", "ok", "posts-guard", "invoke"),
        ("reset", "ok", "posts-guard", "invoke"),
        ("release", "ok", "posts-guard", "invoke"),
    ]
    assert 0.2 <= seen.all[0][1] < 20
    assert all(0 < seconds < 20 for _, seconds, _ in seen.all)


def test_no_id_is_observed(server: Server, new: Callable[..., Client]) -> None:
    seen = Seen()
    server.does(answer(subjects=SUBJECTS))
    decision = new(observe=seen, **WRITE).check("write", user_id="u-secret", request_id="q-secret", subjects=SUBJECTS)
    (observed, _, _) = seen.all[0]
    assert "secret" not in str(vars(observed))
    assert observed.limit == decision.limit
    assert (decision.user_id, decision.request_id, decision.subjects) == ("u-secret", "q-secret", SUBJECTS)


@pytest.mark.parametrize("on_outage", ["allow", "deny"])
def test_an_outage_is_observed_once(server: Server, new: Callable[..., Client], on_outage: str) -> None:
    seen = Seen()
    server.does(lambda_error(500, "ServiceException"))
    client = new(observe=seen, on_outage=on_outage)
    client.check("create_post", user_id="u1")
    ((decision, _, way),) = seen.all
    assert (decision.allowed, decision.reason, way) == (on_outage == "allow", "unavailable", "invoke")
    assert decision.outage is not None


def test_what_on_outage_of_a_call_made_of_an_answer_is_observed(server: Server, new: Callable[..., Client]) -> None:
    seen = Seen()
    server.does(answer(reason="unavailable", at=None))
    new(observe=seen).check("create_post", user_id="u1", on_outage="deny")
    assert [decision.allowed for decision, _, _ in seen.all] == [False]


def test_a_mistake_is_no_decision(server: Server, new: Callable[..., Client]) -> None:
    seen = Seen()
    server.does(lambda_error(403, "AccessDeniedException"))
    with pytest.raises(ConfigurationError):
        new(observe=seen).check("create_post", user_id="u1")
    assert seen.all == []


def test_the_way_of_an_agent(server: Server, new: Callable[..., Client]) -> None:
    seen = Seen()
    server.does(as_agent(answer()))
    new(observe=seen, agent=server.url).check("create_post", user_id="u1")
    assert seen.all[0][2] == "agent"


def test_an_observer_that_fails_changes_nothing(
    server: Server, new: Callable[..., Client], caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise OSError("the app's own")

    def later(*_: Any) -> Any:
        return AsyncMock()()

    for observe in (fail, later):
        caplog.clear()
        with caplog.at_level(logging.ERROR, "guards"):
            assert new(observe=observe).check("create_post", user_id="u1").reason == "ok"
        assert "the option observe raised an error" in caplog.text
    assert len(server.received) == 2


def test_an_observer_must_be_a_function() -> None:
    for wrong in ("stderr", AsyncMock()):
        with pytest.raises(ConfigurationError, match=r"^The option observe is .*, want a function that is not async\.$"):
            Guards(observe=wrong)  # type: ignore[arg-type]
