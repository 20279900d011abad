"""on_outage of one check and of one middleware: sign-in may deny where posts allow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from guards import AsyncGuards, ConfigurationError, Guards, LimitedError, OutageError, ValidationError
from guards.http import refusal
from tests.conftest import PATIENT, Client, until
from tests.server import Server, after, answer, function_error, lambda_error, refuse
from tests.test_mistakes import CREATED, MIDDLEWARE, Middleware, by_flask

LATER = "Please try again later."


@pytest.mark.parametrize("client_allows", [True, False])
@pytest.mark.parametrize("call", [None, "allow", "deny"])
def test_the_call_wins_over_the_client(server: Server, new: Callable[..., Client], client_allows: bool, call: str | None) -> None:
    server.does(function_error("Unavailable", "the table did not answer"))
    client = new(on_outage="allow" if client_allows else "deny")
    decision = client.check("create_post", user_id="u1", count=2, on_outage=call)
    allowed = client_allows if call is None else call == "allow"
    assert (decision.allowed, decision.reason, decision.granted) == (allowed, "unavailable", 2 if allowed else 0)
    assert decision.message == (None if allowed else LATER)
    assert "onOutage" not in server.received[0].event
    assert "on_outage" not in server.received[0].event


@pytest.mark.parametrize("mode", [{}, {"granted": 0, "at": None, "requestId": None}])
def test_deny_also_refuses_what_a_guard_decided_from_its_memory(
    server: Server, new: Callable[..., Client], mode: dict[str, Any]
) -> None:
    server.does(answer(reason="unavailable", **mode))  # in shadow mode, nothing is granted
    for own in ("allow", "deny"):
        client = new(on_outage=own)
        assert client.check("create_post", user_id="u1").allowed  # the client's own option keeps its meaning
        assert client.check("create_post", user_id="u1", on_outage="allow").allowed
        decision = client.check("create_post", user_id="u1", on_outage="deny")
        assert (decision.allowed, decision.reason, decision.message, decision.granted) == (False, "unavailable", LATER, 0)
        assert str(decision.outage) == "posts-guard decided from its memory, because its table did not answer"
        assert refusal(decision).status == 503
        assert not decision.has_receipt
        assert client.check("create_post", user_id="u1").outage is None  # there is no pause


# The table has counted for some of the subjects, and memory decided for the others.
def test_what_was_counted_for_a_check_that_deny_refuses_is_given_back_once(server: Server, new: Callable[..., Client]) -> None:
    lost = lambda_error(500, "ServiceException")
    for step, failures in ((answer(), 0), (function_error("Unavailable", "m"), 1), (lost, 1)):
        server.does(answer(reason="unavailable"), step)
        del server.received[:]
        client = new(max_tries=1)
        decision = client.check("create_post", user_id="u1", count=3, tier="pro", on_outage="deny")
        assert (decision.allowed, decision.message, decision.has_receipt) == (False, LATER, False)
        check, release = (received.event for received in server.received)
        assert release == {**check, "op": "release", "at": 1_700_000_000_000}
        assert [type(warning) for warning in client.warnings] == [OutageError] * (failures + 1)
        assert "from its memory" in str(client.warnings[-1])


def test_what_was_counted_is_given_back_if_the_check_is_cancelled_meanwhile(server: Server) -> None:
    server.does(answer(reason="unavailable"), after(0.3, answer()))

    async def main() -> None:
        client = AsyncGuards(**PATIENT, warn=lambda _: None)
        check = asyncio.create_task(client.check("create_post", user_id="u1", on_outage="deny"))
        await until(lambda: len(server.received) == 2)
        check.cancel()
        with pytest.raises(asyncio.CancelledError):
            await check
        await until(lambda: len(asyncio.all_tasks()) == 1)  # this one
        client.close()

    asyncio.run(main())
    assert server.received[1].event["op"] == "release"


def test_other_answers_stay_as_they_are(server: Server, new: Callable[..., Client]) -> None:
    client = new()
    for step, allowed in (
        (answer(), True),
        (refuse(), False),
        (answer(reason="shadow"), True),
        (refuse(reason="unavailable"), False),
    ):
        server.does(step)
        decision = client.check("create_post", user_id="u1", on_outage="deny")
        assert (decision.allowed, decision.outage) == (allowed, None)


@pytest.mark.parametrize("form", ["function", "context"])
def test_guarded(server: Server, new: Callable[..., Client], form: str) -> None:
    server.does(lambda_error(500, "ServiceException"))
    with pytest.raises(LimitedError) as error:
        new().guarded_call(lambda _: None, form, on_outage="deny")
    assert error.value.__cause__ is error.value.decision.outage
    assert new(on_outage="deny").guarded_call(lambda decision: decision.reason, form, on_outage="allow") == "unavailable"


def test_a_slot(server: Server) -> None:
    server.does(lambda_error(500, "ServiceException"))
    with Guards(**PATIENT).slot("create_post", user_id="u1", on_outage="deny") as slot:
        assert not slot.allowed

    async def main() -> None:
        async with AsyncGuards(**PATIENT).slot("create_post", user_id="u1", on_outage="deny") as held:
            assert not held.allowed

    asyncio.run(main())


def test_a_wrong_value_is_an_error_before_any_request(server: Server, new: Callable[..., Client]) -> None:
    for value in ("open", True, 1):
        with pytest.raises(ValidationError, match=r'^on_outage is .*, want "allow" or "deny"$'):
            new().check("create_post", user_id="u1", on_outage=value)
    with pytest.raises(TypeError):
        new().status("create_post", user_id="u1", on_outage="deny")
    assert server.received == []


@MIDDLEWARE
@pytest.mark.parametrize("client_allows", [True, False])
def test_a_middleware(server: Server, middleware: Middleware, client_allows: bool) -> None:
    server.does(function_error("Unavailable", "the table did not answer"))
    form: Any = Guards if middleware is by_flask else AsyncGuards
    client = form(**PATIENT, on_outage="allow" if client_allows else "deny", warn=lambda _: None)
    denied = middleware(client, {"on_outage": "deny"})
    assert (denied.status_code, denied.headers["retry-after"]) == (503, "1")
    assert middleware(client, {"on_outage": "allow"}).text == CREATED
    assert (middleware(client, {}).text == CREATED) is client_allows
    # What the function options returns for this request wins, unless it is None.
    assert middleware(client, {"on_outage": "deny", "options": lambda *_: {"on_outage": "allow"}}).text == CREATED
    assert middleware(client, {"on_outage": "deny", "options": lambda *_: {"on_outage": None}}).status_code == 503
    server.does(answer(reason="unavailable"))
    assert middleware(client, {"on_outage": "deny"}).status_code == 503
    client.close()


@MIDDLEWARE
def test_a_wrong_option_of_a_middleware_is_an_error_at_once(middleware: Middleware) -> None:
    form: Any = Guards if middleware is by_flask else AsyncGuards
    with pytest.raises(ConfigurationError, match=r"^The option on_outage is 'open', want \"allow\" or \"deny\"\.$"):
        middleware(form(**PATIENT), {"on_outage": "open"})
