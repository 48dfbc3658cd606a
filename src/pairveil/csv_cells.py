"""Text in CSV files that a spreadsheet would run.

A cell that begins with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return is a formula to Excel and its
like, and ``=cmd|...`` starts a program. Every CSV file that pairveil writes puts an apostrophe in front of
such text (and of text that is such a cell with apostrophes in front already, so that nothing is lost); every
CSV file that pairveil reads takes one off again. Numbers are no text: they are written as they are.
"""

from __future__ import annotations

import re

FORMULA = r"^'*[=+\-@\t\r" + "\uff1d\uff0b\uff0d\uff20]"
"""What begins like a formula, apostrophes in front of it or not (the last four: full-width signs)."""

_FORMULA, _ESCAPED = re.compile(FORMULA), re.compile("^'" + FORMULA[1:])


def as_cell(text: str) -> str:
    """Text as it is written into a CSV file.

    Examples
    --------
    >>> as_cell("=cmd|' /C calc'!A0"), as_cell("age")
    ("'=cmd|' /C calc'!A0", 'age')
    """
    return f"'{text}" if _FORMULA.match(text) else text


def from_cell(text: str) -> str:
    """Text as it was before `as_cell`.

    Examples
    --------
    >>> [from_cell(as_cell(text)) for text in ("=1", "'=1", "'tis", "-")]
    ['=1', "'=1", "'tis", '-']
    """
    return text[1:] if _ESCAPED.match(text) else text
