"""The command line. Exit codes: 0 done; 2 bad usage or input; 3 the budget does not allow it."""

from __future__ import annotations

import sys
from typing import Annotated

import click
import typer
from rich.markup import escape

from pairveil import __version__
from pairveil.cli import audit, bench, demo, fit, graph, release, report, reproduce
from pairveil.cli.output import stderr
from pairveil.errors import BudgetError, PairveilError

EXIT_INPUT, EXIT_BUDGET, EXIT_INTERRUPTED = 2, 3, 130

app = typer.Typer(
    name="pairveil",
    help="Learn a distance metric from labelled pairs of people and release it with a privacy certificate.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    epilog="Start with `pairveil demo`, or `pairveil kappa PAIRS.csv` on your own pairs.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pairveil {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Learn a distance metric from labelled pairs of people and release it privately."""


for part in (demo, graph, fit, release, report, audit, reproduce, bench):
    part.register(app)


def main() -> None:
    """Run the command line; bad input ends in one clear line, never in a traceback."""
    try:
        code = app(standalone_mode=False)
    except BudgetError as problem:
        _fail(str(problem), EXIT_BUDGET)
    except PairveilError as problem:
        _fail(str(problem), EXIT_INPUT)
    except click.exceptions.Abort:
        _fail("stopped; nothing was written", EXIT_INTERRUPTED)
    except KeyboardInterrupt:
        _fail("stopped; nothing was written", EXIT_INTERRUPTED)
    except click.ClickException as problem:
        _fail(problem.format_message(), EXIT_INPUT)
    except OSError as problem:
        where = f": {problem.filename}" if problem.filename else ""
        _fail(f"{problem.strerror or 'a file could not be used'}{where}", EXIT_INPUT)
    else:
        sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int) -> None:
    stderr.print(f"[red]pairveil:[/red] {escape(' '.join(message.split()))}")
    sys.exit(code)


if __name__ == "__main__":
    main()
