"""Lambda's region and endpoint, as boto3 finds them in variables. Whatever is not here is left to botocore."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from guards._errors import ConfigurationError
from guards._options import is_url
from guards._sdk import Sdk, missing

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
    """The settings of Lambda: options, then variables, then what botocore finds. They are read when the client is made."""

    def __init__(self, region: str | None, endpoint: str | None) -> None:
        self._region = region
        self._endpoint = endpoint
        self._environ = dict(os.environ)
        self.sdk = Sdk()
        self._reason = "boto3 has a default session" if self.sdk.has_default else reason_for_sdk(self._environ, region)

    @property
    def are_lean(self) -> bool:
        """Whether botocore is not needed, for anything but credentials."""
        if self._reason is not None:
            return False
        region = self._region or region_of(self._environ)
        return region is None or _is_known(region) or bool(self._endpoint or _own_endpoint(self._environ))

    def find(self) -> Found:
        """Return the settings. If they are not lean, this loads botocore."""
        if self.are_lean:
            region = self._region or region_of(self._environ)
            if region is None:
                raise ConfigurationError(_NO_REGION)
            return Found(region, _valid(endpoint_of(region, self._environ, self._endpoint)), self._ca_bundle(None))
        try:
            return self._of_sdk()
        except ModuleNotFoundError:
            reason = self._reason or f"The region {self._region or region_of(self._environ)} is of a partition of its own"
            raise missing(reason) from None

    def credentials(self) -> Any:
        """Return the credentials that botocore finds, which renew themselves."""
        try:
            return self.sdk.credentials()
        except ModuleNotFoundError:
            raise missing(
                "The environment has no AWS credentials. The SDK finds those of other sources, such as a role"
            ) from None

    def _of_sdk(self) -> Found:
        self.sdk.check()
        region = self._region or self.sdk.region()
        if not region:
            raise ConfigurationError(_NO_REGION)
        return Found(region, self.sdk.endpoint(region, self._endpoint), self._ca_bundle(self.sdk.ca_bundle()))

    def _ca_bundle(self, of_profile: str | None) -> str | None:
        return self._environ.get("AWS_CA_BUNDLE") or of_profile or self._environ.get("REQUESTS_CA_BUNDLE") or None


def region_of(environ: Mapping[str, str]) -> str | None:
    """Return the region of the variables. boto3 reads the first one, Lambda and other SDKs the second one."""
    return environ.get("AWS_DEFAULT_REGION") or environ.get("AWS_REGION") or None


def reason_for_sdk(environ: Mapping[str, str], region: str | None) -> str | None:
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


def endpoint_of(region: str, environ: Mapping[str, str], given: str | None = None) -> str:
    """Return the URL of Lambda. The region is of a known partition, or there is an endpoint, which has no FIPS or dual stack."""
    given = given or _own_endpoint(environ)
    if given:
        return given
    fips, dual = _is_true(environ, "AWS_USE_FIPS_ENDPOINT"), _is_true(environ, "AWS_USE_DUALSTACK_ENDPOINT")
    ending, dual_ending = next(endings for regions, *endings in _PARTITIONS if regions.fullmatch(region))
    return f"https://lambda{'-fips' if fips else ''}.{region}.{dual_ending if dual else ending}"


def _own_endpoint(environ: Mapping[str, str]) -> str | None:
    if _is_true(environ, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"):
        return None
    return environ.get("AWS_ENDPOINT_URL_LAMBDA") or environ.get("AWS_ENDPOINT_URL") or None


def _is_known(region: str) -> bool:
    return any(regions.fullmatch(region) for regions, *_ in _PARTITIONS)


def _valid(endpoint: str) -> str:
    if not is_url(endpoint):
        raise ValueError(f"Invalid endpoint: {endpoint}")  # the text of botocore
    return endpoint


def _is_true(environ: Mapping[str, str], name: str) -> bool:
    return environ.get(name, "").lower() == "true"
