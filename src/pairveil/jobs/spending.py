"""What a release may spend: the options, the ledger that is charged, and the order in which a job spends.

Every job that charges a ledger goes through the same steps, so that a kill at any moment costs nothing but
time and the same command simply goes on:

0. `Spending.about` says by what public things the files were read;
1. `Spending.rehearse`: what the ledger will say is said, and refused, before anything is written;
2. `Spending.charged`: the checkpoint is held until the job ends, a draft of the output is reserved (allowing
   for a result that a killed run has written, `is_begun`), then the ledger is opened;
3. `learn`: the ledger is charged, or known to be charged, and the answers go into the checkpoint;
4. everything is written into the draft, a report included, and committed once;
5. the result is told; last of all the checkpoint goes (`Telling.done`), at the command line in the moment in
   which the process ends: until then a kill is one of a job that is not finished, and its rerun is free.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from pairveil.errors import GuaranteeWarning, InputError, warn
from pairveil.foreign import plain
from pairveil.jobs.job import (
    FILES,
    OUTPUT,
    PRIVACY,
    Telling,
    about_of,
    heading,
    hints_of,
    is_path,
    option,
    options,
)
from pairveil.privacy.units import round_up, times_in_100
from pairveil.privacy.verdict import Verdict, releases_of, verdict

CHECKPOINT_HELP = "File to resume from if this is killed; nothing is spent twice."


@dataclass
class Charge:
    """What a job holds while it spends: the checkpoint, the draft of its output and the ledger, if any."""

    held: Any
    draft: Any
    ledger: Any
    keeps: bool = False  # the checkpoint: what it holds was told nowhere else


@dataclass(frozen=True, kw_only=True)
class Spending:
    """What a release may spend, and which ledger is charged; delta, unit and adjacency are a new ledger's."""

    heading: ClassVar[str | None] = PRIVACY

    epsilon: float = option(1.0, "Privacy budget of this release.")
    delta: float = option(1e-5, "Must be well below 1 / pairs.")
    adjacency: Literal["zero-out", "replace"] = option(
        "zero-out", "What epsilon compares.", panel=PRIVACY
    )
    ledger: Path | None = option(None, "Budget file to charge; kept over many fits.")
    budget: float | None = option(
        None, "Total epsilon, where --ledger makes a new file.", typed=True
    )
    seed: int | None = option(None, "Repeatable, and therefore NOT for release.", min=0)
    checkpoint: Path | None = option(None, CHECKPOINT_HELP)

    overwrite: bool = option(False, "Replace what an earlier run wrote.", typed=True, panel=OUTPUT)
    out: Any = None  # the jobs that spend have it too

    @property
    def protected(self) -> Any:
        """The unit of a new ledger."""
        return self.unit  # type: ignore[attr-defined]

    @property
    def parameters(self) -> dict[str, Any]:
        """What a learner is told of them."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "adjacency": self.adjacency,
            "random_state": self.seed,
        }

    @property
    def is_begun(self) -> bool:
        """Whether this is a run that was killed and is run again: its output may be there already."""
        return self.checkpoint is not None and self.checkpoint.exists()

    @property
    def replaces(self) -> bool:
        """Whether an output that is there may be replaced."""
        return self.overwrite or self.is_begun

    def about(self, prepared: Any, *public: Any) -> Any:
        """A prepared fit whose checkpoint is of these public things too: a schema, a metric, settings.

        And of what was said of the files; not of their names, under which they may have moved.
        """
        kind = type(self)
        said = [one for one in options(kind) if heading(kind, one) == FILES]  # type: ignore[arg-type]
        said = [one for one in said if not is_path(hints_of(kind)[one.name])]
        read = {one.name: getattr(self, one.name) for one in said if not about_of(one).metavar}
        return replace(prepared, about=json.dumps([public, read], sort_keys=True))

    def check_spending(self) -> None:
        """Refuse options that do not go together, before any file is read."""
        if self.checkpoint is not None and self.seed is not None:
            raise InputError("--checkpoint is for releases: leave --seed out")
        if self.ledger is None:
            if self.budget is not None:
                raise InputError("--budget goes with --ledger FILE")
        elif self.ledger.exists():
            if self.budget is not None and not self._is_its_own():
                raise InputError(f"{self.ledger} exists and has another budget; leave --budget out")
        elif self.budget is None:
            raise InputError(f"{self.ledger} does not exist; give --budget EPSILON to make it")
        elif not self.ledger.absolute().parent.is_dir():
            raise InputError(f"the folder of the ledger does not exist: {self.ledger.parent}")

    def open_ledger(self, *, look: bool = False) -> Any:
        """The ledger to charge, or None. A new file is made here and not before; only to ``look`` none is."""
        from pairveil.privacy.ledger import PrivacyLedger

        if self.ledger is None:
            return None
        if self.ledger.exists():
            return PrivacyLedger.open(self.ledger)
        assert self.budget is not None
        path = None if look else self.ledger
        about = {"unit": self.protected, "adjacency": self.adjacency}
        return PrivacyLedger(self.budget, self.delta, path=path, **about)

    def _is_its_own(self) -> bool:
        """Whether the file has the very budget asked for: then this may be the command that made it.

        A fit that was killed at any moment after the file was made is resumed by the same command.
        """
        kept = self.open_ledger()
        wanted = (self.budget, self.delta, self.protected, self.adjacency)
        return bool((kept.epsilon, kept.delta, kept.unit, kept.adjacency) == wanted)

    def rehearse(self, prepared: Any, tell: Telling) -> Any:
        """Say what the ledger will say to a prepared fit; returns all its releases together then, or None.

        Refuses a fit just as the ledger itself would, and a checkpoint that it could not be resumed from,
        but charges nothing and makes no file.

        Raises BudgetError: when the budget does not allow the fit.
        """
        from pairveil.learners.base import check_resumable, is_charged

        kept = self.open_ledger(look=True)
        if self.checkpoint is not None:
            check_resumable(kept, prepared, self.checkpoint)
        if self.overwrite and not self.is_begun and self.out and self._is_taken(self.out):
            tell.say(
                f"Overwriting {self.out}: what its release spent stays spent, and epsilon "
                f"{round_up(promised(prepared).epsilon)} is spent again."
            )
        if kept is None:
            tell.say(
                "No ledger: nothing adds this up with other releases from the same people; --ledger "
                "FILE does."
            )
            return None
        if charged := self.checkpoint is not None and is_charged(kept, self.checkpoint):
            said = "was charged for this fit when it began; nothing more is spent."
        else:
            before = kept.spent() if kept.entries else 0.0
            after = kept.quote(**prepared.cost())
            said = (
                f"allows epsilon {kept.epsilon:g} at delta {kept.delta:g} (unit '{kept.unit}', "
                f"{kept.adjacency}); {before:.3g} is spent, {after:.3g} will be after this."
            ) + kept.why_more(prepared.cost())
        tell.say(f"Ledger: {self.ledger} {said}")
        return releases_of(kept, None if charged else prepared.cost())

    def check_result(self, out: Path) -> None:
        """Refuse a file that the result of a release cannot be written to, or that holds an earlier one."""
        from pairveil.files import check_file

        if not self.replaces and self._is_taken(out):
            raise InputError(f"{out} is there already; name another file or allow overwriting")
        check_file(out, 1 << 20)

    @staticmethod
    def _is_taken(out: Path) -> bool:
        return out.is_file() or any(out.glob("certificate.json"))

    @contextmanager
    def charged(
        self,
        prepared: Any,
        tell: Telling,
        reserve: Callable[[], AbstractContextManager[Any]] | None = None,
    ) -> Iterator[Charge]:
        """Hold the checkpoint, reserve the output and open the ledger; the checkpoint goes last of all."""
        held = hold_checkpoint(self.checkpoint, promised(prepared))
        try:
            with ExitStack() as open_:
                draft = None if reserve is None else open_.enter_context(reserve())
                ledger = self.open_ledger()
                open_.enter_context(charge_said(ledger, self.out, self.checkpoint, tell))
                charge = Charge(held, draft, ledger)
                yield charge
        except BaseException:
            if held is not None:
                held.close()
            raise
        if held is not None:  # last: whoever did not see the result runs the same again at no cost
            held.close() if charge.keeps else tell.done(held)


def promised(prepared: Any) -> Any:
    """The certificate that a prepared release will have; there must be one."""
    if prepared.certificate is None:
        raise InputError(
            "--epsilon inf promises nothing: there is nothing to release; choose a number"
        )
    return prepared.certificate


def spends(planned: Any) -> str:
    """What a fit will spend, for its first line."""
    return (
        f"Spends epsilon {round_up(planned.epsilon)} at delta {planned.delta:g} to protect one "
        f"{planned.unit}."
    )


def hold_checkpoint(checkpoint: Path | None, planned: Any) -> Any:
    """The right to a checkpoint that has room for all sums of a planned fit; None where there is none."""
    from pairveil.engine.checkpoint import CheckpointLock
    from pairveil.files import check_file
    from pairveil.learners.base import checkpoint_bytes

    if checkpoint is None:
        return None
    held = CheckpointLock(checkpoint)
    try:
        if checkpoint.exists():
            warn(
                f"going on from {checkpoint}, whose answers are of the features, labels and scores as they "
                "were then. If they were changed since, remove it, which spends anew",
                GuaranteeWarning,
            )
        check_file(held.path, checkpoint_bytes(planned.plan))
    except BaseException:
        held.close()
        raise
    return held


@contextmanager
def charge_said(
    ledger: Any, out: Path | None, checkpoint: Path | None, tell: Telling
) -> Iterator[None]:
    """Whatever ends the block early, say that a charge stays, and that the release is there if it is."""

    def charges() -> int:
        return 0 if ledger is None else len(ledger.entries)

    def folder() -> int | None:  # which folder the name stands for: a release takes it in one step
        return None if out is None or not out.exists() else out.stat().st_ino

    before = charges(), folder()
    try:
        yield
    except BaseException as problem:  # compiled code turns an interrupt into another error
        said = ""
        if folder() != before[1]:
            said = f"the release is complete in {out}"
            said += "" if ledger is None else ", and what the ledger was charged stays charged"
        elif checkpoint is not None and checkpoint.exists():
            said = "the same command resumes where this one stopped, and spends nothing more"
        elif charges() != before[0]:
            said = "what the ledger was charged stays charged"
        if said and "charged" not in str(problem):
            tell.always(said)
        raise


def learn(learner: Any, prepared: Any, tell: Telling, checkpoint: Any = None) -> Any:
    """Fit, showing how far it is, and return the learner; a ledger that was charged stays charged."""
    # A ledger was charged with all of it before the first sum.
    whole = learner.accountant is not None and prepared.certificate is not None
    with tell.progress(prepared.certificate.epsilon if whole else None) as show:
        # Composing epsilon at each step takes time: only where it is shown.
        return learner.fit(prepared, on_step=show, checkpoint=checkpoint, keep_checkpoint=True)


def keep_budget(draft: Any, ledger: Any) -> None:
    """Put what the ledger says of all releases together into the draft of a release."""
    from pairveil.release.release import SUMMARY_FILE
    from pairveil.report.data import Summary
    from pairveil.report.facts import budget_of

    if ledger is not None:
        draft.write(SUMMARY_FILE, Summary(budget=budget_of(ledger)).to_json())


def write_json(out: Path, content: dict[str, Any]) -> None:
    """Write what was found as a file of strict JSON, whole or not at all."""
    from pairveil.files import write_file

    write_file(out, json.dumps(plain(content), indent=1, allow_nan=False).encode() + b"\n")


# ---- what is promised, told ----------------------------------------------------------------------


def judge(certificate: Any, ledger: Any) -> Verdict:
    """The verdict on what was just made: of all releases of the ledger together, where there is one."""
    return verdict(certificate, releases=None if ledger is None else releases_of(ledger))


def tell_released(tell: Telling, out: Any, certificate: Any, ledger: Any) -> dict[str, Any]:
    """Where a release is, and the verdict on it: the line that a person remembers; and both for JSON."""
    judged = judge(certificate, ledger)
    where = "Released" if judged.usable else "Written"
    tell.say(f"{where} in {out}; `pairveil certificate {out}` verifies it. {judged.line}")
    return {"certificate": certificate.to_dict(), "out": str(out), "verdict": asdict(judged)}


def tell_epsilons(tell: Telling, certificate: Any, what: str = "epsilon") -> None:
    """Epsilon for every unit in both adjacencies, and what it means to a guesser."""
    rows = []
    for unit, by in certificate.epsilons.items():
        # Rounded up: no promise may look better than it is.
        shown = [round_up(one) if math.isfinite(one) else "infinite"
                 for one in (by["zero-out"], by["replace"])]  # fmt: skip
        guess = f"{times_in_100(certificate.best_guess(unit))} %"
        rows.append([unit, certificate.kappas[unit], *shown, guess])
    columns = ["protected unit", "kappa", "zero-out", "replace", "best guess right"]
    tell.table(f"{what} at delta {certificate.delta:g}, by unit", columns, rows)
    tell.say(
        "Best guess: how often, at most, anyone can tell two equally likely contents apart; a coin is "
        "right 50 % of the time."
    )
