from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from guards import AsyncGuards, Decision, GuardsError
from tests.conftest import PATIENT, until
from tests.server import Server, after, answer, close, hang


def run(test: Callable[[AsyncGuards], Awaitable[None]]) -> None:
    async def main() -> None:
        client = AsyncGuards(**PATIENT, warn=lambda error: None)  # noqa: ARG005
        await test(client)
        client.close()

    asyncio.run(main())


def test_fifty_calls_at_once(server: Server) -> None:
    async def test(client: AsyncGuards) -> None:
        server.does(after(0.5, answer()))
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        ticking = asyncio.create_task(tick())
        began = time.monotonic()
        answers = await asyncio.gather(*(client.check("create_post", user_id=f"u{n}") for n in range(50)))
        assert [a.user_id for a in answers] == [f"u{n}" for n in range(50)]
        assert all(a.reason == "ok" for a in answers)
        assert time.monotonic() - began < 20  # one after the other, they take 25 s
        assert ticks > 5  # the loop was not blocked
        ticking.cancel()

    run(test)


def test_a_cancelled_call_closes_its_connection(server: Server) -> None:
    async def test(client: AsyncGuards) -> None:
        server.does(hang)
        calls = [asyncio.create_task(client.check("create_post", user_id="u1")) for _ in range(50)]
        await until(lambda: len(server.received) == 50)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        assert all(call.cancelled() for call in calls)
        server.wait_until_closed()
        server.does(answer())
        assert (await client.check("create_post", user_id="u1")).reason == "ok"  # a cancelled call is no outage

    run(test)


def test_a_call_in_a_timeout_of_the_app(server: Server) -> None:
    async def test(client: AsyncGuards) -> None:
        server.does(hang, answer())
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(client.check("create_post", user_id="u1"), 0.1)
        assert (await client.check("create_post", user_id="u1")).reason == "ok"

    run(test)


def test_a_cancelled_wait() -> None:
    async def test(client: AsyncGuards) -> None:
        waiting = asyncio.create_task(client.wait(Decision(allowed=False, wait_time=10_000)))
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    run(test)


@pytest.mark.parametrize("form", ["function", "context"])
@pytest.mark.parametrize("cancellations", [1, 2])
def test_a_cancelled_action_is_given_back(server: Server, form: str, cancellations: int) -> None:
    async def test(client: AsyncGuards) -> None:
        server.does(answer(), after(0.2, close), answer())  # the first release is lost

        saving = asyncio.Event()

        async def save(_: Decision) -> None:
            saving.set()
            await asyncio.sleep(10)

        async def within() -> None:
            async with client.guarded("create_post", user_id="u1") as decision:
                await save(decision)

        async def by_function() -> None:
            await client.guarded("create_post", save, user_id="u1")

        acting = asyncio.create_task(within() if form == "context" else by_function())
        await saving.wait()
        acting.cancel()
        if cancellations == 2:
            await until(lambda: len(server.received) == 2)  # the release is on its way
            acting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await acting
        await until(lambda: len(server.received) == 3)
        assert [received.event["op"] for received in server.received] == ["check", "release", "release"]

    run(test)


def test_a_release_that_the_end_of_the_loop_cancels_is_a_warning(server: Server) -> None:
    warnings: list[GuardsError] = []
    client = AsyncGuards(**PATIENT, warn=warnings.append)

    async def save() -> None:
        async with client.guarded("create_post", user_id="u1"):
            raise OSError

    async def main() -> None:
        acting = asyncio.create_task(save())
        await until(lambda: len(server.received) == 2)  # the release is on its way
        assert not acting.done()

    server.does(answer(), hang)
    asyncio.run(main())
    assert [str(warning) for warning in warnings] == ["the release of an action of posts-guard was cancelled"]
    client.close()


def test_a_client_serves_several_loops(server: Server) -> None:
    client = AsyncGuards(**PATIENT)
    for _ in range(3):
        assert asyncio.run(client.check("create_post", user_id="u1")).reason == "ok"
    assert len(server.received) == 3
    client.close()


def test_a_loop_can_end_during_a_call(server: Server) -> None:
    async def leave() -> None:
        task = asyncio.create_task(client.check("create_post", user_id="u1"))
        await asyncio.sleep(0.1)
        assert not task.done()

    client = AsyncGuards(**PATIENT)
    server.does(hang, answer())
    asyncio.run(leave())
    assert asyncio.run(client.check("create_post", user_id="u1")).reason == "ok"
    client.close()
