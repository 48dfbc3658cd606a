"""Parts that were asked of different people: the dearest is charged, and nothing passes for such a part."""

import math

import numpy as np
import pytest

from pairveil import PrivacyLedger
from pairveil.errors import InputError
from pairveil.privacy.events import (
    BestOfEvent,
    ChoiceEvent,
    GaussianEvent,
    LaplaceEvent,
    ParallelEvent,
    event_from_dict,
)
from pairveil.privacy.profile import best_guess_of, delta_of, epsilon_of, mu_of, tradeoff_of

LARGE, SMALL = GaussianEvent(8.0, steps=4), GaussianEvent(30.0)
PURE, SAMPLED, CHOICE = LaplaceEvent(9.0, steps=5), GaussianEvent(6.0, 0.1, 50), ChoiceEvent(0.4)
LISTS = [(LARGE,), (SMALL,), (LARGE, CHOICE), (PURE,), (SAMPLED,), (SMALL, PURE), (CHOICE,)]


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize("one", LISTS, ids=range(len(LISTS)))
@pytest.mark.parametrize("other", LISTS, ids=range(len(LISTS)))
def test_alone_the_larger_profile_is_charged_whatever_the_parts_are(one, other, adjacency):
    both = ParallelEvent((one, other))
    how = {"kappa": 2, "adjacency": adjacency}
    epsilons = [epsilon_of(part, delta=1e-5, **how) for part in (one, other)]
    assert epsilon_of([both], delta=1e-5, **how) == max(epsilons)
    deltas = [delta_of(part, epsilon=0.3, **how) for part in (one, other)]
    assert delta_of([both], epsilon=0.3, **how) == max(deltas)


def test_what_it_means_to_a_guesser_is_that_of_the_worse_part():
    both = ParallelEvent(((SMALL,), (LARGE,)))
    assert mu_of([both], kappa=3) == mu_of([LARGE], kappa=3)
    assert mu_of([ParallelEvent(((LARGE,), (PURE,)))], kappa=1) is None
    assert best_guess_of([both], kappa=2) == best_guess_of([LARGE], kappa=2)
    at = np.linspace(0, 1, 9)
    assert np.allclose(
        tradeoff_of([both], kappa=2).at(at), tradeoff_of([LARGE], kappa=2).at(at), atol=1e-3
    )


@pytest.mark.parametrize("one", LISTS, ids=range(len(LISTS)))
@pytest.mark.parametrize("other", LISTS, ids=range(len(LISTS)))
def test_beside_another_release_either_part_is_covered(one, other):
    """Its part may be chosen by whoever saw the other release: one composition covers both."""
    both, beside = ParallelEvent((one, other)), GaussianEvent(12.0)
    charged = epsilon_of([beside, both], kappa=1, delta=1e-5)
    least = max(epsilon_of([beside, *part], kappa=1, delta=1e-5) for part in (one, other))
    assert charged >= least * (1 - 1e-9)
    most = epsilon_of([beside, *one, *other], kappa=1, delta=1e-5)
    if not both.is_pure:
        assert charged <= most * (1 + 1e-9)
    if one in LISTS[:2] and other in LISTS[:2]:  # nothing but Gaussian sums: no more than the worse
        assert charged == pytest.approx(least, rel=1e-9)


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize(
    "one", [(LARGE, CHOICE), (SMALL, CHOICE, PURE), (SMALL, SAMPLED)], ids="abc"
)
@pytest.mark.parametrize("other", [(LARGE,), (SMALL,), (SMALL, PURE), (LARGE, SAMPLED)], ids="ABCD")
def test_gaussian_sums_of_both_parts_are_not_added_up(one, other, adjacency):
    """Beside another release the larger Gaussian is charged once, with all that is no Gaussian."""
    how = {"kappa": 2, "delta": 1e-5, "adjacency": adjacency}
    beside, either = GaussianEvent(12.0), {*one, *other}
    charged = epsilon_of([beside, ParallelEvent((one, other))], **how)
    dearer = LARGE if LARGE in either else SMALL
    rest = [event for event in (*one, *other) if event not in (LARGE, SMALL)]
    assert charged == pytest.approx(epsilon_of([beside, dearer, *rest], **how), rel=1e-9)
    assert charged >= max(epsilon_of([beside, *part], **how) for part in (one, other)) * (1 - 1e-9)


def test_a_score_costs_a_ledger_little_more_than_the_learning_beside_it():
    learned, scored = (CHOICE, LARGE), (LARGE,)
    ledgers = [PrivacyLedger(9.0, 1e-5, unit="pair") for _ in range(2)]
    for ledger, event in zip(ledgers, (ParallelEvent((learned, scored)), None), strict=True):
        ledger.spend(learned if event is None else [event], {"pair": 1}, graph="g")
        ledger.spend([GaussianEvent(1000.0)], {"pair": 1}, graph="g")
    assert ledgers[0].spent() == pytest.approx(ledgers[1].spent(), rel=1e-9)


def test_pure_parts_stay_pure_and_cost_the_larger_epsilon():
    parts = ParallelEvent(((LaplaceEvent(4.0),), (LaplaceEvent(2.0), LaplaceEvent(4.0))))
    assert parts.is_pure
    assert epsilon_of([parts], kappa=1, delta=0.0) == 0.75
    assert epsilon_of([parts, LaplaceEvent(4.0)], kappa=1, delta=0.0) == pytest.approx(
        1.0, rel=1e-9
    )


def test_a_part_without_noise_has_no_epsilon():
    for inside in (GaussianEvent(0.0), LaplaceEvent(0.0)):
        parts = ParallelEvent(((LARGE,), (inside,)))
        assert epsilon_of([parts], kappa=1, delta=1e-5) == math.inf
        assert epsilon_of([parts, LARGE], kappa=1, delta=1e-5) == math.inf


def test_a_ledger_adds_up_the_worse_part_of_each_release():
    ledger = PrivacyLedger(5.0, 1e-5, unit="pair")
    for _ in range(2):
        ledger.spend([ParallelEvent(((LARGE,), (SMALL,)))], {"pair": 1}, graph="g")
    assert ledger.spent() == pytest.approx(epsilon_of([LARGE] * 2, kappa=1, delta=1e-5), rel=1e-9)


@pytest.mark.parametrize(
    "parts",
    [(), ((LARGE,),), ((LARGE,), ()), ((LARGE,), (ParallelEvent(((LARGE,), (SMALL,))),)),
     ((LARGE,), (BestOfEvent(2, 0.0, ((LARGE,),)),)), "ab"],
)  # fmt: skip
def test_what_is_no_two_lists_of_plain_events_is_refused(parts):
    with pytest.raises(InputError):
        ParallelEvent(parts)


def test_a_stored_event_comes_back_and_nothing_in_it_is_skipped():
    event = ParallelEvent(((LARGE, CHOICE), (SMALL,)))
    data = event.to_dict()
    assert event_from_dict(data) == event
    for wrong in (
        {"parts": []},
        {"parts": [[{"kind": "gaussian"}], [SMALL.to_dict()]]},
        {"more": 1},
    ):
        with pytest.raises(InputError):
            event_from_dict(data | wrong)
