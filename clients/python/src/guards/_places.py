"""The app's own queue for its requests."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from guards._errors import NoThread

IDLE = 10.0  # seconds after which a thread without work ends


class Places:
    """Lets a few calls run at the same time. The others wait in the order of their arrival."""

    def __init__(self, most: int) -> None:
        self._free = most
        self._lock = threading.Lock()
        self._waiting: deque[threading.Lock] = deque()

    def __enter__(self) -> None:
        with self._lock:
            if self._free > 0:
                self._free -= 1
                return
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        try:
            turn.acquire()
        except BaseException:  # such as KeyboardInterrupt
            with self._lock:
                if turn in self._waiting:
                    self._waiting.remove(turn)
                    raise
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._free += 1


class Workers:
    """Runs the calls of AsyncGuards in threads, a few at the same time. The others wait in the order of their arrival."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._threads = 0
        self._idle: list[_Worker] = []
        self._waiting: deque[Callable[[], None]] = deque()

    def add(self, job: Callable[[], None]) -> None:
        """Run a job, which raises no error."""
        with self._lock:
            if self._idle:
                self._idle.pop().take(job)
                return
            if self._threads >= self._most:
                self._waiting.append(job)
                return
            self._threads += 1
        try:
            threading.Thread(target=_Worker(self, job).run, name="guards-worker", daemon=True).start()
        except RuntimeError as error:
            with self._lock:
                self._threads -= 1
                if not self._threads:
                    raise NoThread(str(error)) from error
                if self._idle:  # by now
                    self._idle.pop().take(job)
                else:
                    self._waiting.append(job)  # for the thread of another job

    def drop(self, job: Callable[[], None]) -> bool:
        """Report whether the job has not begun. Then it never will."""
        with self._lock:
            is_waiting = job in self._waiting
            if is_waiting:
                self._waiting.remove(job)
            return is_waiting

    def rest(self, worker: _Worker) -> Callable[[], None] | None:
        """Return the next job of a worker, or let it wait for one."""
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._idle.append(worker)
            return None

    def leave(self, worker: _Worker) -> bool:
        """Report whether a worker may end, because nobody has given it a job."""
        with self._lock:
            if worker not in self._idle:
                return False
            self._idle.remove(worker)
            self._threads -= 1
            return True


class _Worker:
    """A thread. It does one job after another."""

    def __init__(self, workers: Workers, job: Callable[[], None]) -> None:
        self._workers = workers
        self._job: Callable[[], None] | None = job
        self._turn = threading.Lock()
        self._turn.acquire()

    def take(self, job: Callable[[], None]) -> None:
        self._job = job
        self._turn.release()

    def run(self) -> None:
        job = self._job
        while job is not None:
            job()
            job = self._workers.rest(self)
            if job is None:
                if not self._turn.acquire(timeout=IDLE):
                    if self._workers.leave(self):
                        return
                    self._turn.acquire()  # a job came at the last moment
                job, self._job = self._job, None
