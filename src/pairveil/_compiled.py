"""Compiled loops that are not compiled, nor numba loaded, for a handful of numbers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import update_wrapper
from types import FunctionType
from typing import Any

SMALL = 10_000
"""Numbers in all arguments together, below which Python itself is done before numba is loaded."""


class Loop:
    """A function of arrays that numba compiles (and keeps on disk) once an argument is large.

    ``function``: of arrays and numbers, as ``numba.njit`` takes it; it may call other loops by name.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        """The function's value, by machine code unless there is little to do."""
        if self._compiled is None:
            size = sum(getattr(one, "size", 1) for one in arguments)
            if size < SMALL and "numba" not in sys.modules:
                return self.py_func(*arguments)
        return self.compiled()(*arguments)

    def compiled(self) -> Callable[..., Any]:
        """What numba makes of the function, with the loops that it calls compiled, too."""
        if self._compiled is None:
            from numba import njit

            plain = self.py_func
            assert isinstance(plain, FunctionType)
            called = {
                name: loop.compiled()
                for name in plain.__code__.co_names
                if isinstance(loop := plain.__globals__.get(name), Loop)
            }
            if called:  # numba looks names up in a function's globals and knows no Loop there
                plain = update_wrapper(
                    FunctionType(plain.__code__, {**plain.__globals__, **called}), plain
                )
            self._compiled = njit(cache=True, nogil=True)(plain)
        assert self._compiled is not None
        return self._compiled


def lazy_njit(function: Callable[..., Any]) -> Loop:
    """Decorator: ``njit(cache=True, nogil=True)`` where it is worth it.

    Examples
    --------
    >>> @lazy_njit
    ... def total(values):
    ...     found = 0
    ...     for value in values:
    ...         found += value
    ...     return found
    >>> total.py_func([1, 2])
    3
    """
    return Loop(function)
