"""Sums in exact integers: the grid, the sensitivity it costs, and the delta discrete noise costs.

A batch sum is added up tile by tile: each tile's floating-point partial sum is rounded to an
integer multiple of ``grid`` and the integers are added exactly. So neighbouring inputs give outputs
on the same lattice, and no property of floating-point noise can tell them apart. The proofs are in
docs/theory/noise.md.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pairveil.errors import InputError

Norm = Literal["l1", "l2", "range"]

MAX_TILE = 1 << 15
"""Most pairs whose float64 sum may be rounded at once (its own rounding error is charged)."""

MAX_NOISE_IN_GRID = 2.0**48
"""Most noise, in grid steps; the engine takes a coarser grid beyond it, and the sensitivity follows."""

UNIT_ROUNDOFF = 2.0**-53
CLIP_ERROR = 2.0**-30  # a computed clip of up to 2**20 numbers is off by far less
_ENLARGEMENT = 2.0**-20  # share of the clip bound that rounding to the grid may cost


def _width(n_entries: int, norm: Norm) -> float:
    if norm not in ("l1", "l2"):
        raise InputError("norm must be 'l1' or 'l2'")
    return float(n_entries) if norm == "l1" else math.sqrt(n_entries)


def choose_grid(clip: float, n_entries: int, *, norm: Norm = "l2", n_pairs: int = 1 << 30) -> float:
    """Return the grid: a power of two that costs at most 2**-20 of the clip and cannot overflow.

    ``n_pairs``: most records that can be summed (public).
    """
    if not (math.isfinite(clip) and clip > 0.0):
        raise InputError("the clip bound must be finite and greater than 0")
    if n_entries < 1 or n_pairs < 1:
        raise InputError("n_entries and n_pairs must be at least 1")
    exponent = math.frexp(clip)[1] - 1  # 2**exponent <= clip < 2**(exponent + 1)
    width = _width(n_entries, norm)
    finer = math.ceil(math.log2(width / _ENLARGEMENT))
    grid = math.ldexp(1.0, exponent - max(31, finer))
    # An entry of one pair is at most clip, so |sum| <= n_pairs*clip must stay below 2**62.
    if n_pairs * clip / grid > 2.0**62 or grid < 2.0**-1000:
        raise InputError("too many entries and pairs for exact 64-bit sums: use fewer components")
    return grid


def check_noise(noise_multiplier: float, n_entries: int, norm: Norm = "l2") -> None:
    """Refuse, while nothing is spent, noise that cannot be drawn exactly on the grid of any clip bound.

    Less than a grid step is too little. Much noise makes the grid coarser, and the grid's own part of the
    sensitivity, a step an entry, then grows with the noise: beyond a point it cannot be had at all.
    """
    if not noise_multiplier >= 2.0 * choose_grid(1.0, 1):
        raise InputError(
            "so large an epsilon asks for noise that is finer than exact noise can be: choose a smaller one"
        )
    # The sensitivity is below 1.01 (clip + grid * width), so the noise stays below 2^49 steps.
    if not noise_multiplier * _width(n_entries, norm) <= MAX_NOISE_IN_GRID / 2:
        raise InputError(
            "so small an epsilon or delta, or so large a kappa, asks for more noise than exact 64-bit sums "
            "can hold: nothing could be learned from it"
        )


def grid_sensitivity(
    clip: float, grid: float, n_entries: int, norm: Norm = "l2", *, tile: int = 4096
) -> float:
    """Return how far zeroing one pair out can move the integer sum, in the units of ``clip``.

    The clip bound, plus the float64 error of a tile's sum in both worlds, plus half a grid step per
    entry in both worlds. Scale the noise by this instead of the clip. Replacing a pair moves the
    sum by at most twice as much. ``tile``: most records of a rounded partial sum.
    """
    if not 1 <= tile <= MAX_TILE:
        raise InputError(f"a tile must hold between 1 and {MAX_TILE} pairs")
    clipped = clip * (1.0 + CLIP_ERROR)
    gamma = tile * UNIT_ROUNDOFF / (1.0 - tile * UNIT_ROUNDOFF)
    return clipped * (1.0 + 2.0 * gamma * tile) + grid * _width(n_entries, norm)


def to_grid(partial_sum: NDArray[np.float64], grid: float) -> NDArray[np.int64]:
    """Round one tile's partial sum to integer multiples of ``grid``."""
    with np.errstate(over="ignore"):  # an overflow is caught below
        units = np.rint(partial_sum / grid)  # the grid is a power of two: the division is exact
    if not np.all(np.abs(units) < 2.0**62):  # also catches NaN
        raise InputError("a batch sum is not finite or too large for its grid")
    return units.astype(np.int64)


def delta_slack(
    n_samples: int, sigma_in_grid: float, *, shift: float = 10.0, shares: int = 1
) -> float:
    """Return what exact discrete Gaussian noise costs in delta, compared with continuous noise.

    Accounting is done for continuous Gaussian noise. Rounding such noise to the grid is
    post-processing, and the discrete Gaussian's probabilities differ from the rounded Gaussian's by
    a factor of at most exp(1/(8 s^2)) one way and exp(R^2/(24 s^2)) the other within R standard
    deviations, s = ``sigma_in_grid``. Over all samples this adds less than the value returned to
    delta, at every epsilon. ``shift`` is at least kappa / noise_multiplier for the largest kappa that is
    reported, and ``n_samples`` counts entries times steps. ``shares`` is how many
    independent discrete Gaussians of equal variance add up to each sample (docs/theory/parties.md).

    Examples
    --------
    >>> delta_slack(100_000, 2.0**31, shares=30) == delta_slack(100_000, 2.0**31) < 1e-11
    True
    """
    if shares < 1:
        raise InputError("noise has at least one share")
    if n_samples < 0 or not sigma_in_grid >= 2.0 or not shift >= 0.0:
        raise InputError("discrete noise needs n_samples >= 0, sigma_in_grid >= 2 and shift >= 0")
    radius = 20.0 + 2.0 * shift
    variance = sigma_in_grid * sigma_in_grid
    above = n_samples / (8.0 * variance)
    # The discrete normaliser is 1 + 2 sum_k exp(-2 pi^2 s^2 k^2), below 1 + 3 exp(-2 pi^2 s^2).
    below = n_samples * (radius**2 / (24.0 * variance) + 3.0 * math.exp(-19.7 * variance))
    if variance < 4.0 * shares:
        return 1.0  # shares of less than two steps are not proved
    # Each of shares - 1 convolutions moves a log-probability by at most 5 exp(-pi^2 * a share's variance).
    apart = n_samples * 5.0 * (shares - 1) * math.exp(-9.86 * variance / shares)
    above, below = above + apart, below + apart
    if above + below > 1.0:
        return 1.0
    tail = n_samples * 2.0 * math.exp(-200.0)
    return (math.expm1(above + below) + math.expm1(above) + tail) * (1.0 + 1e-9)
