"""Noise, kappas and deltas at the ends of the floats: infinite or an InputError, never less than is true."""

import itertools
import math

import numpy as np
import pytest

from pairveil.privacy.compose import UnresolvableError, discretise_choice, on_grid, sampled_counts
from pairveil.privacy.events import (
    ChoiceEvent,
    DisjointGaussianEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
)
from pairveil.privacy.profile import best_guess_of, delta_of, epsilon_of, mu_of
from pairveil.records.kinds import Cost

NOISES = (5e-324, 1e-308, 1e-160, 1e-20, 1e20, 1e160, 1e308)
KAPPAS = (1, 10**9, 2**53, Cost(2**53), Cost(1, 2.0, empties=False))


def _events(noise: float) -> tuple[Event, ...]:
    return (
        GaussianEvent(noise),
        GaussianEvent(noise, 0.1, 10),
        DisjointGaussianEvent(noise, 3),
        LaplaceEvent(noise),
        ChoiceEvent(noise),
        ChoiceEvent(noise, 2),
    )


@pytest.mark.parametrize("noise", NOISES)
def test_no_end_of_the_floats_crashes_or_counts_as_nothing(noise):
    for event, kappa in itertools.product(_events(noise), KAPPAS):
        for delta in (0.0, 5e-324, 1e-5):
            epsilon = epsilon_of([event], kappa=kappa, adjacency="replace", delta=delta)
            assert epsilon >= 0.0
            gaussian = isinstance(event, GaussianEvent | DisjointGaussianEvent)
            if gaussian and delta == 0.0:
                assert epsilon == math.inf, "Gaussian noise has no pure epsilon, however much of it"
        assert 0.0 <= delta_of([event], epsilon=0.0, kappa=kappa) <= 1.0
        assert 0.5 <= best_guess_of([event], kappa=kappa) <= 1.0
        mu_of([event], kappa=kappa)


@pytest.mark.parametrize("eta", [5e-324, 1e-320, 1e-200, 1e308])
def test_a_choice_at_the_ends_hides_no_other_event(eta):
    others = [LaplaceEvent(1.0), LaplaceEvent(2.0), GaussianEvent(2.0)]
    alone = epsilon_of(others, kappa=1, delta=1e-5)
    together = epsilon_of([ChoiceEvent(eta), *others], kappa=1, delta=1e-5)
    assert together >= alone * (1 - 1e-3)
    least = delta_of(others, epsilon=0.0, kappa=1)
    assert delta_of([ChoiceEvent(eta), *others], epsilon=0.0, kappa=1) >= least * (1 - 1e-3)


def test_a_distribution_that_lost_mass_is_no_bound():
    for broken in (np.array([0.5, 0.4]), np.array([0.5, math.nan])):
        with pytest.raises(UnresolvableError):
            on_grid(0.1, 0, broken)
    for eta, interval in ((5e-324, 0.1), (1e-3, 1e50)):
        pmf = discretise_choice(eta, interval)
        assert abs(float(pmf._probs.sum()) - 1.0) < 1e-12


@pytest.mark.parametrize("kappa", [10**6, 10**9, 10**12, 10**18, 10**30])
def test_counts_of_a_huge_kappa_are_few(kappa):
    counts, weights, lost = sampled_counts(kappa, 0.1, 1e-19)
    assert counts.size <= 97
    assert abs(weights.sum() + lost - 1.0) < 1e-10
    assert (weights @ counts) >= 0.1 * kappa * (1 - 1e-9)
    # Where there are few counts they stay within reach: not a handful over the whole of kappa.
    assert kappa > 10**9 or np.diff(counts).max() < 100 * math.sqrt(kappa)
