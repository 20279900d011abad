"""Credentials that come late, fail or can't be renewed. In these tests, they end in a minute, so each call renews them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import boto3
import botocore.session
import pytest
from botocore.credentials import DeferredRefreshableCredentials

from guards import AsyncGuards, ConfigurationError, OutageError
from tests.conftest import SHORT, Client, until
from tests.server import Server, answer, raw

NEVER = "posts-guard could not be invoked: there are no AWS credentials ({}). Check the app's role, its profile and the network."
NO_MORE = "posts-guard did not answer: the AWS credentials could not be renewed ({})"


def renewed() -> dict[str, str]:
    ends = datetime.now(timezone.utc) + timedelta(minutes=1)
    return {"access_key": "a", "secret_key": "s", "token": "t", "expiry_time": ends.isoformat()}


def fail() -> dict[str, str]:
    raise LookupError("the secret is hunter2")


class Source:
    """A source of credentials. It does the steps one after the other, and then the last one for all further calls."""

    def __init__(self, *steps: Callable[[], dict[str, str]]) -> None:
        self.steps = list(steps)
        self.asked = 0
        session = botocore.session.get_session()
        session._credentials = DeferredRefreshableCredentials(self, "test")  # as get_credentials does
        self.session = session

    def __call__(self) -> dict[str, str]:
        self.asked += 1
        return (self.steps.pop(0) if len(self.steps) > 1 else self.steps[0])()


Given = Callable[[Source], dict[str, Any]]


@pytest.fixture(params=["session", "client"])
def given(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Given:
    """Lets clients use a source, and returns their options for that."""

    def options(source: Source) -> dict[str, Any]:
        if request.param == "client":
            return {"client": source.session.create_client("lambda")}
        monkeypatch.setattr(boto3, "DEFAULT_SESSION", boto3.Session(botocore_session=source.session))
        return {}

    return options


@pytest.fixture
def silent() -> Any:
    """A source that does not answer before the test ends."""
    end = threading.Event()

    def wait() -> dict[str, str]:
        end.wait(30)
        return renewed()

    yield wait
    end.set()


@pytest.mark.parametrize("url", [False, True])
def test_a_source_that_always_failed_is_a_mistake(server: Server, new: Callable[..., Client], given: Given, url: bool) -> None:
    source = Source(fail)
    client = new(**given(source), urls={"posts-guard": server.url} if url else {})
    for _ in range(2):
        with pytest.raises(ConfigurationError) as error:
            client.check("create_post", user_id="u1")
        assert str(error.value) == NEVER.format("LookupError")
        assert error.value.guard == "posts-guard"
    assert source.asked == 2  # once for each call
    assert server.received == []
    assert client.warnings == []


@pytest.mark.parametrize("url", [False, True])
def test_credentials_that_can_not_be_renewed_are_an_outage(
    server: Server, new: Callable[..., Client], given: Given, url: bool
) -> None:
    source = Source(renewed, fail)
    client = new(**given(source), urls={"posts-guard": server.url} if url else {}, on_outage="deny")
    assert client.check("create_post", user_id="u1").reason == "ok"
    decision = client.check("create_post", user_id="u1")
    assert (decision.allowed, decision.reason) == (False, "unavailable")
    assert str(decision.outage) == NO_MORE.format("LookupError")
    assert client.warnings == [decision.outage]
    assert source.asked == 2
    assert len(server.received) == 1


def test_a_source_that_is_silent(
    server: Server, new: Callable[..., Client], given: Given, silent: Callable[[], dict[str, str]]
) -> None:
    client = new(**given(Source(silent)), **SHORT)
    began = time.monotonic()
    with pytest.raises(ConfigurationError) as error:
        client.check("create_post", user_id="u1")
    assert 1.1 < time.monotonic() - began < 20  # the source gets the whole time of the call
    assert str(error.value) == NEVER.format("no answer in time")
    client = new(**given(Source(renewed, silent)), timeout=4, decision_timeout=3)
    assert client.check("create_post", user_id="u1").reason == "ok"
    with pytest.raises(OutageError) as outage:
        client.status("create_post", user_id="u1")
    assert str(outage.value) == NO_MORE.format("no answer in time")
    assert len(server.received) == 1


def test_calls_that_wait_do_not_wait_for_a_silent_source_one_after_another(
    server: Server, given: Given, silent: Callable[[], dict[str, str]]
) -> None:
    async def main() -> list[Any]:
        calls = [client.status("pin" if n % 2 else "create_post", user_id="u1") for n in range(60)]
        return await asyncio.gather(*calls, return_exceptions=True)

    client = AsyncGuards(**given(Source(silent)), **SHORT)
    began = time.monotonic()
    errors = asyncio.run(main())
    assert time.monotonic() - began < 20  # two at a time, they take 36 s
    assert {type(error) for error in errors} == {ConfigurationError}
    assert [error.guard for error in errors] == ["posts-guard", "pins-guard"] * 30
    assert server.received == []
    client.close()


def test_a_slow_source_is_waited_for(server: Server, new: Callable[..., Client], given: Given) -> None:
    def slow() -> dict[str, str]:
        time.sleep(1.2)
        return renewed()

    source = Source(slow, renewed)
    client = new(**given(source), timeout=20, decision_timeout=0.7)  # attempts of 1 s
    assert client.check("create_post", user_id="u1").reason == "ok"
    assert source.asked == len(server.received)


def test_a_machine_that_is_too_busy_to_sign_is_no_outage(server: Server, new: Callable[..., Client]) -> None:
    own = boto3.client("lambda")
    own.meta.events.register("provide-client-params.lambda.Invoke", lambda **_: time.sleep(1.5))
    client = new(client=own, timeout=1.4, decision_timeout=1.1, on_outage="deny")
    client.check("create_post", user_id="u1")
    assert len(server.received) == 1
    own.close()


def role(key: str) -> str:
    ends = (datetime.now(timezone.utc) + timedelta(minutes=1)).isoformat()
    return (
        "<AssumeRoleResponse><AssumeRoleResult><Credentials>"
        f"<AccessKeyId>{key}</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>"
        f"<Expiration>{ends}</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"
    )


@pytest.mark.parametrize("status", [403, 500])
def test_a_role_that_the_app_may_not_assume(
    server: Server, new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, status: int
) -> None:
    (tmp_path / "config").write_text(
        "[profile app]\nrole_arn = arn:aws:iam::123456789012:role/app\nsource_profile = base\n"
        "[profile base]\naws_access_key_id = a\naws_secret_access_key = b\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_PROFILE", "app")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", server.url)
    body = "<ErrorResponse><Error><Code>AccessDenied</Code><Message>no, hunter2</Message></Error></ErrorResponse>"
    refused = raw(body, status, content_type="text/xml")
    server.does(refused)
    with pytest.raises(ConfigurationError) as error:
        new().check("create_post", user_id="u1")
    assert str(error.value) == NEVER.format("AssumeRole: AccessDenied")
    assert {received.path for received in server.received} == {"/"}
    server.does(raw(role("ASSUMED"), content_type="text/xml"), answer(), refused)
    client = new()
    assert client.check("create_post", user_id="u1").reason == "ok"
    assert "Credential=ASSUMED/" in server.received[-1].headers["Authorization"]
    assert str(client.check("create_post", user_id="u1").outage) == NO_MORE.format("AssumeRole: AccessDenied")


def test_a_source_that_fails_when_the_client_is_made(
    new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "config").write_text("[default]\ncredential_process = python3 -c \"import sys; sys.exit('hunter2')\"\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(ConfigurationError) as error:
        new().check("create_post", user_id="u1")
    assert str(error.value) == NEVER.format("CredentialRetrievalError")


def test_a_call_does_not_wait_for_credentials_while_the_old_ones_are_good(
    server: Server, new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, silent: Callable[[], dict[str, str]]
) -> None:
    """They are renewed 15 minutes before their end, by the way."""

    def good(minutes: float) -> dict[str, str]:
        ends = datetime.now(timezone.utc) + timedelta(minutes=minutes)
        return {"access_key": f"K{minutes}", "secret_key": "s", "token": "t", "expiry_time": ends.isoformat()}

    source = Source(lambda: good(12), silent)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", boto3.Session(botocore_session=source.session))
    client = new()
    for _ in range(4):
        assert client.check("create_post", user_id="u1").reason == "ok"
    assert source.asked == 2  # the second time in a thread of its own
    assert all("Credential=K12/" in received.headers["Authorization"] for received in server.received)
    source = Source(lambda: good(12), lambda: good(60))
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", boto3.Session(botocore_session=source.session))
    client = new()
    client.check("create_post", user_id="u1")
    client.check("create_post", user_id="u1")
    asyncio.run(until(lambda: source.asked == 2))
    asyncio.run(until(lambda: client.guards._way._source._last.access_key == "K60"))
    client.check("create_post", user_id="u1")
    assert "Credential=K60/" in server.received[-1].headers["Authorization"]
