"""The contexts of guarded and slot."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Generic, TypeVar

from guards._errors import ValidationError

T = TypeVar("T")


class _Once(Generic[T]):
    """What is entered once. Two bodies with one context would share what only one of them gives back.

    A process that was forked in the body gives nothing back, because the body
    of its parent goes on.
    """

    _value: T

    def __init__(self, begin: Callable[[], Any], end: Callable[[T, BaseException | None], Any]) -> None:
        self._begin, self._end = begin, end
        self._entered = threading.Lock()  # is never opened again

    def _enter(self) -> None:
        if not self._entered.acquire(blocking=False):
            raise ValidationError("this context was entered before, want a new one for each with statement")
        self._process = os.getpid()

    @property
    def _is_here(self) -> bool:
        return self._process == os.getpid()


class Context(_Once[T]):
    """Runs a function at the start of a with statement, and another one at its end, given the error that ended it.

    This is no generator, because one would also end, and give back, when the
    interpreter drops an open context at its exit.
    """

    def __enter__(self) -> T:
        self._enter()
        self._value = self._begin()
        return self._value

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        if self._is_here:
            self._end(self._value, error)


class AsyncContext(_Once[T]):
    """As Context, for an async with statement."""

    async def __aenter__(self) -> T:
        self._enter()
        self._value = await self._begin()
        return self._value

    async def __aexit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        if self._is_here:
            await self._end(self._value, error)
