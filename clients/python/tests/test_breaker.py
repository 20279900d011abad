from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from guards import AnswerError, AsyncGuards, ConfigurationError, OutageError
from guards._breaker import Breaker
from tests.conftest import BRIEF, PATIENT, Client, Clock, until
from tests.server import Handler, Server, after, answer, function_error, hang, lambda_error, problem

MOMENT = "posts-guard did not answer a moment ago"


@pytest.mark.parametrize(
    ("step", "times"),
    [
        (hang, BRIEF),
        (lambda_error(429, "TooManyRequestsException"), PATIENT),
        (function_error("Sandbox.Timedout", "Task timed out"), PATIENT),
    ],
    ids=range(3),
)
def test_calls_fail_at_once_for_a_second_after_an_outage(
    server: Server, new: Callable[..., Client], clock: Clock, step: Callable[..., None], times: dict[str, Any]
) -> None:
    server.does(step)
    client = new(**times)
    client.check("create_post", user_id="u1")
    sent = len(server.received)
    server.does(answer())
    for moment in (0, 0.96875):
        clock.now += moment
        decision = client.check("delete_post", user_id="u2")
        assert str(decision.outage) == MOMENT
        assert decision.allowed
        with pytest.raises(OutageError, match=f"^{MOMENT}$"):
            client.reset("create_post", user_id="u1")
    assert len(server.received) == sent
    assert client.check("pin", user_id="u1").reason == "ok"  # another guard
    clock.now += 0.03125
    assert client.check("create_post", user_id="u1").reason == "ok"  # the probe
    assert client.check("create_post", user_id="u1").reason == "ok"


# Perhaps only one user's key is throttled. With ON_OUTAGE=deny, that must not let everybody else through.
@pytest.mark.parametrize("url", [False, True])
def test_a_guards_own_outage_is_for_one_call_only(server: Server, new: Callable[..., Client], clock: Clock, url: bool) -> None:
    text = "the table is throttled"
    own = problem(503, "Unavailable", text) if url else function_error("Unavailable", text)
    server.does(own, answer())
    client = new(max_tries=1, urls={"posts-guard": server.url} if url else {})

    def outage_of_a_check() -> str:
        outage = client.check("create_post", user_id="u1").outage
        return str(outage) if outage else ""

    assert [outage_of_a_check() for _ in range(2)] == [f"posts-guard did not answer: {text}", ""]
    server.does(lambda_error(500, "ServiceException"), own, answer())
    assert outage_of_a_check() == "posts-guard did not answer: ServiceException"
    clock.now += 1
    assert [outage_of_a_check() for _ in range(2)] == [f"posts-guard did not answer: {text}", ""]  # the first one is the probe
    assert len(server.received) == 5


def test_a_mistake_is_no_outage(server: Server, new: Callable[..., Client]) -> None:
    server.does(lambda_error(403, "AccessDeniedException"), answer())
    client = new()
    with pytest.raises(ConfigurationError):
        client.check("create_post", user_id="u1")
    assert client.check("create_post", user_id="u1").reason == "ok"


def test_a_mistake_that_lambda_reports_to_a_probe_ends_the_outage(
    server: Server, new: Callable[..., Client], clock: Clock
) -> None:
    server.does(lambda_error(500, "ServiceException"))
    client = new()
    client.check("create_post", user_id="u1")
    clock.now += 1
    server.does(lambda_error(403, "AccessDeniedException"))
    with pytest.raises(ConfigurationError):
        client.check("create_post", user_id="u1")
    assert client.guards._breaker._functions["posts-guard"].paused is None


def test_a_probe_that_finds_an_outage_closes_the_guard_again(server: Server, new: Callable[..., Client], clock: Clock) -> None:
    server.does(lambda_error(500, "ServiceException"))
    client = new()
    client.check("create_post", user_id="u1")
    clock.now += 1
    client.check("create_post", user_id="u1")
    sent = len(server.received)
    assert sent == 6
    assert str(client.check("create_post", user_id="u1").outage) == MOMENT
    assert len(server.received) == sent


def test_warnings_come_at_most_once_a_second(server: Server, new: Callable[..., Client], clock: Clock) -> None:
    server.does(lambda_error(500, "ServiceException"))
    client = new()
    for _ in range(20):
        client.check("create_post", user_id="u1")
        client.check("pin", user_id="u1")
    assert [str(w) for w in client.warnings] == ["posts-guard did not answer: ServiceException"]
    for clock.now, clock.frozen in ((1001, 0), (1001, 1), (1002, -3600)):  # Lambda froze the process; the clock was set back
        seen = len(client.warnings)
        client.check("create_post", user_id="u1")
        assert len(client.warnings) == seen + 1


def test_only_one_call_probes(server: Server, clock: Clock) -> None:
    async def main() -> None:
        client = AsyncGuards(**PATIENT, warn=lambda error: None)  # noqa: ARG005
        server.does(lambda_error(500, "ServiceException"))
        await client.check("create_post", user_id="u1")
        del server.received[:]
        server.does(after(0.3, answer()))
        clock.now += 1
        answers = await asyncio.gather(*(client.check("create_post", user_id="u1") for _ in range(20)))
        assert sorted(a.reason for a in answers) == ["ok"] + ["unavailable"] * 19
        assert len(server.received) == 1
        answers = await asyncio.gather(*(client.check("create_post", user_id="u1") for _ in range(20)))
        assert all(a.reason == "ok" for a in answers)
        client.close()

    asyncio.run(main())


def test_another_call_probes_if_a_probe_takes_more_than_a_second(server: Server, clock: Clock) -> None:
    free = threading.Event()

    def held(handler: Handler) -> None:
        free.wait(30)
        answer()(handler)

    async def main() -> None:
        client = AsyncGuards(**PATIENT, max_tries=1, warn=lambda error: None)  # noqa: ARG005
        server.does(lambda_error(500, "ServiceException"))
        await client.check("create_post", user_id="u1")
        server.does(held, answer())
        clock.now += 1
        slow = asyncio.create_task(client.check("create_post", user_id="u1"))
        await until(lambda: len(server.received) == 2)
        clock.now += 0.96875
        assert (await client.check("create_post", user_id="u1")).outage is not None
        clock.now += 0.03125
        assert (await client.check("create_post", user_id="u1")).reason == "ok"
        assert not slow.done()
        free.set()
        assert (await slow).reason == "ok"
        client.close()

    asyncio.run(main())


def test_a_cancelled_probe_lets_the_next_call_probe(server: Server, clock: Clock) -> None:
    async def main() -> None:
        client = AsyncGuards(**PATIENT, max_tries=1, warn=lambda error: None)  # noqa: ARG005
        server.does(lambda_error(500, "ServiceException"))
        await client.check("create_post", user_id="u1")
        server.does(hang, answer())
        clock.now += 1
        probe = asyncio.create_task(client.check("create_post", user_id="u1"))
        await until(lambda: len(server.received) == 2)
        probe.cancel()
        with pytest.raises(asyncio.CancelledError):
            await probe
        assert (await client.check("create_post", user_id="u1")).reason == "ok"
        client.close()

    asyncio.run(main())


class Running:
    """A call that ends when a test calls it."""

    def __init__(self, breaker: Breaker) -> None:
        self._stack = ExitStack()
        self._call = self._stack.enter_context(breaker.call("posts-guard"))

    def __call__(self, error: BaseException | None) -> None:
        self._call.has_response = isinstance(error, AnswerError)
        with suppress(asyncio.CancelledError, AnswerError, OutageError, ConfigurationError), self._stack:
            if error is not None:
                raise error


class Calls:
    """A breaker, and calls that it lets through."""

    def __init__(self) -> None:
        self.breaker = Breaker()

    def begin(self) -> Running:
        return Running(self.breaker)

    def fails_at_once(self) -> bool:
        """Report whether a further call may not ask. If it may, it ends without a finding."""
        try:
            end = self.begin()
        except OutageError as error:
            return str(error) == MOMENT
        end(asyncio.CancelledError())
        return False


LOST = OutageError("lost")


@pytest.fixture
def calls(clock: Clock) -> Calls:  # noqa: ARG001
    return Calls()


def test_one_lost_call_is_no_outage_if_another_was_answered_since_it_began(calls: Calls) -> None:
    for answer_ in (None, AnswerError("a crash"), OutageError("the table", answered=True)):
        lost = calls.begin()
        calls.begin()(answer_)
        lost(LOST)
        assert not calls.fails_at_once()
    for no_answer in (ConfigurationError("no credentials"), asyncio.CancelledError()):
        lost = calls.begin()
        calls.begin()(no_answer)
        lost(LOST)
        assert calls.fails_at_once()
        calls.breaker._functions.clear()
    calls.begin()(None)
    calls.begin()(LOST)  # the answer came before
    assert calls.fails_at_once()


# Lambda freezes a process between invocations, and the monotonic clock can stand still meanwhile. The other one can be set.
@pytest.mark.parametrize(("monotonic", "frozen"), [(0, 1), (0, 10), (1, 0), (1, -3600), (0.5, 0.5)])
def test_a_pause_is_over_by_either_clock(calls: Calls, clock: Clock, monotonic: float, frozen: float) -> None:
    calls.begin()(LOST)
    clock.now += monotonic
    clock.frozen += frozen
    calls.breaker.look("posts-guard")
    assert not calls.fails_at_once()


def test_a_pause_lasts_until_one_of_the_clocks_says_otherwise(calls: Calls, clock: Clock) -> None:
    calls.begin()(LOST)
    clock.now += 0.96875
    assert calls.fails_at_once()
    for clock.frozen in (-3600, -0.96875):
        assert calls.fails_at_once()
        with pytest.raises(OutageError, match=MOMENT):
            calls.breaker.look("posts-guard")


def test_a_look_claims_no_probe(calls: Calls, clock: Clock) -> None:
    calls.breaker.look("posts-guard")
    calls.begin()(LOST)
    with pytest.raises(OutageError, match=MOMENT):
        calls.breaker.look("posts-guard")
    calls.breaker.look("pins-guard")
    clock.now += 1
    for _ in range(2):
        calls.breaker.look("posts-guard")
    probe = calls.begin()
    with pytest.raises(OutageError, match=MOMENT):
        calls.breaker.look("posts-guard")
    probe(None)
    calls.breaker.look("posts-guard")


def test_a_stale_probe_that_is_lost_changes_nothing(calls: Calls, clock: Clock) -> None:
    calls.begin()(LOST)
    clock.now += 1
    stale = calls.begin()
    clock.now += 1
    latest = calls.begin()
    clock.now += 0.5
    stale(LOST)
    clock.now += 0.5
    assert not calls.fails_at_once()  # the pause was not prolonged; that call is the latest probe, and ends
    latest(LOST)
    assert not calls.fails_at_once()
    third = calls.begin()
    third(None)
    latest(LOST)
    assert not calls.fails_at_once()


def test_a_stale_probe_does_not_reopen_the_pause_after_an_answer(calls: Calls, clock: Clock) -> None:
    calls.begin()(LOST)
    clock.now += 1
    stale = calls.begin()
    clock.now += 1
    calls.begin()(None)
    for end in (LOST, asyncio.CancelledError()):
        stale(end)
        assert not calls.fails_at_once()


@pytest.mark.parametrize("end", [asyncio.CancelledError(), ConfigurationError("no credentials")])
def test_a_stale_probe_lets_no_other_one_through(calls: Calls, clock: Clock, end: BaseException) -> None:
    calls.begin()(LOST)
    clock.now += 1
    stale = calls.begin()
    clock.now += 1
    latest = calls.begin()
    stale(end)
    assert calls.fails_at_once()
    latest(end)
    assert not calls.fails_at_once()


def test_a_mistake_that_the_guard_or_lambda_reports_is_an_answer_to_a_probe(calls: Calls, clock: Clock) -> None:
    calls.begin()(LOST)
    clock.now += 1
    calls.begin()(AnswerError("a crash"))
    calls.begin()
    assert not calls.fails_at_once()


def test_a_call_that_began_before_an_outage_and_is_lost_after_a_probe_began(calls: Calls, clock: Clock) -> None:
    early = calls.begin()
    calls.begin()(LOST)
    clock.now += 1
    probe = calls.begin()
    clock.now += 0.5
    early(LOST)
    probe(asyncio.CancelledError())
    clock.now += 0.5
    assert calls.fails_at_once()  # the last finding is the early call's
    clock.now += 0.5
    assert not calls.fails_at_once()
