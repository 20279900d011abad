"""The others in whose limits an action counts, such as a room."""

from __future__ import annotations

import asyncio
import pickle
import time
from collections.abc import Callable
from typing import Annotated, Any

import fastapi
import flask
import httpx
import pytest
from starlette.responses import PlainTextResponse

from guards import AsyncGuards, ConfigurationError, Decision, GuardActivity, Guards, Slot, ValidationError
from guards import fastapi as guards_fastapi
from guards import flask as guards_flask
from guards.asgi import LimitMiddleware
from tests.conftest import PATIENT, Client
from tests.server import Handler, Server, answer, lambda_error, refuse

LISTED: dict[str, Any] = {
    "write": ("rooms-guard", None, ("room", "tenant?")),
    "record": {"guard": "rooms-guard", "subjects": ["room"]},
    "like": ("posts-guard", 60),
}
TIMES = PATIENT | {"activities": LISTED}
NEEDS, HAS = ': the activity "write" needs room, tenant (optional)', ': the activity "write" has room, tenant (optional)'
NONE = (
    'subjects does not go with the activity "like": the list has none for it. '
    "Write the list again with guards generate if it is old."
)
ROOM = {"room": "r42"}


def sent(server: Server) -> list[tuple[str, Any]]:
    return [(received.event["op"], received.event.get("subjects")) for received in server.received]


@pytest.mark.parametrize(
    ("activity", "subjects", "message"),
    [
        ("write", None, "subjects has no room" + NEEDS),
        ("write", {"tenant": "t1"}, "subjects has no room" + NEEDS),
        ("write", {"room": None}, "subjects has no room" + NEEDS),
        (GuardActivity("rooms-guard", "write"), {"rooom": "r1"}, "subjects has no room" + NEEDS),
        ("write", {"room": "r1", "secret": "x"}, "subjects has an unknown name" + HAS),
        ("like", {"secret": "x"}, NONE),
        ("write", ["room"], 'subjects has another form, want one such as {"room": "r42"}'),
    ],
)
def test_wrong_subjects_are_not_sent(
    server: Server, new: Callable[..., Client], activity: Any, subjects: Any, message: str
) -> None:
    client = new()
    receipt = {"at": 1, "request_id": "r1"}
    for verb, more in (("check", {}), ("status", {}), ("release", receipt), ("renew", receipt)):
        with pytest.raises(ValidationError) as error:
            getattr(client, verb)(activity, user_id="u1", subjects=subjects, **more)
        assert str(error.value) == message
        assert error.value.guard
    assert server.received == []


@pytest.mark.parametrize(
    ("activity", "subjects", "want"),
    [
        ("write", {"room": "r42"}, ROOM),
        ("write", {"room": "r1", "tenant": "t1"}, {"room": "r1", "tenant": "t1"}),
        ("write", {"room": "r1", "tenant": None}, {"room": "r1"}),
        (GuardActivity("photos-guard", "write"), {"album": "a1"}, {"album": "a1"}),  # the guard itself knows
        (GuardActivity("photos-guard", "write"), None, None),
        ("like", None, None),
        ("like", {}, None),
    ],
)
def test_subjects_are_sent_with_the_check_and_with_what_follows(
    server: Server, new: Callable[..., Client], activity: Any, subjects: Any, want: Any
) -> None:
    client = new()
    mine = subjects and dict(subjects)
    decision = client.check(activity, user_id="u1", count=3, subjects=mine)
    if mine:
        mine["room"] = "another"  # the app may use its dict again
    stored = pickle.loads(pickle.dumps(decision))
    client.release(stored)
    client.renew(decision)
    client.settle(decision, 1)
    assert sent(server) == [("check", want), ("release", want), ("renew", want), ("release", want)]
    if want:
        assert want["room" if "room" in want else "album"] not in repr(decision)


def test_the_fields_of_a_receipt_and_a_status_take_subjects(server: Server, new: Callable[..., Client]) -> None:
    client = new()
    client.status("write", user_id="u1", subjects=ROOM)
    client.release("write", user_id="u1", at=5, request_id="r1", subjects=ROOM)
    client.renew("write", user_id="u1", at=5, request_id="r1", subjects=ROOM)
    assert sent(server) == [("status", ROOM), ("release", ROOM), ("renew", ROOM)]
    decision = client.check("write", user_id="u1", subjects=ROOM)
    with pytest.raises(TypeError):
        client.release(decision, subjects=ROOM)


def test_a_reset_and_ready_need_none(server: Server, new: Callable[..., Client]) -> None:
    client = new()
    client.reset("write", user_id="u1")
    client.ready("write")
    assert sent(server) == [("reset", None), ("status", {"room": "ready"})]
    server.received.clear()
    client.ready()
    assert sorted(sent(server), key=str) == [("status", None), ("status", {"room": "ready"})]


def test_guarded_gives_back_in_the_room(server: Server, new: Callable[..., Client]) -> None:
    guards = new().guards

    def fails(decision: Decision) -> Any:
        raise RuntimeError(decision.reason)

    def run() -> None:
        waiting = guards.guarded("write", fails, user_id="u1", subjects=ROOM)
        asyncio.run(waiting)  # a function has failed before

    with pytest.raises(RuntimeError):
        run()
    assert sent(server) == [("check", ROOM), ("release", ROOM)]


def test_a_slot_of_a_room(server: Server, new: Callable[..., Client], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("guards._slot.EARLY", 0.1)

    def step(handler: Handler) -> None:
        at = round(time.time() * 1000)
        answer(at=at, requestId="r1", heldUntil=at + 3000, granted=1)(handler)

    server.does(step)
    guards = new().guards

    def work(slot: Slot) -> None:
        assert slot.allowed
        time.sleep(1.5)

    async def later() -> None:
        async with guards.slot("record", user_id="u1", subjects=ROOM) as slot:
            await asyncio.to_thread(work, slot)

    if isinstance(guards, AsyncGuards):
        asyncio.run(later())
    else:
        with guards.slot("record", user_id="u1", subjects=ROOM) as slot:
            work(slot)
    assert sent(server) == [("check", ROOM), ("renew", ROOM), ("release", ROOM)]


def test_no_error_shows_a_subject(server: Server, new: Callable[..., Client]) -> None:
    server.does(lambda_error(400, "Bad", "not in canary-room-4711"))
    with pytest.raises(ConfigurationError) as error:
        new().check("write", user_id="u1", subjects={"room": "canary-room-4711"})
    assert "not in ***" in str(error.value)


# The middleware of each framework takes the room from the path of the request.


def by_flask(guards: Guards, limited: dict[str, Any]) -> httpx.Response:
    app = flask.Flask("test")

    def room() -> dict[str, str | None]:
        return {"room": (flask.request.view_args or {}).get("room_id")}

    @app.post("/rooms/<room_id>")
    @guards_flask.limit(guards, "write", user_id=lambda: "u1", subjects=room, **limited)
    def post(room_id: str) -> str:
        return room_id

    with httpx.Client(transport=httpx.WSGITransport(app), base_url="http://app") as client:
        return client.post("/rooms/r42")


def by_fastapi(guards: AsyncGuards, limited: dict[str, Any]) -> httpx.Response:
    app = fastapi.FastAPI()
    guards_fastapi.install(app)

    def user_id() -> str:
        return "u1"

    async def room(room_id: Annotated[str, fastapi.Path()]) -> dict[str, str]:
        return {"room": room_id}

    limit = guards_fastapi.limit(guards, "write", user_id=user_id, subjects=room, **limited)
    app.post("/rooms/{room_id}", dependencies=[fastapi.Depends(limit)])(lambda: "ok")
    return post(app)


def by_asgi(guards: AsyncGuards, limited: dict[str, Any]) -> httpx.Response:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await PlainTextResponse("ok")(scope, receive, send)

    async def room(scope: Any) -> dict[str, str]:
        return {"room": scope["path"].rpartition("/")[2]}

    return post(LimitMiddleware(app, guards=guards, activity="write", user_id=lambda _: "u1", subjects=room, **limited))


def post(app: Any) -> httpx.Response:
    async def main() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://app") as client:
            return await client.post("/rooms/r42")

    return asyncio.run(main())


def limits(room: int) -> list[dict[str, Any]]:
    figures = {"limit": 10, "activityCount": 10 - room, "waitTime": 0, "resetAt": 0}
    return [{"name": "write", "remaining": 9, **figures}, {"name": "room", "remaining": room, **figures}]


@pytest.mark.parametrize("framework", [by_flask, by_fastapi, by_asgi])
def test_middleware_takes_subjects_from_the_request(server: Server, framework: Callable[..., httpx.Response]) -> None:
    guards: Any = (Guards if framework is by_flask else AsyncGuards)(
        **PATIENT | {"activities": {"write": ("rooms-guard", 60, ("room",))}}
    )
    server.does(answer(limits=limits(3)), refuse(limits=limits(0), limitedBy="room"), answer(limits=limits(3)))
    allowed, refused = framework(guards, {}), framework(guards, {})
    assert (allowed.status_code, refused.status_code) == (200, 429)
    assert allowed.headers["RateLimit"] == '"write";r=9;t=0, "room";r=3;t=0'
    assert "RateLimit-Policy" not in allowed.headers  # the window of the room is not in the list
    assert refused.json()["violated-policies"] == ["room"]
    assert "r42" not in refused.text
    framework(guards, {"options": lambda *_: {"tier": "pro", "subjects": {"room": "another"}}})
    assert sent(server) == [("check", ROOM)] * 3
    assert server.received[2].event["tier"] == "pro"
    guards.close()


def test_flask_takes_no_async_subjects() -> None:
    async def later() -> dict[str, str]:
        return ROOM

    with pytest.raises(ConfigurationError, match=r"^The option subjects is async, want a function that is not async\.$"):
        guards_flask.limit(Guards(), "write", user_id=lambda: "u1", subjects=later)  # type: ignore[arg-type]


def test_fastapi_needs_types_of_subjects() -> None:
    with pytest.raises(ConfigurationError, match=r'^The parameter "room_id" of subjects needs a type, such as Request\.$'):
        guards_fastapi.limit(AsyncGuards(), "write", user_id=lambda: "u1", subjects=lambda room_id: {"room": room_id})
