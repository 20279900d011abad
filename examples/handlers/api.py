"""A Lambda function behind a REST API or an HTTP API of API Gateway, or a Function URL."""

from typing import Any

from activities import ACTIVITIES
from guards import Guards
from guards.http import rate_limit_headers, too_many_for_lambda

guards = Guards(activities=ACTIVITIES)  # outside the handler, so that all calls of an instance share it


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    decision = guards.check("create_post", user_id=user_of(event))
    if not decision.allowed:
        return too_many_for_lambda(event, decision)  # 429 with Retry-After and the message
    return {"statusCode": 201, "headers": rate_limit_headers(decision), "body": "created"}  # write the post


def user_of(event: dict[str, Any]) -> str:
    """Return the user of a REST API's Cognito authorizer, of an HTTP API's JWT, or of a signature, which a Function URL checks."""
    authorizer = event["requestContext"]["authorizer"]
    if "iam" in authorizer:
        return authorizer["iam"]["userId"]
    return authorizer.get("jwt", authorizer)["claims"]["sub"]
