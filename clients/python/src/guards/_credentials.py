"""What it means that a request could not be signed."""

from __future__ import annotations

from botocore.exceptions import ClientError, NoCredentialsError, PartialCredentialsError

from guards._errors import ConfigurationError, Lost

_NONE = "No AWS credentials were found. Give the app a role, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."


class Credentials:
    """Tells an outage from a mistake: only a client that had credentials before can be in an outage without them."""

    def __init__(self) -> None:
        self.had = False  # whether a request was ever signed

    def failed(self, function: str, error: Exception | None) -> Exception:
        """Return what an error of their source means. None is a source that did not answer in time."""
        if self.had:
            return Lost(f"the AWS credentials could not be renewed ({_kind(error)})", again=False)
        return no_credentials(function, error)


def no_credentials(function: str, error: Exception | None) -> ConfigurationError:
    """Return the error of a client that never had credentials. None is a source that did not answer in time."""
    if isinstance(error, NoCredentialsError | PartialCredentialsError):
        return ConfigurationError(_NONE, function)
    message = f"{function} could not be invoked: there are no AWS credentials ({_kind(error)})."
    return ConfigurationError(message + " Check the app's role, its profile and the network.", function)


def _kind(error: Exception | None) -> str:
    """Return which error the source of the credentials raised. Its text is left out: it could contain a secret."""
    if error is None:
        return "no answer in time"
    if isinstance(error, ClientError):
        return f"{error.operation_name}: {error.response.get('Error', {}).get('Code')}"
    return type(error).__name__
