"""The page that is signed: one HTML file that needs nothing else.

The modules beside this one prepare data; what is where on the page is decided in ``templates/``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pairveil.files import write_file
from pairveil.release.release import CURVE_FILE
from pairveil.report import accounts, evidence, pairs, promise
from pairveil.report.data import ReportData
from pairveil.report.linkage import waterfall_figure, weights_figure
from pairveil.report.operating import operating
from pairveil.report.rendering import environment, shell

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
        "graph": pairs.graph(data),
        "quality": evidence.quality(data),
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
