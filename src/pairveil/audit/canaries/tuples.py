"""The canary of tuples: all tuples of one unit, loud, among many quiet ones.

The others are small and their own people, so that the released scale is theirs; the canary's members are
as far from its anchor as rows may be, and each of its contributions is as long as the clip bound allows.
Compared with null that moves a sum by all of its charge. Replaced by the opposite answer (positive and
negatives exchanged) it turns the contrast around: twice the clip bound.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pairveil.audit.canaries.inputs import Inputs
from pairveil.errors import InputError
from pairveil.learners.base import PrivateLearner
from pairveil.privacy.units import Adjacency, Unit
from pairveil.records.tupleset import ABSENT, FEWEST, TupleSet

SMALL = 0.02  # length of the others


class TupleNeighbours(Inputs[TupleSet]):
    """Two inputs of tuples that differ in the contents of a few of them."""

    def __post_init__(self) -> None:
        if not np.array_equal(self.first.tuples, self.second.tuples):
            raise InputError(
                "neighbouring inputs have the same members: who is in a tuple is public"
            )
        first = self.first.order
        assert first is not None
        if self.adjacency == "zero-out" and (first[self.changed] != ABSENT).any():
            raise InputError("zero-out compares with nulls: changed tuples of first are null")

    @property
    def changed(self) -> NDArray[np.intp]:
        """Positions of the tuples whose contents differ."""
        rows = (np.asarray(one.features) for one in (self.first, self.second))
        moved = np.logical_or.reduce(next(rows) != next(rows), axis=1)
        before, after = np.asarray(self.first.order), np.asarray(self.second.order)
        return np.flatnonzero(
            np.any(before != after, axis=1) | moved[self.first.tuples].any(axis=1)
        )


def tuple_canary(
    unit: Unit,
    kappa: int = 1,
    n_features: int = 3,
    adjacency: Adjacency = "zero-out",
    size: int = 3,
    n_others: int = 3000,
    data_norm: float = 1.0,
) -> TupleNeighbours:
    """All tuples of one person, or of two people, against null or against the opposite answers.

    Examples
    --------
    >>> canary = tuple_canary("person", 2, adjacency="replace", n_others=10)
    >>> canary.kappa, canary.second
    (2, TupleSet(35 people, 12 tuples of 3, 3 features))
    """
    shared = 1 if unit == "person" else 2  # people that all changed tuples have in common
    own = shared + (size - shared) * np.arange(kappa + 1)
    loud = [[*range(shared), *range(own[i], own[i + 1])] for i in range(kappa)]
    n_loud = int(own[-1])
    quiet = n_loud + np.arange(size * n_others).reshape(n_others, size)
    tuples = np.concatenate([np.array(loud), quiet])
    rng = np.random.default_rng(0)
    features = rng.choice([-1.0, 1.0], size=(n_loud + size * n_others, n_features)) * SMALL
    features /= np.sqrt(n_features)
    # The anchor at one end, the first other (the positive) opposite, the negatives where it is.
    axes = np.eye(n_features)
    features[:n_loud] = axes[0]
    for members in loud:
        features[members[1]] = -axes[0]
    order = np.tile(np.arange(size, dtype=np.int8), (len(tuples), 1))
    second = TupleSet(data_norm * features, tuples, order)
    is_canary = np.arange(len(tuples)) < kappa
    if adjacency == "zero-out":
        return TupleNeighbours(second.emptied(is_canary), second, adjacency, unit)
    turned = order.copy()
    # Another anchor: the one opposite. And whoever was near is far now.
    turned[:kappa, :3] = [0, 2, 1]
    return TupleNeighbours(second.with_order(turned), second, adjacency, unit)


def canary_of_tuples(
    learner: PrivateLearner, kappa: int, n_features: int, size: int | None = None
) -> TupleNeighbours:
    """The worst case for a learner's unit: by default triplets, or two pairs for a loss of pairs."""
    if size is None:
        size = 4 if getattr(learner, "loss", "") == "pairs" else FEWEST
    return tuple_canary(
        learner.unit, kappa, n_features, learner.adjacency, size, data_norm=learner.data_norm
    )
