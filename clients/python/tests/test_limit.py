"""Numbers at run time: how high a limit is for this request."""

from __future__ import annotations

import dataclasses
import gc
import json
import pickle
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pytest

from guards import Decision, ValidationError
from guards.http import refusal
from guards.testing import FakeGuards
from tests.activities import ACTIVITIES
from tests.conftest import Client
from tests.server import Server, answer, lambda_error, refuse
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
    status, headers, _ = refusal(decision)
    assert (status, headers) == (429, {"Content-Type": "application/problem+json", "Retry-After": "1"})


NUMBER = "want a whole number from 0 to 1,000,000"
ALONE = f'{NUMBER}, or such numbers by the names of limits, such as {{"tenant": 50000}}'
FORM = 'limit has another form, want one such as {"tenant": 50000}'
OF_NO_NUMBER: list[tuple[Any, str]] = [
    (True, "True"),
    (False, "False"),
    (1.0, "of the type float"),
    (float("nan"), "nan"),
    (-1, "negative"),
    (1_000_001, "of the type int"),
    (2**53, "of the type int"),
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
    ({"t-4711": None}, f"a number of limit is None, {NUMBER}"),
    ({7: 5}, FORM),
    ({"": 5}, FORM),
    ({None: 5}, FORM),
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


def test_the_stand_in_sees_numbers() -> None:
    limits = FakeGuards()
    guards = limits.client(ACTIVITIES)
    guards.release(guards.check("create_post", user_id="u1", limit=NAMED, tier="pro"))
    guards.check("create_post", user_id="u1", limit=0)
    guards.check("create_post", user_id="u1")
    assert [call.limit for call in limits.calls] == [NAMED, NAMED, 0, None]
    assert [call.tier for call in limits.calls] == ["pro", "pro", None, None]
