"""Clusters of points that are private themselves: noisy counts and sums of every k-means step.

A record is a group of people: the two ends of a link, or one person without one. Links are chosen as a
matching, so everybody is in exactly one group, and whatever is changed about a person changes one group's
contribution. Inside a group the two ends are given clusters together, by their distances from the released
centres and by what their link says; so links pull at the centres without ever being released
(docs/guides/clustering.md).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil.array_types import FloatArray, IntArray
from pairveil.data.pairset import PairSet
from pairveil.data.validation import row_blocks
from pairveil.engine.engine import Engine
from pairveil.engine.plan import Ask, Plan, Setting
from pairveil.engine.statistics import Statistic, shrink
from pairveil.privacy.grid import Norm

STEPS = 6
"""Of k-means; every one is paid for."""
LINK_PRICE = 1.0
"""What a violated link costs, in squared units of the data norm. Public."""
PART = math.sqrt(1 / 8)
"""Weight of a person's count, and of her row: the contribution of two people has length 1 at most."""
NOBODY = -1
"""Stands for the second person of a group of one."""


@dataclass(frozen=True, eq=False)
class LinkedPoints:
    """People in groups of two, the ends of a link, or of one.

    Parameters
    ----------
    features : array of shape (n, d)
        Private.
    members : integer array of shape (n_groups, 2)
        Row numbers; -1 for nobody. Everybody is in one group. Public.
    labels : int8 array of shape (n_groups,)
        +1 together, -1 apart, 0 no link or null. Private.
    """

    features: FloatArray
    members: IntArray
    labels: NDArray[np.int8]

    kind = "groups"  # of records, for what a protected unit costs

    @classmethod
    def of(cls, links: PairSet) -> LinkedPoints:
        """The people of a matching of links, and everybody else alone."""
        assert links.labels is not None
        alone = np.setdiff1d(np.arange(links.n_people), links.pairs.ravel())
        single = np.column_stack([alone, np.full(len(alone), NOBODY)])
        members = np.concatenate([np.asarray(links.pairs, dtype=np.int64), single])
        labels = np.concatenate([links.labels, np.zeros(len(alone), dtype=np.int8)])
        return cls(np.asarray(links.features, dtype=np.float64), members, labels)

    @property
    def n_records(self) -> int:
        """Groups."""
        return len(self.members)

    @property
    def n_features(self) -> int:
        """Columns of the features."""
        return int(self.features.shape[1])

    def contents(self, rows: Any = None) -> tuple[FloatArray, NDArray[np.int8]]:
        """Rows of the two people of some groups, with a last column that is 0 for nobody; and their links."""
        chosen = slice(None) if rows is None else rows
        members = self.members[chosen]
        there = (members != NOBODY).astype(np.float64)
        found = self.features[np.maximum(members, 0)] * there[:, :, None]
        return np.concatenate([found, there[:, :, None]], axis=2), self.labels[chosen]

    def blocks(self, size: int) -> Iterator[slice]:
        """Slices of at most ``size`` groups that cover all of them in order."""
        return row_blocks(self.n_records, size)

    def topology(self) -> bytes:
        """Names what is public: who is in a group with whom."""
        return hashlib.sha256(np.ascontiguousarray(self.members).tobytes()).digest()


@dataclass(frozen=True)
class StepSums(Statistic):
    """How many people each cluster has and the sum of their rows, a group's part clipped as a whole.

    ``centres``: array of shape (k, d); released, in units of the data norm.
    """

    centres: FloatArray
    data_norm: float
    clip = 1.0

    @property
    def shape(self) -> tuple[int, ...]:
        """Count and sum of each cluster."""
        k, d = self.centres.shape
        return (k, 1 + d)

    def tile_sum(self, differences: Any, labels: NDArray[np.int8], norm: Norm) -> FloatArray:
        """Sum of the groups' contributions."""
        rows, there = differences[:, :, :-1] / self.data_norm, differences[:, :, -1]
        lengths = np.sqrt((rows**2).sum(axis=2))
        rows = rows * shrink(lengths, 1.0)[:, :, None]
        given = self.assigned(rows, there, labels)
        k, d = self.centres.shape
        parts = np.zeros((len(rows), k, 1 + d))
        own = PART * np.concatenate([np.ones((*rows.shape[:2], 1)), rows], axis=2)
        place = np.arange(len(rows))
        for end in (0, 1):
            parts[place, given[:, end]] += own[:, end] * there[:, end, None]
        flat = parts.reshape(len(rows), -1)
        sizes = np.abs(flat).sum(axis=1) if norm == "l1" else np.sqrt((flat**2).sum(axis=1))
        return np.tensordot(shrink(sizes, self.clip), parts, axes=1)

    def assigned(self, rows: FloatArray, there: FloatArray, labels: NDArray[np.int8]) -> IntArray:
        """Clusters of the two people of each group, chosen together."""
        k = len(self.centres)
        squared = ((rows[:, :, None, :] - self.centres) ** 2).sum(axis=3)
        both = squared[:, 0, :, None] + (squared[:, 1] * there[:, 1, None])[:, None, :]
        same = np.eye(k)
        price = LINK_PRICE * np.where(
            labels[:, None, None] > 0, 1 - same, np.where(labels[:, None, None] < 0, same, 0.0)
        )
        best = (both + price).reshape(len(rows), -1).argmin(axis=1)
        return np.column_stack([best // k, best % k])


@dataclass(frozen=True)
class PointsRecipe:
    """Noisy k-means steps from public starting points."""

    n_clusters: int
    headline = "centres"

    def ask(self, setting: Setting) -> tuple[Ask, ...]:
        """The same question in every step."""
        return (Ask("centres", (self.n_clusters, 1 + setting.n_features), 1.0, STEPS),)

    def options(self) -> dict[str, Any]:
        """For the certificate."""
        return {"n_clusters": self.n_clusters, "protect": "points"}

    def run(self, plan: Plan, engine: Engine) -> FloatArray:
        """Centres, in the units of the points."""
        query = plan["centres"]
        centres = public_start(self.n_clusters, plan.n_features)
        floor = max(2 * query.noise_std(StepSums.clip) / PART, 1.0)
        for _ in range(query.steps):
            found = engine.answer(query, StepSums(centres, plan.data_norm)) / PART
            # A cluster that does not stand out of the noise moves little.
            moved = found[:, 1:] / np.maximum(found[:, :1], floor)
            kept = np.clip(found[:, :1] / floor, 0.0, 1.0)
            centres = kept * moved + (1 - kept) * centres
            centres = centres * shrink(np.sqrt((centres**2).sum(axis=1)), 1.0)[:, None]
        return centres * plan.data_norm


def public_start(k: int, d: int) -> FloatArray:
    """Starting points that look at nothing: far apart, half a data norm from the middle.

    Examples
    --------
    >>> public_start(3, 2).shape
    (3, 2)
    """
    drawn = np.random.default_rng(0).normal(size=(64 * k, d))
    drawn /= np.sqrt((drawn**2).sum(axis=1))[:, None]
    chosen = [0]
    while len(chosen) < k:  # farthest first
        away = ((drawn[:, None] - drawn[chosen]) ** 2).sum(axis=2).min(axis=1)
        chosen.append(int(away.argmax()))
    return 0.5 * drawn[chosen]
