"""DPPMetricLearner: a metric that may be released, with the certificate that says why.

`ContrastiveMetricLearner` is the same learner without privacy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from pairveil.engine.losses import LOSSES
from pairveil.engine.plan import Recipe
from pairveil.errors import InputError
from pairveil.learners.base import Further
from pairveil.learners.classes import LearnsFromClasses, class_recipe
from pairveil.learners.contrastive.recipe import MARGIN, ContrastiveRecipe, GroupRecipe
from pairveil.learners.estimator import PairMetric, PrivateMetricLearner
from pairveil.learners.inputs import check_bound, check_choice, check_components, check_whole
from pairveil.learners.preparing import PreparedRecords
from pairveil.privacy.mechanisms import GAUSSIAN
from pairveil.privacy.units import Adjacency, Unit
from pairveil.records.kinds import GROUPS, KINDS, PAIRS, PEOPLE


class DPPMetricLearner(LearnsFromClasses, PrivateMetricLearner):
    """Learn a Mahalanobis metric from labelled pairs under differential pairwise privacy.

    Where every person has a class, `fit_classes` learns from statistics of people, in steps, or from pairs
    that it designs, by a public rule.

    Parameters
    ----------
    select : {'paths', 'forest', 'matching', 'groups', 'all'}
        Which of the given pairs to use. Looks at who is paired with whom only. 'groups' cuts the pairs into
        disjoint groups of people that are records: one epsilon holds for pair, relationship and person.
    n_components : int or None
        Rows of the metric. None (default) learns few directions and adds the Euclidean metric, with more
        weight the less signal there is; then ``components_`` is square. A number gives that many learned
        directions and nothing else.
    loss : {'contrastive', 'logistic'}
        'logistic' models the odds that two people are similar (see also ``match_probability``).
    margin : float, 'auto' or 'private'
        Distance beyond which dissimilar pairs are left alone; 'private' asks for their mean, charged.
    max_grad_norm, sample_rate, n_steps, learning_rate : float or 'auto'
        'auto' follows public rules in (d, K, epsilon, delta, kappa); see docs/theory/learner.md.
    sampling : {'poisson', 'disjoint'}
    verbose : int
    classes : sequence, optional
        The public list of classes. ``fit(X, y)`` then takes people with a class each, as `fit_classes` does,
        so that the learner stands in a scikit-learn pipeline over people.
    **common
        As for every learner (`pairveil.learners.base.PrivateLearner`): epsilon, delta, unit, kappa,
        adjacency, mechanism, data_norm, accountant, preprocessor, backend, random_state, schema, bounds.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
    certificate_ : Certificate or None
        None when epsilon is infinite.
    kappa_ : int
    noise_multiplier_ : float
    n_pairs_used_ : int
    used_pairs_ : array of int
        Positions of the used pairs among the given ones, ascending (of a pair given twice, the first). The
        order of a file may follow labels, so this stays with the data and is not pickled.
    n_people_used_ : int
        In place of the last two, where `fit_classes` learned from statistics of people.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only where the features had column names: a DataFrame as ``preprocessor``, a PairSet from a table.

    Examples
    --------
    >>> from pairveil import DPPMetricLearner, design_pairs
    >>> from pairveil.records.embedded import label_pairs, load_patients
    >>> patients = load_patients()
    >>> pairs = design_pairs(569, random_state=0)
    >>> learner = DPPMetricLearner(preprocessor=patients.features.values, random_state=0)
    >>> learner = learner.fit(pairs, label_pairs(pairs, patients.classes))
    >>> learner.kappa_, learner.certificate_.unit, learner.n_pairs_used_
    (1, 'relationship', 568)
    """

    _kinds = (PAIRS.name, GROUPS.name, PEOPLE.name)

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        unit: Unit = "relationship",
        select: str = "paths",
        kappa: int | Literal["auto"] = "auto",
        adjacency: Adjacency = "zero-out",
        mechanism: str = GAUSSIAN.name,
        n_components: int | None = None,
        loss: Literal["contrastive", "logistic"] = "contrastive",
        margin: float | Literal["auto", "private"] = "auto",
        max_grad_norm: float | Literal["auto"] = "auto",
        sample_rate: float | Literal["auto"] = "auto",
        n_steps: int | Literal["auto"] = "auto",
        learning_rate: float | Literal["auto"] = "auto",
        sampling: Literal["poisson", "disjoint"] = "poisson",
        *,
        verbose: int = 0,
        classes: Sequence[Any] | None = None,
        **common: Unpack[Further],
    ) -> None:
        super().__init__(epsilon, delta, unit, select, kappa, adjacency, mechanism, **common)
        self.n_components = n_components
        self.loss = loss
        self.margin = margin
        self.max_grad_norm = max_grad_norm
        self.sample_rate = sample_rate
        self.n_steps = n_steps
        self.learning_rate = learning_rate
        self.sampling = sampling
        self.verbose = verbose
        self.classes = classes

    def _check(self, given: Any, n_features: int) -> None:
        check_choice("sampling", given.sampling, ("poisson", "disjoint"))
        check_choice("loss", given.loss, tuple(LOSSES))
        check_components(given.n_components, n_features)
        if given.margin not in ("auto", "private"):
            check_bound("margin", given.margin)
        for name in ("max_grad_norm", "sample_rate", "learning_rate"):
            if getattr(given, name) != "auto":
                check_bound(name, getattr(given, name))
        if given.sample_rate != "auto" and given.sample_rate > 1:
            raise InputError("sample_rate must be at most 1")
        check_whole("n_steps", given.n_steps, "auto", most=10**9)

    def _recipe(self, given: Any, records: PreparedRecords) -> Recipe:
        """What this learner asks of the data, from its parameters as plain numbers."""
        if KINDS[records.kind].alone:
            return class_recipe(given, records)
        recipe = ContrastiveRecipe(
            n_components=given.n_components,
            margin=MARGIN if given.margin == "auto" else given.margin,
            max_grad_norm=None if given.max_grad_norm == "auto" else given.max_grad_norm,
            learning_rate=None if given.learning_rate == "auto" else given.learning_rate,
            n_steps=None if given.n_steps == "auto" else given.n_steps,
            sampling=given.sampling,
            sample_rate=1.0 if given.sample_rate == "auto" else given.sample_rate,
            loss=given.loss,
        )
        if not KINDS[records.kind].holds_pairs:
            return recipe
        if given.margin == "private":
            raise InputError("margin='private' is for pairs: with groups give a number, or 'auto'")
        return GroupRecipe(
            **vars(recipe),
            size=records.group_limit or records.used.size,
            n_groups=records.used.n_records,
            n_pairs=records.n_used,
            n_classes=None if records.classes is None else len(records.classes),
        )


# ---- the same learner without privacy ------------------------------------------------------------


class ContrastiveMetricLearner(PairMetric):
    """Learn a Mahalanobis metric from labelled pairs with the contrastive loss, without privacy.

    ``DPPMetricLearner(epsilon=inf, select='all')`` is this learner.

    Parameters
    ----------
    n_components : int or None
        Rows of the metric; None follows the rule of `DPPMetricLearner`.
    margin : float or 'auto'
        Distance beyond which dissimilar pairs are left alone.
    max_grad_norm : float or 'auto'
        No pair pulls harder than this; it makes the learner robust to single pairs.
    n_steps : int or 'auto'
    learning_rate : float or 'auto'
    data_norm : float or None
        Rows longer than this are clipped; None does not clip.
    preprocessor : array, DataFrame, sparse matrix or callable, optional
    random_state : int, Generator or None
        The learner draws nothing at random; kept for scikit-learn's sake.
    schema, bounds
        As for `DPPMetricLearner`: rows are then raw ones, in `fit` and everywhere.

    Examples
    --------
    >>> from pairveil import ContrastiveMetricLearner, design_pairs
    >>> from pairveil.records.embedded import label_pairs, load_patients
    >>> patients = load_patients()
    >>> pairs = design_pairs(569, random_state=0)
    >>> learner = ContrastiveMetricLearner(preprocessor=patients.features.values)
    >>> y = label_pairs(pairs, patients.classes)
    >>> bool(learner.fit(pairs, y).score(pairs, y) > 0.85)
    True
    """

    def __init__(
        self,
        n_components: int | None = None,
        margin: float | Literal["auto"] = "auto",
        max_grad_norm: float | Literal["auto"] = "auto",
        n_steps: int | Literal["auto"] = "auto",
        learning_rate: float | Literal["auto"] = "auto",
        data_norm: float = 1.0,
        preprocessor: Any = None,
        random_state: int | np.random.Generator | None = None,
        schema: Any = None,
        bounds: Any = None,
    ) -> None:
        self.n_components = n_components
        self.margin = margin
        self.max_grad_norm = max_grad_norm
        self.n_steps = n_steps
        self.learning_rate = learning_rate
        self.data_norm = data_norm
        self.preprocessor = preprocessor
        self.random_state = random_state
        self.schema = schema
        self.bounds = bounds

    def fit(
        self,
        pairs: Any,
        y: ArrayLike | None = None,
        *,
        calibration_params: Mapping[str, Any] | None = None,
    ) -> Self:
        """Learn the metric from all pairs.

        Parameters
        ----------
        pairs : (K, 2) row indices with ``preprocessor``, (K, 2, d) feature rows, or PairSet
        y : array of shape (K,)
            +1 similar, -1 dissimilar. None takes a PairSet's own labels.
        calibration_params : mapping, optional
            How the threshold is chosen on these pairs: ``strategy``, ``min_rate``, ``beta``.
        """
        learner = DPPMetricLearner(epsilon=math.inf, select="all", **self.get_params(deep=False))
        learner.fit(pairs, y, calibration_params=calibration_params)
        self.components_ = learner.components_
        self.n_features_in_ = learner.n_features_in_
        self._set_names(getattr(learner, "feature_names_in_", None))
        for name in ("threshold_", "schema_", "column_scale_"):
            self.__dict__.pop(name, None)
            if hasattr(learner, name):
                setattr(self, name, getattr(learner, name))
        return self
