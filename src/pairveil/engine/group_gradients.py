"""Gradients of a pair loss over groups: the mean over a group's pairs, clipped as a whole.

With X the group's people (m x d, centred and scaled), Y = X W^T and c_p the loss's factor of pair p, the
mean gradient is ``(L Y)^T X``: L, m x m, has -c_p / n at the places of each pair and minus the row sums on
its diagonal. Neither the pairs' gradients nor the group's is formed; its norm comes from two m x m Gram
matrices, ``||A^T X||^2 = sum (A A^T) o (X X^T)`` with A = L Y. docs/theory/groups.md has the error bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from pairveil.array_types import FloatArray, IntArray
from pairveil.data.groups import MOST_PEOPLE, slots
from pairveil.engine.kernels import groups as kernels
from pairveil.engine.losses import ContrastiveLoss, PairLoss
from pairveil.engine.statistics import TILE, Labels, Statistic
from pairveil.privacy.grid import CLIP_ERROR, UNIT_ROUNDOFF, Norm


@dataclass(frozen=True)
class GroupGradient(Statistic):
    """The gradient in W of a loss of D = ||W (scale * dx)||, averaged over each group's pairs.

    Parameters
    ----------
    W : array of shape (k, d)
    clip : float
        Of a whole group's contribution.
    weights : (float, float)
        Public weights of similar and of dissimilar pairs.
    scale : array of shape (d,), optional

    Examples
    --------
    >>> gradient = GroupGradient(np.eye(2), ContrastiveLoss(1.0), clip=1.0)
    >>> 1.0 < gradient.sensitivity("l2", 2.0**-31) < 1.001
    True
    """

    W: FloatArray
    loss: PairLoss
    clip: float
    weights: tuple[float, float] = (1.0, 1.0)
    scale: FloatArray | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of W."""
        return self.W.shape

    def tile_sum(self, people: Any, labels: Labels, norm: Norm) -> FloatArray:  # type: ignore[override]
        """Sum of the clipped contributions of some groups: people (g, m, d), labels of their pairs."""
        g, m, d = people.shape
        first, second = slots(m)
        with np.errstate(over="ignore", invalid="ignore"):
            centred = people - people.mean(axis=1, keepdims=True)
            projected = (centred.reshape(-1, d) @ self.W.T).reshape(g, m, -1)
            distance = np.linalg.norm(projected[:, first] - projected[:, second], axis=2)
        factor = self.loss.coefficient(distance, labels) * np.where(labels > 0, *self.weights)
        factor = np.where((labels != 0) & (distance > kernels.TINY), factor, 0.0)
        factor = factor / np.maximum(np.count_nonzero(labels, axis=1), 1)[:, None]
        mixing = np.zeros((g, m, m))
        mixing[:, first, second] = mixing[:, second, first] = -factor
        np.einsum("gii->gi", mixing)[...] = -mixing.sum(axis=2)
        with np.errstate(over="ignore", invalid="ignore"):
            pulled = mixing @ projected
            shrinking = _shrinking(pulled, centred, self.clip, norm)
        pulled, centred = (  # both: 0 times infinity is not 0
            np.where(shrinking[:, None, None] > 0, one, 0.0) for one in (pulled, centred)
        )
        pulled *= shrinking[:, None, None]
        total: FloatArray = pulled.reshape(g * m, -1).T @ centred.reshape(g * m, d)
        return total

    def sensitivity(self, norm: Norm, grid: float, dtype: Any = np.float64) -> float:
        """How far emptying one group moves the sum, rounding included; a changed one moves it twice as far.

        Terms of a group add up to at most `SPREAD` clip bounds before they cancel, and a tile adds up to
        TILE groups of `MOST_PEOPLE` terms: docs/theory/groups.md, 'Rounding'.
        """
        del dtype  # everything is summed in float64
        terms = TILE * MOST_PEOPLE * UNIT_ROUNDOFF
        tile = 2 * terms / (1 - terms) * TILE * kernels.SPREAD
        entries = math.prod(self.shape)
        width = entries if norm == "l1" else math.sqrt(entries)
        return self.clip * (1 + CLIP_ERROR + tile) + grid * width

    def is_compilable(self, data: Any) -> bool:
        """Contrastive gradients of dense rows."""
        return isinstance(self.loss, ContrastiveLoss) and not sparse.issparse(data.features)

    def compiled_sum(
        self, data: Any, rows: IntArray | None, norm: Norm, grid: float, separately: bool
    ) -> IntArray:
        """The whole sum, tile by tile: matrix products and a compiled loop over groups in between."""
        assert isinstance(self.loss, ContrastiveLoss)
        columns = np.ones(self.W.shape[1]) if self.scale is None else self.scale
        return kernels.clipped_sum(
            data.features,
            data.members,
            data.labels,
            rows,
            self.W,
            scale=np.asarray(columns, dtype=np.float64),
            margin=self.loss.margin,
            weights=self.weights,
            clip=self.clip,
            norm=norm,
            grid=grid,
            tile=1 if separately else kernels.TILE,
        )


def _shrinking(pulled: FloatArray, people: FloatArray, clip: float, norm: Norm) -> FloatArray:
    """Factor that makes each group's ``pulled^T people`` no longer than ``clip``; 0 where that is unsure."""
    order = 1 if norm == "l1" else 2
    lengths = np.linalg.norm(pulled, order, axis=2), np.linalg.norm(people, order, axis=2)
    terms = np.einsum("gi,gi->g", *lengths)
    if norm == "l1":
        longest = terms * (1 + 2.0**-30)  # |A^T X|_1 <= sum |a_i|_1 |x_i|_1
    else:
        gram = (pulled @ pulled.transpose(0, 2, 1)) * (people @ people.transpose(0, 2, 1))
        (m, d), k = people.shape[1:], pulled.shape[2]
        longest = np.sqrt(
            np.maximum(gram.sum(axis=(1, 2)), 0.0) + kernels.gram_error(m, d, k) * terms**2
        )
    sure = np.all((lengths[0] < kernels.HUGE) & (lengths[1] < kernels.HUGE), axis=1)
    sure &= terms > kernels.TINY
    factor = clip / np.maximum(np.maximum(longest, terms / kernels.SPREAD), clip)
    return np.where(sure, factor, 0.0)
