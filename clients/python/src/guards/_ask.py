"""One attempt to ask a guard, by Invoke or by its Function URL."""

from __future__ import annotations

import io
import os
import re
import socket
import sys
import threading
from typing import Any

import boto3
import botocore.session
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import BotoCoreError, NoRegionError
from botocore.utils import get_environ_proxies

from guards._answer import read_invoke, read_url
from guards._attempt import Attempt, current
from guards._credentials import Credentials
from guards._decision import Decision
from guards._errors import ConfigurationError, NoThread, OutageError
from guards._failure import meaning
from guards._process import Own
from guards._queue import Queue
from guards._request import Request
from guards._session import Session

CONNECTIONS = 50  # and so calls at the same time; more if the Lambda client has more


class Asker:
    """Asks guards with the settings of a Lambda client.

    The Lambda client finds the region, the endpoint and the credentials, and
    signs each request. The request is then sent by a session of the Asker,
    because boto3 can't end a request at a given time, and repeats requests.
    """

    def __init__(self, client: Any, timeout: float) -> None:
        if client is not None and not (hasattr(client, "invoke") and hasattr(client, "meta")):
            raise ConfigurationError(f"The option client is {client!r}, want boto3's Lambda client.")
        self.credentials = Credentials()
        self.reached = False  # whether anything has ever answered
        self._timeout = timeout
        self._maker = os.getpid()
        self._connections = CONNECTIONS
        self._failure: Exception | None = None
        try:
            self._client = client or _new_client()
            self._connections = max(self._client.meta.config.max_pool_connections, CONNECTIONS)
            self._session = Own(self._new_session)
        except (BotoCoreError, ValueError) as error:
            self._failure = error  # for each call, so that an app can be imported without AWS settings
        self._queue = Own(self._new_queue)
        if self._failure is not None:
            return
        events = self._client.meta.events
        events.register("before-sign.lambda.Invoke", _aim, unique_id="guards-aim")
        events.register("before-send.lambda.Invoke", _keep, unique_id="guards-keep")

    def start(self, request: Request, call: object) -> Attempt:
        """Start an attempt of a call, or let it wait for a thread."""
        if sys.is_finalizing():  # a thread that starts now gets no turn before the process ends
            raise NoThread("the interpreter is shutting down", again=False)
        attempt = Attempt(lambda attempt: self._ask(attempt, request), call, request.function)
        self._queue.get().add(attempt)
        return attempt

    def give_up(self, attempt: Attempt) -> None:
        """End an attempt now."""
        self._queue.get().give_up(attempt)

    def leave(self, call: object) -> None:
        """Let a call that waits have the place of one that has ended."""
        self._queue.get().leave(call)

    def refuse(self, outage: OutageError) -> None:
        """End the calls that wait to ask a function."""
        self._queue.get().refuse(lambda function: OutageError(str(outage), function) if function == outage.guard else None)

    def late(self, request: Request) -> Exception:
        """Return the error of an attempt whose credentials did not come in time. All calls that wait fail in the same way."""
        self._queue.get().refuse(lambda function: self.credentials.failed(function, None))
        return self.credentials.failed(request.function, None)

    def close(self) -> None:
        """Close the connections that no attempt uses."""
        if self._failure is None:
            self._session.get().close()

    def _ask(self, attempt: Attempt, request: Request) -> Decision:
        if self._failure is not None:
            raise meaning(self._failure, request)
        attempt.url = request.url
        self._sign(attempt, request)
        try:
            response = self._session.get().exchange(attempt)
        except BotoCoreError as error:
            raise meaning(error, request, self._client.meta.region_name, attempt.prepared.url) from error
        attempt.has_response = self.reached = True
        read = read_invoke if request.url is None else read_url
        return read(response, request, self._client.meta.region_name)

    def _sign(self, attempt: Attempt, request: Request) -> None:
        try:
            self._client.invoke(FunctionName=request.function, Payload=request.payload)  # only signs: see _keep
        except Exception as error:  # a source of credentials can be the app's own code
            if attempt.asks_credentials and attempt.prepared is None:
                raise self.credentials.failed(request.function, error) from error
            raise meaning(error, request, self._client.meta.region_name) from error
        if attempt.prepared is None:  # for example because of botocore's Stubber
            raise ConfigurationError(f"{request.function} could not be invoked: the client sent no request", request.function)
        self.credentials.had = True
        self._queue.get().signed(attempt)

    def _new_queue(self) -> Queue:
        if self._maker != os.getpid() and self._failure is None:
            # A thread of the parent could hold the lock of botocore's credentials, because it renews them.
            credentials: Any = getattr(getattr(self._client, "_request_signer", None), "_credentials", None)
            if hasattr(credentials, "_refresh_lock"):
                credentials._refresh_lock = threading.Lock()
        return Queue(self._connections)

    def _new_session(self) -> Session:
        meta = self._client.meta
        config = meta.config
        bundle = botocore.session.get_session().get_config_variable("ca_bundle") or os.environ.get("REQUESTS_CA_BUNDLE")
        return Session(
            verify=bundle or True,
            proxies=config.proxies if config.proxies is not None else get_environ_proxies(meta.endpoint_url),
            proxies_config=config.proxies_config,
            client_cert=config.client_cert,
            max_pool_connections=self._connections,
            socket_options=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],  # without it, a repeated use costs 40 ms
            timeout=self._timeout,  # of one operation of a socket; an attempt ends earlier
        )


def _new_client() -> Any:
    config = Config(retries={"mode": "standard", "total_max_attempts": 1})
    session = boto3.DEFAULT_SESSION or boto3.Session()
    region = session.region_name or os.environ.get("AWS_REGION")  # Lambda and other SDKs use this name, boto3 does not
    if not region:
        raise NoRegionError
    return session.client("lambda", config=config, region_name=region)


# A Function URL with a region in its name may be in another region than the app.
_URL_HOST = re.compile(r"\.lambda-url\.([a-z0-9-]+)\.on\.aws(:\d+)?(/|$)")


def _aim(request: Any, **_: Any) -> None:
    """Before the credentials are asked for and the request is signed: aim it at the Function URL, if there is one."""
    attempt = current()
    if attempt is None:
        return
    attempt.asks_credentials = True
    attempt.waits_for = "credentials"
    if attempt.url is None:
        return
    request.url = attempt.url
    request.headers["Content-Type"] = "application/json"
    if match := _URL_HOST.search(attempt.url):
        request.context["signing"] = {**request.context.get("signing", {}), "region": match[1]}


def _keep(request: Any, **_: Any) -> Any:
    """Before a request is sent: keep it for the attempt, and let boto3 believe that it was answered.

    Requests of the app itself have no attempt. They are sent as always.
    """
    attempt = current()
    if attempt is None:
        return None
    attempt.prepared = request
    attempt.waits_for = "app"
    return AWSResponse(request.url, 200, {}, io.BytesIO())
