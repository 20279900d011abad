"""The app's own queue for its requests."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from guards._attempt import Attempt
from guards._errors import NoThread

# How many requests are signed at the same time. Signing needs the interpreter, which all threads and the event loop share.
SIGNERS = 2


class Queue:
    """Runs the attempts of a few calls at the same time, each in a thread. The others wait in the order of their arrival.

    A call keeps its place until it ends, so that its repeats do not wait behind
    other calls. A thread that has ended an attempt runs the next one that waits.
    """

    def __init__(self, most: int) -> None:
        self._most = most  # calls at the same time
        self._lock = threading.Lock()
        self._waiting: deque[Attempt] = deque()
        self._calls: set[object] = set()  # that have a place
        self._running: set[Attempt] = set()
        self._signing: set[Attempt] = set()

    def add(self, attempt: Attempt) -> None:
        """Run an attempt, or let it wait."""
        with self._lock:
            if attempt.call in self._calls:
                self._waiting.appendleft(attempt)
            else:
                self._waiting.append(attempt)
        self._start()

    def signed(self, attempt: Attempt) -> None:
        """Let the next attempt begin. This one needs the interpreter only for moments from now on."""
        with self._lock:
            self._signing.discard(attempt)
        self._start()

    def give_up(self, attempt: Attempt) -> None:
        """End an attempt. Its thread may live on, but nobody waits for that."""
        attempt.give_up()
        with self._lock:
            self._running.discard(attempt)
            self._signing.discard(attempt)
        self._start()

    def leave(self, call: object) -> None:
        """Free the place of a call that has ended."""
        with self._lock:
            self._calls.discard(call)
        self._start()

    def refuse(self, error: Callable[[str], Exception | None]) -> None:
        """End each attempt that waits and for whose function there is an error."""
        with self._lock:
            waiting, self._waiting = self._waiting, deque()
            errors = [(attempt, error(attempt.function)) for attempt in waiting]
            self._waiting.extend(attempt for attempt, e in errors if e is None)
        for attempt, e in errors:
            if e is not None:
                attempt.begun.set_exception(e)

    def _start(self) -> None:
        """Start a thread for each attempt that may begin."""
        while (attempt := self._next()) is not None:
            thread = threading.Thread(target=self._work, args=(attempt,), name="guards-attempt", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                self._without_thread(attempt, error)
                return

    def _next(self, ended: Attempt | None = None) -> Attempt | None:
        """Return the attempt that may begin now, after one has ended."""
        with self._lock:
            if ended is not None:
                self._running.discard(ended)
                self._signing.discard(ended)
                if ended.is_last and not ended.is_over:
                    self._calls.discard(ended.call)
            while self._waiting and len(self._signing) < SIGNERS:
                attempt = self._waiting[0]
                if len(self._calls) >= self._most and attempt.call not in self._calls:
                    return None
                self._waiting.popleft()
                if not attempt.is_over:
                    self._calls.add(attempt.call)
                    self._running.add(attempt)
                    self._signing.add(attempt)
                    return attempt
            return None

    def _work(self, attempt: Attempt | None) -> None:
        while attempt is not None:
            attempt.run()
            following = self._next(attempt)  # before the caller learns of the end: a waiting attempt needs no new thread then
            attempt.deliver()
            attempt = following

    def _without_thread(self, attempt: Attempt, error: RuntimeError) -> None:
        """Let an attempt wait for the thread of another one. If there is none, the attempt fails."""
        with self._lock:
            self._running.discard(attempt)
            self._signing.discard(attempt)
            if self._running:
                self._waiting.appendleft(attempt)
                return
        attempt.begun.set_exception(NoThread(str(error)))
