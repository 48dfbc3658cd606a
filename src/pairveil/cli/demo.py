"""`demo`: the whole way on embedded patients data, in one command."""

from __future__ import annotations

import math
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from pairveil.cli.budget import Epsilon, ReleaseOut
from pairveil.cli.learning import learn
from pairveil.cli.output import JsonFlag, QuietFlag, print_json, spoken_warnings, stderr, stdout
from pairveil.cli.page_options import write_page
from pairveil.cli.planned import print_plan
from pairveil.errors import InputError
from pairveil.privacy.units import round_up, times_in_100

TRAIN_PEOPLE = 398
CURVE_EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
CURVE_SEEDS = 5


def demo(
    out: ReleaseOut = Path("demo-out"),
    epsilon: Epsilon = 1.0,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Repeatable, and NOT for release.")
    ] = None,
    json_: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Learn a private metric on embedded patients data and release it with its report.

    Example: `pairveil demo`

    Example: `pairveil demo --epsilon 0.5 --out weaker-odds`
    """
    from pairveil.evaluation.scores import gain_kept
    from pairveil.graph.choosing import design_pairs
    from pairveil.learners.contrastive.learner import DPPMetricLearner
    from pairveil.records.embedded import label_pairs, load_patients
    from pairveil.records.pairset import PairSet
    from pairveil.release.metric import ReleasedMetric
    from pairveil.release.release import check_folder
    from pairveil.report.evidence import PLAIN, is_plain
    from pairveil.report.public_test import map_of
    from pairveil.report.summaries import metric_shape, summary_of

    talk = not (json_ or quiet)
    check_folder(out, overwrite=True)
    if not math.isfinite(epsilon):
        raise InputError("--epsilon must be a finite number: the demo shows a private release")
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
        prepared = learner.prepare(data)
        if talk:
            print_plan(prepared.certificate, prepared.recipe.headline)
        learn(learner, prepared, talk)
    with stderr.status("measuring on the test patients") if talk else nullcontext():
        scores, curve = score_public(data, X[test], classes[test], learner)
    kept = gain_kept(scores["pair_auc"], scores["euclidean_pair_auc"], scores["reference_pair_auc"])
    certificate: Any = learner.certificate_
    metric = ReleasedMetric(learner.components_, certificate, patients.features.names)
    names = tuple(patients.class_names[c] for c in classes[test])
    summary = summary_of(
        learner,
        utility=curve,
        points=map_of(
            X[test], X[test] @ learner.components_.T, np.array(names), "kept for testing"
        ),
        title="Patients: tumours measured under the microscope (embedded demo data)",
    )
    metric.save(out, overwrite=True, summary=summary.to_json())
    page, _ = write_page(out)
    if json_:
        shown = {"out": str(out), "certificate": certificate.to_dict(), **scores, "gain_kept": kept}
        print_json({**shown, "report": str(page)})
    elif talk:
        _say(certificate, scores, kept, page)
        if is_plain(metric_shape(learner.components_)):
            stdout.print(PLAIN)


def score_public(data: Any, X: Any, classes: Any, learner: Any) -> tuple[dict[str, float], Any]:
    """Scores on the public test patients: this fit's, Euclid's, non-private, and a small curve."""
    from pairveil.evaluation.scores import pair_auc
    from pairveil.learners.contrastive.learner import DPPMetricLearner
    from pairveil.learners.contrastive.nonprivate import ContrastiveMetricLearner
    from pairveil.report.data import UtilityCurve, UtilityPoint

    def auc(components: Any) -> float:
        return pair_auc(components, X, classes, n_pairs=50_000)

    scores = {
        "pair_auc": auc(learner.components_),
        "euclidean_pair_auc": auc(None),
        "reference_pair_auc": auc(ContrastiveMetricLearner().fit(data).components_),
    }
    points = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for epsilon in CURVE_EPSILONS:
            runs = [
                auc(DPPMetricLearner(epsilon=epsilon, random_state=seed).fit(data).components_)
                for seed in range(CURVE_SEEDS)
            ]
            mean, half = float(np.mean(runs)), float(1.96 * np.std(runs, ddof=1) / len(runs) ** 0.5)
            points.append(UtilityPoint(epsilon, mean, mean - half, mean + half))
    curve = UtilityCurve(
        source="public",
        note=f"{len(X)} public test patients, {CURVE_SEEDS} runs an epsilon",
        points=tuple(points),
        this_fit=UtilityPoint(learner.certificate_.epsilon, scores["pair_auc"]),
        euclidean=scores["euclidean_pair_auc"],
        reference=scores["reference_pair_auc"],
    )
    return scores, curve


def _say(certificate: Any, scores: dict[str, float], kept: float, page: Path) -> None:
    """Five lines a person understands."""
    stdout.print(
        f"Learned from {certificate.n_pairs_used} labelled pairs at epsilon {round_up(certificate.epsilon)}, "
        f"delta {certificate.delta:g}: someone who knows all other pairs, sees the metric and guesses 'same' "
        f"or 'different' for the pair they lack is right at most {times_in_100(certificate.best_guess())} "
        "times in 100; a coin is right 50 times."
    )
    stdout.print(
        f"How often unlike patients are farther apart than like ones: {scores['euclidean_pair_auc']:.3f} by "
        f"plain distance, {scores['pair_auc']:.3f} by the private metric, "
        f"{scores['reference_pair_auc']:.3f} without privacy."
    )
    why = ""
    if scores["pair_auc"] == scores["euclidean_pair_auc"]:
        why = " Noise hid what was learned, so plain distance was released."
    stdout.print(f"That keeps {kept:.0%} of what learning without privacy would gain.{why}")
    stdout.print(f"Check it yourself: pairveil certificate {page.parent}")
    stdout.print(f"Read it in a browser: {page}")
