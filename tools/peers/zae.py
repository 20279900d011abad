"""Asks zae-limiter. internal/proofs/bench/program_test.go describes what it reads and prints."""

import json
import os
import resource
import sys
import time
from concurrent.futures import ThreadPoolExecutor

os.environ.update(AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test", AWS_DEFAULT_REGION="eu-west-1")

from zae_limiter import Limit, RateLimitExceeded, SyncRateLimiter, SyncRepository

endpoint, name = sys.argv[1:]
table = name + "-peer"  # with keys of its own
only = os.environ.get("ONLY")  # then the table is there already
if not only:
    SyncRepository(name=table, region="eu-west-1", endpoint_url=endpoint, _skip_deprecation_warning=True).create_table()
repository = (
    SyncRepository.builder().stack(table).region("eu-west-1").endpoint_url(endpoint).auto_update(False).build()
)
limiter = SyncRateLimiter(repository=repository)
limits = [Limit.per_minute("requests", 2)]


def one(user):
    try:
        with limiter.acquire(entity_id=user, resource="act", limits=limits, consume={"requests": 1}):
            return 1
    except RateLimitExceeded:
        return 0


if only == "call" and not one(f"first-{os.getpid()}-{time.time()}"):
    raise RuntimeError("a new user is refused")
if only:
    os._exit(0)


def cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return (usage.ru_utime + usage.ru_stime) * 1e6


def ask(prefix, users, callers):
    names = [prefix + str(n).zfill(36 - len(prefix)) for n in range(users)]
    with ThreadPoolExecutor(callers) as pool:
        began, used = time.perf_counter(), cpu()
        allowed = sum(pool.map(one, names))
        return {"allowed": allowed, "us": (time.perf_counter() - began) * 1e6, "cpu": cpu() - used}


for line in sys.stdin:
    print(json.dumps(ask(**json.loads(line))), flush=True)
