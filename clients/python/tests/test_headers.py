"""The headers RateLimit and RateLimit-Policy."""

from __future__ import annotations

import pickle
import time
from email.utils import formatdate
from typing import Any

import pytest

from guards import Guards
from guards.http import rate_limit_headers
from tests.conftest import PATIENT
from tests.server import Handler, Server, answer, refuse


@pytest.mark.parametrize("url", [False, True])
def test_the_time_until_the_reset_is_by_the_guards_clock(server: Server, url: bool) -> None:
    """The guard's clock is an hour behind this machine's."""
    guards = Guards(**PATIENT, urls={"posts-guard": server.url} if url else {})
    behind = round(time.time()) - 3600

    def dated(date: str, step: Any) -> Any:
        def run(handler: Handler) -> None:
            handler.date_time_string = lambda *_: date  # type: ignore[method-assign]
            step(handler)

        return run

    date = formatdate(behind, usegmt=True)
    reset = {"resetAt": (behind + 42) * 1000}
    server.does(
        dated(date, answer(**reset, at=(behind + 2) * 1000)),
        dated(date, refuse(**reset)),
        dated("soon", refuse(**reset)),
        dated(date, refuse(**reset, limits=[{"name": "day", "remaining": 0, **reset}], limitedBy="day")),
    )
    headers = [rate_limit_headers(guards.check("create_post", user_id="u1"))["RateLimit"] for _ in range(4)]
    name = '"create_post"'
    assert headers == [f"{name};r=9;t=40", f"{name};r=0;t=42", f"{name};r=0", '"day";r=0;t=42']
    refused = guards.check("create_post", user_id="u1")
    assert rate_limit_headers(pickle.loads(pickle.dumps(refused)))["RateLimit"] == '"day";r=0;t=42'
    guards.close()


def test_a_window_that_the_list_does_not_know_is_left_out(server: Server) -> None:
    """guards generate writes no window for days, weeks and months whose length differs."""
    guards = Guards(**PATIENT | {"activities": {"call": ("calls-guard", None)}})
    assert rate_limit_headers(guards.check("call", user_id="u1")).keys() == {"RateLimit"}
    assert len(server.received) == 1
    guards.close()
