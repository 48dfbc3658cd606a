"""Names that a package offers and loads on first use: whoever takes one pays for no other."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any


def offered(
    package: str,
    homes: Mapping[str, str],
    moved: Mapping[str, str] | None = None,
    gone: Mapping[str, str] | None = None,
) -> Callable[[str], Any]:
    """A package's ``__getattr__``."""
    place = {name: module for module, names in homes.items() for name in names.split()}
    now = {name: module for module, names in (moved or {}).items() for name in names.split()}

    def __getattr__(name: str) -> Any:
        if name in place:
            # Read from its home each time: a module and a function may share a name (pairveil.graph.kappa).
            return getattr(import_module(place[name]), name)
        if name in now:
            raise AttributeError(f"{name!r} is in {now[name]} now: from {now[name]} import {name}")
        if gone and name in gone:
            raise AttributeError(f"{name} is gone: {gone[name]}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return __getattr__


def load_named(place: str, what: str) -> Any:
    """What 'module:name' names; modules of the working folder are found too, after all others."""
    from pairveil.errors import InputError

    module, _, name = place.partition(":")
    if not (module and name):
        raise InputError(f"a {what} that is not ours is named module:{what}")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)
    try:
        found = import_module(module)
    except Exception as problem:
        raise InputError(
            f"module '{module}' cannot be imported: {type(problem).__name__}: {problem}"
        ) from None
    if not hasattr(found, name):
        raise InputError(f"module '{module}' has no {what} '{name}'")
    return getattr(found, name)
