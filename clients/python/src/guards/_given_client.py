"""The option client: boto3's Lambda client signs each request. It goes after version 0.1."""

from __future__ import annotations

import io
import os
import threading
from typing import Any

from guards import _proxies
from guards._call import Call, GivenUp, LateError, Task, Time
from guards._connection import Connections
from guards._credentials import Source
from guards._errors import ConfigurationError, GuardsError, Lost
from guards._lambda import URL_HOST
from guards._process import Own
from guards._request import Request
from guards._sigv4 import Address
from guards._trust import Trust
from guards._way import Signed, Way, traced

_thread = threading.local()  # its field signing is what this thread signs


class _Signing(Task[Any]):
    """A request that the client signs in this thread."""

    def __init__(self, client: Any, request: Request) -> None:
        self.url = request.url
        self.asks_credentials = False
        self.prepared: Any = None
        self._client = client
        self._request = request
        super().__init__(self._sign, counts=False)

    def _sign(self) -> None:
        _thread.signing = self
        try:
            self._client.invoke(FunctionName=self._request.function, Payload=self._request.payload)  # only signs: see _keeper
        finally:
            _thread.signing = None


class GivenClient(Way):
    """Asks Lambda with the settings of a client of boto3. The requests are sent by connections of this package."""

    def __init__(self, client: Any, connections: int) -> None:
        super().__init__()
        if not (hasattr(client, "invoke") and hasattr(client, "meta")):
            raise ConfigurationError(f"The option client is {client!r}, want boto3's Lambda client.")
        from botocore.awsrequest import AWSResponse

        self._client = client
        self.region = client.meta.region_name
        self._source = Source(lambda: None)
        config = client.meta.config
        self.most = max(config.max_pool_connections, connections)
        settings = config.proxies_config
        proxy = _proxies.of_environment() if config.proxies is None else _proxies.of_mapping(config.proxies, settings)
        self._maker = os.getpid()
        self.connections = Own(lambda: self._new_connections(proxy))
        events = client.meta.events
        events.register("before-sign.lambda.Invoke", _aim, unique_id="guards-aim")
        events.register("before-send.lambda.Invoke", _keeper(AWSResponse), unique_id="guards-keep")

    def sign(self, request: Request, call: Call) -> Signed:
        """Return the request as the client signs it."""
        self.connections.get()
        signing = _Signing(self._client, request)
        time_left = Time(call.plan.remaining)
        try:
            call.result(signing, time_left)
        except LateError:
            raise self._source.failed(request.function, None) from None
        except (GivenUp, GuardsError, Lost):
            raise
        except Exception as error:  # a source of credentials can be the app's own code
            if signing.asks_credentials and signing.prepared is None:
                raise self._source.failed(request.function, error) from error
            raise request.not_invoked(request.without_ids(error)) from error
        finally:
            call.plan.spend(time_left.seconds - time_left.left)
        if signing.prepared is None:  # for example because of botocore's Stubber
            raise request.not_invoked("the client sent no request")
        self._source.had = True
        address = Address(signing.prepared.url)
        headers = {"host": address.authority}
        for name, value in signing.prepared.headers.items():
            headers[name.lower()] = value.decode() if isinstance(value, bytes) else value
        headers.pop("content-length", None)
        return Signed(address, headers | traced())

    def _new_connections(self, proxy: Any) -> Connections:
        if self._maker != os.getpid():
            # A thread of the parent could hold the lock of botocore's credentials, because it renews them.
            credentials: Any = getattr(getattr(self._client, "_request_signer", None), "_credentials", None)
            if hasattr(credentials, "_refresh_lock"):
                credentials._refresh_lock = threading.Lock()
        import botocore.session

        bundle = botocore.session.get_session().get_config_variable("ca_bundle") or os.environ.get("REQUESTS_CA_BUNDLE")
        return Connections(self.most, Trust(lambda: bundle, self._client.meta.config.client_cert), proxy)


def _aim(request: Any, **_: Any) -> None:
    """Before the credentials are asked for and the request is signed: aim it at the Function URL, if there is one."""
    signing = getattr(_thread, "signing", None)
    if signing is None:
        return
    signing.asks_credentials = signing.counts = True
    if signing.url is None:
        return
    request.url = signing.url
    request.headers["Content-Type"] = "application/json"
    if match := URL_HOST.search(Address(signing.url).host):
        request.context["signing"] = {**request.context.get("signing", {}), "region": match[1]}


def _keeper(response: Any) -> Any:
    def keep(request: Any, **_: Any) -> Any:
        """Before a request is sent: keep it, and let boto3 believe that it was answered.

        Requests of the app itself are not signed here. They are sent as always.
        """
        signing = getattr(_thread, "signing", None)
        if signing is None:
            return None
        signing.prepared, signing.counts = request, False
        return response(request.url, 200, {}, io.BytesIO())

    return keep
