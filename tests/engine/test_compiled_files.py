"""Loops that are compiled: when they are, what is said of it, and that none reaches into another file."""

from __future__ import annotations

import ast
import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pairveil
from pairveil import _compiled

PACKAGE = Path(pairveil.__file__).parent


def imported_from_us(tree: ast.Module) -> set[str]:
    """Names that a module takes from other modules of the package."""
    return {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pairveil")
        for alias in node.names
    }


def reaching_out(source: str, compiled: dict[str, set[str]]) -> list[str]:
    """Compiled functions (by the names they use) that use what their file imports from us."""
    names = imported_from_us(ast.parse(source))
    return sorted(function for function, used in compiled.items() if used & names)


def test_no_compiled_function_uses_code_or_constants_of_another_file():
    """After a change there, the cached machine code would keep the old ones."""
    seen = 0
    for found in pkgutil.walk_packages([str(PACKAGE)], "pairveil."):
        path = PACKAGE / Path(*found.name.split(".")[1:]).with_suffix(".py")
        if not path.exists() or "njit" not in path.read_text(encoding="utf-8"):
            continue
        module = importlib.import_module(found.name)
        compiled = {
            name: set(value.py_func.__code__.co_names)
            for name, value in vars(module).items()
            if hasattr(value, "py_func") and value.py_func.__module__ == found.name
        }
        seen += len(compiled)
        assert reaching_out(path.read_text(encoding="utf-8"), compiled) == [], found.name
    assert seen > 20
    # and the check does see one
    assert reaching_out("from pairveil.engine.loops import ROWS", {"f": {"ROWS"}}) == ["f"]


@_compiled.lazy_njit
def _twice(value):
    return 2 * value


@_compiled.lazy_njit
def total(values):
    found = 0
    for value in values:
        found += _twice(value)
    return found


def test_a_loop_is_compiled_once_there_is_much_to_do(monkeypatch):
    monkeypatch.setattr(_compiled, "SMALL", 25)
    values = np.arange(10)
    for _ in range(2):
        assert total(values) == 90
        assert total._compiled is None
        assert _twice._compiled is None  # called twenty times, by Python
    assert total(values) == 90
    assert hasattr(total._compiled, "py_func")


FIRST_FIT = """
import sys
import numpy as np
from numba.core import event

class Counted(event.Listener):
    names = []
    def on_start(self, started):
        self.names.append(started.data["dispatcher"].py_func.__module__)
    def on_end(self, ended):
        pass

event.register("numba:compile", Counted())
sys.stderr.isatty = lambda: {at_terminal}
from pairveil import DPPMetricLearner
pairs = np.stack([np.arange(300), np.arange(1, 301)], axis=1)
X = np.random.default_rng(0).normal(size=(301, 4)) * 0.1
DPPMetricLearner(preprocessor=X).fit(pairs, np.where(pairs[:, 0] % 3, 1, -1))
print(sorted({{name for name in Counted.names if name.startswith("pairveil.graph")}}))
"""


@pytest.mark.parametrize("at_terminal", [True, False])
def test_a_first_small_fit_compiles_no_graph_loop_and_says_that_it_compiles(tmp_path, at_terminal):
    """On a machine without a cache a fit of some hundred pairs compiled for 9 s, in silence."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FIRST_FIT.format(at_terminal=at_terminal)],
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
    assert done.stderr.count("compiles its loops for this machine") == int(at_terminal)
