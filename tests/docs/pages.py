"""The fenced blocks of a Markdown page, as a reader would run them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")], key=lambda page: page.as_posix()
)
_FENCE = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```\s*$", re.M | re.S)
_TITLE = re.compile(r'title="([\w.]+)"')


class Block(NamedTuple):
    """A fenced block: its language, its text, the line it starts on, and the file it is to be saved as."""

    language: str
    text: str
    line: int
    file: str | None = None


def blocks(page: Path) -> list[Block]:
    """Every fenced block of a page, in order."""
    content = page.read_text(encoding="utf-8")
    return [
        Block(found[1], found[3], content[: found.start()].count("\n") + 2, _file(found[2]))
        for found in _FENCE.finditer(content)
    ]


def _file(rest: str) -> str | None:
    found = _TITLE.search(rest)
    return None if found is None else found[1]


def commands(block: Block) -> list[tuple[list[str], str]]:
    """The `pairveil` commands of a block: words without the name, and the comment behind them."""
    joined = block.text.replace("\\\n", " ")
    found = []
    for line in joined.splitlines():
        if line.strip().startswith("pairveil ") and "[OPTIONS]" not in line:
            found.append((shlex.split(line, comments=True)[1:], line.partition("#")[2].strip()))
    return found


def name(page: Path) -> str:
    """A page's name for pytest."""
    return page.relative_to(ROOT).as_posix()
