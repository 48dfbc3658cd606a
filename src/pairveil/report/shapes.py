"""What a drawing is made of, as plain data; `templates/drawing.html` writes it as SVG.

Colours are CSS classes, so that light, dark and print need one drawing. Every mark is a group with the class
``mark``, a label for screen readers and the same words as a tooltip; the script lets the arrow keys walk over
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pairveil.report.words import NBSP


@dataclass(frozen=True)
class Shape:
    """An SVG element: its name, attributes, and the shapes or words inside it."""

    kind: str
    attributes: tuple[tuple[str, str], ...] = ()
    children: tuple[Shape | str, ...] = ()


@dataclass(frozen=True)
class Chart:
    """A drawing of a size, with words for those who do not see it."""

    title: str
    width: float
    height: float
    shapes: tuple[Shape, ...]


def shape(kind: str, /, *children: Shape | str, **attributes: str | float) -> Shape:
    """One element; an attribute's underscores become hyphens and a trailing one falls off (``class_``).

    Examples
    --------
    >>> shape("line", x1=0.0, class_="grid").attributes
    (('x1', '0'), ('class', 'grid'))
    """
    found = []
    for key, value in attributes.items():
        name = key if key == "viewBox" else key.rstrip("_").replace("_", "-")
        found.append((name, f"{value:.6g}" if isinstance(value, float) else str(value)))
    return Shape(kind, tuple(found), children)


def mark(tip: str, *shapes: Shape, class_: str = "") -> Shape:
    """A group of shapes that can be pointed at or focused and then says ``tip``."""
    return shape(
        "g",
        *shapes,
        class_=f"mark {class_}".strip(),
        role="img",
        aria_label=tip,
        data_tip=tip,
        tabindex=-1,
    )


def text(x: float, y: float, words: str, **attributes: str) -> Shape:
    """Words at a place."""
    return shape("text", words, x=x, y=y, **attributes)


def hidden(shapes: Sequence[Shape]) -> Shape:
    """Shapes that a screen reader passes over: the marks say it all."""
    return shape("g", *shapes, aria_hidden="true")


def short_number(value: float, largest: float) -> str:
    r"""A number short enough for a margin.

    Examples
    --------
    >>> short_number(2e6, 8e6), short_number(0.25, 1.0)
    ('2\xa0M', '0.25')
    """
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if largest >= 100 * unit or (largest >= unit and unit >= 1e6):
            return f"{value / unit:g}{NBSP}{letter}" if value else "0"
    return f"{value:,.0f}" if largest > 1 and value == int(value) else f"{value:g}"
