"""An app in Python that asks a guard by one way. Its arguments are the way and an address.

internal/proofs/bench/program_test.go describes what it reads and prints.
"""

import os
import sys

# json, time and resource are loaded later: they are no part of Python's own start


def none(address):
    return lambda user_id: True


def invoke(address):
    from activities import ACTIVITIES

    os.environ["AWS_ENDPOINT_URL_LAMBDA"] = address
    return asking(activities=ACTIVITIES)


def url(address):
    from activities import ACTIVITIES

    return asking(activities=ACTIVITIES, urls={"posts-guard": address + "/posts-guard"})


def agent(address):
    return asking(agent=address)


def async_invoke(address):
    from activities import ACTIVITIES

    os.environ["AWS_ENDPOINT_URL_LAMBDA"] = address
    return async_asking(activities=ACTIVITIES)


def async_agent(address):
    return async_asking(agent=address)


def asking(**options):
    from guards import Guards

    guards = Guards(**options)
    return lambda user_id: guards.check("create_post", user_id=user_id).reason == "ok"  # an outage has another one


def async_asking(**options):
    import asyncio

    from guards import AsyncGuards

    guards, loop = AsyncGuards(**options), asyncio.new_event_loop()
    return lambda user_id: loop.run_until_complete(guards.check("create_post", user_id=user_id)).reason == "ok"


def sdk(address):
    """Only invoke the function with botocore's client, and read one field."""
    import json

    import botocore.session

    client = botocore.session.get_session().create_client("lambda", endpoint_url=address)

    def ask(user_id):
        payload = json.dumps({"userId": user_id, "activity": "create_post"})
        answer = client.invoke(FunctionName="posts-guard", Payload=payload)
        return json.loads(answer["Payload"].read())["reason"] == "ok"

    return ask


WAYS = {
    "none": none,
    "invoke": invoke,
    "url": url,
    "agent": agent,
    "async-invoke": async_invoke,
    "async-agent": async_agent,
    "sdk": sdk,
}


def main():
    way, address = sys.argv[1:]
    ask = WAYS[way](address)
    only = os.environ.get("ONLY")
    if only == "call" and not ask(f"first-{os.getpid()}-{os.times().elapsed}"):
        raise RuntimeError("a new user is refused")
    if only:
        os._exit(0)  # without what Python does at its end

    import json
    import time

    for line in sys.stdin:
        job = json.loads(line)
        users = [job["prefix"] + str(n).zfill(36 - len(job["prefix"])) for n in range(job["users"])]
        began, used = time.perf_counter(), time.process_time()
        allowed = sum(ask(user) for user in users)
        used, took = time.process_time() - used, time.perf_counter() - began
        print(json.dumps({"allowed": allowed, "us": took * 1e6, "cpu": used * 1e6}), flush=True)


main()
