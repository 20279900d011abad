"""User ids for strangers.

internal/endtoend/scenarios compares them with the other clients', on the
vectors of schema/keys.json and on random input.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from typing import Any

import fastapi
import flask
import httpx
import pytest
from werkzeug.middleware.proxy_fix import ProxyFix

from guards import ValidationError, account_key, ip_key
from guards import fastapi as guards_fastapi
from guards import flask as guards_flask
from guards.testing import FakeGuards

KEY = "correct horse battery staple"
SPACES = " " * 100_000
WANT_KEY = r"^key is .*, want at least 16 bytes, or a str with as many in UTF-8$"
WRONG = (
    "192.0.2|192.0.2.01|192.0.2.256|192.0.2.1:65536|192.0.2.1%eth0|[192.0.2.1]| 192.0.2.1|192.0.2.1, 192.0.2.2"
    "|2001:db8:1:2:3:4:5:6:443|1:2:3:4::5:6:7:8|::1%|::1%\u00e4|[::1|[::1]:|::1/64|::\u0661|\u0661.2.3.4|1.2.3.4:\u0661"
    "|::01.2.3.4|localhost"
)


def keyed(text: str, key: bytes = KEY.encode()) -> str:
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()[:32]


@pytest.mark.parametrize(
    ("address", "want"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("192.0.2.1:443", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("[::FFFF:c000:201]:443", "192.0.2.1"),
        ("2001:DB8::1", "2001:db8::/64"),
        ("[2001:db8:1:2:3:4:5:6%eth0]:443", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::/64"),
        ("64:ff9b::192.0.2.1", "64:ff9b::/64"),
    ],
)
def test_an_address_is_ipv4_or_the_network_of_ipv6(address: str, want: str) -> None:
    assert ip_key(address) == want
    assert ip_key(address, prefix=64, key=None) == want
    assert ip_key(address, key=KEY) == ip_key(address, key=KEY.encode()) == keyed(want)


def test_a_prefix_of_any_length() -> None:
    ones = ":".join(["ffff"] * 8)
    for prefix, want in [
        (1, "8000::/1"),
        (17, "ffff:8000::/17"),
        (48, "ffff:ffff:ffff::/48"),
        (127, ones[:-1] + "e/127"),
        (128, ones + "/128"),
    ]:
        assert ip_key(ones, prefix=prefix) == want
    assert ip_key("192.0.2.1", prefix=8) == "192.0.2.1"
    wrong: list[Any] = [0, 129, -1, 64.0, "64", None, True]
    for prefix in wrong:
        with pytest.raises(ValidationError, match=r"^prefix is .*, want a whole number from 1 to 128$"):
            ip_key("192.0.2.1", prefix=prefix)


@pytest.mark.parametrize(
    "address",
    [None, 16909060, ["192.0.2.1"], b"192.0.2.1", "", *WRONG.split("|"), "192.0.2.1\n", "192.0.2.1\0", "9" * 100_000],
)
def test_what_is_no_address_is_a_validation_error_that_does_not_show_it(address: Any) -> None:
    with pytest.raises(ValidationError, match=r"^the address is no IPv4 or IPv6 address, with or without a port$"):
        ip_key(address)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("ann@example.com", "ann@example.com"),
        (" \t\r\nAnn@Example.COM\n ", "ann@example.com"),
        ("İ \u212a ÄẞΣ", "İ \u212a ÄẞΣ"),
        ("\u00a0Ann\u2028", "\u00a0ann\u2028"),
        ("\0\v\x1c", "\0\v\x1c"),
        ("😀", "😀"),
        (f"{SPACES}A{SPACES}B", f"a{SPACES}b"),
    ],
)
def test_a_name_is_trimmed_and_folded(text: str, want: str) -> None:
    assert account_key(text, key=KEY) == account_key(text, key=KEY.encode(), fold=True) == keyed(want)
    assert account_key(text, key=KEY, fold=False) == keyed(text)
    assert account_key(text, key=None) == hashlib.sha256(want.encode()).hexdigest()[:32]


@pytest.mark.parametrize("fold", [True, False])
def test_what_is_no_name_is_a_validation_error_that_does_not_show_it(fold: bool) -> None:
    for text in ["", " \t\r\n", SPACES]:
        with pytest.raises(ValidationError, match=r"^the account's name is empty$"):
            account_key(text, key=KEY, fold=fold)
    wrong: list[Any] = [None, 7, b"ann", "ann\ud800", "\udc00ann", "\udc00\ud800"]
    for text in wrong:
        with pytest.raises(ValidationError, match=r"^the account's name is no str of Unicode$"):
            account_key(text, key=KEY, fold=fold)


def test_a_key_has_at_least_16_bytes() -> None:
    wrong: list[Any] = ["", "fifteen bytes..", "ä" * 7, KEY + "\ud800", b"", b"x" * 15, 7, True]
    for key in wrong:
        with pytest.raises(ValidationError, match=WANT_KEY):
            account_key("ann", key=key)
        with pytest.raises(ValidationError, match=WANT_KEY):
            ip_key("::1", key=key)
    assert account_key("ann", key="ä" * 8) == keyed("ann", ("ä" * 8).encode())
    assert account_key("ann", key=b"\0" * 16) == keyed("ann", b"\0" * 16)
    other: Any = "no"
    with pytest.raises(ValidationError, match=r"^fold is of the type str, want True or False$"):
        account_key("ann", key=KEY, fold=other)


def test_in_flask_proxy_fix_gives_the_address_that_the_proxy_has_seen() -> None:
    limits = FakeGuards()
    app = flask.Flask(__name__)

    @app.post("/")
    @guards_flask.limit(
        limits.client({"sign_up": ("users-guard", 60)}), "sign_up", user_id=lambda: ip_key(flask.request.remote_addr)
    )
    def sign_up() -> str:
        return ""

    headers = {"X-Forwarded-For": "198.51.100.7, 2001:db8:1:2::3"}
    assert app.test_client().post("/", headers=headers).status_code == 200
    app.wsgi_app = ProxyFix(app.wsgi_app, x_for=1)  # type: ignore[method-assign]
    assert app.test_client().post("/", headers=headers).status_code == 200
    assert [call.user_id for call in limits.calls] == ["127.0.0.1", "2001:db8:1:2::/64"]


def test_in_fastapi_the_address_is_the_scopes() -> None:
    limits = FakeGuards()
    app = fastapi.FastAPI()
    guards_fastapi.install(app)
    guards = limits.async_client({"sign_up": ("users-guard", 60)})

    def address(request: fastapi.Request) -> str:
        return ip_key(request.client.host if request.client else None)

    @app.post("/", dependencies=[fastapi.Depends(guards_fastapi.limit(guards, "sign_up", user_id=address))])
    async def sign_up() -> None: ...

    async def post(client: tuple[str, int]) -> int:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app, client=client), base_url="http://app") as http:
            return (await http.post("/")).status_code

    for client in [("::ffff:192.0.2.1", 443), ("2001:db8:1:2::3", 443)]:
        assert asyncio.run(post(client)) == 200
    assert [call.user_id for call in limits.calls] == ["192.0.2.1", "2001:db8:1:2::/64"]
