"""PrivateConstrainedKMeans: clusters of points that heed private must-links and cannot-links.

The points are public; whether a link says 'together' or 'apart' is private. The links are used twice: a
private metric is learned from them, and they choose among clusterings of the public points by noisy counts of
the links that each of them violates. Labels of the points follow from the answers alone.

k-means runs in several spaces: the features, with equal spread within clusters, their leading directions
with and without equal spread, the released metric, and the neighbourhood graph's own coordinates (spectral
clustering).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from pairveil.array_types import FloatArray, IntArray
from pairveil.engine.engine import Engine
from pairveil.engine.plan import Plan, PublicFacts, QuerySpec
from pairveil.engine.statistics import TILE, Statistic, dense_rows
from pairveil.errors import DataWarning, InputError, PrivateNote, warn
from pairveil.learners.base import WITHOUT_ROWS, PrivateLearner
from pairveil.learners.contrastive.recipe import ContrastiveRecipe
from pairveil.learners.inputs import Resolved, as_features, check_whole, row_numbers, without_ids
from pairveil.learners.preparing import Prepared, PreparedRecords, clusters_of
from pairveil.learners.recipes import fitted
from pairveil.privacy.grid import Norm, to_grid
from pairveil.privacy.units import POINTS_ARE_PUBLIC
from pairveil.records.pairset import PairSet

# ---- clusterings of the public points ------------------------------------------------------------

_FROM = "benchmarks/results, clusters"


@dataclass(frozen=True)
class ClusterNumbers:
    """The fitted numbers of constrained clustering."""

    metric_share: float = fitted(0.5, "part of the budget for the metric", _FROM, -0.022, 0.006)
    outside: float = fitted(0.05, "part of the points longer than 1", _FROM, -0.02, 0.001)


NUMBERS = ClusterNumbers()

# Not fitted: half or double moves nothing. Deviations of noise that links must be able to make; round part of
# the spread within clusters; part of the metric beside Euclid; neighbours of a point in the graph.
HEARD, RIDGE, BLEND, NEIGHBOURS = 0.5, 0.2, 0.5, 10
# How long is searched: leading directions and turns of rounding clusters, at most; starts of each k-means.
DIRECTIONS, TURNS, STARTS = 32, 10, 4

MOST_SPECTRAL = 5000
"""Points above which the neighbourhood graph's coordinates take too long."""


def most_candidates(n_features: int) -> int:
    """How many clusterings there are at most, from public numbers."""
    return 1 + 1 + 2 * len(_widths(n_features)) + 2 + 1


def candidates(
    points: FloatArray, metric: FloatArray | None, n_clusters: int, *, spectral: bool
) -> tuple[list[str], IntArray]:
    """Different clusterings of the same points and what they are called; the first is plain k-means."""
    named: dict[bytes, tuple[str, IntArray]] = {}
    for name, space in _spaces(points, metric, n_clusters, spectral=spectral):
        labels = in_order_of_first(k_means(space, n_clusters))
        named.setdefault(labels.tobytes(), (name, labels))
    names = [name for name, _ in named.values()]
    return names, np.stack([labels for _, labels in named.values()])


def k_means(space: FloatArray, n_clusters: int) -> IntArray:
    """Plain k-means, the same whenever it is called."""
    from sklearn.cluster import KMeans

    # fewer distinct points than clusters
    with warnings.catch_warnings(action="ignore"):
        found = KMeans(n_clusters, n_init=STARTS, random_state=0).fit_predict(space)
    return np.asarray(found, dtype=np.int64)


def in_order_of_first(labels: IntArray) -> IntArray:
    """The same clustering, clusters numbered by their first point."""
    _, first, where = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return np.asarray(rank[where.ravel()], dtype=np.int64)


def _spaces(
    points: FloatArray, metric: FloatArray | None, n_clusters: int, *, spectral: bool
) -> Iterator[tuple[str, FloatArray]]:
    plain = _unit(points - points.mean(axis=0))
    yield "features", plain
    yield "equal spread within clusters", _evened(plain, n_clusters)
    u, s, _ = np.linalg.svd(plain, full_matrices=False)
    for width in _widths(points.shape[1]):
        yield f"{width} directions", u[:, :width] * s[:width]
        yield f"{width} directions, equal spread", u[:, :width]
    if metric is not None:
        learned = _unit(plain @ metric.T)
        for part in (BLEND, 1.0):
            blended = np.hstack([np.sqrt(1 - part) * plain, np.sqrt(part) * learned])
            yield f"{part:g} private metric", blended
    if spectral and n_clusters + 1 < len(points) <= MOST_SPECTRAL:
        yield "neighbourhoods", _neighbourhoods(plain, n_clusters)


def _evened(points: FloatArray, n_clusters: int) -> FloatArray:
    """The points in coordinates in which clusters are about round: k-means, turn by turn in the last ones."""
    space, labels = points, in_order_of_first(k_means(points, n_clusters))
    for _ in range(TURNS):
        means = np.stack([points[labels == c].mean(axis=0) for c in range(labels.max() + 1)])
        rest = points - means[labels]
        spread = rest.T @ rest / len(points)
        d = len(spread)
        level = max(float(np.trace(spread)) / d, 1e-300)
        values, basis = np.linalg.eigh((1 - RIDGE) * spread + RIDGE * level * np.eye(d))
        space = points @ basis / np.sqrt(values)
        last, labels = labels, in_order_of_first(k_means(space, n_clusters))
        if (labels == last).all():
            break
    return space


def _widths(n_features: int) -> list[int]:
    return [2**p for p in range(20) if 2**p <= min(n_features, DIRECTIONS)]


def _unit(rows: FloatArray) -> FloatArray:
    return rows / max(float(np.sqrt((rows**2).sum(axis=1).mean())), 1e-300)


def _neighbourhoods(points: FloatArray, n_clusters: int) -> FloatArray:
    """Coordinates of the graph of nearest neighbours."""
    from sklearn.manifold import SpectralEmbedding

    made: Any = SpectralEmbedding(
        n_clusters,
        affinity="nearest_neighbors",
        n_neighbors=min(NEIGHBOURS, len(points) - 1),
        random_state=0,
    )
    # a graph in several parts is fine here
    with warnings.catch_warnings(action="ignore"):
        return np.asarray(made.fit_transform(points), dtype=np.float64)


# ---- what the links are asked --------------------------------------------------------------------


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
    """Rows of `LinkVotes` and what they were divided by."""
    together = together_of(labels, links)
    apart = together - together.mean(axis=1, keepdims=True)
    lengths = np.abs(apart).sum(axis=1) if norm == "l1" else np.sqrt((apart**2).sum(axis=1))
    longest = max(float(lengths.max()), 1e-9)
    return apart / (longest * (1 + 1e-12)), longest


def choose_clustering(agreement: FloatArray, together: FloatArray, noise: float) -> int:
    """Which clustering to take: a post-processing of the released counts.

    A clustering cannot lead plain k-means, the first, by more links than the two differ on. Where the noise
    in a lead drowns even that, plain k-means stays. Otherwise each clustering speaks with weight exp(count /
    noise), and the one is taken that says most nearly the same of the links as all of them together: a
    clustering unlike all others is not taken on the noise's word. Without noise that is the largest count.
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
    """A metric from the links, clusterings of the public points, and a noisy count for each of them."""

    shown: FloatArray  # the points as they were given. Public
    points: FloatArray  # the points on one scale, as records have them
    links: IntArray  # public: which points are linked, not how
    n_clusters: int
    spectral: bool
    metric: ContrastiveRecipe = field(default_factory=ContrastiveRecipe)
    headline = "votes"

    def ask(self, facts: PublicFacts) -> tuple[QuerySpec, ...]:
        """What the metric asks, for its part of the budget, and the counts."""
        metric = [
            ask._replace(share=NUMBERS.metric_share * ask.share) for ask in self.metric.ask(facts)
        ]
        most = most_candidates(facts.n_features)
        return (*metric, QuerySpec("votes", (most,), 1 - NUMBERS.metric_share))

    def options(self) -> dict[str, Any]:
        """For the certificate."""
        return {**self.metric.options(), "n_clusters": self.n_clusters, "spectral": self.spectral}

    def run(self, plan: Plan, engine: Engine) -> Clustered:
        """Learn the metric, cluster the points in several ways, and ask which of them the links like."""
        # a metric that stays Euclidean is no loss here
        with warnings.catch_warnings(action="ignore", category=DataWarning):
            metric = self.metric.run(plan, engine)
        names, labels = candidates(
            self.points, np.asarray(metric), self.n_clusters, spectral=self.spectral
        )
        query = plan["votes"]
        votes, longest = votes_of(labels, self.links, query.mechanism.norm)
        agreement = engine.answer(query, LinkVotes(votes)) * longest / 2
        noise = query.noise_std(LinkVotes.clip) * longest / 2
        best = choose_clustering(agreement, together_of(labels, self.links), noise)
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
    typical = max(float(np.quantile(lengths, 1 - NUMBERS.outside)), 1e-300)
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
    part = clusters_of(links.pairs[links.labels > 0], links.n_people)[1]
    apart = links.pairs[links.labels < 0]
    count = int(np.count_nonzero(part[apart[:, 0]] == part[apart[:, 1]]))
    if count:
        warn(
            f"{count} cannot-links contradict must-links by transitivity; all are used as they are",
            PrivateNote,
        )


# ---- the learner ---------------------------------------------------------------------------------


class PrivateConstrainedKMeans(PrivateLearner):
    """Cluster points with private must-link and cannot-link pairs.

    **The points are not protected**: their features are public, and only whether a link says 'together' or
    'apart' is private. Which points are linked (the union of both lists) is public too.

    Parameters
    ----------
    n_clusters : int, default 8
    epsilon : float, default 1.0
        Privacy budget of one fit, for ``unit`` and ``adjacency``. ``inf`` is the non-private fit.
    spectral : bool, default True
        Also try clusters of the graph of nearest neighbours (spectral clustering), up to 5,000 points.
    **common
        As for every learner; one link is a pair, all links at one point a person.

    Attributes
    ----------
    labels_ : array of shape (n,)
        The cluster of each point, clusters numbered by their first point.
    cluster_centers_ : array of shape (n_found, d)
        Means of the points of each cluster.
    chosen_ : str
        The space in which k-means was followed.
    agreement_ : dict
        For each clustering that was tried, by how many links more than the average one it was kept (noisy).
    certificate_ : Certificate or None
    kappa_ : int
    noise_multiplier_ : float

    Examples
    --------
    >>> from pairveil import PrivateConstrainedKMeans
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(300, 2)) * [1, 9] + [4 * side, 0] for side in (0, 1)])
    >>> a, b = rng.integers(600, size=(2, 500))
    >>> a, b = a[a != b], b[a != b]
    >>> same = (a < 300) == (b < 300)
    >>> ml, cl = np.column_stack([a, b])[same], np.column_stack([a, b])[~same]
    >>> fitted = PrivateConstrainedKMeans(2, epsilon=1.0, random_state=0).fit(X, ml=ml, cl=cl)
    >>> truth = np.arange(600) >= 300
    >>> bool(max(np.mean(fitted.labels_ == truth), np.mean(fitted.labels_ != truth)) > 0.9)
    True
    >>> fitted.certificate_.verify().problems
    ()
    """

    learns_from = ("links",)
    _fixed = WITHOUT_ROWS | {"kappa": "auto"}

    def __init__(
        self, n_clusters: int = 8, epsilon: float = 1.0, spectral: bool = True, **common: Any
    ) -> None:
        super().__init__(epsilon, **common)
        self.n_clusters = n_clusters
        self.spectral = spectral

    def fit(  # type: ignore[override]
        self, X: Any, y: Any = None, *, ml: Any = None, cl: Any = None, **watching: Any
    ) -> Self:
        """Cluster the points, and issue the certificate.

        Parameters
        ----------
        X : array of shape (n, d)
            The points. Public.
        y : ignored
        ml, cl : arrays of shape (m, 2)
            Row numbers (or, of a table that names its rows by text, names) of points that belong together,
            and of points that do not. Which of the two lists a link is in is private, and so is how long each
            list is; a link in both lists contributes nothing.
        **watching
            ``on_step``, ``on_answer``, ``checkpoint`` and ``keep_checkpoint`` as for other learners.

        Returns
        -------
        self
        """
        return super().fit(X, y, ml=ml, cl=cl, **watching)

    def fit_predict(self, X: Any, y: Any = None, *, ml: Any = None, cl: Any = None) -> IntArray:
        """``labels_`` of `fit`."""
        found: IntArray = self.fit(X, y, ml=ml, cl=cl).labels_
        return found

    def _resolve(
        self, given: Any, data: Any, y: Any, *, ml: Any = None, cl: Any = None
    ) -> Resolved:
        """The links; a PairSet holds points on one scale and labelled links, for auditors."""
        del y
        links = data if isinstance(data, PairSet) else None
        table = without_ids(data) if links is None else links.features
        points = _checked_points(table, given.n_clusters)
        if links is None:
            ml, cl = (row_numbers(one, data, "X") for one in (ml, cl))
            links = links_between(on_one_scale(points), ml, cl)
        count_contradictions(links)
        return Resolved(
            links, facts={"public": (POINTS_ARE_PUBLIC,), "context": (points, links.features)}
        )

    def _recipe(self, given: Any, records: PreparedRecords) -> LinkedRecipe:
        (shown, points), links = records.context, records.used.pairs
        return LinkedRecipe(shown, points, links, given.n_clusters, bool(given.spectral))

    def _released(self) -> Any:
        import pairveil  # what is past the trust boundary stands above this part

        return pairveil.ReleasedClusters(  # type: ignore[attr-defined]
            centers=self.cluster_centers_,
            labels=self.labels_,
            chosen=self.chosen_,
            certificate=self.certificate_,
        )

    def predict(self, X: Any) -> IntArray:
        """The nearest of ``cluster_centers_`` for each row."""
        check_is_fitted(self, "cluster_centers_")
        rows = dense_rows(as_features(without_ids(X)))
        if rows.shape[1] != self.cluster_centers_.shape[1]:
            raise InputError(f"X must have {self.cluster_centers_.shape[1]} columns")
        away = ((rows[:, None, :] - self.cluster_centers_) ** 2).sum(axis=2)
        return np.asarray(away.argmin(axis=1), dtype=np.int64)

    def _keep(self, model: Any, prepared: Prepared) -> None:
        self.n_features_in_ = prepared.plan.n_features
        recipe: Any = prepared.recipe
        points = recipe.shown
        self.labels_ = model.labels
        self.cluster_centers_ = np.stack(
            [points[model.labels == one].mean(axis=0) for one in range(model.labels.max() + 1)]
        )
        self.chosen_ = model.chosen
        self.agreement_ = dict(zip(model.names, model.agreement.tolist(), strict=True))


def _checked_points(X: Any, n_clusters: Any) -> FloatArray:
    points = dense_rows(as_features(X))
    if not np.isfinite(points).all():
        row = int(np.flatnonzero(~np.isfinite(points).all(axis=1))[0])
        raise InputError(f"a feature is missing or infinite, first in row {row} of X")
    check_whole("n_clusters", n_clusters, least=2)
    if n_clusters > len(points):
        raise InputError(f"{n_clusters} clusters are more than the {len(points)} points")
    return points
