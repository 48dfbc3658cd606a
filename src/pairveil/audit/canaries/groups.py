"""The canary of groups: one person's whole content, the others of her group fixed.

In a group of three, B and C differ a little and are dissimilar: alone they push apart along one column. A is
far from both and similar to B: with her the group pulls together along that column. Both contributions are
clipped to the same length and point opposite ways, so A moves the sum of gradients by two clip bounds,
whether she is nulled or replaced. An implementation that charges one is convicted (docs/theory/groups.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pairveil.data.groups import GroupSet
from pairveil.data.people import NO_CLASS
from pairveil.errors import InputError
from pairveil.privacy.units import Adjacency

SMALL = 0.05  # length of the others


@dataclass(frozen=True)
class GroupNeighbours:
    """Two inputs of groups that differ in what one person says.

    Parameters
    ----------
    first, second : GroupSet
        The same people in the same groups.
    adjacency : {"zero-out", "replace"}
    name : str
    """

    first: GroupSet
    second: GroupSet
    adjacency: Adjacency
    name: str = "given"

    def __post_init__(self) -> None:
        if not np.array_equal(self.first.members, self.second.members):
            raise InputError("neighbouring inputs have the same people in the same groups")

    @property
    def changed(self) -> NDArray[np.intp]:
        """Positions of the groups whose contents differ."""
        first, second = np.asarray(self.first.features), np.asarray(self.second.features)
        people = np.any(first != second, axis=1)
        moved = np.any((self.first.members >= 0) & people[self.first.members], axis=1)
        return np.flatnonzero(moved | (self.first.labels != self.second.labels).any(axis=1))

    @property
    def kappa(self) -> int:
        """How many groups differ."""
        return len(self.changed)


def group_canary(
    adjacency: Adjacency = "zero-out", n_others: int = 400, n_features: int = 3
) -> GroupNeighbours:
    """A against null, or against somebody like C, among ``n_others`` other groups of three.

    Examples
    --------
    >>> canary = group_canary(n_others=10)
    >>> canary.kappa, canary.second
    (1, GroupSet(11 groups of at most 3 people, 33 pairs, 3 features))
    """
    rng = np.random.default_rng(0)
    features = rng.choice([-1.0, 1.0], size=(3 * n_others + 3, n_features)) * SMALL
    features /= np.sqrt(n_features)
    classes = rng.integers(2, size=len(features))
    a, b, c = 0, 1, 2
    features[:3] = 0.0
    features[a, 0], features[c, 0] = -0.5, SMALL / 5
    classes[[a, b, c]] = 0, 0, 1
    other, elsewhere = features.copy(), classes.copy()
    if adjacency == "zero-out":
        elsewhere[a] = NO_CLASS
    else:
        other[a], elsewhere[a] = features[c], 1
    members = np.arange(len(features)).reshape(-1, 3)
    return GroupNeighbours(
        GroupSet.of_classes(other, members, elsewhere),
        GroupSet.of_classes(features, members, classes),
        adjacency,
        "person in a group",
    )
