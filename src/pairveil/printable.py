"""Text that somebody else wrote, made safe to show.

A caveat, a column name or a file name can hold terminal escape sequences (which recolour, erase or
retype a terminal), bidirectional overrides (which show a sentence in another order) and line breaks
(which forge a line of our own). `printable` is what every foreign text passes through before it is
shown: errors and warnings by themselves (`pairveil.errors`), the command line by its consoles, the
report by its markup, a notebook by `html_table`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from html import escape

UNPRINTABLE = "?"
# Letters and signs of scripts are kept; this is what can act on a terminal or on the order of a line:
# control characters, surrogates, separators of lines, and all that formats without being seen.
_ODD = re.compile(r"[^\x20-\x7e]")


def printable(text: str, *, lines: bool = False) -> str:
    """``text`` with every character that is not plainly visible replaced by '?'.

    ``lines``: keep line breaks, tabs and wide spaces (text that is partly ours); otherwise they become
    spaces.
    """
    return _ODD.sub(_keep_lines if lines else _one_line, text)


def _keep_lines(found: re.Match[str]) -> str:
    letter = found[0]
    keep = letter in "\n\t" or unicodedata.category(letter) == "Zs"
    return letter if keep else _one_line(found)


def _one_line(found: re.Match[str]) -> str:
    letter = found[0]
    if letter in "\n\t\r" or unicodedata.category(letter) == "Zs":
        return " "
    return letter if letter.isprintable() else UNPRINTABLE


def shortened(names: list[str] | tuple[str, ...], at_most: int = 20) -> str:
    """A list of foreign names for a message: the first few, each on one line and not too long."""
    shown = [name if len(name) <= 60 else f"{name[:59]}…" for name in names[:at_most]]
    more = len(names) - len(shown)
    return ", ".join(map(printable, shown)) + (f" and {more} more" if more else "")


def many(n: int, one: str, several: str) -> str:
    """A number with words that agree with it: '1 pair joins', '3 pairs join'."""
    return f"{n} {one if n == 1 else several}"


def html_table(headings: Sequence[str], rows: Iterable[Sequence[object]], note: str = "") -> str:
    """A table as HTML, every cell escaped; foreign text cannot act in it."""
    head = "".join(f"<th>{_safe(one)}</th>" for one in headings)
    body = "".join(
        "<tr>" + "".join(f"<td>{_safe(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>" + (f"<p>{_safe(note)}</p>" if note else "")


def _safe(cell: object) -> str:
    return escape(printable(str(cell)))


# ---- text in CSV files that a spreadsheet would run ---------------------------------------------------
#
# A cell that begins with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return is a formula to Excel and its
# like, and ``=cmd|...`` starts a program. Every CSV file that pairveil writes puts an apostrophe in front of
# such text (and of text that is such a cell with apostrophes in front already, so that nothing is lost);
# every CSV file that pairveil reads takes one off again. Numbers are no text: they are written as they are.

FORMULA = r"^'*[=+\-@\t\r" + "\uff1d\uff0b\uff0d\uff20]"
"""What begins like a formula, apostrophes in front of it or not (the last four: full-width signs)."""

_FORMULA, _ESCAPED = re.compile(FORMULA), re.compile("^'" + FORMULA[1:])


def as_cell(text: str) -> str:
    """Text as it is written into a CSV file."""
    return f"'{text}" if _FORMULA.match(text) else text


def from_cell(text: str) -> str:
    """Text as it was before `as_cell`."""
    return text[1:] if _ESCAPED.match(text) else text
