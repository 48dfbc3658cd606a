"""The ledger file that fits are charged to: checked and rehearsed before anything is written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import typer

from pairveil.cli.output import stdout
from pairveil.errors import InputError
from pairveil.privacy.units import round_up


def privacy_option(name: str, text: str, **limits: Any) -> Any:
    """An option that stands with those of privacy."""
    return typer.Option(name, help=text, rich_help_panel="Privacy", **limits)


Epsilon = Annotated[float, privacy_option("--epsilon", "Privacy budget of this release.")]
UnitOption = Annotated[
    Literal["pair", "relationship", "person"], privacy_option("--unit", "What is protected.")
]
EntityRecords = Annotated[
    int | None,
    privacy_option("--entity-records", "Public: the most records that one person has.", min=1),
]
CheckpointFile = Annotated[
    Path | None,
    privacy_option(
        "--checkpoint", "File to resume from if this is killed; nothing is spent twice."
    ),
]
ReleaseOut = Annotated[Path, typer.Option("--out", "-o", help="Folder for the release.")]
DryRunFlag = Annotated[bool, typer.Option("--dry-run", help="Say what would be spent, and stop.")]
OverwriteFlag = Annotated[bool, typer.Option("--overwrite", help="Replace an earlier release.")]


def promised(prepared: Any) -> Any:
    """The certificate that a prepared release will have; there must be one."""
    if prepared.certificate is None:
        raise InputError(
            "--epsilon inf promises nothing: there is nothing to release; choose a number"
        )
    return prepared.certificate


def keep_budget(draft: Any, ledger: Any) -> None:
    """Put what the ledger says of all releases together into the draft of a release."""
    from pairveil.release.release import SUMMARY_FILE
    from pairveil.report.data import Summary
    from pairveil.report.summaries import budget_of

    if ledger is not None:
        draft.write(SUMMARY_FILE, Summary(budget=budget_of(ledger)).to_json())


@dataclass(frozen=True)
class Spending:
    """What a release may spend, and which ledger is charged."""

    epsilon: Epsilon = 1.0
    delta: Annotated[float, privacy_option("--delta", "Must be well below 1 / pairs.")] = 1e-5
    adjacency: Annotated[
        Literal["zero-out", "replace"], privacy_option("--adjacency", "What epsilon compares.")
    ] = "zero-out"
    ledger: Annotated[
        Path | None, privacy_option("--ledger", "Budget file to charge; kept over many fits.")
    ] = None
    budget: Annotated[
        float | None, privacy_option("--budget", "Total epsilon, where --ledger makes a new file.")
    ] = None
    seed: Annotated[
        int | None, privacy_option("--seed", "Repeatable, and therefore NOT for release.", min=0)
    ] = None

    @property
    def parameters(self) -> dict[str, Any]:
        """What a learner is told of them."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "adjacency": self.adjacency,
            "random_state": self.seed,
        }

    def ledger_of(self, unit: Any, checkpoint: Path | None = None) -> Budget:
        """The ledger that is charged; refuses options that do not go together before any file is read."""
        if checkpoint is not None and self.seed is not None:
            raise InputError("--checkpoint is for releases: leave --seed out")
        found = Budget(self.ledger, self.budget, self.delta, unit, self.adjacency, checkpoint)
        found.check()
        return found


class Budget(NamedTuple):
    """What ``--ledger`` and ``--budget`` say; delta, unit and adjacency are for a new file only."""

    path: Path | None
    epsilon: float | None
    delta: float
    unit: Any
    adjacency: Any
    checkpoint: Path | None = None  # of a fit that may have been charged already

    def open(self) -> Any:
        """The ledger to charge, or None; a new file is made here and not before."""
        return None if self.path is None else self._ledger(self.path)

    def look(self) -> Any:
        """The ledger as it would be charged, or None; a new one is in memory and makes no file."""
        return (
            None if self.path is None else self._ledger(self.path if self.path.exists() else None)
        )

    def rehearse(self, prepared: Any, talk: bool, replaces: Path | None = None) -> None:
        """Say what the ledger will say to a prepared fit.

        Refuses a fit just as the ledger itself would, and a checkpoint that it could not be resumed from,
        but charges nothing and makes no file.

        Parameters
        ----------
        replaces : path, optional
            The earlier release that is overwritten, if there is one.

        Raises BudgetError: when the budget does not allow the fit.
        """
        from pairveil.learners.base import check_resumable, is_charged

        kept = self.look()
        if self.checkpoint is not None:
            check_resumable(kept, prepared, self.checkpoint)
        if talk and replaces is not None and any(replaces.glob("certificate.json")):
            stdout.print(
                f"Overwriting {replaces}: what its release spent stays spent, and epsilon "
                f"{round_up(promised(prepared).epsilon)} is spent again.", markup=False,
            )  # fmt: skip
        if kept is None:
            if talk:
                stdout.print(
                    "No ledger: nothing adds this up with other releases from the same people; --ledger FILE "
                    "does."
                )
            return
        if self.checkpoint is not None and is_charged(kept, self.checkpoint):
            said = "was charged for this fit when it began; nothing more is spent."
        else:
            before = kept.spent() if kept.entries else 0.0
            after = kept.quote(**prepared.cost())
            said = (
                f"allows epsilon {kept.epsilon:g} at delta {kept.delta:g} (unit '{kept.unit}', "
                f"{kept.adjacency}); {before:.3g} is spent, {after:.3g} will be after this fit."
            )
        if talk:
            stdout.print(f"Ledger: {self.path} {said}")

    def releases(self, prepared: Any) -> Any:
        """All releases of the ledger together once a prepared one is made; None where there is no ledger."""
        from pairveil.learners.base import is_charged
        from pairveil.privacy.verdict import releases_of

        kept = self.look()
        if kept is None:
            return None
        charged = self.checkpoint is not None and is_charged(kept, self.checkpoint)
        return releases_of(kept, None if charged else prepared.cost())

    def _ledger(self, path: Path | None) -> Any:
        """The ledger of a file, or a new one in it (in memory where there is no path)."""
        from pairveil.privacy.ledger import PrivacyLedger

        if path is not None and path.exists():
            return PrivacyLedger.open(path)
        assert self.epsilon is not None
        return PrivacyLedger(
            self.epsilon, self.delta, path=path, unit=self.unit, adjacency=self.adjacency
        )

    def _is_its_own(self) -> bool:
        """Whether the file has the very budget asked for: then this may be the command that made it.

        A fit that was killed at any moment after the file was made is resumed by the same command.
        """
        kept = self._ledger(self.path)
        wanted = (self.epsilon, self.delta, self.unit, self.adjacency)
        return bool((kept.epsilon, kept.delta, kept.unit, kept.adjacency) == wanted)

    def check(self) -> None:
        """Refuse options that do not go together, before any file is read."""
        if self.path is None:
            if self.epsilon is not None:
                raise InputError("--budget goes with --ledger FILE")
        elif self.path.exists():
            if self.epsilon is not None and not self._is_its_own():
                raise InputError(f"{self.path} exists and has another budget; leave --budget out")
        elif self.epsilon is None:
            raise InputError(f"{self.path} does not exist; give --budget EPSILON to make it")
        elif not self.path.absolute().parent.is_dir():
            raise InputError(f"the folder of the ledger does not exist: {self.path.parent}")
