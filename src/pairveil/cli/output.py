"""How commands speak: one JSON object on stdout with --json, else short tables; errors on stderr."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
QuietFlag = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]

stdout = Console(highlight=False, soft_wrap=True)
stderr = Console(stderr=True, highlight=False, soft_wrap=True)


def plain(value: Any) -> Any:
    """A value as strict JSON: numpy to Python, infinity to the string 'inf', NaN to null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def print_json(payload: Mapping[str, Any]) -> None:
    """Write the one JSON object of a command."""
    sys.stdout.write(json.dumps(plain(payload), allow_nan=False) + "\n")
    sys.stdout.flush()


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """A small table; every column but the first is right-aligned."""
    made = Table(
        title=title, title_justify="left", title_style="bold", show_edge=False, pad_edge=False
    )
    for i, name in enumerate(columns):
        made.add_column(name, justify="left" if i == 0 else "right")
    for row in rows:
        made.add_row(*(cell if isinstance(cell, str) else number(cell) for cell in row))
    return made


def number(value: Any) -> str:
    """A number as a person writes it."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, float):
        return "infinite" if math.isinf(value) else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


@contextmanager
def spoken_warnings(quiet: bool = False) -> Iterator[None]:
    """Show warnings as one line each on stderr instead of Python's two with a source line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            if not quiet:
                for text in dict.fromkeys(str(warning.message) for warning in caught):
                    stderr.print(f"[yellow]note:[/yellow] {escape(text)}")
