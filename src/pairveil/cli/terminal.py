"""How commands speak: one JSON object on stdout with --json, else short tables; errors on stderr.

A terminal also sees that something is going on, and how far it is.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from pairveil.errors import GuaranteeWarning, PairveilWarning, PrivateNote
from pairveil.foreign import plain
from pairveil.jobs.fit import FitJob
from pairveil.jobs.job import AT_END, Telling, options, spelling
from pairveil.printable import printable
from pairveil.privacy.units import round_up


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
    rf"\b({'|'.join(one.name for one in options(FitJob))})=(?:'([^']*)'|([\w.+-]*\w))?"
)
_SPELLINGS = {
    "leave kappa='auto'": "leave --kappa out",
    "zero_means (--zero-means)": "--zero-means",
    "(pairveil.records.scaling.scale_to_bounds)": "with --bounds FILE",
    " (float('inf') for no privacy)": "",
    "allow overwriting": "say --overwrite",
    "merge_similar_ids=True": "--merge-similar-ids",
    "leave_out=True": "--leave-out",
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
        flag = spelling(FitJob.__dataclass_fields__[found[1]])
        return f"{flag} {value}" if value else flag

    return _KEYWORD.sub(option, message)


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
    """One line on stderr, or an indented list; where it names rows, how they are counted."""
    items = re.split(r"\n(?=- )", as_options(message))
    said, *listed = [" ".join(one.split()) for one in items]
    if any(map(_ROWS.search, (said, *listed))):
        said += "" if said.endswith((".", "?")) else "."
        said += " Rows are counted without the header: row 1 is the line below it."
    said = "\n".join((said, *listed))
    stderr.print(f"[red]pairveil:[/red] {escape(said)}")


def say_note(text: str) -> None:
    """One line on stderr that is no error."""
    stderr.print(f"[yellow]note:[/yellow] {escape(text)}")


@contextmanager
def spoken_warnings(
    quiet: bool = False, listed: bool = False, briefly: bool = False
) -> Iterator[list[str]]:
    """Say each warning once, at once, in one line on stderr; yield the list of what was warned of.

    ``briefly``: another command is where it is said which columns a note is about.

    A `GuaranteeWarning` is said even to those who asked for quiet. A `PrivateNote` is not in the list, nor
    what other libraries say (openpyxl names cells): what is yielded may become part of an output. Where it
    does (``listed``), only the others are said here.
    """
    said: list[str] = []
    private: set[str] = set()

    def speak(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        brief = getattr(message, "brief", "") if briefly else ""
        text = " ".join(as_options(brief or str(message)).split())
        if text in said or text in private:
            return
        is_private = issubclass(category, PrivateNote) or not issubclass(category, PairveilWarning)
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


class Terminal(Telling):
    """Tells people on stdout, or programs by one JSON object; ``notes`` grows with what was warned of."""

    def __init__(
        self, json: bool = False, quiet: bool = False, notes: list[str] | None = None
    ) -> None:
        super().__init__()
        self.json, self.talks = json, not (json or quiet)
        self.notes = self.notes if notes is None else notes
        self._bar: Progress | None = None

    def say(self, *sentences: str) -> None:
        """Lines for people; what they hold is shown and never obeyed."""
        for sentence in sentences if self.talks else ():
            stdout.print(sentence, markup=False)

    def always(self, sentence: str) -> None:
        """A note that those who asked for quiet hear too."""
        say_note(sentence)

    def address(self, sentence: str) -> None:
        """A line that is the result, beside the object that programs get."""
        (stderr if self.json else stdout).print(sentence, markup=False)

    def ask(self, question: str) -> str:
        """What somebody types; no bar is drawn over it meanwhile."""
        if self._bar is not None:
            self._bar.stop()
        stderr.print(question, markup=False, end=" ")
        typed = sys.stdin.readline()
        if self._bar is not None:
            self._bar.start()
        return typed

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """A small table for people."""
        if self.talks:
            stdout.print(table(title, columns, rows))

    def result(self, content: dict[str, Any]) -> None:
        """The one JSON object."""
        super().result(content)
        if self.json:
            print_json(content)

    def done(self, held: Any) -> None:
        """The checkpoint outlives all that a process does after its work, which takes half a second."""
        AT_END.append(held.remove)

    @contextmanager
    def waiting(self, text: str) -> Iterator[None]:
        """Show that something is going on; nothing where nobody looks (``--json``, ``--quiet``, a pipe)."""
        with ExitStack() as shown:
            if self.talks and stderr.is_terminal:
                shown.enter_context(stderr.status(text))
            yield

    @contextmanager
    def progress(self, charged: float | None) -> Iterator[Any]:
        """A bar with the time left, and the epsilon charged or, without a ledger, spent so far."""
        if not (self.talks and stderr.is_terminal):
            yield None
            return
        words = TextColumn("{task.fields[words]} {task.fields[epsilon]}")
        columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(), words)
        with Progress(*columns, console=stderr, transient=True) as bar:
            said = "epsilon so far" if charged is None else "epsilon charged"
            self._bar = bar
            task = bar.add_task("learning", total=1.0, words=said, epsilon=round_up(charged or 0.0))

            def show(done: float, spent: float) -> None:
                bar.update(task, completed=done, epsilon=round_up(charged or spent))

            yield show
