"""What a fit asks of groups, one clipped sum each: means over a group's pairs, clipped as a whole.

A person who changes may change everything that her group says, so nothing inside a group is clipped on its
own: its contribution is one vector of length at most C, before and after, and moves by 2C at most
(docs/theory/groups.md). The mean is over the pairs that are not null. How many those are is private, and
may be used: it only shapes a vector that is clipped afterwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairveil.array_types import FloatArray
from pairveil.engine.statistics import Labels, Statistic, row_norms, shrink
from pairveil.privacy.grid import Norm
from pairveil.records.groups import slots

_TINY = 1e-12


class GroupStatistic(Statistic):
    """The mean over a group's pairs of what each pair says. Subclasses write `contributions`."""

    def contributions(self, differences: FloatArray, labels: Labels, norm: Norm) -> FloatArray:
        """What each pair says, one row a pair; of any length, since the group is clipped."""
        raise NotImplementedError

    def tile_sum(self, people: Any, labels: Labels, norm: Norm) -> FloatArray:  # type: ignore[override]
        """Sum of the clipped means.

        Parameters
        ----------
        people : array of shape (g, m, d)
            The groups' people.
        labels : array of shape (g, m (m - 1) / 2)
            Of the pairs inside; 0 is null.
        norm : {'l2', 'l1'}
        """
        first, second = slots(people.shape[1])
        group, slot = np.nonzero(labels)
        differences = people[group, first[slot]] - people[group, second[slot]]
        said = self.contributions(differences, labels[group, slot], norm)
        said = said.reshape(len(group), math.prod(self.shape))  # also where all are null
        live = np.bincount(group, minlength=len(labels))
        means = np.zeros((len(labels), said.shape[1]))
        edges = np.flatnonzero(live)
        if len(edges):
            starts = np.concatenate([[0], np.cumsum(live[edges])[:-1]])
            means[edges] = np.add.reduceat(said, starts, axis=0) / live[edges, None]
        total = shrink(row_norms(means, norm), self.clip) @ means
        return np.asarray(total, dtype=np.float64).reshape(self.shape)


@dataclass(frozen=True)
class GroupSurvey(GroupStatistic):
    """How differences inside groups spread: each column's share, their length, the share of similar pairs.

    A pair says (q, sqrt(||dx|| / longest), [similar]) with q = dx^2 / ||dx^2||.

    Parameters
    ----------
    n_features : int
    longest : float
        Public bound on ||dx||.
    clip : float
    """

    n_features: int
    longest: float
    clip: float

    @property
    def shape(self) -> tuple[int, ...]:
        """One entry a column, then length and share."""
        return (self.n_features + 2,)

    def contributions(self, differences: FloatArray, labels: Labels, norm: Norm) -> FloatArray:
        """One row a pair; a pair without any difference says nothing."""
        squares = differences * differences
        sizes = row_norms(squares, norm)
        length = np.sqrt(np.minimum(1.0, row_norms(differences) / self.longest))
        said = np.column_stack(
            [
                squares / np.maximum(sizes, _TINY**2)[:, None],
                length,
                labels > 0,
            ]
        )
        said[sizes <= _TINY**2] = 0.0
        return said


@dataclass(frozen=True)
class GroupContest(Statistic):
    """How much better than Euclid a metric orders the pairs inside each group.

    A group says AUC(metric) - AUC(Euclid) of its own pairs, in [-1, 1]: how often a similar pair is nearer
    than a dissimilar one. Nothing has to be released before, as ranks are taken inside the group; a group
    without both kinds of pairs says nothing.

    Parameters
    ----------
    learned : (float, array of shape (k, d))
        Weight and matrix of the learned part.
    euclid : (float, array of shape (d,))
        Weight of Euclid beside it, and the factors that make rows Euclidean again.
    clip : float
    """

    learned: tuple[float, FloatArray]
    euclid: tuple[float, FloatArray]
    clip: float
    scale: FloatArray | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """One number."""
        return (1,)

    def tile_sum(self, people: Any, labels: Labels, norm: Norm) -> FloatArray:  # type: ignore[override] # noqa: ARG002
        """Sum of the clipped differences of AUCs of some groups: people (g, m, d), labels of their pairs."""
        g, m, d = people.shape
        first, second = slots(m)
        flat = people.reshape(-1, d)
        plain = _squares((flat * self.euclid[1]).reshape(g, m, d), first, second)
        projected = _squares((flat @ self.learned[1].T).reshape(g, m, -1), first, second)
        blended = self.learned[0] * projected + self.euclid[0] * plain
        said = _auc(blended, labels) - _auc(plain, labels)
        return np.array([np.clip(said, -self.clip, self.clip).sum()])


def _squares(rows: FloatArray, first: Any, second: Any) -> FloatArray:
    """Squared distances of the pairs of each group, from its Gram matrix."""
    gram = rows @ rows.transpose(0, 2, 1)
    own = np.einsum("gii->gi", gram)
    found: FloatArray = own[:, first] + own[:, second] - 2 * gram[:, first, second]
    return np.maximum(found, 0.0)


def _auc(distances: FloatArray, labels: Labels) -> FloatArray:
    """How often a similar pair of a group is nearer than a dissimilar one, less one half; 0 without both."""
    similar, dissimilar = labels > 0, labels < 0
    order = (
        np.sign(distances[:, None, :] - distances[:, :, None]) / 2
    )  # row similar, column dissimilar
    won = np.einsum("gi,gij,gj->g", similar.astype(float), order, dissimilar.astype(float))
    both = similar.sum(axis=1) * dissimilar.sum(axis=1)
    return np.where(both > 0, won / np.maximum(both, 1), 0.0)
