"""Where randomness comes from: trusted for a release, seeded for experiments.

Both sources have the same four methods. ``TrustedNoise`` draws from the operating system, adds exact
discrete noise to integers and chooses by integers exactly; ``SeededNoise`` is fast, reproducible, and
marks what it touches as not for release.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pairveil.errors import InputError
from pairveil.privacy.samplers import (
    GAUSSIAN,
    Family,
    choose_exactly,
    draw,
    exact_scores,
    poisson_sample,
    process_keystream,
    rate_below,
    scale_above,
)
from pairveil.privacy.units import PARTIES_NOISE, SEEDED_NOISE, TRUSTED_NOISE

_MAX_SCALE = 2.0**49  # in grid units: what the compiled sampler takes; 2**14 of it fit 64 bits
_LEAST, _MOST = -(2**63), 2**63 - 1


class NoiseSource(Protocol):
    """What the engine asks of a source of randomness."""

    name: str
    for_release: bool

    def noisy(
        self, family: Family, total: NDArray[Any], scale: float, grid: float | None = None
    ) -> NDArray[np.float64]:
        """Return ``total`` with Gaussian noise of deviation ``scale``, or Laplace noise of that scale."""

    def sample(self, n: int, q: float) -> NDArray[np.int64]:
        """Return the sorted indices of a Poisson sample: each of ``n`` items with chance ``q``."""

    def choose(self, scores: NDArray[Any], eta: float, unit: int = 1) -> int:
        """Return an index c with probability proportional to exp(eta * scores[c] / unit).

        One draw is a ``ChoiceEvent(eta)`` if one record's integer contributions to the scores have a
        range of at most ``unit`` over the candidates (`pairveil.privacy.samplers.whole_scores`).
        """


NoiseMaker = Callable[[np.random.Generator], NoiseSource]


def _check(total: NDArray[Any], scale: float, grid: float | None) -> None:
    if not (math.isfinite(scale) and scale > 0.0):
        raise InputError("the noise scale must be finite and greater than 0")
    if grid is None:
        return
    if total.dtype.kind not in "iu":
        raise InputError("with a grid, the total must hold integer multiples of the grid")
    if math.frexp(grid)[0] != 0.5:
        raise InputError("the grid must be a power of two")
    if not 1.0 <= scale / grid <= _MAX_SCALE:
        raise InputError("the noise is too small or too large for its grid: change clip or epsilon")


class SeededNoise:
    """Fast NumPy noise from a seed: for experiments and tests, never for a release.

    ``rng``: numpy Generator or RandomState, int or None; None draws a seed from the operating system; the
    noise is still floating-point noise.
    """

    name = SEEDED_NOISE
    for_release = False

    def __init__(
        self, rng: np.random.Generator | np.random.RandomState | int | None = None
    ) -> None:
        if isinstance(rng, np.random.RandomState):  # the same stream of bits: drawing uses it up
            rng = np.random.Generator(rng._bit_generator)  # type: ignore[attr-defined]
        self._rng = np.random.default_rng(rng)

    def noisy(
        self, family: Family, total: NDArray[Any], scale: float, grid: float | None = None
    ) -> NDArray[np.float64]:
        """Return ``total`` plus noise; with a grid, both are multiples of it."""
        _check(total, scale, grid)
        if family == GAUSSIAN:
            return _on_grid(total, self._rng.normal(0.0, scale, total.shape), grid)
        return _on_grid(total, self._rng.laplace(0.0, scale, total.shape), grid)

    def sample(self, n: int, q: float) -> NDArray[np.int64]:
        """Return a Poisson sample; small rates skip from hit to hit instead of asking every item."""
        if n < 0 or not 0.0 < q <= 1.0:
            raise InputError("sampling needs n >= 0 and a rate in (0, 1]")
        if q == 1.0:
            return np.arange(n, dtype=np.int64)
        if q > 0.1:
            return np.flatnonzero(self._rng.random(n) < q).astype(np.int64)
        hits: list[NDArray[np.int64]] = []
        last = -1
        while last < n:
            # Gaps between hits are geometric; draw a few more than are expected to be needed.
            expected = (n - last) * q
            skips = self._rng.geometric(q, int(expected + 4.0 * math.sqrt(expected) + 8.0))
            hits.append(last + np.cumsum(np.minimum(skips, n + 1)))
            last = int(hits[-1][-1])
        found = np.concatenate(hits)
        return found[found < n].astype(np.int64)

    def choose(self, scores: NDArray[Any], eta: float, unit: int = 1) -> int:
        """Return an index c with probability proportional to exp(eta * scores[c] / unit).

        The largest of the scores with Gumbel noise, in floating point.
        """
        whole = exact_scores(scores, eta, unit)
        if math.isinf(eta):
            return int(np.argmax(whole))
        rate_below(eta, unit)  # refuses what the exact sampler refuses
        below = (whole.max().astype(np.uint64) - whole.astype(np.uint64)).astype(np.float64)
        return int(np.argmax(self._rng.gumbel(size=whole.size) - (eta / unit) * below))


def _on_grid(
    total: NDArray[Any], noise: NDArray[np.float64], grid: float | None
) -> NDArray[np.float64]:
    if grid is None:
        return np.asarray(total + noise, dtype=np.float64)
    return (total + np.rint(noise / grid)) * grid


class TrustedNoise:
    """Noise for a release: operating-system entropy, exact discrete distributions on a grid.

    It holds no state, so that forked or copied processes never share a stream. The samplers are those of
    `pairveil.privacy.samplers`; the tests hold them against OpenDP's.
    """

    name = TRUSTED_NOISE.format(sampler="compiled")
    for_release = True

    def noisy(
        self, family: Family, total: NDArray[Any], scale: float, grid: float | None = None
    ) -> NDArray[np.float64]:
        """Return (total + discrete noise) * grid; ``total`` counts grid steps."""
        if grid is None:
            raise InputError("trusted noise is exact on a grid: give the grid")
        _check(total, scale, grid)
        found = np.empty(total.shape)
        if total.size:
            drawn = draw(family, scale_above(scale / grid), total.size, process_keystream())
            _add(total.astype(np.int64, copy=False).ravel(), drawn, grid, found.ravel())
        return found

    def sample(self, n: int, q: float) -> NDArray[np.int64]:
        """Return a Poisson sample; each item's chance is ``q``, rounded down, exactly."""
        return poisson_sample(n, q, process_keystream())

    def choose(self, scores: NDArray[Any], eta: float, unit: int = 1) -> int:
        """Return an index c with probability proportional to exp(eta * scores[c] / unit), exactly."""
        return int(choose_exactly(scores, eta, unit, process_keystream())[0])


class PartiesNoise(TrustedNoise):
    """The same at each of several parties, which draw a share of the noise each (docs/theory/parties.md)."""

    name = PARTIES_NOISE


@njit(cache=True, _nrt=False)  # allocates nothing: see `samplers`
def _add_exactly(one, other):  # type: ignore[no-untyped-def]
    """Add in 64 bits; saturate where that would wrap around, which could leak."""
    result = one + other
    # Two numbers of one sign whose sum has the other have wrapped around.
    wrapped = ((one ^ result) & (other ^ result)) < 0
    return (_MOST if other > 0 else _LEAST) if wrapped else result


@njit(cache=True, _nrt=False)
def _add(total, noise, grid, noisy):  # type: ignore[no-untyped-def]
    for place in range(noisy.size):
        noisy[place] = np.float64(_add_exactly(total[place], noise[place])) * grid
