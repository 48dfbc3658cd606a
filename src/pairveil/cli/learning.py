"""Running a prepared fit: progress and its checkpoint.

Every command that charges a ledger goes through the same steps, so that a kill at any moment costs nothing
but time and the same command simply goes on:

0. `about` says by what public things the files were read;
1. ``held = context.with_resource(hold_checkpoint(...))``: the checkpoint is ours until the command ends;
2. a draft of the output is reserved, allowing for a result that a killed run has written (`is_begun`);
3. `learn`: the ledger is charged, or known to be charged, and the answers go into the checkpoint;
4. everything is written into the draft, a report included, and committed once;
5. the result is printed; last of all ``held.remove()``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from pairveil._warn import warn
from pairveil.cli.output import stderr
from pairveil.cli.waiting import compiling_said
from pairveil.errors import DataWarning
from pairveil.privacy.units import round_up


def is_begun(checkpoint: Path | None) -> bool:
    """Whether this is a run that was killed and is run again: its output may be there already."""
    return checkpoint is not None and checkpoint.exists()


def about(prepared: Any, *public: Any) -> Any:
    """A prepared fit whose checkpoint is of these public things too: a schema, a metric, settings."""
    return replace(prepared, about=json.dumps(public, sort_keys=True))


@contextmanager
def hold_checkpoint(checkpoint: Path | None, planned: Any) -> Iterator[Any]:
    """The right to a checkpoint that has room for all sums of a planned fit; None where there is none."""
    from pairveil.engine.checkpoint import Hold
    from pairveil.files import check_file
    from pairveil.learners.base import checkpoint_bytes

    if checkpoint is None:
        yield None
        return
    with Hold(checkpoint) as held:
        if is_begun(checkpoint):
            warn(
                f"going on from {checkpoint}, whose answers are of the features, labels and scores as they "
                "were then. If they were changed since, remove it, which spends anew",
                DataWarning,
            )
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

        return learner.fit(
            prepared,
            on_step=None if bar.disable else show,  # composing epsilon at each step takes time
            checkpoint=checkpoint,
            keep_checkpoint=True,
        )


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
