"""Lambda's region and endpoint, as boto3 finds them in variables. Whatever is not here is left to botocore."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from guards._errors import ConfigurationError
from guards._options import is_url

_NO_REGION = "No AWS region is set. Set AWS_DEFAULT_REGION, or pass a Lambda client that has one."

# The ending of host names in each partition, and the one of dual-stack hosts. botocore knows the others.
_PARTITIONS = (
    (re.compile(r"(us|eu|ap|sa|ca|me|af|il|mx)-\w+-\d+"), "amazonaws.com", "api.aws"),
    (re.compile(r"us-gov-\w+-\d+"), "amazonaws.com", "api.aws"),
    (re.compile(r"cn-\w+-\d+"), "amazonaws.com.cn", "api.amazonwebservices.com.cn"),
)

# Settings of a profile that only botocore reads. The word is looked for anywhere in the files, because a file can have any
# form: if a comment has it, botocore is loaded for nothing.
_SETTINGS = "endpoint_url|services|ca_bundle|use_fips_endpoint|use_dualstack_endpoint|ignore_configured_endpoint_urls"


class Found(NamedTuple):
    """Where Lambda is, and which certificates are trusted."""

    region: str
    endpoint: str
    ca_bundle: str | None


class Settings:
    """The settings of Lambda: options, then variables, then what botocore finds. They are read when the client is made.

    botocore is loaded when it is first needed. Its session is boto3's default
    session if the app has one, or else a new one.
    """

    def __init__(self, region: str | None, endpoint: str | None) -> None:
        self._region = region
        self._endpoint = endpoint
        self._environ = environ = dict(os.environ)
        default = getattr(sys.modules.get("boto3"), "DEFAULT_SESSION", None)
        self.has_default = default is not None  # whether the app has loaded boto3 and made its default session
        self._session: Any = getattr(default, "_session", default)
        self._reason = "boto3 has a default session" if self.has_default else _reason_for_sdk(environ, region)
        # boto3 reads the first one, Lambda and other SDKs the second one.
        self._lean_region = region or environ.get("AWS_DEFAULT_REGION") or environ.get("AWS_REGION") or None
        self._lean_endpoint = endpoint or _endpoint_of(self._lean_region, environ)
        # Whether botocore is not needed, for anything but credentials.
        self.are_lean = self._reason is None and (self._lean_region is None or self._lean_endpoint is not None)

    def find(self) -> Found:
        """Return the settings. If they are not lean, this loads botocore."""
        if self.are_lean:
            region, endpoint = self._lean_region, self._lean_endpoint
            if region is None:
                raise ConfigurationError(_NO_REGION)
            if endpoint is None or not is_url(endpoint):
                raise ValueError(f"Invalid endpoint: {endpoint}")  # the text of botocore
            return Found(region, endpoint, self._ca_bundle(None))
        try:
            return self._of_sdk()
        except ModuleNotFoundError:
            raise _missing(self._reason or f"The region {self._lean_region} is of a partition of its own") from None

    def credentials(self) -> Any:
        """Return the credentials that botocore finds, which renew themselves; None: there are none."""
        try:
            return self._of_botocore().get_credentials()
        except ModuleNotFoundError:
            raise _missing(
                "The environment has no AWS credentials. The SDK finds those of other sources, such as a role"
            ) from None

    def _of_sdk(self) -> Found:
        session = self._of_botocore()
        session.get_scoped_config()  # an error if the profile does not exist
        region = self._region or session.get_config_variable("region") or os.environ.get("AWS_REGION")
        if not region:
            raise ConfigurationError(_NO_REGION)
        endpoint = _endpoint_of_sdk(session, region, self._endpoint)
        return Found(region, endpoint, self._ca_bundle(session.get_config_variable("ca_bundle")))

    def _of_botocore(self) -> Any:
        if self._session is None:
            import botocore.session

            self._session = botocore.session.get_session()
        return self._session

    def _ca_bundle(self, of_profile: str | None) -> str | None:
        return self._environ.get("AWS_CA_BUNDLE") or of_profile or self._environ.get("REQUESTS_CA_BUNDLE") or None


def _reason_for_sdk(environ: Mapping[str, str], region: str | None) -> str | None:
    """Return why only botocore knows the settings; None: the variables have them all."""
    for name in ("AWS_DEFAULT_PROFILE", "AWS_PROFILE"):
        if name in environ:
            return f"{name} is set"
    words = _SETTINGS if region or environ.get("AWS_DEFAULT_REGION") else f"{_SETTINGS}|region"
    for name, usual in (("AWS_CONFIG_FILE", "~/.aws/config"), ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials")):
        path = os.path.expanduser(environ.get(name) or usual)
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                match = re.search(rf"\b(?:{words})\b", file.read())
        except OSError:
            continue
        if match is not None:
            return f"{path} has {match[0]}"
    return None


def _endpoint_of_sdk(session: Any, region: str, given: str | None) -> str:
    """Return the URL of Lambda: where a client would send a request, because its attributes are not always right."""
    import io

    from botocore.awsrequest import AWSResponse

    def keep(request: Any, **_: Any) -> Any:
        sent.append(request.url)
        return AWSResponse(request.url, 200, {}, io.BytesIO())

    sent: list[str] = []
    # With credentials, botocore does not look for any.
    keys = {"aws_access_key_id": "x", "aws_secret_access_key": "x"}
    client = session.create_client("lambda", region_name=region, endpoint_url=given, **keys)
    client.meta.events.register("before-send.lambda.Invoke", keep)
    client.invoke(FunctionName="x", Payload=b"{}")
    return sent[0].partition("/2015-03-31/")[0]


def _missing(reason: str) -> ConfigurationError:
    """Return the error if botocore is not installed."""
    return ConfigurationError(f"{reason}, which needs botocore: install it: pip install 'cric-talk-guards[botocore]'.")


def _endpoint_of(region: str | None, environ: Mapping[str, str]) -> str | None:
    """Return the URL of Lambda that the variables have, or else that of the region; None: only botocore knows it."""
    if not _is_true(environ, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"):
        given = environ.get("AWS_ENDPOINT_URL_LAMBDA") or environ.get("AWS_ENDPOINT_URL")
        if given:
            return given  # which has no FIPS or dual stack
    fips, dual = _is_true(environ, "AWS_USE_FIPS_ENDPOINT"), _is_true(environ, "AWS_USE_DUALSTACK_ENDPOINT")
    for regions, ending, dual_ending in _PARTITIONS:
        if region is not None and regions.fullmatch(region):
            return f"https://lambda{'-fips' if fips else ''}.{region}.{dual_ending if dual else ending}"
    return None


def _is_true(environ: Mapping[str, str], name: str) -> bool:
    return environ.get(name, "").lower() == "true"
