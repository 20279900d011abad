"""What Guards and AsyncGuards have in common."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, Literal

from guards._arguments import described, must_be, must_be_count
from guards._ask import Asker
from guards._breaker import Breaker
from guards._callbacks import is_async, not_async
from guards._decision import Decision
from guards._errors import ConfigurationError, GuardsError, LimitedError, Lost, NoThread, OutageError, ValidationError
from guards._options import Settings, addresses, entries
from guards._process import Own
from guards._request import A, AnyActivity, CheckOptions, Request, Subjects, any_subjects, new_request, with_receipt
from guards._retry import Plan

Listed = tuple[str, int | None] | tuple[str, int | None, tuple[str, ...]]

_log = logging.getLogger("guards")

READY = "ready"  # the id of the user and of the subjects of ready()


class Base(Generic[A]):
    """A client of the guards. It can be used by several threads at the same time; an app needs only one.

    Options:

    client: boto3's Lambda client, such as boto3.client("lambda"), whose
        region, endpoint, credentials and proxies apply. By default a new one.
        Requests are not repeated by boto3, and they use other connections
        than the client's own. Its argument verify has no effect on them: set
        AWS_CA_BUNDLE instead.
    activities: the list that guards generate writes: ACTIVITIES of
        activities/activities.py, or what activities/activities.json contains.
        Without it, or with an empty one, each call names its guard with a
        GuardActivity.
    urls: the Function URL of each guard that is asked by URL instead of
        Invoke, such as {"photos-guard": "https://..."}. The requests are
        signed with the credentials of the client. With a list of activities,
        each guard must be in it.
    prefix: comes before the name of each guard; "" by default.
    on_outage: "allow" (the default) or "deny": the decision of a check if the
        guard does not answer.
    timeout: seconds for a whole call with all its attempts; 3 by default, and
        at most 2147483. They begin when its request has a thread and a
        connection. The client asks with 50 of them at the same time, or with
        max_pool_connections of its Lambda client if that is more. The wait
        for one has no limit.
    max_tries: how many times a request is sent at most; 3 by default.
    decision_timeout: DECISION_TIMEOUT of the guards in seconds; 1 by default.
    warn: is called with the OutageError of a check that on_outage decided, and
        with the error of a renewal that failed, at most once a second; and with
        the error of each release that guarded or slot could not make. It must not be async. If it raises an error, that is
        logged. By default it logs a warning with the logger "guards".

    A wrong option raises a ConfigurationError.
    """

    def __init__(
        self,
        *,
        client: Any = None,
        activities: Mapping[A, Listed] | Mapping[A, Mapping[str, Any]] | None = None,
        urls: Mapping[str, str] | None = None,
        prefix: str = "",
        on_outage: Literal["allow", "deny"] = "allow",
        timeout: float = 3.0,
        max_tries: int = 3,
        decision_timeout: float = 1.0,
        warn: Callable[[GuardsError], object] | None = None,
    ) -> None:
        if warn is not None and (not callable(warn) or is_async(warn)):
            raise ConfigurationError(f"The option warn is {warn!r}, want a function that is not async.")
        self._settings = Settings(
            activities=entries(activities),
            urls=addresses(urls),
            prefix=prefix,
            on_outage=on_outage,
            timeout=timeout,
            max_tries=max_tries,
            decision_timeout=decision_timeout,
        )
        self._asker = Asker(client, timeout)
        self._own_breaker = Own(lambda: Breaker(self._asker.refuse))
        self._warn = warn or _log_warning
        self._warned = float("-inf")
        self._warning = Own(threading.Lock)

    @property
    def _breaker(self) -> Breaker:
        return self._own_breaker.get()

    def close(self) -> None:
        """Close connections that are not in use. Later calls open new ones."""
        self._asker.close()

    def _check_request(self, activity: AnyActivity, user_id: str, options: CheckOptions) -> Request:
        return new_request(self._settings, "check", activity, user_id=user_id, **options)

    def _receipt_request(
        self,
        op: str,
        what: AnyActivity | Decision,
        user_id: str | None,
        at: int | None,
        request_id: str | None,
        count: int | None,
        subjects: Subjects | None,
    ) -> Request:
        if isinstance(what, Decision):
            if (user_id, at, request_id, count, subjects) != (None, None, None, None, None):
                raise TypeError(f"{op} takes either a decision or the fields of its receipt")
            return with_receipt(self._settings, op, what)
        if user_id is None or at is None or request_id is None:
            raise TypeError(f"{op} needs user_id, at and request_id")
        receipt: dict[str, Any] = {"at": at, "request_id": request_id, "count": count, "subjects": subjects}
        return new_request(self._settings, op, what, user_id=user_id, **receipt)

    def _ready_request(self, activity: AnyActivity) -> Request:
        subjects = any_subjects(self._settings, activity, READY)
        return new_request(self._settings, "status", activity, user_id=READY, subjects=subjects)

    def _settleable(self, decision: Decision) -> Decision:
        vars(decision)["_client"] = self  # no field, because apps compare, copy and print the fields
        return decision

    @contextmanager
    def _settlement(self, decision: Decision, used: int) -> Iterator[Request | None]:
        """Run a release of what is left in this context; None: nothing is left to give back."""
        must_be("the decision", decision, Decision, "that of a check")
        must_be_count("used", used)
        if decision._slot:
            what = "the decision is that of a slot, which can't be settled"
            raise ValidationError(f"{what}: the slot gives back everything when its with statement ends")
        left = (decision.granted or 0) - used
        if left <= 0 or not decision.has_receipt or decision._is_settled:
            yield None
            return
        vars(decision)["_is_settled"] = True
        try:
            yield with_receipt(self._settings, "release", decision, left)
        except BaseException:
            vars(decision)["_is_settled"] = False
            raise

    def _plan(self, request: Request) -> Plan:
        return Plan(self._settings.timeout, self._settings.attempt, request.max_tries)

    def _late(self, request: Request, seconds: float | None) -> Exception:
        """Return the error of an attempt that had no answer in so many seconds. None: it had no credentials in time."""
        if seconds is None:
            return self._asker.late(request)
        return Lost(f"no answer in {round(seconds * 1000)} ms")

    def _without_guard(self, request: Request, outage: OutageError) -> Decision:
        """Return the decision of a check in an outage."""
        self._report_sometimes(outage if outage.answered or self._asker.reached else _never_reached(outage))
        if self._settings.on_outage == "allow":
            count = request.event.get("count", 1)
            return request.decision(allowed=True, reason="unavailable", granted=count, outage=outage)
        message = "Please try again later."
        return request.decision(allowed=False, reason="unavailable", granted=0, message=message, outage=outage)

    def _report_sometimes(self, error: GuardsError) -> None:
        """Call warn, at most once a second."""
        now = time.monotonic()
        with self._warning.get():
            is_due = now - self._warned >= 1
            if is_due:
                self._warned = now
        if is_due:
            self._report(error)

    def _runs(self, fn: object) -> None:
        """Raise an error for what guarded can't run."""
        if not callable(fn):
            raise ValidationError(f"the function of guarded is {described(fn)}, want a function")

    def _admit(self, decision: Decision) -> None:
        """Raise a LimitedError for a decision that does not let the user go on."""
        if not decision.allowed:
            raise LimitedError(decision, self._settings.prefix + decision.guard) from decision.outage

    def _report(self, error: GuardsError) -> None:
        """Call warn. An error of warn itself is logged, because it must not hide the app's."""
        try:
            not_async(self._warn(error), "The option warn")
        except Exception:
            _log.exception("the option warn raised an error")


def failed(request: Request, last: Lost) -> GuardsError:
    """Return the error of a call, given the end of its last attempt."""
    if isinstance(last, NoThread):
        message = f"{request.function} could not be invoked: no thread is left for the request: {last}"
        return ConfigurationError(message, request.function)
    return OutageError(f"{request.function} did not answer: {last}", request.function, answered=last.answered)


def _never_reached(outage: OutageError) -> OutageError:
    """Return the warning of an outage if nothing has ever answered this client."""
    hint = "Lambda has not answered this client since it started: check the network."
    warning = OutageError(f"{outage}. {hint} In a VPC, the app needs a NAT gateway or an endpoint for Lambda.", outage.guard)
    warning.__cause__ = outage
    return warning


def _log_warning(error: GuardsError) -> None:
    _log.warning("%s", error)
