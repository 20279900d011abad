"""Credentials that botocore finds: each source is a server that speaks the protocol of the real one."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

import pytest
from botocore.tokens import SSOTokenProvider

from guards import ConfigurationError
from tests.conftest import Client
from tests.server import Server

SECRET = "the-secret-of-the-app"
ROLE = "arn:aws:iam::123456789012:role/app"
METADATA = "/latest/meta-data/iam/security-credentials/"


class Asked(NamedTuple):
    """A request to a source."""

    method: str
    path: str
    headers: dict[str, str]  # with small letters
    body: str


class Keys(NamedTuple):
    """What a source gives."""

    id: str
    expires: datetime

    @property
    def end(self) -> str:
        return self.expires.strftime("%Y-%m-%dT%H:%M:%SZ")


class Place(ThreadingHTTPServer):
    """A source of credentials. It answers only those who show what the real one asks for."""

    daemon_threads = True

    def __init__(self, source: Source) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.source = source
        self.secret = SECRET
        self.keys = Keys("", datetime.now(timezone.utc))
        self.asked = 0
        self.refuses = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Place

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0)).decode()
        asked = Asked(self.command, self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        self.server.asked += 1
        text = None if self.server.refuses else self.server.source.answer(asked, self.server.secret, self.server.keys)
        self.send_response(403 if text is None else 200)
        self.end_headers()
        self.wfile.write((text or "").encode())

    do_GET = do_POST = do_PUT = answer  # noqa: N815

    def log_message(self, *args: object) -> None:
        pass


class Source:
    """A kind of source."""

    file: str | None = None  # that has the secret, which can change

    def variables(self, folder: Path, url: str) -> dict[str, str]:
        """Set up the environment of an app."""
        raise NotImplementedError

    def answer(self, asked: Asked, secret: str, keys: Keys) -> str | None:
        """Return what is answered; None: the request is refused."""
        raise NotImplementedError


class Container(Source):
    def variables(self, folder: Path, url: str) -> dict[str, str]:  # noqa: ARG002
        return {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{url}/v1/credentials", "AWS_CONTAINER_AUTHORIZATION_TOKEN": SECRET}

    def answer(self, asked: Asked, secret: str, keys: Keys) -> str | None:
        if (asked.method, asked.path, asked.headers.get("authorization")) != ("GET", "/v1/credentials", secret):
            return None
        return json.dumps({"AccessKeyId": keys.id, "SecretAccessKey": "s", "Token": "session", "Expiration": keys.end})


class Pod(Container):
    file = "pod"  # EKS writes a new token every few hours

    def variables(self, folder: Path, url: str) -> dict[str, str]:
        uri = f"{url}/v1/credentials"
        return {"AWS_CONTAINER_CREDENTIALS_FULL_URI": uri, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(folder / "pod")}


class Machine(Source):
    """IMDS, version 2."""

    def variables(self, folder: Path, url: str) -> dict[str, str]:  # noqa: ARG002
        return {"AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": url}

    def answer(self, asked: Asked, secret: str, keys: Keys) -> str | None:
        if (asked.method, asked.path) == ("PUT", "/latest/api/token") and "x-aws-ec2-metadata-token-ttl-seconds" in asked.headers:
            return secret
        if asked.method != "GET" or asked.headers.get("x-aws-ec2-metadata-token") != secret:
            return None
        if asked.path == METADATA:
            return "app-role"
        if asked.path != f"{METADATA}app-role":
            return None
        given = {"AccessKeyId": keys.id, "SecretAccessKey": "s", "Token": "session", "Expiration": keys.end}
        return json.dumps({"Code": "Success", "Type": "AWS-HMAC", "LastUpdated": keys.end, **given})


class WebIdentity(Source):
    file = "identity"

    def variables(self, folder: Path, url: str) -> dict[str, str]:
        token = str(folder / "identity")
        return {"AWS_ROLE_ARN": ROLE, "AWS_WEB_IDENTITY_TOKEN_FILE": token, "AWS_ENDPOINT_URL_STS": url}

    def answer(self, asked: Asked, secret: str, keys: Keys) -> str | None:
        form = dict(parse_qsl(asked.body))
        if (form.get("WebIdentityToken"), form.get("RoleArn")) != (secret, ROLE):
            return None
        fields = {"AccessKeyId": keys.id, "SecretAccessKey": "s", "SessionToken": "session", "Expiration": keys.end}
        xml = "".join(f"<{name}>{value}</{name}>" for name, value in fields.items())
        action = form["Action"]
        return f"<{action}Response><{action}Result><Credentials>{xml}</Credentials></{action}Result></{action}Response>"


class SSO(Source):
    def variables(self, folder: Path, url: str) -> dict[str, str]:
        (folder / "config").write_text(
            "[profile app]\nsso_session = mine\nsso_account_id = 123456789012\nsso_role_name = app\n"
            "[sso-session mine]\nsso_region = us-east-1\nsso_start_url = https://mine.awsapps.com/start\n"
        )
        ends = (datetime.now(timezone.utc) + timedelta(hours=8)).strftime("%Y-%m-%dT%H:%M:%SZ")
        token = {"accessToken": SECRET, "expiresAt": ends}  # as aws sso login writes it
        (folder / f"{hashlib.sha1(b'mine').hexdigest()}.json").write_text(json.dumps(token))
        return {"AWS_PROFILE": "app", "AWS_CONFIG_FILE": str(folder / "config"), "AWS_ENDPOINT_URL_SSO": url}

    def answer(self, asked: Asked, secret: str, keys: Keys) -> str | None:
        url = urlsplit(asked.path)
        want = {"role_name": "app", "account_id": "123456789012"}
        shown = asked.headers.get("x-amz-sso_bearer_token")
        if (url.path, dict(parse_qsl(url.query)), shown) != ("/federation/credentials", want, secret):
            return None
        given = {"accessKeyId": keys.id, "secretAccessKey": "s", "sessionToken": "session"}
        return json.dumps({"roleCredentials": given | {"expiration": round(keys.expires.timestamp() * 1000)}})


@pytest.fixture(params=[Container, Pod, Machine, WebIdentity, SSO])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Place]:
    """A source, and the environment of an app that has its secret."""
    source: Source = request.param()
    monkeypatch.setattr(SSOTokenProvider, "_SSO_TOKEN_CACHE_DIR", str(tmp_path))  # of the home that botocore was loaded in
    if source.file:
        (tmp_path / source.file).write_text(SECRET)
    with Place(source) as place:
        threading.Thread(target=place.serve_forever, args=(0.01,), daemon=True).start()
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
        # botocore uses keys of IMDS that end soon for 17 to 25 minutes more, at random. Here it is 9, so it renews them at once.
        monkeypatch.setattr("botocore.utils.random.randint", lambda *_: -6 * 60)
        for name, value in source.variables(tmp_path, place.url).items():
            monkeypatch.setenv(name, value)
        yield place
        place.shutdown()


def in_minutes(minutes: float) -> datetime:
    return datetime.now(timezone.utc) + timedelta(minutes=minutes)


def test_they_sign_are_renewed_before_their_end_and_kept_until_then(
    server: Server, new: Callable[..., Client], place: Place, tmp_path: Path
) -> None:
    def key() -> str:
        assert client.check("create_post", user_id="u1").reason == "ok"
        headers = server.received[-1].headers
        assert headers["X-Amz-Security-Token"] == "session"
        return str(headers["Authorization"]).partition("Credential=")[2].partition("/")[0]

    client = new()
    place.keys = Keys("AKFIRST", in_minutes(4))
    assert key() == "AKFIRST"
    place.keys = Keys("AKSECOND", in_minutes(60))
    if place.source.file:
        place.secret = "another-secret"
        (tmp_path / place.source.file).write_text(place.secret)
    got = key()  # botocore can renew in the background, and let a call use the old ones meanwhile
    for _ in range(100):
        if got != "AKFIRST":
            break
        time.sleep(0.02)
        got = key()
    assert got == "AKSECOND"
    asked = place.asked
    place.keys = Keys("AKTHIRD", in_minutes(60))
    assert key() == "AKSECOND"
    assert place.asked == asked


def test_a_source_that_refuses_lets_no_user_pass_and_its_secret_is_not_shown(
    server: Server, new: Callable[..., Client], place: Place
) -> None:
    place.refuses = True
    with pytest.raises(ConfigurationError) as error:
        new().check("create_post", user_id="u1")
    assert SECRET not in str(error.value)
    assert place.asked > 0
    assert server.received == []
