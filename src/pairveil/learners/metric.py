"""PrivateMetricLearner: base of the private learners whose recipe returns the components of a metric."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairveil.engine.backends.records import check_backend
from pairveil.errors import InputError
from pairveil.graph import GraphSummary
from pairveil.graph.kappa import graph_summary
from pairveil.learners.base import PrivateLearner
from pairveil.learners.contract import PairMetric, check_calibration
from pairveil.learners.histogram import PrivateThreshold
from pairveil.learners.preparing import Prepared
from pairveil.learners.raw_rows import RawRows
from pairveil.records.pairset import PairSet
from pairveil.schema.schema import Schema

OF_A_FIT = ("n_pairs_used_", "used_pairs_", "n_people_used_")


class PrivateMetricLearner(PrivateThreshold, PrivateLearner, PairMetric):
    """A certified fit, everything that follows from ``components_``, and thresholds that are charged.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
    n_pairs_used_ : int
    used_pairs_ : array of int or range
        Positions of the used pairs among the given ones (public), ascending.
    graphs_ : tuple of GraphSummary or None
        Public counts of the graph of the used pairs and of the given ones.
    n_features_in_ : int
    """

    n_pairs_used_: int
    used_pairs_: NDArray[np.int64] | range
    graphs_: tuple[GraphSummary | None, GraphSummary | None]

    def __sklearn_clone__(self) -> Self:
        """A copy for a search; refused where the search would spend on scores that no fold can have."""
        if math.isfinite(self.epsilon) and _predictions_are_scored():
            raise InputError(
                "this scoring (as 'accuracy' does) needs predict, and predict needs a threshold that a "
                "private fit does not set: score by 'roc_auc', or leave scoring out. Nothing was spent"
            )
        return super().__sklearn_clone__()

    def fit(
        self,
        pairs: Any,
        y: ArrayLike | None = None,
        *,
        calibration_params: Mapping[str, Any] | None = None,
        **watching: Any,
    ) -> Self:
        """Learn, and issue the certificate.

        Parameters
        ----------
        pairs : (K, 2) row indices with ``preprocessor``, (K, 2, d) feature rows, PairSet or DaskPairs
            What ``prepare`` returned is taken too.
        y : array of shape (K,)
            +1 similar, -1 dissimilar. None takes a PairSet's own labels.
        calibration_params : mapping, optional
            How to choose the threshold on the training pairs (``strategy``, ``min_rate``, ``beta``), as in
            metric-learn. Only where epsilon is infinite, and then by default too: a threshold chosen on
            private pairs is a release of its own, which `calibrate_threshold` makes and charges.
        **watching
            ``on_step``, ``on_answer``, ``checkpoint`` and ``keep_checkpoint``, as for
            `pairveil.learners.base.PrivateLearner`.

        Returns
        -------
        self
        """
        params = check_calibration(calibration_params)
        check_backend(self.backend)
        prepared = self._prepare(pairs, y)
        if calibration_params is not None and prepared.certificate is not None:
            raise InputError(
                "a threshold chosen on private pairs is a release of its own, and nothing was spent: leave "
                "calibration_params out, and call calibrate_threshold(pairs, y, epsilon=...) after fit"
            )
        super().fit(prepared, **watching)
        given = prepared.material.given
        if prepared.certificate is None and isinstance(given, PairSet):
            if isinstance(pairs, Prepared):
                given = given.with_features(given.features / getattr(self, "column_scale_", 1.0))
            else:  # rows as they were given, not as they were clipped
                given = self._measured_pairs(pairs, y, warn=False)[0]
            self._threshold_by_fit(given, params)
        return self

    def _released(self) -> Any:
        import pairveil  # what is past the trust boundary stands above this part

        schema: Schema | None = getattr(self, "schema_", None)
        names = getattr(self, "feature_names_in_", None)
        return pairveil.ReleasedMetric(  # type: ignore[attr-defined]
            self.components_,
            self.certificate_,
            None if names is None or schema is not None else tuple(names),
            getattr(self, "column_scale_", None),
            schema,
        )

    def _keep(self, model: Any, prepared: Prepared) -> None:
        self.components_ = np.asarray(model, dtype=np.float64)
        for name in (*OF_A_FIT, "column_scale_", "schema_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        raw = RawRows.of(self)
        scale = raw.scale(prepared.plan.n_features)
        if scale is not None:
            self.components_ = self.components_ * scale
            self.column_scale_ = scale
        if raw.schema is not None:
            self.schema_ = raw.schema
        self.graphs_ = _graphs(prepared.material)
        if prepared.material.kind == "people":
            self.n_people_used_ = prepared.plan.n_records
        else:
            self.n_pairs_used_ = prepared.material.counts[1]
            self.used_pairs_ = prepared.material.used_rows
        named = raw.names()
        self._set_names(prepared.material.used.feature_names if named is None else named)
        self.n_features_in_ = (
            prepared.plan.n_features if raw.schema is None else len(raw.schema.raw_names)
        )
        self._forget_thresholds()


def _graphs(material: Any) -> tuple[GraphSummary | None, GraphSummary | None]:
    if material.used_kappa is None or not hasattr(material.used, "pairs"):
        return None, None  # no pairs, or with the workers: who is paired with whom is not here
    return (
        graph_summary(material.used_kappa, material.used),
        graph_summary(material.given_kappa, material.given),
    )


def _predictions_are_scored() -> bool:
    """Whether a search or cross-validation that is making clones scores them by ``predict``.

    scikit-learn asks no estimator which scorers it will meet, and turns the error of a score into nan after
    the fit was charged. So the scorers of the calling search are looked up; unknown ones pass.
    """
    frame = sys._getframe(1)
    while frame is not None:
        scorers = frame.f_locals.get("scorers")
        if scorers is not None and frame.f_globals.get("__name__", "").startswith("sklearn."):
            every = getattr(scorers, "_scorers", {"score": scorers}).values()
            return any(getattr(one, "_response_method", None) == "predict" for one in every)
        frame = frame.f_back  # type: ignore[assignment]
    return False
