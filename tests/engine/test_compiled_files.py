"""numba's cache watches one file a function: compiled code must not reach into another."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from pathlib import Path

import pairveil

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
    assert reaching_out("from pairveil.engine.kernels.loops import ROWS", {"f": {"ROWS"}}) == ["f"]
