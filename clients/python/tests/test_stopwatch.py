"""What counts as a guard's time, with a clock that only a test moves. All times are fractions that binary floats have."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from guards import Decision
from guards._attempt import Attempt
from guards._retry import Plan
from guards._stopwatch import LATE, TICK, Stopwatch
from tests.conftest import Clock


@pytest.fixture(autouse=True)
def ticking(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("guards._stopwatch.time", clock)
    monkeypatch.setattr("guards._stopwatch.TICK", 0.125)
    monkeypatch.setattr("guards._stopwatch.SHORTEST", 0.015625)
    monkeypatch.setattr("guards._stopwatch.LATE", 0.03125)
    return clock


def new_attempt() -> Attempt:
    return Attempt(lambda _: Decision(allowed=True), object(), "posts-guard")


@contextmanager
def watch(attempt: Attempt, attempts: int = 3) -> Iterator[SimpleNamespace]:
    """A stopwatch of a call with 4 s, whose attempts have 1 s."""
    plan = Plan(timeout=4, attempt=1, attempts=attempts)
    plan.begin()
    made = Stopwatch(plan, attempt)
    yield SimpleNamespace(plan=plan, watch=made, ticks=made.ticks())


def spend(clock: Clock, ticks: Iterator[float], late: float = 0.0, most: int = 1000) -> int:
    """Let ticks pass, each late by so much, and return how many there were."""
    for n in range(most):
        tick = next(ticks, None)
        if tick is None:
            return n
        clock.now += tick + late
    return most


def test_an_attempt_ends_after_its_time(ticking: Clock) -> None:
    attempt = new_attempt()
    attempt.connects()
    with watch(attempt) as w:
        began = ticking.now
        assert spend(ticking, w.ticks) == 8
        assert ticking.now - began == w.watch.seconds == 1
        assert w.plan.remaining == 3


def test_the_last_attempt_has_all_the_time(ticking: Clock) -> None:
    attempt = new_attempt()
    attempt.connects()
    with watch(attempt, attempts=1) as w:
        assert spend(ticking, w.ticks) == 32
        assert w.watch.seconds == 4
        assert w.plan.remaining == 0


def test_a_tick_is_never_longer_than_what_is_left(ticking: Clock) -> None:
    attempt = new_attempt()
    attempt.connects()
    with watch(attempt) as w:
        spend(ticking, w.ticks, 0.03125, most=6)
        assert next(w.ticks) == 1 - 6 * 0.15625


def test_time_in_which_the_process_is_late_counts_little(ticking: Clock) -> None:
    attempt = new_attempt()
    attempt.connects()
    with watch(attempt) as w:
        assert spend(ticking, w.ticks, 60) == 7  # 6 ticks of 0.15625, and the rest
        assert w.plan.remaining == 4 - 6 * 0.15625 - (0.0625 + 0.03125)


def test_a_pause_of_a_minute_counts_125_ms() -> None:
    assert TICK + LATE == 0.125


def test_the_apps_own_time_does_not_count(ticking: Clock) -> None:
    attempt = new_attempt()
    with watch(attempt) as w:
        assert spend(ticking, w.ticks, most=1000) == 1000
        assert w.plan.remaining == 4
        assert w.watch.seconds is None
        attempt.connects()
        assert spend(ticking, w.ticks) == 7  # and the tick before, because it ends only with the next one
        assert w.watch.seconds == 1


def test_credentials_have_the_time_of_the_call(ticking: Clock) -> None:
    attempt = new_attempt()
    attempt.waits_for = "credentials"
    with watch(attempt) as w:
        assert spend(ticking, w.ticks) == 32
        assert w.watch.seconds is None
        assert w.plan.remaining == 0


def test_the_attempts_own_time_begins_after_the_credentials(ticking: Clock) -> None:
    attempt = new_attempt()
    attempt.waits_for = "credentials"
    with watch(attempt) as w:
        spend(ticking, w.ticks, most=10)
        attempt.connects()
        spend(ticking, w.ticks)
        assert w.watch.seconds == 1
        assert w.plan.remaining == 4 - 10 * 0.125 - 1 + 0.125  # a tick counts for what the attempt waits for at its end


def test_an_answer_that_nobody_took_ends_no_attempt(ticking: Clock) -> None:
    attempt = new_attempt()
    attempt.connects()
    with watch(attempt) as w:
        spend(ticking, w.ticks, most=7)
        assert next(w.ticks)
        left = w.plan.remaining
        attempt.run()
        attempt.deliver()
        assert spend(ticking, w.ticks, 60, most=50) == 50
        assert w.plan.remaining == left


def test_time_in_which_an_answer_lies_unread_counts_little(ticking: Clock) -> None:
    ours, theirs = socket.socketpair()
    attempt = new_attempt()
    attempt.connects()
    attempt.hold(ours)
    with ours, theirs, watch(attempt) as w:
        assert spend(ticking, w.ticks, most=4) == 4
        assert not attempt.has_unread()
        theirs.send(b"HTTP/1.1 200 OK")
        assert attempt.has_unread()
        assert spend(ticking, w.ticks, most=8) == 8
        assert w.plan.remaining == pytest.approx(4 - 3 * 0.125 - 8 * 0.125 / 10)  # a tick counts for its end
        assert spend(ticking, w.ticks) < 200  # a server that sends without end can't hold the call forever
        attempt.let_go()
        assert not attempt.has_unread()
        attempt.hold(ours)
        ours.close()
        assert not attempt.has_unread()
