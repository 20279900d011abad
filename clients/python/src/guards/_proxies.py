"""HTTP proxies, from the variables that boto3 reads."""

from __future__ import annotations

import os
import sys
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from guards._sigv4 import Address
from guards._trust import new_context

if TYPE_CHECKING:
    import ssl


class Proxy:
    """An HTTP proxy, such as http://user:password@proxy.example:3128."""

    def __init__(self, url: str, settings: Mapping[str, Any]) -> None:
        if url.startswith("//"):
            url = "http:" + url
        elif not url.startswith(("http:", "https:")):
            url = "http://" + url
        parts = urlsplit(url)
        self.address = Address(url)
        self.headers: dict[str, str] = {}
        if parts.username and parts.password:
            text = f"{unquote(parts.username)}:{unquote(parts.password)}"
            self.headers["proxy-authorization"] = "Basic " + b64encode(text.encode()).decode()
        self._forwards = bool(settings.get("proxy_use_forwarding_for_https"))
        self.context: ssl.SSLContext | None = None  # of a connection to the proxy, if it differs
        if settings.get("proxy_ca_bundle") or settings.get("proxy_client_cert"):
            self.context = new_context(settings.get("proxy_ca_bundle"), settings.get("proxy_client_cert"))

    def forwards(self, address: Address) -> bool:
        """Report whether the proxy gets the whole request, instead of a CONNECT."""
        return address.scheme == "http" or self._forwards


def of_environment() -> Callable[[Address], Proxy | None]:
    """Return the function that returns the proxy of an address: from HTTPS_PROXY and so on, and the system's settings."""
    if not any(name.lower().endswith("_proxy") for name in os.environ) and sys.platform not in ("darwin", "win32"):
        return lambda _: None
    import socket
    import urllib.request

    known = of_mapping(urllib.request.getproxies())

    def proxy(address: Address) -> Proxy | None:
        try:
            is_direct = urllib.request.proxy_bypass(address.authority)
        except (TypeError, socket.gaierror):
            is_direct = False
        return None if is_direct else known(address)

    return proxy


def of_mapping(proxies: Mapping[str, str], settings: Mapping[str, Any] | None = None) -> Callable[[Address], Proxy | None]:
    """Return the function that returns the proxy of an address: from a dict, such as {"https": "http://proxy.example:3128"}."""
    made = {scheme: Proxy(url, settings or {}) for scheme, url in proxies.items() if scheme in ("http", "https") and url}
    return lambda address: made.get(address.scheme)
