"""How commands speak: one JSON object on stdout with --json, else short tables; errors on stderr."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from pairveil.errors import GuaranteeWarning, PrivateNote
from pairveil.printable import printable

JsonFlag = Annotated[
    bool,
    typer.Option(
        "--json", help="Print one JSON object and nothing else.", rich_help_panel="Output"
    ),
]
QuietFlag = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print errors only.", rich_help_panel="Output")
]


class PlainConsole(Console):
    """A console that shows text and never obeys it: escape sequences in it are taken out.

    Every string that rich prints, in a line or in the cell of a table, passes `render_str`.
    """

    def render_str(self, text: str, **options: Any) -> Text:
        """Text of a string, without what a terminal would act on."""
        return super().render_str(printable(text, lines=True), **options)

    def on_broken_pipe(self) -> None:
        """Whoever reads has enough (`pairveil ... | head`): `pairveil.cli.app.main` ends without a word."""
        raise BrokenPipeError


# A stream that is closed (`>&-`) is None: what is said there is said to nobody.
if sys.stdout is None:
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for as long as we run
if sys.stderr is None:
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115

# A terminal gets lines broken between words; a pipe gets them whole.
stdout = PlainConsole(highlight=False, soft_wrap=not sys.stdout.isatty())
stderr = PlainConsole(stderr=True, highlight=False, soft_wrap=not sys.stderr.isatty())

_ROWS = re.compile(r"\brows? \d")
_NUMERIC = re.compile(r"[-+\d.,±%\s]*|infinite")
_KEYWORD = re.compile(
    r"\b(id|left|right|label|exclude|layout|record_id|threshold|zero_means|epsilon|delta|unit|select"
    r"|kappa|adjacency|mechanism|n_components|data_norm|checkpoint)=(?:'([^']*)'|([\w.+-]*\w))?"
)
_SPELLINGS = {
    "leave kappa='auto'": "leave --kappa out",
    "zero_means (--zero-means)": "--zero-means",
    "(pairveil.records.scaling.scale_to_bounds)": "with --bounds FILE",
    " (float('inf') for no privacy)": "",
    "allow overwriting": "say --overwrite",
    "merge_similar_ids=True": "--merge-similar-ids",
}


def as_options(message: str) -> str:
    """A message of the Python interface, with arguments spelled as options.

    Examples
    --------
    >>> as_options("Name them with left=, right= and label=")
    'Name them with --left, --right and --label'
    >>> as_options("use fewer pairs (select='paths')")
    'use fewer pairs (--select paths)'
    """
    for python, shell in _SPELLINGS.items():
        message = message.replace(python, shell)

    def option(found: re.Match[str]) -> str:
        value = found[2] or found[3] or ""
        return f"--{found[1].replace('_', '-')}{' ' if value else ''}{value}"

    return _KEYWORD.sub(option, message)


def plain(value: Any) -> Any:
    """A value as strict JSON: numpy to Python, infinity to the string 'inf', NaN to null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def print_json(payload: Mapping[str, Any]) -> None:
    """Write the one JSON object of a command."""
    try:
        sys.stdout.write(json.dumps(plain(payload), allow_nan=False) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:  # with its number typer would take it for a failure
        raise BrokenPipeError from None


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """A small table for 80 columns: words to the left, numbers to the right."""
    made = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
    )
    cells = [[cell if isinstance(cell, str) else number(cell) for cell in row] for row in rows]
    for i, name in enumerate(columns):
        numeric = i > 0 and all(_NUMERIC.fullmatch(row[i]) for row in cells)
        made.add_column(name, justify="right" if numeric else "left")
    for row in cells:
        made.add_row(*map(escape, row))
    return made


def number(value: Any) -> str:
    """A number as a person writes it."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, float):
        return "infinite" if math.isinf(value) else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def say_error(message: str) -> None:
    """One line on stderr; where it names rows, how they are counted."""
    said = " ".join(as_options(message).split())
    if _ROWS.search(said):
        said += "" if said.endswith((".", "?")) else "."
        said += " Rows are counted without the header: row 1 is the line below it."
    stderr.print(f"[red]pairveil:[/red] {escape(said)}")


def say_note(text: str) -> None:
    """One line on stderr that is no error."""
    stderr.print(f"[yellow]note:[/yellow] {escape(text)}")


@contextmanager
def spoken_warnings(quiet: bool = False, listed: bool = False) -> Iterator[list[str]]:
    """Say each warning once, at once, in one line on stderr; yield the list of what was warned of.

    A `GuaranteeWarning` is said even to those who asked for quiet. A `PrivateNote` is not in the list: what
    is yielded may become part of an output. Where it does (``listed``), only the others are said here.
    """
    said: list[str] = []
    private: set[str] = set()

    def speak(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        text = " ".join(as_options(str(message)).split())
        if text in said or text in private:
            return
        is_private = issubclass(category, PrivateNote)
        if is_private:
            private.add(text)
        else:
            said.append(text)
        if not (quiet or (listed and not is_private)) or issubclass(category, GuaranteeWarning):
            say_note(text)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        for category in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", category)
        warnings.showwarning = speak
        yield said
