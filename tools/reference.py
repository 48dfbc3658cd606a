"""Every command with its options as Markdown, read off the command line itself: never out of date."""

from __future__ import annotations

from typing import Any

import typer

from pairveil.cli.app import app


def reference() -> str:
    """Markdown for the page of the command line: a section a command, a table of its options.

    Examples
    --------
    >>> "### pairveil kappa" in reference()
    True
    """
    return "\n".join(_sections(typer.main.get_command(app), "pairveil"))


def _sections(command: Any, name: str) -> list[str]:
    if hasattr(command, "commands"):
        return [
            line
            for part, sub in command.commands.items()
            for line in _sections(sub, f"{name} {part}")
        ]
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    names = [str(p.metavar or p.name).upper() for p in arguments]
    named = [one if p.required else f"[{one}]" for p, one in zip(arguments, names, strict=True)]
    usage = " ".join([name, *named, "[OPTIONS]"])
    text = [f"### {name}", "", "```text", usage, "```", "", *_help(command)]
    text += ["| option | default | what it does |", "|---|---|---|"]
    return [*text, *(_row(p) for p in command.params if p.param_type_name == "option"), ""]


def _help(command: Any) -> list[str]:
    """The command's own text; each example on a line of its own."""
    return [line.strip() for line in str(command.help or "").splitlines()] + [""]


def _row(option: Any) -> str:
    names = ", ".join(f"`{spelling}`" for spelling in (*option.opts, *option.secondary_opts))
    default = option.default
    empty = default is None or callable(default) or option.is_flag or option.multiple
    shown = "required" if option.required else "" if empty else f"`{default}`"
    return f"| {names} | {shown} | {str(option.help or '').replace('|', '&#124;')} |"
