"""Documented import paths of version 1 work for one version more, and say where things are now."""

from __future__ import annotations

import importlib
import sys

import pytest

from pairveil._moved import MOVED


@pytest.mark.parametrize("old", MOVED)
def test_an_old_path_is_the_new_module_and_says_so(old):
    sys.modules.pop(old, None)
    parent = old.rpartition(".")[0]
    with pytest.warns(DeprecationWarning, match="the old name goes") as said:
        module = importlib.import_module(old)
    assert any(f"{old} is now {MOVED[old]}" in str(one.message) for one in said)
    assert module is importlib.import_module(MOVED[old])
    assert module.__spec__.name == MOVED[old]  # reloading and pickling go by the new name
    assert vars(sys.modules[parent])[old.rpartition(".")[2]] is module


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_undocumented_names_are_gone_and_never_loaded_twice():
    for name in ("pairveil.pairs.validation", "pairveil.learning.nothing"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(name)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_old_path_changes_nothing_about_the_new_ones():
    import pairveil.learners.contrastive as package

    sys.modules.pop("pairveil.learning.contrastive", None)
    importlib.import_module("pairveil.learning.contrastive")
    assert sys.modules["pairveil.learners"].contrastive is package
