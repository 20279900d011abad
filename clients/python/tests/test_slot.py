from __future__ import annotations

import asyncio
import copy
import dataclasses
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from guards import AsyncGuards, ConfigurationError, Decision, Guards, LimitedError, OutageError, Slot, ValidationError
from guards._base import Base
from tests.conftest import PATIENT, Client, until
from tests.server import Handler, Server, Step, answer, close, function_error, lambda_error, refuse

TIMES = PATIENT


class StopError(Exception):
    pass


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slots are lost 0.8 s before their end, so that they can be short, and a busy machine can renew them in time."""
    monkeypatch.setattr("guards._slot.EARLY", 0.8)


def slots(window: float) -> Step:
    """Answer as a guard with slots that last so many seconds."""

    def step(handler: Handler) -> None:
        at, op = round(time.time() * 1000) + 3_600_000, handler.received.event["op"]  # its clock is an hour ahead
        fields: dict[str, Any] = {"at": at, "requestId": "r1", "heldUntil": at + round(window * 1000), "granted": 1}
        handler.received.event["made"] = at
        answer(**fields if op != "release" else {})(handler)

    return step


def ops(server: Server) -> list[str]:
    return [received.event["op"] for received in server.received]


def hold(client: Client, body: Callable[[Slot], object], **options: Any) -> Slot:
    """Run the body with a slot, and return the slot."""

    async def run() -> Slot:
        async with client.guards.slot("create_post", user_id="u1", **options) as slot:
            await asyncio.to_thread(body, slot)
        return slot  # type: ignore[no-any-return]

    if isinstance(client.guards, AsyncGuards):
        return asyncio.run(run())
    with client.guards.slot("create_post", user_id="u1", **options) as slot:
        body(slot)
    return slot  # type: ignore[no-any-return]


def works(seconds: float) -> Callable[[Slot], bool]:
    """Return work that takes so many seconds, and stops when the slot is lost."""

    def work(slot: Slot) -> bool:
        end = time.monotonic() + seconds
        while not slot.lost and time.monotonic() < end:
            time.sleep(0.01)
        return slot.lost

    return work


def test_a_slot_is_renewed_and_released(server: Server, new: Callable[..., Client]) -> None:
    server.does(slots(3))
    slot = hold(new(), works(5.5), count=1)
    assert slot.allowed
    assert not slot.lost
    events = [received.event for received in server.received]
    assert ops(server) == ["check", *["renew"] * (len(events) - 2), "release"]
    assert 4 <= len(events) - 2 <= 5  # one after each second
    for event, before in zip(events[1:], events, strict=False):
        assert event["at"] == before["made"]
        assert (event["requestId"], event["count"], event["userId"]) == ("r1", 1, "u1")


def test_a_slot_is_released_after_an_error(server: Server, new: Callable[..., Client]) -> None:
    def fail(_: Slot) -> None:
        raise StopError

    server.does(slots(60))
    with pytest.raises(StopError):
        hold(new(), fail)
    assert ops(server) == ["check", "release"]


def test_a_slot_is_lost_before_its_end(server: Server, new: Callable[..., Client]) -> None:
    server.does(slots(3), close)
    client = new(timeout=5.1, decision_timeout=0.1)
    took: list[float] = []

    def work(slot: Slot) -> None:
        began = time.monotonic()
        works(8)(slot)
        took.append(time.monotonic() - began)

    assert hold(client, work).lost
    assert 1.2 < took[0] < 6  # 3 s less 0.8 s; a busy machine is late
    assert ops(server).count("renew") > 1
    assert client.warnings


def test_a_renewal_that_fails_is_no_storm(server: Server, new: Callable[..., Client]) -> None:
    server.does(slots(4), function_error("Unavailable", "m"))
    assert hold(new(), works(5)).lost
    assert 3 <= ops(server).count("renew") <= 4  # in 2.4 s


def test_a_slow_answer_makes_the_end_earlier(server: Server, new: Callable[..., Client]) -> None:
    def late(handler: Handler) -> None:
        time.sleep(1.5)
        slots(3)(handler)

    server.does(late, close)
    began: list[float] = []

    def work(slot: Slot) -> None:
        began.append(time.monotonic())
        works(5)(slot)
        began.append(time.monotonic())

    assert hold(new(), work).lost
    assert began[1] - began[0] < 1.8  # 3 s less 0.8 s less 1.5 s; 2.2 s from the answer on


class Frozen:
    """Clocks for a process that is frozen: the monotonic one stands still meanwhile, and the other one goes on."""

    def __init__(self) -> None:
        self.seconds = 0.0

    monotonic = staticmethod(time.monotonic)

    def time(self) -> float:
        return time.time() + self.seconds


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> Frozen:
    made = Frozen()
    monkeypatch.setattr("guards._moment.time", made)
    return made


def test_a_slot_that_is_over_after_a_freeze_is_lost_at_once(server: Server, new: Callable[..., Client], frozen: Frozen) -> None:
    server.does(slots(600))

    def freeze(slot: Slot) -> None:
        assert not slot.lost
        frozen.seconds = 600.0
        assert slot.lost
        frozen.seconds = 0.0

    assert hold(new(), freeze).lost  # also if the clock was wrong and is set back
    assert ops(server) == ["check", "release"]


def test_a_slot_that_is_due_after_a_freeze_is_renewed_soon(server: Server, new: Callable[..., Client], frozen: Frozen) -> None:
    server.does(slots(600))

    def freeze(slot: Slot) -> None:
        frozen.seconds = 250.0
        works(2)(slot)

    assert not hold(new(), freeze).lost
    assert ops(server) == ["check", "renew", "release"]


def test_a_clock_that_is_set_back_keeps_no_slot(server: Server, new: Callable[..., Client], frozen: Frozen) -> None:
    server.does(slots(2), close)

    def set_back(slot: Slot) -> None:
        frozen.seconds = -3600.0
        works(10)(slot)

    assert hold(new(timeout=5.1, decision_timeout=0.1), set_back).lost
    assert "renew" in ops(server)


def test_an_expired_slot_is_lost_and_not_released(server: Server, new: Callable[..., Client]) -> None:
    server.does(slots(3), answer(allowed=False, reason="expired", granted=0))
    began = time.monotonic()
    assert hold(new(), works(5)).lost
    assert time.monotonic() - began < 2.1  # before the end
    assert ops(server) == ["check", "renew"]


def test_a_renewal_under_way_loses_no_slot_that_was_released(server: Server, new: Callable[..., Client]) -> None:
    began, released = threading.Event(), threading.Event()

    def step(handler: Handler) -> None:
        op = handler.received.event["op"]
        if op == "renew":
            began.set()
            released.wait(20)
            answer(allowed=False, reason="expired", granted=0)(handler)
            return
        slots(3)(handler)
        if op == "release":
            released.set()

    server.does(step)
    slot = hold(new(), lambda _: began.wait(20))
    asyncio.run(until(lambda: "guards-slot" not in [thread.name for thread in threading.enumerate()]))
    assert not slot.lost
    assert ops(server) == ["check", "renew", "release"]


UNLIMITED = pytest.mark.parametrize(
    "fields",
    [
        {"reason": "unlimited", "granted": None, "limit": None},
        {"reason": "bypassed", "granted": 1},
        {"reason": "shadow", "granted": 0},
        {"reason": "ok", "granted": 0, "at": 1, "requestId": "r1"},
    ],
    ids=lambda fields: fields["reason"],
)


@UNLIMITED
def test_a_renewal_without_a_receipt_keeps_the_last_one(
    server: Server, new: Callable[..., Client], fields: dict[str, Any]
) -> None:
    without = answer(**fields)
    server.does(slots(6), without, without, slots(6))
    slot = hold(new(), works(7))  # renews after 2 s, then after a third of what is left
    assert slot.allowed
    assert not slot.lost
    check, *renewals, release = (received.event for received in server.received)
    assert [event["op"] for event in renewals] == ["renew"] * len(renewals)
    assert release["op"] == "release"
    assert {event["at"] for event in renewals[:3]} == {check["made"]}
    assert release["at"] == renewals[-1]["made"] != check["made"]


@UNLIMITED
def test_a_slot_that_nobody_renews_is_lost_and_released(
    server: Server, new: Callable[..., Client], fields: dict[str, Any]
) -> None:
    server.does(slots(3), answer(**fields))
    assert hold(new(), works(8)).lost  # when it is gone, somebody else may get it
    check, *renewals, release = (received.event for received in server.received)
    assert len(renewals) >= 1
    assert (release["op"], release["at"]) == ("release", check["made"])


def test_a_slot_without_a_receipt_for_a_while_can_expire(server: Server, new: Callable[..., Client]) -> None:
    server.does(slots(6), answer(reason="unlimited", granted=None), answer(allowed=False, reason="expired", granted=0))
    assert hold(new(), works(7)).lost
    assert ops(server) == ["check", "renew", "renew"]


def test_the_decision_of_a_slot_is_not_settled(server: Server, new: Callable[..., Client]) -> None:
    server.does(slots(60))
    client = new()
    taken: list[Slot] = []

    def body(slot: Slot) -> None:
        taken.append(slot)
        settle(slot)

    def settle(slot: Slot) -> None:
        with pytest.raises(
            ValidationError, match=r"^the decision is that of a slot, which can't be settled: the slot gives back"
        ):
            client.settle(slot.decision, 1)
        with pytest.raises(ValidationError):
            client.settle(pickle.loads(pickle.dumps(slot.decision)), 1)

    assert not hold(client, body, count=3).lost
    settle(taken[0])
    assert ops(server) == ["check", "release"]


@pytest.mark.parametrize("failures", [1, 2])
def test_a_release_that_fails_is_tried_once_more(server: Server, new: Callable[..., Client], failures: int) -> None:
    server.does(slots(60), *[lambda_error(500, "ServiceException")] * 3 * failures, answer())  # a call has three attempts
    client = new()
    assert not hold(client, lambda _: None).lost
    assert ops(server) == ["check", *["release"] * (3 + failures if failures == 1 else 6)]
    assert [type(warning) for warning in client.warnings] == [OutageError] * (failures - 1)


@pytest.mark.parametrize("reason", ["unlimited", "bypassed", "shadow", "duplicate", "unavailable", "outage"])
def test_a_slot_without_a_receipt(server: Server, new: Callable[..., Client], reason: str) -> None:
    outage = function_error("Unavailable", "m")
    server.does(outage if reason == "outage" else answer(reason=reason, at=None, requestId=None))
    slot = hold(new(), works(0.2))
    assert slot.allowed
    assert not slot.lost
    assert ops(server) == ["check"]


def test_a_slot_that_was_counted_in_part_is_released(server: Server, new: Callable[..., Client]) -> None:
    def step(handler: Handler) -> None:
        answer(reason="unavailable", heldUntil=1_700_000_060_000)(handler)

    server.does(step)
    assert not hold(new(), lambda _: None).lost
    assert ops(server) == ["check", "release"]


def test_a_refused_slot(server: Server, new: Callable[..., Client]) -> None:
    server.does(refuse())
    slot = hold(new(), lambda _: None)
    assert not slot.allowed
    assert slot.decision.message == "Too many."
    with pytest.raises(LimitedError, match=r"^Too many\.$"):
        hold(new(), works(60), or_raise=True)
    assert ops(server) == ["check", "check"]


def test_only_a_log_has_slots(server: Server, new: Callable[..., Client]) -> None:
    with pytest.raises(ValidationError, match=r"^the limit of create_post is not a log, so it has no slots$"):
        hold(new(), works(60))
    assert ops(server) == ["check", "release"]


def test_a_slot_and_ready_without_a_thread(server: Server, new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch) -> None:
    real = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        if thread.name.startswith(("guards-", "ThreadPool")):
            raise RuntimeError("can't start new thread")
        real(thread)

    server.does(slots(60))
    client = new()
    monkeypatch.setattr(threading.Thread, "start", start)
    for ask in (lambda: client.ready("create_post"), lambda: hold(client, works(60))):
        with pytest.raises(
            ConfigurationError, match=r"^posts-guard could not be invoked: no thread is left .*: can't start new thread$"
        ):
            ask()
    assert ops(server) == ([] if isinstance(client.guards, AsyncGuards) else ["check", "release"])


def test_a_cancelled_body_releases(server: Server) -> None:
    server.does(slots(60))

    async def run() -> None:
        async with AsyncGuards(**PATIENT).slot("create_post", user_id="u1"):
            await asyncio.sleep(60)

    async def cancel() -> None:
        task = asyncio.create_task(run())
        while len(server.received) < 1:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(asyncio.all_tasks()) == 1  # this one

    asyncio.run(cancel())
    assert ops(server) == ["check", "release"]


def test_an_open_slot_keeps_no_process_alive(server: Server) -> None:
    server.does(slots(3600))
    program = (
        "import guards\n"
        "g = guards.Guards()\n"
        "kept = g.slot(guards.GuardActivity('posts-guard', 'create_post'), user_id='u1')\n"
        "kept.__enter__()\n"
        "print('end')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, text=True, timeout=30)
    assert done.stdout == "end\n", done.stderr


@pytest.mark.parametrize(("used", "left"), [(1400, 2600), (0, 4000), (4000, None), (5000, None)])
def test_settle(server: Server, new: Callable[..., Client], used: int, left: int | None) -> None:
    client = new()
    reserved = client.check("create_post", user_id="u1", count=4000)
    for _ in range(2):
        client.settle(reserved, used)
    releases = [received.event for received in server.received[1:]]
    assert [event["count"] for event in releases] == ([] if left is None else [left])
    assert all(event["op"] == "release" and event["at"] == reserved.at for event in releases)


def test_settle_of_a_decision(server: Server) -> None:
    reserved = Guards(**PATIENT).check("create_post", user_id="u1", count=4)
    reserved.settle(3)

    async def run() -> None:
        later = await AsyncGuards(**PATIENT).check("create_post", user_id="u1", count=4)
        await later.settle(2)

    asyncio.run(run())
    assert [received.event["count"] for received in server.received] == [4, 1, 4, 2]


def test_settle_in_an_outage(server: Server, new: Callable[..., Client]) -> None:
    server.does(answer(), function_error("Unavailable", "m"), answer())
    client = new()
    reserved = client.check("create_post", user_id="u1", count=4)
    with pytest.raises(OutageError):
        client.settle(reserved, 1)
    client.settle(reserved, 1)
    client.settle(reserved, 1)
    assert ops(server) == ["check", "release", "release"]


@pytest.mark.parametrize("reason", ["unlimited", "bypassed", "shadow", "duplicate"])
def test_nothing_is_settled_without_a_receipt(server: Server, new: Callable[..., Client], reason: str) -> None:
    server.does(answer(reason=reason, at=None, requestId=None))
    client = new()
    client.settle(client.check("create_post", user_id="u1", count=4), 1)
    assert ops(server) == ["check"]


def test_a_stored_decision_is_settled_by_a_client(server: Server, new: Callable[..., Client]) -> None:
    client = new()
    reserved = client.check("create_post", user_id="u1", count=4)
    stored: Decision = pickle.loads(pickle.dumps(reserved))
    assert stored == reserved == copy.deepcopy(reserved)
    assert isinstance(vars(reserved)["_client"], Base)
    assert dataclasses.asdict(stored) == dataclasses.asdict(reserved)
    with pytest.raises(TypeError, match="settle or release of a client"):
        stored.settle(1)
    client.settle(stored, 1)
    assert server.received[1].event["count"] == 3


def test_renew(server: Server, new: Callable[..., Client]) -> None:
    server.does(slots(60))
    client = new()
    decision = client.check("create_post", user_id="u1", count=1)
    renewed = client.renew(decision)
    client.renew("create_post", user_id="u1", at=renewed.at, request_id="r1", count=1)
    _, first, second = (received.event for received in server.received)
    assert renewed.held_until == renewed.at + 60_000
    assert (first["op"], first["at"]) == ("renew", decision.at)
    assert (second["op"], second["at"]) == ("renew", renewed.at)
    with pytest.raises(ValidationError, match="nothing to renew"):
        client.renew(dataclasses.replace(decision, at=None))
    with pytest.raises(TypeError, match="renew needs"):
        client.renew("create_post", user_id="u1")
