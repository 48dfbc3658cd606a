"""PrivateConstrainedKMeans: clusters of points that heed private must-links and cannot-links.

The points are public; whether a link says 'together' or 'apart' is private. The links are used twice: a
private metric is learned from them, and they choose among clusterings of the public points by noisy counts of
the links that each of them violates. Labels of the points follow from the answers alone.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from pairveil.array_types import FloatArray, IntArray
from pairveil.errors import InputError
from pairveil.learners.base import PrivateLearner
from pairveil.learners.clustering_links import (
    LinkedRecipe,
    count_contradictions,
    links_between,
    on_one_scale,
)
from pairveil.learners.inputs import Resolved, as_features
from pairveil.learners.material import material_of_pairs
from pairveil.learners.parameters import (
    check_common,
    is_whole,
    plain_parameters,
)
from pairveil.learners.preparing import Prepared, prepare
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.privacy.mechanisms import GAUSSIAN
from pairveil.privacy.units import POINTS_ARE_PUBLIC, Adjacency, Unit
from pairveil.records.pairset import PairSet


class PrivateConstrainedKMeans(PrivateLearner):
    """Cluster points with private must-link and cannot-link pairs.

    **The points are not protected**: their features are public, and only whether a link says 'together' or
    'apart' is private. Which points are linked (the union of both lists) is public too.

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
        given = SimpleNamespace(**vars(plain_parameters(self)), kappa="auto", data_norm=1.0)
        check_common(given)
        given_links = X if isinstance(X, PairSet) else None
        points = _checked_points(X if given_links is None else X.features, given.n_clusters)
        links = links_between(on_one_scale(points), ml, cl) if given_links is None else given_links
        material = material_of_pairs(given, Resolved(links, None, False))
        material = replace(material, public=(*material.public, POINTS_ARE_PUBLIC))
        count_contradictions(links)
        used = material.used.pairs
        recipe = LinkedRecipe(points, links.features, used, given.n_clusters, bool(given.spectral))
        return prepare(recipe, given, material, self._noise())

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
        rows = as_features(X)
        rows = np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)
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
