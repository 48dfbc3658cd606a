"""What is shown at a terminal while a command works, and what it leaves behind when it is stopped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from rich.markup import escape

from pairveil.cli.output import stderr

COMPILING = "compiling once, which takes some seconds; the next run starts at once"


@contextmanager
def waiting(text: str, talk: bool) -> Iterator[None]:
    """Show that something is going on; nothing where nobody looks (``--json``, ``--quiet``, a pipe)."""
    with ExitStack() as shown:
        shown.enter_context(compiling_said(talk))
        if talk and stderr.is_terminal:
            shown.enter_context(stderr.status(text))
        yield


@contextmanager
def compiling_said(talk: bool) -> Iterator[None]:
    """Say it, once, when numba compiles something that its cache does not hold."""
    if not (talk and stderr.is_terminal):
        yield
        return
    from numba.core import event

    class Once(event.Listener):  # type: ignore[misc]
        said = False

        def on_start(self, event: Any) -> None:  # noqa: ARG002
            if not self.said:
                self.said = True
                stderr.print(f"[dim]{COMPILING}[/dim]")

        def on_end(self, event: Any) -> None:
            pass

    with event.install_listener("numba:compile", Once()):
        yield


@contextmanager
def charge_said(ledger: Any, out: Path | None, checkpoint: Path | None = None) -> Iterator[None]:
    """Whatever ends the block early, say that a charge stays, and that the release is there if it is.

    Parameters
    ----------
    ledger : PrivacyLedger or None
    out : path, optional
        Where the release goes.
    checkpoint : path, optional
        File that the same command would resume from.
    """
    charged, before = _charges(ledger), _folder(out)
    try:
        yield
    except BaseException as problem:  # compiled code turns an interrupt into another error
        said = ""
        if _folder(out) != before:
            said = f"the release is complete in {out}"
            said += "" if ledger is None else ", and what the ledger was charged stays charged"
        elif checkpoint is not None and checkpoint.exists():
            said = "the same command resumes where this one stopped, and spends nothing more"
        elif _charges(ledger) != charged:
            said = "what the ledger was charged stays charged"
        if said and "charged" not in str(problem):
            stderr.print(f"[yellow]note:[/yellow] {escape(said)}")
        raise


def _charges(ledger: Any) -> int:
    return 0 if ledger is None else len(ledger.entries)


def _folder(out: Path | None) -> int | None:
    """Which folder a name stands for: a release takes it in one step."""
    return None if out is None or not out.exists() else out.stat().st_ino
