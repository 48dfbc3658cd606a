"""mkdocs hooks: the page of the command line is filled from the command line itself."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from tools.reference import reference

MARK = "<!-- the commands -->"
GENERATED = "benchmarks.md"  # by `make bench`; a checkout without results has no such page


def on_config(config):
    """Leave the generated page out of the table of contents where it was not generated."""
    if not (Path(config.docs_dir) / GENERATED).exists():
        for section in config.nav:
            for title, pages in section.items():
                if isinstance(pages, list):
                    section[title] = [page for page in pages if GENERATED not in page.values()]
    return config


def on_page_markdown(markdown, **_):
    """Put every command with its options where the page asks for them."""
    return markdown.replace(MARK, reference()) if MARK in markdown else markdown
