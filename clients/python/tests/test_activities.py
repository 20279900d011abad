"""The list of activities that an app passes to its client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

import fastapi
import pytest

from guards import AnyActivity, AsyncGuards, ConfigurationError, GuardActivity, Guards, ValidationError
from guards import fastapi as guards_fastapi
from guards import flask as guards_flask
from guards._options import entries
from guards.asgi import LimitMiddleware
from guards.http import rate_limit_headers
from tests.activities import ACTIVITIES, Activity
from tests.conftest import Client
from tests.server import Server

UPLOAD = GuardActivity("photos-guard", "upload_photo")
JSON: dict[str, dict[str, Any]] = {
    "upload_photo": {"guard": "photos-guard", "window": 60},
    "view_photo": {"guard": "photos-guard"},
}
TUPLES = {"upload_photo": ("photos-guard", 60), "view_photo": ("photos-guard", None)}

HELD: Final[dict[Literal["export"], tuple[str, int | None, bool] | tuple[str, None, tuple[str, ...], bool]]] = {
    "export": ("exports-guard", 60, True)
}

PASS_THE_LIST = "pass the list that guards generate writes (activities/activities.py) as the option activities"
NAME_THE_GUARD = "or name the guard: GuardActivity(guard, activity)"


@pytest.mark.parametrize("activities", [TUPLES, JSON], ids=["python", "json"])
def test_either_form_of_the_list_has_guards_and_windows(server: Server, new: Callable[..., Client], activities: Any) -> None:
    client = new(activities=activities)
    upload, view = (client.check(activity, user_id="u1") for activity in activities)
    client.ready()
    assert {received.path for received in server.received} == {"/2015-03-31/functions/photos-guard/invocations"}
    assert [received.event["op"] for received in server.received] == ["check", "check", "status"]
    assert rate_limit_headers(upload)["RateLimit-Policy"] == '"upload_photo";q=10;w=60'
    assert "RateLimit-Policy" not in rate_limit_headers(view)


def test_the_list_says_which_activities_have_hold() -> None:
    listed: dict[str, Any] = {
        "export": ("exports-guard", None, True),
        "import": ("exports-guard", 60, False),
        "record": ("rooms-guard", None, ("room",), True),
        "write": ("rooms-guard", None, ("room",)),
        "upload": {"guard": "photos-guard", "hold": True},
        "view": {"guard": "photos-guard"},
    }
    found = entries(listed)
    assert [name for name, entry in found.items() if entry.hold] == ["export", "record", "upload"]
    assert [name for name, entry in found.items() if entry.subjects] == ["record", "write"]
    assert found["import"].window == 60


def test_a_later_change_of_the_list_has_no_effect(server: Server, new: Callable[..., Client]) -> None:
    activities = dict(TUPLES)
    client = new(activities=activities)
    activities.clear()
    client.check("upload_photo", user_id="u1")
    assert len(server.received) == 1


@pytest.mark.parametrize("activities", [None, {}, TUPLES])
def test_a_call_can_name_its_guard(server: Server, new: Callable[..., Client], activities: Any) -> None:
    client = new(activities=activities)
    client.check(GuardActivity("maps-guard", "move_map"), user_id="u1")
    client.ready(GuardActivity("maps-guard", "move_map"))
    assert [received.path.split("/")[3] for received in server.received] == ["maps-guard", "maps-guard"]


@pytest.mark.parametrize("activities", [None, {}])
def test_without_a_list_the_error_says_how_to_get_one(server: Server, new: Callable[..., Client], activities: Any) -> None:
    client = new(activities=activities)
    with pytest.raises(ValidationError) as unknown:
        client.check("upload_photo", user_id="u1")
    assert str(unknown.value) == f'no guard is known for the activity "upload_photo": {PASS_THE_LIST}, {NAME_THE_GUARD}'
    with pytest.raises(ConfigurationError) as nothing:
        client.ready()
    assert str(nothing.value) == f"no guard is known: {PASS_THE_LIST}, {NAME_THE_GUARD}"
    assert server.received == []


KNOWN = "no guard is known for the activity "


@pytest.mark.parametrize(
    ("activity", "advice"),
    [
        ("create_pots", KNOWN + '"create_pots": did you mean "create_post"?'),
        ("follow", f'{KNOWN}"follow": write the list again with guards generate, {NAME_THE_GUARD}'),
        ("", KNOWN + '"": write the list again'),
        (None, "the activity is None, want its name or a GuardActivity"),
        (["pin"], "the activity is of the type list, want its name or a GuardActivity"),
        (("posts-guard", "create_post"), "the activity is of the type tuple, want its name or a GuardActivity"),
        (GuardActivity("posts-guard", None), "the activity has another form, want GuardActivity("),  # type: ignore[arg-type]
        (GuardActivity("", "create_post"), "the activity has another form, want GuardActivity("),
    ],
)
def test_an_activity_that_is_not_in_the_list(server: Server, new: Callable[..., Client], activity: Any, advice: str) -> None:
    with pytest.raises(ValidationError) as error:
        new().check(activity, user_id="u1")
    assert str(error.value).startswith(advice)
    assert server.received == []


def test_without_a_list_any_guard_can_have_a_url(server: Server, new: Callable[..., Client]) -> None:
    new(activities=None, urls={"photos-guard": f"{server.url}/photos"}).check(UPLOAD, user_id="u1")
    assert server.received[0].path == "/photos"


def test_the_types_know_the_activities_of_a_list() -> None:
    """Here mypy is the test: it would report a comment that ignores no error."""

    def unused() -> None:
        listed = Guards(activities=ACTIVITIES)
        listed.check("create_post", user_id="u1")
        listed.check(UPLOAD, user_id="u1")
        listed.check("create_pots", user_id="u1")  # type: ignore[arg-type]
        guards_flask.limit(listed, "pin", user_id=lambda: "u1")
        guards_flask.limit(listed, "pn", user_id=lambda: "u1")  # type: ignore[misc]

        waiting = AsyncGuards(activities=ACTIVITIES)
        waiting.guarded("create_pots", user_id="u1")  # type: ignore[call-overload]
        guards_fastapi.limit(waiting, "pin", user_id=lambda: "u1")
        guards_fastapi.limit(waiting, "pn", user_id=lambda: "u1")  # type: ignore[misc]
        app = fastapi.FastAPI()
        app.add_middleware(LimitMiddleware, guards=waiting, activity="pin", user_id=lambda _: "u1")

        def count(guards: Guards[Activity], any_guards: Guards) -> None:
            guards.reset("pin", user_id="u1")
            any_guards.reset("upload_photo", user_id="u1")

        count(listed, Guards(activities=JSON))
        Guards(activities=HELD).check("export", user_id="u1")
        Guards(activities=HELD).check("exports", user_id="u1")  # type: ignore[arg-type]
        named: AnyActivity = "upload_photo"
        Guards().check(named, user_id="u1")
        Guards(activities=TUPLES).check(named, user_id="u1")

    assert callable(unused)


@pytest.mark.parametrize("kind", [Guards, AsyncGuards])
@pytest.mark.parametrize(
    ("activities", "message"),
    [
        (
            "activities.json",
            "The option activities is 'activities.json', want the list that guards generate writes (activities/activities.py).",
        ),
        ([], "The option activities is [], want the list that guards generate writes"),
        (False, "The option activities is False, want the list that guards generate writes"),
        ({None: ("photos-guard", 60)}, "The option activities has None, want the name of an activity."),
        (
            {"a": "photos-guard"},
            "The option activities['a'] is 'photos-guard', want a guard and a window, such as ('photos-guard', 60).",
        ),
        ({"a": None}, "The option activities['a'] is None, want a guard and a window"),
        ({"a": ("photos-guard",)}, "The option activities['a'] is ('photos-guard',), want a guard and a window"),
        ({"a": (60, "photos-guard")}, "The option activities['a'] is (60, 'photos-guard'), want a guard and a window"),
        ({"a": ("", 60)}, "The option activities['a'] is ('', 60), want a guard and a window"),
        ({"a": {"window": 60}}, "The option activities['a'] is {'window': 60}, want a guard and a window"),
        (
            {"a": {"guard": "photos-guard", "window": "60"}},
            "The option activities['a'] is {'guard': 'photos-guard', 'window': '60'}, want a guard",
        ),
        (
            {"a": ("photos-guard", 60, "room")},
            "The option activities['a'] has the subjects 'room', want names, such as ('room', 'tenant?').",
        ),
        ({"a": {"guard": "photos-guard", "subjects": ["?"]}}, "The option activities['a'] has the subjects ['?'], want names"),
        (
            {"a": ("photos-guard", 60, ("room",), 1)},
            "The option activities['a'] has the hold 1, want True or False.",
        ),
        ({"a": {"guard": "photos-guard", "hold": "yes"}}, "The option activities['a'] has the hold 'yes', want True or False."),
        (
            {"a": ("photos-guard", 60, ("room",), True, 1)},
            "The option activities['a'] is ('photos-guard', 60, ('room',), True, 1)",
        ),
        ({"a": ("photos-guard", 0)}, "The option activities['a'] is ('photos-guard', 0), want a guard and a window"),
        ({"a": ("photos-guard", True)}, "The option activities['a'] is ('photos-guard', True), want a guard and a window"),
        ({"a": ("photos-guard", 1.5)}, "The option activities['a'] is ('photos-guard', 1.5), want a guard and a window"),
    ],
)
def test_a_wrong_list_is_an_error_at_once(kind: Any, activities: Any, message: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        kind(activities=activities)
    assert str(error.value).startswith(message)
