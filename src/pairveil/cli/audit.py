"""`attack` and `audit`: what leaks, shown; and epsilon measured from outside.

`audit --trainer`: what anyone's trainer of pairs tells of a planted pair, relationship and person.
"""

from __future__ import annotations

import math
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from pairveil.cli.choices import DEFAULT_LEARNER_NAME, LearnerName, NoiseName, TargetName
from pairveil.cli.output import JsonFlag, QuietFlag, print_json, stdout, table
from pairveil.cli.waiting import waiting
from pairveil.errors import InputError
from pairveil.files import file_draft

# ---- what anyone's trainer of pairs tells of a planted pair, relationship and person -------------


def audit_by_name(
    name: str,
    epsilon: float,
    *,
    delta: float,
    kappa: int,
    features: int,
    adjacency: str,
    one_run: bool,
    runs: int | None,
    confidence: float,
    seed: int,
    report: Path | None,
    json_: bool,
    quiet: bool,
) -> None:
    """Audit the trainer that 'module:function' names, print what was found, and write its page."""
    from pairveil.audit.trainer_audit import audit_trainer, load_trainer

    with ExitStack() as open_:
        # Before minutes of audit: a page that cannot be written is told at once.
        draft = None if report is None else open_.enter_context(file_draft(report))
        with waiting("auditing the trainer", not (json_ or quiet)):
            found = audit_trainer(
                load_trainer(name),
                epsilon,
                delta,
                kappa=kappa,
                n_features=max(features, 200) if one_run else features,
                adjacency=adjacency,  # type: ignore[arg-type]
                mode="one-run" if one_run else "many-run",
                runs=runs,
                confidence=confidence,
                random_state=seed,
                name=name,
            )
        if draft is not None:
            from pairveil.report.trainer_audit import render

            draft.write_text(render(found, ["pairveil", *sys.argv[1:]]), encoding="utf-8")
    if json_:
        print_json(found.to_dict() | ({} if report is None else {"out": str(report)}))
        return
    if quiet:
        return
    rows = [
        [level.unit, level.kappa, f"{level.least:.2f}", level.finding.verdict]
        for level in found.levels
    ]
    n_runs = found.levels[0].finding.n_runs
    title = (
        f"{name}: claimed epsilon {epsilon:g}, lower bounds at {confidence:g} confidence "
        f"({adjacency}, {'one run' if n_runs == 1 else f'{n_runs:,} runs'} each)"
    )
    stdout.print(table(title, ["secret of one", "pairs", "epsilon at least", "claim"], rows))
    stdout.print(found.summary())
    if report is not None:
        stdout.print(f"Page: {report}", markup=False)


# ---- `attack` and `audit`: what leaks, shown; and epsilon measured from outside ------------------

UnitName = Literal["pair", "relationship", "person", "choice", "worker"]

QUICK_RUNS = 1600
"""Runs of a learner in less than a minute; ``--thorough`` makes as many as its target asks for."""

AdjacencyName = Literal["zero-out", "replace"]

Seed = Annotated[int, typer.Option("--seed", min=0, help="Makes the games repeatable.")]


def attack(
    targets: Annotated[
        int, typer.Option("--targets", min=20, help="Relationships to attack; more are surer.")
    ] = 50,
    seed: Seed = 0,
    json_: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Play the paper's attack on embedded patients: who recovers 'same' or 'different'?

    Example: `pairveil attack`
    """
    from pairveil.audit.attack import attack_all
    from pairveil.audit.published_targets import published_learners

    with waiting(f"attacking {targets} relationships four ways", not (json_ or quiet)):
        rows = attack_all(targets, seed, published_learners)
    if json_:
        print_json({"rows": [row.to_dict() for row in rows]})
        return
    if quiet:
        return
    columns = ["learner", "epsilon", "attacker", "recovered", "bound"]
    title = f"Relationships recovered from the metric, {targets} targets each"
    stdout.print(table(title, columns, [_cells(row) for row in rows]))
    stdout.print(
        "0.5 is guessing. The bound is the best guess that the learner's promise allows. 'not covered': this "
        "attacker lacks more labels than the promise speaks of, and no bound holds (docs/threat-model.md)."
    )


def audit(
    target: Annotated[TargetName, typer.Option("--target", help="What to audit.")] = TargetName(
        "learner"
    ),
    epsilon: Annotated[
        float, typer.Option("--epsilon", min=0.01, max=50.0, help="The claim.")
    ] = 1.0,
    components: Annotated[
        int, typer.Option("--components", min=1, help="d' of a published learner.")
    ] = 1,
    features: Annotated[int, typer.Option("--features", min=1, help="Dimension of the data.")] = 2,
    unit: Annotated[UnitName, typer.Option("--unit", help="What the claim protects.")] = "pair",
    adjacency: Annotated[
        AdjacencyName | None,
        typer.Option(
            "--adjacency", help="What the claim compares: zero-out, or replace for a trainer."
        ),
    ] = None,
    runs: Annotated[
        int | None, typer.Option("--runs", min=1, help="Runs of the mechanism.")
    ] = None,
    thorough: Annotated[
        bool,
        typer.Option(
            "--thorough", help="As many runs as make the bound sharp: minutes for a learner."
        ),
    ] = False,
    confidence: Annotated[
        float, typer.Option("--confidence", min=0.51, max=0.999999, help="Of the lower bound.")
    ] = 0.95,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact", help="One fit, no statistics: each query's largest move over its charge."
        ),
    ] = False,
    learner: Annotated[
        LearnerName, typer.Option("--learner", help="Which learner, for --target learner.")
    ] = DEFAULT_LEARNER_NAME,
    classes: Annotated[
        bool, typer.Option("--classes", help="Audit its fit of people with classes.")
    ] = False,
    mechanism: Annotated[
        NoiseName | None,
        typer.Option("--mechanism", help="Noise of an --exact audit; without it both are audited."),
    ] = None,
    trainer: Annotated[
        str | None,
        typer.Option("--trainer", help="Audit module:function instead, a trainer of your own."),
    ] = None,
    delta: Annotated[
        float, typer.Option("--delta", min=0.0, max=0.5, help="A trainer's claimed delta.")
    ] = 0.0,
    planted: Annotated[
        int, typer.Option("--planted", min=2, help="Pairs of the person planted for a trainer.")
    ] = 8,
    one_run: Annotated[
        bool,
        typer.Option(
            "--one-run", help="Run a trainer once (or --runs times), with many planted people."
        ),
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option("--report", help="HTML page of a trainer's audit.", show_default=False),
    ] = None,
    seed: Seed = 0,
    json_: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
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
    from pairveil.audit.targets import audit_target, make_target

    if trainer is not None:
        if exact or classes or target != "learner" or learner != DEFAULT_LEARNER_NAME:
            raise InputError(
                "--trainer stands alone: leave --target, --learner, --classes and --exact out"
            )

        audit_by_name(
            trainer,
            epsilon,
            delta=delta,
            kappa=planted,
            features=features,
            adjacency=adjacency or "replace",
            one_run=one_run,
            runs=runs,
            confidence=confidence,
            seed=seed,
            report=report,
            json_=json_,
            quiet=quiet,
        )
        return
    if one_run or delta or report:
        raise InputError("--one-run, --delta and --report go with --trainer")
    adjacency, records = adjacency or "zero-out", "classes" if classes else None
    if classes and target != "learner":
        raise InputError(f"--classes says what a learner is fitted to: not with --target {target}")
    if learner != DEFAULT_LEARNER_NAME and target != "learner":
        raise InputError(f"--learner says which learner: it does not go with --target {target}")
    if exact:
        if target != "learner" or runs is not None:
            raise InputError(
                "--exact measures one fit of the learner: leave --target and --runs out"
            )
        _audit_exactly(
            str(learner), records, epsilon, features, unit, adjacency, mechanism, seed, json_, quiet
        )
        return
    if mechanism is not None:
        raise InputError("--mechanism goes with --exact")

    made = make_target(
        str(target),
        epsilon,
        n_components=components,
        n_features=features,
        unit=unit,
        adjacency=adjacency,
        learner=str(learner),
        records=records,
    )
    if runs is not None and thorough:
        raise InputError("--thorough says how many runs: leave --runs out")
    if runs is None and not thorough:
        runs = min(made.runs, QUICK_RUNS) if target == "learner" else made.runs
    with waiting("running the audit", not (json_ or quiet)):
        found = audit_target(made, runs=runs, confidence=confidence, random_state=seed)
    if json_:
        print_json(found.to_dict())
        return
    if quiet:
        return
    stdout.print(
        f"{found.target}: claimed epsilon {found.claimed_epsilon:.4g}, at least {found.lower_bound:.4g} with "
        f"{found.confidence:.4g} confidence after {found.n_runs:,} runs ({found.canary}, {found.adjacency})."
    )
    stdout.print(conclusion(found))
    if found.n_runs < made.runs:
        stdout.print(f"--thorough makes {made.runs:,} runs, for a sharper bound.")


def _audit_exactly(
    name: str,
    records: str | None,
    epsilon: float,
    features: int,
    unit: UnitName,
    adjacency: AdjacencyName,
    mechanism: NoiseName | None,
    seed: int,
    json_: bool,
    quiet: bool,
) -> None:
    from pairveil.audit import audit_exactly
    from pairveil.audit.targets import KAPPA
    from pairveil.learners import learner_class

    kind = learner_class(name)
    findings = {}
    for noise in map(str, [mechanism] if mechanism else NoiseName):
        learner = kind(epsilon=epsilon, unit=unit, adjacency=adjacency, mechanism=noise)
        findings[noise] = audit_exactly(
            learner,
            kappa=KAPPA.get(unit, 1),
            n_features=features,
            random_state=seed,
            records=records,
        )
    # A violated claim is shown first, whichever noise it is of.
    shown = max(findings, key=lambda noise: findings[noise].verdict == "violated")
    found, verdicts = findings[shown], {noise: one.verdict for noise, one in findings.items()}
    if json_:
        print_json({**found.to_dict(), "mechanism": shown, "verdicts": verdicts})
        return
    if quiet:
        return
    columns = ["query", "steps", "largest move", "charged", "ratio"]
    rows = [
        [move.name, move.steps, f"{move.largest_move:.9f}", move.charged, f"{move.ratio:.9f}"]
        for move in found.queries
    ]
    title = f"Moves in clip units: {unit}, kappa {found.kappa}, {adjacency}, {shown}"
    stdout.print(table(title, columns, rows))
    mu = (
        ""
        if found.mu_realised is None
        else f"mu {found.mu_realised:.4f} of {found.mu_claimed:.4f}, "
    )
    stdout.print(
        f"All queries together: {mu}epsilon {found.realised_epsilon:.4g} of a claimed "
        f"{found.claimed_epsilon:.4g} at delta {found.delta:g}."
    )
    stdout.print("; ".join(f"{noise}: {verdict}" for noise, verdict in verdicts.items()) + ".")
    stdout.print(
        "The claim is violated: a query moved further than was charged."
        if found.verdict == "violated"
        else "No query moved further than was charged. Other inputs are covered by the proof, not by this."
    )


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


def _cells(row: Any) -> list[Any]:
    return [
        row.learner,
        row.epsilon,
        row.attacker,
        f"{row.recovered:.3f}",
        "not covered" if row.bound is None else f"{math.ceil(1000 * row.bound - 1e-9) / 1000:.3f}",
    ]
