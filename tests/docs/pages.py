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
_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```\s*$", re.M | re.S)


class Block(NamedTuple):
    """A fenced block: its language, its text and the line it starts on."""

    language: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    """Every fenced block of a page, in order."""
    content = page.read_text(encoding="utf-8")
    return [
        Block(found[1], found[2], content[: found.start()].count("\n") + 2)
        for found in _FENCE.finditer(content)
    ]


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
