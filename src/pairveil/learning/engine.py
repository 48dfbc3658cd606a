"""The engine: executes the releases of a plan and nothing else.

It is the only code that sees the pairs' contents. What it returns is a clipped sum with the plan's noise
on it, and it counts what it released, so that a fit can be checked against its plan.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pairveil.learning.checkpoint import Checkpoint
from pairveil.learning.plan import NoisySums
from pairveil.learning.sums import LossGradient, Statistic, clipped_sum, is_compilable, reach
from pairveil.learning.tiles import SMALL_BATCH
from pairveil.pairs.pairset import PairSet
from pairveil.privacy.grid import MAX_NOISE_IN_GRID, choose_grid
from pairveil.privacy.noise import NoiseSource

FloatArray = NDArray[np.float64]
MOST_AT_ONCE = 1 << 20  # numbers of noise that are drawn at once
OnRelease = Callable[[NoisySums, Statistic, FloatArray], None]


class Engine:
    """Takes noisy sums from pairs.

    Parameters
    ----------
    data : PairSet
        The used pairs, labelled.
    noise : NoiseSource
        Where sampling and noise come from.
    on_release : callable, optional
        Called with (sums, statistic, noisy sum) after each release: progress bars, auditors. It sees
        released values only.
    compiled : bool
        Use the compiled loop for gradients where it applies.
    scale : array of shape (n_features,), optional
        Differences are multiplied by it, column by column, as they are formed. Public, or released
        already; the features are never copied for it.
    add_up : callable
        Does the work of `pairveil.learning.sums.clipped_sum`: here, or on a cluster.
    checkpoint : Checkpoint, optional
        Sums that it holds are not drawn again; those that are drawn go into it.

    Examples
    --------
    >>> import numpy as np
    >>> from pairveil.learning.losses import ContrastiveLoss
    >>> from pairveil.learning.sums import LossGradient
    >>> from pairveil.privacy.noise import SeededNoise
    >>> data = PairSet(np.eye(2), [[0, 1]], [1])
    >>> sums = NoisySums(clip=1.0, noise_multiplier=0.0, steps=1)
    >>> gradient = LossGradient(np.eye(2), ContrastiveLoss(1.0), (1.0, 1.0), np.ones(2))
    >>> Engine(data, SeededNoise(0)).release(sums, gradient).round(3)
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    """

    def __init__(
        self,
        data: PairSet,
        noise: NoiseSource,
        on_release: OnRelease | None = None,
        *,
        compiled: bool = True,
        scale: FloatArray | None = None,
        add_up: Callable[..., NDArray[np.int64]] = clipped_sum,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self._data = data
        self._checkpoint = checkpoint
        self._add_up = add_up
        self._scale = scale
        self._noise = noise
        self._on_release = on_release
        self._compiled = compiled
        self._done: Counter[NoisySums] = Counter()

    def on(self, data: PairSet, scale: FloatArray) -> Engine:
        """The same engine, with the same count of releases, on the same pairs with scaled columns."""
        if data.n_pairs != self._data.n_pairs:
            raise RuntimeError("an engine stays with its pairs")
        moved = Engine(
            data,
            self._noise,
            self._on_release,
            compiled=self._compiled,
            scale=scale,
            add_up=self._add_up,
            checkpoint=self._checkpoint,
        )
        moved._done = self._done
        return moved

    def release(self, sums: NoisySums, statistic: Statistic) -> FloatArray:
        """One noisy sum of ``statistic`` over a batch of ``sums``' kind."""
        place, step = sum(self._done.values()), self._done[sums]
        self._count(sums, 1)
        noisy, kept = None, self._checkpoint
        if kept is not None:
            noisy = kept.released(place, sums.name, statistic.shape)
        if noisy is None:
            grid = self._grid(sums, statistic)
            total = self._total(sums, statistic, self._batch(sums, step), grid)
            noisy = self._add_noise(sums, statistic, total, grid)
            if kept is not None:
                kept.keep(sums.name, noisy)
        if self._on_release is not None:
            self._on_release(sums, statistic, noisy)
        return noisy

    def descend(
        self, sums: NoisySums, gradient: LossGradient, rate: float, steps: int
    ) -> FloatArray:
        """W after some releases of its gradient, ``W -= rate * noisy sum`` after each of them.

        Small Poisson batches, and their noise, are drawn for many steps at once: they depend on
        nothing that happens in between.
        """
        expected = sums.sample_rate * self._data.n_pairs
        small = sums.sampling == "poisson" and sums.sample_rate < 1 and expected <= SMALL_BATCH
        together = 1
        if small and self._checkpoint is None:
            together = max(1, MOST_AT_ONCE // max(math.prod(gradient.shape), SMALL_BATCH))
        while steps > 0:
            now = min(steps, together)
            if now > 1:
                moved = self._descend_together(sums, gradient, rate, now)
            else:
                moved = gradient.W - rate * self.release(sums, gradient)
            gradient, steps = replace(gradient, W=moved), steps - now
        return gradient.W

    def _descend_together(
        self, sums: NoisySums, gradient: LossGradient, rate: float, steps: int
    ) -> FloatArray:
        self._count(sums, steps)
        n, grid = self._data.n_pairs, self._grid(sums, gradient)
        # Each pair enters each step on its own: one sample from the pairs written down ``steps`` times.
        drawn = self._noise.sample(n * steps, sums.sample_rate)
        edges = np.searchsorted(drawn, n * np.arange(steps + 1))
        rows, shape = drawn % n, (steps, *gradient.shape)
        noise = self._add_noise(sums, gradient, np.zeros(shape, dtype=np.int64), grid)
        dense = isinstance(self._data.features, np.ndarray) and is_compilable(self._data, gradient)
        if self._compiled and dense and self._add_up is clipped_sum:
            moved, noisy = gradient.compiled_descent(
                self._data, (rows, edges), noise, rate, sums.clip, sums.norm, grid, self._scale
            )
            for one in noisy if self._on_release is not None else ():
                gradient = self._step(sums, gradient, rate, one)  # once more, for who watches
            return moved
        for t in range(steps):
            total = self._total(sums, gradient, rows[edges[t] : edges[t + 1]], grid)
            # Whole numbers below 2^62 and 2^53: their sum is exact, and only then made a float.
            one = (total + (noise[t] / grid).astype(np.int64)) * grid
            gradient = self._step(sums, gradient, rate, one)
        return gradient.W

    def _step(
        self, sums: NoisySums, gradient: LossGradient, rate: float, noisy: FloatArray
    ) -> LossGradient:
        if self._on_release is not None:
            self._on_release(sums, gradient, noisy)
        return replace(gradient, W=gradient.W - rate * noisy)

    def _count(self, sums: NoisySums, steps: int) -> None:
        """Releases are counted before they are drawn, and none is drawn beyond the plan."""
        if self._done[sums] + steps > sums.steps:
            raise RuntimeError("the plan allows no further release of this kind")
        self._done[sums] += steps

    def _grid(self, sums: NoisySums, statistic: Statistic) -> float:
        n_entries = math.prod(statistic.shape)
        if sums.entries is not None and n_entries > sums.entries:
            raise RuntimeError("the plan allows no sum of so many entries")
        grid = choose_grid(sums.clip, n_entries, norm=sums.norm, n_pairs=self._data.n_pairs)
        while sums.noise_multiplier * sums.clip > MAX_NOISE_IN_GRID * grid:
            grid *= 2  # so much noise drowns a coarser grid too; the sensitivity follows the grid
        return grid

    def _total(
        self, sums: NoisySums, statistic: Statistic, rows: NDArray[np.int64] | None, grid: float
    ) -> NDArray[np.int64]:
        return self._add_up(
            self._data,
            rows,
            statistic,
            sums.clip,
            sums.norm,
            grid,
            scale=self._scale,
            compiled=self._compiled,
            separately=sums.sampling == "poisson" and sums.sample_rate < 1,
        )

    def _add_noise(
        self, sums: NoisySums, statistic: Statistic, total: NDArray[np.int64], grid: float
    ) -> FloatArray:
        if sums.noise_multiplier == 0:
            return total.astype(np.float64) * grid
        # The noise is scaled to what one pair can move the integer sum, not to the clip bound alone.
        dtype = self._data.features.dtype
        unit = reach(statistic, sums.clip, sums.norm, grid, dtype)
        draw = self._noise.laplace if sums.mechanism == "laplace" else self._noise.gaussian
        return draw(total, sums.noise_multiplier * unit, grid)

    def _batch(self, sums: NoisySums, step: int) -> NDArray[np.int64] | None:
        """Which pairs enter this sum, chosen without looking at them; None is all."""
        if sums.sampling == "poisson":
            return (
                None
                if sums.sample_rate == 1
                else self._noise.sample(self._data.n_pairs, sums.sample_rate)
            )
        if sums.n_batches == 1:
            return None
        # Dealt like cards, by position: disjoint, the same every epoch, and blind to the contents.
        return np.arange(step % sums.n_batches, self._data.n_pairs, sums.n_batches)

    def followed(self, plan: Iterable[NoisySums]) -> bool:
        """Whether exactly the releases of ``plan`` were made."""
        return self._done == Counter({sums: sums.steps for sums in plan})
