"""What the docs show, runs: every `>>>` block, every command, and whole pages from top to bottom."""

from __future__ import annotations

import doctest
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from pages import PAGES, ROOT, Block, blocks, commands, name

from pairveil import learners
from pairveil.cli.app import app, config_first
from pairveil.errors import BudgetError

# Pages whose commands are run too, in order, in one empty folder. The others' are parsed.
RUN_WHOLE = {
    "docs/tutorial.md",
    "docs/guides/record-linkage.md",
    "docs/guides/new-learner.md",
}
# Pages about an extra, which is tested where it is installed.
NEEDS = {"docs/guides/networks.md": "torch"}
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


class Reader:
    """Someone who pastes a page's blocks one after the other into one session."""

    def __init__(self, page: Path) -> None:
        self.page = page
        self.names: dict[str, Any] = {}

    def read(self, block: Block, run_commands: bool) -> None:
        if block.file is not None:
            Path(block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "python" and ">>>" in block.text:
            self._doctest(block)
        elif run_commands and block.language == "sh":
            for words, comment in commands(block):
                _run(words, comment)

    def _doctest(self, block: Block) -> None:
        example = doctest.DocTestParser().get_doctest(
            block.text, self.names, name(self.page), str(self.page), block.line - 1
        )
        said: list[str] = []
        runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
        result = runner.run(example, out=said.append, clear_globs=False)
        self.names = example.globs
        assert result.failed == 0, "".join(said)


def _run(words: list[str], comment: str) -> None:
    """Run one command in this process; a comment may announce that the budget refuses it."""
    if "exit code 3" in comment:
        with pytest.raises(BudgetError):
            app(args=config_first(words), standalone_mode=False)
        return
    assert not app(args=config_first(words), standalone_mode=False)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name(page) in NEEDS:
        pytest.importorskip(NEEDS[name(page)], reason="the page is about an extra")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # a page may show files that it imports
    monkeypatch.setattr(learners, "LEARNERS", dict(learners.LEARNERS))  # and register learners
    reader = Reader(page)
    for block in blocks(page):
        reader.read(block, run_commands=name(page) in RUN_WHOLE)
    for block in blocks(page):
        sys.modules.pop(Path(block.file or "").stem, None)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_parse(page: Path) -> None:
    for block in blocks(page):
        for words, _ in commands(block):
            parse(words)


def test_budget_guide_is_refused_at_the_third_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    people, pairs = ["id,a,b"], ["left,right,label"]
    for i in range(40):
        people.append(f"{i},{0.01 * i},{0.3 - 0.005 * i}")
        pairs.append(f"{i},{(i + 1) % 41},{'same' if i % 3 else 'different'}")
    Path("people.csv").write_text("\n".join([*people, "40,0.1,0.2"]), encoding="utf-8")
    Path("pairs.csv").write_text("\n".join(pairs), encoding="utf-8")
    shown = [c for b in blocks(ROOT / "docs/guides/budgets.md") for c in commands(b)]
    assert [comment for _, comment in shown if comment] == ["exit code 3"]
    for words, comment in shown:
        _run(words, comment)
    assert Path("release-2").is_dir()
    assert not Path("release-3").exists()


def parse(words: list[str]) -> None:
    """Let the command line read a command without running it."""
    command = typer.main.get_command(app)
    context = command.make_context("pairveil", config_first(words))
    while hasattr(command, "commands"):
        rest = [*context._protected_args, *context.args]
        part, command, left = command.resolve_command(context, rest)
        context = command.make_context(part, left, parent=context)


@pytest.mark.parametrize(
    "wrong", ["pairveil fit a.csv b.csv --epsilom 1", "pairveil kapa x.csv", "pairveil kappa"]
)
def test_a_wrong_command_would_be_found(wrong: str) -> None:
    [(words, _)] = commands(Block("sh", wrong, 1))
    with pytest.raises(Exception, match=r"No such|Missing"):
        parse(words)


def test_a_wrong_block_would_be_found() -> None:
    with pytest.raises(AssertionError, match="Expected"):
        Reader(ROOT / "README.md").read(Block("python", ">>> 1 + 1\n3\n", 1), run_commands=False)
