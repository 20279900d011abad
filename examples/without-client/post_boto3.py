"""Asks a guard with boto3, without the client: python post_boto3.py USER REQUEST_ID."""

import json
import logging
import sys

import boto3
from botocore import exceptions as broken
from botocore.config import Config

BROKEN = (broken.ConnectTimeoutError, broken.ReadTimeoutError, broken.EndpointConnectionError,
          broken.ConnectionClosedError, broken.ResponseStreamingError)
LASTING = ("EC2Access", "Invalid", "KMS")  # such an error has a status like an outage, but does not pass by itself

# All threads can share it. It keeps 10 connections for later calls (max_pool_connections).
guards = boto3.client("lambda", config=Config(
    connect_timeout=1, read_timeout=2, retries={"mode": "standard", "total_max_attempts": 3}))


class Outage(Exception):
    """The guard did not answer."""


def ask(guard, **event):
    try:
        response = guards.invoke(FunctionName=guard, Payload=json.dumps(event))
        answer = json.load(response["Payload"])
    except BROKEN as error:
        raise Outage(error) from error
    except broken.ClientError as error:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        if status == 429 or status >= 500 and not error.response["Error"]["Code"].startswith(LASTING):
            raise Outage(error) from error
        raise
    if "FunctionError" in response:
        text = f"{guard}: {answer.get('errorType')}: {answer.get('errorMessage')}"
        raise Outage(text) if answer.get("errorType") in ("Unavailable", "Sandbox.Timedout") else RuntimeError(text)
    if not isinstance(answer.get("allowed"), bool):
        raise RuntimeError(f"{guard} is no guard")
    return answer


def create_post(user_id, request_id):
    try:
        answer = ask("posts-guard", userId=user_id, activity="create_post", requestId=request_id)
    except Outage as error:
        logging.error("posts-guard: %s", error)
        answer = {"allowed": True}  # go on without a limit
    if not answer["allowed"]:
        return 429, f"{answer['message']} (wait {answer['waitTime']} ms)"
    return 201, "created"  # write the post here


print(*create_post(sys.argv[1], sys.argv[2]))
