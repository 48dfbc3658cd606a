"""What is shown at a terminal while a command works: a spinner, and that compiling happens once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

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
