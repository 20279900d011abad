"""Attempts: what counts first, and is given back after a success."""

from __future__ import annotations

import asyncio
import concurrent.futures
import decimal
import functools
import gc
import multiprocessing.pool
import re
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from enum import Enum
from http import HTTPStatus
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock
from urllib.parse import urlsplit

import fastapi
import flask
import httpx
import pytest

from guards import AsyncGuards, ConfigurationError, Decision, Guards, GuardsError, LimitedError, ValidationError
from tests.conftest import PATIENT, Client, Clock
from tests.server import Server, answer, function_error, lambda_error, refuse

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::pytest.PytestUnraisableExceptionWarning")

LISTED: dict[str, Any] = {
    "sign_in": ("sign-in-guard", None, ("ip?",)),
    "pay": ("sign-in-guard", None, True),
}
TIMES = PATIENT | {"activities": LISTED}
IP = {"ip": "192.0.2.7"}


@pytest.fixture(autouse=True)
def _unawaited() -> Iterator[None]:
    """Let coroutines that nobody awaits end in this module, whose warnings are ignored."""
    yield
    gc.collect()


class VerifyError(Exception):
    pass


def attempt(
    client: Client, verify: Callable[[Decision], Any], form: str = "function", /, activity: str = "sign_in", **options: Any
) -> Any:
    """Attempt a sign-in by a function, which is async for AsyncGuards, or by a context that succeeds if the result is true."""
    guards, options = client.guards, {"user_id": "a7", **options}

    async def verified(decision: Decision) -> Any:
        return verify(decision)

    async def within() -> Any:
        async with guards.attempt(activity, **options) as made:
            result = verify(made.decision)
            if result:
                await made.succeeded()
            return result

    async def run() -> Any:
        return await guards.attempt(activity, verified, **options)

    if isinstance(guards, AsyncGuards):
        return asyncio.run(run() if form == "function" else within())
    if form == "function":
        return guards.attempt(activity, verify, **options)
    with guards.attempt(activity, **options) as made:
        result = verify(made.decision)
        if result:
            made.succeeded()
        return result


def returning(value: Any) -> Callable[[Any], Any]:
    return lambda _: value


def ops(server: Server) -> list[str]:
    return [received.event["op"] for received in server.received]


FORMS = pytest.mark.parametrize("form", ["function", "context"])


@FORMS
def test_a_success_is_given_back(server: Server, new: Callable[..., Client], form: str) -> None:
    user, seen = object(), []
    server.does(answer(remaining=1))

    def verify(decision: Decision) -> object:
        seen.append((decision.remaining, ops(server)))
        return user

    assert attempt(new(), verify, form, subjects=IP, tier="t", roles=["r"]) is user
    assert seen == [(1, ["check"])]  # it counts first
    check, release = (received.event for received in server.received)
    assert (check["tier"], check["roles"], check["subjects"]) == ("t", ["r"], IP)
    assert release == {
        "userId": "a7",
        "activity": "sign_in",
        "op": "release",
        "tier": "t",
        "at": 1_700_000_000_000,
        "requestId": check["requestId"],
        "count": 1,
        "subjects": IP,
    }


@FORMS
def test_each_attempt_has_an_id_of_its_own(server: Server, new: Callable[..., Client], form: str) -> None:
    client = new()
    for _ in range(3):
        attempt(client, lambda _: False, form)
    assert len({received.event["requestId"] for received in server.received}) == 3


@FORMS
def test_a_success_can_clear(server: Server, new: Callable[..., Client], form: str) -> None:
    attempt(new(), lambda _: True, form, clear=True)
    assert [received.event.get("clear") for received in server.received] == [None, True]


@FORMS
def test_a_false_result_stays_counted(server: Server, new: Callable[..., Client], form: str) -> None:
    client = new()
    results: list[Any] = [False, None, 0, 0.0, "", [], {}, (), b"", decimal.Decimal(0)]
    for result in results:
        assert attempt(client, returning(result), form) is result
    assert ops(server) == ["check"] * len(results)


@FORMS
@pytest.mark.parametrize("error", [VerifyError, SystemExit, KeyboardInterrupt, asyncio.CancelledError, LimitedError])
def test_an_error_stays_counted_and_goes_on(
    server: Server, new: Callable[..., Client], form: str, error: type[BaseException]
) -> None:
    raised = LimitedError(Decision(allowed=False)) if error is LimitedError else error("x")

    def verify(_: Decision) -> None:
        raise raised

    with pytest.raises(error):
        attempt(new(), verify, form)
    assert ops(server) == ["check"]


class Verdict(Enum):
    RIGHT = "right"
    WRONG = "wrong"


async def coroutine() -> Any:
    return True


async def async_generator() -> Any:
    yield True


def generator() -> Any:
    yield True


class Awaitable:
    def __await__(self) -> Any:
        yield
        return True


def done() -> concurrent.futures.Future[Any]:
    future: concurrent.futures.Future[Any] = concurrent.futures.Future()
    future.set_result(False)
    return future


def pooled() -> Any:
    with multiprocessing.pool.ThreadPool(1) as pool:
        return pool.apply_async(bool)


NOT_RUN: dict[str, Callable[[], Any]] = {
    "generator": generator,
    "async generator": async_generator,
    "generator expression": lambda: (value for value in ("no",)),
    "map": lambda: map(bool, []),
    "filter": lambda: filter(None, []),
    "function": lambda: lambda: True,
    "async function": lambda: coroutine,
    "method": lambda: VerifyError().with_traceback,
    "builtin": lambda: len,
    "partial": lambda: functools.partial(bool, 0),
    "class": lambda: VerifyError,
    "future": done,
    "result of a pool": pooled,
    "context": nullcontext,
    "context of a generator": contextmanager(generator),
    "thread": threading.Thread,
}
AMBIGUOUS: dict[str, Callable[[], Any]] = {
    "tuple": lambda: (False, "wrong password"),
    "tuple of flask": lambda: ("wrong password", 401),
    "named tuple": lambda: urlsplit("/wrong"),
    "enum": lambda: Verdict.WRONG,
    "status": lambda: HTTPStatus.UNAUTHORIZED,
    "exception": lambda: VerifyError("no"),
    "decision": lambda: Decision(allowed=False),
    "nan": lambda: float("nan"),
    "decimal nan": lambda: decimal.Decimal("nan"),
    "flask": lambda: flask.Response("no", 401),
    "fastapi": lambda: fastapi.Response("no", 401),
    "httpx": lambda: httpx.Response(401),
    "lambda handler": lambda: {"statusCode": 401, "body": "no"},
    "status of a mapping": lambda: {"status": 401},
    "lambda invoke": lambda: {"StatusCode": 200, "FunctionError": "Unhandled"},
    "a 200": lambda: httpx.Response(200),
    "aiohttp": lambda: type("ClientResponse", (), {"status": 401, "headers": {}})(),
}
AWAITED: dict[str, Callable[[], Any]] = {"coroutine": coroutine, "awaitable": Awaitable}  # AsyncGuards awaits these


@pytest.mark.parametrize("option", [None, lambda _: True], ids=["alone", "with succeeded"])
def test_what_was_not_run_stays_counted(server: Server, new: Callable[..., Client], option: Callable[[Any], bool] | None) -> None:
    client = new()
    made = NOT_RUN if isinstance(client.guards, AsyncGuards) else NOT_RUN | AWAITED
    for kind, make in made.items():
        with pytest.raises(ValidationError) as error:
            attempt(client, returning(make()), succeeded=option)
        assert re.fullmatch("the function of attempt returned a.*, want its result", str(error.value)), kind
    assert ops(server) == ["check"] * len(made)


def test_what_can_mean_a_failure_stays_counted(server: Server, new: Callable[..., Client]) -> None:
    client = new()
    for kind, make in AMBIGUOUS.items():
        with pytest.raises(ValidationError) as error:
            attempt(client, returning(make()))
        assert str(error.value).endswith("even if it means a failure: decide with the option succeeded"), kind
    assert ops(server) == ["check"] * len(AMBIGUOUS)


@pytest.mark.parametrize("success", [True, False, None])
def test_the_option_succeeded_decides(server: Server, new: Callable[..., Client], success: bool | None) -> None:
    client = new()
    values = [make() for make in AMBIGUOUS.values()]
    asked: list[Any] = []

    def succeeded(result: Any) -> bool | None:
        asked.append(result)
        return success

    for value in values:
        assert attempt(client, returning(value), succeeded=succeeded) is value
        assert asked.pop() is value
    assert ops(server) == (["check", "release"] if success else ["check"]) * len(values)


def test_succeeded_decides_about_false_results_too(server: Server, new: Callable[..., Client]) -> None:
    assert attempt(new(), lambda _: 0, succeeded=lambda exit_status: exit_status == 0) == 0
    assert ops(server) == ["check", "release"]


def test_succeeded_must_return_true_or_false(server: Server, new: Callable[..., Client]) -> None:
    client = new()
    values: list[Any] = [1, "yes", (True,), object(), lambda: True, generator()]
    for value in values:
        with pytest.raises(ConfigurationError, match=r"^The option succeeded returned .*, want True or False\.$"):
            attempt(client, lambda _: True, succeeded=returning(value))
    assert ops(server) == ["check"] * len(values)


def test_an_error_of_succeeded_stays_counted(server: Server, new: Callable[..., Client]) -> None:
    def fails(_: Any) -> bool:
        raise VerifyError

    with pytest.raises(VerifyError):
        attempt(new(), lambda _: True, succeeded=fails)
    assert ops(server) == ["check"]


def test_what_python_calls_true_is_a_success(server: Server, new: Callable[..., Client]) -> None:
    client = new()
    values: list[Any] = [True, 1, "yes", [0], {"user": 1}, {"status": "active"}, object(), MagicMock(), server]
    for value in values:
        assert attempt(client, returning(value)) is value
    assert ops(server) == ["check", "release"] * len(values)


def test_with_asyncio_the_functions_may_be_async(server: Server) -> None:
    locked: list[int | None] = []

    async def run(result: bool) -> None:
        guards: Any = AsyncGuards(**TIMES)

        async def on_locked(decision: Decision) -> None:
            await asyncio.sleep(0)
            locked.append(decision.remaining)

        async def succeeded(value: Any) -> bool:
            await asyncio.sleep(0)
            return bool(value["ok"])

        async def verify(_: Decision) -> dict[str, bool]:
            await asyncio.sleep(0)
            return {"ok": result}

        await guards.attempt("sign_in", verify, user_id="a7", succeeded=succeeded, on_locked=on_locked)
        await guards.attempt("sign_in", lambda d: verify(d), user_id="a7", succeeded=succeeded)
        await guards.attempt("sign_in", lambda _: {"ok": result}, user_id="a7", succeeded=succeeded)
        guards.close()

    server.does(answer(crossed=100, remaining=0))
    asyncio.run(run(True))
    assert (ops(server), locked) == (["check", "release"] * 3, [])
    server.received.clear()
    asyncio.run(run(False))
    assert (ops(server), locked) == (["check"] * 3, [0])


def test_without_asyncio_an_async_function_is_an_error(server: Server) -> None:
    guards: Any = Guards(**TIMES)

    async def later(_: Any) -> bool:
        return True

    for options in ({}, {"succeeded": later}, {"on_locked": later}):
        verify = (lambda _: True) if options else later
        with pytest.raises(ValidationError, match=r" is async, want a function that is not async$"):
            guards.attempt("sign_in", verify, user_id="a7", **options)
    assert ops(server) == []
    with pytest.raises(ConfigurationError, match="The option succeeded is async"):
        guards.attempt("sign_in", lambda _: True, user_id="a7", succeeded=lambda value: later(value))
    assert ops(server) == ["check"]
    guards.close()


@FORMS
@pytest.mark.parametrize(
    "step", [refuse(locked=True), refuse(reason="blocked"), refuse(reason="delayed", at=5, requestId="r1", readyAt=10)]
)
def test_a_refused_attempt_does_not_run(server: Server, new: Callable[..., Client], form: str, step: Any) -> None:
    ran: list[Decision] = []
    locked: list[Decision] = []
    server.does(step)
    with pytest.raises(LimitedError, match=r"^Too many\.$") as error:
        attempt(new(), ran.append, form, on_locked=locked.append)
    assert error.value.guard == "sign-in-guard"
    assert (ran, locked) == ([], [])
    assert ops(server) == ["check"]


def test_a_refusal_says_that_it_is_locked(server: Server, new: Callable[..., Client]) -> None:
    """The answer is schema/golden/lockout-refused.json."""
    figures = {"limit": 3, "activityCount": 3, "remaining": 0, "waitTime": 60_000, "resetAt": 1_700_000_090_000}
    server.does(refuse(**figures, locked=True))
    with pytest.raises(LimitedError) as error:
        attempt(new(), bool)
    assert (error.value.decision.locked, error.value.decision.reset_at) == (True, 1_700_000_090_000)
    server.does(answer())
    assert new().check("sign_in", user_id="a7").locked is None


@FORMS
def test_what_was_not_counted_is_not_given_back(server: Server, new: Callable[..., Client], form: str) -> None:
    client = new()
    reasons = ["duplicate", "bypassed", "unlimited", "shadow", "unavailable"]
    for reason in reasons:
        server.does(answer(reason=reason, at=None, requestId=None))
        assert attempt(client, lambda decision: decision.reason, form, clear=True) == reason
    assert ops(server) == ["check"] * len(reasons)
    assert client.warnings == []


@FORMS
def test_an_attempt_in_an_outage(server: Server, new: Callable[..., Client], form: str) -> None:
    server.does(lambda_error(500, "ServiceException"))
    assert attempt(new(), lambda decision: decision.reason, form) == "unavailable"
    with pytest.raises(LimitedError):
        attempt(new(), lambda _: True, form, on_outage="deny")
    server.does(answer(reason="unavailable", at=None))
    with pytest.raises(LimitedError):
        attempt(new(), lambda _: True, form, on_outage="deny")
    assert "release" not in ops(server)


# The table has counted the attempt for some of its subjects, and memory decided for the others.
@FORMS
def test_an_attempt_that_was_counted_in_part_is_given_back(server: Server, new: Callable[..., Client], form: str) -> None:
    server.does(answer(reason="unavailable"))
    attempt(new(), lambda _: False, form)
    assert ops(server) == ["check"]
    attempt(new(), lambda _: True, form)
    with pytest.raises(LimitedError):
        attempt(new(), lambda _: True, form, on_outage="deny")
    assert ops(server) == ["check", *["check", "release"] * 2]


@FORMS
def test_an_id_of_the_caller_is_an_error_before_any_request(server: Server, new: Callable[..., Client], form: str) -> None:
    client = new()
    for name, value in (("request_id", "r1"), ("count", 1), ("count", 2), ("partial", True), ("ready_at", 5), ("job", {})):
        with pytest.raises(ValidationError, match=f"^{name} does not go with an attempt: "):
            attempt(client, lambda _: True, form, **dict[str, Any]({name: value}))
    assert ops(server) == []


def test_wrong_arguments_are_errors_before_any_request(server: Server, new: Callable[..., Client]) -> None:
    guards = new().guards
    for wrong, message in (
        ({"succeeded": True}, "succeeded is True, want a function"),
        ({"on_locked": "mail"}, "on_locked is of the type str, want a function"),
        ({"clear": "yes"}, "clear is of the type str, want True or False"),
    ):
        with pytest.raises(ValidationError, match=f"^{message}$"):
            guards.attempt("sign_in", bool, **{"user_id": "a7", **wrong})
    with pytest.raises(ValidationError, match=r"^the function of attempt is True, want a function$"):
        guards.attempt("sign_in", True, user_id="a7")
    with pytest.raises(ValidationError, match=r"^succeeded goes with a function"):
        guards.attempt("sign_in", user_id="a7", succeeded=bool)
    with pytest.raises(TypeError):
        attempt(new(), bool, tire="t")
    with pytest.raises(ValidationError):
        attempt(new(), bool, subjects={"room": "r"})
    assert ops(server) == []


LOCKS = [
    answer(crossed=100, locked=True),
    answer(limits=[{"name": "a", "limit": 1, "crossed": 100}]),
    answer(crossed=80, limits=[{"name": "a"}, {"name": "ip", "crossed": 100}]),
]
KEEPS = [
    answer(),
    answer(crossed=80),
    answer(limits=[{"name": "a", "crossed": 80}]),
    answer(locked=True),
]


@FORMS
@pytest.mark.parametrize("result", [False, VerifyError, 1])
def test_on_locked(server: Server, new: Callable[..., Client], form: str, result: Any) -> None:
    client = new()
    locked: list[str] = []

    def verify(_: Decision) -> Any:
        assert locked == []
        if result is VerifyError:
            raise VerifyError
        return result

    for step in (*LOCKS, *KEEPS):
        server.does(step)
        with pytest.raises(VerifyError) if result is VerifyError else nullcontext():
            attempt(client, verify, form, on_locked=lambda decision: locked.append(decision.user_id))
        assert locked == (["a7"] if step in LOCKS and result != 1 else [])
        locked.clear()
    assert client.warnings == []


@FORMS
def test_an_error_of_on_locked_goes_to_warn(server: Server, new: Callable[..., Client], form: str) -> None:
    def fails(decision: Decision) -> None:
        raise VerifyError(decision.user_id)

    server.does(answer(crossed=100))
    client = new()
    assert attempt(client, lambda _: "", form, on_locked=fails) == ""
    (warning,) = client.warnings
    assert str(warning) == "the option on_locked raised VerifyError for sign_in"
    assert isinstance(warning.__cause__, VerifyError)


def test_a_hidden_async_on_locked_goes_to_warn(server: Server) -> None:
    async def mail(_: Decision) -> None: ...

    server.does(answer(crossed=100))
    warnings: list[GuardsError] = []
    guards: Any = Guards(**TIMES, warn=warnings.append)
    guards.attempt("sign_in", lambda _: False, user_id="a7", on_locked=lambda decision: mail(decision))
    assert [str(warning.__cause__) for warning in warnings] == [
        "The option on_locked is async, want a function that is not async."
    ]
    guards.close()


@FORMS
@pytest.mark.parametrize("step", [function_error("Unavailable", "m"), function_error("ValidationError", "no lockout")])
def test_a_release_that_fails_goes_to_warn(server: Server, new: Callable[..., Client], form: str, step: Any) -> None:
    server.does(answer(), step)
    client = new()
    assert attempt(client, lambda _: True, form) is True
    assert len(client.warnings) == 1


@pytest.mark.parametrize("end", [None, VerifyError])
def test_after_a_success_nothing_changes_it(server: Server, new: Callable[..., Client], end: type[Exception] | None) -> None:
    guards = new().guards
    locked: list[Decision] = []
    server.does(answer(crossed=100))
    options: dict[str, Any] = {"user_id": "a7", "on_locked": locked.append}

    def run() -> None:
        with guards.attempt("sign_in", **options) as made:
            made.succeeded()
            assert ops(server) == ["check", "release"]  # at once
            made.succeeded()
            if end is not None:
                raise end
        made.succeeded()

    async def run_later() -> None:
        async with guards.attempt("sign_in", **options) as made:
            await made.succeeded()
            assert ops(server) == ["check", "release"]
            await made.succeeded()
            if end is not None:
                raise end
        await made.succeeded()

    try:
        asyncio.run(run_later()) if isinstance(guards, AsyncGuards) else run()
    except VerifyError:
        assert end is VerifyError
    assert (ops(server), locked) == (["check", "release"], [])


def test_after_its_end_an_attempt_stays_counted(server: Server, new: Callable[..., Client]) -> None:
    guards = new().guards

    async def later() -> None:
        async with guards.attempt("sign_in", user_id="a7") as made:
            pass
        await made.succeeded()

    def run() -> None:
        with guards.attempt("sign_in", user_id="a7") as made:
            pass
        made.succeeded()

    with pytest.raises(ValidationError, match=r"^the attempt is over and stays counted"):
        asyncio.run(later()) if isinstance(guards, AsyncGuards) else run()
    assert ops(server) == ["check"]


@pytest.mark.parametrize(
    ("activity", "passed", "warning"),
    [
        ("sign_in", 17.9, None),
        ("sign_in", 19, "an attempt of sign_in is given back 19 s after its check, which may be too late: "),
        ("pay", 19, None),
        ("pay", 14 * 60 - 1, None),
        ("pay", 14 * 60 + 1, "an attempt of pay is given back 841 s after its check, which may be too late: "),
    ],
)
def test_a_late_success_is_given_back_and_reported(
    server: Server, new: Callable[..., Client], clock: Clock, activity: str, passed: float, warning: str | None
) -> None:
    client = new()

    def verify(_: Decision) -> bool:
        clock.now += passed
        return True

    attempt(client, verify, activity=activity)
    assert ops(server) == ["check", "release"]
    assert [str(w).split(": ")[0] + ": " for w in client.warnings] == ([warning] if warning else [])
    assert all("Hold" in str(w) for w in client.warnings)


def test_a_cancelled_attempt_stays_counted(server: Server) -> None:
    async def main() -> None:
        guards: Any = AsyncGuards(**TIMES)
        begun = asyncio.Event()

        async def verify(_: Decision) -> bool:
            begun.set()
            await asyncio.sleep(60)
            return True

        task = asyncio.ensure_future(guards.attempt("sign_in", verify, user_id="a7"))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        guards.close()

    asyncio.run(main())
    assert ops(server) == ["check"]


def test_a_success_that_is_cancelled_is_given_back(server: Server) -> None:
    arrived = threading.Event()
    go_on = threading.Event()

    def slow(handler: Any) -> None:
        arrived.set()
        go_on.wait(20)
        answer()(handler)

    server.does(answer(), slow)
    warnings: list[GuardsError] = []

    async def main() -> None:
        guards: Any = AsyncGuards(**TIMES, warn=warnings.append)
        task = asyncio.ensure_future(guards.attempt("sign_in", lambda _: True, user_id="a7"))
        await asyncio.to_thread(arrived.wait, 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others)
        guards.close()

    asyncio.run(main())
    assert (ops(server), warnings) == (["check", "release"], [])


@pytest.mark.usefixtures("server")
def test_a_context_is_entered_once() -> None:
    guards: Any = Guards(**TIMES)
    context = guards.attempt("sign_in", user_id="a7")
    with context:
        pass
    with pytest.raises(ValidationError, match="entered before"), context:
        pass
    guards.close()


README = (Path(__file__).parent.parent / "README.md").read_text()


@pytest.mark.parametrize("begins", ["from guards import LimitedError\n", "with guards.attempt("])
def test_the_readmes_sign_in(server: Server, begins: str) -> None:
    match = re.search(rf"```python\n({re.escape(begins)}.*?)```", README, re.DOTALL)
    assert match
    mails: list[str] = []
    guards: Any = Guards(**TIMES)
    names = {"guards": guards, "account": "a7", "send_mail": lambda to, _: mails.append(to), "too_many": lambda d: d.reason}
    code = f"def sign_in(password):\n{textwrap.indent(match[1], '    ')}"
    exec(code, names | {"verify": lambda account, password: (account, password) == ("a7", "right")}, names)
    sign_in: Any = names["sign_in"]
    server.does(answer(crossed=100, locked=True))
    sign_in("right")
    assert (ops(server), mails) == (["check", "release"], [])
    sign_in("wrong")
    assert ops(server) == ["check", "release", "check"]
    assert mails == (["a7"] if "on_locked" in code else [])
    if "LimitedError" in code:
        server.does(refuse(locked=True))
        assert sign_in("right") == "limited"
    guards.close()


def test_the_types_of_an_attempt() -> None:
    """Here mypy is the test: it would report a comment that ignores no error."""

    def unused() -> None:
        guards = Guards(activities={"sign_in": ("sign-in-guard", None)})
        name: str = guards.attempt("sign_in", lambda _: "ann", user_id="a7", succeeded=lambda name: name != "")
        guards.attempt("sign_in", lambda _: name, user_id="a7", count=2)  # type: ignore[call-overload]
        with guards.attempt("sign_in", user_id="a7", clear=True) as made:
            made.succeeded()

    assert callable(unused)
