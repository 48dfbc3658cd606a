"""The site's table of contents and the page of the command line are complete."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from pages import PAGES, ROOT, blocks, commands
from tools.reference import reference

import pairveil
from pairveil import errors
from pairveil.learners import LEARNERS


def test_every_page_is_in_the_table_of_contents() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    listed = re.findall(r":\s*([\w./-]+\.md)\s*$", nav, re.M)
    there = {p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").rglob("*.md")}
    assert sorted(listed) == sorted(there | {"benchmarks.md"})  # once each; made by `make bench`


MOST_WORDS = 30_000


def test_the_docs_are_short_enough_to_be_read() -> None:
    words = {page: len(page.read_text(encoding="utf-8").split()) for page in PAGES}
    total = sum(words.values())
    longest = sorted(words, key=words.__getitem__, reverse=True)[:5]
    assert total <= MOST_WORDS, (
        f"README and docs have {total:,} words, {MOST_WORDS:,} are allowed. Delete what another page says; "
        "logs of measurements belong into benchmarks/results/README.md or reproduction/. Longest: "
        + ", ".join(f"{page.relative_to(ROOT)} {words[page]:,}" for page in longest)
    )


def test_links_of_the_readme_lead_somewhere() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#:]+)\)", text)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_what_the_api_page_lists_can_be_imported() -> None:
    text = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    listed = re.findall(r"^::: ([\w.]+)$", text, re.M)
    assert "pairveil.audit.audit" in listed
    for path in listed:
        home, _, public = path.rpartition(".")
        if home.startswith("pairveil.deep") and find_spec("torch") is None:
            continue
        try:
            import_module(path)  # a module is imported by its own name
        except ModuleNotFoundError:
            found = getattr(import_module(home), public)
            package = import_module(".".join(home.split(".")[:2]))
            offers = pairveil if public in pairveil.__all__ else package
            assert getattr(offers, public) is found
    undocumented = {name for name in pairveil.__all__ if not name.startswith("__")} - {
        path.rpartition(".")[2] for path in listed
    }
    assert undocumented <= set(vars(errors))  # the page lists their module as a whole


def test_every_registered_learner_is_on_the_api_page() -> None:
    text = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    listed = [home.replace(":", ".") for home in LEARNERS.values()]
    assert [path for path in listed if f"::: {path}\n" not in text] == []


def test_files_that_the_architecture_names_exist() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:docs/)?[a-z_]+/[\w/.-]*|\w+\.py)`", text))
    assert len(named) > 40
    roots = (ROOT, ROOT / "src/pairveil", ROOT / "src/pairveil/engine")
    assert [file for file in named if not any((root / file).exists() for root in roots)] == []


def test_every_package_is_in_the_architecture() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    folders = {p.parent.name for p in (ROOT / "src/pairveil").glob("*/__init__.py")}
    assert {folder for folder in folders if f"| `{folder}/` |" not in text} == set()


def test_nothing_refers_to_what_is_not_in_the_repository() -> None:
    """Pages that only their authors have: what they say belongs into docs/theory."""
    files = [p for part in ("src", "tests", "docs", "tools") for p in (ROOT / part).rglob("*.*")]
    outside = re.compile("|".join(f"{name}\\b" for name in ("THEORY", "EVALUATION", "DESIGN")))
    found = [
        f"{path.name}: {link[0]}"
        for path in files
        if path.suffix in (".py", ".md") and path.name != "test_site.py"
        for link in outside.finditer(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_code_that_a_theorem_names_exists() -> None:
    """Each proof names the module, class or function that rests on it: `package.module.name`, or a name."""
    roots = (ROOT / "src/pairveil", ROOT / "reproduction")
    code = {path: path.read_text("utf-8") for root in roots for path in root.rglob("*.py")}
    named = {
        name
        for page in (ROOT / "docs/theory").glob("*.md")
        for name in re.findall(r"`([A-Za-z_][\w.]*)`", page.read_text("utf-8"))
    } - {"os.urandom", "torch.func"}
    assert {"privacy.compose", "grid_sensitivity", "learners.ranking.NetChoices"} <= named
    assert [name for name in sorted(named) if not _is_in(code, name)] == []


def _is_in(code: dict[Path, str], name: str) -> bool:
    """Whether a module or package, a name in a module, or a name anywhere is there."""
    modules = {path.with_suffix("").as_posix() for path in code}
    modules |= {path.parent.as_posix() for path in code}

    def is_module(dotted: str) -> bool:
        return any(one.endswith("/" + dotted.replace(".", "/")) for one in modules)

    home, _, last = name.rpartition(".")
    at = "/" + home.replace(".", "/") + ".py"
    searched = [text for path, text in code.items() if path.as_posix().endswith(at)]
    made = re.compile(rf"(def|class) {last}\b|^ *{last}\b[^=\n]*[=:]", re.M)
    return is_module(name) or any(made.search(text) for text in searched or code.values())


def test_links_from_the_source_into_the_docs_lead_somewhere() -> None:
    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    named = {
        page
        for path in sources
        for page in re.findall(r"docs/[\w/-]+\.md", path.read_text("utf-8"))
    }
    assert "docs/theory/noise.md" in named
    assert [page for page in sorted(named) if not (ROOT / page).exists()] == []


def test_the_picture_is_described_as_it_is() -> None:
    pytest.importorskip("PIL")
    from tools.readme_picture import described

    drawn = described(ROOT / "docs/figures/first-screen.png")
    for page in ("README.md", "docs/index.md"):
        said = re.search(r"!\[(.*?)\]", (ROOT / page).read_text(encoding="utf-8"))[1]
        assert re.findall(r"\d+", said) == re.findall(r"\d+", drawn), page
    assert (ROOT / "docs/figures/first-screen.png").stat().st_size < 200_000


@pytest.mark.skipif(
    not os.environ.get("PAIRVEIL_NIGHTLY"), reason="runs the whole demo: make audit does"
)
def test_the_picture_says_what_the_demo_says(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    from tools.readme_picture import described, headline

    words = ["demo", "--out", str(tmp_path / "demo"), "--quiet"]
    subprocess.run([sys.executable, "-m", "pairveil", *words], check=True)
    assert headline(tmp_path / "demo") == described(ROOT / "docs/figures/first-screen.png")


def test_make_targets_that_are_shown_exist() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    shown = re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(encoding="utf-8"), re.M)
    assert {"demo", "test"} <= set(shown) <= targets


def test_the_reference_has_every_command_and_its_options() -> None:
    page = reference()
    for name in ("demo", "kappa", "select", "design", "account", "fit", "transform", "certificate"):
        assert f"### pairveil {name}\n" in page
    fit = page.partition("### pairveil fit\n")[2].partition("\n###")[0]
    for option in ("--epsilon", "--unit", "--select", "--out", "--dry-run", "--ledger", "--quiet"):
        assert f"`{option}`" in fit


def test_pages_show_commands_at_all() -> None:
    assert sum(len(commands(block)) for block in blocks(ROOT / "docs" / "tutorial.md")) >= 7
