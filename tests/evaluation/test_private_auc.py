"""Pair AUC on private pairs: what it promises, how near it comes, what it refuses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm
from sklearn.metrics import roc_auc_score

from pairveil import InputError, PrivacyLedger
from pairveil.engine.statistics import clipped_sum
from pairveil.evaluation.curve import NoisyScores, auc_of, plan_auc, private_pair_auc
from pairveil.learners.histogram import ScoreCounts, root
from pairveil.privacy.grid import choose_grid
from pairveil.records.pairset import CountedPairs

N = 4000
Y = np.repeat([1, -1], N // 2)
PEOPLE = np.arange(2 * N).reshape(-1, 2)
TRUE = float(norm.cdf(0.3 / 0.2 / np.sqrt(2)))


def distances(seed, spread=0.2):
    rng = np.random.default_rng(seed)
    return np.abs(rng.normal(np.where(Y > 0, 1.5, 1.8), spread))


def evaluated(seed, **options):
    given = {"epsilon": 0.5, "delta": 1e-5, "longest": 20.0, "random_state": seed, **options}
    return private_pair_auc(distances(seed), Y, PEOPLE, **given)


def test_the_interval_holds_sampling_and_noise():
    """95 % at least: 7 misses in 25 have a probability below 1e-3, and seeds are fixed."""
    assert binom.sf(6, 25, 0.05) < 1e-3
    found = [evaluated(seed).aucs[0] for seed in range(25)]
    assert sum(not auc.low <= TRUE <= auc.high for auc in found) < 7
    # An AUC that is wrong by 0.08 is seen to be wrong most of the time, so the interval says something.
    assert sum(auc.low <= TRUE - 0.08 <= auc.high for auc in found) < 7


def test_without_noise_it_is_the_usual_auc():
    lengths = np.column_stack([distances(0), distances(1)])
    found = private_pair_auc(lengths, Y, PEOPLE, np.inf, 1e-5, longest=[20.0, 9.0])
    for auc, column in zip(found.aucs, lengths.T, strict=True):
        assert (
            abs(auc.value - roc_auc_score(-Y, column)) < 0.004
        )  # ties within a step of 3 % are half
        assert auc.low < auc.value < auc.high
    assert found.certificate is None


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6), n_scores=st.integers(1, 3), norm_=st.sampled_from(["l1", "l2"]))
def test_no_pair_moves_the_counts_further_than_is_charged(seed, n_scores, norm_):
    rng = np.random.default_rng(seed)
    cells, label = rng.integers(0, 16, (1, n_scores)), rng.choice([-1, 1], 1).astype(np.int8)
    bound = ScoreCounts.bound(16, norm_, n_scores)
    counts = ScoreCounts(16, bound, n_scores)
    grid = choose_grid(bound, 32 * n_scores, norm=norm_, n_pairs=1)
    total = clipped_sum(CountedPairs(cells, label, None, None, None), None, counts, norm_, grid)
    length = np.abs(total * grid).sum() if norm_ == "l1" else np.linalg.norm(total * grid)
    assert length <= counts.sensitivity(norm_, grid, cells.dtype) * (1 + 1e-12)
    # Charging for one score only would be refuted by the pair whose scores are all the highest.
    highest = counts.tile_sum(np.zeros((1, n_scores), dtype=int), label, norm_)
    length = np.abs(highest).sum() if norm_ == "l1" else np.linalg.norm(highest)
    assert (length > ScoreCounts.bound(16, norm_) * 1.2) == (n_scores > 1)


def test_certificate_and_ledger():
    ledger = PrivacyLedger(epsilon=1.0, delta=1e-5)
    planned = plan_auc(distances(0), Y, PEOPLE, 0.5, 1e-6, 20.0)
    found = planned.auc(ledger)
    assert found.certificate.verify()
    assert found.certificate.epsilon <= 0.5
    assert found.certificate.for_release
    assert len(ledger.entries) == 1
    assert "error curve" in found.certificate.promise()
    both = plan_auc(np.ones((N, 2)), Y, PEOPLE, 0.5, 1e-6, 20.0).prepared.certificate
    assert both.verify()
    assert "This evaluation is" in both.promise()
    with pytest.raises(InputError, match="distances must be numbers"):
        private_pair_auc([[np.nan]], [1], [[0, 1]], 1.0, 1e-5, 1.0)
    with pytest.raises(InputError, match="confidence"):
        plan_auc([1.0], [1], [[0, 1]], 1.0, 1e-5, 1.0, confidence=1.5)


def test_one_kind_of_pairs_or_one_distance_say_nothing_and_stop_nothing():
    """What is private never stops an evaluation."""
    nothing = private_pair_auc(distances(0), np.ones(N), PEOPLE, 1.0, 1e-5, 20.0, random_state=0)
    assert nothing.aucs[0] == (0.5, 0.0, 1.0)
    flat = private_pair_auc(np.zeros(N), Y, PEOPLE, 1.0, 1e-5, 0.0, random_state=0).aucs[0]
    assert flat.low < 0.5 < flat.high


def test_the_auc_of_counts_is_that_of_their_pairs():
    counts = np.zeros((2, 256))
    counts[0, [10, 200]], counts[1, [10, 250]] = (500, 300), (200, 600)
    released = NoisyScores(counts @ root(256).T, 0.0)
    value = (500 * (0.5 * 200 + 600) + 300 * 600) / (800 * 800)
    assert abs(auc_of(released, 0, 0.95, 1.0).value - value) < 1e-9


@settings(deadline=None, max_examples=40, derandomize=True, database=None)
@given(
    seed=st.integers(0, 10**6), size=st.sampled_from([0.0, 1e-9, 1.0, 1e12]), shift=st.floats(-9, 9)
)
def test_whatever_the_noise_an_auc_comes_of_it(seed, size, shift):
    """The number of all pairs may be negative: a trial that stopped there would tell of itself."""
    sums = size * (np.random.default_rng(seed).normal(size=(2, 256)) + shift)
    found = auc_of(NoisyScores(sums, size), 0, 0.95, 0.5)
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_people_of_a_household_are_one_person():
    homes = {person: person // 8 for person in range(2 * N)}
    ledger = PrivacyLedger(epsilon=9.0, delta=1e-5, unit="person")
    options = {"unit": "person", "random_state": None, "accountant": ledger}
    certificate = evaluated(0, together=homes, **options).certificate
    assert certificate.kappas == {"pair": 1, "relationship": 1, "person": 4}
    assert certificate.verify().problems == ()
    with pytest.raises(InputError, match="different things by unit 'person'"):
        evaluated(0, **options)
    evaluated(0, together=homes, **options)
    assert len(ledger.entries) == 2
