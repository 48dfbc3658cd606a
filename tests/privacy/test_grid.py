"""Integer sums: the grid, what it costs, and what discrete noise costs."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from pairveil.errors import InputError
from pairveil.privacy.compose import delta_from_mu
from pairveil.privacy.grid import MAX_TILE, choose_grid, delta_slack, grid_sensitivity, to_grid
from pairveil.privacy.mechanisms import slack_of_plan


@pytest.mark.parametrize("clip", [1e-6, 0.1, 1.0, 3.7, 1e5])
@pytest.mark.parametrize(
    ("n_entries", "norm", "n_pairs"),
    [(1, "l2", 2**30), (10_000, "l2", 2**30), (2**22, "l2", 2**20), (10_000, "l1", 20_000)],
)
def test_the_grid_is_a_power_of_two_cheap_and_roomy(clip, n_entries, norm, n_pairs):
    grid = choose_grid(clip, n_entries, norm=norm, n_pairs=n_pairs)
    assert math.frexp(grid)[0] == 0.5
    width = n_entries if norm == "l1" else math.sqrt(n_entries)
    assert grid * width <= 2.0**-20 * clip
    assert n_pairs * clip / grid <= 2.0**62
    enlarged = grid_sensitivity(clip, grid, n_entries, norm)
    assert clip < enlarged <= clip * (1 + 2.0**-19)


def test_impossible_grids_are_refused():
    with pytest.raises(InputError, match="64-bit"):
        choose_grid(1.0, 10**7, norm="l1", n_pairs=2**30)
    for wrong in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InputError):
            choose_grid(wrong, 10)
    with pytest.raises(InputError):
        choose_grid(1.0, 0)
    with pytest.raises(InputError):
        grid_sensitivity(1.0, 2.0**-31, 10, tile=MAX_TILE + 1)
    with pytest.raises(InputError):
        grid_sensitivity(1.0, 2.0**-31, 10, norm="l3")


def clipped(rows, norm, clip):
    size = np.abs(rows).sum(1) if norm == "l1" else np.sqrt((rows**2).sum(1))
    return rows * np.minimum(1.0, clip / size)[:, None]


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_zeroing_a_pair_out_moves_the_integer_sum_no_further_than_stated(norm):
    """A coarse grid makes rounding visible: the stated bound holds, the bare clip does not."""
    rng = np.random.default_rng(3)
    clip, grid, tile, entries = 1.0, 2.0**-4, 8, 40
    stated = grid_sensitivity(clip, grid, entries, norm, tile=tile)
    worst = 0.0
    for _ in range(300):
        rows = clipped(rng.normal(size=(tile, entries)), norm, clip)
        without = rows.copy()
        without[0] = 0.0
        moved = (to_grid(rows.sum(0), grid) - to_grid(without.sum(0), grid)) * grid
        worst = max(worst, np.abs(moved).sum() if norm == "l1" else math.sqrt((moved**2).sum()))
    assert clip < worst <= stated


def test_sums_that_are_not_numbers_are_refused():
    for wrong in (math.nan, math.inf, 1e300):
        with pytest.raises(InputError, match="not finite"):
            to_grid(np.array([0.0, wrong]), 2.0**-31)


def exact_ratio_bound(s, reach):
    """Largest |ln| ratio of rounded and discrete Gaussian within reach, from the definitions."""
    from scipy.stats import norm as normal

    z = np.arange(0, int(reach * s) + 1)
    weights = np.exp(-(np.arange(-int(60 * s), int(60 * s) + 1) ** 2) / (2 * s * s))
    discrete = np.exp(-(z**2) / (2 * s * s)) / weights.sum()
    rounded = normal.sf((z - 0.5) / s) - normal.sf((z + 0.5) / s)
    return np.log(discrete / rounded).max(), np.log(rounded / discrete).max()


@pytest.mark.parametrize("s", [2.0, 3.5, 10.0])
def test_the_two_ratios_of_the_proof(s):
    above, below = exact_ratio_bound(s, 8.0)
    assert above <= 1 / (8 * s * s)
    assert below <= 8.0**2 / (24 * s * s) + 3 * math.exp(-19.7 * s * s)
    # The bounds are not idle: the truth is within a factor of four.
    assert above >= 1 / (32 * s * s)
    assert below >= 8.0**2 / (96 * s * s)


def discrete_profile(s, shift, epsilon):
    """Exact delta(epsilon) of one discrete Gaussian sample shifted by an integer."""
    z = np.arange(-int(40 * s), int(40 * s) + 1)
    p = np.exp(-(z**2) / (2 * s * s))
    q = np.exp(-((z - shift) ** 2) / (2 * s * s))
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum() / p.sum())


@pytest.mark.parametrize("s", [8.0, 40.0])
@pytest.mark.parametrize("multiple", [0.5, 1.0, 3.0])
def test_delta_slack_covers_what_the_discrete_gaussian_exceeds(s, multiple):
    from scipy.stats import norm as normal

    shift = round(multiple * s)
    mu = shift / s
    slack = delta_slack(1, s, shift=mu)
    for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0, 5.0):
        t = epsilon / mu
        continuous = normal.cdf(mu / 2 - t) - math.exp(epsilon) * normal.cdf(-mu / 2 - t)
        assert discrete_profile(s, shift, epsilon) <= continuous + slack


def test_delta_slack_grows_with_samples_and_coarseness():
    base = delta_slack(10**5, 2.0**31)
    assert 0.0 < base < 1e-11
    assert delta_slack(10**6, 2.0**31) > base
    assert delta_slack(10**5, 2.0**30) > base
    assert delta_slack(10**5, 2.0**31, shift=100.0) > base
    assert delta_slack(10**9, 4.0) == 1.0
    assert delta_slack(0, 2.0**31) == 0.0
    for wrong in ((-1, 100.0, 1.0), (1, 1.0, 1.0), (1, math.nan, 1.0), (1, 100.0, -1.0)):
        with pytest.raises(InputError):
            delta_slack(wrong[0], wrong[1], shift=wrong[2])


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_each_error_is_charged_by_itself(norm):
    """Too small to be seen in sums, and still owed: a grid so fine that only float errors are left."""
    clip, tile, unit = 1.0, 4096, Fraction(1, 2**53)
    fine = grid_sensitivity(clip, 2.0**-900, 10, norm, tile=tile)
    gamma = tile * unit / (1 - tile * unit)  # of a sum of `tile` numbers (Higham 2002, section 4.2)
    # In both inputs, over up to `tile` pairs whose terms add up to `tile` clips at most.
    assert Fraction(fine) - 1 > 2 * gamma * tile
    coarse = grid_sensitivity(clip, 2.0**-10, 10, norm, tile=tile)
    width = 10 if norm == "l1" else math.sqrt(10)
    assert coarse - fine == pytest.approx(2.0**-10 * width, rel=1e-9)


def test_the_slack_of_replaced_records_needs_their_number_once():
    """Both worlds lie kappa clips to either side of the one without the records: exact sums of both."""
    for steps in (2.0, 4.0, 16.0):  # of the grid in one standard deviation
        for away in (0.3, 1.0, 3.0):
            apart = max(1, round(away * steps))
            at = np.arange(-60 * int(steps) - apart, 60 * int(steps) + apart + 1)
            whole = np.exp(-(at**2) / (2 * steps**2)).sum()
            one, other = (
                np.exp(-((at - sign * apart) ** 2) / (2 * steps**2)) / whole for sign in (1, -1)
            )
            slack = delta_slack(1, steps, shift=apart / steps)
            for epsilon in np.linspace(0.0, 8.0 * away, 9):
                real = np.maximum(one - np.exp(epsilon) * other, 0.0).sum()
                assert real <= delta_from_mu(2 * apart / steps, float(epsilon)) + slack


@pytest.mark.parametrize(
    ("kappa", "entries"), [(10**400, 3), (1, 10**400)], ids=["kappa", "entries"]
)
def test_a_plan_beyond_the_floats_leaves_nothing_of_delta(kappa, entries):
    release = {"mechanism": "gaussian", "noise_multiplier": 40.0, "steps": 1, "entries": entries}
    assert slack_of_plan({"releases": [release]}, kappa) == 1.0
