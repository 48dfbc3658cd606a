"""The canary of a constrained clustering: links at one point, on which the clusterings disagree most.

The points are public, so two inputs differ in what links say alone: null (label 0) or the opposite. Counts
are divided by the longest row of votes among the links, whatever clusterings the learned metric adds. So the
other links join points at one place, which every clustering puts together: their rows are 0, and the
canary's row is the longest. Links of one person all go to one place: their rows are equal and add up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil.audit.canaries.inputs import Inputs
from pairveil.learners.clustering import candidates, votes_of
from pairveil.records.pairset import PairSet

OTHERS = 60
"""Other links, each between two points at one place."""


class LinkNeighbours(Inputs[PairSet]):
    """Two inputs with the same points and links, some of which say something else."""

    hides_features = False  # the points are public

    @property
    def changed(self) -> NDArray[np.intp]:
        """Positions of the links that differ."""
        return np.flatnonzero(np.asarray(self.first.labels) != np.asarray(self.second.labels))


def canary_of_links(learner: Any, kappa: int, n_features: int) -> LinkNeighbours:
    """``kappa`` links of one point (a pair, a relationship: one) against null or the opposite, among others.

    No links close a circle here, so a relationship is in one link alone.

    Examples
    --------
    >>> from pairveil import PrivateConstrainedKMeans
    >>> canary_of_links(PrivateConstrainedKMeans(2, unit="person"), kappa=3, n_features=2).kappa
    3
    """
    if learner.unit != "person":
        kappa = 1
    rng = np.random.default_rng(0)
    copies = max(2, kappa)
    places = rng.normal(size=(max(2 * OTHERS, 4 * learner.n_clusters), n_features))
    places /= np.sqrt((places**2).sum(axis=1)).max() * (1 + 1e-12)
    points = np.repeat(places, copies, axis=0)
    labels = candidates(points, None, learner.n_clusters, spectral=learner.spectral)[1][:, ::copies]
    n = len(places)
    every = np.indices((n, n)).reshape(2, -1).T
    lengths = (votes_of(labels, every, "l2")[0] ** 2).sum(axis=1)
    hub, partner = every[int(lengths.argmax())]
    rest = copies * np.setdiff1d(np.arange(n), [hub, partner])[:OTHERS]
    star = np.column_stack([np.full(kappa, copies * hub), copies * partner + np.arange(kappa)])
    said = np.concatenate([np.ones(kappa), rng.choice([-1, 1], OTHERS)]).astype(np.int8)
    links = PairSet(points, np.concatenate([star, np.column_stack([rest, rest + 1])]), said)
    second = links.canonical()[0]
    changed = (second.pairs == copies * hub).any(axis=1)
    if learner.adjacency == "zero-out":
        first = second.emptied(changed)
    else:
        first = second.replace(labels=np.where(changed, -1, np.asarray(second.labels)))
    return LinkNeighbours(first, second, learner.adjacency, "links")
