"""What a notebook shows: tables and pictures instead of a matrix of numbers, foreign text escaped."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest

from pairveil import DPPMetricLearner, ReleasedMetric, design_pairs, kappa
from pairveil.records.embedded import label_pairs, load_patients
from pairveil.release.metric import column_weights

mpl.use("Agg")


@pytest.fixture(scope="module")
def learner():
    patients = load_patients()
    pairs = design_pairs(569, random_state=0)
    made = DPPMetricLearner(preprocessor=patients.features.values, random_state=0, n_steps=3)
    return made.fit(pairs, label_pairs(pairs, patients.classes))


def test_a_certificate(learner):
    page = learner.certificate_._repr_html_()
    assert "relationship (promised)" in page
    assert "NOT for release" in page  # it was seeded
    axes = learner.certificate_.plot()
    assert [line.get_label() for line in axes.lines] == ["a coin", "relationship"]


def test_a_metric_is_no_matrix(learner):
    names = tuple(f"<script>{i}" for i in range(30))
    metric = ReleasedMetric(learner.components_, learner.certificate_, names)
    page = metric._repr_html_()
    assert "<script>" not in page
    assert page.count("<tr>") == 11
    assert "20 more columns" in page
    assert sum(column_weights(metric).values()) == pytest.approx(1.0)
    assert len(metric.plot(most=5).patches) == 5


def test_weights_are_of_scaled_columns():
    metric = ReleasedMetric([[2.0, 30.0]], column_scale=np.array([1.0, 10.0]))
    assert column_weights(metric) == {
        "column 0": pytest.approx(4 / 13),
        "column 1": pytest.approx(9 / 13),
    }


def test_kappa_of_a_graph():
    found = kappa(design_pairs(20, random_state=0))
    assert "19 pairs of 20 people" in found._repr_html_()
    assert sum(bar.get_height() for bar in found.plot().patches) == 20


def test_a_learner_shows_its_parameters(learner):
    assert "preprocessor=&lt;features&gt;" in learner._repr_html_()
