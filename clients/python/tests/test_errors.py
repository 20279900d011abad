from __future__ import annotations

import copy
import json
import pickle
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from guards import AnswerError, ConfigurationError, Decision, GuardsError, LimitedError, OutageError, ValidationError
from guards.fastapi import Refused
from tests.conftest import HASTY, Client
from tests.server import Server, answer, function_error, lambda_error, problem, raw, trickle

CREDENTIALS = "AWS refused the credentials ({}). Renew them, and check this machine's clock."
NO_CREDENTIALS = (
    "No AWS credentials were found. Give the app a role, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
)
DENIED = "The app may not invoke posts-guard in eu-west-1. Allow its role the action lambda:InvokeFunction on this function."
URL_DENIED = "The app may not call the URL of posts-guard. Allow its role lambda:InvokeFunctionUrl and lambda:InvokeFunction on this function."
NO_FUNCTION = "There is no function posts-guard in eu-west-1. Deploy it, or check the region and the name."
NO_GUARD = "posts-guard answered something that no guard answers: {}. Check the function's name."


def refused_by(
    server: Server, new: Callable[..., Client], step: Any, *, url: bool = False, user: str = "u-secret-1"
) -> GuardsError:
    """Return the error of a check. It must be sent once, warn nobody, and name no id."""
    server.does(step, answer())
    client = new(urls={"posts-guard": server.url}) if url else new()
    with pytest.raises(GuardsError) as error:
        client.check("create_post", user_id=user, request_id="r-secret-1")
    assert len(server.received) == 1
    assert client.warnings == []
    assert user not in str(error.value)
    assert "r-secret-1" not in str(error.value)
    assert error.value.guard == "posts-guard"
    return error.value


REFUSED = Decision(allowed=False, message="Too many.", wait_time=1500)
ERRORS: list[Exception] = [
    *(kind("m", "posts-guard") for kind in (GuardsError, ConfigurationError, ValidationError, AnswerError)),
    OutageError("m", "posts-guard", answered=True),
    LimitedError(REFUSED, "posts-guard"),
    LimitedError(Decision(allowed=False)),
    Refused(REFUSED),
]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_an_error_can_be_copied_and_stored(copied: Callable[[Exception], Exception]) -> None:
    """A ProcessPoolExecutor stores what its work raises, and breaks if it can't be read."""
    for error in ERRORS:
        made = copied(error)
        assert (type(made), str(made), vars(made)) == (type(error), str(error), vars(error))


@pytest.mark.parametrize("empty", [False, True])
def test_no_region(new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, empty: bool) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    if empty:
        monkeypatch.setenv("AWS_DEFAULT_REGION", "")
    client = new()  # so that an app can be imported without AWS settings
    with pytest.raises(ConfigurationError) as error:
        client.check("create_post", user_id="u1")
    assert str(error.value) == "No AWS region is set. Set AWS_DEFAULT_REGION, or pass a Lambda client that has one."


@pytest.mark.parametrize("missing", [["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"], ["AWS_SECRET_ACCESS_KEY"]])
@pytest.mark.parametrize("url", [False, True])
def test_no_credentials(
    server: Server, new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, missing: list[str], url: bool
) -> None:
    for name in missing:
        monkeypatch.delenv(name)
    client = new(urls={"posts-guard": server.url} if url else {})
    with pytest.raises(ConfigurationError) as error:
        client.check("create_post", user_id="u1")
    assert str(error.value) == NO_CREDENTIALS
    assert server.received == []


def test_an_endpoint_that_is_no_url(new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", "localhost:3001")
    client = new()
    with pytest.raises(ConfigurationError, match=r"^posts-guard could not be invoked: Invalid endpoint: localhost:3001$"):
        client.check("create_post", user_id="u1")


def test_a_profile_that_does_not_exist(new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    client = new()
    with pytest.raises(
        ConfigurationError, match=r"^posts-guard could not be invoked: The config profile \(nobody\) could not be found"
    ):
        client.check("create_post", user_id="u1")


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda_error(403, "AccessDeniedException", "User u-secret-1 is not authorized"), DENIED),
        (lambda_error(404, "ResourceNotFoundException", "Function not found"), NO_FUNCTION),
        *(
            (lambda_error(403, code), CREDENTIALS.format(code))
            for code in [
                "UnrecognizedClientException",
                "InvalidSignatureException",
                "ExpiredTokenException",
                "ExpiredToken",
                "IncompleteSignature",
                "IncompleteSignatureException",
                "MissingAuthenticationToken",
                "MissingAuthenticationTokenException:http://internal.amazon.com/",
            ]
        ),
        (
            lambda_error(400, "InvalidRequestContentException", "u-secret-1?"),
            "posts-guard could not be invoked: InvalidRequestContentException: ***?",
        ),
        (raw('{"__type": "x.y#OddException", "message": "No."}', 409), "posts-guard could not be invoked: OddException: No."),
        (raw("not here", 404), "posts-guard could not be invoked: HTTP 404: "),
    ],
)
def test_lambda_refuses(server: Server, new: Callable[..., Client], step: Any, message: str) -> None:
    error = refused_by(server, new, step)
    assert type(error) is ConfigurationError
    assert str(error) == message.replace(":http://internal.amazon.com/", "")


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (raw('{"Message":"Forbidden"}', 403, x_amzn_errortype="AccessDeniedException"), URL_DENIED),
        (raw('{"Message":null}', 403), URL_DENIED),
        (
            raw('{"message":"expired"}', 403, x_amzn_errortype="ExpiredTokenException"),
            CREDENTIALS.format("ExpiredTokenException"),
        ),
        (raw('{"Message":null}', 404), NO_FUNCTION),
        (raw('{"Message":"too large"}', 413), "posts-guard could not be invoked: HTTP 413: too large"),
    ],
)
def test_a_url_refuses(server: Server, new: Callable[..., Client], step: Any, message: str) -> None:
    error = refused_by(server, new, step, url=True)
    assert type(error) is ConfigurationError
    assert str(error) == message


PASSING = ["EC2Throttled", "EC2Unexpected", "ENILimitReached", "ResourceNotReady", "SubnetIPAddressLimitReached"]
ROLE, KEY = "Allow its role to ", " KMS key of its environment variables."


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        ("EC2AccessDenied", ROLE + "create network interfaces."),
        ("InvalidRuntime", "Deploy it with a runtime that Lambda offers."),
        ("InvalidSecurityGroupID", "Correct the security groups of its VPC settings."),
        ("InvalidSubnetID", "Correct the subnets of its VPC settings."),
        ("InvalidZipFile", "Deploy it again: Lambda can't unpack its code."),
        ("KMSAccessDenied", ROLE + "decrypt with the" + KEY),
        ("KMSDisabled", "Enable the" + KEY),
        ("KMSInvalidState", "Correct the state of the" + KEY),
        ("KMSNotFound", "Give it a KMS key that exists for its environment variables."),
    ],
)
@pytest.mark.parametrize("url", [False, True])
def test_a_function_that_can_not_start(server: Server, new: Callable[..., Client], code: str, advice: str, url: bool) -> None:
    error = refused_by(server, new, lambda_error(502, f"{code}Exception"), url=url)
    assert type(error) is ConfigurationError
    assert str(error) == f"Lambda can't start posts-guard: {code}Exception. {advice}"


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (raw("Internal Server Error", 502), "HTTP 502"),
        (lambda_error(502, "InternalServerErrorException"), "InternalServerErrorException"),
    ],
)
def test_a_url_of_a_guard_that_crashed(server: Server, new: Callable[..., Client], step: Any, code: str) -> None:
    error = refused_by(server, new, step, url=True)
    assert type(error) is AnswerError
    assert str(error) == f"posts-guard failed: {code}. Its log says why."


@pytest.mark.parametrize("url", [False, True])
def test_the_guards_own_validation_error(server: Server, new: Callable[..., Client], url: bool) -> None:
    text = "count is 11, want at most 10 without partial"
    step = problem(400, "ValidationError", text) if url else function_error("ValidationError", text)
    error = refused_by(server, new, step, url=url)
    assert type(error) is ValidationError
    assert str(error) == text


@pytest.mark.parametrize(
    ("body", "excerpt"),
    [
        ("hello", "hello"),
        ('"hello"', '\\"hello\\"'),
        ("", ""),
        ("[true]", "[true]"),
        ('{"allowed": "true"}', '{\\"allowed\\": \\"true\\"}'),
        ('{"Allowed": true}', '{\\"Allowed\\": true}'),
        ('{"allowed": true, "limits": [1]}', '{\\"allowed\\": true, \\"limits\\": [1]}'),
        ("x" * 200, "x" * 100),
        ("é\n\x00", "\\u00e9\\n\\u0000"),
        (b"\xff", "\\ufffd"),
        ('{"userId": "u-secret-1", "requestId": "r-secret-1"}', '{\\"userId\\": \\"***\\", \\"requestId\\": \\"***\\"}'),
        ("y" * 95 + "u-secret-1", "y" * 95 + "***"),
        ("[" * 100_000, "[" * 100),
    ],
    ids=range(13),
)
@pytest.mark.parametrize("url", [False, True])
def test_something_that_is_no_guards_answer(
    server: Server, new: Callable[..., Client], body: str | bytes, excerpt: str, url: bool
) -> None:
    error = refused_by(server, new, raw(body), url=url)
    assert type(error) is AnswerError
    assert str(error) == NO_GUARD.format(excerpt)


@pytest.mark.parametrize("user", ['a"b', "a\\b", "a<b", "a&b>c", "é", 'é"<', "\u2028", "a/b", "\U0001f600"])
def test_an_id_that_json_escapes_is_hidden_too(server: Server, new: Callable[..., Client], user: str) -> None:
    ascii_only, readable = json.dumps(user), json.dumps(user, ensure_ascii=False)
    go = readable.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026").replace("\u2028", "\\u2028")
    server.does(*(raw(f'{{"userId": {form}}}') for form in (ascii_only, readable, go)))
    for _ in range(3):
        with pytest.raises(AnswerError) as error:
            new().check("create_post", user_id=user)
        assert str(error.value) == NO_GUARD.format('{\\"userId\\": \\"***\\"}')


@pytest.mark.parametrize("url", [False, True])
def test_a_short_id_garbles_no_message(server: Server, new: Callable[..., Client], url: bool) -> None:
    text = 'count is "x", want a whole number of at least 1'
    server.does(problem(400, "ValidationError", text) if url else function_error("ValidationError", text))
    client = new(urls={"posts-guard": server.url} if url else {})
    with pytest.raises(ValidationError) as error:
        client.check("create_post", user_id="a")
    assert str(error.value) == text
    echo = "a man, A-a: {'a':'a'} 1a a1 (a)"
    server.does(problem(503, "Unavailable", echo) if url else function_error("Unavailable", echo))
    decision = client.check("create_post", user_id="a")
    assert str(decision.outage) == "posts-guard did not answer: *** man, A-***: {'***':'***'} 1a a1 (***)"


LONG = "the user u-secret-1 sent r-secret-1" + "!" * 1000
HIDDEN = ("the user *** sent ***" + "!" * 1000)[:500]


@pytest.mark.parametrize("url", [False, True])
def test_what_a_guard_reports_about_a_request_is_masked_and_cut(server: Server, new: Callable[..., Client], url: bool) -> None:
    wrong = problem(400, "ValidationError", "x" * 501) if url else function_error("ValidationError", "x" * 501)
    assert str(refused_by(server, new, wrong, url=url)) == "x" * 500
    server.received.clear()
    server.does(problem(503, "Unavailable", LONG) if url else function_error("Unavailable", LONG))
    client = new(urls={"posts-guard": server.url} if url else {})
    decision = client.check("create_post", user_id="u-secret-1", request_id="r-secret-1")
    assert str(decision.outage) == f"posts-guard did not answer: {HIDDEN}"


def test_every_other_text_is_masked_and_cut(server: Server, new: Callable[..., Client]) -> None:
    error = refused_by(server, new, function_error(LONG))
    assert str(error) == f"posts-guard failed: {HIDDEN}. Its log says why."
    server.received.clear()
    error = refused_by(server, new, lambda_error(409, LONG, LONG))
    assert str(error) == f"posts-guard could not be invoked: {HIDDEN}: {HIDDEN}"


def test_a_crash(server: Server, new: Callable[..., Client]) -> None:
    error = refused_by(server, new, function_error("Runtime.ExitError", "RequestId: x Error: u-secret-1"))
    assert type(error) is AnswerError
    assert str(error) == "posts-guard failed: Runtime.ExitError. Its log says why."
    server.received.clear()
    error = refused_by(server, new, raw("?", x_amz_function_error="Unhandled"))
    assert str(error) == "posts-guard failed: Unhandled. Its log says why."


@pytest.mark.parametrize(
    ("step", "url", "cause", "sent"),
    [
        (lambda_error(429, "TooManyRequestsException"), False, "TooManyRequestsException", 3),
        (lambda_error(500, "ServiceException"), False, "ServiceException", 3),
        (raw("bad gateway", 502), False, "HTTP 502", 3),
        (lambda_error(502, "EC2UnexpectedException"), False, "EC2UnexpectedException", 3),
        *((lambda_error(502, f"{code}Exception"), True, f"{code}Exception", 3) for code in PASSING),
        (
            raw('{"Reason":"ConcurrentInvocationLimitExceeded"}', 429, x_amzn_errortype="TooManyRequestsException"),
            True,
            "TooManyRequestsException",
            3,
        ),
        (raw("Internal Server Error", 500), True, "HTTP 500", 3),
        (raw("unavailable", 503), True, "HTTP 503", 3),
        (function_error("Unavailable", "the table did not answer"), False, "the table did not answer", 1),
        (problem(503, "Unavailable", "the table did not answer"), True, "the table did not answer", 1),
        (
            function_error("Sandbox.Timedout", "RequestId: x Error: Task timed out after 3.00 seconds"),
            False,
            "the function timed out",
            1,
        ),
        (
            raw('{"errorMessage": "2026 x Task timed out after 3.00 seconds"}', x_amz_function_error="Unhandled"),
            False,
            "the function timed out",
            1,
        ),
    ],
)
def test_outages(server: Server, new: Callable[..., Client], step: Any, url: bool, cause: str, sent: int) -> None:
    server.does(step)
    options = {"urls": {"posts-guard": server.url}} if url else {}
    client = new(**options)
    decision: Decision = client.check("create_post", user_id="u1", count=3)
    assert (decision.allowed, decision.reason, decision.granted, decision.at) == (True, "unavailable", 3, None)
    assert type(decision.outage) is OutageError
    assert str(decision.outage) == f"posts-guard did not answer: {cause}"
    assert client.warnings == [decision.outage]
    assert len(server.received) == sent
    for verb in ("status", "reset"):
        with pytest.raises(OutageError, match=f"^posts-guard did not answer: {cause}$"):
            getattr(new(**options), verb)("create_post", user_id="u1")


def test_a_guard_that_decides_from_its_memory_is_no_outage(server: Server, new: Callable[..., Client]) -> None:
    server.does(answer(reason="unavailable"))
    client = new()
    decision = client.check("create_post", user_id="u1")
    assert decision.reason == "unavailable"
    assert decision.outage is None
    assert client.warnings == []


def test_a_refusal_as_an_error(server: Server, new: Callable[..., Client]) -> None:
    server.does(function_error("RateLimitExceeded", "Too many."))
    decision = new(on_outage="allow").check("create_post", user_id="u1")
    assert (decision.allowed, decision.reason, decision.message, decision.granted) == (False, "limited", "Too many.", 0)
    assert (decision.user_id, decision.activity, decision.op, decision.limit) == ("u1", "create_post", "check", None)


def test_a_urls_429_with_a_guards_answer(server: Server, new: Callable[..., Client]) -> None:
    body = {"type": "t", "title": "x", "status": 429, "violated-policies": ["create_post"]}
    server.does(raw(json.dumps({**body, "allowed": False, "reason": "limited", "waitTime": 1500, "message": "Too many."}), 429))
    client = new(urls={"posts-guard": server.url})
    decision = client.check("create_post", user_id="u1")
    assert (decision.allowed, decision.reason, decision.wait_time, decision.message) == (False, "limited", 1500, "Too many.")
    assert len(server.received) == 1


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for 127.0.0.1 that nobody trusts."""
    make_certificate(tmp_path)
    return tmp_path


def make_certificate(folder: Path) -> Path:
    """Make a certificate and its key, and return the certificate's file."""
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=127.0.0.1",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
    ]
    subprocess.run([*command, "-keyout", folder / "key.pem", "-out", folder / "cert.pem"], check=True, capture_output=True)
    return folder / "cert.pem"


def secure(server: Server, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.scheme = "https"
    monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", server.url)


def test_a_wrong_certificate_is_a_mistake(
    server: Server, new: Callable[..., Client], certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secure(server, certificate, monkeypatch)
    with pytest.raises(ConfigurationError, match=r"^posts-guard could not be invoked: .*certificate verify failed"):
        new().check("create_post", user_id="u1")
    assert server.received == []


@pytest.mark.parametrize(
    ("first", "second"), [("AWS_CA_BUNDLE", "ca_bundle"), ("ca_bundle", "REQUESTS_CA_BUNDLE"), ("REQUESTS_CA_BUNDLE", None)]
)
def test_a_trusted_certificate(
    server: Server,
    new: Callable[..., Client],
    certificate: Path,
    monkeypatch: pytest.MonkeyPatch,
    first: str,
    second: str | None,
) -> None:
    """The first setting wins over the second one, which has another certificate."""
    (certificate / "other").mkdir()
    settings = {first: certificate / "cert.pem"}
    if second:
        settings[second] = make_certificate(certificate / "other")
    for name, cert in settings.items():
        if name == "ca_bundle":
            (certificate / "config").write_text(f"[default]\nca_bundle = {cert}\n")
            monkeypatch.setenv("AWS_CONFIG_FILE", str(certificate / "config"))
        else:
            monkeypatch.setenv(name, str(cert))
    secure(server, certificate, monkeypatch)
    assert new().check("create_post", user_id="u1").reason == "ok"


@pytest.mark.parametrize("package", ["certifi", "botocore"])
def test_on_a_machine_without_certificates_those_of_a_package_count(
    server: Server, new: Callable[..., Client], certificate: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    secure(server, certificate, monkeypatch)
    (certificate / "none").mkdir()
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "none.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", str(certificate / "none"))
    cert = str(certificate / "cert.pem")
    if package == "certifi":
        monkeypatch.setitem(sys.modules, "certifi", SimpleNamespace(where=lambda: cert))
    else:
        monkeypatch.setitem(sys.modules, "certifi", None)
        monkeypatch.setattr("botocore.httpsession.DEFAULT_CA_BUNDLE", cert)
    assert new().check("create_post", user_id="u1").reason == "ok"


def test_an_attempt_over_tls_ends_in_time(
    server: Server, new: Callable[..., Client], certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secure(server, certificate, monkeypatch)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate / "cert.pem"))
    server.does(trickle(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{", b" "), answer())
    assert new(**HASTY).check("create_post", user_id="u1").reason == "ok"
    first, *_, last = server.received
    assert first is not last
    assert first.until_closed() < 15  # an attempt lasts 1 s, the call 20 s, and the answer 60 s


def test_a_connection_that_breaks_before_it_is_secure_is_an_outage(
    new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.recv(4096)
            connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", f"https://127.0.0.1:{listener.getsockname()[1]}")
        assert new().check("create_post", user_id="u1").outage is not None
        listener.shutdown(socket.SHUT_RDWR)


def test_plain_http_at_an_https_address_is_a_mistake(
    server: Server, new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", server.url.replace("http:", "https:"))
    with pytest.raises(ConfigurationError, match=r"^posts-guard could not be invoked: "):
        new().check("create_post", user_id="u1")
