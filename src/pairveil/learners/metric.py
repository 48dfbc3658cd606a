"""PrivateMetricLearner: base of the private learners whose recipe returns the components of a metric."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil.learners.base import PrivateLearner
from pairveil.learners.contract import PairMetric
from pairveil.learners.preparing import Prepared
from pairveil.learners.private_threshold import PrivateThreshold


class PrivateMetricLearner(PrivateThreshold, PrivateLearner, PairMetric):
    """A certified fit, everything that follows from ``components_``, and thresholds that are charged.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
    n_pairs_used_ : int
    used_pairs_ : array of int or range
        Positions of the used pairs among the given ones (public), ascending.
    n_features_in_ : int
    """

    n_pairs_used_: int
    used_pairs_: NDArray[np.int64] | range

    def _keep(self, model: Any, prepared: Prepared) -> None:
        self.components_ = np.asarray(model, dtype=np.float64)
        for name in ("n_pairs_used_", "used_pairs_", "n_people_used_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if prepared.material.kind == "people":
            self.n_people_used_ = prepared.plan.n_records
        else:
            self.n_pairs_used_ = prepared.material.counts[1]
            self.used_pairs_ = prepared.material.used_rows
        self.n_features_in_ = prepared.plan.n_features
        self._set_names(prepared.material.used.feature_names)
        self._forget_thresholds()
