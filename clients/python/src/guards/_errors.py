"""The errors of this package. No message contains a user id or a request id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from guards._decision import Decision


class GuardsError(Exception):
    """The base of all errors of this package."""

    guard: str
    """The name of the guard's function, with its prefix; "" if no function is concerned."""

    def __init__(self, message: str, guard: str = "") -> None:
        super().__init__(message)
        self.guard = guard


class ConfigurationError(GuardsError):
    """The app is not set up to ask the guard: an option, the region, the credentials, a permission, a name or a host is wrong."""


class ValidationError(GuardsError):
    """The request is wrong. Nothing was counted."""


class AnswerError(GuardsError):
    """The function crashed, or its answer is not a guard's answer."""


class OutageError(GuardsError):
    """The guard did not answer in time, could not be reached, or could not ask its table."""

    answered: bool
    """Whether the guard itself reported that it can't decide. Then it may still decide about other users."""

    def __init__(self, message: str, guard: str = "", *, answered: bool = False) -> None:
        super().__init__(message, guard)
        self.answered = answered


class LimitedError(GuardsError):
    """A guarded action was refused, so it did not run. In an outage, its __cause__ is the OutageError."""

    decision: Decision
    """The refusal."""

    def __init__(self, decision: Decision, guard: str = "") -> None:
        super().__init__(decision.message or "Please try again later.", guard)
        self.decision = decision

    def __reduce__(self) -> tuple[Any, ...]:
        """Let a copy be made of the decision: an Exception makes it of its message."""
        return type(self), (self.decision, self.guard), vars(self)


class Lost(Exception):  # noqa: N818
    """One attempt ended in an outage. The message is the cause. It never leaves this package."""

    def __init__(self, cause: str, *, again: bool = True, answered: bool = False, refused: bool = False) -> None:
        super().__init__(cause)
        self.refused = refused  # whether nobody listens at the address
        self.again = again  # whether a further attempt may help
        self.answered = answered  # whether the guard itself reported it


class NoThread(Lost):
    """No thread could be started for an attempt. That is no outage: the guard was not asked."""
