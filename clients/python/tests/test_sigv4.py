"""The signature, compared with botocore's own signer."""

from __future__ import annotations

import calendar
import datetime
import random
import string
from unittest import mock

import botocore.auth
import botocore.credentials
from botocore.awsrequest import AWSRequest

from guards._sigv4 import SERVICE, Address, Credentials, Signer

REGIONS = ["eu-west-1", "us-gov-east-1", "cn-north-1", "local"]
TEXT = string.ascii_letters + string.digits + " -._~/%:+=&;,é€\u2028\U0001f600"
PATH = string.ascii_letters + string.digits + "-._~%:+=;,@!$'()*é€"


def text(choice: random.Random, letters: str, least: int, most: int) -> str:
    return "".join(choice.choice(letters) for _ in range(choice.randint(least, most)))


def a_url(choice: random.Random) -> str:
    host = choice.choice(["lambda.eu-west-1.amazonaws.com", "ABC.lambda-url.us-east-1.on.aws", "127.0.0.1", "[::1]", "localhost"])
    port = choice.choice(["", "", ":80", ":443", ":3001"])
    segments = [choice.choice([text(choice, PATH, 0, 8), ".", "..", ""]) for _ in range(choice.randint(0, 5))]
    path = "/" + "/".join(segments) if segments else ""
    query = "&".join(
        text(choice, PATH, 0, 6) + choice.choice(["", "=", "=" + text(choice, PATH, 1, 6)]) for _ in range(choice.randint(0, 3))
    )
    return f"{choice.choice(['http', 'https'])}://{host}{port}{path}{'?' + query if query else ''}"


def test_ten_thousand_requests_are_signed_as_botocore_signs_them() -> None:
    choice, signer = random.Random(52), Signer()
    days = [choice.randint(1_600_000_000, 2_000_000_000) for _ in range(20)]
    secrets = [text(choice, string.ascii_letters, 20, 40) for _ in range(3)]
    for _ in range(10_000):
        url, region, now = a_url(choice), choice.choice(REGIONS), choice.choice(days) + choice.randint(0, 3)
        key = Credentials("AKID", choice.choice(secrets), choice.choice([None, "", text(choice, string.ascii_letters, 1, 9)]))
        headers = {
            f"x-{text(choice, string.ascii_lowercase, 1, 5)}": text(choice, TEXT, 1, 12).strip() or "x"
            for _ in range(choice.randint(0, 3))
        }
        body = text(choice, TEXT, 0, 30).encode()
        want = AWSRequest("POST", url, headers=dict(headers), data=body)
        moment = datetime.datetime.fromtimestamp(now, datetime.timezone.utc)
        with mock.patch("botocore.auth.get_current_datetime", return_value=moment):
            botocore.auth.SigV4Auth(botocore.credentials.Credentials(*key), SERVICE, region).add_auth(want)
        got = signer.sign(Address(url), headers, body, key, region, now)
        assert got["authorization"] == want.headers["Authorization"], (url, headers)
        assert got["x-amz-date"] == want.headers["X-Amz-Date"]
        assert got.get("x-amz-security-token") == want.headers.get("X-Amz-Security-Token")


def test_the_key_is_derived_once_a_day() -> None:
    signer, key = Signer(), Credentials("a", "s")
    noon = calendar.timegm((2026, 1, 1, 12, 0, 0))
    address = Address("https://lambda.eu-west-1.amazonaws.com/x")

    def derived(region: str, now: float, credentials: Credentials = key) -> int:
        with mock.patch("guards._sigv4.hmac.digest", return_value=b"k") as digest:
            signer.sign(address, {}, b"", credentials, region, now)
        return digest.call_count - 1  # one is the signature itself

    assert derived("eu-west-1", noon) == 4
    assert derived("eu-west-1", noon + 43_199) == 0
    assert derived("eu-west-1", noon + 43_200) == 4
    assert derived("us-east-1", noon + 43_200) == 4
    assert derived("us-east-1", noon + 43_200, Credentials("a", "other")) == 4


def test_credentials_are_not_printed() -> None:
    assert "secret" not in repr(Credentials("secret", "secret", "secret"))
