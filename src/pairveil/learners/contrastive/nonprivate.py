"""ContrastiveMetricLearner: the same learner without privacy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from pairveil.learners.contrastive.learner import DPPMetricLearner
from pairveil.learners.estimator import PairMetric


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
