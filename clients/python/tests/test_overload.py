"""Many checks of one user at once. Waiting in the app itself is no outage, so exactly the limit passes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from botocore.config import Config

from guards import AsyncGuards, Decision, Guards, GuardsError
from guards._attempt import Attempt
from guards._queue import SIGNERS, Queue
from guards._request import Request
from guards._session import Session
from tests.conftest import LISTED, PATIENT, attempts, until
from tests.overload import LIMIT
from tests.server import Handler, Server, answer, hang


@pytest.fixture
def guard(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A guard in another process, which answers after so many seconds."""
    command = [sys.executable, str(Path(__file__).parent / "overload.py"), str(request.param)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", f"http://127.0.0.1:{process.stdout.readline().strip()}")
        yield
        process.kill()


# With the defaults, a call has 3 s. The checks take more.
@pytest.mark.parametrize("guard", [0.01, 0.1, 0.4], indirect=True)
@pytest.mark.usefixtures("guard")
def test_two_thousand_checks_at_once() -> None:
    async def main() -> Counter[str]:
        client = AsyncGuards(**LISTED, warn=warnings.append)
        decisions = await asyncio.gather(*(client.check("create_post", user_id="u1") for _ in range(2000)))
        client.close()
        return Counter(decision.reason for decision in decisions)

    warnings: list[GuardsError] = []
    assert asyncio.run(main()) == {"ok": LIMIT, "limited": 2000 - LIMIT}
    assert warnings == []


@pytest.mark.parametrize("guard", [0.1], indirect=True)
@pytest.mark.usefixtures("guard")
def test_two_hundred_threads() -> None:
    client = Guards(**LISTED)
    reasons: list[str] = []
    threads = [
        threading.Thread(target=lambda: reasons.append(client.check("create_post", user_id="u1").reason)) for _ in range(200)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    client.close()
    assert Counter(reasons) == {"ok": LIMIT, "limited": 200 - LIMIT}


def test_a_lambda_client_with_more_connections_allows_more_calls_at_once(server: Server) -> None:
    together = threading.Barrier(60, timeout=60)

    def step(handler: Handler) -> None:
        together.wait()
        answer()(handler)

    async def main() -> None:
        checks = (client.check("create_post", user_id="u1") for _ in range(60))
        assert all(decision.reason == "ok" for decision in await asyncio.gather(*checks))

    server.does(step)
    own = boto3.client("lambda", config=Config(max_pool_connections=60))
    client = AsyncGuards(**LISTED, client=own, timeout=100, decision_timeout=90)
    asyncio.run(main())
    client.close()
    own.close()


def test_calls_that_wait_have_no_limit_and_end_with_an_outage(server: Server) -> None:
    """Fifty calls hang. Those behind them wait for longer than a call lasts, and are decided with the first outage."""

    async def main() -> None:
        server.does(hang)
        client = AsyncGuards(**LISTED, timeout=6, decision_timeout=5.7, warn=lambda _: None)
        other = AsyncGuards(**PATIENT)
        calls = [asyncio.create_task(client.check("create_post", user_id="u1")) for _ in range(50)]
        await until(lambda: len(server.received) == 50)
        calls += [asyncio.create_task(client.check("create_post", user_id="u1")) for _ in range(200)]
        pins = asyncio.create_task(client.check("pin", user_id="u1"))
        began = time.monotonic()
        decisions = await asyncio.gather(*calls)
        assert time.monotonic() - began < 60  # five calls one after the other
        assert len(server.received) <= 51
        outages = Counter(str(decision.outage).partition(":")[0] for decision in decisions)
        assert outages["posts-guard did not answer a moment ago"] >= 200
        await until(lambda: len(server.received) == 51)
        assert not pins.done()  # the other guard is asked
        pins.cancel()
        await until(lambda: attempts() == 0)
        server.does(answer())
        assert (await other.check("pin", user_id="u1")).reason == "ok"
        client.close()
        other.close()

    asyncio.run(main())


def test_a_timeout_of_the_app_ends_a_wait_in_the_queue(server: Server) -> None:
    """Fifty calls hang. The one behind them is not sent, even when their places are free."""

    async def main() -> None:
        server.does(hang)
        client = AsyncGuards(**LISTED, timeout=100, decision_timeout=90)
        calls = [asyncio.create_task(client.check("create_post", user_id="u1")) for _ in range(50)]
        await until(lambda: len(server.received) == 50)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(client.check("create_post", user_id="u2"), 0.1)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        server.does(answer())
        assert (await client.check("create_post", user_id="u3")).reason == "ok"
        await until(lambda: attempts() == 0)
        assert len(server.received) == 51
        client.close()

    asyncio.run(main())


def test_the_loop_goes_on_while_calls_begin(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call begins in a turn of the loop of its own."""

    async def main() -> None:
        turns = 0

        async def turn() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        started: list[int] = []
        real = client._asker.start

        def start(request: Request, call: object) -> Attempt:
            started.append(turns)
            return real(request, call)

        monkeypatch.setattr(client._asker, "start", start)
        turning = asyncio.create_task(turn())
        await asyncio.gather(*(client.check("create_post", user_id="u1") for _ in range(100)))
        turning.cancel()
        assert len(set(started)) == 100

    client = AsyncGuards(**PATIENT)
    asyncio.run(main())
    client.close()
    assert len(server.received) == 100


class Held:
    """Attempts in a queue. Each does what a test tells it."""

    def __init__(self, most: int) -> None:
        self.queue = Queue(most)
        self.running: list[str] = []
        self.go: dict[str, threading.Event] = {}

    def add(self, name: str, call: object) -> Attempt:
        self.go[name] = threading.Event()

        def work(_: Attempt) -> Decision:
            self.running.append(name)
            self.go[name].wait(20)
            return Decision(allowed=True)

        attempt = Attempt(work, call, name.partition(" ")[0])
        self.queue.add(attempt)
        return attempt

    def until_running(self, *names: str) -> None:
        asyncio.run(until(lambda: self.running == list(names)))


def test_who_has_to_act(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard, from the moment when the request has a new or used connection until the answer was read."""
    made: list[Attempt] = []
    seen: list[str] = []
    real = Session.exchange

    def exchange(session: Session, attempt: Attempt) -> object:
        made.append(attempt)
        seen.append(attempt.waits_for)
        try:
            return real(session, attempt)
        finally:
            seen.append(attempt.waits_for)

    def step(handler: Handler) -> None:
        seen.append(made[-1].waits_for)
        answer()(handler)

    monkeypatch.setattr(Session, "exchange", exchange)
    server.does(step)
    client = Guards(**PATIENT)
    for _ in range(2):
        assert client.check("create_post", user_id="u1").reason == "ok"
    assert seen == ["app", "guard", "app"] * 2
    client.close()


def test_few_requests_are_signed_at_once() -> None:
    held = Held(10)
    made = [held.add(f"f {n}", n) for n in range(4)]
    asyncio.run(until(lambda: len(held.running) == SIGNERS))
    assert [a.begun.done() for a in made] == [True] * SIGNERS + [False] * (4 - SIGNERS)
    held.queue.signed(made[0])
    asyncio.run(until(lambda: made[SIGNERS].begun.done()))
    assert not made[SIGNERS + 1].begun.done()
    held.queue.give_up(made[1])  # its thread lives on
    asyncio.run(until(lambda: made[SIGNERS + 1].begun.done()))
    for event in held.go.values():
        event.set()
    asyncio.run(until(lambda: attempts() == 0))


def test_a_call_keeps_its_place_until_it_ends() -> None:
    held = Held(1)
    first = held.add("f 1", "one")
    held.until_running("f 1")
    held.queue.signed(first)
    waiting = held.add("f 2", "two")
    held.queue.give_up(first)
    held.go["f 1"].set()
    repeat = held.add("f 3", "one")
    held.until_running("f 1", "f 3")
    assert not waiting.begun.done()
    held.queue.give_up(repeat)
    held.queue.leave("one")
    held.until_running("f 1", "f 3", "f 2")
    for event in held.go.values():
        event.set()
    asyncio.run(until(lambda: attempts() == 0))


def test_attempts_that_wait_are_refused_by_function() -> None:
    held = Held(1)
    first = held.add("f 1", 1)
    held.until_running("f 1")
    others = [held.add(name, name) for name in ("g 2", "f 3", "g 4")]
    held.queue.refuse(lambda function: OSError("f") if function == "f" else None)
    assert [a.begun.done() for a in others] == [False, True, False]
    assert str(others[1].begun.exception()) == "f"
    held.queue.give_up(others[0])
    held.go["f 1"].set()
    held.queue.leave(1)
    held.until_running("f 1", "g 4")  # what was given up does not begin
    late = held.add("g 5", 5)
    held.queue.refuse(OSError)
    assert str(late.begun.exception()) == "g"
    held.go["g 4"].set()
    asyncio.run(until(lambda: attempts() == 0))
    assert first.future.done()


def test_an_attempt_without_a_thread_waits_for_that_of_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(10)
    held.add("f 1", 1)
    held.until_running("f 1")

    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        second = held.add("f 2", 2)
        assert not second.begun.done()
        held.go["f 1"].set()
        held.until_running("f 1", "f 2")
    held.go["f 2"].set()
    asyncio.run(until(lambda: attempts() == 0))
