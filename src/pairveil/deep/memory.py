"""What a module or a loss keeps of the data it saw: every value that can be reached from it, by its path.

Buffers and parameters, attributes, containers in them, closures of hooks, globals that code of one's own
names. `Network` runs every pass on a new copy, so that nothing of this is carried on; the comparison is for
what a copy shares with its original (closures, globals), and for people who expect a module to remember.
"""

from __future__ import annotations

import dis
import hashlib
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

_PLAIN = (int, float, complex, str, bytes, type(None))
_CLOSED = {*sys.stdlib_module_names, "torch", "numpy", "pairveil"}
"""Packages whose objects are not looked into, modules aside: they keep caches and counters of their own."""


def kept(root: Any) -> dict[str, str]:
    """Every value that can be reached from an object, by path; tensors and arrays by their digests.

    Examples
    --------
    >>> layer = nn.Linear(1, 1)
    >>> before = kept(layer)
    >>> layer.seen = [torch.ones(1)]
    >>> sorted(kept(layer).keys() - before.keys())
    ['seen', 'seen.0']
    """
    found: dict[str, str] = {}
    seen: dict[int, Any] = {}  # holds on to what it names: ids are not used again
    left = [("", root)]
    while left:
        path, value = left.pop()
        if isinstance(value, _PLAIN):
            found[path] = repr(value)
        elif id(value) not in seen:
            seen[id(value)] = value
            found[path] = _digest(value)
            left += [(f"{path}.{name}" if path else name, one) for name, one in _parts(value)]
    return found


def _digest(value: Any) -> str:
    """Names the contents of an array; other things are named by their kind, and their parts follow."""
    if isinstance(value, Tensor):
        try:
            held = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
        except (RuntimeError, TypeError, ValueError):  # one of a layout of its own
            return repr(value)
        return f"{value.dtype}{tuple(value.shape)}{hashlib.sha256(held).hexdigest()}"
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return f"{value.dtype}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"
    return type(value).__name__


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """What a value is made of, by name."""
    if isinstance(value, Mapping):
        yield from ((str(name), one) for name, one in value.items())
    elif isinstance(value, list | tuple | deque):
        yield from ((str(place), one) for place, one in enumerate(value))
    elif isinstance(value, set | frozenset):
        yield from ((str(place), one) for place, one in enumerate(sorted(value, key=repr)))
    elif isinstance(value, np.ndarray):
        yield from _parts(value.tolist()) if value.dtype.hasobject else ()
    elif isinstance(value, partial):
        yield from (("func", value.func), ("args", value.args), ("keywords", value.keywords))
    elif isinstance(value, MethodType):
        yield from (("__self__", value.__self__), ("__func__", value.__func__))
    elif isinstance(value, staticmethod | classmethod):
        yield "__func__", value.__func__
    elif isinstance(value, property):
        yield "fget", value.fget
    elif isinstance(value, FunctionType):
        yield from _of_function(value)
    elif isinstance(value, type):
        yield from vars(value).items() if _is_own_code(value) else ()
    elif isinstance(value, nn.Module) or _package(type(value)) not in _CLOSED:
        if isinstance(value, torch.jit.ScriptModule):
            yield from value.named_buffers()
        yield from getattr(value, "__dict__", {}).items()
        for kind in type(value).__mro__:
            yield from ((name, getattr(value, name, None)) for name in _slots(kind))
            yield kind.__qualname__, kind


def _of_function(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """What a function holds, and the globals that it names."""
    if not _is_own_code(function):
        return
    yield "__defaults__", (function.__defaults__, function.__kwdefaults__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not bound yet
            continue
    for name in sorted(_names(function.__code__) & function.__globals__.keys()):
        yield name, function.__globals__[name]


def _names(code: CodeType) -> set[str]:
    """Globals that code names, functions inside it included."""
    own = {one.argval for one in dis.get_instructions(code) if one.opname.endswith("_GLOBAL")}
    return own.union(*(_names(one) for one in code.co_consts if isinstance(one, CodeType)))


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _package(thing: Any) -> str:
    return str(getattr(thing, "__module__", "builtins")).split(".")[0]


def _is_own_code(thing: Any) -> bool:
    """Whether a function or class was written by the user: that of installed packages is not followed."""
    where = str(getattr(sys.modules.get(_package(thing)), "__file__", ""))
    installed = "site-packages" in where or "dist-packages" in where
    return _package(thing) not in _CLOSED and not installed
