from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from guards import AsyncGuards, ConfigurationError, OutageError
from tests.conftest import SHORT, Client
from tests.server import Server, after, answer, function_error, hang, lambda_error, problem

TIMES = SHORT
MOMENT = "posts-guard did not answer a moment ago"


@pytest.mark.parametrize(
    "step", [hang, lambda_error(429, "TooManyRequestsException"), function_error("Sandbox.Timedout", "Task timed out")]
)
def test_calls_fail_at_once_for_a_second_after_an_outage(
    server: Server, new: Callable[..., Client], step: Callable[..., None]
) -> None:
    server.does(step)
    client = new()
    client.check("create_post", user_id="u1")
    sent = len(server.received)
    server.does(answer())
    began = time.monotonic()
    while time.monotonic() < began + 0.8:
        decision = client.check("delete_post", user_id="u2")
        assert str(decision.outage) == MOMENT
        assert decision.allowed
        with pytest.raises(OutageError, match=f"^{MOMENT}$"):
            client.reset("create_post", user_id="u1")
        time.sleep(0.1)
    assert len(server.received) == sent
    assert client.check("pin", user_id="u1").reason == "ok"  # another guard
    time.sleep(0.3)
    assert client.check("create_post", user_id="u1").reason == "ok"  # the probe
    assert client.check("create_post", user_id="u1").reason == "ok"


# Perhaps only one user's key is throttled. With ON_OUTAGE=deny, that must not let everybody else through.
@pytest.mark.parametrize("url", [False, True])
def test_a_guards_own_outage_is_for_one_call_only(server: Server, new: Callable[..., Client], url: bool) -> None:
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
    time.sleep(1.05)
    assert [outage_of_a_check() for _ in range(2)] == [f"posts-guard did not answer: {text}", ""]  # the first one is the probe
    assert len(server.received) == 5


def test_a_mistake_is_no_outage(server: Server, new: Callable[..., Client]) -> None:
    server.does(lambda_error(403, "AccessDeniedException"), answer())
    client = new()
    with pytest.raises(ConfigurationError):
        client.check("create_post", user_id="u1")
    assert client.check("create_post", user_id="u1").reason == "ok"


def test_a_probe_that_finds_an_outage_closes_the_guard_again(server: Server, new: Callable[..., Client]) -> None:
    server.does(lambda_error(500, "ServiceException"))
    client = new()
    client.check("create_post", user_id="u1")
    time.sleep(1.05)
    client.check("create_post", user_id="u1")
    sent = len(server.received)
    assert sent == 6
    assert str(client.check("create_post", user_id="u1").outage) == MOMENT
    assert len(server.received) == sent


def test_warnings_come_at_most_once_a_second(server: Server, new: Callable[..., Client]) -> None:
    server.does(lambda_error(500, "ServiceException"))
    client = new()
    for _ in range(20):
        client.check("create_post", user_id="u1")
        client.check("pin", user_id="u1")
    assert [str(w) for w in client.warnings] == ["posts-guard did not answer: ServiceException"]
    time.sleep(1.05)
    client.check("create_post", user_id="u1")
    assert len(client.warnings) == 2


def test_only_one_call_probes(server: Server) -> None:
    async def main() -> None:
        client = AsyncGuards(**SHORT, warn=lambda error: None)  # noqa: ARG005
        server.does(lambda_error(500, "ServiceException"))
        await client.check("create_post", user_id="u1")
        del server.received[:]
        server.does(after(0.3, answer()))
        await asyncio.sleep(1.05)
        answers = await asyncio.gather(*(client.check("create_post", user_id="u1") for _ in range(20)))
        assert sorted(a.reason for a in answers) == ["ok"] + ["unavailable"] * 19
        assert len(server.received) == 1
        answers = await asyncio.gather(*(client.check("create_post", user_id="u1") for _ in range(20)))
        assert all(a.reason == "ok" for a in answers)
        client.close()

    asyncio.run(main())


def test_another_call_probes_if_a_probe_takes_more_than_a_second(server: Server) -> None:
    async def main() -> None:
        client = AsyncGuards(timeout=3, decision_timeout=2.5, warn=lambda error: None)  # noqa: ARG005
        server.does(lambda_error(500, "ServiceException"))
        await client.check("create_post", user_id="u1")
        server.does(after(1.5, answer()), answer())
        await asyncio.sleep(1.05)
        slow = asyncio.create_task(client.check("create_post", user_id="u1"))
        await asyncio.sleep(0.7)
        assert (await client.check("create_post", user_id="u1")).outage is not None
        await asyncio.sleep(0.4)
        assert (await client.check("create_post", user_id="u1")).reason == "ok"
        assert not slow.done()
        assert (await slow).reason == "ok"
        client.close()

    asyncio.run(main())


def test_a_cancelled_probe_lets_the_next_call_probe(server: Server) -> None:
    async def main() -> None:
        client = AsyncGuards(**SHORT, warn=lambda error: None)  # noqa: ARG005
        server.does(lambda_error(500, "ServiceException"))
        await client.check("create_post", user_id="u1")
        server.does(hang, answer())
        await asyncio.sleep(1.05)
        probe = asyncio.create_task(client.check("create_post", user_id="u1"))
        await asyncio.sleep(0.1)
        probe.cancel()
        with pytest.raises(asyncio.CancelledError):
            await probe
        assert (await client.check("create_post", user_id="u1")).reason == "ok"
        client.close()

    asyncio.run(main())
