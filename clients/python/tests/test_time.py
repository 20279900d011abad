"""What counts as a guard's time, with a clock that only a test moves. All times are fractions that binary floats have."""

from __future__ import annotations

import errno

import pytest

from guards._call import GRACE, LATE, TICK, LateError, Time
from tests.conftest import Clock


class Socket:
    """A socket whose operations end when a test says."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.timeout = 0.125
        self.waits: list[float] = []

    def settimeout(self, seconds: float) -> None:
        self.timeout = seconds

    def nothing(self, late: float = 0.0) -> None:
        """Let the timeout pass."""
        self.waits.append(self.timeout)
        self.clock.now += self.timeout + late
        raise TimeoutError("timed out")

    def something(self, after: float) -> str:
        self.clock.now += after
        return "something"


@pytest.fixture
def sock(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Socket:
    monkeypatch.setattr("guards._call.time", clock)
    monkeypatch.setattr("guards._call.TICK", 0.125)
    monkeypatch.setattr("guards._call.SHORTEST", 0.015625)
    monkeypatch.setattr("guards._call.LATE", 0.03125)
    return Socket(clock)


def test_an_attempt_ends_after_its_time(sock: Socket) -> None:
    began, time = sock.clock.now, Time(1)
    with pytest.raises(LateError):
        time.wait(sock, sock.nothing)
    assert sock.waits == [0.125] * 8 + [0.015625]  # the last one is for an answer that has arrived
    assert sock.clock.now - began == 1.015625


def test_a_tick_is_never_longer_than_what_is_left(sock: Socket) -> None:
    with pytest.raises(LateError):
        Time(0.1875).wait(sock, sock.nothing)
    assert sock.waits == [0.125, 0.0625, 0.015625]


def test_time_in_which_the_process_is_late_counts_little(sock: Socket) -> None:
    with pytest.raises(LateError):
        Time(1).wait(sock, sock.nothing, 60)
    assert len(sock.waits) == 8  # 6 of 0.15625, one of what is left, and the last one
    time = Time(1)
    assert time.wait(sock, sock.something, 60) == "something"
    assert time.left == 1 - 0.15625


def test_a_pause_of_a_minute_counts_125_ms() -> None:
    assert TICK + LATE == 0.125


def test_what_has_arrived_is_read_after_the_end_but_not_for_ever(sock: Socket) -> None:
    time = Time(0.125)
    time.spend(0.125)
    for _ in range(GRACE):
        assert time.wait(sock, sock.something, 0.0) == "something"
    with pytest.raises(LateError):
        time.wait(sock, sock.something, 0.0)


def test_a_timeout_of_the_network_is_no_tick(sock: Socket) -> None:
    def fail() -> None:
        raise TimeoutError(errno.ETIMEDOUT, "Connection timed out")

    with pytest.raises(TimeoutError) as error:
        Time(1).wait(sock, fail)
    assert error.value.errno == errno.ETIMEDOUT
