"""AWS's signature of a request (Signature Version 4)."""

from __future__ import annotations

import hmac
import time
from collections.abc import Mapping
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import quote, urlsplit

SERVICE = "lambda"

_AS_IT_IS = "%/~:?#[]@!$&'()*+,;="  # of a URL that is sent


class Credentials(NamedTuple):
    """AWS credentials, for the option credentials of a client."""

    access_key: str
    secret_key: str
    token: str | None = None

    def __repr__(self) -> str:
        return "Credentials(...)"


class Address:
    """Where a request goes, in the forms that the request and its signature need."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.url = url
        self.scheme = parts.scheme
        self.host = parts.hostname or ""
        self.port = parts.port or (443 if parts.scheme == "https" else 80)
        name = f"[{self.host}]" if ":" in self.host else self.host
        self.authority = name if self.port == (443 if parts.scheme == "https" else 80) else f"{name}:{self.port}"
        self.origin = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self.path = parts.path or "/"
        self.target = quote(f"{self.path}?{parts.query}" if parts.query else self.path, safe=_AS_IT_IS)
        self.canonical_path = quote(_normalized(self.path), safe="/~")
        self.canonical_query = _sorted(parts.query)


class Signer:
    """Signs requests to Lambda. The key of a day, a region and a secret is derived once."""

    def __init__(self) -> None:
        self._derived: tuple[tuple[str, str, str], bytes] = (("", "", ""), b"")

    def sign(
        self, address: Address, headers: Mapping[str, str], body: bytes, credentials: Credentials, region: str, now: float
    ) -> dict[str, str]:
        """Return the headers of a POST with its signature. The others in headers, and the host, are signed, too.

        The names in headers are lower case. The time is in Unix seconds.
        """
        at = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
        day = at[:8]
        signed = {"host": address.authority, **headers, "x-amz-date": at}
        if credentials.token:
            signed["x-amz-security-token"] = credentials.token
        names = sorted(signed)
        canonical = "".join([f"{name}:{' '.join(signed[name].split())}\n" for name in names])
        listed = ";".join(names)
        request = f"POST\n{address.canonical_path}\n{address.canonical_query}\n{canonical}\n{listed}\n{sha256(body).hexdigest()}"
        scope = f"{day}/{region}/{SERVICE}/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{at}\n{scope}\n{sha256(request.encode()).hexdigest()}"
        signature = hmac.digest(self._key(day, region, credentials.secret_key), text.encode(), "sha256").hex()
        signed["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={credentials.access_key}/{scope}, SignedHeaders={listed}, Signature={signature}"
        )
        return signed

    def _key(self, day: str, region: str, secret: str) -> bytes:
        wanted, derived = (day, region, secret), self._derived  # read once, because other threads replace it
        if derived[0] == wanted:
            return derived[1]
        key = f"AWS4{secret}".encode()
        for part in (day, region, SERVICE, "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        self._derived = (wanted, key)
        return key


def _normalized(path: str) -> str:
    """Return a path without empty segments, and without "." and ".."."""
    kept: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del kept[-1:]
        elif part and part != ".":
            kept.append(part)
    return f"/{'/'.join(kept)}{'/' if kept and path.endswith('/') else ''}"


def _sorted(query: str) -> str:
    pairs = sorted(pair.partition("=")[::2] for pair in query.split("&")) if query else []
    return "&".join(f"{name}={value}" for name, value in pairs)
