"""Losses of one pair, seen only through its distance D = ||W dx||_2 and its label.

A loss that depends on W through D alone has a rank-one gradient

    G = c (W dx) dx^T,    c = l'(D) / D,

so a loss needs to say its value and ``c``; norms and clipped sums follow without ever forming G
(docs/theory/sums.md): ``||G||_F = |c| D ||dx||_2`` and ``||G||_1 = |c| ||W dx||_1 ||dx||_1``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pairveil.array_types import FloatArray


class PairLoss(Protocol):
    """What the engine needs to know of a loss."""

    def value(self, distance: FloatArray, labels: NDArray[np.int8]) -> FloatArray:
        """Loss of each pair."""
        ...

    def coefficient(self, distance: FloatArray, labels: NDArray[np.int8]) -> FloatArray:
        """The factor c of the rank-one gradient of each pair."""
        ...

    def gradient_bound(self, spectral_norm: float, pair_norm: float) -> float:
        """Bound ``||G||_F`` over every pair with ``||dx||_2 <= pair_norm``, from W alone."""
        ...


@dataclass(frozen=True)
class ContrastiveLoss:
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

    def value(self, distance: FloatArray, labels: NDArray[np.int8]) -> FloatArray:
        """Loss of each pair."""
        below = np.maximum(0.0, self.margin - distance)
        loss: FloatArray = 0.5 * np.where(labels > 0, distance**2, below**2)
        return loss

    def coefficient(self, distance: FloatArray, labels: NDArray[np.int8]) -> FloatArray:
        """1 for similar pairs; (D - m)/D for dissimilar ones within the margin; else 0.

        At D = 0 the dissimilar loss has no gradient; 0 is chosen (docs/theory/sums.md).
        """
        pushed = (distance > 0) & (distance < self.margin)
        safe = np.where(pushed, distance, 1.0)
        push = np.where(pushed, (distance - self.margin) / safe, 0.0)
        factor: FloatArray = np.where(labels > 0, 1.0, push)
        return factor

    def gradient_bound(self, spectral_norm: float, pair_norm: float) -> float:
        """``max(similar, dissimilar)`` of docs/theory/guarantee.md, 'A bound from W alone'.

        Similar: ``D ||dx|| <= ||W||_2 ||dx||^2``. Dissimilar: ``(m - D) ||dx|| <= m ||dx||``.
        """
        return max(spectral_norm * pair_norm**2, self.margin * pair_norm)


@dataclass(frozen=True)
class LogisticLoss:
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

    def value(self, distance: FloatArray, labels: NDArray[np.int8]) -> FloatArray:
        """Loss of each pair."""
        loss: FloatArray = np.logaddexp(0.0, labels * (distance**2 - self.margin**2))
        return loss

    def coefficient(self, distance: FloatArray, labels: NDArray[np.int8]) -> FloatArray:
        """``l'(D) / D = 2 y / (1 + exp(-y (D^2 - margin^2)))``."""
        signs = np.where(labels > 0, 1.0, -1.0)
        away = signs * (distance**2 - self.margin**2)
        factor: FloatArray = 2.0 * signs * np.exp(-np.logaddexp(0.0, -away))
        return factor

    def gradient_bound(self, spectral_norm: float, pair_norm: float) -> float:
        """``|c| D ||dx|| <= 2 ||W||_2 ||dx||^2``, as the probability of the other label is at most 1."""
        return 2.0 * spectral_norm * pair_norm**2


LOSSES: dict[str, Callable[[float], PairLoss]] = {
    "contrastive": ContrastiveLoss,
    "logistic": LogisticLoss,
}
"""Losses of pairs by the name that users give them; each is made with a margin."""
