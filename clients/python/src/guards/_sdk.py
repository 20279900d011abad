"""What only botocore knows: profiles and other sources of credentials. It is loaded when it is first needed."""

from __future__ import annotations

import os
import sys
from typing import Any

from guards._errors import ConfigurationError

INSTALL = "install it: pip install 'cric-talk-guards[botocore]'"


class Sdk:
    """The settings of a session of botocore: boto3's default session if the app has one, or else a new one."""

    def __init__(self) -> None:
        self._default = getattr(sys.modules.get("boto3"), "DEFAULT_SESSION", None)
        self._session: Any = None

    @property
    def has_default(self) -> bool:
        """Whether the app has loaded boto3 and made its default session."""
        return self._default is not None

    def region(self) -> str | None:
        """Return the region of the session."""
        region = self._of_botocore().get_config_variable("region")
        return region or os.environ.get("AWS_REGION") or None

    def endpoint(self, region: str, given: str | None) -> str:
        """Return the URL of Lambda: where a client would send a request, because its attributes are not always right."""
        import io

        from botocore.awsrequest import AWSResponse

        def keep(request: Any, **_: Any) -> Any:
            sent.append(request.url)
            return AWSResponse(request.url, 200, {}, io.BytesIO())

        sent: list[str] = []
        # With credentials, botocore does not look for any.
        keys = {"aws_access_key_id": "x", "aws_secret_access_key": "x"}
        client = self._of_botocore().create_client("lambda", region_name=region, endpoint_url=given, **keys)
        client.meta.events.register("before-send.lambda.Invoke", keep)
        client.invoke(FunctionName="x", Payload=b"{}")
        return sent[0].partition("/2015-03-31/")[0]

    def ca_bundle(self) -> str | None:
        """Return the file of certificates that is trusted instead of the usual ones."""
        bundle: str | None = self._of_botocore().get_config_variable("ca_bundle")
        return bundle

    def credentials(self) -> Any:
        """Return the credentials, which renew themselves; None: there are none."""
        return self._of_botocore().get_credentials()

    def check(self) -> None:
        """Raise an error if the profile does not exist."""
        self._of_botocore().get_scoped_config()

    def _of_botocore(self) -> Any:
        if self._session is None:
            if self._default is not None:
                self._session = getattr(self._default, "_session", self._default)
            else:
                import botocore.session

                self._session = botocore.session.get_session()
        return self._session


def missing(reason: str) -> ConfigurationError:
    """Return the error if botocore is not installed."""
    return ConfigurationError(f"{reason}, which needs botocore: {INSTALL}.")
