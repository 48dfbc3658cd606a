"""`demo`: the whole way on embedded data of students, in one command."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from pairveil.errors import InputError
from pairveil.jobs.job import PRIVACY, RELEASE, Job, Telling, option
from pairveil.jobs.options import with_scores
from pairveil.jobs.spending import learn
from pairveil.privacy.units import round_up, times_in_100

TRAIN_PEOPLE = 9_000
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
        from pairveil.evaluation.scores import gain_kept, pair_auc
        from pairveil.graph.choosing import design_pairs
        from pairveil.learners.contrastive.learner import ContrastiveMetricLearner, DPPMetricLearner
        from pairveil.learners.outlook import expected_gain
        from pairveil.records.embedded import label_pairs, load_students, student_schema
        from pairveil.records.pairset import PairSet
        from pairveil.release.metric import ReleasedMetric
        from pairveil.release.release import check_folder
        from pairveil.report.facts import PLAIN, is_plain, metric_shape, read_release, summary_of
        from pairveil.report.page import write

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
        tell.say(f"Forecast from public numbers: {forecast.said()}")
        learn(learner, prepared, tell)
        with tell.waiting("attacking the release, and one without privacy"):
            attacked = attack(data, self.epsilon)
        certificate: Any = learner.certificate_
        scale = np.full(X.shape[1], schema.factor())
        metric = ReleasedMetric(
            learner.components_ * scale, certificate, column_scale=scale, schema=schema
        )
        summary = summary_of(learner, title=TITLE)
        metric.save(self.out, overwrite=True, summary=summary.to_json())
        with tell.waiting("measuring on the test students"):
            best = ContrastiveMetricLearner().fit(data).components_
            names = np.array([students.class_names[c] for c in classes[test]])
            shown = with_scores(
                read_release(self.out), metric, X[test] / scale, names, "students kept for testing",
                reference=pair_auc(best, X[test], classes[test]), learned_from="the same pairs",
            )  # fmt: skip
        page, found = write(shown, self.out / "report.html"), shown.public_test
        scores = {"pair_auc": found.score, "euclidean_pair_auc": found.plain}
        scores["reference_pair_auc"] = found.reference
        kept = gain_kept(*(scores[f"{of}pair_auc"] for of in ("", "euclidean_", "reference_")))
        tell_demo(tell, certificate, scores, kept, attacked, page)
        if is_plain(metric_shape(learner.components_)):
            tell.say(PLAIN)
        said = {"out": str(self.out), "certificate": certificate.to_dict(), **scores}
        expected = {"gain_low": forecast.low, "gain_high": forecast.high}
        tell.result(
            {**said, "gain_kept": kept, **expected, "attack": attacked, "report": str(page)}
        )


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
