"""The page a person looks at: one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from pairveil.files import write_file
from pairveil.report import accounts, evidence, promise
from pairveil.report.data import ReportData
from pairveil.report.linkage import match_weights_section
from pairveil.report.markup import Html, join, tag

SECTIONS = (
    ("promise", "Promise"),
    ("protected", "Who is protected"),
    ("graph", "Pairs"),
    ("utility", "Quality"),
    ("picture", "Metric"),
    ("noise", "Noise and budget"),
    ("limits", "Limits"),
    ("recompute", "Recompute"),
)


def render(data: ReportData) -> str:
    """The whole page as a string.

    Examples
    --------
    >>> from pairveil.report.data import ReportData
    >>> from pairveil.report.summaries import metric_shape
    >>> page = render(ReportData(certificate=None, metric=metric_shape([[1.0, 2.0]])))
    >>> page.startswith("<!doctype html>"), "promises no privacy" in page
    (True, True)
    """
    title = data.summary.title or (
        "A linkage model" if data.linkage else "A learned distance metric"
    )
    main = join(
        promise.hero(data),
        promise.problems(data),
        promise.protected(data),
        promise.graph(data),
        evidence.utility(data),
        match_weights_section(data.linkage) if data.linkage else evidence.picture(data),
        accounts.noise(data),
        accounts.limits(data),
        accounts.recompute(data),
    )
    body = join(
        tag("a", "Skip to the content", href="#main", class_="skip"),
        _header(title, data),
        _navigation(main),
        tag("main", main, id="main"),
        _footer(data),
        tag("div", id="tip", role="status", hidden=True),
    )
    script = _asset("page.js")
    return "<!doctype html>\n" + tag(
        "html",
        _head(title, script),
        tag("body", body, tag("script", Html(script))),
        lang="en",
    )


def write(data: ReportData, path: str | Path) -> Path:
    """Write the page, whole or not at all."""
    return write_file(path, render(data).encode("utf-8"))


def _head(title: str, script: str) -> Html:
    style = _asset("page.css")
    # The browser itself then refuses anything from the network and any script but ours.
    policy = (
        f"default-src 'none'; img-src data:; style-src {_digest(style)}; script-src {_digest(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("link", rel="icon", href="data:,"),
        tag("title", f"{title}: privacy report"),
        tag("style", Html(style)),
    )


def _header(title: str, data: ReportData) -> Html:
    return tag(
        "header",
        tag(
            "div",
            tag("p", "pairveil privacy report", class_="brand"),
            tag("h1", title),
        ),
        promise.status(data),
    )


def _navigation(main: Html) -> Html:
    links = [tag("a", words, href=f"#{name}") for name, words in SECTIONS if f'id="{name}"' in main]
    return tag("nav", links, aria_label="Sections")


def _footer(data: ReportData) -> Html:
    when = f" on {data.made}" if data.made else ""
    return tag(
        "footer",
        tag(
            "p",
            f"Made by pairveil {version('pairveil')}{when}. This file is complete in itself: it loads "
            "nothing from the network and sends nothing.",
        ),
    )


@cache
def _asset(name: str) -> str:
    return files("pairveil.report").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
