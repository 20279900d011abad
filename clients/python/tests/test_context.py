"""The contexts of guarded and slot: entered once, and no obstacle for the end of a process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from guards import AsyncGuards, Guards, ValidationError
from tests.conftest import PATIENT, Client
from tests.server import Server, after, answer

VERBS = pytest.mark.parametrize("verb", ["guarded", "slot"])
AGAIN = r"^this context was entered before, want a new one for each with statement$"


def slots(at: int = 1) -> Any:
    return answer(at=at, requestId="r1", heldUntil=at + 60_000, granted=1)


def ops(server: Server) -> list[str]:
    return [received.event["op"] for received in server.received]


@VERBS
@pytest.mark.parametrize("nested", [True, False])
def test_a_context_is_entered_once(server: Server, new: Callable[..., Client], verb: str, nested: bool) -> None:
    server.does(slots())
    guards = new().guards
    context = getattr(guards, verb)("create_post", user_id="u1")

    def sync() -> None:
        with context:
            if nested:
                with context:
                    pass
        with context:
            pass

    async def later() -> None:
        async with context:
            if nested:
                async with context:
                    pass
        async with context:
            pass

    with pytest.raises(ValidationError, match=AGAIN):
        asyncio.run(later()) if isinstance(guards, AsyncGuards) else sync()
    assert ops(server) == (["check", "release"] if verb == "slot" or nested else ["check"])
    assert not [thread for thread in threading.enumerate() if thread.name == "guards-slot"]


@VERBS
def test_two_threads_do_not_enter_one_context(server: Server, verb: str) -> None:
    server.does(after(0.3, slots()))
    client = Guards(**PATIENT)
    context: Any = getattr(client, verb)("create_post", user_id="u1")
    together, errors, entered = threading.Barrier(8), [], threading.Barrier(8)

    def enter() -> None:
        together.wait()
        try:
            with context:
                entered.wait()
        except ValidationError as error:
            errors.append(error)
            entered.wait()

    threads = [threading.Thread(target=enter) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == 7
    assert ops(server) == (["check", "release"] if verb == "slot" else ["check"])
    client.close()


def test_two_tasks_do_not_enter_one_context(server: Server) -> None:
    server.does(after(0.3, slots()))

    async def main() -> Any:
        client = AsyncGuards(**PATIENT)
        context = client.slot("create_post", user_id="u1")

        async def enter() -> None:
            async with context:
                await asyncio.sleep(0)

        try:
            return await asyncio.gather(enter(), enter(), return_exceptions=True)
        finally:
            client.close()

    first, second = asyncio.run(main())
    assert first is None
    assert isinstance(second, ValidationError)
    assert ops(server) == ["check", "release"]


SUSPENDED = """
import sys
import guards
client = guards.Guards(warn=lambda error: print(type(error).__name__))
def work():
    with client.{verb}(guards.GuardActivity("posts-guard", "create_post"), user_id="u1"):
        yield
suspended = work()
next(suspended)
print("end")
"""


@VERBS
def test_a_suspended_generator_keeps_no_process_alive(server: Server, verb: str) -> None:
    server.does(slots())
    done = subprocess.run(
        [sys.executable, "-c", SUSPENDED.format(verb=verb)], capture_output=True, check=False, text=True, timeout=60
    )
    assert done.stdout.startswith("end\n"), done.stderr
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert ops(server) == ["check"]  # it stays counted


@VERBS
def test_a_generator_that_is_closed_gives_back(server: Server, verb: str) -> None:
    server.does(slots())
    client: Any = Guards(**PATIENT)

    def work() -> Any:
        with getattr(client, verb)("create_post", user_id="u1"):
            yield

    suspended = work()
    next(suspended)
    suspended.close()
    assert ops(server) == ["check", "release"]
    with suppress(StopIteration):
        next(suspended)
    client.close()
