"""How long calls take and how often they are sent.

Only lower bounds of times are exact, because a busy machine can be late. The upper bounds are far below the time that a
call would take without the rule. The tests of Plan are exact about both.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable

import pytest

import guards
from guards import ConfigurationError, OutageError
from guards._call import Plan
from guards._decision import time_to_wait
from tests.conftest import BRIEF, HASTY, PATIENT, Client, Clock, tasks, until
from tests.server import Handler, Server, after, answer, close, cut, hang, lambda_error, reset, trickle

TIMES = HASTY


def took(call: Callable[[], object]) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began


@pytest.mark.parametrize("step", [close, cut, reset, lambda_error(500, "ServiceException"), lambda_error(502, "EC2Throttled")])
def test_a_lost_answer_is_repaired_by_a_repeat(server: Server, new: Callable[..., Client], step: Callable[..., None]) -> None:
    server.does(step, answer())
    decision = new(**PATIENT).check("create_post", user_id="u1")
    assert decision.outage is None
    assert decision.granted == 1
    assert len(server.received) == 2


def test_an_attempt_without_an_answer_is_repeated_and_its_connection_closed(server: Server, new: Callable[..., Client]) -> None:
    server.does(hang, answer())
    client = new()
    seconds = took(lambda: client.check("create_post", user_id="u1"))
    first, *_, second = server.received
    assert first is not second
    assert 1 <= seconds < 20
    assert first.event == second.event
    assert first.until_closed() < 15  # the call has 20 s


def test_a_connection_that_went_silent_is_replaced(server: Server, new: Callable[..., Client]) -> None:
    """As after a pause of ten minutes: the others are dead, too, so the repeat opens a new one, and is signed anew."""
    ports: list[object] = []

    def counted(step: Callable[[Handler], None]) -> Callable[[Handler], None]:
        def counting(handler: Handler) -> None:
            ports.append(handler.client_address)
            step(handler)

        return counting

    together = threading.Barrier(2, timeout=20)

    def both(handler: Handler) -> None:
        together.wait()
        answer()(handler)

    client = new(**HASTY)
    server.does(counted(both), counted(both), counted(hang), counted(answer()))
    first = threading.Thread(target=lambda: client.check("create_post", user_id="u1"))
    first.start()
    client.check("create_post", user_id="u1")
    first.join()
    assert client.check("create_post", user_id="u1").reason == "ok"
    assert ports[2] in ports[:2]
    assert ports[3] not in ports[:3]
    lost, repeat = server.received[2:]
    assert lost.event == repeat.event
    assert lost.headers["X-Amz-Date"] < repeat.headers["X-Amz-Date"]


def test_a_call_ends_in_its_time(server: Server, new: Callable[..., Client]) -> None:
    server.does(hang)
    client = new(timeout=4.5, decision_timeout=1.5)  # attempts of 1.8 s
    decisions = []
    seconds = took(lambda: decisions.append(client.check("create_post", user_id="u1")))
    assert 4.49 <= seconds < 40  # the server hangs for 60 s
    assert decisions[0].allowed
    assert decisions[0].reason == "unavailable"
    server.wait_until_closed()
    assert 1 <= len(server.received) <= 2  # the second attempt gets all the remaining time


@pytest.mark.parametrize(
    "step",
    [
        trickle(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{", b" "),
        trickle(b"HTTP/1.1 200 OK\r\nX-Long: ", b"x"),
        trickle(b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
    ids=["body", "header", "continue"],
)
def test_an_answer_that_trickles_in_does_not_last_longer(
    server: Server, new: Callable[..., Client], step: Callable[..., None]
) -> None:
    server.does(step)
    client = new(**BRIEF)
    assert took(lambda: client.check("create_post", user_id="u1")) < 40  # the answer takes 60 s
    server.wait_until_closed()
    assert 1 <= len(server.received) <= 3


def test_a_slow_look_up_of_the_host_does_not_last_longer(
    server: Server, new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    free = threading.Event()
    asked = []

    def look_up(*args: object, **kwargs: object) -> object:
        asked.append(args)
        free.wait(60)
        return real(*args, **kwargs)  # type: ignore[arg-type]

    real = socket.getaddrinfo
    monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", server.url.replace("127.0.0.1", "localhost"))
    client = new(**BRIEF)
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    assert took(lambda: client.check("create_post", user_id="u1")) < 40
    free.set()
    asyncio.run(until(lambda: tasks() == 0))
    assert 1 <= len(asked) <= 3
    assert server.received == []  # an attempt that is over sends nothing


def test_no_server(new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", "http://127.0.0.1:1")
    client = new(on_outage="deny")
    decision = client.check("create_post", user_id="u1", count=2)
    assert (decision.allowed, decision.reason, decision.granted) == (False, "unavailable", 0)
    assert (decision.user_id, decision.activity, decision.op) == ("u1", "create_post", "check")
    assert decision.message == "Please try again later."
    assert str(decision.outage).startswith("posts-guard did not answer: Could not connect")
    (warning,) = client.warnings
    assert str(warning).startswith(
        f"{decision.outage}. Lambda has not answered this client since it started: check the network. In a VPC, "
    )
    assert warning.__cause__ is decision.outage


def test_after_an_answer_of_any_kind_no_warning_is_about_the_network(
    server: Server, new: Callable[..., Client], clock: Clock
) -> None:
    server.does(lambda_error(400, "InvalidRequestContentException"), reset)
    client = new(max_tries=1)
    with pytest.raises(guards.ConfigurationError):
        client.check("create_post", user_id="u1")
    clock.now += 1
    assert client.check("create_post", user_id="u1").outage is not None
    assert "VPC" not in str(client.warnings[0])


def test_a_call_for_which_no_thread_is_left_is_no_outage(
    server: Server, new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """AsyncGuards has a thread for each call. Guards needs one only for the look-up of a host name."""
    real = threading.Thread.start
    failed: list[threading.Thread] = []

    def start(thread: threading.Thread) -> None:
        if thread.name.startswith("guards-"):
            failed.append(thread)
            raise RuntimeError("can't start new thread")
        real(thread)

    monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", server.url.replace("127.0.0.1", "localhost"))
    client = new(**PATIENT)
    monkeypatch.setattr(threading.Thread, "start", start)
    for _ in range(2):
        with pytest.raises(ConfigurationError) as error:
            client.check("create_post", user_id="u1")
        assert str(error.value) == "posts-guard could not be invoked: no thread is left for the request: can't start new thread"
    assert failed
    assert client.warnings == []
    assert server.received == []


ABSENT = "lambda.eu-wst-1.invalid"


@pytest.mark.parametrize("url", [False, True])
def test_a_host_that_does_not_exist_is_a_mistake(new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, url: bool) -> None:
    try:
        socket.getaddrinfo(ABSENT, 80)
    except socket.gaierror as failed:
        if failed.errno != socket.EAI_NONAME:
            pytest.skip(f"the resolver does not know that {ABSENT} does not exist: {failed}")
    if not url:
        monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", f"http://{ABSENT}")
    client = new(urls={"posts-guard": f"http://{ABSENT}/"} if url else {})
    with pytest.raises(ConfigurationError) as error:
        client.check("create_post", user_id="u1")
    check = "the URL of posts-guard" if url else "the region eu-west-1"
    assert str(error.value) == f"There is no host {ABSENT}. Check {check}."
    assert client.warnings == []


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (socket.EAI_NONAME, f"There is no host {ABSENT}. Check the region eu-west-1."),
        (socket.EAI_NODATA, f"There is no host {ABSENT}. Check the region eu-west-1."),
        (socket.EAI_AGAIN, ""),
        (socket.EAI_FAIL, ""),
    ],
)
@pytest.mark.parametrize("proxy", [False, True])
def test_what_the_resolver_reports(
    new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, code: int, message: str, proxy: bool
) -> None:
    def look_up(*_: object, **__: object) -> object:
        raise socket.gaierror(code, "from the resolver")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", f"http://{ABSENT}")
    if proxy:
        monkeypatch.setenv("http_proxy", "http://user:secret@proxy.invalid:3128")
        message = message and "There is no host proxy.invalid. Check the proxy."
    client = new()
    if not message:  # no name server answered, which is an outage
        assert client.check("create_post", user_id="u1").outage is not None
        return
    with pytest.raises(ConfigurationError) as error:
        client.check("create_post", user_id="u1")
    assert str(error.value) == message


def test_attempts_are_limited(server: Server, new: Callable[..., Client]) -> None:
    server.does(lambda_error(503, "ServiceUnavailable"))
    for most in (1, 2, 5):
        del server.received[:]
        client = new(**PATIENT, max_tries=most)
        with pytest.raises(OutageError, match="posts-guard did not answer: ServiceUnavailable"):
            client.status("create_post", user_id="u1")
        assert len(server.received) == most


def test_the_only_attempt_gets_all_the_time(server: Server, new: Callable[..., Client]) -> None:
    server.does(after(2, answer()))  # an attempt that is not the last one has 1 s
    assert new(max_tries=1).check("create_post", user_id="u1").reason == "ok"
    assert new().check("create_post", user_id="u1", count=2, partial=True).reason == "ok"


@pytest.mark.parametrize("verb", ["release", "status"])
def test_other_verbs_are_repeated_too(server: Server, new: Callable[..., Client], verb: str) -> None:
    server.does(close, answer())
    receipt = {"at": 5, "request_id": "r1"} if verb == "release" else {}
    getattr(new(**PATIENT), verb)("create_post", user_id="u1", **receipt)
    first, second = server.received
    assert first.body == second.body


def test_a_reset_is_sent_once(server: Server, new: Callable[..., Client]) -> None:
    server.does(close, answer())
    with pytest.raises(OutageError):
        new().reset("create_post", user_id="u1")
    assert len(server.received) == 1
    server.does(after(2, answer()))
    assert new().reset("create_post", user_id="u1").allowed  # the only attempt gets all the time


def begun(plan: Plan) -> Plan:
    plan.begin()
    return plan


def test_pauses_grow_and_leave_time_for_an_attempt() -> None:
    longest = [0.0, 0.0, 0.0]
    for _ in range(300):
        plan = Plan(timeout=10, attempt=1, attempts=4)
        for n in range(3):
            assert begun(plan).time() == 1
            left = plan.remaining
            pause = plan.pause()
            assert pause is not None
            assert plan.remaining == left - pause
            longest[n] = max(longest[n], pause)
        assert begun(plan).time() == plan.remaining  # no other one can follow
        assert plan.pause() is None
    assert 0.04 < longest[0] <= 0.05
    assert 0.08 < longest[1] <= 0.1
    assert 0.16 < longest[2] <= 0.2


def test_an_attempt_needs_its_whole_time() -> None:
    assert begun(Plan(timeout=1.96875, attempt=1, attempts=3)).time() == 1.96875
    assert begun(Plan(timeout=2, attempt=1, attempts=3)).time() == 1
    assert Plan(timeout=0.96875, attempt=1, attempts=3).pause() is None
    assert Plan(timeout=1, attempt=1, attempts=3).pause() == 0
    for _ in range(50):
        pause = Plan(timeout=1.0078125, attempt=1, attempts=3).pause()
        assert pause is not None
        assert pause <= 0.0078125
    plan = begun(Plan(timeout=4, attempt=1, attempts=3))
    assert plan.time() == 1
    plan.spend(2.5)
    assert plan.time() == plan.remaining == 1.5
    plan.spend(2)
    assert plan.time() == plan.remaining == 0


def test_many_threads_share_a_client(server: Server, new: Callable[..., Client]) -> None:
    server.does(after(0.5, answer()))
    client = new(**PATIENT)
    client.check("create_post", user_id="first")
    answers = []
    threads = [
        threading.Thread(target=lambda n=n: answers.append(client.check("create_post", user_id=f"u{n}"))) for n in range(50)
    ]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - began
    assert sorted(d.user_id for d in answers) == sorted(f"u{n}" for n in range(50))
    assert all(d.reason == "ok" for d in answers)
    assert seconds < 20  # one after the other, they take 25 s


def test_time_to_wait() -> None:
    decision = _refused(1000)
    waits = [time_to_wait(decision, 60) or 0 for _ in range(300)]
    assert min(waits) >= 1
    assert 1.09 < max(waits) <= 1.1
    short = [time_to_wait(_refused(10), 60) or 0 for _ in range(300)]
    assert 0.055 < max(short) <= 0.06
    assert time_to_wait(decision, 0.999) is None
    assert time_to_wait(decision, 1) is not None
    assert time_to_wait(_refused(None), 60) is None
    assert time_to_wait(guards.Decision(allowed=False, reason="blocked", wait_time=10), 60) is None
    for wait in (1000, 61_000):  # in shadow mode, it tells how long a user would have to wait
        assert time_to_wait(guards.Decision(allowed=True, reason="shadow", wait_time=wait), 60) == 0
    partly = guards.Decision(allowed=True, granted=3, wait_time=1000)  # the rest can pass in a second
    assert (time_to_wait(partly, 60) or 0) >= 1


def _refused(wait: int | None) -> guards.Decision:
    return guards.Decision(allowed=False, wait_time=wait)
