from __future__ import annotations

import asyncio
import functools
import inspect
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import botocore.session
import pytest

import guards
from tests.activities import ACTIVITIES
from tests.server import Server

# Each test has its own session of boto3. Without this, each session would read Lambda's description again, in 0.1 s.
botocore.session.create_loader = functools.cache(botocore.session.create_loader)

LISTED: dict[str, Any] = {"activities": ACTIVITIES}
SHORT = LISTED | {"timeout": 1.2, "decision_timeout": 0.2}  # attempts of 0.5 s; too short for an answer in time
HASTY = LISTED | {"timeout": 20, "decision_timeout": 0.7}  # attempts of 1 s; the third one gets all the other time
BRIEF = HASTY | {"timeout": 8}  # for calls that take the whole time
PATIENT = LISTED | {"timeout": 20, "decision_timeout": 5}  # on a busy machine, too, only a hanging server is late


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tests see no AWS settings of this machine."""
    for name in list(os.environ):
        if name.startswith(("AWS_", "GUARDS_")) or name.lower().endswith("_proxy") or name == "REQUESTS_CA_BUNDLE":
            monkeypatch.delenv(name)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server that boto3 takes for Lambda."""
    with Server() as s:
        threading.Thread(target=s.serve_forever, args=(0.01,), daemon=True).start()
        monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", s.url)
        yield s
        s.shutdown()


async def until(fact: Callable[[], bool]) -> None:
    """Wait until the fact is true, for at most 20 s."""
    for _ in range(2000):
        if fact():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen")


def tasks() -> int:
    """Return how many threads of any client look something up."""
    return sum(thread.name == "guards-task" for thread in threading.enumerate())


class Clock:
    """Both clocks, for the times between calls. They move only if a test moves them, by fractions that binary floats have."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.frozen = 0.0  # for how many seconds the monotonic clock stood still; less if the wall clock was set back

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return 1e9 + self.now + self.frozen


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clocks of what lasts longer than a call, such as the breaker's second. The time of calls stays the real one."""
    made = Clock()
    monkeypatch.setattr("guards._moment.time", made)
    return made


class Client:
    """Either client, for tests that hold for both. Its verbs are ordinary functions."""

    def __init__(self, kind: str, options: dict[str, Any]) -> None:
        self.warnings: list[guards.GuardsError] = []
        options = {"warn": self.warnings.append, **options}
        self.guards: Any = guards.AsyncGuards(**options) if kind == "async" else guards.Guards(**options)

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            async def run() -> Any:
                return await getattr(self.guards, verb)(*args, **options)

            if isinstance(self.guards, guards.Guards):
                return getattr(self.guards, verb)(*args, **options)
            return asyncio.run(run())

        return call

    def guarded_call(self, fn: Callable[[guards.Decision], Any], form: str, **options: Any) -> Any:
        """Call guarded with a function, or use its context manager."""

        async def later(decision: guards.Decision) -> Any:
            return fn(decision)

        async def within() -> Any:
            async with self.guards.guarded("create_post", user_id="u1", **options) as decision:
                return fn(decision)

        if isinstance(self.guards, guards.AsyncGuards):
            if form == "context":
                return asyncio.run(within())
            waiting = self.guards.guarded("create_post", later, user_id="u1", **options)
            assert inspect.iscoroutine(waiting)
            return asyncio.run(waiting)
        if form == "function":
            return self.guards.guarded("create_post", fn, user_id="u1", **options)
        with self.guards.guarded("create_post", user_id="u1", **options) as decision:
            return fn(decision)


@pytest.fixture(params=["sync", "async"])
def new(request: pytest.FixtureRequest) -> Iterator[Callable[..., Client]]:
    """Makes clients. They are patient, unless the module has other TIMES."""
    made: list[Client] = []
    times = getattr(request.module, "TIMES", PATIENT)

    def make(**options: Any) -> Client:
        made.append(Client(request.param, {**times, **options}))
        return made[-1]

    yield make
    for client in made:
        client.guards.close()
