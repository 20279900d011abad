"""The list that the tests pass to their clients, in the form that guards generate writes."""

from typing import Final, Literal

Activity = Literal["create_post", "delete_post", "view", "pin", "send_message", "update_member_role"]

ACTIVITIES: Final[dict[Activity, tuple[str, int | None]]] = {
    "create_post": ("posts-guard", 60),
    "delete_post": ("posts-guard", 60),
    "view": ("posts-guard", None),
    "pin": ("pins-guard", 43200),
    "send_message": ("chat-guard", 5),
    "update_member_role": ("jobs-guard", 10),
}
