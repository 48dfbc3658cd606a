"""The pieces that templates lay out: tables, figures and facts, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pairveil.report.charts import Chart


@dataclass(frozen=True)
class Table:
    """A table with a caption, column heads and a row head in the first column.

    Attributes
    ----------
    caption : str
    columns : tuple of str
    rows : tuple of tuples of str
    chosen : int or None
        The row that the page is about.
    chosen_as : str
        What the badge beside that row's head says.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    chosen: int | None = None
    chosen_as: str = ""


@dataclass(frozen=True)
class Figure:
    """A chart, its caption, and the table behind it."""

    chart: Chart
    caption: str
    table: Table | None = None


@dataclass(frozen=True)
class Fact:
    """A name, a value in large type, and a remark."""

    name: str
    value: str
    remark: str


def table(
    caption: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    chosen: int | None = None,
    chosen_as: str = "",
) -> Table:
    """A table of any sequences.

    Examples
    --------
    >>> table("People", ["who"], [["a"], ["b"]]).rows
    (('a',), ('b',))
    """
    return Table(caption, tuple(columns), tuple(tuple(row) for row in rows), chosen, chosen_as)
