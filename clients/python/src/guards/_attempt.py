"""Attempts, such as a sign-in: each counts before it is made, and a success gives it back."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from numbers import Number
from typing import TYPE_CHECKING, Any

from guards._arguments import described, must_be
from guards._callbacks import is_async, not_async, result_of, returned, true_or_false
from guards._decision import Decision
from guards._errors import GuardsError, ValidationError
from guards._moment import Moment
from guards._request import AnyActivity, AttemptOptions, CheckOptions, Request, holds, with_receipt

if TYPE_CHECKING:
    from guards._async import AsyncGuards
    from guards._base import Base
    from guards._client import Guards

# From when on a release may be too late, in seconds after the check was sent: a guard keeps a check for 20 s, and with Hold
# for 15 minutes.
LATE = 18.0
LATE_WITH_HOLD = 14 * 60.0

STATUSES = frozenset(map(str, range(100, 600)))  # of HTTP


class _Attempt:
    """What Attempt and AsyncAttempt have in common."""

    decision: Decision
    """The decision of the check. Its field remaining says how many attempts are left."""

    def __init__(
        self, guards: Base[Any], activity: AnyActivity, decision: Decision, began: Moment, *, clear: bool = False
    ) -> None:
        self.decision = decision
        self._client = guards
        self._began = began
        self._hold = holds(guards._settings, activity)
        self._clear = clear
        self._has_succeeded = False
        self._is_over = False

    @property
    def _function(self) -> str:
        return self._client._settings.prefix + self.decision.guard

    def _success(self) -> Request | None:
        """Note the success, and return the request that gives the attempt back; None: there is nothing to give back."""
        if self._has_succeeded:
            return None
        if self._is_over:
            raise ValidationError("the attempt is over and stays counted: call succeeded in the body of its with statement")
        self._has_succeeded = True
        if not self.decision.has_receipt:
            return None
        passed = self._began.age
        if passed > (LATE_WITH_HOLD if self._hold else LATE):
            lasts = "a guard knows a check for 15 minutes with Hold"
            advice = lasts if self._hold else f"{lasts}, which the list of activities must have, too"
            late = f"an attempt of {self.decision.activity} is given back {passed:.0f} s after its check"
            self._client._report(GuardsError(f"{late}, which may be too late: {advice}", self._function))
        return with_receipt(self._client._settings, "release", self.decision, clear=self._clear)

    def _end(self) -> bool:
        """End the attempt, and report whether it failed and has locked."""
        self._is_over = True
        crossed = [self.decision.crossed, *(limit.crossed for limit in self.decision.limits)]
        return not self._has_succeeded and 100 in crossed

    def _report(self, option: str, error: Exception) -> None:
        """Call warn with what a function of the app raised."""
        failure = GuardsError(f"the option {option} raised {type(error).__name__} for {self.decision.activity}", self._function)
        failure.__cause__ = error
        self._client._report(failure)


class Attempt(_Attempt):
    """An attempt that was counted: see Guards.attempt."""

    _client: Guards[Any]

    def succeeded(self) -> None:
        """Give the attempt back, at once. What happens afterwards changes nothing.

        A release that fails goes to the option warn, because the attempt itself
        has succeeded. A second call does nothing.
        """
        request = self._success()
        if request is not None:
            self._client._give_back(request)

    def _give_back_unless(self, count_if: Callable[[Any], object], response: object) -> None:
        """Give the attempt back if count_if returns False for a response. If it fails, the attempt counts, and warn is called."""
        try:
            counts = counted(not_async(count_if(response), "The option count_if"))
        except Exception as error:
            self._report("count_if", error)
            counts = True
        if not counts:
            self.succeeded()


class AsyncAttempt(_Attempt):
    """An attempt that was counted: see AsyncGuards.attempt."""

    _client: AsyncGuards[Any]

    async def succeeded(self) -> None:
        """Give the attempt back, at once. See Attempt.succeeded."""
        request = self._success()
        if request is not None:
            await self._client._release_at_the_end(request)

    async def _give_back_unless(self, count_if: Callable[[Any], object], response: object) -> None:
        """As of Attempt. count_if may be async."""
        try:
            counts = counted(await result_of(count_if(response)))
        except Exception as error:
            self._report("count_if", error)
            counts = True
        if not counts:
            await self.succeeded()


_OWN_ID = "an attempt counts once, with an id of its own, because a repeat of another id would not count"


def wrong_option(options: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the options of a check that can be given back; None: nothing is."""
    for name in sorted(CheckOptions.__annotations__.keys() - AttemptOptions.__annotations__.keys()):
        if options.get(name) is not None:
            return f"{name} does not go with an attempt: {_OWN_ID}"
    return None


def check_arguments(
    verify: object, succeeded: object, on_locked: object, clear: object, options: Mapping[str, Any], *, sync: bool
) -> None:
    """Raise an error for wrong arguments of attempt, before anything is sent."""
    given = {"the function of attempt": verify, "succeeded": succeeded, "on_locked": on_locked}
    for name, function in given.items():
        if function is not None and not callable(function):
            raise ValidationError(f"{name} is {described(function)}, want a function")
        if sync and function is not None and is_async(function):
            raise ValidationError(f"{name} is async, want a function that is not async")
    if verify is None and succeeded is not None:
        raise ValidationError("succeeded goes with a function; in the body of with, call the attempt's method succeeded")
    must_be("clear", clear, bool, "True or False")
    problem = wrong_option(options)
    if problem:
        raise ValidationError(problem)


def judge(result: Any, succeeded: Callable[[Any], Any] | None) -> Any:
    """Return whether a result is a success: what succeeded returns, or else whether Python calls the result true.

    What was returned by mistake, and would always be true, raises a
    ValidationError.
    """
    if not_run := _not_run(result):
        raise ValidationError(f"the function of attempt returned {not_run}, want its result")
    if succeeded is not None:
        return succeeded(result)
    if not result:
        return False
    if ambiguous := _ambiguous(result):
        message = f"the function of attempt returned {ambiguous}, which counts as true even if it means a failure"
        raise ValidationError(f"{message}: decide with the option succeeded")
    return True


def counted(value: object) -> bool:
    """Return what count_if returned. None is an error: a forgotten return would give everything back."""
    if isinstance(value, bool):
        return value
    raise returned("count_if", value, "True or False")


def decided(value: object) -> bool:
    """Return what judge decided."""
    return true_or_false("succeeded", not_async(value, "The option succeeded"))


def _not_run(result: Any) -> str | None:
    """Return what a result is if it has yet to run; None: it has run."""
    if inspect.iscoroutine(result):
        result.close()  # it will never be awaited
        return "a coroutine that nobody awaited"
    kind = type(result)
    is_future = hasattr(kind, "add_done_callback") or (hasattr(kind, "successful") and hasattr(kind, "ready"))
    if is_future or inspect.isawaitable(result):
        return "a future that nobody waited for"
    if inspect.isasyncgen(result) or (isinstance(result, Iterator) and iter(result) is result):
        return "a generator or another iterator"
    if inspect.isroutine(result) or inspect.isclass(result) or isinstance(result, functools.partial):
        return "a function or a class"
    if kind.__module__ == "contextlib":
        return "a context that nobody entered"
    if hasattr(kind, "is_alive"):
        return "a thread or a process"
    return None


def _ambiguous(result: Any) -> str | None:
    """Return what a result is if it is true and can mean a failure, such as a response with the status 401; None: it is not."""
    if isinstance(result, tuple):  # such as False, "wrong password", or a response of Flask
        return "a tuple"
    if isinstance(result, Enum):  # such as Result.WRONG
        return "a member of an enum"
    if isinstance(result, BaseException):
        return "an exception"
    if isinstance(result, Decision):
        return "a decision"
    if isinstance(result, Number) and result != result:
        return "NaN"
    if isinstance(result, Mapping):
        is_response = "statusCode" in result or "StatusCode" in result or str(result.get("status")) in STATUSES
        return "a response" if is_response else None
    has_status = isinstance(getattr(result, "status_code", None), int)
    if has_status or (isinstance(getattr(result, "status", None), int | str) and hasattr(result, "headers")):
        return "a response"
    return None
