"""DPPMetricLearner: a metric that may be released, with the certificate that says why."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from pairveil.errors import InputError, PrivacyLeakWarning
from pairveil.graph.kappa import kappa as kappa_of
from pairveil.learning import charging
from pairveil.learning.certifying import (
    Prepared,
    check_bound,
    graph_digest,
    prepare,
    with_threshold,
)
from pairveil.learning.checkpoint import Checkpoint, Hold
from pairveil.learning.contract import PairMetric
from pairveil.learning.dask_backend import DaskSums, connected_client
from pairveil.learning.dask_pairs import DaskPairs
from pairveil.learning.engine import Engine, OnRelease
from pairveil.learning.inputs import clipped, resolve_pairs, resolve_training
from pairveil.learning.plan import NoisySums
from pairveil.learning.sums import clipped_sum
from pairveil.learning.thresholds import DistanceHistogram, Strategy, best_threshold
from pairveil.learning.training import train
from pairveil.privacy.accounting import epsilon_of
from pairveil.privacy.calibration import calibrate_laplace
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.privacy.noise import NoiseSource, SeededNoise, TrustedNoise
from pairveil.privacy.units import UNITS, Adjacency, Unit

OnStep = Callable[[float, float], None]


class DPPMetricLearner(PairMetric):
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
        Positions of the used pairs among the given ones (public); a ``range`` when all of a DaskPairs are.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only where the features had column names: a DataFrame as ``preprocessor``, a PairSet from a table.

    Examples
    --------
    >>> from pairveil import DPPMetricLearner, design_pairs
    >>> from pairveil.pairs.embedded import label_pairs, load_patients
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
        select: Literal["paths", "forest", "matching", "all"] = "paths",
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

    def __sklearn_clone__(self) -> DPPMetricLearner:
        """A clone knows it is one: searches and cross-validation fit clones, and each fit spends."""
        copy = type(self)(
            **{
                # A ledger's copy is the ledger itself; features need no second copy.
                name: value if name in ("accountant", "preprocessor") else clone(value, safe=False)
                for name, value in self.get_params(deep=False).items()
            }
        )
        copy._is_clone = True
        return copy

    def certify(
        self, pairs: Any, y: ArrayLike | None = None, *, checkpoint: str | Path | None = None
    ) -> Certificate | None:
        """The certificate that ``fit`` would issue. Draws no noise and spends nothing.

        Parameters
        ----------
        pairs, y
            As for ``fit``; labels and features are checked, and do not enter the certificate.
        checkpoint : path, optional
            Refused if ``fit`` would refuse to go on from it.
        """
        prepared, _ = self._prepare(pairs, y)
        if checkpoint is not None:
            charging.check(self.accountant, prepared, checkpoint)
        return prepared.certificate

    def fit(
        self,
        pairs: Any,
        y: ArrayLike | None = None,
        *,
        on_step: OnStep | None = None,
        on_release: OnRelease | None = None,
        checkpoint: str | Path | Hold | None = None,
        keep_checkpoint: bool = False,
    ) -> Self:
        """Learn the metric and issue its certificate.

        Parameters
        ----------
        pairs : (K, 2) row indices with ``preprocessor``, (K, 2, d) feature rows, PairSet or DaskPairs
            `pairveil.learning.dask_pairs.open_dask_pairs` makes the last, for ``backend='dask'``.
        y : array of shape (K,)
            +1 similar, -1 dissimilar. None takes a PairSet's own labels.
        on_step : callable, optional
            Called with (share done, epsilon spent so far) after each release.
        on_release : callable, optional
            Called with each released sum; for auditors.
        checkpoint : path or Hold, optional
            Released sums are kept there; a fit of the same pairs that was killed goes on from them and
            charges no ledger twice. Removed when the fit is done. Not with a seed, whose noise
            would repeat.
        keep_checkpoint : bool
            Leave the file when the fit is done, for those who must write its result down first; with a
            `pairveil.learning.checkpoint.Hold` no other run gets at it in between.

        Returns
        -------
        self
        """
        if checkpoint is not None and self.random_state is not None:
            raise InputError("a checkpoint is for releases: leave random_state=None")
        cluster = connected_client() if self.backend == "dask" else None
        prepared, noise = self._prepare(pairs, y)
        certificate = prepared.certificate
        self._warn_of_clones(certificate)
        # Workers build their parts before anything is charged: what they cannot read costs nothing.
        add_up = clipped_sum if cluster is None else DaskSums(prepared.used, cluster)
        saved = None if checkpoint is None else Checkpoint(checkpoint, prepared.plan, prepared.used)
        try:
            charging.charge(self.accountant, prepared, saved)
            watcher = _Progress(prepared, certificate, on_step, on_release)
            engine = Engine(
                prepared.used,
                noise,
                watcher,
                compiled=self.backend != "numpy",
                add_up=add_up,
                checkpoint=saved,
            )
            components = train(prepared.plan, prepared.used, engine)
        except BaseException:
            if saved is not None:
                saved.close()
            raise
        if saved is not None:
            saved.close() if keep_checkpoint else saved.finish()
        if not engine.followed(prepared.plan.releases):
            raise RuntimeError("the engine did not follow its plan; nothing is released")
        self.components_ = components
        self.certificate_ = certificate
        self.kappa_ = prepared.kappas[self.unit]
        self.noise_multiplier_ = prepared.plan.gradients.noise_multiplier
        self.n_pairs_used_ = prepared.used.n_pairs
        self.used_pairs_ = prepared.used_rows
        self.n_features_in_ = prepared.used.n_features
        self._set_names(_names(prepared.used))
        for name in ("threshold_", "threshold_certificate_"):
            self.__dict__.pop(name, None)
        return self

    def _prepare(self, pairs: Any, y: ArrayLike | None) -> tuple[Prepared, NoiseSource]:
        data, inferred = resolve_training(pairs, y, self.preprocessor, self.backend)
        noise: NoiseSource = (
            TrustedNoise() if self.random_state is None else SeededNoise(self.random_state)
        )
        check_bound("data_norm", self.data_norm)
        data = clipped(data, self.data_norm, stacklevel=4)
        return prepare(self, data, noise, inferred), noise

    def _warn_of_clones(self, certificate: Certificate | None) -> None:
        if (
            certificate is not None
            and self.accountant is None
            and getattr(self, "_is_clone", False)
        ):
            warnings.warn(
                "this learner is a clone, as cross-validation and parameter searches make them: every fit "
                "spends its own epsilon and choosing between them spends too; pass "
                "accountant=PrivacyLedger(...) to keep the total within a budget",
                PrivacyLeakWarning,
                stacklevel=3,
            )

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
            put together with the fit's releases in ``threshold_certificate_``: what the metric and the
            threshold cost when both are handed out.

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
        data, _ = resolve_pairs(pairs_valid, y_valid, self.preprocessor)
        group = kappa_of(data.pairs)
        noise = calibrate_laplace(epsilon, kappa=group.of(self.unit), adjacency=self.adjacency)
        sums = NoisySums(1.0, noise, 1, "laplace", name="threshold")
        kappas = {unit: group.of(unit) for unit in UNITS}
        if self.accountant is not None:
            self.accountant.spend(
                [sums.event()], kappas, note="threshold", graph=graph_digest(data)
            )
        source = TrustedNoise() if self.random_state is None else SeededNoise(self.random_state)
        longest = 2 * self.data_norm * float(np.linalg.norm(self.components_, 2))
        histogram = DistanceHistogram(self.components_, longest)
        similar, dissimilar = Engine(data, source).release(sums, histogram)
        found = best_threshold(histogram.edges, similar, dissimilar, strategy, min_rate, beta)
        self.threshold_certificate_ = with_threshold(self.certificate_, sums, kappas)
        return self.set_threshold(found)


def _names(data: Any) -> tuple[str, ...] | None:
    """The columns' names of pairs held here or by workers, if they have any."""
    found: tuple[str, ...] | None = (
        data.features.names if isinstance(data, DaskPairs) else data.feature_names
    )
    return found


class _Progress:
    """Tells how far a fit is and what it has spent so far."""

    def __init__(
        self,
        prepared: Prepared,
        certificate: Certificate | None,
        on_step: OnStep | None,
        on_release: OnRelease | None,
    ) -> None:
        self._prepared, self._certificate = prepared, certificate
        self._on_step, self._on_release = on_step, on_release
        self._total = sum(sums.steps for sums in prepared.plan.releases)
        self._done: dict[str, int] = {}

    def __call__(self, sums: NoisySums, statistic: Any, noisy: Any) -> None:
        if self._on_release is not None:
            self._on_release(sums, statistic, noisy)
        self._done[sums.name] = self._done.get(sums.name, 0) + 1
        if self._on_step is not None:
            done = sum(self._done.values())
            self._on_step(done / self._total, self._spent(done))

    def _spent(self, done: int) -> float:
        """Epsilon of the releases made so far (in closed form; the whole at the end)."""
        certificate = self._certificate
        if certificate is None:
            return math.inf
        if done == self._total:
            return certificate.epsilon
        made = [
            replace(sums, steps=self._done[sums.name]).event()
            for sums in self._prepared.plan.releases
            if sums.name in self._done
        ]
        return epsilon_of(
            made,
            kappa=certificate.kappa,
            adjacency=certificate.adjacency,
            delta=certificate.delta - certificate.delta_slack,
        )
