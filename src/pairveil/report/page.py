"""The page that is signed: one HTML file that needs nothing else.

Words and layout are in ``templates/``, which see plain data (`pairveil.report.data`), what follows from it
(`pairveil.report.facts`) and the charts. The template engine is set up once for report and studio: it
escapes everything and knows no missing name.
"""

from __future__ import annotations

import base64
import hashlib
import math
import shlex
from collections.abc import Sequence
from datetime import date
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, PrefixLoader, StrictUndefined
from markupsafe import Markup

from pairveil import __version__
from pairveil.files import write_file
from pairveil.printable import printable
from pairveil.privacy.certificate import one_number
from pairveil.privacy.verdict import Releases, unit_name
from pairveil.records.kinds import KINDS
from pairveil.release.release import CURVE_FILE
from pairveil.report import charts, facts
from pairveil.report.data import Cover, ReportData
from pairveil.report.words import FILTERS

if TYPE_CHECKING:  # the page sees plain findings, never the data that they came from
    from pairveil.audit.trainer_audit import TrainerFinding


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
    made = Environment(
        loader=PrefixLoader({name: PackageLoader(f"pairveil.{name}") for name in packages}),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {one.__name__: one for one in FILTERS}
    made.globals |= {"charts": charts, "facts": facts, "kinds": KINDS, "infinity": math.inf}
    made.globals |= {"one_number": one_number, "unit_name": unit_name}
    return made


@cache
def asset(package: str, name: str) -> str:
    """A style sheet or script of a package, as text that templates keep as it is."""
    file = files(f"pairveil.{package}").joinpath("assets").joinpath(name)
    return Markup(file.read_text(encoding="utf-8"))  # ours, and not made of anything that came in


def shell(kind: str) -> dict[str, Any]:
    """What ``report/shell.html`` needs besides title, cover, status and sections: style, script, policy.

    The browser itself then refuses anything from the network and any script but ours.
    """
    style, script = asset("report", "page.css"), asset("report", "page.js")
    return {
        "kind": kind,
        "version": __version__,
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


def first_screen(data: ReportData, releases: Releases | None = None) -> dict[str, Any]:
    """The verdict and what templates need to explain it; the studio shows it too.

    A certificate that does not hold is not shown.
    """
    found = facts.verdict_of(data, releases)
    certificate = None if data.problems else data.certificate
    bounds = {unit: times for unit, times in found.in_100.items() if times is not None}
    return {
        "data": data,
        "certificate": certificate,
        "verdict": found,
        "usable": found.usable and certificate is not None,
        "calm": found.usable and certificate is not None and certificate.unit in bounds,
        "worst": max(bounds, key=lambda unit: bounds[unit], default=None),
        "what": _what(data),
    }


def _what(data: ReportData) -> str:
    """What was released: metric, linkage, curve, ranking, clusters or network."""
    if data.answer is not None:
        return str(data.answer.what)
    if data.linkage:
        return "linkage"
    return "curve" if data.file == CURVE_FILE else "metric"


def render(data: ReportData) -> str:
    """The whole page as a string.

    Examples
    --------
    >>> from pairveil.report.data import ReportData
    >>> from pairveil.report.facts import metric_shape
    >>> page = render(ReportData(certificate=None, metric=metric_shape([[1.0, 2.0]])))
    >>> page.startswith("<!doctype html>"), "promises nothing" in page
    (True, True)
    """
    template = environment("report").get_template("report/page.html")
    return template.render(shell("privacy report"), **first_screen(data))


def render_audit(found: TrainerFinding, command: Sequence[str]) -> str:
    """The page of an audited trainer: what was claimed, what was found, and what it does not say.

    ``command``: what was typed, for whoever repeats it.

    Examples
    --------
    >>> from pairveil.audit.trainer_audit import audit_trainer
    >>> def noise(X, pairs, y, seed):
    ...     return [seed % 7]
    >>> page = render_audit(audit_trainer(noise, 1.0, runs=40), ["pairveil", "audit"])
    >>> page.startswith("<!doctype html>"), "Nothing found" in page
    (True, True)
    """
    return environment("report").get_template("report/trainer_audit.html").render(
        shell("audit"),
        found=found,
        worst=max(reversed(found.levels), key=lambda level: level.finding.lower_bound),
        cover=Cover(),
        made=date.today().isoformat(),
        command=shlex.join(command),
    )  # fmt: skip


def write(data: ReportData, path: str | Path) -> Path:
    """Write the page, whole or not at all."""
    return write_file(path, render(data).encode("utf-8"))
