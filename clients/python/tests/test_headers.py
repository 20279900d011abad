"""The headers RateLimit and RateLimit-Policy."""

from __future__ import annotations

import pickle
import time
from email.utils import formatdate
from typing import Any

import fastapi
import pytest

from guards import AsyncGuards, Guards
from guards import fastapi as guards_fastapi
from guards.http import rate_limit_headers
from tests.conftest import PATIENT
from tests.server import Handler, Server, answer, refuse
from tests.test_count_if import MIDDLEWARE, AbortError, Post, answers, by_flask, fails
from tests.test_mistakes import send


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


@MIDDLEWARE
def test_a_response_and_an_error_of_the_apps_own_have_them(server: Server, middleware: Post) -> None:
    guards = (Guards if middleware is by_flask else AsyncGuards)(**PATIENT)
    for handler, status in ((answers(200), 200), (fails(AbortError()), 401)):
        response = middleware(guards, {}, handler)
        assert response.status_code == status
        assert len(response.headers.get_list("RateLimit")) == 1
        assert response.headers["RateLimit-Policy"] == '"create_post";q=10;w=60'
    assert len(server.received) == 2
    guards.close()


def test_a_refusal_has_none_of_an_earlier_limit(server: Server) -> None:
    app = fastapi.FastAPI()
    guards_fastapi.install(app)
    guards = AsyncGuards(**PATIENT)
    limits = (guards_fastapi.limit(guards, activity, user_id=lambda: "u1") for activity in ("pin", "create_post"))
    app.post("/post", dependencies=[fastapi.Depends(limit) for limit in limits])(lambda: "done")
    server.does(answer(), refuse(reason="blocked", limit=None, activityCount=None, remaining=None))
    response = send(app)
    assert response.status_code == 429
    assert not [name for name in response.headers if name.startswith("ratelimit")]
    guards.close()
