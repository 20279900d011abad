"""Invokes functions with boto3. Reads a JSON array of calls from stdin and writes the outcomes to stdout, in order."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

AT_ONCE = int(sys.argv[1])
functions = boto3.client("lambda", config=Config(max_pool_connections=AT_ONCE))


def invoke(call):
    try:
        response = functions.invoke(FunctionName=call["function"], Payload=json.dumps(call["event"]))
    except ClientError as error:
        return {"exception": error.response["Error"]["Code"]}
    return {"functionError": response.get("FunctionError", ""), "payload": json.load(response["Payload"])}


with ThreadPoolExecutor(AT_ONCE) as workers:
    outcomes = list(workers.map(invoke, json.load(sys.stdin)))
json.dump(outcomes, sys.stdout, separators=(",", ":"))
