"""Report data as a fit makes them: a real certificate, a real graph, synthetic points."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from pairveil.graph.kappa import graph_summary, kappa
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.mechanisms import Query
from pairveil.privacy.noise import SeededNoise, TrustedNoise
from pairveil.privacy.units import SELECTED_CAVEAT
from pairveil.report.data import (
    ChargedEntry,
    ChargedLedger,
    ProjectedPoints,
    PublicTest,
    ReportData,
    Summary,
)
from pairveil.report.facts import metric_shape

NAMES = (
    "mean radius",
    "mean texture",
    "mean perimeter",
    "mean area",
    "worst concave points",
    "age",
)


QUERY = Query("gradients", (10, 6), 5.97, 200, sample_rate=0.1)


@cache
def certificate(*, for_release: bool = True) -> Certificate:
    return Certificate.issue(
        [QUERY.event()],
        delta=1e-5,
        unit="relationship",
        adjacency="zero-out",
        kappas={"pair": 1, "relationship": 1, "person": 2},
        mechanism="gaussian",
        n_pairs_given=1200,
        n_pairs_used=560,
        selection={
            "how": "paths",
            "caveat": SELECTED_CAVEAT,
            "full_graph_relationship_kappa": 12,
        },
        noise_source=TrustedNoise().name if for_release else SeededNoise.name,
        delta_slack=1e-12 if for_release else 0.0,
        for_release=for_release,
        plan={"releases": [QUERY.to_dict()], "n_features": 6},
    )


@cache
def full_data(*, for_release: bool = True) -> ReportData:
    rng = np.random.default_rng(5)
    people = 569
    given = np.array([rng.choice(people, 2, replace=False) for _ in range(1200)])
    order = rng.permutation(people)
    used = np.column_stack([order[:561], np.roll(order, -1)[:561]])[:560]
    return ReportData(
        certificate=certificate(for_release=for_release),
        metric=metric_shape(rng.normal(size=(2, 6)) * [3, 1, 2, 0.4, 5, 0.2], NAMES),
        summary=Summary(
            used=graph_summary(kappa(used), used),
            given=graph_summary(kappa(given), given),
            points=_points(rng),
            budget=ChargedLedger(
                2.0,
                1e-5,
                "relationship",
                "zero-out",
                (
                    ChargedEntry("pilot fit", 0.48, "2026-11-02"),
                    ChargedEntry("this fit", 1.03, "2026-11-15"),
                ),
                {"pair": 0.62, "relationship": 0.62, "person": 0.745},
            ),
            title="Patients: which tumours are alike?",
        ),
        folder="release/patients",
        problems=(),
        made="2026-11-15",
        public_test=_public_test(),
    )


def _public_test() -> PublicTest:
    curve = ((0.0, 0.0), (0.05, 0.5), (0.25, 0.8), (1.0, 1.0))
    plain = ((0.0, 0.0), (0.05, 0.2), (0.25, 0.5), (1.0, 1.0))
    note = "Breast-cancer table of scikit-learn"
    return PublicTest(note, 569, 200_000, 0.861, 0.712, curve, plain, 0.902)


def _points(rng: np.random.Generator) -> ProjectedPoints:
    groups = np.repeat(["benign", "malignant"], 110)
    shift = (groups == "malignant")[:, None]
    before = rng.normal(size=(220, 2)) + shift * [0.9, 0.5]
    after = rng.normal(size=(220, 2)) * [0.5, 0.35] + shift * [1.9, 0.4]
    return ProjectedPoints(
        "synthetic",
        "Drawn from two Gaussians with the groups' published means.",
        tuple(map(tuple, before.round(4).tolist())),
        tuple(map(tuple, after.round(4).tolist())),
        tuple(groups.tolist()),
    )


@pytest.fixture(name="full_data")
def full_data_fixture() -> ReportData:
    """A report with every part."""
    return full_data()


@pytest.fixture(name="seeded")
def seeded_fixture() -> Certificate:
    """A certificate that is not for release."""
    return certificate(for_release=False)
