"""The client for asyncio."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import TYPE_CHECKING, Any, TypeVar, overload

from guards._arguments import must_be
from guards._attempt import AsyncAttempt, check_arguments, decided, judge
from guards._base import Base
from guards._breaker import PAUSE
from guards._call import Call
from guards._callbacks import result_of
from guards._context import AsyncContext
from guards._decision import Decision, time_to_wait
from guards._errors import GuardsError, NoThread, OutageError
from guards._moment import Moment
from guards._places import Workers
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


class AsyncGuards(Base[A]):
    __doc__ = f"""{Base.__doc__}
    Each call runs in a thread. A call that is cancelled breaks its connection.
    """

    _new_queue = Workers

    async def check(self, activity: A | GuardActivity, *, user_id: str, **options: Unpack[CheckOptions]) -> Decision:
        """Count the action and decide whether the user may go on. See Guards.check.

        If the call is cancelled, the guard may have counted the action, and
        on_outage does not decide. A timeout of the app, such as
        asyncio.timeout, cancels too: make the option timeout shorter than it.
        """
        request = new_request(self._settings, "check", activity, user_id=user_id, **options)
        began = time.monotonic()
        try:
            decision = await self._ask(request)
            if denial := self._denial(request, decision):
                await self._after(decision, denial)
                raise denial
            return self._settleable(self._observed(request, decision, began))
        except OutageError as outage:
            return self._without_guard(request, outage, began)

    async def status(self, activity: A | GuardActivity, *, user_id: str, **options: Unpack[StatusOptions]) -> Decision:
        """Decide as check would, but count nothing."""
        return await self._decide(new_request(self._settings, "status", activity, user_id=user_id, **options))

    @overload
    async def release(self, activity: Decision, /, *, clear: bool = False) -> Decision: ...
    @overload
    async def release(
        self, activity: A | GuardActivity, /, *, user_id: str, clear: bool = False, **receipt: Unpack[Receipt]
    ) -> Decision: ...
    async def release(self, activity: A | GuardActivity | Decision, /, *, clear: bool = False, **receipt: Any) -> Decision:
        """Give back what a check counted. See Guards.release."""
        return await self._decide(self._receipt_request("release", activity, receipt, clear=clear))

    @overload
    async def renew(self, activity: Decision, /) -> Decision: ...
    @overload
    async def renew(self, activity: A | GuardActivity, /, *, user_id: str, **receipt: Unpack[Receipt]) -> Decision: ...
    async def renew(self, activity: A | GuardActivity | Decision, /, **receipt: Any) -> Decision:
        """Keep a slot of an activity whose limit is a log. See Guards.renew."""
        return await self._decide(self._receipt_request("renew", activity, receipt))

    async def settle(self, decision: Decision, used: int) -> None:
        """Give back what a check granted and the app did not use. See Guards.settle."""
        with self._settlement(decision, used) as request:
            if request is not None:
                await self._decide(request)

    async def reset(self, activity: A | GuardActivity, *, user_id: str) -> Decision:
        """Clear what is counted for the user. See Guards.reset."""
        return await self._decide(new_request(self._settings, "reset", activity, user_id=user_id))

    @overload
    def guarded(
        self,
        activity: A | GuardActivity,
        fn: Callable[[Decision], Awaitable[T]],
        /,
        *,
        user_id: str,
        **options: Unpack[CheckOptions],
    ) -> Awaitable[T]: ...
    @overload
    def guarded(
        self, activity: A | GuardActivity, /, *, user_id: str, **options: Unpack[CheckOptions]
    ) -> AbstractAsyncContextManager[Decision]: ...
    def guarded(
        self, activity: A | GuardActivity, fn: Callable[[Decision], Any] | None = None, /, *, user_id: str, **options: Any
    ) -> Any:
        """Check, and run fn(decision) or the body of an async with statement. See Guards.guarded.

        What was counted is also given back if fn or the body is cancelled. fn
        is async, but need not be.
        """
        context = AsyncContext(lambda: self._admitted(activity, user_id, options), self._after)
        if fn is None:
            return context
        self._runs(fn)
        return self._run(context, fn)

    async def _run(self, context: AbstractAsyncContextManager[Decision], fn: Callable[[Decision], Awaitable[T]]) -> T:
        async with context as decision:
            return await result_of(fn(decision))

    async def _admitted(self, activity: A | GuardActivity, user_id: str, options: Any) -> Decision:
        return self._admit(await self.check(activity, user_id=user_id, **options))

    async def _after(self, decision: Decision, error: BaseException | None) -> None:
        if error is not None and decision.has_receipt:
            await self._release_at_the_end(with_receipt(self._settings, "release", decision))

    @overload
    def attempt(
        self,
        activity: A | GuardActivity,
        verify: Callable[[Decision], Awaitable[T]],
        /,
        *,
        user_id: str,
        clear: bool = False,
        succeeded: Callable[[T], bool | Awaitable[bool | None] | None] | None = None,
        on_locked: Callable[[Decision], object] | None = None,
        **options: Unpack[AttemptOptions],
    ) -> Awaitable[T]: ...
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
    ) -> AbstractAsyncContextManager[AsyncAttempt]: ...
    def attempt(
        self,
        activity: A | GuardActivity,
        verify: Callable[[Decision], Awaitable[T]] | None = None,
        /,
        *,
        user_id: str,
        clear: bool = False,
        succeeded: Callable[[T], bool | Awaitable[bool | None] | None] | None = None,
        on_locked: Callable[[Decision], object] | None = None,
        **options: Unpack[AttemptOptions],
    ) -> Any:
        """Count an attempt, and then run verify(decision). A success gives the attempt back. See Guards.attempt.

        Without verify, it is the context of an async with statement, whose body
        awaits attempt.succeeded(). An attempt that is cancelled stays counted.
        The functions are async, but need not be.
        """
        check_arguments(verify, succeeded, on_locked, clear, options, sync=False)

        async def begin() -> AsyncAttempt:
            attempt = await self._counted(activity, user_id, options, clear=clear)
            self._admit(attempt.decision)
            return attempt

        async def end(attempt: AsyncAttempt, _: BaseException | None) -> None:
            if attempt._end() and on_locked is not None:
                try:
                    await result_of(on_locked(attempt.decision))
                except Exception as error:
                    attempt._report("on_locked", error)

        context = AsyncContext(begin, end)
        return context if verify is None else self._verified(context, verify, succeeded)

    async def _verified(
        self,
        context: AbstractAsyncContextManager[AsyncAttempt],
        verify: Callable[[Decision], Awaitable[T]],
        succeeded: Callable[[T], Any] | None,
    ) -> T:
        async with context as attempt:
            result: T = await result_of(verify(attempt.decision))
            if decided(await result_of(judge(result, succeeded))):
                await attempt.succeeded()
            return result

    async def _counted(self, activity: A | GuardActivity, user_id: str, options: Any, *, clear: bool = False) -> AsyncAttempt:
        """Return an attempt that was checked. It can be refused."""
        began = Moment()
        decision = await self.check(activity, user_id=user_id, **options)
        return AsyncAttempt(self, activity, decision, began, clear=clear)

    def slot(
        self, activity: A | GuardActivity, *, user_id: str, or_raise: bool = False, **options: Unpack[CheckOptions]
    ) -> AbstractAsyncContextManager[Slot]:
        """Check, and keep what the check counted while the body of an async with statement runs. See Guards.slot.

        A task renews the slot. The slot is also released if the body is cancelled.
        """
        must_be("or_raise", or_raise, bool, "True or False")
        return AsyncContext(lambda: self._open(activity, user_id, or_raise, options), lambda slot, _: self._free(slot))

    async def _open(self, activity: A | GuardActivity, user_id: str, or_raise: bool, options: CheckOptions) -> Slot:
        sent = Moment()
        decision = await self.check(activity, user_id=user_id, **options)
        if or_raise:
            self._admit(decision)
        slot = Slot(decision, sent, self._settings)
        try:
            slot._must_be_of_a_log()
        except BaseException:
            await self._free(slot)
            raise
        slot._renewals = asyncio.create_task(self._keep(slot))
        return slot

    async def _free(self, slot: Slot) -> None:
        if slot._renewals is not None:
            slot._renewals.cancel()
        if (request := slot._release()) is not None:
            await self._release_at_the_end(request, twice=True)

    async def _keep(self, slot: Slot) -> None:
        """Renew a slot until it is released or lost."""
        while (left := slot._left()) is not None:
            await asyncio.sleep(min(left, PAUSE))
            if left > PAUSE or slot.lost:
                continue
            try:
                slot._renewed(await self._decide(slot._renewal()))
            except GuardsError as error:
                self._report_sometimes(error)
                slot._repeat()

    async def _release_at_the_end(self, request: Request, *, twice: bool = False) -> None:
        async def release() -> None:
            try:
                try:
                    await self._decide(request)
                except GuardsError:
                    if not twice:
                        raise
                    await asyncio.sleep(before_the_second_release())
                    await self._decide(request)
            except GuardsError as error:
                self._report(error)
            except asyncio.CancelledError:  # the loop ends
                function = request.function
                self._report(GuardsError(f"the release of an action of {function} was cancelled", function))
                raise

        await asyncio.shield(asyncio.create_task(release()))  # even if the app is cancelled a second time

    async def ready(self, *activities: A | GuardActivity) -> None:
        """Ask each guard for a status at the same time. See Guards.ready."""
        requests = ready_requests(self._settings, activities)
        answers = await asyncio.gather(*(self._ask(request) for request in requests), return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer

    async def wait(self, decision: Decision, *, max_wait: float = 60.0) -> bool:
        """Sleep until the same request can pass. See Guards.wait."""
        seconds = time_to_wait(decision, max_wait)
        if seconds is None:
            return False
        await asyncio.sleep(seconds)
        return True

    async def _decide(self, request: Request) -> Decision:
        began = time.monotonic()
        return self._observed(request, await self._ask(request), began)

    async def _ask(self, request: Request) -> Decision:
        call = self._new_call(request)
        job = Job(lambda: self._make(request, call), call)
        workers = self._queue.get()
        try:
            workers.add(job)
        except NoThread as error:
            raise self._way.failed(request, error) from error
        try:
            return await job.answer
        except asyncio.CancelledError:
            workers.drop(job)
            call.give_up()
            if call.finding is not None:
                self._breaker.undo(call.finding)
            raise


class Job:
    """A call that a worker makes, and its answer in the event loop."""

    def __init__(self, run: Callable[[], Decision], call: Call) -> None:
        self._loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[Decision] = self._loop.create_future()
        self._run = run
        self._call = call

    def __call__(self) -> None:
        """Make the call in this thread."""
        if self._call.is_over:
            return
        settle: Callable[[Any], None] = self.answer.set_result
        outcome: Decision | BaseException
        try:
            outcome = self._run()
        except BaseException as error:
            settle, outcome = self.answer.set_exception, error
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._deliver, settle, outcome)

    def _deliver(self, settle: Callable[[Any], None], outcome: Decision | BaseException) -> None:
        if not self.answer.done():  # it was cancelled
            settle(outcome)
