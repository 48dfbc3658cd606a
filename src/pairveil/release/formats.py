"""What a released metric can be exported as: a name, and where the function is that writes it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from pairveil.errors import InputError

Writer = Callable[[Any, Path], Path]
"""(released metric, file or folder) -> what was written."""

_EXPORTERS = "pairveil.release.exporters"
FORMATS: dict[str, str] = {
    "onnx": f"{_EXPORTERS}:to_onnx",
    "csv": f"{_EXPORTERS}:to_csv",
    "sklearn": f"{_EXPORTERS}:to_sklearn",
    "sql": f"{_EXPORTERS}:to_sql",
    "dense": f"{_EXPORTERS}:to_dense",
}


def writer_of(name: str) -> Writer:
    """The function that writes a format; what it needs is loaded now and not before.

    Examples
    --------
    >>> writer_of("csv").__name__
    'to_csv'
    """
    if name not in FORMATS:
        raise InputError(f"a metric can be exported as {', '.join(FORMATS)}")
    module, _, function = FORMATS[name].partition(":")
    writer: Writer = getattr(import_module(module), function)
    return writer
