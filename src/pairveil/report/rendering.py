"""The template engine, set up once for report and studio: escapes everything, knows no missing name."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, PrefixLoader, StrictUndefined
from markupsafe import Markup

from pairveil.printable import printable


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
