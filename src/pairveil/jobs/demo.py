"""`demo`: the whole way on embedded patients data, in one command."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from pairveil.errors import InputError
from pairveil.jobs.fit import tell_plan
from pairveil.jobs.job import PRIVACY, RELEASE, Job, Telling, option
from pairveil.jobs.options import write_page
from pairveil.jobs.spending import learn
from pairveil.privacy.units import round_up, times_in_100

TRAIN_PEOPLE = 398
CURVE_EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
CURVE_SEEDS = 5


@dataclass(frozen=True, kw_only=True)
class DemoJob(Job):
    """Learn a private metric on embedded patients data and release it with its report.

    Example: `pairveil demo`

    Example: `pairveil demo --epsilon 0.5 --out weaker-odds`
    """

    name: ClassVar = "demo"
    panel: ClassVar = RELEASE

    out: Path = option(Path("demo-out"), "Folder for the release.", "-o")
    epsilon: float = option(1.0, "Privacy budget of this release.", panel=PRIVACY)
    seed: int | None = option(None, "Repeatable, and NOT for release.", min=0)

    def work(self, tell: Telling) -> None:
        """Learn, score on patients who were kept apart, and write release and report."""
        from pairveil.evaluation.scores import gain_kept
        from pairveil.graph.choosing import design_pairs
        from pairveil.learners.contrastive.learner import DPPMetricLearner
        from pairveil.records.embedded import label_pairs, load_patients
        from pairveil.records.pairset import PairSet
        from pairveil.release.metric import ReleasedMetric
        from pairveil.release.release import check_folder
        from pairveil.report.public_test import map_of
        from pairveil.report.quality import PLAIN, is_plain
        from pairveil.report.summaries import metric_shape, summary_of

        check_folder(self.out, overwrite=True)
        if not math.isfinite(self.epsilon):
            raise InputError("--epsilon must be a finite number: the demo shows a private release")
        patients = load_patients()
        X, classes = patients.features.values, patients.classes
        # Who trains is fixed, so that the demo's figures can be compared from run to run.
        order = np.random.default_rng(0).permutation(len(X))
        train, test = order[:TRAIN_PEOPLE], order[TRAIN_PEOPLE:]
        tell.say(
            f"{len(X)} patients, {X.shape[1]} measures each; {len(train)} of them may be paired, "
            f"{len(test)} are kept for testing."
        )
        pairs = design_pairs(len(train), how="paths", random_state=0)
        data = PairSet(X[train], pairs, label_pairs(pairs, classes[train]))
        learner = DPPMetricLearner(epsilon=self.epsilon, random_state=self.seed)
        prepared = learner.prepare(data)
        tell_plan(tell, prepared.certificate, prepared.recipe.headline)
        learn(learner, prepared, tell)
        with tell.waiting("measuring on the test patients"):
            scores, curve = score_public(data, X[test], classes[test], learner)
        kept = gain_kept(*(scores[f"{of}pair_auc"] for of in ("", "euclidean_", "reference_")))
        certificate: Any = learner.certificate_
        names = np.array([patients.class_names[c] for c in classes[test]])
        mapped = map_of(X[test], X[test] @ learner.components_.T, names, "kept for testing")
        title = "Patients: tumours measured under the microscope (embedded demo data)"
        summary = summary_of(learner, utility=curve, points=mapped, title=title)
        metric = ReleasedMetric(learner.components_, certificate, patients.features.names)
        metric.save(self.out, overwrite=True, summary=summary.to_json())
        page, _ = write_page(self.out)
        tell_demo(tell, certificate, scores, kept, page)
        if is_plain(metric_shape(learner.components_)):
            tell.say(PLAIN)
        shown = {"out": str(self.out), "certificate": certificate.to_dict(), **scores}
        tell.result({**shown, "gain_kept": kept, "report": str(page)})


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


def tell_demo(
    tell: Telling, certificate: Any, scores: dict[str, float], kept: float, page: Path
) -> None:
    """Five lines a person understands."""
    plain, learned = scores["euclidean_pair_auc"], scores["pair_auc"]
    why = " Noise hid what was learned, so plain distance was released." if learned == plain else ""
    tell.say(
        f"Learned from {certificate.n_pairs_used} labelled pairs at epsilon {round_up(certificate.epsilon)}, "
        f"delta {certificate.delta:g}: someone who knows all other pairs, sees the metric and guesses 'same' "
        f"or 'different' for the pair they lack is right at most {times_in_100(certificate.best_guess())} "
        "times in 100; a coin is right 50 times.",
        f"How often unlike patients are farther apart than like ones: {plain:.3f} by plain distance, "
        f"{learned:.3f} by the private metric, {scores['reference_pair_auc']:.3f} without privacy.",
        f"That keeps {kept:.0%} of what learning without privacy would gain.{why}",
        f"Check it yourself: pairveil certificate {page.parent}",
        f"Read it in a browser: {page}",
    )
