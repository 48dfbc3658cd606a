"""PrivateConstrainedKMeans: clusters of points that heed private must-links and cannot-links.

The points are public unless asked otherwise; whether a link says 'together' or 'apart' is private. The
links are used twice: they teach a private metric, and they choose among clusterings of the public points by
noisy counts of the links that each of them violates. Labels of the points follow from the answers alone.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from pairveil.data.pairset import PairSet
from pairveil.engine.engine import Engine
from pairveil.engine.plan import Ask, Plan, Setting
from pairveil.engine.statistics import TILE, Statistic
from pairveil.errors import DataWarning, InputError, PrivateNote
from pairveil.learners.base import PrivateLearner
from pairveil.learners.clustering_points import LinkedPoints, PointsRecipe
from pairveil.learners.clusterings import candidates, most_candidates
from pairveil.learners.contrastive.recipe import ContrastiveRecipe
from pairveil.learners.grouped import COSTS_OF_GROUPS
from pairveil.learners.inputs import Resolved, as_features
from pairveil.learners.material import material_of_pairs
from pairveil.learners.parameters import (
    check_bound,
    check_choice,
    check_common,
    is_whole,
    plain_parameters,
)
from pairveil.learners.preparing import Prepared, prepare
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.grid import Norm, to_grid
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.privacy.mechanisms.gaussian import GAUSSIAN
from pairveil.privacy.units import POINTS_ARE_PUBLIC, Adjacency, Unit

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

METRIC_SHARE = 0.5
"""Part of the budget that the private metric is worth; the counts get the rest."""
TYPICAL = 0.95
"""The points are scaled so that this part of them is not longer than 1."""


@dataclass(frozen=True)
class LinkVotes(Statistic):
    """How many links each clustering violates less than the others do: label times the link's public row.

    Row l of ``votes`` says of every clustering whether it puts the two ends of link l together (+1) or
    apart (-1), less their mean, divided by the longest such row. So a contribution has length 1 at most,
    whatever the label; a null link (label 0) contributes nothing. A link is known by its place among the
    records, so the sum is taken from the records themselves.

    Parameters
    ----------
    votes : array of shape (n_links, n_candidates)
        Public.
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


def votes_of(labels: IntArray, links: IntArray, norm: Norm) -> tuple[FloatArray, float]:
    """Rows of `LinkVotes` and what they were divided by.

    Examples
    --------
    >>> votes, longest = votes_of(np.array([[0, 0, 1], [0, 1, 1]]), np.array([[0, 1], [0, 2]]), "l1")
    >>> votes.round(3).tolist(), longest
    ([[0.5, -0.5], [0.0, 0.0]], 2.0)
    """
    together = np.where(labels[:, links[:, 0]] == labels[:, links[:, 1]], 1.0, -1.0).T
    apart = together - together.mean(axis=1, keepdims=True)
    lengths = np.abs(apart).sum(axis=1) if norm == "l1" else np.sqrt((apart**2).sum(axis=1))
    longest = max(float(lengths.max()), 1e-9)
    return apart / (longest * (1 + 1e-12)), longest


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
    n_clusters : int
    spectral : bool
    metric : ContrastiveRecipe
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
        return {
            **self.metric.options(),
            "n_clusters": self.n_clusters,
            "spectral": self.spectral,
        }

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
        best = int(np.argmax(agreement))
        return Clustered(labels[best], names[best], tuple(names), agreement)


class PrivateConstrainedKMeans(PrivateLearner):
    """Cluster points with private must-link and cannot-link pairs.

    **The points are not protected** unless ``protect='points'``: their features are public, and only
    whether a link says 'together' or 'apart' is private. Which points are linked (the union of both lists)
    is public too.

    Parameters
    ----------
    n_clusters : int, default 8
    epsilon : float, default 1.0
        Privacy budget of one fit, for ``unit`` and ``adjacency``. ``inf`` is the non-private fit.
    delta : float, default 1e-5
    unit : {'relationship', 'person', 'pair'}
        What is protected: one link is a pair, all links at one point a person.
    select : {'paths', 'forest', 'matching', 'all'}
        Which of the links are used, by who is linked with whom alone.
    adjacency : {'zero-out', 'replace'}
    mechanism : {'gaussian', 'laplace'}
    spectral : bool, default True
        Also try clusters of the graph of nearest neighbours (spectral clustering), up to 5,000 points.
    protect : {'links', 'points'}
        What is private. With ``'points'`` the features are too, every step of k-means is paid for, links are
        used as a matching, ``labels_`` are not released (`predict` gives them to whoever has the points), and
        all units cost the same.
    data_norm : float, default 1.0
        For ``protect='points'``: public bound on a point's l2 norm; longer rows are clipped, and it is said.
    accountant : PrivacyLedger or None
        A budget across fits; charged before any noise is drawn.
    random_state : int, Generator or None
        None: operating-system entropy and exact discrete noise, a release. A seed: repeatable, and the
        certificate says ``for_release: false``.

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

    backend: Any = "auto"
    learns_from = ("links",)

    def __init__(
        self,
        n_clusters: int = 8,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        unit: Unit = "relationship",
        select: str = "paths",
        adjacency: Adjacency = "zero-out",
        mechanism: str = GAUSSIAN.name,
        spectral: bool = True,
        protect: str = "links",
        data_norm: float = 1.0,
        accountant: PrivacyLedger | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.unit = unit
        self.select = select
        self.adjacency = adjacency
        self.mechanism = mechanism
        self.spectral = spectral
        self.protect = protect
        self.data_norm = data_norm
        self.accountant = accountant
        self.random_state = random_state

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
            Row numbers of points that belong together, and of points that do not. Which of the two lists a
            link is in is private, and so is how long each list is; a link in both lists contributes
            nothing.
        **watching
            ``on_step``, ``on_answer``, ``checkpoint`` and ``keep_checkpoint`` as for other learners.

        Returns
        -------
        self
        """
        prepared = X if isinstance(X, Prepared) else self.prepare(X, y, ml=ml, cl=cl)
        return super().fit(prepared, **watching)

    def fit_predict(self, X: Any, y: Any = None, *, ml: Any = None, cl: Any = None) -> IntArray:
        """``labels_`` of `fit`."""
        found: IntArray = self.fit(X, y, ml=ml, cl=cl).labels_
        return found

    def certify(  # type: ignore[override]
        self, X: Any, y: Any = None, *, ml: Any = None, cl: Any = None
    ) -> Certificate | None:
        """The certificate that ``fit`` would issue. Draws no noise and spends nothing."""
        return self.prepare(X, y, ml=ml, cl=cl).certificate

    def prepare(self, X: Any, y: Any = None, *, ml: Any = None, cl: Any = None) -> Prepared:  # type: ignore[override]
        """All of a fit that comes before its noise; spends nothing.

        Parameters
        ----------
        X, ml, cl
            As for `fit`. A PairSet holds points on one scale and labelled links, for auditors.
        """
        del y
        given = SimpleNamespace(**vars(plain_parameters(self)), kappa="auto")
        check_common(given)
        check_choice("protect", given.protect, ("links", "points"))
        check_bound("data_norm", given.data_norm)
        given_links = X if isinstance(X, PairSet) else None
        points = _checked_points(X if given_links is None else X.features, given.n_clusters)
        if given.protect == "points":
            return self._prepare_points(given, points, ml, cl)
        given.data_norm = 1.0  # public points are put on one scale
        links = _links(_on_one_scale(points), ml, cl) if given_links is None else given_links
        material = material_of_pairs(given, Resolved(links, None, False), stacklevel=3)
        material = replace(material, public=(*material.public, POINTS_ARE_PUBLIC))
        _count_contradictions(links)
        used = material.used.pairs
        recipe = LinkedRecipe(points, links.features, used, given.n_clusters, bool(given.spectral))
        return prepare(recipe, given, material, self._noise(), stacklevel=3)

    def _prepare_points(self, given: Any, points: FloatArray, ml: Any, cl: Any) -> Prepared:
        """Points are private: everybody in one group, a linked pair or alone (docs/guides/clustering.md)."""
        links = _links(points, ml, cl)
        _count_contradictions(links)
        settled = SimpleNamespace(**{**vars(given), "select": "matching"})
        material = material_of_pairs(settled, Resolved(links, None, False), stacklevel=4)
        groups = LinkedPoints.of(material.used)
        material = replace(material, used=groups, kind="groups", costs=COSTS_OF_GROUPS)
        recipe = PointsRecipe(given.n_clusters)
        return prepare(recipe, settled, material, self._noise(), stacklevel=4)

    def release(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write centres, labels of public points and the certificate, to be handed out.

        `pairveil.ReleasedClusters.load` reads them.

        Parameters
        ----------
        folder : path
            Written whole or not at all.
        overwrite : bool
            Whether an earlier release may be replaced.
        """
        import pairveil  # what is past the trust boundary stands above this part

        check_is_fitted(self, "cluster_centers_")
        if self.certificate_ is None:
            raise InputError("epsilon=inf promises nothing: there is nothing to release")
        saved: Path = pairveil.ReleasedClusters(  # type: ignore[attr-defined]
            centers=self.cluster_centers_,
            labels=getattr(self, "labels_", None),
            chosen=getattr(self, "chosen_", None),
            certificate=self.certificate_,
        ).save(folder, overwrite=overwrite)
        return saved

    def predict(self, X: Any) -> IntArray:
        """The nearest of ``cluster_centers_`` for each row."""
        check_is_fitted(self, "cluster_centers_")
        rows = as_features(X)
        rows = np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)
        if rows.shape[1] != self.cluster_centers_.shape[1]:
            raise InputError(f"X must have {self.cluster_centers_.shape[1]} columns")
        away = ((rows[:, None, :] - self.cluster_centers_) ** 2).sum(axis=2)
        return np.asarray(away.argmin(axis=1), dtype=np.int64)

    def _keep(self, model: Any, prepared: Prepared) -> None:
        for name in ("labels_", "chosen_", "agreement_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        self.n_features_in_ = prepared.plan.n_features
        if isinstance(prepared.recipe, PointsRecipe):
            self.cluster_centers_ = np.asarray(model)
            return
        recipe: Any = prepared.recipe
        points = recipe.shown
        self.labels_ = model.labels
        self.cluster_centers_ = np.stack(
            [points[model.labels == one].mean(axis=0) for one in range(model.labels.max() + 1)]
        )
        self.chosen_ = model.chosen
        self.agreement_ = dict(zip(model.names, model.agreement.tolist(), strict=True))


def _checked_points(X: Any, n_clusters: Any) -> FloatArray:
    features = as_features(X)
    points = np.asarray(
        features.toarray() if sparse.issparse(features) else features, dtype=np.float64
    )
    if not np.isfinite(points).all():
        row = int(np.flatnonzero(~np.isfinite(points).all(axis=1))[0])
        raise InputError(f"a feature is missing or infinite, first in row {row} of X")
    if not (is_whole(n_clusters) and n_clusters >= 2):
        raise InputError("n_clusters must be a whole number, at least 2")
    if n_clusters > len(points):
        raise InputError(f"{n_clusters} clusters are more than the {len(points)} points")
    return points


def _links(points: FloatArray, ml: Any, cl: Any) -> PairSet:
    """The union of both lists in canonical order; which list a link was in is its label."""
    lists = [_checked_links(one, name, len(points)) for one, name in ((ml, "ml"), (cl, "cl"))]
    pairs = np.concatenate(lists)
    if len(pairs) == 0:
        raise InputError("there are no links: give ml= and cl=, or use plain k-means")
    labels = np.repeat(np.array([1, -1], dtype=np.int8), [len(one) for one in lists])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*merged", category=DataWarning)
        return PairSet(points, pairs, labels).canonical(stacklevel=4)[0]


def _on_one_scale(points: FloatArray) -> FloatArray:
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


def _count_contradictions(links: PairSet) -> None:
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
        warnings.warn(
            f"{count} cannot-links contradict must-links by transitivity; all are used as they are",
            PrivateNote,
            stacklevel=4,
        )
