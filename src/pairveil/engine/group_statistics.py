"""Statistics of groups: what a group says is the mean over its pairs, clipped as a whole.

A person who changes may change everything that her group says, so nothing inside a group is clipped on its
own: its contribution is one vector of length at most C, before and after, and moves by 2C at most
(docs/theory/groups.md). The mean is over the pairs that are not null. How many those are is private, and
may be used: it only shapes a vector that is clipped afterwards.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil.data.groups import slots
from pairveil.engine.statistics import Labels, Statistic, row_norms, shrink
from pairveil.privacy.grid import Norm

FloatArray = NDArray[np.float64]


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
