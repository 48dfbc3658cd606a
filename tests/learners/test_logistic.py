"""The logistic loss through the same learner, and probabilities that mean what they say."""

import numpy as np
import pytest

from pairveil import DPPMetricLearner, InputError, PrivacyLedger, design_pairs
from pairveil.audit import audit_exactly
from pairveil.learners.contrastive import recipe
from pairveil.learners.histogram import match_odds

pytestmark = pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")
GROUPS = np.arange(3000) % 2
X = (np.random.default_rng(7).normal(size=(3000, 5)) + np.outer(GROUPS - 0.5, [2, 0, 0, 0, 0])) / 6
PAIRS = design_pairs(3000, random_state=0)
Y = np.where(GROUPS[PAIRS[:, 0]] == GROUPS[PAIRS[:, 1]], 1, -1)
TRAIN, REST = slice(0, 1500), slice(1500, None)


def fitted(**options):
    options = {"epsilon": 2.0, "random_state": 0, "preprocessor": X, **options}
    return DPPMetricLearner(**options).fit(PAIRS[TRAIN], Y[TRAIN])


def test_it_learns_as_well_and_says_so_in_its_certificate():
    scores = [fitted(loss=loss).score(PAIRS[REST], Y[REST]) for loss in ("contrastive", "logistic")]
    euclid = np.linalg.norm(X[PAIRS[REST, 0]] - X[PAIRS[REST, 1]], axis=1)
    plain = np.mean(euclid[Y[REST] < 0][:, None] > euclid[Y[REST] > 0])
    assert scores[1] > plain + 0.08
    assert scores[1] > scores[0] - 0.05
    certificate = fitted(loss="logistic").certificate_
    assert certificate.plan["loss"] == "logistic"
    assert certificate.verify()


@pytest.mark.parametrize("loss", ["contrastive", "logistic"])
@pytest.mark.parametrize("rate", [1.0, 80.0])
def test_long_steps_are_shrunk_by_no_more_than_the_noise_they_keep(rate, loss):
    """A step cut to the margin was shrunk as if it were whole: W was 0.

    Of W = 0 the logistic loss has no gradient: a clip bound of 0 stopped the fit when it was charged.
    """
    learner = fitted(loss=loss, epsilon=0.05, n_components=2, learning_rate=rate)
    assert np.linalg.norm(learner.components_) > 0.1


def test_a_metric_that_shrank_to_nothing_does_not_stop_a_fit_that_is_charged(monkeypatch):
    monkeypatch.setattr(recipe, "shrink_columns", lambda W, _: 0 * W)
    learner = fitted(loss="logistic", n_components=2)
    assert np.linalg.norm(learner.components_) < 1e-6


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_no_query_moves_further_than_is_charged(adjacency, mechanism):
    learner = DPPMetricLearner(
        unit="pair", loss="logistic", adjacency=adjacency, mechanism=mechanism, n_steps=5
    )
    found = audit_exactly(learner, n_features=3)
    assert found.verdict == "consistent"
    assert max(query.ratio for query in found.queries) > 0.6


@pytest.mark.parametrize("loss", ["contrastive", "logistic"])
def test_private_match_probabilities_are_calibrated(loss):
    """In each third of the stated probabilities the share of similar pairs is what they say, within 0.12."""
    ledger = PrivacyLedger(9.0, 1e-4)
    learner = fitted(loss=loss, accountant=ledger)
    with pytest.raises(InputError, match="calibrate_threshold"):
        learner.match_probability(PAIRS[:1])
    half = (1500 + len(Y)) // 2
    learner.calibrate_threshold(PAIRS[1500:half], Y[1500:half], epsilon=1.0)
    assert len(ledger.entries) == 2
    stated, true = learner.match_probability(PAIRS[half:]), Y[half:] > 0
    for third in np.array_split(np.argsort(stated), 3):
        assert abs(stated[third].mean() - true[third].mean()) < 0.12
    assert stated[true].mean() > stated[~true].mean() + 0.1
    learner.set_threshold(1.0)
    assert not hasattr(learner, "match_odds_")


def test_odds_follow_the_counts_and_never_rise_with_distance():
    edges = np.linspace(0.1, 3, 30)
    middle = edges - 0.05
    share = 1 / (1 + np.exp(-(2 - 1.5 * middle**2)))
    a, b = match_odds(edges, 1e4 * share, 1e4 * (1 - share))
    assert (a, b) == (pytest.approx(2, abs=0.05), pytest.approx(1.5, abs=0.05))
    assert match_odds(edges, 1e4 * (1 - share), 1e4 * share)[1] == 0
    assert all(np.isfinite(match_odds(edges, np.zeros(30), np.zeros(30))))
    assert all(np.isfinite(match_odds(edges, 1e9 * (middle < 1), 1e9 * (middle > 1))))
