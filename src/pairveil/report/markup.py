"""HTML from Python in which forgetting to escape is impossible: a plain string is always text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from pairveil.printable import printable


class Html(str):
    """A string that is markup already; only the functions of this module make it."""

    __slots__ = ()


Child = str | Html | Iterable["str | Html"]

VOID = frozenset({"br", "hr", "link", "meta"})


def tag(element: str, /, *children: Child, **attributes: str | float | bool | None) -> Html:
    """One element. Plain strings among the children are escaped; `Html` is kept.

    An attribute's underscores become hyphens and a trailing one falls off (``class_``); None and False
    leave the attribute out, True gives the bare name.

    Examples
    --------
    >>> tag("p", "a < b", tag("b", "!"), class_="note")
    '<p class="note">a &lt; b<b>!</b></p>'
    """
    head = element + "".join(_attribute(key, value) for key, value in attributes.items())
    if element in VOID:
        return Html(f"<{head}>")
    return Html(f"<{head}>{join(*children)}</{element}>")


def join(*children: Child) -> Html:
    """Children one after the other, text escaped.

    Examples
    --------
    >>> join("1 & 2 ", tag("i", "x"))
    '1 &amp; 2 <i>x</i>'
    """
    parts: list[str] = []
    for child in children:
        if isinstance(child, Html):
            parts.append(str(child))
        elif isinstance(child, str):
            parts.append(escape(printable(child, lines=True), quote=False))
        else:
            parts.append(join(*child))
    return Html("".join(parts))


def table(
    caption: str, columns: Sequence[str], rows: Iterable[Sequence[str | Html]], *, class_: str = ""
) -> Html:
    """A table with a caption, column heads and a row head in the first column.

    Examples
    --------
    >>> "<th scope=\\"row\\">a</th><td>1</td>" in table("t", ["x", "y"], [["a", "1"]])
    True
    """
    head = tag("tr", [tag("th", name, scope="col") for name in columns])
    body = [
        tag("tr", tag("th", row[0], scope="row"), [tag("td", cell) for cell in row[1:]])
        for row in rows
    ]
    # A wide table scrolls inside its box; tabindex makes that reachable without a mouse.
    return tag(
        "div",
        tag(
            "table",
            tag("caption", caption),
            tag("thead", head),
            tag("tbody", body),
            class_=class_ or None,
        ),
        class_="scroll",
        tabindex=0,
        role="group",
        aria_label=caption,
    )


def figure(chart: Html, caption: str, data: Html) -> Html:
    """A chart with its caption and the table behind it."""
    return tag(
        "figure",
        chart,
        tag("figcaption", caption),
        tag("details", tag("summary", "Show the numbers"), data, class_="data"),
    )


def section(id: str, title: str, *parts: Child) -> Html:
    """One of the page's cards, under a heading."""
    return tag("section", tag("h2", title), *parts, class_="card", id=id)


def tabs(label: str, panels: Sequence[tuple[str, Html]]) -> Html:
    """Panels of which the script shows one at a time; without it, and on paper, all are shown."""
    return tag(
        "div",
        [
            tag("div", tag("h4", name, class_="panel-title"), body, class_="panel", data_label=name)
            for name, body in panels
        ],
        class_="tabs",
        data_tabs=label,
    )


def bullets(items: Iterable[Child]) -> Html:
    """A list.

    Examples
    --------
    >>> bullets(["a"])
    '<ul><li>a</li></ul>'
    """
    return tag("ul", [tag("li", item) for item in items])


def _attribute(key: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    shown = f"{value:.6g}" if isinstance(value, float) else str(value)
    return f' {name}="{escape(printable(shown, lines=True))}"'
