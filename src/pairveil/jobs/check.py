"""`attack` and `audit`: what leaks, shown; and epsilon measured from outside."""

from __future__ import annotations

import math
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from pairveil.audit import TARGETS
from pairveil.errors import InputError
from pairveil.jobs.job import CHECK, Job, Telling, option
from pairveil.jobs.options import LEARNER_HELP, check_learner
from pairveil.learners import DEFAULT_LEARNER
from pairveil.privacy.mechanisms import NOISES

QUICK_RUNS = 1600
"""Runs of a learner in less than a minute; ``--thorough`` makes as many as its target asks for."""
SEED_HELP = "Makes the games repeatable."


@dataclass(frozen=True, kw_only=True)
class AttackJob(Job):
    """Play the paper's attack on embedded patients: who recovers 'same' or 'different'?

    Example: `pairveil attack`
    """

    name: ClassVar = "attack"
    panel: ClassVar = CHECK

    targets: int = option(50, "Relationships to attack; more are surer.", min=20)
    seed: int = option(0, SEED_HELP, min=0)

    def work(self, tell: Telling) -> None:
        """Attack every learner."""
        from pairveil.audit.attack import attack_all
        from pairveil.audit.published import published_learners

        with tell.waiting(f"attacking {self.targets} relationships four ways"):
            rows = attack_all(self.targets, self.seed, published_learners)
        columns = ["learner", "epsilon", "attacker", "recovered", "bound"]
        title = f"Relationships recovered from the metric, {self.targets} targets each"
        tell.table(title, columns, [_cells(row) for row in rows])
        tell.say(
            f"0.5 is guessing; with {self.targets} targets chance moves a figure by about "
            f"{0.5 / math.sqrt(self.targets):.3f} (standard error). The bound is the best guess that the "
            "learner's promise allows. 'not covered': this attacker lacks more labels than the promise "
            "speaks of, and no bound holds (docs/threat-model.md)."
        )
        tell.result({"rows": [row.to_dict() for row in rows]})


def _cells(row: Any) -> list[Any]:
    bound = (
        "not covered" if row.bound is None else f"{math.ceil(1000 * row.bound - 1e-9) / 1000:.3f}"
    )
    return [row.learner, row.epsilon, row.attacker, f"{row.recovered:.3f}", bound]


@dataclass(frozen=True, kw_only=True)
class AuditJob(Job):
    """Measure a lower bound on epsilon from outside, on a worst case, with stated confidence.

    A claim is called violated at 0.999 confidence or more, whatever that of the bound.

    With `--exact` the learner is fitted once on its worst case with each kind of noise, and every query's
    answer is compared with that on neighbouring inputs in several directions, by the learner's own code.

    Example: `pairveil audit --target published-dpp --components 4 --epsilon 1`

    Example: `pairveil audit --exact --features 5 --unit person`

    With `--trainer` any function (X, pairs, y, seed) -> model is audited: for a planted pair, relationship
    and person, whose pairs hold one secret together. Its claim is read as one about replaced contents unless
    `--adjacency zero-out` is said.

    Example: `pairveil audit --exact --classes --unit person`

    Example: `pairveil audit --trainer reproduction.trainers:pair_clipped --delta 1e-5 --report page.html`
    """

    name: ClassVar = "audit"
    panel: ClassVar = CHECK

    target: str = option("learner", "What to audit.", choices=tuple(TARGETS))
    epsilon: float = option(1.0, "The claim.", min=0.01, max=50.0)
    components: int = option(1, "d' of a published learner.", min=1)
    features: int = option(2, "Dimension of the data.", min=1)
    unit: Literal["pair", "relationship", "person", "choice", "worker"] = option(
        "pair", "What the claim protects."
    )
    adjacency: Literal["zero-out", "replace"] | None = option(
        None, "What the claim compares: zero-out, or replace for a trainer."
    )
    runs: int | None = option(None, "Runs of the mechanism.", min=1)
    thorough: bool = option(False, "As many runs as make the bound sharp: minutes for a learner.")
    confidence: float = option(0.95, "Of the lower bound.", min=0.51, max=0.999999)
    exact: bool = option(
        False, "One fit, no statistics: each query's largest move over its charge."
    )
    score: float | None = option(
        None, "With --exact: a fit with --score of this epsilon, both parts.", min=0.001, max=50.0
    )
    learner: str = option(DEFAULT_LEARNER, f"For --target learner. {LEARNER_HELP}")
    classes: bool = option(False, "Audit its fit of people with classes.")
    mechanism: str | None = option(
        None, "Noise of an --exact audit; without it both are audited.", choices=tuple(NOISES)
    )
    trainer: str | None = option(
        None, "Audit module:function instead, a trainer of your own.", typed=True
    )
    delta: float = option(0.0, "A trainer's claimed delta.", min=0.0, max=0.5)
    planted: int = option(8, "Pairs of the person planted for a trainer.", min=2)
    one_run: bool = option(False, "Run a trainer once (or --runs times), with many planted people.")
    report: Path | None = option(None, "HTML page of a trainer's audit.")
    seed: int = option(0, SEED_HELP, min=0)

    def work(self, tell: Telling) -> None:
        """Refuse what does not go together, then audit a trainer, exactly, or by many runs."""
        check_learner(self.learner, self.typed)
        others = self.exact or self.classes or self.target != "learner"
        if self.trainer is not None:
            if others or self.learner != DEFAULT_LEARNER:
                raise InputError(
                    "--trainer stands alone: leave --target, --learner, --classes and --exact out"
                )
            self._trainer(self.trainer, tell)
            return
        if self.one_run or self.delta or self.report:
            raise InputError("--one-run, --delta and --report go with --trainer")
        if self.target != "learner":
            if self.classes:
                raise InputError(
                    f"--classes says what a learner is fitted to: not with --target {self.target}"
                )
            if self.learner != DEFAULT_LEARNER:
                raise InputError(
                    f"--learner says which learner: it does not go with --target {self.target}"
                )
        if self.exact and (self.target != "learner" or self.runs is not None):
            raise InputError(
                "--exact measures one fit of the learner: leave --target and --runs out"
            )
        if not self.exact and self.mechanism is not None:
            raise InputError("--mechanism goes with --exact")
        if self.score is not None and (not self.exact or self.classes):
            raise InputError("--score goes with --exact, and is of pairs: leave --classes out")
        compared = self.adjacency or "zero-out"
        records = "classes" if self.classes else None
        if self.exact:
            self._exactly(compared, records, tell)
        else:
            self._by_runs(compared, records, tell)

    def _by_runs(self, adjacency: Any, records: str | None, tell: Telling) -> None:
        from pairveil.audit.targets import audit_target, make_target

        made = make_target(
            self.target,
            self.epsilon,
            n_components=self.components,
            n_features=self.features,
            unit=self.unit,
            adjacency=adjacency,
            learner=self.learner,
            records=records,
        )
        runs = self.runs
        if runs is not None and self.thorough:
            raise InputError("--thorough says how many runs: leave --runs out")
        if runs is None and not self.thorough:
            runs = min(made.runs, QUICK_RUNS) if self.target == "learner" else made.runs
        with tell.waiting("running the audit"):
            found = audit_target(
                made, runs=runs, confidence=self.confidence, random_state=self.seed
            )
        tell.say(
            f"{found.target}: claimed epsilon {found.claimed_epsilon:.4g}, at least {found.lower_bound:.4g} "
            f"with {found.confidence:.4g} confidence after {found.n_runs:,} runs ({found.canary}, "
            f"{found.adjacency}).",
            conclusion(found),
        )
        if found.n_runs < made.runs:
            tell.say(f"--thorough makes {made.runs:,} runs, for a sharper bound.")
        tell.result(found.to_dict())

    def _exactly(self, adjacency: Any, records: str | None, tell: Telling) -> None:
        from pairveil.audit.exact_audit import audit_exactly, audit_scored
        from pairveil.audit.targets import KAPPA
        from pairveil.learners import learner_class

        kind, findings = learner_class(self.learner), {}
        promise = {"epsilon": self.epsilon, "unit": self.unit, "adjacency": adjacency}
        for noise in [self.mechanism] if self.mechanism else NOISES:
            made, how = kind(**promise, mechanism=noise), {"random_state": self.seed}
            on: dict[str, Any] = {
                "kappa": KAPPA.get(self.unit, 1),
                "n_features": self.features,
                **how,
            }
            if self.score is None:
                findings[noise] = audit_exactly(made, records=records, **on)
            else:
                findings[noise] = audit_scored(made, self.score, **on)
        # A violated claim is shown first, whichever noise it is of.
        shown = max(findings, key=lambda noise: findings[noise].verdict == "violated")
        found, verdicts = findings[shown], {noise: one.verdict for noise, one in findings.items()}
        columns = ["query", "steps", "largest move", "charged", "ratio"]
        rows = [
            [move.name, move.steps, f"{move.largest_move:.9f}", move.charged, f"{move.ratio:.9f}"]
            for move in found.queries
        ]
        title = f"Moves in clip units: {self.unit}, kappa {found.kappa}, {adjacency}, {shown}"
        tell.table(title, columns, rows)
        mu = ""
        if found.mu_realised is not None:
            mu = f"mu {found.mu_realised:.4f} of {found.mu_claimed:.4f}, "
        tell.say(
            f"All queries together: {mu}epsilon {found.realised_epsilon:.4g} of a claimed "
            f"{found.claimed_epsilon:.4g} at delta {found.delta:g}.",
            "; ".join(f"{noise}: {verdict}" for noise, verdict in verdicts.items()) + ".",
            "The claim is violated: a query moved further than was charged."
            if found.verdict == "violated"
            else "No query moved further than was charged. Other inputs are covered by the proof, not by "
            "this.",
        )
        tell.result({**found.to_dict(), "mechanism": shown, "verdicts": verdicts})

    def _trainer(self, name: str, tell: Telling) -> None:
        """What anyone's trainer of pairs tells of a planted pair, relationship and person."""
        from pairveil.audit.trainer_audit import audit_trainer, load_trainer
        from pairveil.files import file_draft

        adjacency: Any = self.adjacency or "replace"
        with ExitStack() as open_:
            # Before minutes of audit: a page that cannot be written is told at once.
            draft = None if self.report is None else open_.enter_context(file_draft(self.report))
            with tell.waiting("auditing the trainer"):
                found = audit_trainer(
                    load_trainer(name),
                    self.epsilon,
                    self.delta,
                    kappa=self.planted,
                    n_features=max(self.features, 200) if self.one_run else self.features,
                    adjacency=adjacency,
                    mode="one-run" if self.one_run else "many-run",
                    runs=self.runs,
                    confidence=self.confidence,
                    random_state=self.seed,
                    name=name,
                )
            if draft is not None:
                from pairveil.report.page import render_audit

                draft.write_text(render_audit(found, ["pairveil", *sys.argv[1:]]), encoding="utf-8")
        rows = [
            [level.unit, level.kappa, f"{level.least:.2f}", level.finding.verdict]
            for level in found.levels
        ]
        n_runs = found.levels[0].finding.n_runs
        title = (
            f"{name}: claimed epsilon {self.epsilon:g}, lower bounds at {self.confidence:g} confidence "
            f"({adjacency}, {'one run' if n_runs == 1 else f'{n_runs:,} runs'} each)"
        )
        tell.table(title, ["secret of one", "pairs", "epsilon at least", "claim"], rows)
        tell.say(found.summary())
        if self.report is not None:
            tell.say(f"Page: {self.report}")
        tell.result(found.to_dict() | ({} if self.report is None else {"out": str(self.report)}))


def conclusion(found: Any) -> str:
    """What a finding says of its claim, in words."""
    from pairveil.audit.auditor import ACCUSATION

    if found.verdict == "violated":
        return "The claim is violated."
    if found.lower_bound > found.claimed_epsilon:
        return (
            f"That is above the claim, but not at the {ACCUSATION:g} confidence that an accusation takes. "
            "Run more, with another --seed, before you conclude."
        )
    return "The audit is consistent with the claim; it does not prove it."
