"""The site's table of contents and the page of the command line are complete."""

from __future__ import annotations

import re

from pages import ROOT, blocks, commands

from pairveil.cli.reference import reference


def test_every_page_is_in_the_table_of_contents() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    listed = set(re.findall(r":\s*([\w./-]+\.md)\s*$", nav, re.M))
    there = {p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").rglob("*.md")}
    assert listed == there


def test_links_of_the_readme_lead_somewhere() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#:]+)\)", text)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


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
