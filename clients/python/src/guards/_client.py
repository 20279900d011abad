"""The client for ordinary functions."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar, overload

from guards._arguments import must_be
from guards._attempt import Attempt, check_arguments, decided, judge
from guards._base import Base
from guards._breaker import PAUSE
from guards._callbacks import is_async, must_not_be_async, not_async
from guards._context import Context
from guards._decision import Decision, time_to_wait
from guards._errors import GuardsError, NoThread, OutageError
from guards._moment import Moment
from guards._places import Places
from guards._request import (
    A,
    AttemptOptions,
    CheckOptions,
    GuardActivity,
    Receipt,
    Request,
    StatusOptions,
    new_request,
    ready_requests,
    with_receipt,
)
from guards._slot import Slot, before_the_second_release

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")


class Guards(Base[A]):
    __doc__ = Base.__doc__

    _new_queue = Places

    def check(self, activity: A | GuardActivity, *, user_id: str, **options: Unpack[CheckOptions]) -> Decision:
        """Count the action and decide whether the user may go on. The options are in CheckOptions.

        In an outage, the option on_outage of the client decides. A mistake
        raises a ConfigurationError, ValidationError or AnswerError.
        """
        request = new_request(self._settings, "check", activity, user_id=user_id, **options)
        began = time.monotonic()
        try:
            decision = self._ask(request)
            if denial := self._denial(request, decision):
                self._after(decision, denial)
                raise denial
            return self._settleable(self._observed(request, decision, began))
        except OutageError as outage:
            return self._without_guard(request, outage, began)

    def status(self, activity: A | GuardActivity, *, user_id: str, **options: Unpack[StatusOptions]) -> Decision:
        """Decide as check would, but count nothing."""
        return self._decide(new_request(self._settings, "status", activity, user_id=user_id, **options))

    @overload
    def release(self, activity: Decision, /, *, clear: bool = False) -> Decision: ...
    @overload
    def release(
        self, activity: A | GuardActivity, /, *, user_id: str, clear: bool = False, **receipt: Unpack[Receipt]
    ) -> Decision: ...
    def release(self, activity: A | GuardActivity | Decision, /, *, clear: bool = False, **receipt: Any) -> Decision:
        """Give back what a check counted: all of it, given the check's decision, or count actions (1 by default).

        Without the decision, it needs the subjects, the tier and the limit of
        the check. With clear, the failures of the user in a lockout are
        forgotten, too, after a success. Use it only if the user id is the
        account, alone or with the address; the activity must have a lockout.
        """
        return self._decide(self._receipt_request("release", activity, receipt, clear=clear))

    @overload
    def renew(self, activity: Decision, /) -> Decision: ...
    @overload
    def renew(self, activity: A | GuardActivity, /, *, user_id: str, **receipt: Unpack[Receipt]) -> Decision: ...
    def renew(self, activity: A | GuardActivity | Decision, /, **receipt: Any) -> Decision:
        """Keep a slot of an activity whose limit is a log, given the decision of the check or of the last renewal.

        The answer has a new receipt, and the slot counts until held_until. If
        it does not count any more, the answer is not allowed, and its reason is
        expired. slot renews by itself.
        """
        return self._decide(self._receipt_request("renew", activity, receipt))

    def settle(self, decision: Decision, used: int) -> None:
        """Give back what a check granted and the app did not use, once, with one release.

        It does nothing if nothing is left, and if the decision has no receipt.
        In an outage it raises an OutageError. Then it can be called again.
        """
        with self._settlement(decision, used) as request:
            if request is not None:
                self._decide(request)

    def reset(self, activity: A | GuardActivity, *, user_id: str) -> Decision:
        """Clear what is counted for the user, and nothing of its subjects.

        It is sent once, because a repeat could delete what was counted since.
        After an OutageError, look at status before you reset again.
        """
        return self._decide(new_request(self._settings, "reset", activity, user_id=user_id))

    @overload
    def guarded(
        self, activity: A | GuardActivity, fn: Callable[[Decision], T], /, *, user_id: str, **options: Unpack[CheckOptions]
    ) -> T: ...
    @overload
    def guarded(
        self, activity: A | GuardActivity, /, *, user_id: str, **options: Unpack[CheckOptions]
    ) -> AbstractContextManager[Decision]: ...
    def guarded(
        self, activity: A | GuardActivity, fn: Callable[[Decision], Any] | None = None, /, *, user_id: str, **options: Any
    ) -> Any:
        """Check, and run fn(decision) if the user may go on; or, without fn, the body of a with statement.

        A refusal raises a LimitedError, and nothing runs. If fn or the body
        raises an error, what was counted is given back, and the error goes on.
        A release that fails goes to the option warn. A place of a reservoir
        can't be given back. fn must not be async: its errors would come too
        late to give anything back.
        """
        context = Context(lambda: self._admit(self.check(activity, user_id=user_id, **options)), self._after)
        if fn is None:
            return context
        self._runs(fn)
        if is_async(fn):
            raise must_not_be_async("The function of guarded")
        with context as decision:
            return not_async(fn(decision), "The function of guarded")

    def _after(self, decision: Decision, error: BaseException | None) -> None:
        if error is not None and decision.has_receipt:
            self._give_back(with_receipt(self._settings, "release", decision))

    def _give_back(self, release: Request, *, twice: bool = False) -> None:
        try:
            try:
                self._decide(release)
            except GuardsError:
                if not twice:
                    raise
                time.sleep(before_the_second_release())
                self._decide(release)
        except GuardsError as error:
            self._report(error)

    @overload
    def attempt(
        self,
        activity: A | GuardActivity,
        verify: Callable[[Decision], T],
        /,
        *,
        user_id: str,
        clear: bool = False,
        succeeded: Callable[[T], bool | None] | None = None,
        on_locked: Callable[[Decision], object] | None = None,
        **options: Unpack[AttemptOptions],
    ) -> T: ...
    @overload
    def attempt(
        self,
        activity: A | GuardActivity,
        /,
        *,
        user_id: str,
        clear: bool = False,
        on_locked: Callable[[Decision], object] | None = None,
        **options: Unpack[AttemptOptions],
    ) -> AbstractContextManager[Attempt]: ...
    def attempt(
        self,
        activity: A | GuardActivity,
        verify: Callable[[Decision], T] | None = None,
        /,
        *,
        user_id: str,
        clear: bool = False,
        succeeded: Callable[[T], bool | None] | None = None,
        on_locked: Callable[[Decision], object] | None = None,
        **options: Unpack[AttemptOptions],
    ) -> Any:
        """Count an attempt, such as a sign-in, and then run verify(decision). A success gives the attempt back.

        So guesses at the same time count, too. A refusal raises a LimitedError,
        and nothing runs. The check has an id of its own: request_id, count and
        other options that an attempt does not have raise a ValidationError.

        A result that Python calls true is a success, and is returned. After a
        false value or an error the attempt stays counted, and the value or the
        error goes on. A coroutine, a generator or a function was not run, and
        is a ValidationError. So is what is true and can mean a failure: a
        response, a tuple, a member of an enum, an exception, a Decision or NaN.
        For these, succeeded(result) decides with True or False.

        Without verify, it is the context of a with statement, whose body calls
        attempt.succeeded(). If it does not, the attempt stays counted.

        clear: a success also ends the failures in the user's lockout. Use it
            only if the user id is the account, alone or with the address.
        on_locked: is called with the decision, once, after the failure that
            locked or used up a limit (crossed is 100), for example to send a
            mail. If it raises an error, that goes to the option warn.

        A success later than 18 s after the check may be too late to be given
        back, or 14 minutes if the activity has Hold in the list. It is tried,
        and warn says so. A release that fails goes to warn, too.
        """
        check_arguments(verify, succeeded, on_locked, clear, options, sync=True)

        def begin() -> Attempt:
            attempt = self._counted(activity, user_id, options, clear=clear)
            self._admit(attempt.decision)
            return attempt

        def end(attempt: Attempt, _: BaseException | None) -> None:
            if attempt._end() and on_locked is not None:
                try:
                    not_async(on_locked(attempt.decision), "The option on_locked")
                except Exception as error:
                    attempt._report("on_locked", error)

        context = Context(begin, end)
        if verify is None:
            return context
        with context as attempt:
            result = verify(attempt.decision)
            if decided(judge(result, succeeded)):
                attempt.succeeded()
            return result

    def _counted(self, activity: A | GuardActivity, user_id: str, options: Any, *, clear: bool = False) -> Attempt:
        """Return an attempt that was checked. It can be refused."""
        began = Moment()
        decision = self.check(activity, user_id=user_id, **options)
        return Attempt(self, activity, decision, began, clear=clear)

    def slot(
        self, activity: A | GuardActivity, *, user_id: str, or_raise: bool = False, **options: Unpack[CheckOptions]
    ) -> AbstractContextManager[Slot]:
        """Check, and keep what the check counted while the body of a with statement runs.

        The limit of the activity is a log, such as log 3/10m: at most three at
        once. A thread renews the slot, and it is released at the end, also
        after an error. Look at its attribute lost between the steps of the
        work, and stop if it is true.

        Like check, it does not raise a refusal: look at its attribute allowed.
        With or_raise, a refusal raises a LimitedError. If the limit is not a
        log, it raises a ValidationError.
        """
        must_be("or_raise", or_raise, bool, "True or False")
        return Context(lambda: self._open(activity, user_id, or_raise, options), lambda slot, _: self._free(slot))

    def _open(self, activity: A | GuardActivity, user_id: str, or_raise: bool, options: CheckOptions) -> Slot:
        sent = Moment()
        decision = self.check(activity, user_id=user_id, **options)
        if or_raise:
            self._admit(decision)
        slot = Slot(decision, sent, self._settings)
        try:
            slot._must_be_of_a_log()
            if slot._held:
                try:
                    threading.Thread(target=self._keep, args=(slot,), name="guards-slot", daemon=True).start()
                except RuntimeError as error:
                    raise self._way.failed(slot._renewal(), NoThread(str(error))) from error
        except BaseException:
            self._free(slot)
            raise
        return slot

    def _keep(self, slot: Slot) -> None:
        """Renew a slot until it is released or lost."""
        while (left := slot._left()) is not None and not slot._ended.wait(min(left, PAUSE)):
            if left <= PAUSE and not slot.lost:
                self._renew(slot)

    def _renew(self, slot: Slot) -> None:
        try:
            slot._renewed(self._decide(slot._renewal()))
        except GuardsError as error:
            if not slot._ended.is_set():
                self._report_sometimes(error)
            slot._repeat()

    def _free(self, slot: Slot) -> None:
        if (release := slot._release()) is not None:
            self._give_back(release, twice=True)

    def ready(self, *activities: A | GuardActivity) -> None:
        """Ask each guard for a status at the same time, so that mistakes show when the app starts.

        With activities, only their guards are asked. The user id is "ready",
        and so are the ids of the subjects that the list has. Without a list, an agent is asked whether its limits and
        settings are right.
        It raises the same errors as status. If several guards fail, the
        error of the first one is raised.
        """
        from concurrent.futures import ThreadPoolExecutor  # takes 10 ms to load

        requests = ready_requests(self._settings, activities)
        with ThreadPoolExecutor(len(requests)) as pool:
            try:
                answers = [pool.submit(self._ask, request) for request in requests]
            except RuntimeError as error:
                raise self._way.failed(requests[0], NoThread(str(error))) from error
        for answer in answers:
            answer.result()

    def wait(self, decision: Decision, *, max_wait: float = 60.0) -> bool:
        """Sleep until the same request can pass, and return True.

        If that takes more than max_wait seconds, or if the user is blocked, it returns False at once. A
        decision of shadow mode, or one without a wait_time or with 0, returns at once,
        too: True if it is allowed, and False if not, for example in an outage.
        """
        seconds = time_to_wait(decision, max_wait)
        if seconds is None:
            return False
        time.sleep(seconds)
        return True

    def _decide(self, request: Request) -> Decision:
        began = time.monotonic()
        return self._observed(request, self._ask(request), began)

    def _ask(self, request: Request) -> Decision:
        call = self._new_call(request)
        with self._queue.get():
            return self._make(request, call)
