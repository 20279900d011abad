"""Many checks of one user at once. Waiting in the app itself is no outage, so exactly the limit passes."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from guards import AsyncGuards, Guards, GuardsError
from guards._places import Places, Workers
from tests.conftest import LISTED, PATIENT, until
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
        assert len(server.received) == 51
        client.close()

    asyncio.run(main())


BURSTS = pytest.mark.parametrize("calls", [40, 200, 2000])


@BURSTS
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_each_call_of_a_burst_ends_if_the_guard_is_gone(calls: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The port accepts each connection and never answers."""

    async def at_once(client: AsyncGuards[Any]) -> list[float]:
        async def one() -> float:
            began = time.monotonic()
            assert (await client.check("create_post", user_id="u1")).outage is not None
            return time.monotonic() - began

        return await asyncio.gather(*(one() for _ in range(calls)))

    def in_threads(client: Guards[Any]) -> list[float]:
        def one() -> None:
            began = time.monotonic()
            assert client.check("create_post", user_id="u1").outage is not None
            took.append(time.monotonic() - began)

        took: list[float] = []
        threads = [threading.Thread(target=one) for _ in range(calls)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return took

    with socket.create_server(("127.0.0.1", 0), backlog=2000) as listener:
        monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", f"http://127.0.0.1:{listener.getsockname()[1]}")
        if kind == "async":
            waiting = AsyncGuards(**LISTED, warn=lambda _: None)
            took = asyncio.run(at_once(waiting))
        else:
            took = in_threads(Guards(**LISTED, warn=lambda _: None))
    assert len(took) == calls
    assert max(took) < 6


def test_connections_bound_how_many_calls_ask_at_once(server: Server) -> None:
    running, most = 0, 0
    lock = threading.Lock()

    def step(handler: Handler) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.02)
        with lock:
            running -= 1
        answer()(handler)

    async def main() -> None:
        checks = (client.check("create_post", user_id="u1") for _ in range(40))
        assert all(decision.reason == "ok" for decision in await asyncio.gather(*checks))

    server.does(step)
    client = AsyncGuards(**PATIENT, connections=4)
    asyncio.run(main())
    client.close()
    assert most == 4


class Held:
    """Work in a queue. Each piece does what a test tells it."""

    def __init__(self) -> None:
        self.running: list[str] = []
        self.go: dict[str, threading.Event] = {}

    def job(self, name: str) -> Callable[[], None]:
        self.go[name] = threading.Event()

        def work() -> None:
            self.running.append(name)
            self.go[name].wait(20)

        return work

    def until_running(self, *names: str) -> None:
        asyncio.run(until(lambda: self.running == list(names)))


def test_threads_get_places_in_the_order_of_their_arrival() -> None:
    held, places = Held(), Places(2)

    def work(job: Callable[[], None]) -> None:
        with places:
            job()

    for n, name in enumerate("abcd"):
        threading.Thread(target=work, args=(held.job(name),)).start()
        asyncio.run(until(partial(lambda n: len(held.running) + len(places._waiting) == n + 1, n)))
    held.go["b"].set()
    held.until_running("a", "b", "c")
    held.go["a"].set()
    held.until_running("a", "b", "c", "d")
    held.go["c"].set()
    held.go["d"].set()
    asyncio.run(until(lambda: places._free == 2))


def test_a_worker_does_the_jobs_that_wait() -> None:
    held, workers = Held(), Workers(2)
    jobs = {name: held.job(name) for name in "abcd"}
    for n, job in enumerate(jobs.values()):
        workers.add(job)
        asyncio.run(until(partial(lambda n: len(held.running) == min(n + 1, 2), n)))
    assert workers.drop(jobs["c"])
    assert not workers.drop(jobs["a"])
    held.go["a"].set()
    held.until_running("a", "b", "d")
    held.go["b"].set()
    held.go["d"].set()
    asyncio.run(until(lambda: len(workers._idle) == 2))
    workers.add(held.job("e"))
    held.until_running("a", "b", "d", "e")
    held.go["e"].set()


def test_a_worker_without_work_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("guards._places.IDLE", 0.01)
    workers = Workers(2)
    for _ in range(20):
        ended = threading.Event()
        workers.add(ended.set)
        assert ended.wait(20)
        time.sleep(0.01)  # a job can come at the moment when the thread ends
    asyncio.run(until(lambda: workers._threads == 0))


def test_a_job_without_a_thread_waits_for_that_of_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    held, workers = Held(), Workers(10)
    workers.add(held.job("a"))
    held.until_running("a")

    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        workers.add(held.job("b"))
        assert held.running == ["a"]
        held.go["a"].set()
        held.until_running("a", "b")
    held.go["b"].set()
    asyncio.run(until(lambda: len(workers._idle) == 1))


def test_a_job_without_a_thread_goes_to_a_worker_that_is_idle_by_now(monkeypatch: pytest.MonkeyPatch) -> None:
    held, workers = Held(), Workers(10)
    workers.add(held.job("a"))
    held.until_running("a")

    def start(_: threading.Thread) -> None:
        held.go["a"].set()
        asyncio.run(until(lambda: len(workers._idle) == 1))
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        workers.add(held.job("b"))
    held.until_running("a", "b")
    held.go["b"].set()
