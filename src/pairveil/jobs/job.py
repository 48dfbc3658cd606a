"""A job: a dataclass whose fields are its options, each typed once with its help, panel and limits.

The command line binds the fields (`pairveil.cli.app`), the studio fills them in, Python users set them:
``KappaJob(pairs="pairs.csv").run()`` returns what ``pairveil kappa pairs.csv --json`` prints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import MISSING, Field, dataclass, field, fields
from inspect import get_annotations
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, get_type_hints

from pairveil.errors import InputError

FILES, PRIVACY, REPORT, OUTPUT = "Your files", "Privacy", "Report", "Output"
RELEASE, RECEIVE, PAIRS, CHECK = "Release", "Receive", "Pairs", "Check"

AT_END: list[Callable[[], object]] = []
"""What a command does in the last moment of its process, the last first: then a kill is one of a command
that goes on, or was done. Checkpoints whose results were told are removed so (`pairveil.cli.app.main`)."""


class Option(NamedTuple):
    """What is said of a field."""

    help: str
    names: tuple[str, ...] = ()  # spellings; none: its own with dashes, and short ones beside it
    panel: str | None = None  # heading in the help; None: that of the class it stands in, if any
    choices: tuple[str, ...] = ()
    metavar: str = ""  # of a positional argument: its name in the usage
    # Whether only a person may set it, and no `pairveil.toml` that merely lies in the folder: what says
    # whom to trust, what to run, what to charge and where to write. None: where it names a file.
    typed: bool | None = None
    hidden: bool = False  # from the help
    label: str = ""  # what the studio's page calls it, where it has a field for it
    limits: dict[str, float] = {}  # noqa: RUF012 - ``min`` and ``max`` of a number; never changed


def option(default: Any, help: str, *names: str, **about: Any) -> Any:
    """A field that is an option, required where the default is ``...``; ``about``: as for `Option`."""
    limits: dict[str, float] = {n: about.pop(n) for n in ("min", "max") if n in about}
    said = {"option": Option(help, names, limits=limits, **about)}
    return field(default=MISSING if default is ... else default, metadata=said)


def argument(metavar: str, help: str, default: Any = ...) -> Any:
    """A field that stands on the command line without a name."""
    return option(default, help, metavar=metavar)


class Telling:
    """Whom a job tells what it does and finds: here nobody, at the command line a terminal."""

    talks = False  # whether somebody reads: what is made for reading alone is not made for nobody

    def __init__(self) -> None:
        self.notes: list[str] = []  # what was warned of so far and may be part of an output
        self.content: dict[str, Any] = {}  # what the job found, as ``--json`` prints it

    def say(self, *sentences: str) -> None:
        """Lines for people."""

    def always(self, sentence: str) -> None:
        """A note that those who asked for quiet hear too."""

    def address(self, sentence: str) -> None:
        """Where to go on: those who asked for quiet need it too."""

    def ask(self, question: str) -> str:  # noqa: ARG002
        """What somebody types; here nobody does."""
        return ""

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """A small table for people."""

    def result(self, content: dict[str, Any]) -> None:
        """The one JSON object: the last thing that is said of what was found."""
        self.content = content

    def done(self, held: Any) -> None:
        """Remove a held checkpoint whose result was told; a command does so as its process ends."""
        held.remove()
        held.close()

    def waiting(self, text: str) -> AbstractContextManager[None]:
        """Show that something is going on."""
        del text
        return nullcontext()

    @contextmanager
    def progress(self, charged: float | None) -> Iterator[Any]:
        """What is called with the share done and epsilon so far; ``charged``: by a ledger, beforehand."""
        del charged
        yield None


@dataclass(frozen=True, kw_only=True)
class Job:
    """One thing that can be asked for. Its docstring is the help of its command."""

    heading: ClassVar[str | None] = OUTPUT
    name: ClassVar[str]
    panel: ClassVar[str]
    shown: ClassVar[tuple[str, ...]] = ()  # options of the short help; none: all are short enough
    notes_in_json: ClassVar[bool] = False  # what was warned of is part of the output
    describes: ClassVar[bool] = False  # it is where notes on cells name the columns
    extra: ClassVar[str] = "learn"  # brings the packages that the job imports

    json: bool = option(False, "Print one JSON object and nothing else.")
    quiet: bool = option(False, "Print errors only.", "-q")
    given: frozenset[str] | None = None  # fields that were typed, where a command line knows

    def __post_init__(self) -> None:
        """From Python a file may be named by a string; a choice must be one of those that are offered."""
        hints = hints_of(type(self))
        for one in options(type(self)):
            value, choices = getattr(self, one.name), about_of(one).choices
            if isinstance(value, str) and is_path(hints[one.name]):
                object.__setattr__(self, one.name, Path(value))
            elif choices and value is not None and value not in choices:
                raise InputError(f"{spelling(one)} must be one of {', '.join(choices)}")

    @property
    def typed(self) -> frozenset[str]:
        """Fields that somebody set by hand: they must not be ignored."""
        if self.given is not None:
            return self.given
        return frozenset(one.name for one in options(type(self)) if self.is_set(one.name))

    def is_set(self, name: str) -> bool:
        """Whether an option differs from its default."""
        return bool(getattr(self, name) != type(self).__dataclass_fields__[name].default)

    def run(self, tell: Telling | None = None) -> dict[str, Any]:
        """Do it; returns what ``--json`` prints."""
        tell = Telling() if tell is None else tell
        self.work(tell)
        return tell.content

    def work(self, tell: Telling) -> None:
        """What the job does."""
        raise NotImplementedError

    def words(self, *always: str) -> list[str]:
        """The words of the command that is this job: what differs from a default, and ``always`` these.

        Examples
        --------
        >>> from pairveil.jobs.pairs import KappaJob
        >>> KappaJob(pairs=Path("pairs.csv"), left="a b", merge_similar_ids=True).words()
        ['kappa', 'pairs.csv', '--left', 'a b', '--merge-similar-ids']
        """
        said = [self.name]
        for one in options(type(self)):
            value, about = getattr(self, one.name), about_of(one)
            values = list(value) if isinstance(value, list | tuple) else [value]
            if about.metavar:
                said += [] if value is None else [str(value)]
            elif value is True:
                said.append(spelling(one))
            elif value is not None and (one.name in always or self.is_set(one.name)):
                for each in values:
                    text = str(each).removesuffix(".0") if isinstance(each, float) else str(each)
                    flag = spelling(one)
                    said += [f"{flag}={text}"] if text.startswith("-") else [flag, text]
        return said


def options(kind: type) -> list[Field[Any]]:
    """The options of a job or a group of options: arguments first, then its own, then those of its bases."""
    known = {one.name: one for one in fields(kind) if "option" in one.metadata}
    order = dict.fromkeys(name for base in kind.__mro__ for name in get_annotations(base))
    found = [known[name] for name in order if name in known]
    return sorted(found, key=lambda one: not about_of(one).metavar)


def about_of(one: Field[Any]) -> Option:
    """What is said of a field."""
    found: Option = one.metadata["option"]
    return found


def spelling(one: Field[Any]) -> str:
    """The long name of an option, as it is typed.

    Examples
    --------
    >>> [spelling(one) for one in options(Job)]
    ['--json', '--quiet']
    """
    named = [name for name in about_of(one).names if name.startswith("--")]
    return named[0] if named else f"--{one.name.replace('_', '-')}"


def heading(kind: type, one: Field[Any]) -> str | None:
    """Under which heading the help shows an option."""
    owner = next(base for base in kind.__mro__ if one.name in get_annotations(base))
    return about_of(one).panel or owner.__dict__.get("heading")


def hints_of(kind: type) -> dict[str, Any]:
    """The type of each field."""
    return get_type_hints(kind)


def is_path(hint: Any) -> bool:
    """Whether a field names a file."""
    return hint is Path or Path in getattr(hint, "__args__", ())
