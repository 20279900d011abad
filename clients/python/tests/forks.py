"""An app whose workers are forked while its client is in use. Usage: python -m tests.forks fork|pool ROUNDS

In each round it forks four workers of eight threads. Each thread checks for a
user of its own: 12 times, so the last two checks are refused. Meanwhile threads
of the parent use the same client. It prints each answer that is wrong, and the
number of all checks.

gunicorn runs the function application instead.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import chain
from typing import Any
from uuid import uuid4

from guards import Guards
from tests.overload import LIMIT

WORKERS, THREADS, CHECKS = 4, 8, LIMIT + 2

guards = Guards(activities={"create_post": ("posts-guard", 60)}, timeout=60, decision_timeout=20)


def check(user: str, n: int) -> list[object]:
    """Check once, and return what a caller learns."""
    decision = guards.check("create_post", user_id=user, request_id=f"{user}-{n}")
    return [decision.user_id, decision.request_id, decision.allowed, decision.outage and str(decision.outage)]


def right(user: str, n: int) -> list[object]:
    return [user, f"{user}-{n}", n < LIMIT, None]


def one_user(user: str) -> list[str]:
    """Return the wrong answers to all checks of a user."""
    wrong = []
    for n in range(CHECKS):
        try:
            got: object = check(user, n)
        except Exception as error:
            got = repr(error)
        if got != right(user, n):
            wrong.append(f"{got} instead of {right(user, n)}")
    return wrong


def work(worker: int) -> list[str]:  # noqa: ARG001
    """Return the wrong answers of eight threads that begin together."""
    together = threading.Barrier(THREADS)

    def thread(_: int) -> list[str]:
        together.wait()
        return one_user(str(uuid4()))

    with ThreadPoolExecutor(THREADS) as pool:
        return list(chain(*pool.map(thread, range(THREADS))))


def by_fork() -> list[str]:
    pipes = []
    for worker in range(WORKERS):
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.write(writing, json.dumps(work(worker)[:10]).encode())
            os._exit(0)
        os.close(writing)
        pipes.append(reading)
    wrong: list[str] = []
    for reading in pipes:
        with os.fdopen(reading) as pipe:
            wrong += json.loads(pipe.read() or '["a worker died"]')
        os.wait()
    return wrong


def by_pool() -> list[str]:
    with ProcessPoolExecutor(WORKERS, mp_context=multiprocessing.get_context("fork")) as pool:
        return list(chain(*pool.map(work, range(WORKERS))))


def main(form: Callable[[], list[str]], rounds: int) -> None:
    ended = threading.Event()
    wrong: list[str] = work(0)  # opens connections

    def parent() -> None:
        while not ended.wait(0.05):
            wrong.extend(one_user(str(uuid4())))

    threads = [threading.Thread(target=parent) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(rounds):
        wrong += form()
    ended.set()
    for thread in threads:
        thread.join()
    print(*wrong, f"{(rounds * WORKERS + 1) * THREADS * CHECKS} checks", sep="\n")  # noqa: T201


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Check for the user and with the number in the path."""
    _, user, n = environ["PATH_INFO"].split("/")
    body = json.dumps(check(user, int(n))).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


if __name__ == "__main__":
    main({"fork": by_fork, "pool": by_pool}[sys.argv[1]], int(sys.argv[2]))
elif "gunicorn" in sys.argv[0]:
    work(0)  # opens connections, before --preload lets workers begin
