"""Functions of the app that this package calls.

An async function returns a coroutine, which counts as true. So a function that
is async by mistake must never decide anything with the coroutine itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TypeVar

from guards._errors import ConfigurationError

T = TypeVar("T")


def is_async(function: Callable[..., object]) -> bool:
    """Report whether a function or a callable object is async."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


async def result_of(value: T | Awaitable[T]) -> T:
    """Return what a function returned, or what its coroutine returns."""
    return await value if inspect.isawaitable(value) else value


def not_async(value: T, name: str) -> T:
    """Return what a function returned. A coroutine is an error, even if the function itself is not async."""
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()  # it will never be awaited
        raise must_not_be_async(name)
    return value


def true_or_false(name: str, value: object) -> bool:
    """Return what a function of the app decided. None counts as False. A function or a generator would be true in Python."""
    if value is None or isinstance(value, bool):
        return bool(value)
    raise returned(name, value, "True or False")


def must_not_be_async(name: str) -> ConfigurationError:
    """Return the error for an async function where only another one works."""
    return ConfigurationError(f"{name} is async, want a function that is not async.")


def returned(name: str, value: object, want: str) -> ConfigurationError:
    """Return the error for a function of the app that returned something of the wrong type. The value could be an id."""
    return ConfigurationError(f"The option {name} returned a value of the type {type(value).__name__}, want {want}.")
