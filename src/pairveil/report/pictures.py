"""Pictures for people who read no charts: a hundred guesses, and one person's pairs before and after."""

from __future__ import annotations

import math

from pairveil.report.shapes import Chart, Shape, mark, shape, text

MOST_SPOKES = 48  # more than these run into each other; the words say how many there are


def hundred_guesses(right: int) -> Chart:
    """A hundred heads: what a coin gets right, what the release adds at most, what stays wrong.

    ``right``: guesses in 100 that are right at most, between 50 and 100.

    Examples
    --------
    >>> len(hundred_guesses(61).shapes)
    3
    """
    more, wrong = right - 50, 100 - right
    parts = [
        _heads("50 of 100: right by tossing a coin", range(50), "coin"),
        _heads(f"{more} of 100: right because of this release, at most", range(50, right), "more"),
        _heads(f"{wrong} of 100: wrong all the same, at least", range(right, 100), "wrong"),
    ]
    title = f"A hundred guesses: at most {right} are right, a coin gets 50 right."
    return Chart(title, 420.0, 132.0, tuple(part for part in parts if part.children))


def _heads(tip: str, which: range, style: str) -> Shape:
    shapes = []
    for i in which:
        x, y = 12.0 + 20.8 * (i % 20), 10.0 + 26.0 * (i // 20)
        shapes.append(shape("circle", cx=x, cy=y, r=4.6))
        shapes.append(shape("path", d=f"M{x - 7.4:.1f} {y + 14:.1f} a7.4 8.2 0 0 1 14.8 0 z"))
    return mark(tip, *shapes, class_=f"head {style}") if shapes else shape("g")


def star(degree: int, *, title: str, strong: bool) -> Chart:
    """The person in most pairs, with a line for each of them.

    Examples
    --------
    >>> star(3, title="Three pairs.", strong=True).height
    190.0
    """
    width, height, reach = 230.0, 190.0, 74.0
    middle_x, middle_y, drawn = width / 2, 84.0, min(max(degree, 0), MOST_SPOKES)
    lines, ends = [], []
    for i in range(drawn):
        angle = math.pi * (2 * i / drawn) + (0.0 if drawn > 2 else math.pi / 12)
        x, y = middle_x + reach * math.cos(angle), middle_y - reach * math.sin(angle)
        lines.append(shape("line", x1=middle_x, y1=middle_y, x2=x, y2=y))
        ends.append(shape("circle", cx=x, cy=y, r=4.0))
    words = "1 pair" if degree == 1 else f"{degree:,} pairs"
    tip = f"The person in most pairs is in {words}"
    centre = shape("circle", cx=middle_x, cy=middle_y, r=9.0)
    whole = mark(tip, *lines, *ends, centre, class_="star strong" if strong else "star")
    label = text(middle_x, height - 6, words, text_anchor="middle", class_="value")
    return Chart(title, width, height, (whole, label))
