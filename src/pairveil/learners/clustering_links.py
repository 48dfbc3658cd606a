"""What private links ask of public points: a metric, and noisy counts that choose among clusterings.

A link's label, must-link (+1) or cannot-link (-1), is private; the points and which of them are linked are
public.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from pairveil._warn import warn
from pairveil.array_types import FloatArray, IntArray
from pairveil.engine.engine import Engine
from pairveil.engine.plan import Ask, Plan, Setting
from pairveil.engine.statistics import TILE, Statistic
from pairveil.errors import DataWarning, InputError, PrivateNote
from pairveil.learners.clusterings import candidates, most_candidates
from pairveil.learners.contrastive.recipe import ContrastiveRecipe
from pairveil.privacy.grid import Norm, to_grid
from pairveil.records.pairset import PairSet

METRIC_SHARE = 0.5
"""Part of the budget that the private metric is worth; the counts get the rest."""
TYPICAL = 0.95
"""The points are scaled so that this part of them is not longer than 1."""
HEARD = 0.5
"""Deviations of a lead's noise that the links must be able to make, or plain k-means stays."""


@dataclass(frozen=True)
class LinkVotes(Statistic):
    """How many links each clustering violates less than the others do: label times the link's public row.

    Row l of ``votes`` says of every clustering whether it puts the two ends of link l together (+1) or
    apart (-1), less their mean, divided by the longest such row. So a contribution has length 1 at most,
    whatever the label; a null link (label 0) contributes nothing. A link is known by its place among the
    records, so the sum is taken from the records themselves.

    ``votes``: array of shape (n_links, n_candidates); public.
    """

    votes: FloatArray
    clip = 1.0

    @property
    def shape(self) -> tuple[int, ...]:
        """One number for each clustering."""
        return (self.votes.shape[1],)

    def is_compilable(self, data: Any) -> bool:
        """Whether these are the links that the votes are about."""
        return bool(data.n_records == len(self.votes))

    def compiled_sum(
        self, data: Any, rows: IntArray | None, norm: Norm, grid: float, separately: bool
    ) -> IntArray:
        """Sum of label times row, tile by tile."""
        del norm  # rows are short enough in the norm that they were divided for
        places = np.arange(data.n_records) if rows is None else rows
        total, size = np.zeros(self.shape, dtype=np.int64), 1 if separately else TILE
        for start in range(0, len(places), size):
            tile = places[start : start + size]
            total += to_grid(data.labels[tile].astype(np.float64) @ self.votes[tile], grid)
        return total


def together_of(labels: IntArray, links: IntArray) -> FloatArray:
    """Whether a clustering (column) puts the two ends of a link (row) together (+1) or apart (-1)."""
    return np.where(labels[:, links[:, 0]] == labels[:, links[:, 1]], 1.0, -1.0).T


def votes_of(labels: IntArray, links: IntArray, norm: Norm) -> tuple[FloatArray, float]:
    """Rows of `LinkVotes` and what they were divided by.

    Examples
    --------
    >>> votes, longest = votes_of(np.array([[0, 0, 1], [0, 1, 1]]), np.array([[0, 1], [0, 2]]), "l1")
    >>> votes.round(3).tolist(), longest
    ([[0.5, -0.5], [0.0, 0.0]], 2.0)
    """
    together = together_of(labels, links)
    apart = together - together.mean(axis=1, keepdims=True)
    lengths = np.abs(apart).sum(axis=1) if norm == "l1" else np.sqrt((apart**2).sum(axis=1))
    longest = max(float(lengths.max()), 1e-9)
    return apart / (longest * (1 + 1e-12)), longest


def choose(agreement: FloatArray, together: FloatArray, noise: float) -> int:
    """Which clustering to take: a post-processing of the released counts.

    A clustering cannot lead plain k-means, the first, by more links than the two differ on. Where the noise
    in a lead drowns even that, plain k-means stays. Otherwise each clustering speaks with weight exp(count /
    noise), and the one is taken that says most nearly the same of the links as all of them together: a
    clustering unlike all others is not taken on the noise's word. Without noise that is the largest count.

    Parameters
    ----------
    agreement : array of shape (n_candidates,)
        Released.
    together : array of shape (n_links, n_candidates)
        `together_of`; public.
    noise : float
        Standard deviation of the noise in one of the counts; public.

    Examples
    --------
    >>> together = together_of(np.array([[0, 0, 1], [0, 1, 1]]), np.array([[0, 1], [1, 2]]))
    >>> [choose(np.array([0.0, 2.0]), together, noise) for noise in (0.0, 1.0, 9.0)]
    [1, 1, 0]
    """
    if noise == 0:
        return int(np.argmax(agreement))
    if np.count_nonzero(together != together[:, :1], axis=0).max() < HEARD * np.sqrt(2) * noise:
        return 0
    weights = np.exp((agreement - agreement.max()) / noise)
    return int(np.argmax((together @ weights) @ together))


@dataclass(frozen=True)
class Clustered:
    """What the recipe makes: labels of the points, and where they come from."""

    labels: IntArray
    chosen: str
    names: tuple[str, ...]
    agreement: FloatArray


@dataclass(frozen=True)
class LinkedRecipe:
    """A metric from the links, clusterings of the public points, and a noisy count for each of them.

    Parameters
    ----------
    shown : array of shape (n, d)
        The points as they were given. Public.
    points : array of shape (n, d)
        The points on one scale, as records have them.
    links : array of shape (n_links, 2)
        Public: which points are linked, not how.
    """

    shown: FloatArray
    points: FloatArray
    links: IntArray
    n_clusters: int
    spectral: bool
    metric: ContrastiveRecipe = field(default_factory=ContrastiveRecipe)
    headline = "votes"

    def ask(self, setting: Setting) -> tuple[Ask, ...]:
        """What the metric asks, for its part of the budget, and the counts."""
        metric = [ask._replace(share=METRIC_SHARE * ask.share) for ask in self.metric.ask(setting)]
        most = most_candidates(setting.n_features)
        return (*metric, Ask("votes", (most,), 1 - METRIC_SHARE))

    def options(self) -> dict[str, Any]:
        """For the certificate."""
        return {**self.metric.options(), "n_clusters": self.n_clusters, "spectral": self.spectral}

    def run(self, plan: Plan, engine: Engine) -> Clustered:
        """Learn the metric, cluster the points in several ways, and ask which of them the links like."""
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", DataWarning
            )  # a metric that stays Euclidean is no loss here
            metric = self.metric.run(plan, engine)
        names, labels = candidates(
            self.points, np.asarray(metric), self.n_clusters, spectral=self.spectral
        )
        query = plan["votes"]
        votes, longest = votes_of(labels, self.links, query.mechanism.norm)
        agreement = engine.answer(query, LinkVotes(votes)) * longest / 2
        noise = query.noise_std(LinkVotes.clip) * longest / 2
        best = choose(agreement, together_of(labels, self.links), noise)
        return Clustered(labels[best], names[best], tuple(names), agreement)


def links_between(points: FloatArray, ml: Any, cl: Any) -> PairSet:
    """The union of both lists in canonical order; which list a link was in is its label."""
    lists = [_checked_links(one, name, len(points)) for one, name in ((ml, "ml"), (cl, "cl"))]
    pairs = np.concatenate(lists)
    if len(pairs) == 0:
        raise InputError("there are no links: give ml= and cl=, or use plain k-means")
    labels = np.repeat(np.array([1, -1], dtype=np.int8), [len(one) for one in lists])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*merged", category=DataWarning)
        return PairSet(points, pairs, labels).canonical()[0]


def on_one_scale(points: FloatArray) -> FloatArray:
    """Public points with columns of one spread, most of them no longer than 1 and none longer."""
    spread = points.std(axis=0)
    rows = (points - points.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    lengths = np.sqrt((rows**2).sum(axis=1))
    typical = max(float(np.quantile(lengths, TYPICAL)), 1e-300)
    return np.asarray(rows / np.maximum(lengths, typical)[:, None] * (1 - 1e-12))


def _checked_links(links: Any, name: str, n_points: int) -> IntArray:
    if links is None or len(links) == 0:
        return np.empty((0, 2), dtype=np.int64)
    array = np.asarray(links)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise InputError(f"{name} must hold pairs of row numbers: shape (n, 2)")
    if array.min() < 0 or array.max() >= n_points:
        raise InputError(f"{name} names a row outside the {n_points} rows of X (they count from 0)")
    own = np.flatnonzero(array[:, 0] == array[:, 1])
    if own.size:
        raise InputError(f"{name} links a point with itself, first at position {own[0]}")
    return array.astype(np.int64)


def count_contradictions(links: PairSet) -> None:
    """Tell the operator how many cannot-links the must-links contradict by transitivity; nobody else."""
    assert links.labels is not None
    together = links.pairs[links.labels > 0]
    graph = sparse.coo_array(
        (np.ones(len(together)), (together[:, 0], together[:, 1])),
        shape=(links.n_people, links.n_people),
    )
    part = sparse.csgraph.connected_components(graph, directed=False)[1]
    apart = links.pairs[links.labels < 0]
    count = int(np.count_nonzero(part[apart[:, 0]] == part[apart[:, 1]]))
    if count:
        warn(
            f"{count} cannot-links contradict must-links by transitivity; all are used as they are",
            PrivateNote,
        )
