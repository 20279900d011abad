"""The agent's way: each row of what a client sees, against a small server that plays the agent."""

from __future__ import annotations

import errno
import json
import logging
import os
import random
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import boto3
import pytest

from guards import (
    AnswerError,
    AsyncGuards,
    ConfigurationError,
    Credentials,
    GuardActivity,
    Guards,
    GuardsError,
    OutageError,
    ValidationError,
)
from guards._agent import answered
from guards._call import Call, Plan
from guards._request import new_request
from tests.conftest import BRIEF, LISTED, PATIENT, SHORT, Client, Clock
from tests.server import Handler, Server, Step, answer, close, hang, raw, reset
from tests.test_addresses import Port, http_answer, says

USER: Any = {"user_id": "u1"}


def as_agent(step: Step) -> Step:
    """Answer with the agent's header."""

    def marked(handler: Handler) -> None:
        real = handler.send_response

        def send_response(*args: Any) -> None:
            real(*args)
            handler.send_header("Guards-Agent", "1")

        handler.send_response = send_response  # type: ignore[assignment,method-assign]
        try:
            step(handler)
        finally:
            handler.send_response = real  # type: ignore[method-assign]

    return marked


def problem(status: int, detail: str = "the detail", **more: str) -> Step:
    body = {"type": "about:blank", "title": "x", "status": status, "detail": detail, **more}
    return as_agent(raw(json.dumps(body), status, content_type="application/problem+json"))


@pytest.fixture(autouse=True)
def nothing_of_aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The agent's way needs no setting of AWS."""
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    answered.clear()
    yield
    answered.clear()


@pytest.fixture
def agent(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    for name in ("AWS_ENDPOINT_URL_LAMBDA", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID"):
        monkeypatch.delenv(name, raising=False)
    server.does(as_agent(answer()))
    return server


def free_port() -> int:
    """Return a port on which nobody listens, and which the system gives to nobody: its own begin at 32768."""
    while True:
        port = random.randrange(20_000, 32_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


# What is sent


def test_a_check(agent: Server, new: Callable[..., Client]) -> None:
    client = new(agent=agent.url)
    decision = client.check("create_post", count=2, **USER)
    assert (decision.reason, decision.guard, decision.granted) == ("ok", "posts-guard", 2)
    (received,) = agent.received
    assert received.path == "/posts-guard"
    assert received.event["activity"] == "create_post"
    assert {name.lower() for name in received.headers} == {"host", "content-type", "guards-token", "user-agent", "content-length"}
    assert received.headers["Guards-Token"] == "local"
    assert received.headers["Content-Type"] == "application/json"
    assert received.headers["Host"] == agent.url.removeprefix("http://")


def test_without_a_list_the_agent_finds_the_guard(agent: Server, new: Callable[..., Client]) -> None:
    client = new(agent=agent.url, activities=None)
    decision = client.check("create_post", subjects={"room": "r1"}, **USER)
    assert (decision.reason, decision.guard, decision.window) == ("ok", "", None)
    client.release(decision)
    client.check(GuardActivity("photos-guard", "upload"), **USER)
    assert [received.path for received in agent.received] == ["/", "/", "/photos-guard"]
    assert agent.received[1].event == {
        "userId": "u1",
        "activity": "create_post",
        "op": "release",
        "at": decision.at,
        "requestId": decision.request_id,
        "count": 1,
        "subjects": {"room": "r1"},
    }
    for wrong in ("", None, 7):
        with pytest.raises(ValidationError):
            client.check(wrong, **USER)


def test_with_a_list_an_unknown_activity_is_not_sent(agent: Server, new: Callable[..., Client]) -> None:
    client = new(agent=agent.url)
    with pytest.raises(ValidationError, match=r'^no guard is known for the activity "create_pots": did you mean "create_post"'):
        client.check("create_pots", **USER)
    assert agent.received == []


@pytest.mark.parametrize("by_variable", [False, True])
def test_the_token(agent: Server, new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, by_variable: bool) -> None:
    monkeypatch.setenv("GUARDS_AGENT_TOKEN", "of-variable")
    client = new(agent=agent.url) if by_variable else new(agent=agent.url, token="of-option")
    client.check("create_post", **USER)
    assert agent.received[0].headers["Guards-Token"] == ("of-variable" if by_variable else "of-option")
    assert client.warnings == []


def test_the_option_wins_over_the_variable(agent: Server, new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUARDS_AGENT", "http://127.0.0.1:1")
    assert new(agent=agent.url).check("create_post", **USER).reason == "ok"
    monkeypatch.setenv("GUARDS_AGENT", f"{agent.url}/")
    assert new().check("create_post", **USER).reason == "ok"


def test_the_token_goes_to_no_other_address(server: Server, new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an agent, GUARDS_AGENT_TOKEN has no effect."""
    monkeypatch.setenv("GUARDS_AGENT_TOKEN", "t")
    for name, value in {"DEFAULT_REGION": "eu-west-1", "ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "s"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    new(endpoint=server.url).check("create_post", **USER)
    assert "Guards-Token" not in server.received[0].headers


@pytest.mark.parametrize(
    ("address", "is_warned"),
    [
        ("http://127.0.0.2:2774", False),
        ("http://localhost:2774", False),
        ("http://[::1]:2774", False),
        ("unix:/run/guards.sock", False),
        ("https://agent.example", False),
        ("http://agent.example:2774", True),
        ("http://10.0.0.1", True),
    ],
)
def test_a_token_without_encryption_is_one_warning(address: str, is_warned: bool) -> None:
    warnings: list[GuardsError] = []
    Guards(agent=address, token="secret-token", warn=warnings.append)
    assert len(warnings) == is_warned
    assert "secret-token" not in str(warnings)
    Guards(agent=address, warn=warnings.append)
    assert len(warnings) == is_warned


def test_no_proxy_is_used(agent: Server, new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert new(agent=agent.url).check("create_post", **USER).reason == "ok"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(agent: Server, new: Callable[..., Client], status: int) -> None:
    with Server() as other:
        threading.Thread(target=other.serve_forever, args=(0.01,), daemon=True).start()
        agent.does(as_agent(raw("", status, Location=f"{other.url}/posts-guard")))
        with pytest.raises(ConfigurationError, match=f"HTTP {status}$"):
            new(agent=agent.url, token="t").check("create_post", **USER)
        assert other.received == []
        other.shutdown()


def test_the_trace_of_a_function_is_sent(agent: Server, new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_X_AMZN_TRACE_ID", "Root=1-2")
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "app")
    new(agent=agent.url).check("create_post", **USER)
    assert agent.received[0].headers["X-Amzn-Trace-Id"] == "Root=1-2"


class UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """The server of the tests on a socket in the file system."""

    daemon_threads = True

    def __init__(self, path: Path, agent: Server) -> None:
        self.agent = agent
        super().__init__(str(path), Handler)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.agent, name)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients close connections on purpose."""


def test_a_socket_in_the_file_system(agent: Server, new: Callable[..., Client], tmp_path: Path) -> None:
    path = tmp_path / "agent.sock"
    client = new(agent=f"unix:{path}", token="t", **SHORT)
    with pytest.raises(ConfigurationError, match=f"^No agent answers at unix:{path}: No such file or directory"):
        client.check("create_post", **USER)
    with UnixServer(path, agent) as listening:
        threading.Thread(target=listening.serve_forever, args=(0.01,), daemon=True).start()
        client = new(agent=f"unix:{path}", token="t")
        for _ in range(3):
            assert client.check("create_post", **USER).reason == "ok"
        assert agent.received[0].headers["Host"] == "localhost"
        assert agent.received[0].path == "/posts-guard"
        listening.shutdown()


def test_a_socket_that_accepts_nobody(new: Callable[..., Client], tmp_path: Path) -> None:
    path = str(tmp_path / "agent.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener, ExitStack() as stack:
        listener.bind(path)
        listener.listen(0)
        with suppress(BlockingIOError):
            for _ in range(10):
                waiting = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
                waiting.setblocking(False)
                waiting.connect(path)
        began = time.monotonic()
        with pytest.raises(ConfigurationError, match=r"^No agent answers at unix:.*: no answer in "):
            new(agent=f"unix:{path}", **SHORT).check("create_post", **USER)
        assert 1 < time.monotonic() - began < 20


# A client sees | it is


@pytest.mark.parametrize("status", [200, 404, 500, 503, 403, 429])
@pytest.mark.parametrize("after_an_answer", [False, True])
def test_an_answer_without_the_header_is_of_another_program(
    agent: Server, new: Callable[..., Client], status: int, after_an_answer: bool
) -> None:
    client = new(agent=agent.url)
    if after_an_answer:
        client.check("create_post", **USER)
    agent.does(raw('{"allowed": true, "reason": "ok", "errorType": "Unavailable"}', status))
    for _ in range(2):
        with pytest.raises(ConfigurationError, match=f"^Another program than the agent answers at {agent.url}"):
            client.check("create_post", **USER)
    assert client.warnings == []


def test_what_a_url_would_answer_too(agent: Server, new: Callable[..., Client]) -> None:
    client = new(agent=agent.url)
    refused = {
        "type": "t",
        "title": "x",
        "status": 429,
        "allowed": False,
        "reason": "limited",
        "waitTime": 1500,
        "message": "Too many.",
    }
    agent.does(
        as_agent(raw(json.dumps(refused), 429)),
        problem(400, "count is 0", errorType="ValidationError"),
        problem(503, "the table did not answer", errorType="Unavailable"),
        problem(400, "no guard has this activity"),
        as_agent(raw("hello")),
    )
    decision = client.check("create_post", **USER)
    assert (decision.allowed, decision.wait_time, decision.message) == (False, 1500, "Too many.")
    with pytest.raises(ValidationError, match=r"^count is 0$"):
        client.check("create_post", **USER)
    assert str(client.check("create_post", **USER).outage) == "posts-guard did not answer: the table did not answer"
    with pytest.raises(ConfigurationError):
        client.check("create_post", **USER)
    with pytest.raises(AnswerError):
        client.check("create_post", **USER)
    assert len(agent.received) == 5


@pytest.mark.parametrize("status", [403, 404, 405, 415, 500, 502])
def test_what_the_agent_refuses_is_a_mistake(agent: Server, new: Callable[..., Client], status: int) -> None:
    agent.does(problem(status, "limits.go: the guard of u1 is wrong"))
    with pytest.raises(ConfigurationError) as error:
        new(agent=agent.url).check("create_post", **USER)
    assert str(error.value) == f"The agent at {agent.url} could not decide: limits.go: the guard of *** is wrong"
    assert error.value.guard == "posts-guard"
    assert len(agent.received) == 1


def test_a_request_that_is_too_long_is_a_mistake_of_the_caller(agent: Server, new: Callable[..., Client]) -> None:
    agent.does(problem(413, "the body has more than 64 KiB"))
    with pytest.raises(ValidationError, match=r"^the body has more than 64 KiB$"):
        new(agent=agent.url).check("create_post", **USER)


# Refused, broken or silent


def test_an_agent_that_was_never_there(new: Callable[..., Client]) -> None:
    port = free_port()
    client = new(agent=f"http://127.0.0.1:{port}", **SHORT)
    began = time.monotonic()
    with pytest.raises(ConfigurationError) as error:
        client.check("create_post", **USER)
    assert 1.1 < time.monotonic() - began < 20  # the whole time of the call
    want = f"No agent answers at http://127.0.0.1:{port}: Connection refused. Start it, or correct this address."
    assert str(error.value) == want
    began = time.monotonic()
    for activity, guard in (("create_post", "posts-guard"), ("pin", "pins-guard")):
        with pytest.raises(ConfigurationError) as error:
            client.check(activity, **USER)
        assert (str(error.value), error.value.guard) == (want, guard)
    assert time.monotonic() - began < 0.5
    assert client.warnings == []


@pytest.mark.parametrize("clocks", [(1, 0), (0, 1), (1, -3600)])
def test_after_a_second_the_agent_is_asked_again(new: Callable[..., Client], clock: Clock, clocks: tuple[float, float]) -> None:
    port = free_port()
    client = new(agent=f"http://127.0.0.1:{port}", **SHORT)
    with pytest.raises(ConfigurationError):
        client.check("create_post", **USER)
    clock.now += clocks[0]
    clock.frozen += clocks[1]
    began = time.monotonic()
    with pytest.raises(ConfigurationError):
        client.check("create_post", **USER)
    assert time.monotonic() - began > 1.1


@pytest.mark.usefixtures("clock")
def test_an_agent_that_has_answered_since_is_asked_at_once(agent: Server, new: Callable[..., Client]) -> None:
    agent.does(close, as_agent(answer()))
    client = new(agent=agent.url, max_tries=1)
    with pytest.raises(ConfigurationError):
        client.check("create_post", **USER)
    assert new(agent=agent.url).check("create_post", **USER).reason == "ok"
    assert client.check("create_post", **USER).reason == "ok"


@pytest.mark.parametrize("options", [{}, {"count": 2, "partial": True}])
def test_an_agent_that_starts_during_a_call(new: Callable[..., Client], options: dict[str, Any]) -> None:
    port = free_port()
    client = new(agent=f"http://127.0.0.1:{port}", max_tries=1)
    server: list[Server] = []

    def start() -> None:
        time.sleep(0.5)
        made = Server.__new__(Server)
        Server.__bases__[0].__init__(made, ("127.0.0.1", port), Handler)  # type: ignore[misc]
        made.steps, made.received, made.lock, made.scheme = [as_agent(answer())], [], threading.Lock(), "http"
        server.append(made)
        made.serve_forever(0.01)

    threading.Thread(target=start, daemon=True).start()
    assert client.check("create_post", **USER, **options).reason == "ok"
    assert len(server[0].received) == 1
    server[0].shutdown()
    server[0].server_close()


@pytest.mark.parametrize("missing", [errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL])
def test_an_address_that_this_machine_can_not_use_tells_nothing(
    agent: Server, new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, missing: int
) -> None:
    """Such as "::1 localhost" in /etc/hosts, if IPv6 is off."""

    class WithoutIPv6(socket.socket):
        def __init__(self, family: int = -1, *args: Any, **options: Any) -> None:
            if family == socket.AF_INET6 and missing == errno.EAFNOSUPPORT:
                raise OSError(missing, os.strerror(missing))
            super().__init__(family, *args, **options)

        def connect_ex(self, address: Any) -> int:
            return missing if self.family == socket.AF_INET6 else super().connect_ex(address)

    def look_up(_: str, port: int, *__: int) -> Any:
        other = (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", port, 0, 0))
        return [other, (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)), other]

    monkeypatch.setattr(socket, "socket", WithoutIPv6)
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    began = time.monotonic()
    with pytest.raises(ConfigurationError, match=": Connection refused"):
        new(agent=f"http://localhost:{free_port()}", **SHORT).check("create_post", **USER)
    assert time.monotonic() - began > 1.1  # the whole time of the call
    url = agent.url.replace("127.0.0.1", "localhost")
    assert new(agent=url).check("create_post", **USER).reason == "ok"
    agent.shutdown()
    agent.server_close()
    assert new(agent=url).check("create_post", **USER).outage is not None


@pytest.mark.parametrize("step", [close, reset, hang])
def test_an_agent_that_breaks_or_is_silent(agent: Server, new: Callable[..., Client], step: Step) -> None:
    agent.does(step)
    times = SHORT if step is hang else PATIENT
    client = new(agent=agent.url, **times)
    with pytest.raises(ConfigurationError, match=f"^No agent answers at {agent.url}: "):
        client.check("create_post", **USER)
    sent = len(agent.received)
    assert 1 <= sent <= 3
    with pytest.raises(ConfigurationError, match=f"^No agent answers at {agent.url}: "):
        client.check("create_post", **USER)
    assert len(agent.received) == sent
    assert client.warnings == []


@pytest.mark.parametrize("step", [close, reset, hang])
def test_the_same_after_an_answer_is_an_outage(agent: Server, new: Callable[..., Client], step: Step) -> None:
    agent.does(problem(500), step)
    client = new(agent=agent.url, on_outage="deny", **(SHORT if step is hang else PATIENT))
    with pytest.raises(ConfigurationError):
        client.check("create_post", **USER)
    decision = client.check("create_post", **USER)
    assert (decision.allowed, decision.reason) == (False, "unavailable")
    assert str(client.check("create_post", **USER).outage) == "posts-guard did not answer a moment ago"


def test_an_agent_that_goes_is_an_outage(agent: Server, new: Callable[..., Client]) -> None:
    client = new(agent=agent.url)
    assert client.check("create_post", **USER).reason == "ok"
    agent.does(close)
    with pytest.raises(OutageError):
        client.status("create_post", **USER)
    agent.shutdown()
    agent.server_close()
    other = new(agent=agent.url)
    began = time.monotonic()
    decision = other.check("create_post", **USER)
    assert decision.outage is not None
    assert time.monotonic() - began < 10  # a refused connection is repeated as often as any request


def test_a_dead_connection_is_replaced(agent: Server, new: Callable[..., Client]) -> None:
    ports: list[Any] = []

    def counts(step: Step) -> Step:
        def counted(handler: Handler) -> None:
            ports.append(handler.client_address)
            step(handler)

        return counted

    agent.does(counts(as_agent(answer())), counts(hang), counts(as_agent(answer())))
    client = new(agent=agent.url, **BRIEF)
    client.check("create_post", **USER)
    assert client.check("create_post", **USER).reason == "ok"
    assert ports[0] == ports[1] != ports[2]
    assert agent.received[1].event == agent.received[2].event


@pytest.fixture
def port() -> Iterator[Callable[..., Port]]:
    made: list[Port] = []

    def make(serve: Callable[[socket.socket], None]) -> Port:
        made.append(Port(serve))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_a_port_without_http(new: Callable[..., Client], port: Callable[..., Port]) -> None:
    listener = port(says(b"SSH-2.0-OpenSSH_9.6\r\n", False))
    client = new(agent=listener.address)
    with pytest.raises(ConfigurationError, match=r"^Another program than the agent answers"):
        client.check("create_post", **USER)
    listener.serve = http_answer
    with pytest.raises(ConfigurationError, match=r"^Another program than the agent answers"):
        client.check("create_post", **USER)
    answered.add(listener.address)
    listener.serve = says(b"-ERR\r\n", True)
    assert client.check("create_post", **USER).outage is not None


def test_a_burst_at_an_absent_agent_ends_in_time() -> None:
    def one() -> None:
        with pytest.raises(ConfigurationError):
            client.check("create_post", **USER)
        ended.append(time.monotonic())

    ended: list[float] = []
    client = Guards(**LISTED, agent=f"http://127.0.0.1:{free_port()}")
    threads = [threading.Thread(target=one) for _ in range(300)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ended) == 300
    assert max(ended) - began < 8


# Options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"agent": ""}, "The option agent is '', want an address such as http://127.0.0.1:2774 or unix:/PATH."),
        ({"agent": "127.0.0.1:2774"}, "The option agent is '127.0.0.1:2774', want an address"),
        ({"agent": "unix:guards.sock"}, "The option agent is 'unix:guards.sock', want an address"),
        ({"agent": "http://127.0.0.1:2774/x"}, "The option agent is 'http://127.0.0.1:2774/x', want an address"),
        ({"agent": "http://a@127.0.0.1"}, "The option agent is 'http://a@127.0.0.1', want an address"),
        ({"agent": "http://127.0.0.1:x"}, "The option agent is 'http://127.0.0.1:x', want an address"),
        ({"token": "t"}, "The option token is for an agent, and there is none"),
        (
            {"agent": "http://127.0.0.1", "token": "a\nb"},
            "The token of the agent has another form, want printable ASCII without spaces.",
        ),
        ({"agent": "http://127.0.0.1", "token": ""}, "The token of the agent has another form"),
        (
            {"agent": "http://127.0.0.1", "region": "eu-west-1"},
            "The option region does not go with an agent (http://127.0.0.1), which needs none.",
        ),
        (
            {"agent": "http://127.0.0.1", "urls": {"posts-guard": "https://x.example"}},
            "The option urls does not go with an agent",
        ),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    for form in (Guards, AsyncGuards):
        with pytest.raises(ConfigurationError) as error:
            form(**{**LISTED, **options})
        assert str(error.value).startswith(message)


def test_the_variable_is_stronger_than_the_options_for_lambda(
    agent: Server, new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So an app can be moved to the agent, and back, without a change of its code."""
    monkeypatch.setenv("GUARDS_AGENT", agent.url)
    options = {"urls": {"posts-guard": "http://127.0.0.1:1"}, "region": "eu-west-1", "endpoint": "http://127.0.0.1:1"}
    for more in ({}, {"credentials": Credentials("a", "b")}, {"client": boto3.client("lambda", region_name="eu-west-1")}):
        assert new(**options, **more).check("create_post", **USER).reason == "ok"
    assert [received.path for received in agent.received] == ["/posts-guard"] * 3


def test_a_wrong_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUARDS_AGENT", "2774")
    with pytest.raises(ConfigurationError, match=r"^The variable GUARDS_AGENT is '2774', want an address"):
        Guards()


def test_ready_asks_the_agent(agent: Server, new: Callable[..., Client]) -> None:
    new(agent=agent.url).ready("create_post")
    assert agent.received[0].event["op"] == "status"
    agent.does(problem(500, "GUARDS_TABLE_NAME is not set"))
    with pytest.raises(ConfigurationError, match="GUARDS_TABLE_NAME is not set"):
        new(agent=agent.url).ready("create_post")


def test_ready_without_a_list_asks_for_the_agents_health(
    agent: Server, new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Handler, "do_GET", Handler.do_POST, raising=False)
    agent.does(as_agent(raw('{"status": "ok"}')), problem(503, "posts-guard: the limit is wrong"), raw("{}"))
    client = new(agent=agent.url, activities=None)
    client.ready()
    assert agent.received[0].path == "/health"
    with pytest.raises(ConfigurationError, match=r"posts-guard: the limit is wrong$"):
        client.ready()
    with pytest.raises(ConfigurationError, match=r"^Another program"):
        client.ready()


def test_nothing_of_the_request_is_logged(agent: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    Guards(agent=agent.url, token="secret-token").check("create_post", **USER)
    assert "secret-token" not in caplog.text


def test_a_request_is_the_same_in_each_attempt() -> None:
    client = Guards(agent="http://127.0.0.1:2774")
    request = new_request(client._settings, "check", "create_post", user_id="u1")
    assert request.function == "the agent"
    signed = client._way.sign(request, Call(Plan(3, 1.3, 3)))
    assert signed.address.url == "http://127.0.0.1:2774/"
