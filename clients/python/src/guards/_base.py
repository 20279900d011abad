"""What Guards and AsyncGuards have in common."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Generic, Literal

from guards._arguments import described, must_be, must_be_count
from guards._breaker import Breaker
from guards._call import Call, Plan
from guards._callbacks import is_async, not_async
from guards._decision import Decision, anonymous
from guards._errors import ConfigurationError, GuardsError, LimitedError, Lost, OutageError, ValidationError
from guards._lambda import Lean
from guards._moment import Moment
from guards._options import Settings, addresses, agent_of, entries
from guards._process import Own
from guards._request import (
    A,
    AnyActivity,
    Receipt,
    Request,
    new_request,
    with_receipt,
)
from guards._way import Way

Listed = (
    tuple[str, int | None]
    | tuple[str, int | None, tuple[str, ...]]
    | tuple[str, int | None, bool]
    | tuple[str, int | None, tuple[str, ...], bool]
)


class Base(Generic[A]):
    """A client of the guards. It can be used by several threads at the same time; an app needs only one.

    Options:

    activities: the list that guards generate writes: ACTIVITIES of
        activities/activities.py, or what activities/activities.json contains.
        Without it, or with an empty one, each call names its guard with a
        GuardActivity.
    urls: the Function URL of each guard that is asked by URL instead of
        Invoke, such as {"photos-guard": "https://..."}. The requests are
        signed. With a list of activities, each guard must be in it.
    prefix: comes before the name of each guard; "" by default.
    on_outage: "allow" (the default) or "deny": the decision of a check if the
        guard does not answer.
    timeout: seconds for a whole call with all its attempts; 3 by default, and
        at most 2147483. They begin when its request has a connection, or
        begins to open one. The wait for one has no limit.
    max_tries: how many times a request is sent at most; 3 by default.
    decision_timeout: DECISION_TIMEOUT of the guards in seconds; 1 by default.
    warn: is called with the OutageError of a check that on_outage decided, and
        with the error of a renewal that failed, at most once a second; and with
        the error of each release that guarded, attempt, slot or a denied check
        could not make, that an attempt succeeded too late, or that on_locked or
        count_if raised.
        It must not be async. If it raises an error, that is logged. By default
        it logs a warning with the logger "guards".
    observe: is called with each decision, the seconds that it took, and its
        way: "invoke", "url" or "agent". The decision has no ids: not the user's, the request's, or a subject's. It must not be
        async. If it raises an error, that is logged.
    agent: the address of an agent, such as http://127.0.0.1:2774 or
        unix:/PATH, which is asked instead of Lambda. By default the variable
        GUARDS_AGENT. It does not go with the options for Lambda: client, urls,
        credentials, region and endpoint. The variable is stronger than these.
    token: the agent's token, if it has one. By default the variable
        GUARDS_AGENT_TOKEN.
    credentials: Credentials(access_key, secret_key, token), a function that
        returns them before each request, or credentials of botocore. By
        default those that boto3 finds. All but those of variables need
        botocore.
    region: the region of the guards; by default the one that boto3 finds, or
        AWS_REGION.
    endpoint: the URL of Lambda; by default that of the region.
    connections: how many calls at most ask at the same time; 50 by default.
    client: boto3's Lambda client, whose region, endpoint, credentials and
        proxies apply. Requests are not repeated by boto3, and they use other
        connections than the client's own. Its argument verify has no effect on
        them: set AWS_CA_BUNDLE instead. It goes after version 0.1.

    A wrong option raises a ConfigurationError.
    """

    def __init__(
        self,
        *,
        activities: Mapping[A, Listed] | Mapping[A, Mapping[str, Any]] | None = None,
        urls: Mapping[str, str] | None = None,
        prefix: str = "",
        on_outage: Literal["allow", "deny"] = "allow",
        timeout: float = 3.0,
        max_tries: int = 3,
        decision_timeout: float = 1.0,
        warn: Callable[[GuardsError], object] | None = None,
        observe: Callable[[Decision, float, str], object] | None = None,
        agent: str | None = None,
        token: str | None = None,
        credentials: Any = None,
        region: str | None = None,
        endpoint: str | None = None,
        connections: int = 50,
        client: Any = None,
    ) -> None:
        for name, function in (("warn", warn), ("observe", observe)):
            if function is not None and (not callable(function) or is_async(function)):
                raise ConfigurationError(f"The option {name} is {function!r}, want a function that is not async.")
        self._settings = Settings(
            activities=entries(activities),
            urls=addresses(urls),
            prefix=prefix,
            agent=None if isinstance(client, Way) else agent_of(agent, token),
            on_outage=on_outage,
            timeout=timeout,
            max_tries=max_tries,
            decision_timeout=decision_timeout,
            region=region,
            endpoint=endpoint,
            connections=connections,
        )
        self._warn = warn or _log_warning
        self._observe = observe
        self._warned = Moment(math.inf)
        self._warning = Own(threading.Lock)
        self._own_breaker = Own(Breaker)
        self._way, most = _way_of(self._settings, client, credentials)
        self._queue = Own(lambda: self._new_queue(most))
        if self._settings.agent is not None and self._settings.agent.is_exposed:
            self._report(GuardsError(f"The token of the agent goes to {self._settings.agent.url} without encryption: use https."))

    _new_queue: ClassVar[Any]  # makes the app's own queue, given how many calls can ask at the same time

    @property
    def _breaker(self) -> Breaker:
        return self._own_breaker.get()

    def close(self) -> None:
        """Close connections that are not in use. Later calls open new ones."""
        self._way.close()

    def _new_call(self, request: Request) -> Call:
        """Return a new call, unless it would fail at once."""
        if sys.is_finalizing():  # what the interpreter drops at its exit, such as a generator, gives nothing back
            raise request.not_invoked("the process ends")
        self._way.look(request)
        self._breaker.look(request.function)
        settings = self._settings
        return Call(Plan(settings.timeout, settings.attempt, request.max_tries))

    def _make(self, request: Request, call: Call) -> Decision:
        """Make a call in this thread. While it waited for its turn, its function can have gone."""
        self._way.look(request)
        with self._breaker.call(request.function) as finding:
            call.finding = finding
            while True:
                call.plan.begin()
                try:
                    return self._way.attempt(request, call, finding)
                except Lost as lost:
                    pause = self._way.pause(lost, call)
                    if pause is None:
                        raise self._way.failed(request, lost) from lost
                call.sleep(pause)

    def _denial(self, request: Request, decision: Decision) -> OutageError | None:
        """Return why a check is refused that the guard has allowed; None: it is not."""
        if request.on_outage != "deny" or not decision.allowed or decision.reason != "unavailable":
            return None
        message = f"{request.function} decided from its memory, because its table did not answer"
        return OutageError(message, request.function, answered=True)

    def _observed(self, request: Request, decision: Decision, began: float) -> Decision:
        """Call observe, and return the decision."""
        if self._observe is not None:
            try:
                seen = anonymous(decision)
                not_async(self._observe(seen, time.monotonic() - began, self._way.name(request)), "The option observe")
            except Exception:
                _logger().exception("the option observe raised an error")
        return decision

    def _receipt_request(self, op: str, what: AnyActivity | Decision, receipt: dict[str, Any], *, clear: bool = False) -> Request:
        if unknown := receipt.keys() - {"user_id", *Receipt.__annotations__}:
            raise TypeError(f"{op} has no argument {min(unknown)}")
        given = {name for name, value in receipt.items() if value is not None}
        if isinstance(what, Decision):
            if given:
                raise TypeError(f"{op} takes either a decision or the fields of its receipt")
            return with_receipt(self._settings, op, what, clear=clear)
        if not given >= {"user_id", "at", "request_id"}:
            raise TypeError(f"{op} needs user_id, at and request_id")
        return new_request(self._settings, op, what, clear=clear, **receipt)

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

    def _without_guard(self, request: Request, outage: OutageError, began: float) -> Decision:
        """Return the decision of a check in an outage."""
        self._report_sometimes(outage if outage.answered or self._way.reached else _never_reached(outage))
        answer: dict[str, Any] = {"allowed": True, "granted": request.event.get("count", 1)}
        if (request.on_outage or self._settings.on_outage) == "deny":
            answer = {"allowed": False, "granted": 0, "message": "Please try again later."}
        decision = request.decision(reason="unavailable", outage=outage, **answer)
        return self._settleable(self._observed(request, decision, began))

    def _report_sometimes(self, error: GuardsError) -> None:
        """Call warn, at most once a second."""
        with self._warning.get():
            is_due = self._warned.age >= 1
            if is_due:
                self._warned = Moment()
        if is_due:
            self._report(error)

    def _runs(self, fn: object) -> None:
        """Raise an error for what guarded can't run."""
        if not callable(fn):
            raise ValidationError(f"the function of guarded is {described(fn)}, want a function")

    def _admit(self, decision: Decision) -> Decision:
        """Return a decision that lets the user go on. Another one raises a LimitedError."""
        if not decision.allowed:
            raise LimitedError(decision, self._settings.prefix + decision.guard) from decision.outage
        return decision

    def _report(self, error: GuardsError) -> None:
        """Call warn. An error of warn itself is logged, because it must not hide the app's."""
        try:
            not_async(self._warn(error), "The option warn")
        except Exception:
            _logger().exception("the option warn raised an error")


def _way_of(settings: Settings, client: Any, credentials: Any) -> tuple[Way, int]:
    """Return how guards are asked, and how many calls can ask at the same time."""
    if isinstance(client, Way):  # of guards.testing
        return client, settings.connections
    given = {"client": client, "credentials": credentials, "region": settings.region, "endpoint": settings.endpoint}
    given["urls"] = settings.urls or None
    if settings.agent is not None:
        wrong = [name for name, value in given.items() if value is not None]
        if wrong and settings.agent.by_option:
            raise ConfigurationError(
                f"The option {wrong[0]} does not go with an agent ({settings.agent.name}), which needs none."
            )
        from guards._agent import ByAgent

        return ByAgent(settings.agent, settings.connections), settings.connections
    if client is not None:
        wrong = [name for name in ("credentials", "region", "endpoint") if given[name] is not None]
        if wrong:
            raise ConfigurationError(f"The option {wrong[0]} does not go with the option client, which has its own.")
        from guards._given_client import GivenClient

        by_client = GivenClient(client, settings.connections)
        return by_client, by_client.most
    return Lean(credentials, settings.region, settings.endpoint, settings.connections), settings.connections


def _never_reached(outage: OutageError) -> OutageError:
    """Return the warning of an outage if nothing has ever answered this client."""
    hint = "Lambda has not answered this client since it started: check the network."
    warning = OutageError(f"{outage}. {hint} In a VPC, the app needs a NAT gateway or an endpoint for Lambda.", outage.guard)
    warning.__cause__ = outage
    return warning


def _log_warning(error: GuardsError) -> None:
    _logger().warning("%s", error)


def _logger() -> Any:
    import logging  # takes 10 ms to load, and most apps load it anyway

    return logging.getLogger("guards")
