"""Where credentials come from, and what it means if there are none."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

from guards._call import Call, GivenUp, LateError, Shared, Time
from guards._errors import ConfigurationError, GuardsError, Lost
from guards._sigv4 import Credentials

_NONE = "No AWS credentials were found. Give the app a role, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."


# botocore renews credentials 15 minutes before their end. From 10 minutes before it, a call waits for the new ones.
_MUST_RENEW = 10 * 60


class NoneFoundError(Exception):
    """Nothing has credentials."""


class Source:
    """A source of credentials that can be slow or fail, such as STS. It is asked once at a time, for all calls that wait.

    load returns the credentials of an SDK, or Credentials. It may return the
    same object again, which is asked whether it has to be renewed. Credentials
    that are loaded already never change.
    """

    def __init__(self, load: Callable[[], Any], *, once: bool = True, loaded: Credentials | None = None) -> None:
        self.had = False  # whether a request was ever signed
        self._load = load
        self._once = once  # whether what was loaded renews itself
        self._loaded: Any = loaded
        self._last: Credentials | None = None  # that it returned
        self._shared = Shared(self._ask, forked=self._unlock)

    def get(self, call: Call, time_left: Time, function: str) -> Credentials:
        """Return the credentials. A call waits for them until its time is over."""
        try:
            found = self._at_once() or self._shared.result(call, time_left)
        except LateError:
            raise self.failed(function, None) from None
        except GuardsError as error:
            raise ConfigurationError(str(error), function) from error
        except (GivenUp, Lost):
            raise
        except Exception as error:  # a source can be the app's own code
            raise self.failed(function, error) from error
        self.had = True
        return found

    def failed(self, function: str, error: Exception | None) -> Exception:
        """Return what an error of the source means. None is a source that did not answer in time.

        Only a client that had credentials before can be in an outage without them.
        """
        if self.had:
            return Lost(f"the AWS credentials could not be renewed ({_kind(error)})", again=False)
        if isinstance(error, NoneFoundError) or type(error).__name__ in ("NoCredentialsError", "PartialCredentialsError"):
            return ConfigurationError(_NONE, function)
        message = f"{function} could not be invoked: there are no AWS credentials ({_kind(error)})."
        return ConfigurationError(message + " Check the app's role, its profile and the network.", function)

    def _at_once(self) -> Credentials | None:
        """Return the credentials, if nobody has to be asked for them first."""
        loaded = self._loaded
        if loaded is None or isinstance(loaded, Credentials):
            return loaded
        if not hasattr(loaded, "refresh_needed") or not loaded.refresh_needed():
            return _frozen(loaded)
        if loaded.refresh_needed(_MUST_RENEW):
            return None
        self._shared.begin()  # the old ones can be used until then
        return self._last

    def _ask(self) -> Credentials:
        loaded = self._loaded
        if loaded is None:
            loaded = self._load()
            if loaded is None:
                raise NoneFoundError
            if self._once:
                self._loaded = loaded
        self._last = _frozen(loaded)
        return self._last

    def _unlock(self) -> None:
        if hasattr(self._loaded, "_refresh_lock"):  # of botocore: a thread of the parent could hold it
            self._loaded._refresh_lock = threading.Lock()


def of_option(value: Any) -> Source:
    """Return the source of the option credentials."""
    if isinstance(value, Credentials) and all(isinstance(part, str) and part for part in value[:2]):
        return Source(lambda: value, loaded=value)
    if hasattr(value, "get_frozen_credentials"):
        return Source(lambda: value)
    if callable(value) and not isinstance(value, type):
        return Source(value, once=False)
    want = "guards.Credentials, a function that returns them, or credentials of botocore"
    raise ConfigurationError(f"The option credentials is of the type {type(value).__name__}, want {want}.")


def of_environment() -> Source | None:
    """Return the source of AWS_ACCESS_KEY_ID and so on, in the way of boto3; None: the SDK has to look elsewhere."""
    key, secret = os.environ.get("AWS_ACCESS_KEY_ID"), os.environ.get("AWS_SECRET_ACCESS_KEY")
    if not key or os.environ.get("AWS_CREDENTIAL_EXPIRATION"):
        return None
    if not secret:
        return Source(lambda: None)
    found = Credentials(key, secret, os.environ.get("AWS_SECURITY_TOKEN") or os.environ.get("AWS_SESSION_TOKEN"))
    return Source(lambda: found, loaded=found)


def _frozen(loaded: Any) -> Credentials:
    """Return the credentials of this moment."""
    if hasattr(loaded, "get_frozen_credentials"):
        loaded = loaded.get_frozen_credentials()
    if not loaded.access_key or not loaded.secret_key:
        raise NoneFoundError
    return Credentials(loaded.access_key, loaded.secret_key, loaded.token)


def _kind(error: Exception | None) -> str:
    """Return which error the source of the credentials raised. Its text is left out: it could contain a secret."""
    if error is None:
        return "no answer in time"
    operation, response = getattr(error, "operation_name", None), getattr(error, "response", None)
    if operation and isinstance(response, dict):  # botocore's ClientError
        return f"{operation}: {response.get('Error', {}).get('Code')}"
    return type(error).__name__
