from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from guards import AsyncGuards, ConfigurationError, OutageError
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
    client = new(attempts=1, urls={"posts-guard": server.url} if url else {})

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
    clock.now += 1
    client.check("create_post", user_id="u1")
    assert len(client.warnings) == 2


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
        client = AsyncGuards(**PATIENT, attempts=1, warn=lambda error: None)  # noqa: ARG005
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
        client = AsyncGuards(**PATIENT, attempts=1, warn=lambda error: None)  # noqa: ARG005
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


@pytest.mark.parametrize("answered", [True, False])
def test_a_cancelled_probe_undoes_nothing_that_another_call_found_since(clock: Clock, answered: bool) -> None:
    breaker = Breaker()

    def outage() -> None:
        with pytest.raises(OutageError, match=r"^lost$"), breaker.call("posts-guard"):
            raise OutageError("lost")

    outage()
    clock.now += 1
    with suppress(asyncio.CancelledError), breaker.call("posts-guard"):  # the probe
        clock.now += 1
        if answered:
            with breaker.call("posts-guard"):
                pass
        else:
            outage()
        raise asyncio.CancelledError
    if answered:
        with breaker.call("posts-guard"), breaker.call("posts-guard"):  # none of them is a probe
            return
    with pytest.raises(OutageError, match=f"^{MOMENT}$"), breaker.call("posts-guard"):
        pass
