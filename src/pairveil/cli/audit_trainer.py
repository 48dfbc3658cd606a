"""`audit --trainer`: what anyone's trainer of pairs tells of a planted pair, relationship and person."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

from pairveil.cli.output import print_json, stdout, table
from pairveil.cli.waiting import waiting
from pairveil.files import file_draft


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
