"""Processes that are forked while a client is in use, as by gunicorn --preload.

With FORKS=1, a long test sends 20,000 checks. It needs requirements-fork.txt.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import botocore.session
import pytest
from botocore.credentials import DeferredRefreshableCredentials

from guards import AsyncGuards, Guards
from tests import forks
from tests.conftest import PATIENT
from tests.server import Server, answer
from tests.test_credentials import renewed

LONG = pytest.mark.skipif(not os.environ.get("FORKS"), reason="takes minutes: set FORKS=1")


@pytest.fixture
def guard(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A guard in a process of its own."""
    program = [sys.executable, str(Path(__file__).with_name("overload.py")), "0.01"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", f"http://127.0.0.1:{process.stdout.readline().strip()}")
        yield
        process.kill()


@pytest.mark.parametrize(("form", "rounds"), [("fork", 5), pytest.param("pool", 52, marks=LONG)])
@pytest.mark.usefixtures("guard")
def test_each_answer_is_of_its_own_user(form: str, rounds: int) -> None:
    program = [sys.executable, "-W", "ignore::DeprecationWarning", "-m", "tests.forks", form, str(rounds)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=200 * rounds, check=False)
    assert done.stdout == f"{(rounds * forks.WORKERS + 1) * forks.THREADS * forks.CHECKS} checks\n", done.stderr


@contextmanager
def gunicorn() -> Iterator[int]:
    """Serve forks.application, and end each worker after about 250 requests, so that new ones are forked. Yields the port."""
    size = ["--workers", str(forks.WORKERS), "--threads", str(forks.THREADS), "--worker-class", "gthread"]
    ends = ["--max-requests", "200", "--max-requests-jitter", "100"]
    where = ["--bind", "127.0.0.1:0", "--timeout", "300", "--log-level", "info"]
    program = [sys.executable, "-m", "gunicorn", "--preload", *size, *ends, *where, "tests.forks:application"]
    with subprocess.Popen(program, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        port = next(int(line.split("http://127.0.0.1:")[1].split()[0]) for line in process.stderr if "http://127.0.0.1:" in line)
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield port
        process.terminate()


@LONG
@pytest.mark.usefixtures("guard")
def test_each_answer_is_of_its_own_user_under_gunicorn() -> None:
    def one_user(_: int) -> int:
        user = str(uuid4())
        for n in range(forks.CHECKS):
            assert ask(user, n) == forks.right(user, n)
        return forks.CHECKS

    def ask(user: str, n: int) -> Any:
        for _ in range(5):  # a worker that ends can break a connection; the request id makes a repeat safe
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
            try:
                connection.request("GET", f"/{user}/{n}")
                return json.load(connection.getresponse())
            except (OSError, http.client.HTTPException):
                time.sleep(0.5)
            finally:
                connection.close()
        raise AssertionError("gunicorn does not answer")

    with gunicorn() as port, ThreadPoolExecutor(forks.WORKERS * forks.THREADS) as pool:
        assert sum(pool.map(one_user, range(1667))) >= 20_000


def in_a_child(work: Any) -> bool:
    """Report whether the work returns True in a forked process, within 30 s."""
    child = os.fork()
    if child == 0:
        os._exit(0 if work() is True else 1)
    for _ in range(3000):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return False


pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")


@pytest.mark.usefixtures("server")
def test_no_lock_of_the_parent_holds_a_child() -> None:
    warnings: list[Exception] = []
    client = Guards(**PATIENT, warn=warnings.append)
    client.check("create_post", user_id="u1")
    held = [client._breaker._lock, client._queue.get()._lock, client._warning.get()]
    for lock in held:
        lock.acquire()
    assert in_a_child(lambda: client.check("create_post", user_id="u2").reason == "ok")
    assert warnings == []


def test_a_connection_of_the_parent_is_not_used(server: Server) -> None:
    ports: list[Any] = []

    def step(handler: Any) -> None:
        ports.append(handler.client_address)
        answer()(handler)

    server.does(step)
    client = Guards(**PATIENT)
    client.check("create_post", user_id="u1")
    assert in_a_child(lambda: client.check("create_post", user_id="u2").user_id == "u2")
    client.check("create_post", user_id="u3")
    assert ports[0] == ports[2] != ports[1]
    client.close()


def test_the_threads_of_the_parent_are_not_waited_for(server: Server) -> None:
    async def check(user: str) -> bool:
        return (await client.check("create_post", user_id=user)).reason == "ok"

    client = AsyncGuards(**PATIENT)
    assert asyncio.run(check("u1"))
    assert in_a_child(lambda: asyncio.run(check("u2")))
    assert [received.event["userId"] for received in server.received] == ["u1", "u2"]
    client.close()


def test_request_ids_differ_after_a_fork(server: Server) -> None:
    client = Guards(**PATIENT)
    for _ in range(2):
        assert in_a_child(lambda: client.check("create_post", user_id="u1").reason == "ok")
    client.check("create_post", user_id="u1")
    assert len({received.event["requestId"] for received in server.received}) == 3
    client.close()


@pytest.mark.parametrize("by_client", [True, False])
def test_credentials_that_the_parent_renews_hold_no_child(
    server: Server, monkeypatch: pytest.MonkeyPatch, by_client: bool
) -> None:
    def slow() -> dict[str, str]:
        if os.getpid() == parent:
            asked.set()
            end.wait(60)
        return renewed()

    parent, asked, end = os.getpid(), threading.Event(), threading.Event()
    session = botocore.session.get_session()
    session._credentials = DeferredRefreshableCredentials(slow, "test")
    if by_client:
        client = Guards(**PATIENT, client=session.create_client("lambda"))
    else:
        monkeypatch.setattr(boto3, "DEFAULT_SESSION", boto3.Session(botocore_session=session))
        client = Guards(**PATIENT)
    waiting = threading.Thread(target=lambda: client.check("create_post", user_id="u1"))
    waiting.start()
    assert asked.wait(20)
    assert in_a_child(lambda: client.check("create_post", user_id="u2").reason == "ok")
    end.set()
    waiting.join()
    assert [received.event["userId"] for received in server.received] == ["u2", "u1"]
    client.close()


@pytest.mark.parametrize("verb", ["guarded", "slot"])
def test_a_child_gives_back_nothing_of_its_parent(server: Server, verb: str) -> None:
    at = round(time.time() * 1000)
    server.does(answer(at=at, requestId="r1", heldUntil=at + 60_000, granted=1))
    client = Guards(**PATIENT)
    context: Any = getattr(client, verb)("create_post", user_id="u1")

    def child() -> bool:
        context.__exit__(SystemExit, SystemExit(), None)
        return True

    context.__enter__()
    assert in_a_child(child)
    context.__exit__(SystemExit, SystemExit(), None)
    assert [received.event["op"] for received in server.received] == ["check", "release"]
    client.close()


@pytest.mark.parametrize("signs_in", [True, False])
def test_an_attempt_fails_in_the_process_that_began_it(server: Server, signs_in: bool) -> None:
    """A child that ends does not fail it. A child may succeed; a second success of the same attempt changes nothing."""
    server.does(answer(crossed=100))
    client = Guards(**PATIENT)
    locked: list[int] = []
    context = client.attempt("create_post", user_id="a7", on_locked=lambda _: locked.append(os.getpid()))
    attempt = context.__enter__()

    def child() -> bool:
        if signs_in:
            attempt.succeeded()
        context.__exit__(SystemExit, SystemExit(), None)
        return locked == []

    assert in_a_child(child)
    assert [received.event["op"] for received in server.received] == ["check", "release"][: 1 + signs_in]
    context.__exit__(None, None, None)
    assert locked == [os.getpid()]
    client.close()
