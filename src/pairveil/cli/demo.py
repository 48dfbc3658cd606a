"""`demo`: the whole way on embedded patients data, in one command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from pairveil.cli.fit import print_plan, progress_bar
from pairveil.cli.output import JsonFlag, QuietFlag, print_json, spoken_warnings, stdout

TRAIN_PEOPLE = 398


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("demo")(demo)


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the release.")] = Path(
        "demo-out"
    ),
    epsilon: Annotated[float, typer.Option("--epsilon")] = 1.0,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Repeatable, and NOT for release.")
    ] = None,
    json_: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Learn a private metric on embedded patients data and release it with its report.

    Example: `pairveil demo`
    """
    from pairveil.evaluation.scores import gain_kept, pair_auc
    from pairveil.learning.contrastive import ContrastiveMetricLearner
    from pairveil.learning.dpp import DPPMetricLearner
    from pairveil.pairs.choosing import design_pairs
    from pairveil.pairs.embedded import label_pairs, load_patients
    from pairveil.pairs.pairset import PairSet
    from pairveil.release.metric import ReleasedMetric

    talk = not (json_ or quiet)
    patients = load_patients()
    X, classes = patients.features.values, patients.classes
    # Who trains is fixed, so that the demo's figures can be compared from run to run.
    order = np.random.default_rng(0).permutation(len(X))
    train, test = order[:TRAIN_PEOPLE], order[TRAIN_PEOPLE:]
    if talk:
        stdout.print(
            f"{len(X)} patients, {X.shape[1]} measures each; {len(train)} of them may be paired, "
            f"{len(test)} are kept for testing."
        )
    pairs = design_pairs(len(train), how="paths", random_state=0)
    data = PairSet(X[train], pairs, label_pairs(pairs, classes[train]))
    learner = DPPMetricLearner(epsilon=epsilon, random_state=seed)
    with spoken_warnings(quiet=not talk):
        if talk:
            print_plan(learner.certify(data))
        with progress_bar(hidden=not talk) as bar:
            task = bar.add_task("learning", total=1.0, epsilon=0.0)
            learner.fit(
                data, on_step=lambda done, spent: bar.update(task, completed=done, epsilon=spent)
            )
    plain = ContrastiveMetricLearner(random_state=0).fit(data)

    def auc(components: Any) -> float:
        return pair_auc(components, X[test], classes[test])

    scores = {"pair_auc": auc(learner.components_), "euclidean_pair_auc": auc(None)}
    scores["reference_pair_auc"] = auc(plain.components_)
    kept = gain_kept(scores["pair_auc"], scores["euclidean_pair_auc"], scores["reference_pair_auc"])
    certificate = learner.certificate_
    metric = ReleasedMetric(learner.components_, certificate, patients.features.names)
    metric.save(out, overwrite=True)
    if json_:
        print_json(
            {"out": str(out), "certificate": certificate.to_dict(), **scores, "gain_kept": kept}
        )
    elif talk:
        _say(certificate, scores, kept, out)


def _say(certificate: Any, scores: dict[str, float], kept: float, out: Path) -> None:
    """Five lines a person understands."""
    replace = certificate.epsilons[certificate.unit]["replace"]
    stdout.print(
        f"Learned from {certificate.n_pairs_used} labelled pairs at epsilon {certificate.epsilon:.2f}, "
        f"delta {certificate.delta:g}: whoever sees the metric can change the odds of any one "
        f"relationship by at most a factor of {np.exp(replace):.1f}."
    )
    stdout.print(
        f"How often unlike patients are farther apart than like ones: {scores['euclidean_pair_auc']:.3f} by "
        f"plain distance, {scores['pair_auc']:.3f} by the private metric, "
        f"{scores['reference_pair_auc']:.3f} without privacy."
    )
    stdout.print(f"That keeps {kept:.0%} of what learning without privacy would gain.")
    stdout.print(
        f"The release is in {out}: the metric, its certificate, a README for the receiver."
    )
    stdout.print(f"Check it yourself: pairveil certificate {out}")
