from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.stub import Stubber

from guards import ConfigurationError, Decision, GuardActivity, LimitState, ValidationError
from tests.conftest import Client, Clock
from tests.server import Server, answer, hang, lambda_error, raw, refuse

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def test_a_check_by_invoke(server: Server, new: Callable[..., Client]) -> None:
    decision = new().check("create_post", user_id="u1")
    (received,) = server.received
    assert received.path == "/2015-03-31/functions/posts-guard/invocations"
    assert UUID.fullmatch(received.event.pop("requestId"))
    assert received.event == {"userId": "u1", "activity": "create_post", "op": "check"}
    assert "Credential=AKIDEXAMPLE/" in received.headers["Authorization"]
    assert "/eu-west-1/lambda/aws4_request" in received.headers["Authorization"]
    assert decision.allowed
    assert (decision.reason, decision.user_id, decision.limit, decision.remaining, decision.granted) == ("ok", "u1", 10, 9, 1)
    assert decision.outage is None


def test_every_option_of_a_check_arrives(server: Server, new: Callable[..., Client]) -> None:
    options = {
        "count": 2,
        "tier": "premium",
        "roles": iter(("a", "b")),
        "request_id": "r1",
        "ready_at": 10_000,
        "job": {"x": [1]},
    }
    new(prefix="test-").check("create_post", user_id="u1", **options)
    (received,) = server.received
    assert received.path == "/2015-03-31/functions/test-posts-guard/invocations"
    expected = {"userId": "u1", "activity": "create_post", "op": "check", "count": 2, "tier": "premium", "roles": ["a", "b"]}
    assert received.event == {**expected, "requestId": "r1", "readyAt": 10_000, "job": {"x": [1]}}


def test_each_call_has_its_own_request_id(server: Server, new: Callable[..., Client]) -> None:
    client = new()
    client.check("create_post", user_id="u1")
    client.check("create_post", user_id="u1")
    first, second = (received.event["requestId"] for received in server.received)
    assert first != second


def test_a_repeated_check_keeps_its_request_id(server: Server, new: Callable[..., Client]) -> None:
    server.does(lambda_error(500, "ServiceException"), lambda_error(429, "TooManyRequestsException"), answer())
    assert new().check("create_post", user_id="u1").reason == "ok"
    ids = [received.event["requestId"] for received in server.received]
    assert len(ids) == 3
    assert len(set(ids)) == 1


def test_a_partial_check_has_no_id_and_is_sent_once(server: Server, new: Callable[..., Client]) -> None:
    server.does(lambda_error(500, "ServiceException"), answer())
    decision = new().check("create_post", user_id="u1", count=5, partial=True)
    (received,) = server.received
    assert received.event == {"userId": "u1", "activity": "create_post", "op": "check", "count": 5, "partial": True}
    assert decision.reason == "unavailable"
    assert decision.granted == 5


def test_a_partial_check_with_an_id_is_left_to_the_guard(server: Server, new: Callable[..., Client]) -> None:
    new().check("create_post", user_id="u1", partial=True, request_id="r1")
    assert server.received[0].event["requestId"] == "r1"


def test_status_and_reset(server: Server, new: Callable[..., Client]) -> None:
    client = new()
    assert client.status("pin", user_id="u1", count=3, tier="t").granted is None
    client.reset("pin", user_id="u1")
    status, reset = server.received
    assert status.event == {"userId": "u1", "activity": "pin", "op": "status", "count": 3, "tier": "t"}
    assert reset.event == {"userId": "u1", "activity": "pin", "op": "reset"}
    assert reset.path.endswith("/pins-guard/invocations")


def test_release_by_fields_and_by_decision(server: Server, new: Callable[..., Client]) -> None:
    client = new()
    client.release("pin", user_id="u1", at=5, request_id="r1")
    client.release("pin", user_id="u1", at=5, request_id="r1", count=2, tier="t")
    client.release(client.check(GuardActivity("photos-guard", "upload"), user_id="u2", count=3, request_id="r2"))
    one, two, _, all_ = (received.event for received in server.received)
    assert one == {"userId": "u1", "activity": "pin", "op": "release", "at": 5, "requestId": "r1"}
    assert two == {**one, "count": 2, "tier": "t"}
    expected = {"userId": "u2", "activity": "upload", "op": "release", "at": 1_700_000_000_000, "requestId": "r2", "count": 3}
    assert all_ == expected
    assert server.received[3].path.endswith("/photos-guard/invocations")


@pytest.mark.parametrize("verb", ["release", "renew"])
def test_a_receipt_has_no_other_fields(server: Server, new: Callable[..., Client], verb: str) -> None:
    for name in ("roles", "partial", "cuont"):
        with pytest.raises(TypeError, match=f"^{verb} has no argument {name}$"):
            getattr(new(), verb)("pin", user_id="u1", at=5, request_id="r1", **{name: None})
    assert server.received == []


def test_a_release_that_clears(server: Server, new: Callable[..., Client]) -> None:
    client = new()
    client.release("pin", user_id="u1", at=5, request_id="r1", clear=True)
    client.release(client.check("pin", user_id="u1", request_id="r2"), clear=True)
    client.release("pin", user_id="u1", at=5, request_id="r1", clear=False)
    first, _, second, third = (received.event for received in server.received)
    assert first == {"userId": "u1", "activity": "pin", "op": "release", "at": 5, "requestId": "r1", "clear": True}
    assert (second["op"], second["requestId"], second["clear"]) == ("release", "r2", True)
    assert "clear" not in third


@pytest.mark.parametrize(
    "step",
    [
        answer(reason="duplicate", at=None, requestId=None),
        refuse(reason="delayed", at=5, requestId="r1", readyAt=10),
        answer(reason="shadow", at=5, requestId="r1", granted=0),
    ],
    ids=range(3),
)
def test_what_can_not_be_given_back_is_not_released(server: Server, new: Callable[..., Client], step: Any) -> None:
    client = new()
    server.does(step)
    decision = client.check("create_post", user_id="u1")
    assert not decision.has_receipt
    with pytest.raises(ValidationError, match="has no receipt"):
        client.release(decision)
    with pytest.raises(TypeError):
        client.release("create_post", user_id="u1")
    with pytest.raises(TypeError):
        client.release(decision, count=1)
    assert len(server.received) == 1


def test_a_job_that_is_not_json_is_an_error_before_any_request(server: Server, new: Callable[..., Client]) -> None:
    for job in (object(), float("nan")):
        with pytest.raises(ValidationError, match="is not JSON"):
            new().check("update_member_role", user_id="u1", job=job)
    assert server.received == []


def test_a_check_by_url_is_signed(server: Server, new: Callable[..., Client]) -> None:
    client = new(urls={"posts-guard": f"{server.url}/posts?x=1"}, prefix="test-")
    assert client.check("create_post", user_id="u1").granted == 1
    client.check("pin", user_id="u1")
    by_url, by_invoke = server.received
    assert by_url.path == "/posts?x=1"
    assert by_url.headers["Content-Type"] == "application/json"
    assert "/eu-west-1/lambda/aws4_request" in by_url.headers["Authorization"]
    assert by_invoke.path == "/2015-03-31/functions/test-pins-guard/invocations"


def test_a_url_is_signed_for_its_own_region(server: Server, new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", server.url)  # the server gets the request instead of AWS
    new(urls={"posts-guard": "http://abc.lambda-url.us-west-2.on.aws/"}).check("create_post", user_id="u1")
    (received,) = server.received
    assert "/us-west-2/lambda/aws4_request" in received.headers["Authorization"]


def test_an_apps_own_client_is_used_and_not_changed(
    server: Server, new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Config(retries={"total_max_attempts": 4, "mode": "standard"}, read_timeout=1)
    own = boto3.client("lambda", region_name="sa-east-1", aws_access_key_id="OWN", aws_secret_access_key="s", config=config)
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    client = new(client=own, urls={"pins-guard": server.url})
    new(client=own)
    server.does(lambda_error(500, "ServiceException"))
    client.check("create_post", user_id="u1")
    client.check("pin", user_id="u1")
    assert len(server.received) == 6  # three attempts each, whatever the config says
    assert all("Credential=OWN/" in received.headers["Authorization"] for received in server.received)
    assert all("/sa-east-1/lambda/" in received.headers["Authorization"] for received in server.received)
    del server.received[:]
    with pytest.raises(own.exceptions.ServiceException):
        own.invoke(FunctionName="posts-guard", Payload=b'{"op": "x"}')
    assert len(server.received) == 4  # the app's own calls are repeated as before
    server.does(raw('"hello"'))
    assert own.invoke(FunctionName="other", Payload=b"{}")["Payload"].read() == b'"hello"'
    own.close()


def test_the_region_can_come_from_aws_region(server: Server, new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.setenv("AWS_REGION", "ap-south-1")
    new().check("create_post", user_id="u1")
    assert "/ap-south-1/lambda/" in server.received[0].headers["Authorization"]


def test_all_fields_of_an_answer(server: Server, new: Callable[..., Client]) -> None:
    limit = {"name": "minute", "limit": 10, "activityCount": 1, "remaining": 9, "waitTime": 5, "resetAt": 6, "crossed": 100}
    limit["locked"] = True
    fields = {
        "windowKey": 7,
        "message": "m",
        "display": "d",
        "readyAt": 8,
        "enqueued": 9,
        "crossed": 80,
        "locked": True,
        "limitedBy": "minute",
        "limits": [limit],
        "version": "v0.1.0",
    }
    server.does(answer(**fields, resetAt=10, new={"further": 1}))
    d: Decision = new().check("create_post", user_id="u1", request_id="r1", count=4)
    assert (d.allowed, d.reason, d.limit, d.remaining, d.reset_at, d.granted, d.outage) == (True, "ok", 10, 9, 10, 4, None)
    assert (d.window_key, d.message, d.display, d.ready_at, d.enqueued, d.limited_by) == (7, "m", "d", 8, 9, "minute")
    assert (d.crossed, d.locked, d.version) == (80, True, "v0.1.0")
    state = LimitState(name="minute", limit=10, activity_count=1, remaining=9, wait_time=5, reset_at=6, crossed=100, locked=True)
    assert d.limits == (state,)
    assert (d.at, d.request_id, d.op, d.activity, d.activity_count, d.wait_time) == (
        1_700_000_000_000,
        "r1",
        "check",
        "create_post",
        1,
        0,
    )
    assert d.answer["new"] == {"further": 1}
    assert "u1" not in repr(d)
    assert "r1" not in repr(d)


def test_a_connection_serves_many_calls(server: Server, new: Callable[..., Client]) -> None:
    ports = set()

    def step(handler: Any) -> None:
        ports.add(handler.client_address)
        answer()(handler)

    server.does(step)
    client = new(timeout=20, decision_timeout=2)
    for _ in range(5):
        client.check("create_post", user_id="u1")
    assert len(ports) == 1
    server.does(hang, step)  # a broken connection is not used again
    client.check("create_post", user_id="u1")
    assert len(ports) == 2


# A NAT gateway forgets a connection while Lambda freezes the process, and the monotonic clock can stand still meanwhile.
@pytest.mark.parametrize("clocks", [(301, 0), (0, 301), (301, -3600)])
def test_an_old_connection_is_not_used(
    server: Server, new: Callable[..., Client], clock: Clock, clocks: tuple[float, float]
) -> None:
    ports = []

    def step(handler: Any) -> None:
        ports.append(handler.client_address)
        answer()(handler)

    server.does(step)
    client = new()
    client.check("create_post", user_id="u1")
    for moved in ((299, 0), clocks):
        clock.now += moved[0]
        clock.frozen += moved[1]
        client.check("create_post", user_id="u1")
    assert ports[0] == ports[1] != ports[2]


def test_a_client_that_sends_nothing(new: Callable[..., Client]) -> None:
    own = boto3.client("lambda")
    with Stubber(own) as stubber:
        stubber.add_response("invoke", {"StatusCode": 200})
        with pytest.raises(ConfigurationError, match=r"^posts-guard could not be invoked: the client sent no request$"):
            new(client=own).check("create_post", user_id="u1")
    own.close()
