"""`demo`: the whole way on embedded data of students, in one command."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from pairveil.errors import InputError
from pairveil.jobs.job import PRIVACY, RELEASE, Job, Telling, option
from pairveil.jobs.options import write_page
from pairveil.jobs.spending import learn
from pairveil.privacy.units import round_up, times_in_100

TRAIN_PEOPLE = 9_000
CURVE_EPSILONS = (0.1, 0.3, 1.0, 3.0)
CURVE_SEEDS = 3
TARGETS = 60  # relationships attacked, each in two worlds
TITLE = "Students: who is active on five days a week (embedded demo data)"


@dataclass(frozen=True, kw_only=True)
class DemoJob(Job):
    """Learn a private metric on embedded data of students and release it with its report.

    Example: `pairveil demo`

    Example: `pairveil demo --epsilon 0.5 --out weaker-odds`
    """

    name: ClassVar = "demo"
    panel: ClassVar = RELEASE

    out: Path = option(Path("demo-out"), "Folder for the release.", "-o")
    epsilon: float = option(1.0, "Privacy budget of this release.", panel=PRIVACY)
    seed: int | None = option(None, "Repeatable, and NOT for release.", min=0)

    def work(self, tell: Telling) -> None:
        """Learn, score on students who were kept apart, attack, and write release and report."""
        from pairveil.evaluation.scores import gain_kept
        from pairveil.graph.choosing import design_pairs
        from pairveil.learners.contrastive.learner import DPPMetricLearner
        from pairveil.learners.outlook import expected_gain
        from pairveil.records.embedded import label_pairs, load_students, student_schema
        from pairveil.records.pairset import PairSet
        from pairveil.release.metric import ReleasedMetric
        from pairveil.release.release import check_folder
        from pairveil.report.facts import PLAIN, is_plain, map_of, metric_shape, summary_of

        check_folder(self.out, overwrite=True)
        if not math.isfinite(self.epsilon):
            raise InputError("--epsilon must be a finite number: the demo shows a private release")
        students, schema = load_students(), student_schema()
        X, classes = students.features.values, students.classes
        # Who trains is fixed, so that the demo's figures can be compared from run to run.
        order = np.random.default_rng(0).permutation(len(X))
        train, test = order[:TRAIN_PEOPLE], order[TRAIN_PEOPLE:]
        pairs = design_pairs(len(train), how="paths", random_state=0)
        data = PairSet(X[train], pairs, label_pairs(pairs, classes[train]))
        tell.say(
            f"{len(X):,} students answered {len(schema.raw_names)} questions (CDC Youth Risk Behavior "
            "Survey, public domain).",
            f"{len(pairs):,} pairs of them are labelled: 'same' where both or neither are active five days "
            f"a week. {len(test):,} other students are kept for testing.",
        )
        learner = DPPMetricLearner(epsilon=self.epsilon, random_state=self.seed)
        prepared = learner.prepare(data)
        forecast = expected_gain(prepared.certificate)
        tell.say(f"Forecast from public numbers: {forecast_of(forecast)}")
        learn(learner, prepared, tell)
        with tell.waiting("measuring on the test students"):
            scores, curve = score_students(data, X[test], classes[test], learner)
        with tell.waiting("attacking the release, and one without privacy"):
            attacked = attack(data, self.epsilon)
        kept = gain_kept(*(scores[f"{of}pair_auc"] for of in ("", "euclidean_", "reference_")))
        certificate: Any = learner.certificate_
        names = np.array([students.class_names[c] for c in classes[test]])
        mapped = map_of(X[test], X[test] @ learner.components_.T, names, "kept for testing")
        summary = summary_of(learner, utility=curve, points=mapped, title=TITLE)
        scale = np.full(X.shape[1], schema.factor())
        metric = ReleasedMetric(
            learner.components_ * scale, certificate, column_scale=scale, schema=schema
        )
        metric.save(self.out, overwrite=True, summary=summary.to_json())
        page, _ = write_page(self.out)
        tell_demo(tell, certificate, scores, kept, attacked, page)
        if is_plain(metric_shape(learner.components_)):
            tell.say(PLAIN)
        shown = {"out": str(self.out), "certificate": certificate.to_dict(), **scores}
        expected = {"gain_low": forecast.low, "gain_high": forecast.high}
        tell.result(
            {**shown, "gain_kept": kept, **expected, "attack": attacked, "report": str(page)}
        )


def forecast_of(gain: Any) -> str:
    """The range of the forecast in words; noise may help by luck, so 100 % is no upper end."""
    low, high = round(100 * gain.low), round(100 * gain.high)
    share = f"{low} % or more" if high >= 100 else f"{low} to {high} %"
    return f"eight in ten fits like it kept {share} of what learning without privacy gains."


def score_students(data: Any, X: Any, classes: Any, learner: Any) -> tuple[dict[str, float], Any]:
    """Scores on the public test students: this fit's, Euclid's, non-private, and a small curve."""
    from pairveil.evaluation.scores import pair_auc
    from pairveil.learners.contrastive.learner import ContrastiveMetricLearner, DPPMetricLearner
    from pairveil.report.data import UtilityCurve, UtilityPoint

    def auc(components: Any) -> float:
        return pair_auc(components, X, classes, n_pairs=50_000)

    scores = {
        "pair_auc": auc(learner.components_),
        "euclidean_pair_auc": auc(None),
        "reference_pair_auc": auc(ContrastiveMetricLearner().fit(data).components_),
    }
    points = []
    with warnings.catch_warnings(action="ignore"):
        for epsilon in CURVE_EPSILONS:
            runs = [
                auc(DPPMetricLearner(epsilon=epsilon, random_state=seed).fit(data).components_)
                for seed in range(CURVE_SEEDS)
            ]
            mean, half = float(np.mean(runs)), float(1.96 * np.std(runs, ddof=1) / len(runs) ** 0.5)
            points.append(UtilityPoint(epsilon, mean, mean - half, mean + half))
    curve = UtilityCurve(
        source="public",
        note=f"{len(X):,} public test students, {CURVE_SEEDS} runs an epsilon",
        points=tuple(points),
        this_fit=UtilityPoint(learner.certificate_.epsilon, scores["pair_auc"]),
        euclidean=scores["euclidean_pair_auc"],
        reference=scores["reference_pair_auc"],
    )
    return scores, curve


def attack(data: Any, epsilon: float) -> dict[str, int]:
    """How often an attacker who knows every other label names the one that is missing.

    Seeded games, played on the same pairs and with the same epsilon, not on the release itself: its own
    noise must stay secret.
    """
    from pairveil.audit.attack import Patients, attack_learners

    everything = Patients(data, np.arange(data.n_pairs))
    found = attack_learners(everything, "all-other-pairs", TARGETS, 0, epsilons=(epsilon,))
    without, private = (round(2 * TARGETS * row.recovered) for row in found)
    return {"guesses": 2 * TARGETS, "right_without_privacy": without, "right": private}


def tell_demo(
    tell: Telling,
    certificate: Any,
    scores: dict[str, float],
    kept: float,
    attacked: dict[str, int],
    page: Path,
) -> None:
    """Two facts that a person remembers, and where to go on."""
    plain, learned = scores["euclidean_pair_auc"], scores["pair_auc"]
    share = "all" if kept >= 1 else f"{kept:.0%}"

    def of_100(name: str) -> str:
        return f"{100 * attacked[name] / attacked['guesses']:.0f}"

    why = " Noise hid what was learned, so plain distance was released." if learned == plain else ""
    tell.say(
        "",
        f"1. What it gained. Of two pairs, one of like and one of unlike students, plain distance finds the "
        f"like one {100 * plain:.0f} times in 100, the released metric {100 * learned:.0f}, learning without "
        f"privacy {100 * scores['reference_pair_auc']:.0f}: {share} of the gain is kept.{why}",
        f"2. What it hides. Someone knows every label but one, and guesses that one from the metric. Learned "
        f"without privacy, it gave the label away {of_100('right_without_privacy')} times in 100; learned as "
        f"here, and with every noisy sum in sight, {of_100('right')} times, a coin 50 "
        f"({attacked['guesses']} games). Proved: at most "
        f"{times_in_100(certificate.best_guess())} times in 100 (epsilon {round_up(certificate.epsilon)}, "
        f"delta {certificate.delta:g}). Someone who lacks more labels that hang together can learn more: "
        "docs/threat-model.md.",
        "",
        f"Check it yourself: pairveil certificate {page.parent}",
        f"Read it in a browser: {page}",
    )
