"""What a fit says it may bring follows from public numbers alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pairveil import DPPMetricLearner
from pairveil.cli.planned import expected_effect
from pairveil.learners.expected import GAINS, signal_of


def planned(n_people: int, **parameters: object):
    X = np.full((n_people, 4), 0.1)
    pairs = np.array([(i, i + 1) for i in range(n_people - 1)])
    y = np.where(np.arange(n_people - 1) % 2, 1, -1)
    learner = DPPMetricLearner(preprocessor=X, random_state=0, **parameters)
    return learner.certify(pairs, y)


@pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")
def test_signal_is_pairs_over_noise_and_features() -> None:
    # At epsilon 1 and delta 1e-5 a Gaussian mechanism has mu = 0.268 (its noise is 3.73 clips).
    assert signal_of(planned(1001)) == pytest.approx(1000 * 0.268 / math.sqrt(4), rel=1e-2)
    assert signal_of(planned(1001, adjacency="replace")) == pytest.approx(67.0, rel=1e-2)
    assert signal_of(planned(1001, unit="person")) == pytest.approx(67.0, rel=1e-2)


@pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")
@pytest.mark.parametrize(("people", "band"), [(60, 0), (260, 1), (700, 2), (2000, 3), (6000, 4)])
def test_more_pairs_promise_more(people: int, band: int) -> None:
    said = expected_effect(planned(people))
    _, low, high = GAINS[band]
    assert f"{100 * low:.0f} to {100 * high:.0f} %" in said


def test_pure_epsilon_has_no_measured_band() -> None:
    assert "%" not in expected_effect(planned(3000, mechanism="laplace", epsilon=50.0))
