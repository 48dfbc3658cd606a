"""Losses of one tuple, seen only through the squared distances of its members.

A loss f of squared distances D_ij^2 = ||W (x_i - x_j)||^2 has the gradient

    G = sum_{i<j} s_ij (W z_ij) z_ij^T,     s_ij = 2 df / dD_ij^2,     z_ij = x_i - x_j,

so a loss needs to say its value and ``s``. All three here are made of comparisons (anchor, positive,
negatives): members by role, the anchor first. G = W X^T L X with L the Laplacian of s
(docs/theory/tuples.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from pairveil.array_types import FloatArray

Present = NDArray[np.bool_]


class Comparison(NamedTuple):
    """One anchor, one positive and some negatives, by role number."""

    anchor: int
    positive: int
    negatives: tuple[int, ...]


class TupleLoss(Protocol):
    """What the engine needs to know of a loss."""

    @property
    def name(self) -> str:
        """What users call it."""
        ...

    def value(self, squared: FloatArray, present: Present) -> FloatArray:
        """Loss of each tuple, from squared distances (T, m, m) by role and who is there (T, m)."""
        ...

    def coefficients(self, squared: FloatArray, present: Present) -> FloatArray:
        """s, (T, m, m); s[i, j] + s[j, i] counts for the members i and j."""
        ...


@dataclass(frozen=True)
class TripletLoss:
    """Each negative is to be further from the anchor than the positive, by a margin.

    ``mean over negatives of max(0, margin + D_ap^2 - D_an^2)``.

    Examples
    --------
    >>> squared = np.array([[[0.0, 1.0, 1.5], [1.0, 0.0, 0.0], [1.5, 0.0, 0.0]]])
    >>> TripletLoss(margin=1.0).value(squared, np.ones((1, 3), dtype=bool))
    array([0.5])
    """

    margin: float = 1.0
    name: str = "triplet"

    def value(self, squared: FloatArray, present: Present) -> FloatArray:
        """Mean hinge of each tuple."""
        behind, there = self._behind(squared, present)
        hinge = np.where(there, np.maximum(0.0, behind), 0.0)
        mean: FloatArray = hinge.sum(axis=1) / np.maximum(there.sum(axis=1), 1)
        return mean

    def coefficients(self, squared: FloatArray, present: Present) -> FloatArray:
        """2 / negatives for each that is not far enough, against the positive's."""
        behind, there = self._behind(squared, present)
        active = (behind > 0) & there
        share = 2.0 * active / np.maximum(there.sum(axis=1), 1)[:, None]
        found = np.zeros_like(squared)
        found[:, 0, 2:] = -share
        found[:, 0, 1] = share.sum(axis=1)
        return found

    def _behind(self, squared: FloatArray, present: Present) -> tuple[FloatArray, Present]:
        behind = self.margin + squared[:, 0, 1, None] - squared[:, 0, 2:]
        return behind, present[:, 2:] & np.all(present[:, :2], axis=1)[:, None]


@dataclass(frozen=True)
class TupletLoss:
    """The (C+1)-tuplet loss: the positive against all negatives at once.

    ``log(1 + sum over negatives of exp((margin + D_ap^2 - D_an^2) / softness)) * softness``.

    Examples
    --------
    >>> squared = np.array([[[0.0, 1.0, 1.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]])
    >>> TupletLoss(margin=0.0).value(squared, np.ones((1, 3), dtype=bool)).round(3)
    array([0.693])
    """

    margin: float = 1.0
    softness: float = 1.0
    name: str = "tuplet"

    def value(self, squared: FloatArray, present: Present) -> FloatArray:
        """Soft maximum of each tuple."""
        total = np.zeros(len(squared))
        for comparison in self.comparisons(present.shape[1]):
            total += self._soft(squared, present, comparison)[0]
        return total / self._count(present)

    def coefficients(self, squared: FloatArray, present: Present) -> FloatArray:
        """Twice the softmax over negatives."""
        found = np.zeros_like(squared)
        for comparison in self.comparisons(present.shape[1]):
            _, weights = self._soft(squared, present, comparison)
            found[:, comparison.anchor, comparison.negatives] -= 2.0 * weights
            found[:, comparison.anchor, comparison.positive] += 2.0 * weights.sum(axis=1)
        return found / self._count(present)[:, None, None]

    def comparisons(self, size: int) -> Iterator[Comparison]:
        """One: everybody behind the positive is a negative."""
        yield Comparison(0, 1, tuple(range(2, size)))

    def _count(self, present: Present) -> FloatArray:
        return np.ones(len(present))

    def _soft(
        self, squared: FloatArray, present: Present, comparison: Comparison
    ) -> tuple[FloatArray, FloatArray]:
        """Loss of one comparison in each tuple, and the weight of each negative in it."""
        anchor, positive, negatives = comparison
        near = squared[:, anchor, positive, None]
        behind = (self.margin + near - squared[:, anchor, negatives]) / self.softness
        there = present[:, negatives] & (present[:, anchor] & present[:, positive])[:, None]
        behind = np.where(there, behind, -np.inf)
        stacked = np.concatenate([np.zeros((len(behind), 1)), behind], axis=1)
        total = logsumexp(stacked, axis=1)
        weights: FloatArray = np.exp(behind - total[:, None])
        return self.softness * total, weights


@dataclass(frozen=True)
class PairsLoss(TupletLoss):
    """The C-pair (N-pair) loss: each anchor's own positive against the positives of the other pairs.

    Members are anchor, positive, anchor, positive, ...; the mean over the pairs that are there.

    Examples
    --------
    >>> squared = np.ones((1, 4, 4)) - np.eye(4)
    >>> PairsLoss(margin=0.0).value(squared, np.ones((1, 4), dtype=bool)).round(3)
    array([0.693])
    """

    name: str = "pairs"

    def comparisons(self, size: int) -> Iterator[Comparison]:
        """One a pair."""
        positives = range(1, size, 2)
        for own in positives:
            yield Comparison(own - 1, own, tuple(other for other in positives if other != own))

    def _count(self, present: Present) -> FloatArray:
        whole = present[:, 1::2] & present[:, : 2 * (present.shape[1] // 2) : 2]
        count: FloatArray = np.maximum(whole.sum(axis=1), 1.0)
        return count


TUPLE_LOSSES: dict[str, Callable[..., TupleLoss]] = {
    "triplet": TripletLoss,
    "tuplet": TupletLoss,
    "pairs": PairsLoss,
}
"""Losses of tuples by the name that users give them; each is made with a margin."""
