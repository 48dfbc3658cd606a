"""What is loaded on first use: a package's own names, and optional packages by the extra that brings them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from pairveil.errors import InputError, MissingExtraError

PYPI_NAMES = {"faiss": "faiss-cpu", "dp_accounting": "dp-accounting", "sklearn": "scikit-learn"}


@contextmanager
def naming(extra: str, purpose: str) -> Iterator[None]:
    """A package that is not installed is named, with the extra that brings it.

    Receivers of a release install few packages: what else needs more says so here.

    Examples
    --------
    >>> with naming("learn", "Learning"):
    ...     import no_such_package
    Traceback (most recent call last):
        ...
    pairveil.errors.MissingExtraError: Learning needs the package no_such_package; install it with:
    pip install "pairveil[learn]"
    """
    try:
        yield
    except MissingExtraError:
        raise
    except ModuleNotFoundError as problem:
        package = (problem.name or "").partition(".")[0]
        if package in ("", "pairveil"):
            raise
        wanted = f'"pairveil[{extra}]"' if extra else PYPI_NAMES.get(package, package)
        raise MissingExtraError(
            f"{purpose} needs the package {PYPI_NAMES.get(package, package)}; install it with: "
            f"pip install {wanted}"
        ) from None


def need(package: str, extra: str, purpose: str) -> ModuleType:
    """An optional package, or an error that says how to get it.

    Examples
    --------
    >>> need("math", "", "Arithmetic").pi > 3
    True
    """
    with naming(extra, purpose):
        return import_module(package)


def new_axes() -> Any:
    """New axes of a new figure; says what to install where matplotlib is missing."""
    return need("matplotlib.pyplot", "plots", "A picture").subplots()[1]


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
            with naming("learn", name):
                return getattr(import_module(place[name]), name)
        if name in now:
            raise AttributeError(f"{name!r} is in {now[name]} now: from {now[name]} import {name}")
        if gone and name in gone:
            raise AttributeError(f"{name} is gone: {gone[name]}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return __getattr__


def load_named(place: str, what: str) -> Any:
    """What 'module:name' names; modules of the working folder are found too, after all others."""
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
