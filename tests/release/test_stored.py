"""Releases that version 0.1 wrote are read and verified by its rules."""

import json
from pathlib import Path

import pytest

from pairveil import Certificate, ReleasedMetric

V1 = Path(__file__).parents[1] / "stored" / "v1"


@pytest.mark.parametrize("name", ["gaussian", "laplace", "poisson"])
def test_a_release_of_version_0_1_still_verifies(name):
    metric = ReleasedMetric.load(V1 / name)
    assert metric.feature_names == ("age", "height", "weight")
    assert metric.certificate.graph_digest is None
    assert metric.certificate.verify().problems == ()
    assert 0.5 < metric.certificate.best_guess("pair") < 1.0
    # Written again it is the same file: nothing new is put into it.
    stored = json.loads((V1 / name / "certificate.json").read_text())
    assert metric.certificate.to_dict() == stored


@pytest.mark.parametrize("name", ["gaussian", "poisson"])
def test_its_slack_is_that_of_its_names(name):
    data = json.loads((V1 / name / "certificate.json").read_text())
    data["delta_slack"] /= 2
    problems = Certificate.from_dict(data).verify().problems
    assert any("set aside" in problem for problem in problems)
