"""The page that is signed: one HTML file that needs nothing else.

The modules beside this one prepare data; what is where on the page is decided in ``templates/``.

The template engine, set up once for report and studio: escapes everything, knows no missing name.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, PrefixLoader, StrictUndefined
from markupsafe import Markup

from pairveil.files import write_file
from pairveil.printable import printable
from pairveil.release.release import CURVE_FILE
from pairveil.report import accounts, promise, quality
from pairveil.report.data import ReportData
from pairveil.report.results import operating, waterfall_figure, weights_figure

# ---- escapes everything, knows no missing name ---------------------------------------------------


def shown(value: Any) -> Any:
    """What a template writes for a value: text without what could act on a reader's screen.

    Markup is kept: only templates make it. The engine escapes the rest.

    Examples
    --------
    >>> shown("safe\\u202egnp.exe"), shown(None)
    ('safe?gnp.exe', '')
    """
    if value is None:
        return ""
    return value if isinstance(value, Markup) else printable(str(value), lines=True)


@cache
def environment(*packages: str) -> Environment:
    """Templates of these packages' folders ``templates``, as ``report/page.html``.

    Examples
    --------
    >>> environment("report").from_string("{{ name }}").render(name="<script>")
    '&lt;script&gt;'
    """
    loaders = {name: PackageLoader(f"pairveil.{name}") for name in packages}
    return Environment(
        loader=PrefixLoader(loaders),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def asset(package: str, name: str) -> str:
    """A style sheet or script of a package, as text that templates keep as it is."""
    text = (
        files(f"pairveil.{package}").joinpath("assets").joinpath(name).read_text(encoding="utf-8")
    )
    return Markup(text)  # ours, and not made of anything that came in


def shell(package: str, kind: str) -> dict[str, Any]:
    """What ``report/shell.html`` needs besides title, cover, status and sections: style, script, policy.

    The browser itself then refuses anything from the network and any script but ours.
    """
    style, script = asset(package, "page.css"), asset(package, "page.js")
    return {
        "kind": kind,
        "version": version("pairveil"),
        "style": style,
        "script": script,
        "policy": f"default-src 'none'; img-src data:; style-src {digest(style)}; "
        f"script-src {digest(script)}; base-uri 'none'; form-action 'none'",
    }


def digest(text: str) -> str:
    """How a content policy names an inline style or script that it allows.

    Examples
    --------
    >>> digest("")
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# ---- The page that is signed: one HTML file that needs nothing else ------------------------------

SECTIONS = (
    ("promise", "Promise"),
    ("limits", "Not promised"),
    ("protected", "Who is protected"),
    ("graph", "Learned from"),
    ("quality", "Quality"),
    ("noise", "Noise and budget"),
    ("recompute", "Recompute"),
    ("signoff", "Sign-off"),
)

UNCERTIFIED = ("promise", "limits", "quality", "signoff")
"""What there is to say of a release that promises nothing, or whose certificate does not hold."""


def _sections(is_metric: bool) -> list[tuple[str, str]]:
    other = {} if is_metric else {"quality": "Result"}
    return [(name, other.get(name, words)) for name, words in SECTIONS]


def render(data: ReportData) -> str:
    """The whole page as a string.

    Examples
    --------
    >>> from pairveil.report.data import ReportData
    >>> from pairveil.report.summaries import metric_shape
    >>> page = render(ReportData(certificate=None, metric=metric_shape([[1.0, 2.0]])))
    >>> page.startswith("<!doctype html>"), "promises nothing" in page
    (True, True)
    """
    return environment("report").get_template("report/page.html").render(context(data))


def context(data: ReportData) -> dict[str, Any]:
    """Everything that the templates show, prepared."""
    certificate = None if data.problems else data.certificate  # what does not hold is not shown
    first = promise.first_screen(data)
    is_metric = not data.linkage and data.file != CURVE_FILE and data.answer is None
    return {
        **shell("report", "privacy report"),
        "title": data.cover.title or data.summary.title or _title(data),
        "cover": data.cover,
        "made": data.made,
        "sections": [one for one in _sections(is_metric) if certificate is not None or one[0] in UNCERTIFIED],
        "status": first["verdict"].checked,
        "status_is_good": first["calm"],
        "first": first,
        "limits": promise.limits(data),
        "protected": promise.protected(certificate, data.audit) if certificate is not None else None,
        "graph": accounts.graph(data),
        "quality": quality.quality(data),
        "answer": data.answer,
        "linkage": weights_figure(data.linkage) if data.linkage else None,
        "waterfall": waterfall_figure(data.linkage, data.prior) if data.linkage else None,
        "operating": operating(data) if data.curve else None,
        "is_metric": is_metric,
        "noise": accounts.noise(certificate) if certificate is not None else None,
        "budget": accounts.budget(data.summary.budget),
        "recompute": accounts.recompute(data, certificate) if certificate is not None else None,
    }  # fmt: skip


def _title(data: ReportData) -> str:
    if data.answer is not None:
        return data.answer.title
    if data.linkage:
        return "A linkage model"
    return "An operating point" if data.file == CURVE_FILE else "A learned distance metric"


def write(data: ReportData, path: str | Path) -> Path:
    """Write the page, whole or not at all."""
    return write_file(path, render(data).encode("utf-8"))
