"""DPPMetricLearner: a metric that may be released, with the certificate that says why."""

from __future__ import annotations

import math
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from pairveil.engine.engine import Engine
from pairveil.errors import InputError
from pairveil.graph.digest import graph_digest
from pairveil.graph.kappa import kappa as kappa_of
from pairveil.learners.base import PrivateLearner
from pairveil.learners.calibrations import Calibration, with_calibrations
from pairveil.learners.contract import PairMetric
from pairveil.learners.contrastive.defaults import MARGIN
from pairveil.learners.contrastive.recipe import ContrastiveRecipe
from pairveil.learners.inputs import resolve_pairs
from pairveil.learners.preparing import (
    Prepared,
)
from pairveil.learners.thresholds import (
    DistanceHistogram,
    Strategy,
    best_threshold,
    check_strategy,
)
from pairveil.privacy.calibration import calibrate_laplace
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.privacy.mechanisms.laplace import LAPLACE
from pairveil.privacy.noise import SeededNoise, TrustedNoise
from pairveil.privacy.queries import Query
from pairveil.privacy.units import UNITS, Adjacency, Unit


class DPPMetricLearner(PrivateLearner, PairMetric):
    """Learn a Mahalanobis metric from labelled pairs under differential pairwise privacy.

    Parameters
    ----------
    epsilon : float, default 1.0
        Privacy budget of one fit, for ``unit`` and ``adjacency``. ``inf`` is the non-private learner.
    delta : float, default 1e-5
        Must be well below 1 / number of pairs. Not used by ``mechanism='laplace'`` (pure epsilon).
    unit : {'relationship', 'person', 'pair'}
        What is protected; it decides kappa.
    select : {'paths', 'forest', 'matching', 'all'}
        Which of the given pairs to use. Looks at who is paired with whom only.
    kappa : 'auto' or int
        'auto' reads it off the graph of the used pairs. A number is taken as a public constant and
        refused when the graph needs more.
    adjacency : {'zero-out', 'replace'}
        What epsilon compares; the certificate states both.
    mechanism : {'gaussian', 'laplace'}
    n_components : int or None
        Rows of the metric. None (default) learns few directions by a public rule and blends them
        with the Euclidean metric, so that a noisy fit does no harm; then ``components_`` is square.
        A number gives that many learned directions and nothing else: no room is left for Euclid.
    loss : {'contrastive'}
    margin : float, 'auto' or 'private'
        Distance beyond which dissimilar pairs are left alone. 'private' releases the mean distance
        of dissimilar pairs for a named, charged share of the budget.
    max_grad_norm, sample_rate, n_steps, learning_rate : float or 'auto'
        'auto' follows public rules in (d, K, epsilon, delta, kappa); see docs/theory/learner.md.
    sampling : {'poisson', 'disjoint'}
    data_norm : float, default 1.0
        Public bound on a person's l2 norm; longer rows are clipped, and it is said.
    accountant : PrivacyLedger or None
        A budget across fits; charged before any noise is drawn.
    preprocessor : array, DataFrame, sparse matrix or callable, optional
        People's features, when pairs are given as (K, 2) row indices.
    backend : {'auto', 'numpy', 'dask'}
        Where sums are taken: compiled loops, numpy, or the workers of the connected Dask cluster
        (``pip install 'pairveil[dask]'``). Noise, sampling and the ledger are always here.
    random_state : int, Generator or None
        None: operating-system entropy and exact discrete noise, a release. A seed: repeatable,
        and the certificate says ``for_release: false``.
    verbose : int

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
    certificate_ : Certificate or None
        None when epsilon is infinite.
    kappa_ : int
    noise_multiplier_ : float
    n_pairs_used_ : int
    used_pairs_ : array of int
        Positions of the used pairs among the given ones, ascending; of a pair that was given twice, the
        first. A ``range`` when all of a DaskPairs are. Which pairs are used is public; where they stood
        is not if the order followed labels, so this stays with the data and is not pickled.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only where the features had column names: a DataFrame as ``preprocessor``, a PairSet from a table.

    Examples
    --------
    >>> from pairveil import DPPMetricLearner, design_pairs
    >>> from pairveil.data.embedded import label_pairs, load_patients
    >>> patients = load_patients()
    >>> pairs = design_pairs(569, random_state=0)
    >>> learner = DPPMetricLearner(preprocessor=patients.features.values, random_state=0)
    >>> learner = learner.fit(pairs, label_pairs(pairs, patients.classes))
    >>> learner.kappa_, learner.certificate_.unit, learner.n_pairs_used_
    (1, 'relationship', 568)
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        unit: Unit = "relationship",
        select: str = "paths",
        kappa: int | Literal["auto"] = "auto",
        adjacency: Adjacency = "zero-out",
        mechanism: Literal["gaussian", "laplace"] = "gaussian",
        n_components: int | None = None,
        loss: Literal["contrastive"] = "contrastive",
        margin: float | Literal["auto", "private"] = "auto",
        max_grad_norm: float | Literal["auto"] = "auto",
        sample_rate: float | Literal["auto"] = "auto",
        n_steps: int | Literal["auto"] = "auto",
        learning_rate: float | Literal["auto"] = "auto",
        sampling: Literal["poisson", "disjoint"] = "poisson",
        data_norm: float = 1.0,
        accountant: PrivacyLedger | None = None,
        preprocessor: Any = None,
        backend: Literal["auto", "numpy", "dask"] = "auto",
        random_state: int | np.random.Generator | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.unit = unit
        self.select = select
        self.kappa = kappa
        self.adjacency = adjacency
        self.mechanism = mechanism
        self.n_components = n_components
        self.loss = loss
        self.margin = margin
        self.max_grad_norm = max_grad_norm
        self.sample_rate = sample_rate
        self.n_steps = n_steps
        self.learning_rate = learning_rate
        self.sampling = sampling
        self.data_norm = data_norm
        self.accountant = accountant
        self.preprocessor = preprocessor
        self.backend = backend
        self.random_state = random_state
        self.verbose = verbose

    def _recipe(self, given: Any) -> ContrastiveRecipe:
        """What this learner asks of the data, from its parameters as plain numbers."""
        return ContrastiveRecipe(
            n_components=given.n_components,
            margin=MARGIN if given.margin == "auto" else given.margin,
            max_grad_norm=None if given.max_grad_norm == "auto" else given.max_grad_norm,
            learning_rate=None if given.learning_rate == "auto" else given.learning_rate,
            n_steps=None if given.n_steps == "auto" else given.n_steps,
            sampling=given.sampling,
            sample_rate=1.0 if given.sample_rate == "auto" else given.sample_rate,
        )

    def _keep(self, model: Any, prepared: Prepared) -> None:
        self.components_ = model
        self.n_pairs_used_ = prepared.plan.n_records
        self.used_pairs_ = prepared.material.used_rows
        self.n_features_in_ = prepared.plan.n_features
        self._set_names(prepared.material.used.feature_names)
        for name in ("threshold_", "threshold_certificate_", "_calibrations"):
            self.__dict__.pop(name, None)

    def calibrate_threshold(
        self,
        pairs_valid: Any,
        y_valid: ArrayLike,
        strategy: Strategy = "accuracy",
        min_rate: float | None = None,
        beta: float = 1.0,
        *,
        public: bool = False,
        epsilon: float | None = None,
    ) -> Self:
        """Choose the threshold on labelled pairs, privately or on public ones.

        Parameters
        ----------
        pairs_valid, y_valid, strategy, min_rate, beta
            As in metric-learn.
        public : bool
            The validation pairs are public: nothing is charged.
        epsilon : float, optional
            The validation pairs are private: a histogram of their distances is released with Laplace
            noise for this pure epsilon, for ``unit`` and ``adjacency``, charged to ``accountant``, and
            put together with the fit's releases, and with every threshold calibrated privately since
            the fit, in ``threshold_certificate_``: what the metric and its thresholds cost together.

        Raises
        ------
        InputError
            When neither is said: a threshold read off private pairs would be an uncharged release.
        """
        check_is_fitted(self, "components_")
        if self.certificate_ is None or public:
            return super().calibrate_threshold(pairs_valid, y_valid, strategy, min_rate, beta)
        if epsilon is None:
            raise InputError(
                "a threshold chosen on private pairs is a release of its own: say public=True if these "
                "pairs are public, or epsilon=... to charge it"
            )
        if not 0 < epsilon < math.inf:
            raise InputError("epsilon must be a number above 0, not infinite")
        check_strategy(strategy, min_rate)  # before anything is spent on it
        data, guessed = resolve_pairs(pairs_valid, y_valid, self.preprocessor)
        group = kappa_of(data.pairs)
        noise = calibrate_laplace(epsilon, kappa=group.of(self.unit), adjacency=self.adjacency)
        longest = 2 * self.data_norm * float(np.linalg.norm(self.components_, 2))
        histogram = DistanceHistogram(self.components_, longest)
        query = Query("threshold", histogram.shape, noise, mechanism=LAPLACE)
        kappas = {unit: group.of(unit) for unit in UNITS}
        source = TrustedNoise() if self.random_state is None else SeededNoise(self.random_state)
        made = Calibration(query, kappas, data.n_pairs, source.name, guessed)
        made_so_far = (*getattr(self, "_calibrations", ()), made)
        together = with_calibrations(self.certificate_, made_so_far)
        if self.accountant is not None:
            self.accountant.spend(
                [query.event()], kappas, note="threshold", graph=graph_digest(data)
            )
        # Before the noise is drawn: what fails after that counts, and no older certificate speaks for it.
        self._calibrations = made_so_far
        self.__dict__.pop("threshold_certificate_", None)
        similar, dissimilar = Engine(data, source).answer(query, histogram)
        found = best_threshold(histogram.edges, similar, dissimilar, strategy, min_rate, beta)
        self.set_threshold(found)
        self.threshold_certificate_ = together
        return self

    def set_threshold(self, threshold: float) -> Self:
        """Call pairs nearer than ``threshold`` similar, others dissimilar.

        Nobody knows where a number set by hand comes from, so no certificate speaks for it:
        ``threshold_certificate_`` goes. Thresholds calibrated before stay counted in the next one's.
        """
        super().set_threshold(threshold)
        self.__dict__.pop("threshold_certificate_", None)
        return self
