"""The command line. Exit codes: 0 done; 2 bad usage or input; 3 the budget does not allow it."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from pairveil import __version__
from pairveil.cli import (
    audit,
    demo,
    evaluate,
    fit,
    graph,
    link,
    plan,
    release,
    report,
    schema,
    studio,
    threshold,
    trust,
)
from pairveil.cli.config import find_config, read_config, what_a_found_file_set
from pairveil.cli.option_groups import with_groups
from pairveil.cli.output import say_error, say_note
from pairveil.errors import BudgetError, PairveilError

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
    if "--help" in sys.argv:  # a broken file must not hide the page that explains options
        return
    found = find_config(config)
    if found is not None:
        context.default_map = read_config(found, context.command, named=config is not None)
        context.obj = found


class Command(TyperCommand):
    """A command that first says which of its options came from a file that nobody named."""

    def invoke(self, ctx: Any) -> Any:
        """Run it."""
        if (said := what_a_found_file_set(ctx)) is not None:
            say_note(said)
        return super().invoke(ctx)


COMMANDS: dict[str, Callable[..., None]] = {
    "demo": demo.demo,
    "kappa": graph.show_kappa,
    "select": graph.select,
    "design": graph.design,
    "schema": schema.schema,
    "plan": plan.plan,
    "fit": fit.fit,
    "link": link.link,
    "threshold": threshold.threshold,
    "transform": release.transform,
    "evaluate": evaluate.evaluate,
    "account": release.account,
    "certificate": trust.certificate,
    "sign": trust.sign,
    "report": report.report,
    "export": report.export,
    "studio": studio.studio,
    "attack": audit.attack,
    "audit": audit.audit,
}
for name, command in COMMANDS.items():
    app.command(name, cls=Command)(with_groups(command))


def main(command: typer.Typer = app, name: str = "pairveil") -> None:
    """Run the command line; bad input ends in one clear line, never in a traceback."""
    if Path(NUMBA_FILE).exists():
        _fail(
            f"a file {NUMBA_FILE} lies in this folder: numba would obey it, and could be led to run code "
            "that lies beside it. Remove it, or work in another folder",
            EXIT_INPUT,
        )
    with noticed_interrupts() as interrupted:
        _run(command, name, interrupted)


@contextmanager
def noticed_interrupts() -> Iterator[list[int]]:
    """A list that gets an entry with each Ctrl-C, which raises KeyboardInterrupt as ever.

    Compiled code may turn the exception into another one (numba's calls end in SystemError): the list still
    says that somebody wanted to stop.
    """
    seen: list[int] = []

    def stop(number: int, frame: Any) -> None:  # noqa: ARG001
        seen.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield seen
        return
    before = signal.signal(signal.SIGINT, stop)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, before)


def _run(command: typer.Typer, name: str, interrupted: list[int]) -> None:
    try:
        code = command(args=config_first(sys.argv[1:]), prog_name=name, standalone_mode=False)
    except BudgetError as problem:
        _fail(str(problem), EXIT_BUDGET)
    except PairveilError as problem:
        _fail(str(problem), EXIT_INPUT)
    except (typer.Abort, KeyboardInterrupt):
        _fail(STOPPED, EXIT_INTERRUPTED)
    except UsageProblem as problem:
        if not problem.format_message():  # no command: the help was shown
            sys.exit(EXIT_INPUT)
        _fail(usage_message(problem), EXIT_INPUT)
    except BrokenPipeError:  # `pairveil ... | head` is no mistake
        _silence()
    except MemoryError:
        _fail("there is not enough memory for this", EXIT_INPUT)
    except OSError as problem:
        where = f": {problem.filename}" if problem.filename else ""
        _fail(f"{problem.strerror or 'a file could not be used'}{where}", EXIT_INPUT)
    except Exception as problem:
        if interrupted:
            _fail(STOPPED, EXIT_INTERRUPTED)
        # A message of numpy or arrow may quote the data, and a traceback names them: say where only.
        if os.environ.get("PAIRVEIL_DEBUG"):
            raise
        last = traceback.extract_tb(problem.__traceback__)[-1]
        _fail(
            f"this is a bug ({type(problem).__name__} at {Path(last.filename).name}:{last.lineno}); please "
            "report it. PAIRVEIL_DEBUG=1 shows the traceback, which may quote your data",
            EXIT_BUG,
        )
    else:
        if code == EXIT_INTERRUPTED:  # typer caught the signal
            _fail(STOPPED, EXIT_INTERRUPTED)
        try:
            sys.stdout.flush()  # here and not when Python ends, which would show a traceback
        except BrokenPipeError:
            _silence()
        sys.exit(code if isinstance(code, int) else 0)


def _silence() -> None:
    """Nothing more is written to stdout: nobody reads it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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


def _fail(message: str, code: int) -> None:
    say_error(message)
    sys.exit(code)
