from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from guards import AsyncGuards, ConfigurationError, OutageError
from tests.conftest import PATIENT, SHORT, Client, Clock
from tests.server import Handler, Server, answer, function_error, hang, lambda_error

MOMENT = "posts-guard did not answer a moment ago"
FAILURE = lambda_error(500, "ServiceException")


@pytest.mark.parametrize(
    "step", [hang, lambda_error(429, "TooManyRequestsException"), function_error("Unavailable", "the table did not answer")]
)
def test_calls_fail_at_once_for_a_second_after_an_outage(
    server: Server, new: Callable[..., Client], clock: Clock, step: Callable[..., None]
) -> None:
    server.does(step)
    client = new(**(SHORT if step is hang else {}))
    client.check("create_post", user_id="u1")
    sent = len(server.received)
    server.does(answer())
    for _ in range(3):
        decision = client.check("delete_post", user_id="u2")
        assert str(decision.outage) == MOMENT
        assert decision.allowed
        with pytest.raises(OutageError, match=f"^{MOMENT}$"):
            client.reset("create_post", user_id="u1")
        clock.now += 0.33
    assert len(server.received) == sent
    assert client.check("pin", user_id="u1").reason == "ok"  # another guard
    clock.now += 0.02
    assert client.check("create_post", user_id="u1").reason == "ok"  # the probe
    assert client.check("create_post", user_id="u1").reason == "ok"


def test_a_mistake_is_no_outage(server: Server, new: Callable[..., Client]) -> None:
    server.does(lambda_error(403, "AccessDeniedException"), answer())
    client = new()
    with pytest.raises(ConfigurationError):
        client.check("create_post", user_id="u1")
    assert client.check("create_post", user_id="u1").reason == "ok"


def test_a_probe_that_finds_an_outage_closes_the_guard_again(server: Server, new: Callable[..., Client], clock: Clock) -> None:
    server.does(FAILURE)
    client = new()
    client.check("create_post", user_id="u1")
    clock.now += 1
    client.check("create_post", user_id="u1")
    assert len(server.received) == 6
    clock.now += 0.99
    assert str(client.check("create_post", user_id="u1").outage) == MOMENT
    assert len(server.received) == 6


def test_warnings_come_at_most_once_a_second(server: Server, new: Callable[..., Client], clock: Clock) -> None:
    server.does(FAILURE)
    client = new()
    for _ in range(20):
        client.check("create_post", user_id="u1")
        client.check("pin", user_id="u1")
    assert [str(w) for w in client.warnings] == ["posts-guard did not answer: ServiceException"]
    clock.now += 0.99
    client.check("create_post", user_id="u1")
    assert len(client.warnings) == 1
    clock.now += 0.01
    client.check("create_post", user_id="u1")
    assert len(client.warnings) == 2


async def after_an_outage(server: Server, clock: Clock) -> AsyncGuards:
    """Return a client whose next call is a probe."""
    client = AsyncGuards(**PATIENT, warn=lambda _: None)
    server.does(FAILURE)
    assert (await client.check("create_post", user_id="u1")).outage is not None
    clock.now += 1
    del server.received[:]
    return client


class Gate:
    """A step that answers when the test says so."""

    def __init__(self) -> None:
        self.arrived, self.open = threading.Event(), threading.Event()

    def __call__(self, handler: Handler) -> None:
        self.arrived.set()
        self.open.wait(20)
        answer()(handler)


def test_one_call_probes_and_the_others_fail_for_a_further_second(server: Server, clock: Clock) -> None:
    async def main() -> None:
        client = await after_an_outage(server, clock)
        gate = Gate()
        server.does(gate, answer())
        probe = asyncio.create_task(client.check("create_post", user_id="u1"))
        await asyncio.to_thread(gate.arrived.wait, 20)
        answers = await asyncio.gather(*(client.check("create_post", user_id="u1") for _ in range(20)))
        assert {str(a.outage) for a in answers} == {MOMENT}
        clock.now += 0.99
        assert (await client.check("create_post", user_id="u1")).outage is not None
        assert len(server.received) == 1
        clock.now += 0.01
        assert (await client.check("create_post", user_id="u1")).reason == "ok"
        assert not probe.done()
        gate.open.set()
        assert (await probe).reason == "ok"
        client.close()

    asyncio.run(main())


def test_after_a_good_probe_all_calls_ask(server: Server, clock: Clock) -> None:
    async def main() -> None:
        client = await after_an_outage(server, clock)
        server.does(answer())
        assert (await client.check("create_post", user_id="u1")).reason == "ok"
        answers = await asyncio.gather(*(client.check("create_post", user_id="u1") for _ in range(20)))
        assert {a.reason for a in answers} == {"ok"}
        client.close()

    asyncio.run(main())


def test_a_cancelled_probe_lets_the_next_call_probe(server: Server, clock: Clock) -> None:
    async def main() -> None:
        client = await after_an_outage(server, clock)
        gate = Gate()
        server.does(gate, answer())
        probe = asyncio.create_task(client.check("create_post", user_id="u1"))
        await asyncio.to_thread(gate.arrived.wait, 20)
        probe.cancel()
        with pytest.raises(asyncio.CancelledError):
            await probe
        assert (await client.check("create_post", user_id="u1")).reason == "ok"
        gate.open.set()
        client.close()

    asyncio.run(main())
