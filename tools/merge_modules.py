"""Merge modules into one and rewrite every reference to them; goes when the collapse is done.

::

    python -m tools.merge_modules pairveil.graph.kappa pairveil.graph.kappa pairveil.graph.kappa

writes the second and third module, in this order, into the first. Imports are joined, docstrings follow
each other, each part gets a heading. Printed, to be put right by hand before: top-level names that two
modules share, aliases and imports of a merged module as a module. Afterwards: ``ruff check --fix``,
``ruff format``, ``mypy``, ``lint-imports`` (cycles show there), ``make net`` (nothing may differ) and the
tests of what moved.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
REWRITTEN = (".py", ".md", ".toml", ".yml", ".ipynb", "Makefile")


def path_of(module: str) -> Path:
    """The file of a module."""
    base = ROOT / ("src" if module.startswith("pairveil") else "") / module.replace(".", "/")
    return base / "__init__.py" if (base / "__init__.py").exists() else base.with_suffix(".py")


def statements(text: str) -> Iterator[tuple[ast.stmt, str]]:
    """Top-level statements, each with its source and the comments before it."""
    lines, before = text.splitlines(keepends=True), 0
    for node in ast.parse(text).body:
        yield node, "".join(lines[before : node.end_lineno]).strip("\n")
        before = node.end_lineno or before


def defined(node: ast.stmt) -> list[str]:
    """Names that a statement defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [
        one.id
        for target in targets
        if target
        for one in ast.walk(target)
        if isinstance(one, ast.Name)
    ]


def is_text(node: ast.stmt) -> bool:
    """Whether a statement is a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def is_typing(node: ast.stmt) -> bool:
    """Whether a statement is a plain ``if TYPE_CHECKING:`` of imports."""
    return (
        isinstance(node, ast.If)
        and ast.unparse(node.test) == "TYPE_CHECKING"
        and not node.orelse
        and all(isinstance(one, ast.Import | ast.ImportFrom) for one in node.body)
    )


def merged(new: str, olds: list[str]) -> str:
    """The text of the new module."""
    own, docs, imports, typing, body = {new, *olds}, {}, [], [], []
    names: dict[str, str] = {}
    for module in olds:
        for place, (node, source) in enumerate(statements(path_of(module).read_text("utf-8"))):
            if place == 0 and is_text(node):
                docs[module] = ast.literal_eval(ast.unparse(node)).strip("\n")
                body.append("# ---- " + heading(docs[module]).ljust(93, "-"))
            elif isinstance(node, ast.Import | ast.ImportFrom):
                inside = isinstance(node, ast.ImportFrom) and node.module in own
                if inside and any(one.asname for one in node.names):
                    print(f"alias in {module}: {ast.unparse(node)}")
                if isinstance(node, ast.ImportFrom) and own & {
                    f"{node.module}.{a.name}" for a in node.names
                }:
                    print(f"module import in {module}: {ast.unparse(node)}")
                imports += [] if inside or "__future__" in source else [source]
            elif is_typing(node):
                kept = [one for one in node.body if getattr(one, "module", None) not in own]  # type: ignore[attr-defined]
                typing += [f"    {ast.unparse(one)}" for one in kept]
            elif is_text(node) and body:
                body[-1] += "\n" + source
            else:
                for name in defined(node):
                    if names.setdefault(name, module) != module:
                        print(f"{name} is defined in {names[name]} and in {module}")
                body.append(source)
    order = [new] * (new in docs) + [one for one in docs if one != new]
    head = "\n\n".join(docs[one] for one in order)
    head = (
        f'"""{head}{chr(10) if chr(10) in head else ""}"""\n\nfrom __future__ import annotations\n'
    )
    if typing:
        imports.append(
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"
            + "\n".join(dict.fromkeys(typing))
        )
    text = "\n".join([head, *dict.fromkeys(imports), "", "\n\n".join(body)]) + "\n"
    for one in own:  # imports of each other inside functions
        text = re.sub(
            rf"^[ \t]+from {re.escape(one)} import (\([^)]*\)|[^(\n]+)\n", "", text, flags=re.M
        )
    return text


def heading(doc: str) -> str:
    """The first sentence of a docstring, short enough for a line."""
    title = (
        " ".join(doc.split("\n\n")[0].split())
        .replace("Fig. ", "figure ")
        .split(". ")[0]
        .rstrip(".")
    )
    title = title.split(": ")[-1] if len(title) > 86 else title
    return title[:86].rstrip() + " "


def rewrite(moves: dict[str, str]) -> None:
    """Put the new names into every file that git knows."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in listed.stdout.split("\n"):
        path = ROOT / name
        if name.endswith(REWRITTEN) and path.is_file() and path.name != "CHANGELOG.md":
            text = path.read_text("utf-8")
            changed = renamed(text, moves)
            if changed != text:
                path.write_text(changed, "utf-8")


def renamed(text: str, moves: dict[str, str]) -> str:
    """A text with new names for modules, dotted, imported from their package, or as paths."""
    for old, new in sorted(moves.items(), key=lambda move: -len(move[0])):
        (package, _, last), (home, _, file) = old.rpartition("."), new.rpartition(".")

        def move(found: re.Match[str], last: str = last, home: str = home, file: str = file) -> str:
            indent, package, others, alias = found.groups()
            others = (others or "").rstrip(", ")
            called = alias or last
            line = f"{indent}from {home} import {file}" + (
                f" as {called}" if called != file else ""
            )
            return (f"{indent}from {package} import {others}\n" if others else "") + line

        text = re.sub(
            rf"^([ \t]*)from ({re.escape(package)}) import ((?:\w+, )*){last}(?: as (\w+))?(?=$|[,\s])",
            move, text, flags=re.M,
        )  # fmt: skip
        text = re.sub(rf"(?<![\w.]){re.escape(old)}(?!\w)", new, text)
        paths = [f"{one.replace('.', '/')}.py" for one in (old, new)]
        text = text.replace(*paths).replace(*(f"`{one.removeprefix('pairveil/')}" for one in paths))
    return text


def main(new: str, *olds: str) -> None:
    """Merge, remove what was merged, rewrite."""
    text = merged(new, list(olds))
    target = ROOT / ("src" if new.startswith("pairveil") else "") / f"{new.replace('.', '/')}.py"
    for one in map(path_of, olds):
        one.unlink()
    target.write_text(text, "utf-8")
    rewrite({one: new for one in olds if one != new})


if __name__ == "__main__":
    main(*sys.argv[1:])
