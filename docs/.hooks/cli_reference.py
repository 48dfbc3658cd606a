"""mkdocs hook: fills the page of the command line from the command line itself."""

from pairveil.cli.reference import reference

MARK = "<!-- the commands -->"


def on_page_markdown(markdown, **_):
    """Put every command with its options where the page asks for them."""
    return markdown.replace(MARK, reference()) if MARK in markdown else markdown
