"""User ids for strangers: of an IP address, and of the name of an account."""

from __future__ import annotations

import hmac
import ipaddress
import re
from hashlib import sha256

from guards._arguments import described
from guards._errors import ValidationError

# An address alone or in brackets, with what can follow: a zone, which IPv4 has not, and a port. It is compiled when it is
# first needed, because that takes half a millisecond.
_FORM = (
    r"\[(?P<inside>[0-9a-f:.]+)(?:%[\w.~-]+)?\](?::(?P<after>\d{1,5}))?"
    r"|(?P<v4>[\d.]+)(?::(?P<port>\d{1,5}))?"
    r"|(?P<v6>[0-9a-f:.]+)(?:%[\w.~-]+)?"
)
_AROUND = b" \t\r\n"  # what goes from both ends of a name
_LEAST = 16  # bytes of a key


def ip_key(address: str | None, *, prefix: int = 64, key: str | bytes | None = None) -> str:
    """Return the user id, or the id of a subject, of somebody who has no account: of their IP address.

    An IPv4 address stays as it is. An IPv6 address becomes its network, such as
    2001:db8::/64, in the form of RFC 5952. An IPv4-mapped address, such as
    ::ffff:192.0.2.1, is the IPv4 address.

    The address may have a port, brackets and a zone, as in "[2001:db8::1]:443",
    "192.0.2.1:443" or "fe80::1%eth0". These never are in the result. Behind a
    proxy, pass the address that the proxy has seen, because users can send any
    X-Forwarded-For. Anything else, such as None, a leading zero in IPv4 or a
    space, is a ValidationError.

    prefix: how many bits of an IPv6 address count, 1 to 128. The default is 64,
        because a home or a phone has at least a /64 and can take any address in it.
    key: a secret of at least 16 bytes, or a text with as many in UTF-8. With it,
        the result is 32 hex digits that do not show the address.
    """
    if not isinstance(prefix, int) or isinstance(prefix, bool) or not 1 <= prefix <= 128:
        value = str(prefix) if type(prefix) is int else described(prefix)
        raise ValidationError(f"prefix is {value}, want a whole number from 1 to 128")
    secret = None if key is None else _secret(key)
    text = _network(address, prefix)
    if text is None:
        raise ValidationError("the address is no IPv4 or IPv6 address, with or without a port")
    return text if secret is None else _keyed(secret, text.encode())


def _network(address: object, prefix: int) -> str | None:
    """Return an IPv4 address, or an IPv6 network with a slash and its length; None: it is no address."""
    form = re.fullmatch(_FORM, address, re.ASCII | re.IGNORECASE) if isinstance(address, str) else None
    if form is None or int(form["after"] or form["port"] or 0) > 65_535:
        return None
    try:
        if form["v4"]:
            return str(ipaddress.IPv4Address(form["v4"]))
        network = ipaddress.IPv6Network((form["inside"] or form["v6"], prefix), strict=False)
        mapped = ipaddress.IPv6Address(form["inside"] or form["v6"]).ipv4_mapped
    except ValueError:
        return None
    return str(network) if mapped is None else str(mapped)


def account_key(text: str, *, key: str | bytes | None, fold: bool = True) -> str:
    """Return the user id, or the id of a subject, for the name of an account, such as a mail address.

    It is the first 32 hex digits of the name's HMAC-SHA-256. The spaces, tabs
    and line ends around the text go before that, and A to Z become a to z. No
    other letters change, because languages and versions of Unicode disagree
    about them.

    Pass the name as your database compares it. If the account is known, its own
    id is the better user id. A text of spaces, one with a surrogate, and what is
    no str is a ValidationError.

    key: a secret of at least 16 bytes, or a text with as many in UTF-8, the same
        in each backend that asks. Without one, a reader of the table can try all
        likely names; None says that plain SHA-256 is meant. So take a key of the
        environment with os.environ["KEY"], which raises if it is missing.
    fold: False takes the text as it is. Use it if your database tells Ann from ann.
    """
    secret = None if key is None else _secret(key)
    if not isinstance(fold, bool):
        raise ValidationError(f"fold is {described(fold)}, want True or False")
    name = _utf8(text)
    if name is None:
        raise ValidationError("the account's name is no str of Unicode")
    trimmed = name.strip(_AROUND)
    if not trimmed:
        raise ValidationError("the account's name is empty")
    if fold:
        name = trimmed.lower()  # of bytes: A to Z alone
    return sha256(name).hexdigest()[:32] if secret is None else _keyed(secret, name)


def _utf8(text: object) -> bytes | None:
    """Return the UTF-8 of a str; None: it has none."""
    try:
        return text.encode() if isinstance(text, str) else None
    except UnicodeEncodeError:
        return None


def _secret(key: object) -> bytes:
    """Return the bytes of a key, or raise a ValidationError."""
    secret = bytes(key) if isinstance(key, bytes | bytearray) else _utf8(key)
    if secret is None or len(secret) < _LEAST:
        raise ValidationError(f"key is {described(key)}, want at least {_LEAST} bytes, or a str with as many in UTF-8")
    return secret


def _keyed(secret: bytes, text: bytes) -> str:
    """Return the first half of the HMAC-SHA-256, so that a user id has room for two."""
    return hmac.new(secret, text, sha256).hexdigest()[:32]
