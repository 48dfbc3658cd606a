"""The canary of statistics of people: one person's whole content, or two people's, among others.

The others are many and small, in two classes, so that the released centre is near zero and the released scale
is theirs. The canary is as long as a row may be: after scaling she is shortened to length 1, and her
contribution is as long as the clip bound allows. Compared with null that moves every sum by all of its
charge. Replaced by her opposite in the same class it moves class sums by twice their weight and nothing
else: three quarters of the charge (docs/theory/records.md says what the most is).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pairveil.audit.canaries.inputs import Inputs
from pairveil.errors import InputError
from pairveil.learners.base import PrivateLearner
from pairveil.privacy.units import Adjacency
from pairveil.records.groups import NO_CLASS, People
from pairveil.records.kinds import PEOPLE

SMALL = 0.05  # length of the others


class PeopleNeighbours(Inputs[People]):
    """Two inputs of people that differ in the contents of a few of them."""

    def __post_init__(self) -> None:
        same = self.first.features.shape == self.second.features.shape
        if not same or self.first.n_classes != self.second.n_classes:
            raise InputError("neighbouring inputs have as many people, features and classes")
        if self.adjacency == "zero-out" and (self.first.classes[self.changed] != NO_CLASS).any():
            raise InputError("zero-out compares with nulls: changed people of first have no class")

    @property
    def changed(self) -> NDArray[np.intp]:
        """Positions of the people whose contents differ."""
        moved = (np.asarray(self.first.features) != np.asarray(self.second.features)).any(axis=1)
        return np.flatnonzero(moved | (self.first.classes != self.second.classes))


def person_canary(
    n_people: int = 1,
    n_features: int = 3,
    adjacency: Adjacency = "zero-out",
    n_others: int = 4000,
    data_norm: float = 1.0,
    n_classes: int = 2,
) -> PeopleNeighbours:
    """One person, or a few, against null or against their opposites, among ``n_others`` small ones.

    Examples
    --------
    >>> canary = person_canary(2, adjacency="replace", n_others=10)
    >>> canary.kappa, canary.second
    (2, People(12 people of 2 classes, 3 features))
    """
    rng = np.random.default_rng(0)
    others = rng.choice([-1.0, 1.0], size=(n_others, n_features)) * SMALL / np.sqrt(n_features)
    loud = np.zeros((n_people, n_features))
    loud[:, 0] = 1.0
    features = data_norm * np.concatenate([loud, others])
    classes = np.concatenate([np.zeros(n_people, dtype=int), np.arange(n_others) % n_classes])
    opposite, elsewhere = features.copy(), classes.copy()
    opposite[:n_people] *= -1.0
    if adjacency == "zero-out":
        elsewhere[:n_people] = NO_CLASS
    neighbours = (People(opposite, elsewhere, n_classes), People(features, classes, n_classes))
    return PeopleNeighbours(*neighbours, adjacency, "person")


def canary_of_people(learner: PrivateLearner, kappa: int, n_features: int) -> PeopleNeighbours:  # noqa: ARG001
    """As many people as a learner's unit touches: one, or two for a fact about two people.

    Those are among three classes: two classes would be learned from pairs, where they are what it protects.
    """
    n_people = PEOPLE.touches[learner.unit]
    return person_canary(
        n_people,
        n_features,
        learner.adjacency,
        data_norm=learner.data_norm,
        n_classes=1 + n_people,
    )
