"""How other tools write pairs: one file a layout, and one line here.

A layout is a module with ``LOOKS`` and ``NOTE`` (for the table of the docs), ``looks_like(look)`` and
``read(source, how)``; `pairveil.records.layouts.base` says what they are given. A layout says itself what its
labels mean, so 0 and 1 need no further word there. Importing this package imports none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pairveil.records.layouts.base import Layout

LAYOUTS: dict[str, str] = {
    "table": "pairveil.records.layouts.table",
    "splink": "pairveil.records.layouts.splink",
    "dedupe": "pairveil.records.layouts.dedupe",
    "lfw": "pairveil.records.layouts.lfw",
    "voxceleb": "pairveil.records.layouts.voxceleb",
    "links": "pairveil.records.layouts.links",
}
"""Every layout by name. The plainest first: a later one that recognises a source wins."""


def layout_named(name: str) -> Layout:
    """The module of a layout.

    Examples
    --------
    >>> layout_named("lfw").__name__
    'pairveil.records.layouts.lfw'
    """
    return import_module(LAYOUTS[name])


def sniff_layout(source: Any, left: str = "left", right: str = "right") -> str:
    """The layout of ``source``, by suffix, column names and first line.

    Parameters
    ----------
    source : path, table or mapping
    left, right : str
        The id columns of a plain table: a table that has them is a plain table.

    Raises InputError: it could be more than one, or none.

    Examples
    --------
    >>> sniff_layout({"unique_id_l": [1], "unique_id_r": [2], "clerical_match_score": [1.0]})
    'splink'
    """
    from pairveil.errors import InputError
    from pairveil.records.layouts.base import Look

    look = Look(source, left, right)
    for name in reversed(LAYOUTS):
        if layout_named(name).looks_like(look):
            return name
    raise InputError(
        f"{look.title}: cannot tell the layout; say layout= one of {', '.join(LAYOUTS)}"
    )
