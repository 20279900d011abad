"""A Lambda resolver of AppSync for the mutations createPost(text) and createPosts(texts)."""

from typing import Any

from activities import ACTIVITIES
from guards import Guards

guards = Guards(activities=ACTIVITIES)


def handler(event: dict[str, Any], context: object) -> dict[str, int]:
    # AppSync calls the resolver once for each mutation in a request. A list counts as many posts as it has. If the user is
    # over the limit, guarded raises an error, and AppSync sends the message in "errors".
    texts = event["arguments"].get("texts") or [event["arguments"]["text"]]
    with guards.guarded("create_post", user_id=event["identity"]["sub"], count=len(texts)):
        return save(texts)


def save(texts: list[str]) -> dict[str, int]:
    """Write the posts."""
    return {"created": len(texts)}
