"""What each process has for itself."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Own(Generic[T]):
    """A value that each process makes for itself.

    A fork copies connections that two processes must not share, and locks that
    threads of the parent hold, but not these threads. So a child begins with a
    new value. The process id is compared at each use, because a server that is
    written in C can fork without telling Python.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._values = {os.getpid(): make()}

    def get(self) -> T:
        """Return the value of this process."""
        values, process = self._values, os.getpid()
        if process not in values:
            # All threads of a new process get the value of the first one. This takes no lock, because a fork can copy a lock
            # that nobody opens again: setdefault is one step.
            values.setdefault(process, self._make())
            self._values = {process: values[process]}
        return values[process]
