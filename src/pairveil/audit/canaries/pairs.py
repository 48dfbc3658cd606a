"""The canary of pairs: the contents of one pair, relationship or person, as loud as they can be.

A promise is about two inputs that differ in the contents of at most kappa pairs while who is paired
with whom stays public. The inputs here differ as much as the promise allows, and everything else
in them is null (equal people, difference 0, no gradient), so that nothing hides the change:

- zero-out: the pairs' contents against null;
- replace: the pairs' contents against the same pairs with the label flipped, which turns a similar pair's
  gradient ``(W dx) dx^T`` into the opposite direction ``(1 - m/D) (W dx) dx^T`` while D < m.

Any two `PairSet` objects may be audited through `Neighbours`; it refuses pairs of inputs that the
promise does not cover.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pairveil.audit.canaries.inputs import Inputs
from pairveil.errors import InputError
from pairveil.privacy.units import Adjacency, Unit
from pairveil.records.pairset import PairSet

CanaryName = Literal["label-flip", "beyond-margin", "person"]


class Neighbours(Inputs[PairSet]):
    """Two inputs with the same pairs of people.

    Examples
    --------
    >>> from pairveil.audit.canaries import label_flip
    >>> label_flip(n_features=2, adjacency="replace").changed
    array([0])
    """

    def __post_init__(self) -> None:
        if self.first.labels is None or self.second.labels is None:
            raise InputError("neighbouring inputs need labels")
        if not np.array_equal(self.first.pairs, self.second.pairs):
            raise InputError(
                "neighbouring inputs have the same pairs of people: the topology is public"
            )
        if self.first.n_features != self.second.n_features:
            raise InputError("neighbouring inputs have the same features")
        if self.adjacency == "zero-out":
            contents = _dense(self.first)[self.changed]
            if contents.any():
                raise InputError(
                    "zero-out compares with nulls: the changed pairs of first must have none"
                )

    @property
    def changed(self) -> NDArray[np.intp]:
        """Positions of the pairs whose contents differ; a null pair's label is no content."""
        one, other = _dense(self.first), _dense(self.second)
        moved = (one != other).any(axis=1)
        contents = one.any(axis=1) | other.any(axis=1)
        return np.flatnonzero(moved | ((self.first.labels != self.second.labels) & contents))


def label_flip(
    n_features: int = 1,
    adjacency: Adjacency = "zero-out",
    *,
    n_pairs: int = 1,
    data_norm: float = 1.0,
) -> Neighbours:
    """One similar pair as far apart as the norm bound allows, so that its gradient is clipped.

    Parameters
    ----------
    adjacency : {"zero-out", "replace"}
        Against null, or against the flipped label.
    n_pairs : int
        Pairs in all; the others are null.
    data_norm : float
        Bound on people's l2 norms; the pair's difference is twice as long. It points along the first
        feature, so that the change is l1-concentrated.
    """
    return _star(1, n_pairs - 1, n_features, adjacency, data_norm, "label-flip", hub=False)


def person_pairs(
    degree: int, n_features: int = 1, adjacency: Adjacency = "zero-out", *, data_norm: float = 1.0
) -> Neighbours:
    """All pairs of one person, in a star around her.

    Examples
    --------
    >>> from pairveil.graph.kappa import kappa
    >>> star = person_pairs(degree=4)
    >>> kappa(star.first).person, kappa(star.first).relationship, star.kappa
    (4, 1, 4)
    """
    return _star(degree, 0, n_features, adjacency, data_norm, "person", hub=True)


def relationship_pairs(
    kappa: int, n_features: int = 1, adjacency: Adjacency = "zero-out", *, data_norm: float = 1.0
) -> Neighbours:
    """Two people joined by ``kappa`` chains of two pairs: one end's pairs change, the rest is null.

    Examples
    --------
    >>> from pairveil.graph.kappa import kappa
    >>> chains = relationship_pairs(kappa=3)
    >>> kappa(chains.first).relationship, chains.kappa, chains.first.n_pairs
    (3, 3, 6)
    """
    star = person_pairs(kappa, n_features, adjacency, data_norm=data_norm)
    far = np.column_stack([np.full(kappa, kappa + 1), np.arange(1, kappa + 1)])
    worlds = []
    for data in (star.first, star.second):
        # The other end is where the middle people are: her pairs have no contents.
        features = np.concatenate([data.features, data.features[1:2]])
        labels = np.concatenate([data.labels, np.ones(kappa, dtype=np.int8)])
        worlds.append(PairSet(features, np.concatenate([data.pairs, far]), labels))
    return Neighbours(worlds[0], worlds[1], adjacency, "relationship")


def canary_of(
    unit: Unit, kappa: int, n_features: int, adjacency: Adjacency, *, data_norm: float = 1.0
) -> Neighbours:
    """The worst case for a protected unit: a pair, a relationship or a person.

    Examples
    --------
    >>> canary_of("pair", 1, 2, "replace").name
    'label-flip'
    """
    if unit == "pair":
        if kappa != 1:
            raise InputError("the unit 'pair' is one pair: kappa must be 1")
        return label_flip(n_features, adjacency, data_norm=data_norm)
    make = {"relationship": relationship_pairs, "person": person_pairs}.get(unit)
    if make is None:
        raise InputError("unit must be 'pair', 'relationship' or 'person'")
    return make(kappa, n_features, adjacency, data_norm=data_norm)


def beyond_margin(n_pairs: int, n_features: int = 1) -> Neighbours:
    """Dissimilar pairs that all lie beyond the margin, of which one becomes similar.

    No pair of the first input has a gradient, so whatever is read off the largest gradient of the
    batch (published DPP-S) jumps. Needs a start W that puts the pairs beyond the margin.

    Examples
    --------
    >>> neighbours = beyond_margin(n_pairs=50, n_features=10)
    >>> neighbours.kappa, neighbours.adjacency
    (1, 'replace')
    """
    features = np.zeros((2 * n_pairs, n_features))
    features[0::2, 0], features[1::2, 0] = 1.0, -1.0
    pairs = np.arange(2 * n_pairs).reshape(-1, 2)
    labels = np.full(n_pairs, -1, dtype=np.int8)
    turned = np.append(np.ones(1, dtype=np.int8), labels[1:])
    worlds = PairSet(features, pairs, labels), PairSet(features, pairs, turned)
    return Neighbours(*worlds, "replace", "beyond-margin")


def _star(
    changed: int,
    nulls: int,
    n_features: int,
    adjacency: Adjacency,
    data_norm: float,
    name: CanaryName,
    *,
    hub: bool,
) -> Neighbours:
    """``changed`` equal pairs, on one hub or on people of their own, and null pairs beside them."""
    if changed < 1 or nulls < 0:
        raise InputError("a canary changes at least one pair and no more than there are")
    if adjacency not in ("zero-out", "replace"):
        raise InputError("adjacency must be 'zero-out' or 'replace'")
    arrow = data_norm * np.eye(n_features)[0]
    if hub:
        pairs = np.column_stack([np.zeros(changed, dtype=np.int64), np.arange(1, changed + 1)])
    else:
        pairs = np.arange(2 * changed).reshape(-1, 2)
    n_changed = int(pairs.max()) + 1
    features = np.zeros((n_changed + 2 * nulls, n_features))
    features[pairs[:, 0]], features[pairs[:, 1]] = arrow, -arrow
    others = n_changed + np.arange(2 * nulls).reshape(-1, 2)
    pairs = np.concatenate([pairs, others])
    labels = np.ones(len(pairs), dtype=np.int8)
    second = PairSet(features, pairs, labels)
    if adjacency == "replace":
        flipped = labels.copy()
        flipped[:changed] = -1
        first = PairSet(features, pairs, flipped)
    else:
        first = PairSet(np.zeros_like(features), pairs, labels)
    return Neighbours(first, second, adjacency, name)


def _dense(pairs: PairSet) -> NDArray[np.float64]:
    rows = pairs.differences()
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)
