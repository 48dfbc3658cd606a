"""The command line. Exit codes: 0 done; 2 bad usage or input; 3 the budget does not allow it.

Each command is a job (`pairveil.jobs`): its options are the job's fields, its help the job's docstring.

`pairveil.toml`: options that need not be typed each time. The command line always wins.
"""

from __future__ import annotations

import inspect
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, Field
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

import typer

from pairveil import __version__
from pairveil._lazy import naming
from pairveil.cli.terminal import Terminal, say_error, say_note, spoken_warnings
from pairveil.errors import BudgetError, InputError, PairveilError
from pairveil.foreign import parse_toml, read_regular
from pairveil.jobs.check import AttackJob, AuditJob
from pairveil.jobs.demo import DemoJob
from pairveil.jobs.fit import FitJob
from pairveil.jobs.job import AT_END, Job, about_of, heading, hints_of, is_path, options, spelling
from pairveil.jobs.link import LinkJob
from pairveil.jobs.measure import EvaluateJob, ThresholdJob
from pairveil.jobs.pairs import AccountJob, DesignJob, KappaJob, SelectJob
from pairveil.jobs.parties import FederateJob, PartyJob
from pairveil.jobs.plan import PlanJob, SchemaJob
from pairveil.jobs.received import (
    CertificateJob,
    ExportJob,
    ReportJob,
    SignJob,
    TransformJob,
)
from pairveil.studio.server import StudioJob

# ---- a job as a command --------------------------------------------------------------------------

JOBS: tuple[type[Job], ...] = (
    DemoJob, StudioJob, SchemaJob, PlanJob, FitJob, PartyJob, FederateJob, LinkJob, ThresholdJob, EvaluateJob,
    CertificateJob, ReportJob, TransformJob, ExportJob, SignJob,
    KappaJob, SelectJob, DesignJob, AccountJob,
    AttackJob, AuditJob,
)  # fmt: skip


def bound(kind: type[Job]) -> Callable[..., None]:
    """A function for typer with a parameter for each option of a job."""
    listed = [_parameter(kind, one) for one in options(kind)]
    if kind.shown:
        said: dict[str, Any] = {"is_eager": True, "help": "Show all options and exit."}
        listed.append(
            ("help_all", False, bool, typer.Option("--help-all", callback=_help_all, **said))
        )

    def called(context: typer.Context, **given: Any) -> None:
        given.pop("help_all", None)
        sources = {name: context.get_parameter_source(name) for name in given}
        by = {name: source.name for name, source in sources.items() if source is not None}
        job = kind(**given, given=frozenset(name for name in by if by[name] == "COMMANDLINE"))
        root = context.find_root()
        if root.obj is not None and root.params.get("config") is None:
            say_found(root.obj, job, [name for name in by if by[name] == "DEFAULT_MAP"])
        listed = job.json and kind.notes_in_json
        with (
            spoken_warnings(job.quiet, listed, not kind.describes) as notes,
            naming(kind.extra, kind.name),
        ):
            job.run(Terminal(job.json, job.quiet, notes))

    # typer reads the signature and, beside it, the annotations: both must show the options.
    word, named = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    shown = [inspect.Parameter("context", word, annotation=typer.Context)]
    for name, default, hint, info in listed:
        told: Any = Annotated[hint, info]
        shown.append(inspect.Parameter(name, named, default=default, annotation=told))
    called.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    called.__annotations__ = {one.name: one.annotation for one in shown}
    called.__doc__ = kind.__doc__
    return called


def _parameter(kind: type[Job], one: Field[Any]) -> tuple[str, Any, Any, Any]:
    """An option of a job as typer reads it: name, default, type, and what is said of it."""
    about, hint = about_of(one), hints_of(kind)[one.name]
    if about.choices:
        choices = Literal.__getitem__(about.choices)  # type: ignore[attr-defined]
        hint = Optional[choices] if one.default is None else choices  # noqa: UP045
    default = inspect.Parameter.empty if one.default is MISSING else one.default
    told: dict[str, Any] = {"help": about.help, **about.limits}
    if about.metavar:
        info = typer.Argument(**told, metavar=about.metavar, show_default=False)
    else:
        told["rich_help_panel"] = heading(kind, one)
        told["hidden"] = about.hidden or bool(kind.shown and one.name not in kind.shown)
        info = typer.Option(*dict.fromkeys((spelling(one), *about.names)), **told)
    return one.name, default, hint, info


# For commands beside these: benchmarks and reproduction.
JsonFlag, QuietFlag = (Annotated[bool, _parameter(Job, one)[3]] for one in options(Job))


def _help_all(context: typer.Context, wanted: bool) -> None:
    """Show the help with every option: the short one leaves out what few people need."""
    if wanted and not context.resilient_parsing:
        for parameter in context.command.params:
            parameter.hidden = False  # type: ignore[attr-defined]
        typer.echo(context.get_help())
        raise typer.Exit


# ---- `pairveil.toml`: options that need not be typed each time -----------------------------------

CONFIG_FILE = "pairveil.toml"

OPTIONS = {
    kind.name: {spelling(one)[2:]: one for one in options(kind) if not about_of(one).metavar}
    for kind in JOBS
}
HINTS = {kind.name: hints_of(kind) for kind in JOBS}
TYPED = frozenset(
    one.name
    for command, known in OPTIONS.items()
    for one in known.values()
    if (is_path(HINTS[command][one.name]) if about_of(one).typed is None else about_of(one).typed)
)
"""Options that say whom to trust, what to run, what to charge and where to write.

A file that lies in the working directory may be a stranger's, as in a folder that was received: it cannot set
them. The command line can, and so can a file that was named. Whatever names a file is among them, unless the
option says that it is only read.
"""


def find_config(given: Path | None) -> Path | None:
    """The file named by ``--config``, else the one in the working directory, else none."""
    if given is None:
        here = Path(CONFIG_FILE)
        return here if here.is_file() else None
    if not given.is_file():
        raise InputError(f"--config: there is no file {given}")
    return given


def read_config(path: Path, *, named: bool) -> dict[str, dict[str, Any]]:
    """Read a configuration as default values, by command and parameter, as click's ``default_map``.

    Top-level keys are options of every command that has them, a table is one command's (``[fit]``) and wins
    over them. What no command knows is an error. Unless somebody ``named`` the file it must not set `TYPED`.
    """
    content = parse_toml(read_regular(path), str(path))
    tables = {key: value for key, value in content.items() if isinstance(value, dict)}
    shared = {key: value for key, value in content.items() if key not in tables}
    anywhere = {key for known in OPTIONS.values() for key in known}
    for key in shared.keys() - anywhere:
        raise InputError(f"{path}: no command has an option '{key}'{_meant(key, anywhere)}")
    for name in tables.keys() - OPTIONS.keys():
        raise InputError(f"{path}: there is no command '{name}'{_meant(name, OPTIONS)}")
    made: dict[str, dict[str, Any]] = {name: {} for name in OPTIONS}
    for name, known in OPTIONS.items():
        table = tables.get(name, {})
        for key in table.keys() - known.keys():
            raise InputError(f"{path}: [{name}] has no option '{key}'{_meant(key, known)}")
        for key, value in {**{k: v for k, v in shared.items() if k in known}, **table}.items():
            option, hint = known[key].name, str(HINTS[name][known[key].name])
            # What is set for all commands is one value to some and a list to others ('epsilon' of 'plan').
            if key not in table and "list" in hint and _is_scalar(value):
                value = [value]
            if option in TYPED and not named:
                raise InputError(
                    f"{path}: '{key}' cannot be set by a file that merely lies in the folder, which may be a "
                    f"stranger's. Type --{key}, or name the file: --config {path}"
                )
            # Refuse what an option cannot take and typer would bend: true for a number, a word for a list.
            if "bool" in hint and not isinstance(value, bool):
                raise InputError(f"{path}: '{key}' must be true or false")
            if "list" in hint and not (isinstance(value, list) and all(map(_is_scalar, value))):
                raise InputError(f"{path}: '{key}' must be a list: {key} = [...]")
            if "bool" not in hint and "list" not in hint and not _is_scalar(value):
                raise InputError(f"{path}: '{key}' must be one number or text")
            made[name][option] = value
    return made


def say_found(file: Path, job: Job, names: Iterable[str]) -> None:
    """Say which options a file has set that nobody named, as they are typed."""
    words = []
    for name in names:
        value, flag = getattr(job, name), spelling(type(job).__dataclass_fields__[name])
        shown = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        words.append(flag if value is True else f"{flag} {shown}")
    if words:
        say_note(f"{file}, found in this folder, set {' '.join(words)}")


def _is_scalar(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _meant(word: str, known: Iterable[str]) -> str:
    close = get_close_matches(word, list(known), n=1)
    return f"; did you mean '{close[0]}'?" if close else f"; there are: {', '.join(sorted(known))}"


# ---- The command line ----------------------------------------------------------------------------

STOPPED = "stopped; nothing half-written was left behind"

NUMBA_FILE = (
    ".numba_config.yaml"  # numba reads it from the working directory; it may name a folder of code
)

EXIT_BUG, EXIT_INPUT, EXIT_BUDGET, EXIT_INTERRUPTED = 1, 2, 3, 130

# typer brings its own copy of click since 0.16 and used the package before: take what it raises.
UsageProblem: Any = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)

app = typer.Typer(
    name="pairveil",
    help="Learn a distance metric from labelled pairs of people and release it with a privacy certificate.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    epilog="Start with `pairveil demo`, or `pairveil kappa PAIRS.csv` on your own pairs. Options can be "
    "kept in a file `pairveil.toml`. Exit codes: 0 done, 2 bad usage or input, 3 over the budget.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pairveil {__version__}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            envvar="PAIRVEIL_CONFIG",
            help="File with options. [default: pairveil.toml in this folder, if there]",
            show_default=False,
        ),
    ] = None,
    version: Annotated[  # noqa: ARG001 (its callback does it)
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Learn a distance metric from labelled pairs of people and release it privately."""
    if {"--help", "--help-all"} & set(
        sys.argv
    ):  # a broken file must not hide the page that explains options
        return
    found = find_config(config)
    if found is not None:
        context.default_map = read_config(found, named=config is not None)
        context.obj = found


for kind in JOBS:
    app.command(kind.name, rich_help_panel=kind.panel)(bound(kind))


def main(command: typer.Typer = app, name: str = "pairveil") -> None:
    """Run the command line; bad input ends in one clear line, never in a traceback."""
    if Path(NUMBA_FILE).exists():
        say_error(
            f"a file {NUMBA_FILE} lies in this folder: numba would obey it, and could be led to run code "
            "that lies beside it. Remove it, or work in another folder"
        )
        sys.exit(EXIT_INPUT)
    with noticed_interrupts() as interrupted:
        code = _run(command, name, interrupted)
    try:
        sys.stdout.flush()  # here and not when Python ends, which would show a traceback
    except BrokenPipeError:  # `pairveil ... | head` is no mistake; nothing more is written there
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if AT_END and code != EXIT_INTERRUPTED:
        try:  # whoever kills the process before this kills a command that was not finished
            while AT_END:
                AT_END.pop()()
        finally:
            os._exit(code)
    sys.exit(code)


@contextmanager
def noticed_interrupts() -> Iterator[list[int]]:
    """A list that gets an entry with each Ctrl-C, which raises KeyboardInterrupt as ever.

    Compiled code may turn the exception into another one (numba's calls end in SystemError): the list still
    says that somebody wanted to stop. Where Python ignores it (callbacks while modules are imported), it is
    raised again.
    """
    seen: list[int] = []

    def stop(number: int, frame: Any) -> None:  # noqa: ARG001
        seen.append(number)
        raise KeyboardInterrupt

    def ignored(told: Any) -> None:
        if isinstance(told.exc_value, KeyboardInterrupt):
            # Not at once: what is raised in here is ignored as well.
            threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        else:
            told_before(told)

    if threading.current_thread() is not threading.main_thread():
        yield seen
        return
    before, told_before = signal.signal(signal.SIGINT, stop), sys.unraisablehook
    sys.unraisablehook = ignored
    try:
        yield seen
    finally:
        sys.unraisablehook = told_before
        signal.signal(signal.SIGINT, before)


def _run(command: typer.Typer, name: str, interrupted: list[int]) -> int:
    """The exit code of a command; what went wrong is said."""
    try:
        code = command(args=config_first(sys.argv[1:]), prog_name=name, standalone_mode=False)
        if code == EXIT_INTERRUPTED:  # typer caught the signal
            raise KeyboardInterrupt
    except BudgetError as problem:
        return _said(str(problem), EXIT_BUDGET)
    except PairveilError as problem:
        return _said(str(problem), EXIT_INPUT)
    except (typer.Abort, KeyboardInterrupt):
        return _said(STOPPED, EXIT_INTERRUPTED)
    except UsageProblem as problem:
        if not problem.format_message():  # no command: the help was shown
            return EXIT_INPUT
        return _said(usage_message(problem), EXIT_INPUT)
    except BrokenPipeError:
        return 0
    except MemoryError:
        return _said("there is not enough memory for this", EXIT_INPUT)
    except OSError as problem:
        where = f": {problem.filename}" if problem.filename else ""
        return _said(f"{problem.strerror or 'a file could not be used'}{where}", EXIT_INPUT)
    except Exception as problem:
        if interrupted:
            return _said(STOPPED, EXIT_INTERRUPTED)
        # A message of numpy or arrow may quote the data, and a traceback names them: say where only.
        if os.environ.get("PAIRVEIL_DEBUG"):
            raise
        last = traceback.extract_tb(problem.__traceback__)[-1]
        place = f"{type(problem).__name__} at {Path(last.filename).name}:{last.lineno}"
        return _said(
            f"this is a bug ({place}); please report it. PAIRVEIL_DEBUG=1 shows the traceback, which may "
            "quote your data",
            EXIT_BUG,
        )
    return code if isinstance(code, int) else 0


def _said(message: str, code: int) -> int:
    say_error(message)
    return code


def config_first(arguments: list[str]) -> list[str]:
    """``--config FILE`` may stand behind the command too; click wants it in front.

    Examples
    --------
    >>> config_first(["fit", "--config", "a.toml", "people.csv"])
    ['--config', 'a.toml', 'fit', 'people.csv']
    """
    for at, word in enumerate(arguments):
        if word == "--config" or word.startswith("--config="):
            end = at + (2 if word == "--config" else 1)
            return [*arguments[at:end], *arguments[:at], *arguments[end:]]
    return arguments


def usage_message(problem: Any) -> str:
    """What is wrong with the command, where it was said, and where to read on."""
    context, parameter = getattr(problem, "ctx", None), getattr(problem, "param", None)
    message = problem.format_message().replace("Value error, ", "").rstrip(".")
    message += "" if message.endswith("?") else "."
    if context is None:
        return f"{message} See: pairveil --help"
    if parameter is not None:
        source = context.get_parameter_source(parameter.name)
        if source is not None and source.name == "DEFAULT_MAP":
            message += f" It comes from {context.find_root().obj}."
    return f"{message} See: {context.command_path} --help"
