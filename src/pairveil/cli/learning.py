"""Running a prepared fit: progress and its checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from pairveil.cli.output import stderr
from pairveil.cli.waiting import compiling_said
from pairveil.privacy.units import round_up


@contextmanager
def hold_checkpoint(checkpoint: Path | None, planned: Any) -> Iterator[Any]:
    """The right to a checkpoint that has room for all sums of a planned fit; None where there is none."""
    from pairveil.engine.checkpoint import Hold
    from pairveil.files import check_file
    from pairveil.learners.sizes import checkpoint_bytes

    if checkpoint is None:
        yield None
        return
    with Hold(checkpoint) as held:
        check_file(held.path, checkpoint_bytes(planned.plan))
        yield held


def learn(learner: Any, prepared: Any, talk: bool, checkpoint: Any = None) -> Any:
    """Fit with a progress bar, and return the learner; a ledger that was charged stays charged."""
    with compiling_said(talk), progress_bar(hidden=not talk) as bar:
        # A ledger was charged with all of it before the first sum, and that stays charged.
        charged = learner.accountant is not None and prepared.certificate is not None
        whole = prepared.certificate.epsilon if charged else 0.0
        words = "epsilon charged" if charged else "epsilon so far"
        task = bar.add_task("learning", total=1.0, words=words, epsilon=round_up(whole))

        def show(done: float, spent: float) -> None:
            bar.update(task, completed=done, epsilon=round_up(whole or spent))

        with charged_once(learner.accountant, checkpoint):
            return learner.fit(
                prepared,
                on_step=None if bar.disable else show,  # composing epsilon at each step takes time
                checkpoint=checkpoint,
                keep_checkpoint=True,
            )


@contextmanager
def charged_once(ledger: Any, checkpoint: Any) -> Iterator[None]:
    """Say to whoever stops a release with Ctrl-C what was charged and how it goes on."""
    try:
        yield
    except KeyboardInterrupt:
        if checkpoint is not None:
            stderr.print("[yellow]note:[/yellow] the same command resumes where this one stopped")
        elif ledger is not None:
            stderr.print("[yellow]note:[/yellow] what the ledger was charged stays charged")
        raise


def progress_bar(hidden: bool) -> Progress:
    """Time left, and the epsilon charged or, without a ledger, spent so far; on stderr."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[words]} {task.fields[epsilon]}"),
        console=stderr,
        transient=True,
        disable=hidden or not stderr.is_terminal,
    )
