from __future__ import annotations

from typing import Any

import pytest

from guards import ConfigurationError, Guards


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on_outage": "open"}, 'The option on_outage is \'open\', want "allow" or "deny".'),
        ({"timeout": 1.299}, "The option timeout is 1.299, want at least 1.3 seconds: decision_timeout and 0.3 more."),
        ({"timeout": "3"}, "The option timeout is '3', want at least 1.3 seconds: decision_timeout and 0.3 more."),
        ({"timeout": float("nan")}, "The option timeout is nan"),
        ({"timeout": float("inf")}, "The option timeout is inf"),
        ({"decision_timeout": 0}, "The option decision_timeout is 0, want seconds above 0."),
        ({"decision_timeout": True}, "The option decision_timeout is True"),
        ({"attempts": 0}, "The option attempts is 0, want a whole number of at least 1."),
        ({"attempts": 1.5}, "The option attempts is 1.5"),
        ({"attempts": True}, "The option attempts is True"),
        ({"prefix": None}, "The option prefix is None, want a string."),
        ({"urls": {"posts-guard": "posts.example"}}, "The option urls['posts-guard'] is 'posts.example', want a URL"),
        ({"urls": {"posts-guard": "http://[::1"}}, "The option urls['posts-guard'] is 'http://[::1'"),
        ({"urls": {"posts-guard": None}}, "The option urls['posts-guard'] is None"),
        ({"client": "lambda"}, "The option client is 'lambda', want boto3's Lambda client."),
        ({"warn": "stderr"}, "The option warn is 'stderr', want a function."),
    ],
)
def test_a_wrong_option_is_an_error_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        Guards(**options)
    assert str(error.value).startswith(message)


def test_an_unknown_option_is_an_error() -> None:
    with pytest.raises(TypeError, match="retries"):
        Guards(retries=1)  # type: ignore[call-arg]


def test_the_least_timeout() -> None:
    Guards(timeout=1.4, decision_timeout=1.1)  # in binary, 1.1 + 0.3 is more than 1.4
