"""`audit --trainer`: what anyone's trainer of pairs tells of a planted pair, relationship and person."""

from __future__ import annotations

from pairveil.cli.output import print_json, stdout, table


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
    json_: bool,
    quiet: bool,
) -> None:
    """Audit the trainer that 'module:function' names, and print what was found."""
    from pairveil.audit.trainers import audit_trainer, load_trainer

    found = audit_trainer(
        load_trainer(name),
        epsilon,
        delta,
        kappa=kappa,
        n_features=max(features, 200) if one_run else features,
        adjacency=adjacency,  # type: ignore[arg-type]
        mode="one-run" if one_run else "many-run",
        runs=1000 if runs is None else runs,
        confidence=confidence,
        random_state=seed,
        name=name,
    )
    if json_:
        print_json(found.to_dict())
        return
    if quiet:
        return
    rows = [
        [level.unit, level.kappa, f"{level.finding.lower_bound:.3g}", level.finding.verdict]
        for level in found.levels
    ]
    title = (
        f"{name}: claimed epsilon {epsilon:g}, lower bounds at {confidence:g} confidence "
        f"({adjacency}, {'one run' if one_run else f'{found.levels[0].finding.n_runs:,} runs'} each)"
    )
    stdout.print(table(title, ["secret of one", "pairs", "epsilon at least", "claim"], rows))
    stdout.print(found.summary())
