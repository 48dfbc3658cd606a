"""An attacker who sees every noisy sum of a fit: the likelihood ratio of two inputs.

Differential privacy of a fit is proved for all its noisy sums together; the released metric is
computed from them. So the strongest attacker that the proof covers sees each sum, knows W (it follows
from the earlier sums) and everything but the canary. For that attacker the best score is known.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import binom

from pairveil.array_types import FloatArray
from pairveil.audit.auditor import mixture_loss
from pairveil.audit.canaries import Inputs
from pairveil.engine.statistics import GRID, Scores, Statistic, clipped_sum
from pairveil.privacy.grid import choose_grid
from pairveil.privacy.mechanisms import Query


class _Part(NamedTuple):
    """Some of an input's records, and where they stand in it (disjoint batches are dealt by position)."""

    data: Any
    positions: NDArray[np.intp]


class Watcher:
    """Adds up the log likelihood ratio, second input against first, over the answers of one fit.

    Give it to the engine as ``on_answer``; read `score` after the fit, `reset` before the next.

    Gaussian sums: the sum is projected on the direction in which the inputs differ; there the number
    of the kappa pairs in the batch is Binomial(kappa, q), so the ratio is that of two mixtures.
    Exact for full and for disjoint batches, and for sampled ones when the changed pairs are equal and the
    others null; otherwise the others' expected part is subtracted and the score is only a good one.
    Laplace sums: the exact ratio entry by entry. Choices: the exact ratio of their probabilities.
    """

    def __init__(self, neighbours: Inputs) -> None:
        self.score = 0.0
        # Of each kind of Gaussian query how far apart the two inputs' sums were, in deviations of the noise,
        # squared and added up: the part of mu^2 that this pair of inputs realises.
        self.reached: dict[str, float] = defaultdict(float)
        self._steps: Counter[Any] = Counter()
        self._changed = neighbours.changed
        self._kappa = len(self._changed)
        self._first = _without_nulls(neighbours.first, self._changed)
        self._second = _without_nulls(neighbours.second, self._changed)
        rest = np.setdiff1d(np.arange(neighbours.first.n_records), self._changed)
        self._others = _without_nulls(neighbours.second, rest)

    def reset(self) -> None:
        """Forget the last fit."""
        self.score = 0.0
        self.reached.clear()
        self._steps.clear()

    def __call__(self, query: Query, statistic: Statistic, noisy: FloatArray) -> None:
        """Take one answer into account."""
        step = self._steps[query]
        self._steps[query] = step + 1
        if query.noise_multiplier == 0:
            return
        first, second, others = (
            self._sum(part, query, statistic, step)
            for part in (self._first, self._second, self._others)
        )
        if isinstance(statistic, Scores):
            self.score += _choice(query, int(noisy[0]), first + others, second + others)
            return
        rate = query.sample_rate if query.sampling == "poisson" else 1.0
        seen = noisy - rate * others
        scale = query.noise_multiplier * statistic.clip
        if query.mechanism.norm == "l1":
            self.score += float((np.abs(seen - first) - np.abs(seen - second)).sum() / scale)
        else:
            self.reached[query.name] += float(((second - first) ** 2).sum()) / scale**2
            self.score += self._gaussian(seen, first, second, rate, scale)

    def _sum(self, part: _Part | None, query: Query, statistic: Statistic, step: int) -> FloatArray:
        """What these pairs add to a batch that holds them all, by the learner's own (compiled) sum."""
        if part is None:
            return np.zeros(statistic.shape)
        rows = None
        if query.n_batches > 1:
            rows = np.flatnonzero(part.positions % query.n_batches == step % query.n_batches)
        n_entries, norm = math.prod(statistic.shape), query.mechanism.norm
        grid = GRID
        if not query.is_choice:
            grid = choose_grid(statistic.clip, n_entries, norm=norm, n_pairs=part.data.n_records)
        total = clipped_sum(part.data, rows, statistic, norm, grid)
        return np.asarray(total * grid, dtype=np.float64)

    def _gaussian(
        self, seen: FloatArray, first: FloatArray, second: FloatArray, rate: float, sigma: float
    ) -> float:
        apart = second - first
        length = float(np.sqrt((apart * apart).sum()))
        if length == 0.0:
            return 0.0
        along = [float((part * apart).sum()) / length for part in (seen, first, second)]
        if rate == 1.0:
            return ((along[0] - along[1]) ** 2 - (along[0] - along[2]) ** 2) / (2.0 * sigma**2)
        counts, weights = _binomial(self._kappa, rate)
        each = along[1] / self._kappa, along[2] / self._kappa
        return mixture_loss(along[0], counts, weights, *each, sigma)


@cache
def _binomial(kappa: int, rate: float) -> tuple[FloatArray, FloatArray]:
    counts = np.arange(kappa + 1, dtype=np.float64)
    return counts, np.maximum(binom.pmf(counts, kappa, rate), 1e-300)


def _choice(query: Query, chosen: int, first: FloatArray, second: FloatArray) -> float:
    """Log of the probability of this choice by the second input's scores over that by the first's."""
    logs = [total / query.noise_multiplier for total in (first, second)]
    shares = [one[chosen] - logsumexp(one) for one in logs]
    return float(shares[1] - shares[0])


def _without_nulls(data: Any, positions: NDArray[np.intp]) -> _Part | None:
    """The records with contents: null ones add nothing to any sum, so there is no need to ask them."""
    positions = data.occupied(positions)
    return _Part(data.subset(positions), positions) if len(positions) else None
