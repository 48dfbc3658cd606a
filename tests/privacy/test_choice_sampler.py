"""Choices are drawn with the probabilities that are charged: exactly, and by no other mechanism.

False-failure rate: every statistical check fails a right sampler with probability 1e-6; keys and seeds
are fixed (but for OpenDP and `TrustedNoise`), so a check that passed keeps passing until the code changes.
"""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from scipy import stats

from pairveil.errors import InputError
from pairveil.privacy import samplers as exact_choice
from pairveil.privacy.compose import choice_delta
from pairveil.privacy.events import ChoiceEvent, event_from_dict
from pairveil.privacy.noise import SeededNoise, TrustedNoise
from pairveil.privacy.samplers import Keystream, choose_exactly, rate_below, whole_scores

KEY = bytes(range(32))
RATE = 1e-6
DRAWS = 300_000
TOP = 2**63 - 1


def expected(scores, eta, unit):
    exponents = np.array([float(Fraction(eta) * (u - max(scores)) / unit) for u in scores])
    weights = np.exp(exponents)
    return weights / weights.sum()


def p_value(drawn, probabilities):
    """Chi-square p-value; candidates expecting fewer than 10 draws are pooled."""
    counts = np.bincount(drawn, minlength=probabilities.size)
    common = probabilities * drawn.size >= 10
    wanted = np.append(probabilities[common], probabilities[~common].sum()) * drawn.size
    counted = np.append(counts[common], counts[~common].sum())
    if wanted[-1] == 0.0:
        assert counted[-1] == 0
        wanted, counted = wanted[:-1], counted[:-1]
    statistic = ((counted - wanted) ** 2 / wanted).sum()
    return float(stats.chi2.sf(statistic, wanted.size - 1))


INSTANCES = [
    ([0, 1, 2, 3, 4], 1.0, 1),
    ([5, -3, 0], 0.1, 1),
    ([-100, -140, -101, -250], 0.7, 16),
    ([3, 2, 0], 2.5, 2),  # more than one unit of eta a step: the whole part of the rate
    ([1, 0, 0, 0, 0, 0, 0], 3.7, 1),
    ([2**40, 2**40 - 2**20, 0, 2**40 - 2**19], 1.3, 2**20),
    ([TOP, TOP - 2**51, -TOP - 1, TOP - 2**50], 0.9, 2**52),  # differences beyond 63 bits
    (list(range(0, 400, 3)), 0.02, 1),
]


@pytest.mark.parametrize(("scores", "eta", "unit"), INSTANCES)
def test_draws_follow_the_softmax_and_no_wrong_eta(scores, eta, unit):
    drawn = choose_exactly(np.array(scores), eta, unit, Keystream(KEY), count=DRAWS)
    assert p_value(drawn, expected(scores, eta, unit)) > RATE
    for wrong in (2 / 3, 0.9, 1.1, 3 / 2):
        assert p_value(drawn, expected(scores, eta * wrong, unit)) < RATE


@pytest.mark.parametrize("source", ["seeded", "trusted"])
def test_all_sources_choose_alike(source):
    scores, eta, unit = np.array([9, 0, 4, -8]), 0.5, 4
    noise = SeededNoise(7) if source == "seeded" else TrustedNoise()
    drawn = np.array([noise.choose(scores, eta, unit) for _ in range(5000)])
    assert p_value(drawn, expected(scores.tolist(), eta, unit)) > RATE
    for wrong in (2 / 3, 3 / 2):
        assert p_value(drawn, expected(scores.tolist(), eta * wrong, unit)) < RATE


def opendp_choice(measure, scale):
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    metric = dp.linf_distance(T="i64", monotonic=True)
    return dp.m.make_noisy_top_k(domain, metric, measure, k=1, scale=scale)


@pytest.mark.oracle
def test_agrees_with_opendp():
    """OpenDP's Gumbel choice is ours; its measure says eta^2/8-zCDP, as our accounting does."""
    scores, eta, draws = np.array([3, 2, 0, -4]), 0.5, 8000
    reference = opendp_choice(dp.zero_concentrated_divergence(), 1 / eta)
    assert reference.map(1) == pytest.approx(eta**2 / 8, rel=1e-9)
    theirs = np.array([reference(scores.tolist())[0] for _ in range(draws)])

    def against(eta):
        ours = choose_exactly(scores, eta, 1, Keystream(KEY), count=draws)
        table = [np.bincount(drawn, minlength=4) for drawn in (ours, theirs)]
        return float(stats.chi2_contingency(table).pvalue)

    assert against(eta) > RATE
    assert against(eta * 2 / 3) < RATE
    # Their choice for pure privacy is permute-and-flip: found out, but for once in 10^9 runs.
    culprit = opendp_choice(dp.max_divergence(), 1 / eta)
    drawn = np.array([culprit([3, 2, 0])[0] for _ in range(4000)])
    assert p_value(drawn, expected([3, 2, 0], eta, 1)) < RATE


def advantage_bounds(chosen, draws):
    """Bounds on P(0 | x) - P(0 | x') from counts, each side failing with probability RATE / 2."""
    (a, b), level = chosen, RATE / 4
    low = stats.beta.ppf(level, a, draws - a + 1) - stats.beta.isf(level, b + 1, draws - b)
    high = stats.beta.isf(level, a + 1, draws - a) - stats.beta.ppf(level, b, draws - b + 1)
    return float(low), float(high)


def without_replacement(scores, eta, count, rng):
    """Permute-and-flip, planted: candidates in random order, the refused ones not drawn again."""
    keep = np.exp(eta * (np.asarray(scores) - max(scores)))
    order = np.argsort(rng.random((count, keep.size)), axis=1)
    kept = rng.random(order.shape) < keep[order]  # the best one always is
    return order[np.arange(count), np.argmax(kept, axis=1)]


def test_an_audit_convicts_permute_and_flip_and_acquits_the_choice():
    """Scores (1, 0) against (0, 0), one record zeroed out, eta = 1: the charge allows tanh(1/4)."""
    eta, draws, neighbours = 1.0, 50_000, ([1, 0], [0, 0])
    rng, stream = np.random.default_rng(0), Keystream(KEY)
    planted = [np.sum(without_replacement(u, eta, draws, rng) == 0) for u in neighbours]
    assert advantage_bounds(planted, draws)[0] > choice_delta(eta, 0.0)
    ours = [np.sum(choose_exactly(u, eta, 1, stream, draws) == 0) for u in neighbours]
    low, high = advantage_bounds(ours, draws)
    assert low <= choice_delta(eta, 0.0)
    assert low <= expected([1, 0], eta, 1)[0] - 0.5 <= high


def test_a_sampler_without_replacement_is_found_out():
    scores, eta = [2, 1, 0], 0.8
    drawn = without_replacement(scores, eta, 20_000, np.random.default_rng(0))
    assert p_value(drawn, expected(scores, eta, 1)) < RATE


def test_products_of_words_are_exact():
    rng = np.random.default_rng(0)
    numbers = [0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1, *rng.integers(0, 2**64, 40, np.uint64)]
    for one, other in itertools.product(numbers, repeat=2):
        high, low = exact_choice._product(np.uint64(one), np.uint64(other))
        assert (int(high) << 64) + int(low) == int(one) * int(other)


def words(*values):
    return np.array(values, dtype=np.uint64)


def test_a_coin_follows_its_tosses():
    """y = f/2^64: t = 1 fails when the word is at least f; t = 2 needs a word below f and a half."""
    f, yes, no, last = np.uint64(2**63), 2**63 - 1, 2**63, 2**64 - 1
    low, high = 0, 2**64 - 3  # coins 1/t: hit, no hit (1/2 refuses the last two words)
    assert exact_choice._exp_coin(words(no), 0, f, False) == (True, 1)  # t = 1
    assert exact_choice._exp_coin(words(yes, no), 0, f, False) == (False, 2)  # t = 2, by y
    assert exact_choice._exp_coin(words(yes, yes, high), 0, f, False) == (False, 3)  # t = 2, by 1/2
    assert exact_choice._exp_coin(words(yes, yes, low, no), 0, f, False) == (True, 4)  # t = 3
    assert exact_choice._exp_coin(words(yes, yes, last, low, no), 0, f, False) == (
        True,
        5,
    )  # refused
    assert exact_choice._exp_coin(words(yes, yes, low, yes), 0, f, False)[1] == -1  # words ran out
    # y = 1: the first toss always holds; then 1/2, 1/3, ...
    assert exact_choice._exp_coin(words(high), 0, np.uint64(0), True) == (False, 1)
    assert exact_choice._exp_coin(words(low, high), 0, np.uint64(0), True) == (True, 2)
    assert exact_choice._exp_coin(words(), 0, np.uint64(0), True)[1] == -1


def attempt(first, scores, rate_whole=0, rate_part=1):
    """What one word does to a choice: the candidate kept, or None, and the words spent."""
    out = np.full(1, -7)
    whole = np.array(scores, dtype=np.int64)
    best = whole.max().astype(np.uint64)
    rate = np.uint64(rate_whole), np.uint64(rate_part)
    done, at = exact_choice._fill_choices(out, 0, words(*first), whole, best, *rate)
    return (int(out[0]) if done else None), at


def test_candidates_are_uniform_over_words():
    share = (2**64 - 1) // 5
    for c in range(5):
        for word in (c * share, c * share + share // 2, (c + 1) * share - 1):
            # Equal scores: x = 0, the word behind decides nothing.
            assert attempt((word, 5), [4] * 5) == (c, 2)
    # Words beyond five whole shares are spent and choose nobody.
    assert attempt((5 * share,), [4] * 5) == (None, 1)
    assert attempt((2**64 - 1, 0, 9), [4] * 5) == (0, 3)
    # A half-read attempt spends nothing.
    assert attempt((0,), [4] * 5) == (None, 0)


def test_refused_candidates_may_be_drawn_again():
    """With replacement: the same worst candidate, refused once, can still be the answer."""
    second = 2**63 + 5  # the second of two candidates
    # x = 1/2 (rate 2^63/2^64): toss y hit, toss y miss: t = 2, refused; then t = 1, kept.
    tosses = (second, 0, 2**63, second, 2**63)
    assert attempt(tosses, [1, 0], rate_part=2**63) == (1, 5)
    # x = 1 + 1/2 through the whole part of the rate: one coin e^-1 (1/2 hit, 1/3 not), then t = 1.
    tosses = (second, 0, 2**64 - 2, 2**63)
    assert attempt(tosses, [1, 0], rate_whole=1, rate_part=2**63) == (1, 4)


@pytest.mark.parametrize("block", [64, 7, 1])
def test_choices_do_not_depend_on_where_the_blocks_end(block):
    scores = np.array([0, 5, 9, 3])
    whole = choose_exactly(scores, 0.4, 1, Keystream(KEY), 500)
    np.testing.assert_array_equal(whole, choose_exactly(scores, 0.4, 1, Keystream(KEY, block), 500))
    stream = Keystream(KEY, block)
    parts = [choose_exactly(scores, 0.4, 1, stream, n) for n in (1, 0, 99, 400)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))


def test_many_candidates_with_one_far_ahead():
    """The slowest case: about n attempts for a draw."""
    scores = np.zeros(100_000, dtype=np.int64)
    scores[77_777] = 10**6
    assert choose_exactly(scores, 1.0, 1, Keystream(KEY), 3).tolist() == [77_777] * 3
    even = choose_exactly(np.zeros(1000, dtype=np.int64), 1.0, 1, Keystream(KEY), 100_000)
    assert stats.chisquare(np.bincount(even, minlength=1000)).pvalue > RATE


def test_eta_is_never_rounded_up():
    for eta, unit in ((0.1, 3), (1e-9, 2**20), (7.7, 10), (0.5, 2**40)):
        rate = Fraction(rate_below(eta, unit), 2**64)
        assert 0 <= Fraction(eta) / unit - rate < Fraction(1, 2**64)
    for eta, unit in ((1e-300, 1), (1e300, 1)):
        with pytest.raises(InputError, match="unit"):
            rate_below(eta, unit)


def test_no_noise_takes_the_first_best():
    for noise in (SeededNoise(0), TrustedNoise()):
        assert noise.choose(np.array([1, 4, 4]), math.inf) == 1
        assert noise.choose(np.array([-5]), 0.1) == 0
    assert SeededNoise(3).choose(np.arange(9), 0.1) == SeededNoise(3).choose(np.arange(9), 0.1)


@pytest.mark.parametrize(
    ("scores", "eta", "unit"),
    [
        (np.array([0.5, 1.0]), 0.1, 1),  # floats: a sum that was never rounded
        (np.array([1, 2], dtype=np.uint64), 0.1, 1),
        (np.array([True, False]), 0.1, 1),
        (np.array([[1, 2]]), 0.1, 1),
        (np.array([], dtype=np.int64), 0.1, 1),
        (np.array([1, 2]), 0.0, 1),
        (np.array([1, 2]), -1.0, 1),
        (np.array([1, 2]), math.nan, 1),
        (np.array([1, 2]), "1", 1),
        (np.array([1, 2]), 0.1, 0),
        (np.array([1, 2]), 0.1, 2**53),
        (np.array([1, 2]), 0.1, 2.0),
        (np.array([1, 2]), 1e-300, 1),
    ],
)
def test_misuse_is_refused(scores, eta, unit):
    for noise in (SeededNoise(0), TrustedNoise()):
        with pytest.raises(InputError):
            noise.choose(scores, eta, unit)


def test_scores_go_from_contributions_to_a_choice():
    """The whole way: clipped contributions, integers, a choice, its event."""
    signs = np.array([1, 1, 1, -1])
    values = np.array([[1.0, 0.1], [1.0, 0.0], [0.9, 0.2], [0.0, 1.0]])
    scores = whole_scores(values, signs, unit=1 << 20)
    drawn = choose_exactly(scores, 1.0, 1 << 20, Keystream(KEY), 20_000)
    wanted = expected([2.9, 0.3 - 1.0], 1.0, 1)
    assert p_value(drawn, wanted) > RATE


EVENTS = [ChoiceEvent(0.1), ChoiceEvent(np.float32(0.5), np.int64(3)), ChoiceEvent(math.inf, 2)]


@pytest.mark.parametrize("event", EVENTS, ids=str)
def test_events_survive_json(event):
    text = json.dumps(event.to_dict(), allow_nan=False)
    assert event_from_dict(json.loads(text)) == event
    assert type(event.eta) is float
    assert json.loads(text)["kind"] == "choice"


@pytest.mark.parametrize(
    "data",
    [
        {"kind": "choice", "eta": 0.1},
        {"kind": "choice", "eta": 0.1, "steps": 1, "sample_rate": 0.5},  # never amplified
        {"kind": "choice", "eta": 0.1, "steps": 1, "cost": 0.5},
        {"kind": "choice", "eta": 0.0, "steps": 1},
        {"kind": "choice", "eta": -1.0, "steps": 1},
        {"kind": "choice", "eta": "0.1", "steps": 1},
        {"kind": "choice", "eta": None, "steps": 1},
        {"kind": "choice", "eta": True, "steps": 1},
        {"kind": "choice", "eta": math.nan, "steps": 1},
        {"kind": "choice", "eta": 0.1, "steps": 0},
        {"kind": "choice", "eta": 0.1, "steps": 1.0},
    ],
)
def test_events_that_are_no_choices_fail_closed(data):
    with pytest.raises(InputError):
        event_from_dict(data)
