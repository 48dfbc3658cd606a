"""Import paths of version 1, for one version more: they load the module that has moved, and say so."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import sys
import warnings
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "pairveil.pairs.choosing": "pairveil.graph.choosing",
    "pairveil.pairs.embedded": "pairveil.data.embedded",
    "pairveil.pairs.ondisk": "pairveil.data.ondisk",
    "pairveil.pairs.pairset": "pairveil.data.pairset",
    "pairveil.pairs.readers": "pairveil.data.readers",
    "pairveil.pairs.scaling": "pairveil.data.scaling",
    "pairveil.learning.contrastive": "pairveil.learners.contrastive.nonprivate",
    "pairveil.learning.dask_pairs": "pairveil.engine.backends.dask_pairs",
    "pairveil.learning.dpp": "pairveil.learners.contrastive.learner",
}
"""Documented modules of version 1 and where they are now."""

_FOLDERS = ("pairveil.pairs", "pairveil.learning")


class _Loader(importlib.abc.Loader):
    def __init__(self, new: str) -> None:
        self._new = new

    def create_module(self, spec: ModuleSpec) -> ModuleType:  # noqa: ARG002 - the protocol's shape
        module = importlib.import_module(self._new)
        self._own = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It has been executed under its own name, and keeps that name's spec."""
        module.__spec__ = self._own


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if fullname in _FOLDERS:  # empty: what is imported below it must not change the new folder
            return importlib.util.spec_from_loader(fullname, None, is_package=True)
        new = MOVED.get(fullname)
        if new is None:
            return None
        warnings.warn(
            f"{fullname} is now {new}; the old name goes with version 0.3",
            DeprecationWarning,
            stacklevel=2,
        )
        return importlib.util.spec_from_loader(fullname, _Loader(new))


def install() -> None:
    """Let old names be imported."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
