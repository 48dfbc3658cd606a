"""DPPMetricLearner: a metric that may be released, with the certificate that says why."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairveil.errors import InputError
from pairveil.learning.certifying import Prepared, prepare
from pairveil.learning.contract import PairMetric, Strategy
from pairveil.learning.engine import Engine
from pairveil.learning.training import train
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.privacy.units import Adjacency, Unit

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
    backend : {'auto', 'numpy'}
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
    n_features_in_ : int

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
        backend: Literal["auto", "numpy"] = "auto",
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
