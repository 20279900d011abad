"""What a response means: a decision, an outage or a mistake."""

from __future__ import annotations

import json
from typing import Any

from guards._decision import Decision
from guards._errors import AnswerError, ConfigurationError, GuardsError, Lost, ValidationError
from guards._request import Request
from guards._response import LONGEST_BODY, Response

# Lambda's codes for credentials that it does not accept, without the ending "Exception".
_BAD_CREDENTIALS = {
    "UnrecognizedClient",
    "InvalidClientTokenId",
    "InvalidSignature",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "IncompleteSignature",
    "MissingAuthenticationToken",
}

# Lambda's codes for a function that can't start, and what to do. They have status 502, but they do not pass by themselves.
_CANNOT_START = {
    "EC2AccessDenied": "Allow its role to create network interfaces.",
    "InvalidRuntime": "Deploy it with a runtime that Lambda offers.",
    "InvalidSecurityGroupID": "Correct the security groups of its VPC settings.",
    "InvalidSubnetID": "Correct the subnets of its VPC settings.",
    "InvalidZipFile": "Deploy it again: Lambda can't unpack its code.",
    "KMSAccessDenied": "Allow its role to decrypt with the KMS key of its environment variables.",
    "KMSDisabled": "Enable the KMS key of its environment variables.",
    "KMSInvalidState": "Correct the state of the KMS key of its environment variables.",
    "KMSNotFound": "Give it a KMS key that exists for its environment variables.",
}

# Lambda's codes with status 502 that pass by themselves.
_PASSING = {"EC2Throttled", "EC2Unexpected", "ENILimitReached", "ResourceNotReady", "SubnetIPAddressLimitReached"}


def read_invoke(response: Response, request: Request, region: str) -> Decision:
    """Read the response of Lambda's Invoke."""
    if response.status_code >= 300:
        raise _refused(response, request, region)
    if response.headers.get("x-amz-function-error"):
        return _failed(json_of(response.content), request)
    return _decision(response, request)


def read_url(response: Response, request: Request, region: str) -> Decision:
    """Read the response of a Function URL: a guard's answer or problem, or an error of Lambda itself."""
    status, problem = response.status_code, json_of(response.content)
    if status == 200 or (status == 429 and isinstance(problem.get("allowed"), bool)):
        return _decision(response, request)
    kind = problem.get("errorType")
    if (status, kind) in ((400, "ValidationError"), (503, "Unavailable")):
        return _failed({"errorType": kind, "errorMessage": problem.get("detail")}, request)
    if status < 300:
        raise _no_answer(response.content, request)
    raise _refused(response, request, region)


def _decision(response: Response, request: Request) -> Decision:
    answer = json_of(response.content)
    if not isinstance(answer.get("allowed"), bool):
        raise _no_answer(response.content, request)
    try:
        decision = request.read(answer)
    except (AttributeError, TypeError):  # limits have another form
        raise _no_answer(response.content, request) from None
    vars(decision)["_date"] = response.headers.get("date")
    return decision


def _failed(error: dict[str, Any], request: Request) -> Decision:
    """Read a function error. The guard made all its own attempts, so a further one would not help."""
    kind, message = error.get("errorType"), str(error.get("errorMessage") or "")
    shown = request.without_ids(message)
    if kind == "RateLimitExceeded":  # the guard has ON_LIMIT=error
        return request.decision(allowed=False, reason="limited", granted=0, message=message)
    if kind == "ValidationError":
        raise ValidationError(message[:500], request.function)  # a guard never shows an id
    if kind == "Unavailable":
        raise Lost(shown, again=False, answered=True)
    if kind == "Sandbox.Timedout" or (not kind and "Task timed out after" in message):
        raise Lost("the function timed out", again=False)
    raise _crashed(request.without_ids(kind or "Unhandled"), request.function)


def _crashed(code: str, function: str) -> AnswerError:
    return AnswerError(f"{function} failed: {code}. Its log says why.", function)


def _refused(response: Response, request: Request, region: str) -> Exception:
    """Return what an error of Lambda itself means. No guard has answered."""
    status, body, function = response.status_code, json_of(response.content), request.function
    by_url = request.url is not None
    code = str(response.headers.get("x-amzn-errortype") or body.get("__type") or "").split(":")[0].rpartition("#")[2]
    code = request.without_ids(code or f"HTTP {status}")
    kind = code.removesuffix("Exception")
    if kind in _CANNOT_START:
        message = f"Lambda can't start {function}: {code}. {_CANNOT_START[kind]}"
        return ConfigurationError(message, function)
    if by_url and status == 502 and kind not in _PASSING:  # the guard crashed, or could not start, or timed out
        return _crashed(code, function)
    if kind == "TooManyRequests" or status == 429 or status >= 500:
        return Lost(code)
    if kind in _BAD_CREDENTIALS:
        message = f"AWS refused the credentials ({code}). Renew them, and check this machine's clock."
    elif by_url and status == 403:
        message = (
            f"The app may not call the URL of {function}. "
            "Allow its role lambda:InvokeFunctionUrl and lambda:InvokeFunction on this function."
        )
    elif not by_url and kind == "AccessDenied":
        message = (
            f"The app may not invoke {function} in {region}. Allow its role the action lambda:InvokeFunction on this function."
        )
    elif status == 404 if by_url else kind == "ResourceNotFound":
        message = f"There is no function {function} in {region}. Deploy it, or check the region and the name."
    else:
        reason = request.without_ids(body.get("message") or body.get("Message") or "")
        return request.not_invoked(f"{code}: {reason}")
    return ConfigurationError(message, function)


def _no_answer(body: bytes, request: Request) -> GuardsError:
    excerpt = request.without_ids(body.decode(errors="replace"), 100)
    escaped = json.dumps(excerpt)[1:-1]
    return AnswerError(
        f"{request.function} answered something that no guard answers: {escaped}. Check the function's name.", request.function
    )


def json_of(body: bytes) -> dict[str, Any]:
    """Return a JSON object; empty if the body is something else, or too long for an answer."""
    if len(body) > LONGEST_BODY:
        return {}
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
