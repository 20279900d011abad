"""The settings that boto3 reads: each row of the README's table, compared with botocore where it decides."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import boto3
import botocore.session
import pytest
from botocore.awsrequest import AWSResponse

from guards import ConfigurationError, Credentials, Guards
from guards._call import Call, Plan
from guards._request import new_request
from guards._sigv4 import Address
from tests.conftest import PATIENT, Client
from tests.server import Handler, Server, answer, lambda_error

KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


@pytest.fixture
def profile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Writes the config file."""

    def write(text: str) -> None:
        (tmp_path / "config").write_text(text)
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))

    return write


def lean(client: Client) -> Any:
    return client.guards._way


def sent(client: Client) -> tuple[str, str]:
    """Return the URL and the region of a check, which is not sent."""
    request = new_request(client.guards._settings, "check", "create_post", user_id="u1")
    signed = lean(client).sign(request, Call(Plan(20, 1, 3)))
    return signed.address.url, signed.headers["authorization"].split("/")[2]


def of_boto3() -> tuple[str, str]:
    """Return the same of boto3's own invoke."""
    kept: list[Any] = []

    def keep(request: Any, **_: Any) -> Any:
        kept.append(request)
        return AWSResponse(request.url, 200, {}, __import__("io").BytesIO())

    client = boto3.Session().client("lambda")
    client.meta.events.register("before-send.lambda.Invoke", keep)
    client.invoke(FunctionName="posts-guard", Payload=b"{}")
    client.close()
    text = kept[0].headers["Authorization"]
    return kept[0].url, (text.decode() if isinstance(text, bytes) else text).split("/")[2]


def is_loaded(program: str, **environ: str) -> str:
    """Return what a program prints in a new process."""
    usual = {name: value for name, value in os.environ.items() if name not in environ} | environ
    done = subprocess.run([sys.executable, "-c", program], env=usual, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


CHECK = """
import sys
import guards
client = guards.Guards()
print(client.check(guards.GuardActivity("posts-guard", "create_post"), user_id="u1").reason)
print(*sorted({"asyncio", "botocore", "boto3", "urllib3", "http.client", "ssl", "logging", "inspect"} & set(sys.modules)))
"""


@pytest.mark.usefixtures("server")
def test_with_the_environment_alone_nothing_of_the_sdk_is_loaded() -> None:
    reason, loaded = is_loaded(CHECK).splitlines()
    assert reason == "ok"
    assert not {"asyncio", "botocore", "boto3", "urllib3", "http.client", "ssl", "logging"} & set(loaded.split())


WITHOUT = (
    "import sys\nsys.modules['botocore'] = None\n"
    + """
import guards
client = guards.Guards()
try:
    print(client.check(guards.GuardActivity("posts-guard", "create_post"), user_id="u1").reason)
except guards.ConfigurationError as error:
    print(error.guard, error)
"""
)
INSTALL = "which needs botocore: install it: pip install 'cric-talk-guards[botocore]'."


@pytest.mark.usefixtures("server")
def test_without_botocore_the_error_tells_what_to_install(profile: Callable[[str], None]) -> None:
    assert is_loaded(WITHOUT) == "ok"
    assert is_loaded(WITHOUT, AWS_PROFILE="x") == f"posts-guard AWS_PROFILE is set, {INSTALL}"
    text = is_loaded(WITHOUT, AWS_ACCESS_KEY_ID="")
    assert (
        text
        == f"posts-guard The environment has no AWS credentials. The SDK finds those of other sources, such as a role, {INSTALL}"
    )
    text = is_loaded(WITHOUT, AWS_ENDPOINT_URL_LAMBDA="", AWS_DEFAULT_REGION="us-iso-east-1")
    assert text == f"posts-guard The region us-iso-east-1 is of a partition of its own, {INSTALL}"
    profile("[default]\nendpoint_url = http://x\n")
    assert is_loaded(WITHOUT) == f"posts-guard {os.environ['AWS_CONFIG_FILE']} has endpoint_url, {INSTALL}"


# Region


@pytest.mark.parametrize(
    ("default", "other", "config", "want"),
    [
        ("eu-west-1", "", "", "eu-west-1"),
        ("eu-west-1", "us-east-1", "", "eu-west-1"),
        ("", "us-east-1", "", "us-east-1"),
        ("eu-west-1", "us-east-1", "ap-south-1", "eu-west-1"),
        (None, "us-east-1", "ap-south-1", "ap-south-1"),  # boto3 does not read AWS_REGION
        (None, None, "ap-south-1", "ap-south-1"),
    ],
)
def test_the_region(
    new: Callable[..., Client],
    monkeypatch: pytest.MonkeyPatch,
    profile: Callable[[str], None],
    default: str | None,
    other: str | None,
    config: str,
    want: str,
) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    for name, value in (("AWS_DEFAULT_REGION", default), ("AWS_REGION", other)):
        if value is not None:
            monkeypatch.setenv(name, value)
    profile(f"[default]\nregion = {config}\n" if config else "")
    assert sent(new()) == (f"https://lambda.{want}.amazonaws.com/2015-03-31/functions/posts-guard/invocations", want)
    assert sent(new(region="sa-east-1"))[1] == "sa-east-1"


# Endpoints and partitions

ENDPOINTS: list[dict[str, str]] = [
    {},
    {"AWS_ENDPOINT_URL": "http://a.example"},
    {"AWS_ENDPOINT_URL": "http://a.example", "AWS_ENDPOINT_URL_LAMBDA": "http://b.example:81/base/"},
    {"AWS_ENDPOINT_URL_LAMBDA": "http://b.example", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "TRUE"},
    {"AWS_ENDPOINT_URL_LAMBDA": "http://b.example", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "false"},
    {"AWS_ENDPOINT_URL_LAMBDA": "", "AWS_ENDPOINT_URL": "http://a.example"},
    {"AWS_ENDPOINT_URL": "http://a.example", "AWS_USE_FIPS_ENDPOINT": "true", "AWS_USE_DUALSTACK_ENDPOINT": "true"},
]
REGIONS = ["eu-west-1", "us-gov-west-1", "cn-north-1", "us-iso-east-1", "eusc-de-east-1", "mx-central-1"]
SWITCHES = [
    dict(pair)
    for pair in itertools.product(
        [("AWS_USE_FIPS_ENDPOINT", v) for v in ("false", "True")], [("AWS_USE_DUALSTACK_ENDPOINT", v) for v in ("", "true")]
    )
]


@pytest.mark.parametrize(
    "variables", ENDPOINTS + [{"AWS_DEFAULT_REGION": region, **switch} for region in REGIONS for switch in SWITCHES]
)
def test_the_endpoint_is_the_one_of_boto3(
    new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert sent(new()) == of_boto3()


PROFILES = [
    "[default]\nendpoint_url = http://p.example\n",
    "[default]\nservices = local\n[services local]\nlambda =\n  endpoint_url = http://s.example\n",
    "[default]\nendpoint_url = http://p.example\nignore_configured_endpoint_urls = true\n",
    "[default]\nuse_fips_endpoint = true\nuse_dualstack_endpoint = true\n",
    "[profile other]\nendpoint_url = http://p.example\n",
    "# endpoint_url = http://p.example\n",
]


@pytest.mark.parametrize("text", PROFILES)
@pytest.mark.parametrize("variable", [False, True])
def test_the_endpoint_of_a_profile(
    new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, profile: Callable[[str], None], text: str, variable: bool
) -> None:
    profile(text)
    if variable:
        monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", "http://v.example")
    assert sent(new()) == of_boto3()


def test_the_option_endpoint_wins(new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", "http://v.example")
    monkeypatch.setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")
    assert sent(new(endpoint="http://o.example:8080"))[0].startswith("http://o.example:8080/2015-03-31/")


# Credentials


def key(new: Callable[..., Client], **options: Any) -> str:
    """Return the access key of a check."""
    client = new(**options)
    request = new_request(client.guards._settings, "check", "create_post", user_id="u1")
    headers = lean(client).sign(request, Call(Plan(20, 1, 3))).headers
    used: str = headers["authorization"].split("Credential=")[1].split("/")[0]
    return f"{used}{headers.get('x-amz-security-token', '')}"


def key_of_boto3() -> str:
    found = boto3.Session().get_credentials().get_frozen_credentials()
    return str(found.access_key) + (found.token or "")


STORE = "import json; print(json.dumps(dict(Version=1, AccessKeyId='PROCESS', SecretAccessKey='s', SessionToken='t')))"


@pytest.mark.parametrize("variables", [{}, {"AWS_PROFILE": "app"}, {"AWS_DEFAULT_PROFILE": "app"}, {"AWS_PROFILE": "process"}])
@pytest.mark.parametrize("keys", [False, True])
@pytest.mark.parametrize("token", ["", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN"])
def test_keys_beside_a_profile_are_taken_in_the_order_of_boto3(
    new: Callable[..., Client],
    monkeypatch: pytest.MonkeyPatch,
    profile: Callable[[str], None],
    variables: dict[str, str],
    keys: bool,
    token: str,
) -> None:
    profile(
        "[default]\naws_access_key_id = DEFAULT\naws_secret_access_key = s\n"
        "[profile app]\naws_access_key_id = APP\naws_secret_access_key = s\n"
        f'[profile process]\ncredential_process = {sys.executable} -c "{STORE}"\n'
    )
    for name in KEYS if not keys else ():
        monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    if token:
        monkeypatch.setenv(token, "TOKEN")
    assert key(new) == key_of_boto3()
    assert (key(new) == "AKIDEXAMPLE" + ("TOKEN" if token else "")) is keys


def test_credentials_of_the_environment_that_end_are_left_to_botocore(
    new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CREDENTIAL_EXPIRATION", "2099-01-01T00:00:00Z")
    client = new()
    assert sent(client)
    assert lean(client)._source._loaded.method == "env"


def test_the_default_session_of_boto3_counts(
    new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, profile: Callable[[str], None]
) -> None:
    profile("[profile app]\nregion = ca-central-1\n")
    session = boto3.Session(aws_access_key_id="SESSION", aws_secret_access_key="s", aws_session_token="t", profile_name="app")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", session)
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    assert key(new) == "SESSIONt"
    assert sent(new())[1] == "ca-central-1"
    assert key(new, credentials=Credentials("OPTION", "s")) == "OPTION"


@pytest.mark.parametrize(
    "credentials",
    [
        Credentials("OPTION", "s", "t"),
        lambda: Credentials("OPTION", "s", "t"),
        botocore.session.Session().set_credentials("OPTION", "s", "t") or None,
    ],
)
def test_the_option_credentials(new: Callable[..., Client], credentials: Any) -> None:
    if credentials is None:
        session = botocore.session.Session()
        session.set_credentials("OPTION", "s", "t")
        credentials = session.get_credentials()
    assert key(new, credentials=credentials) == "OPTIONt"


def test_a_function_of_the_app_is_asked_for_each_request(server: Server, new: Callable[..., Client]) -> None:
    given = iter(("A", "B", "C"))
    client = new(credentials=lambda: Credentials(next(given), "s"))
    for want in "ABC":
        client.check("create_post", user_id="u1")
        assert f"Credential={want}/" in server.received[-1].headers["Authorization"]
    assert client.check("create_post", user_id="u1").outage is not None  # it had some


# Proxies and certificates are in test_addresses and test_errors.


@pytest.fixture
def proxy() -> Iterator[Server]:
    with Server() as s:
        threading.Thread(target=s.serve_forever, args=(0.01,), daemon=True).start()
        yield s
        s.shutdown()


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy"])
@pytest.mark.parametrize("no_proxy", ["", "NO_PROXY", "no_proxy"])
def test_a_proxy(
    server: Server, proxy: Server, new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, name: str, no_proxy: str
) -> None:
    monkeypatch.setenv(name, proxy.url.replace("//", "//user:p%40ss@"))
    if no_proxy:
        monkeypatch.setenv(no_proxy, "example.com,127.0.0.1")
    assert new().check("create_post", user_id="u1").reason == "ok"
    assert (len(proxy.received), len(server.received)) == ((0, 1) if no_proxy else (1, 0))
    if not no_proxy:
        assert proxy.received[0].path.startswith(server.url + "/2015-03-31/")
        assert proxy.received[0].headers["Proxy-Authorization"] == "Basic dXNlcjpwQHNz"


def test_a_proxy_of_another_scheme_is_not_used(
    server: Server, proxy: Server, new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy.url)
    new().check("create_post", user_id="u1")
    assert (len(proxy.received), len(server.received)) == (0, 1)


# Traces


@pytest.mark.parametrize("url", [False, True])
def test_the_trace_of_a_function_is_sent(
    server: Server, new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, url: bool
) -> None:
    client = new(urls={"posts-guard": server.url} if url else {})
    monkeypatch.setenv("_X_AMZN_TRACE_ID", "Root=1-2;Parent=3;Sampled=1;Lineage=a:0\n")
    client.check("create_post", user_id="u1")
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "app")
    client.check("create_post", user_id="u1")
    monkeypatch.delenv("_X_AMZN_TRACE_ID")
    client.check("create_post", user_id="u1")
    traces = [received.headers["X-Amzn-Trace-Id"] for received in server.received]
    assert traces == [None, "Root=1-2;Parent=3;Sampled=1;Lineage=a:0%0A", None]


@pytest.mark.parametrize(("app", "shown"), [("", ""), ("my-app", " app/my-app"), ("a b\n", " app/a-b-")])
def test_the_id_of_the_app_is_sent(
    server: Server, new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, app: str, shown: str
) -> None:
    monkeypatch.setenv("AWS_SDK_UA_APP_ID", app)
    new().check("create_post", user_id="u1")
    assert server.received[0].headers["User-Agent"] == "cric-talk-guards-python" + shown


# What has no effect


def test_a_profiles_id_of_the_app_is_not_sent(server: Server, new: Callable[..., Client], profile: Callable[[str], None]) -> None:
    profile("[default]\nsdk_ua_app_id = profile\n")
    new().check("create_post", user_id="u1")
    assert server.received[0].headers["User-Agent"] == "cric-talk-guards-python"


@pytest.mark.parametrize("given", [False, True])
def test_the_attempts_of_the_sdk_do_not_count(
    server: Server, new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, profile: Callable[[str], None], given: bool
) -> None:
    profile("[default]\nmax_attempts = 7\nretry_mode = adaptive\n")
    for name, value in {"AWS_MAX_ATTEMPTS": "7", "AWS_RETRY_MODE": "adaptive", "AWS_DEFAULTS_MODE": "mobile"}.items():
        monkeypatch.setenv(name, value)
    own = {"client": boto3.client("lambda")} if given else {}
    server.does(lambda_error(503, "ServiceUnavailableException"))
    assert new(**own).check("create_post", user_id="u1").outage is not None
    assert len(server.received) == 3


# The clock


def skewed(seconds: float, step: Callable[[Handler], None]) -> Callable[[Handler], None]:
    """A step of a server whose clock is so many seconds ahead."""

    def late(handler: Handler) -> None:
        handler.date_time_string = lambda timestamp=None: formatdate(time.time() + seconds, usegmt=True)  # type: ignore[method-assign]  # noqa: ARG005
        step(handler)

    return late


@pytest.mark.parametrize("url", [False, True])
@pytest.mark.parametrize("ahead", [-86_400, 600])
def test_a_wrong_clock_is_corrected_after_a_403(server: Server, new: Callable[..., Client], url: bool, ahead: int) -> None:
    client = new(urls={"posts-guard": server.url} if url else {})
    expired = lambda_error(403, "InvalidSignatureException", "Signature expired")
    server.does(skewed(ahead, expired), skewed(ahead, answer()))
    assert client.check("create_post", user_id="u1").reason == "ok"
    first, second = server.received
    assert first.event == second.event
    times = [time.mktime(time.strptime(r.headers["X-Amz-Date"], "%Y%m%dT%H%M%SZ")) for r in server.received]
    assert abs(times[1] - times[0] - ahead) < 30
    client.check("create_post", user_id="u1")
    assert len(server.received) == 3  # the offset is kept


def test_a_clock_that_is_put_right_again_is_followed(server: Server, new: Callable[..., Client]) -> None:
    expired = lambda_error(403, "InvalidSignatureException", "Signature expired")
    server.does(skewed(600, expired), skewed(600, answer()), skewed(0, expired), skewed(0, answer()))
    client = new()
    for _ in range(2):
        assert client.check("create_post", user_id="u1").reason == "ok"
    times = [time.mktime(time.strptime(r.headers["X-Amz-Date"], "%Y%m%dT%H%M%SZ")) for r in server.received]
    assert [round((then - times[0]) / 60) for then in times] == [0, 10, 10, 0]


@pytest.mark.parametrize("ahead", [0, 240, -240])
def test_a_403_with_a_right_clock_is_not_repeated(server: Server, new: Callable[..., Client], ahead: int) -> None:
    server.does(skewed(ahead, lambda_error(403, "InvalidSignatureException")))
    with pytest.raises(ConfigurationError, match="AWS refused the credentials"):
        new().check("create_post", user_id="u1")
    assert len(server.received) == 1


def test_a_wrong_clock_is_corrected_once(server: Server, new: Callable[..., Client]) -> None:
    server.does(skewed(600, lambda_error(403, "InvalidSignatureException")))
    with pytest.raises(ConfigurationError):
        new().check("create_post", user_id="u1")
    assert len(server.received) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"connections": 0}, "The option connections is 0, want a whole number of at least 1."),
        ({"region": "EU WEST"}, "The option region is 'EU WEST', want a region of AWS, such as eu-west-1."),
        ({"endpoint": "localhost:3001"}, "The option endpoint is 'localhost:3001', want a URL that begins with https://."),
        ({"credentials": ("a", "b")}, "The option credentials is of the type tuple, want guards.Credentials, a function"),
        ({"credentials": Credentials("a", "")}, "The option credentials is of the type Credentials, want"),
        ({"client": boto3, "region": "x"}, "The option region does not go with the option client, which has its own."),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        Guards(**{**PATIENT, **options})
    assert str(error.value).startswith(message)


def test_an_address_in_all_its_forms() -> None:
    address = Address("https://user@[::1]:8443/a b?x=1")
    assert (address.origin, address.authority, address.target) == ("https://[::1]:8443", "[::1]:8443", "/a%20b?x=1")
