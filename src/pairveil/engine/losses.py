"""Losses of a record, seen only through the distances of its members.

A loss of one pair that depends on W through its distance D = ||W dx||_2 alone has a rank-one gradient

    G = c (W dx) dx^T,    c = l'(D) / D,

so a loss needs to say ``c`` alone; norms and clipped sums follow without ever forming G
(docs/theory/noise.md): ``||G||_F = |c| D ||dx||_2`` and ``||G||_1 = |c| ||W dx||_1 ||dx||_1``.

A loss f of the squared distances D_ij^2 = ||W (x_i - x_j)||^2 of a tuple has the gradient

    G = sum_{i<j} s_ij (W z_ij) z_ij^T,     s_ij = 2 df / dD_ij^2,     z_ij = x_i - x_j,

so it needs to say ``s`` alone. All three here are made of comparisons (anchor, positive, negatives):
members by role, the anchor first. G = W X^T L X with L the Laplacian of s (docs/theory/noise.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from pairveil.array_types import FloatArray
from pairveil.engine.statistics import row_norms

TINY = 1e-140
"""Pairs at a smaller distance contribute nothing: squares of such numbers underflow."""


class PairLoss:
    """Base of the losses of a pair's distance. Subclasses write the rest."""

    def coefficient(self, distance: FloatArray, labels: NDArray[np.int8]) -> FloatArray:
        """The factor c = l'(D) / D of each pair."""
        raise NotImplementedError

    def gradient_bound(self, spectral_norm: float, pair_norm: float) -> float:
        """Bound ``||G||_F`` over every pair with ``||dx||_2 <= pair_norm``, from W alone."""
        raise NotImplementedError

    def pull(
        self, P: FloatArray, labels: NDArray[np.int8], weights: tuple[float, float]
    ) -> FloatArray:
        """The gradient in the projections P (t, r, k) of the mean loss over each record's labelled pairs.

        P has one row a record, the pair's difference, and labels are (t,); or P has all m members, and labels
        are those of the pairs (0, 1), (0, 2), ..., (1, 2), ... of them, 0 for null.
        """
        t, m, _ = P.shape
        if m == 1:
            return self._factor(row_norms(P[:, 0]), labels, weights)[:, None, None] * P
        first, second = np.triu_indices(m, 1)
        distance = np.linalg.norm(P[:, first] - P[:, second], axis=2)
        factor = self._factor(distance, labels, weights)
        mixing = np.zeros((t, m, m))
        mixing[:, first, second] = factor / np.maximum(np.count_nonzero(labels, axis=1), 1)[:, None]
        return laplacian_times(mixing, P)

    def _factor(
        self, distance: FloatArray, labels: NDArray[np.int8], weights: tuple[float, float]
    ) -> FloatArray:
        factor = self.coefficient(distance, labels) * np.where(labels > 0, *weights)
        return np.where((labels != 0) & (distance > TINY), factor, 0.0)


def laplacian_times(s: FloatArray, P: FloatArray) -> FloatArray:
    """U = L P with the Laplacian L of the weights s[i, j] + s[j, i], (t, m, k)."""
    both = s + s.transpose(0, 2, 1)
    return np.asarray(both.sum(axis=2)[:, :, None] * P - both @ P)


@dataclass(frozen=True)
class ContrastiveLoss(PairLoss):
    """Similar pairs are pulled together, dissimilar ones pushed beyond the margin (paper, Eq. 5).

    Similar: ``D^2 / 2``; dissimilar: ``max(0, margin - D)^2 / 2``.

    ``margin``: distance beyond which a dissimilar pair is left alone. Public.

    Examples
    --------
    >>> loss = ContrastiveLoss(margin=1.0)
    >>> import numpy as np
    >>> loss.coefficient(np.array([0.5, 0.5, 2.0]), np.array([1, -1, -1]))
    array([ 1., -1., 0.])
    """

    margin: float

    def coefficient(self, distance: FloatArray, labels: NDArray[np.int8]) -> FloatArray:
        """1 for similar pairs; (D - m)/D for dissimilar ones within the margin; else 0.

        At D = 0 the dissimilar loss has no gradient; 0 is chosen (docs/theory/noise.md).
        """
        pushed = (distance > 0) & (distance < self.margin)
        safe = np.where(pushed, distance, 1.0)
        push = np.where(pushed, (distance - self.margin) / safe, 0.0)
        return np.where(labels > 0, 1.0, push)

    def gradient_bound(self, spectral_norm: float, pair_norm: float) -> float:
        """``max(similar, dissimilar)`` of docs/theory/guarantee.md, 'A bound from W alone'.

        Similar: ``D ||dx|| <= ||W||_2 ||dx||^2``. Dissimilar: ``(m - D) ||dx|| <= m ||dx||``.
        """
        return max(spectral_norm * pair_norm**2, self.margin * pair_norm)


@dataclass(frozen=True)
class LogisticLoss(PairLoss):
    """A pair is similar with probability ``1 / (1 + exp(D^2 - margin^2))``; the loss is its log likelihood.

    ``log(1 + exp(y (D^2 - margin^2)))`` for labels y = +1 (similar) and -1. Unlike the contrastive loss it
    never leaves a pair quite alone, and what it learns is the odds of a match.

    ``margin``: distance at which a pair is as likely similar as not. Public.

    Examples
    --------
    >>> import numpy as np
    >>> LogisticLoss(margin=1.0).coefficient(np.array([1.0, 1.0]), np.array([1, -1]))
    array([ 1., -1.])
    """

    margin: float

    def coefficient(self, distance: FloatArray, labels: NDArray[np.int8]) -> FloatArray:
        """``l'(D) / D = 2 y / (1 + exp(-y (D^2 - margin^2)))``."""
        signs = np.where(labels > 0, 1.0, -1.0)
        away = signs * (distance**2 - self.margin**2)
        return np.asarray(2.0 * signs * np.exp(-np.logaddexp(0.0, -away)))

    def gradient_bound(self, spectral_norm: float, pair_norm: float) -> float:
        """``|c| D ||dx|| <= 2 ||W||_2 ||dx||^2``, as the probability of the other label is at most 1."""
        return 2.0 * spectral_norm * pair_norm**2


LOSSES: dict[str, Callable[[float], PairLoss]] = {
    "contrastive": ContrastiveLoss,
    "logistic": LogisticLoss,
}
"""Losses of pairs by the name that users give them; each is made with a margin."""


# ---- tuples -------------------------------------------------------------------------------------

Present = NDArray[np.bool_]


class Comparison(NamedTuple):
    """One anchor, one positive and some negatives, by role number."""

    anchor: int
    positive: int
    negatives: tuple[int, ...]


class TupleLoss:
    """Base of the losses of a tuple's squared distances. Subclasses write the rest."""

    name: str
    """What users call it."""

    def coefficients(self, squared: FloatArray, present: Present) -> FloatArray:
        """s, (T, m, m), from squared distances (T, m, m) by role and who is there (T, m).

        s[i, j] + s[j, i] counts for the members i and j.
        """
        raise NotImplementedError

    def pull(self, P: FloatArray, present: Present, weights: tuple[float, float]) -> FloatArray:
        """The gradient in the projections P (T, m, k) by role, the anchor at 0; null without an anchor."""
        del weights  # of labelled pairs
        s = self.coefficients(squared_distances(P), present)
        return laplacian_times(s * present[:, :1, None], P)


def squared_distances(P: FloatArray) -> FloatArray:
    """Squared distances (T, m, m) of projected members (T, m, k)."""
    apart = P[:, :, None] - P[:, None]
    return np.asarray(np.einsum("tijk,tijk->tij", apart, apart))


@dataclass(frozen=True)
class TripletLoss(TupleLoss):
    """Each negative is to be further from the anchor than the positive, by a margin.

    ``mean over negatives of max(0, margin + D_ap^2 - D_an^2)``.
    """

    margin: float = 1.0
    name: str = "triplet"

    def coefficients(self, squared: FloatArray, present: Present) -> FloatArray:
        """2 / negatives for each that is not far enough, against the positive's."""
        behind = self.margin + squared[:, 0, 1, None] - squared[:, 0, 2:]
        there = present[:, 2:] & np.all(present[:, :2], axis=1)[:, None]
        active = (behind > 0) & there
        share = 2.0 * active / np.maximum(there.sum(axis=1), 1)[:, None]
        found = np.zeros_like(squared)
        found[:, 0, 2:] = -share
        found[:, 0, 1] = share.sum(axis=1)
        return found


@dataclass(frozen=True)
class TupletLoss(TupleLoss):
    """The (C+1)-tuplet loss: the positive against all negatives at once.

    ``log(1 + sum over negatives of exp(margin + D_ap^2 - D_an^2))``.
    """

    margin: float = 1.0
    name: str = "tuplet"

    def coefficients(self, squared: FloatArray, present: Present) -> FloatArray:
        """Twice the softmax over negatives."""
        found = np.zeros_like(squared)
        for comparison in self.comparisons(present.shape[1]):
            weights = self._soft(squared, present, comparison)
            found[:, comparison.anchor, comparison.negatives] -= 2.0 * weights
            found[:, comparison.anchor, comparison.positive] += 2.0 * weights.sum(axis=1)
        return found / self._count(present)[:, None, None]

    def comparisons(self, size: int) -> Iterator[Comparison]:
        """One: everybody behind the positive is a negative."""
        yield Comparison(0, 1, tuple(range(2, size)))

    def _count(self, present: Present) -> FloatArray:
        return np.ones(len(present))

    def _soft(self, squared: FloatArray, present: Present, comparison: Comparison) -> FloatArray:
        """The weight of each negative in one comparison of each tuple."""
        anchor, positive, negatives = comparison
        near = squared[:, anchor, positive, None]
        behind = self.margin + near - squared[:, anchor, negatives]
        there = present[:, negatives] & (present[:, anchor] & present[:, positive])[:, None]
        behind = np.where(there, behind, -np.inf)
        stacked = np.concatenate([np.zeros((len(behind), 1)), behind], axis=1)
        return np.asarray(np.exp(behind - logsumexp(stacked, axis=1)[:, None]))


@dataclass(frozen=True)
class PairsLoss(TupletLoss):
    """The C-pair (N-pair) loss: each anchor's own positive against the positives of the other pairs.

    Members are anchor, positive, anchor, positive, ...; the mean over the pairs that are there.
    """

    name: str = "pairs"

    def comparisons(self, size: int) -> Iterator[Comparison]:
        """One a pair."""
        positives = range(1, size, 2)
        for own in positives:
            yield Comparison(own - 1, own, tuple(other for other in positives if other != own))

    def _count(self, present: Present) -> FloatArray:
        whole = present[:, 1::2] & present[:, : 2 * (present.shape[1] // 2) : 2]
        return np.asarray(np.maximum(whole.sum(axis=1), 1.0))


TUPLE_LOSSES: dict[str, Callable[..., TupleLoss]] = {
    "triplet": TripletLoss,
    "tuplet": TupletLoss,
    "pairs": PairsLoss,
}
"""Losses of tuples by the name that users give them; each is made with a margin."""
