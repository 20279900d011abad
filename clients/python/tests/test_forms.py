"""The README's middleware and its forms of a refusal, each in the frameworks that it names."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import django.test
import fastapi
import flask
import pytest
from django.conf import settings
from django.http import HttpResponse
from django.urls import path
from starlette.applications import Starlette
from starlette.authentication import SimpleUser
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from guards import AsyncGuards, ConfigurationError, Decision, Guards
from guards.http import too_many_for_lambda
from tests.conftest import PATIENT
from tests.server import Server, lambda_error, refuse
from tests.test_http import send

README = (Path(__file__).parent.parent / "README.md").read_text()
ROWS = re.findall(r"^\| (.*) \| `(from guards[^`]*)` \| `(return [^`]*)` \|$", README, re.MULTILINE)

# An answer to a request: status, headers and body.
Answer = tuple[int, Any, bytes]


def snippet(begins: str, body: str) -> str:
    """Return the README's snippet that begins so. A function that it leaves open gets a body."""
    match = re.search(rf"```python\n(# {re.escape(begins)}.*?)```", README, re.DOTALL)
    assert match, begins
    return match[1].replace("): ...\n", f"):\n    {body}\n")


def row(framework: str, signature: str, done: str) -> str:
    """Return a handler with the form in the README's row of a framework."""
    (form,) = [(imports, line) for names, imports, line in ROWS if framework in names]
    wait = "await " if signature.startswith("async") else ""
    check = f'decision = {wait}guards.check("create_post", user_id="u1")'
    return f"{form[0]}\n\n{signature}:\n    {check}\n    if not decision.allowed:\n        {form[1]}\n    return {done}\n"


def run(code: str, **names: Any) -> dict[str, Any]:
    """Run the code of an app that has these names."""
    exec(compile(code, "README.md", "exec", dont_inherit=True), names)
    return names


@pytest.fixture
def sync_guards() -> Iterator[Guards[Any]]:
    with_list = Guards(**PATIENT, on_outage="deny", warn=lambda _: None)
    yield with_list
    with_list.close()


@pytest.fixture
def async_guards() -> Iterator[AsyncGuards[Any]]:
    with_list = AsyncGuards(**PATIENT, on_outage="deny", warn=lambda _: None)
    yield with_list
    with_list.close()


def flask_app(code: str, guards: Guards[Any]) -> Callable[[], Answer]:
    """Return what posts to an app of Flask with u1 logged in."""
    app = flask.Flask("test")
    names = run(code, app=app, guards=guards, session={"user": "u1"}, request=flask.request, save=lambda _: ("created", 201))
    if "/posts" not in code:
        app.post("/posts")(names["create_post"])

    def post() -> Answer:
        response = app.test_client().post("/posts", json={})
        return response.status_code, response.headers, response.data

    return post


def asgi_app(app: Any) -> Callable[[], Answer]:
    def post() -> Answer:
        response = send(app, "u1", "/posts")
        return response.status_code, response.headers, response.content

    return post


def fastapi_app(code: str, guards: AsyncGuards[Any]) -> Callable[[], Answer]:
    app = fastapi.FastAPI()
    names = {"User": SimpleNamespace, "current_user": lambda: SimpleNamespace(id="u1"), "Annotated": Annotated}
    done = PlainTextResponse("created", 201)
    create = run(code, app=app, guards=guards, Depends=fastapi.Depends, done=done, **names)["create_post"]
    if "/posts" not in code:
        app.post("/posts")(create)
    return asgi_app(app)


def starlette_app(code: str, guards: AsyncGuards[Any]) -> Callable[[], Answer]:
    done = PlainTextResponse("created", 201)
    app = Starlette(routes=[Route("/posts", run(code, guards=guards, done=done)["create_post"], methods=["POST"])])
    return asgi_app(app)


def asgi_middleware(code: str, guards: AsyncGuards[Any]) -> Callable[[], Answer]:
    class LoggedIn:
        async def authenticate(self, connection: Any) -> Any:  # noqa: ARG002
            user = SimpleUser("u1")
            user.id = "u1"  # type: ignore[attr-defined]
            return None, user

    app = Starlette(routes=[Route("/posts", lambda _: PlainTextResponse("created", 201), methods=["POST"])])
    run(code, app=app, guards=guards)
    app.add_middleware(AuthenticationMiddleware, backend=LoggedIn())  # type: ignore[arg-type]
    return asgi_app(app)


def django_app(code: str, guards: Guards[Any]) -> Callable[[], Answer]:
    if not settings.configured:
        settings.configure(ALLOWED_HOSTS=["*"], SECRET_KEY="test")
        django.setup()
    view = run(code, guards=guards, HttpResponse=HttpResponse, save=lambda _: HttpResponse("created", status=201))["create_post"]

    def logged_in(request: Any) -> Any:
        request.user = SimpleNamespace(get_username=lambda: "u1")
        return view(request)

    urls: Any = type("urls", (), {"urlpatterns": [path("posts", logged_in)]})

    def post() -> Answer:
        with django.test.override_settings(ROOT_URLCONF=urls):
            response = django.test.Client().post("/posts")
        return response.status_code, response.headers, response.content

    return post


def aws_lambda(code: str, guards: Guards[Any], otherwise: int) -> Callable[[], Answer]:
    """Return what posts through API Gateway.

    otherwise is the status of a result without a statusCode: an HTTP API and a Function URL
    take it for the body, and for a REST API it is malformed.
    """
    handler = run(code, guards=guards)["create_post"]

    def post() -> Answer:
        result = json.loads(json.dumps(handler({"requestContext": {"http": {}}}, None)))
        if not isinstance(result, dict) or "statusCode" not in result:
            return otherwise, {}, json.dumps(result).encode()
        return result["statusCode"], result.get("headers", {}), result["body"].encode()

    return post


HANDLER = "def create_post(event, context)"
CREATED = '{"statusCode": 201, "body": "created"}'
SYNC: dict[str, Callable[[Guards[Any]], Callable[[], Answer]]] = {
    "Flask's decorator": lambda g: flask_app(snippet("Flask: put it below", 'return "created", 201'), g),
    "a view of Flask": lambda g: flask_app(snippet("A view of Flask.", ""), g),
    "Flask": lambda g: flask_app(row("Flask", "def create_post()", '("created", 201)'), g),
    "Django": lambda g: django_app(snippet("Django", ""), g),
    "REST API": lambda g: aws_lambda(row("REST API", HANDLER, CREATED), g, 502),
    "HTTP API": lambda g: aws_lambda(row("HTTP API", HANDLER, CREATED), g, 200),
    "Function URL": lambda g: aws_lambda(row("Function URL", HANDLER, CREATED), g, 200),
}
ASYNC: dict[str, Callable[[AsyncGuards[Any]], Callable[[], Answer]]] = {
    "FastAPI's dependency": lambda g: fastapi_app(snippet("FastAPI, with AsyncGuards", "return done"), g),
    "FastAPI": lambda g: fastapi_app(row("FastAPI", "async def create_post()", "done"), g),
    "Starlette": lambda g: starlette_app(row("Starlette", "async def create_post(request)", "done"), g),
    "any ASGI app": lambda g: asgi_middleware(snippet("any ASGI app, with AsyncGuards", ""), g),
}


@pytest.mark.parametrize("framework", SYNC)
def test_the_readmes_form(server: Server, sync_guards: Guards[Any], framework: str) -> None:
    answers_refusals(server, SYNC[framework](sync_guards))


@pytest.mark.parametrize("framework", ASYNC)
def test_the_readmes_form_with_asyncio(server: Server, async_guards: AsyncGuards[Any], framework: str) -> None:
    answers_refusals(server, ASYNC[framework](async_guards))


def answers_refusals(server: Server, post: Callable[[], Answer]) -> None:
    status, _, body = post()
    assert (status, body) == (201, b"created")

    server.does(refuse())
    status, headers, body = post()
    assert (status, headers["Retry-After"], headers["Content-Type"]) == (429, "2", "application/problem+json")
    assert headers["RateLimit"].startswith('"create_post";r=0;t=')
    assert json.loads(body)["message"] == "Too many."

    server.does(lambda_error(500, "ServiceException"))
    status, headers, body = post()
    assert (status, headers["Retry-After"]) == (503, "1")


def test_each_row_is_tried() -> None:
    tried = [*SYNC, *ASYNC]
    assert len(ROWS) == 4
    for names, _, _ in ROWS:
        assert [framework for framework in tried if framework in names], names


@pytest.mark.parametrize("event", [None, {}, {"arguments": {}, "identity": {}, "info": {}}, Decision(allowed=False)])
def test_the_form_for_lambda_wants_the_event_of_an_http_request(event: Any) -> None:
    with pytest.raises(
        ConfigurationError, match=r"^too_many_for_lambda got no event of an HTTP request, .* In AppSync, use guarded\.$"
    ):
        too_many_for_lambda(event, Decision(allowed=False))


@pytest.mark.parametrize("headers", [{}, {"headers": None}, {"headers": {"host": "app"}}])
def test_a_load_balancer_with_headers_of_several_values_reads_only_these(headers: dict[str, Any]) -> None:
    """Its event has them instead of headers. A REST API sends and reads both."""
    event = {"requestContext": {"elb": {}}, "multiValueHeaders": {"host": ["app"]}, **headers}
    result = too_many_for_lambda(event, Decision(allowed=False, wait_time=1500))
    wanted = {"Content-Type": "application/problem+json", "Retry-After": "2"}
    if headers.get("headers"):
        assert (result["headers"], "multiValueHeaders" in result) == (wanted, False)
    else:
        assert result["multiValueHeaders"] == {name: [value] for name, value in wanted.items()}
        assert "headers" not in result
