"""Loops that numba compiles, once on a machine and with a word about it; not for a handful of numbers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, update_wrapper
from types import FunctionType
from typing import Any

SMALL = 10_000
"""Numbers in all arguments of all calls together, below which Python is done before numba has compiled."""


class Loop:
    """A function of arrays that numba compiles (and keeps on disk) once there is much to do.

    ``function``: of arrays and numbers, as ``numba.njit`` takes it; it may call other loops by name.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._seen = 0
        self._plain: Callable[..., Any] | None = None
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        """The function's value, by machine code unless there is little to do."""
        if self._compiled is None:
            self._seen += sum(getattr(one, "size", 1) for one in arguments)
            if self._seen < SMALL:
                return self.plain()(*arguments)
        return self.compiled()(*arguments)

    def plain(self) -> Callable[..., Any]:
        """The function itself, with the loops that it calls as they are written, too."""
        if self._plain is None:
            self._plain = self._with_called("plain")
        return self._plain

    def compiled(self) -> Callable[..., Any]:
        """What numba makes of the function, with the loops that it calls compiled, too."""
        if self._compiled is None:
            self._compiled = njit(nogil=True)(self._with_called("compiled"))
        assert self._compiled is not None
        return self._compiled

    def _with_called(self, made: str) -> Callable[..., Any]:
        """A copy that finds what loops are made of under their names: numba knows no Loop there."""
        function = self.py_func
        assert isinstance(function, FunctionType)
        called = {
            name: getattr(loop, made)()
            for name in function.__code__.co_names
            if isinstance(loop := function.__globals__.get(name), Loop)
        }
        if not called:
            return function
        copied = FunctionType(function.__code__, {**function.__globals__, **called})
        return update_wrapper(copied, function)


def lazy_njit(function: Callable[..., Any]) -> Loop:
    """Decorator: ``njit(cache=True, nogil=True)`` where it is worth it."""
    return Loop(function)


def njit(**options: Any) -> Any:
    """``numba.njit(cache=True)``; whoever waits for it at a terminal is told why."""
    import numba

    _say_when_compiling()
    return numba.njit(cache=True, **options)


@cache
def _say_when_compiling() -> None:
    """Have numba tell when it compiles a loop of ours; code that it finds on disk is not compiled."""
    from numba.core import event

    class Said(event.Listener):  # type: ignore[misc]
        once = False

        def on_start(self, started: Any) -> None:
            ours = started.data["dispatcher"].py_func.__module__.startswith("pairveil")
            if ours and not self.once and sys.stderr.isatty():
                said = "pairveil compiles its loops for this machine: some seconds, the first time"
                print(said, file=sys.stderr)
            self.once = self.once or ours

        def on_end(self, ended: Any) -> None:
            pass

    event.register("numba:compile", Said())
