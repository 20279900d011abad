from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any
from unittest.mock import AsyncMock

import pytest

import guards
from guards import AsyncGuards, ConfigurationError, Guards
from tests.conftest import LISTED, Client
from tests.server import Server


async def _warn(error: Exception) -> None:
    raise error


class _Warner:
    async def __call__(self, error: Exception) -> None:
        raise error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on_outage": "open"}, 'The option on_outage is \'open\', want "allow" or "deny".'),
        (
            {"timeout": 1.299},
            "The option timeout is 1.299, want at least 1.3 seconds: decision_timeout and 0.3 more. At most 2147483 seconds.",
        ),
        ({"timeout": "3"}, "The option timeout is '3', want at least 1.3 seconds: decision_timeout and 0.3 more."),
        ({"timeout": float("nan")}, "The option timeout is nan"),
        ({"timeout": float("inf")}, "The option timeout is inf"),
        ({"timeout": 2_147_484}, "The option timeout is 2147484, want at least 1.3 seconds"),
        ({"timeout": 10**400}, "The option timeout is 1000000000"),
        ({"decision_timeout": 0}, "The option decision_timeout is 0, want above 0 and at most 2147483 seconds."),
        ({"decision_timeout": 10**400}, "The option decision_timeout is 1000000000"),
        ({"decision_timeout": True}, "The option decision_timeout is True"),
        ({"max_tries": 0}, "The option max_tries is 0, want a whole number of at least 1."),
        ({"max_tries": 1.5}, "The option max_tries is 1.5"),
        ({"max_tries": True}, "The option max_tries is True"),
        ({"prefix": None}, "The option prefix is None, want a string."),
        ({"urls": {"posts-guard": "posts.example"}}, "The option urls['posts-guard'] is 'posts.example', want a URL"),
        ({"urls": {"posts-guard": "http://[::1"}}, "The option urls['posts-guard'] is 'http://[::1'"),
        ({"urls": {"posts-guard": None}}, "The option urls['posts-guard'] is None"),
        (
            {"urls": {"post-guard": "https://posts.example"}},
            "The option urls has 'post-guard', which is not in the option activities; did you mean 'posts-guard'?",
        ),
        (
            {"urls": {"x": "https://x.example"}},
            "The option urls has 'x', which is not in the option activities; want one of chat-guard, jobs-guard, ",
        ),
        ({"urls": {None: "https://x.example"}}, "The option urls has None, want the name of a guard."),
        ({"urls": {None: "https://x.example"}, "activities": None}, "The option urls has None, want the name of a guard."),
        ({"client": "lambda"}, "The option client is 'lambda', want boto3's Lambda client."),
        ({"warn": "stderr"}, "The option warn is 'stderr', want a function that is not async."),
        ({"warn": _warn}, "The option warn is <function _warn at "),
        ({"warn": functools.partial(_warn)}, "The option warn is functools.partial("),
        ({"warn": _Warner()}, "The option warn is <tests.test_options._Warner "),
        ({"warn": AsyncMock()}, "The option warn is <AsyncMock "),
    ],
)
def test_a_wrong_option_is_an_error_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        Guards(**{**LISTED, **options})
    with pytest.raises(ConfigurationError):
        AsyncGuards(**{**LISTED, **options})
    assert str(error.value).startswith(message)


def test_an_unknown_guard_is_asked_by_invoke(server: Server, new: Callable[..., Client]) -> None:
    client = new(urls={"posts-guard": server.url})
    client.check(guards.GuardActivity("photos-guard", "upload"), user_id="u1")
    assert server.received[0].path.endswith("/photos-guard/invocations")


def test_an_unknown_option_is_an_error() -> None:
    with pytest.raises(TypeError, match="retries"):
        Guards(retries=1)  # type: ignore[call-arg]


def test_the_least_timeout() -> None:
    Guards(timeout=1.4, decision_timeout=1.1)  # in binary, 1.1 + 0.3 is more than 1.4


def test_the_greatest_timeout(server: Server, new: Callable[..., Client]) -> None:
    times = {"timeout": 2_147_483, "decision_timeout": 2_147_480}
    assert new(**times).check("create_post", user_id="u1").reason == "ok"
    assert len(server.received) == 1
