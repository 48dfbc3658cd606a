"""How objects show themselves in notebooks: small HTML tables, and axes for ``.plot()``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from pairveil._lazy import need
from pairveil.printable import printable


def new_axes() -> Any:
    """New axes of a new figure; says what to install where matplotlib is missing."""
    return need("matplotlib.pyplot", "plots", "A picture").subplots()[1]


def html_table(headings: Sequence[str], rows: Iterable[Sequence[object]], note: str = "") -> str:
    """A table as HTML, every cell escaped; foreign text cannot act in it."""
    head = "".join(f"<th>{_safe(one)}</th>" for one in headings)
    body = "".join(
        "<tr>" + "".join(f"<td>{_safe(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>" + (f"<p>{_safe(note)}</p>" if note else "")


def _safe(cell: object) -> str:
    return escape(printable(str(cell)))
