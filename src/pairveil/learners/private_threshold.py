"""Thresholds chosen on private pairs: a release of its own, charged and certified with the metric."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from pairveil.data.pairset import PairSet
from pairveil.data.shared_values import together_digest
from pairveil.engine.backends.records import kappa_of
from pairveil.engine.engine import Engine
from pairveil.errors import InputError
from pairveil.learners.inputs import resolve_pairs
from pairveil.learners.named_people import (
    fitted_to,
    ids_of,
    name_of_pairs,
    own_secret,
    rows_of,
    without_ids,
)
from pairveil.learners.parameters import is_number
from pairveil.learners.raw_rows import RawRows
from pairveil.learners.thresholds import (
    DistanceHistogram,
    Strategy,
    best_threshold,
    check_strategy,
    match_odds,
)
from pairveil.privacy.calibration import calibrate_laplace
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.grid import check_noise
from pairveil.privacy.joint_certificate import (
    ThresholdChoice,
    check_same_meanings,
    meanings_of_certificate,
    metric_and_thresholds,
)
from pairveil.privacy.mechanisms.laplace import LAPLACE
from pairveil.privacy.noise import SeededNoise, TrustedNoise
from pairveil.privacy.queries import Query
from pairveil.privacy.units import UNITS, float_at_most, meanings_of

if TYPE_CHECKING:
    from pairveil.learners.contract import PairMetric as _Metric
else:
    _Metric = object


class PrivateThreshold(_Metric):
    """``calibrate_threshold`` of learners whose fits are certified; stands before `PairMetric`."""

    certificate_: Certificate | None
    accountant: Any
    adjacency: Any
    data_norm: float
    random_state: Any
    unit: Any

    def _forget_thresholds(self) -> None:
        """A new fit has no threshold, and nothing was calibrated for it yet."""
        for name in ("threshold_", "match_odds_", "threshold_certificate_", "_threshold_choices"):
            self.__dict__.pop(name, None)

    def _measured_pairs(self, pairs: Any, y: Any, *, warn: bool = True) -> tuple[PairSet, bool]:
        """Labelled pairs whose rows are as the metric takes them, and whether people were guessed."""
        table = self.preprocessor
        named, people = rows_of(pairs, table), without_ids(table)
        read, preprocessor = RawRows.of(self).inputs(named, people, learning=False)
        return resolve_pairs(read, y, preprocessor, warn=warn, ids=ids_of(table))

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
        if not (is_number(epsilon) and 0 < epsilon < math.inf):
            raise InputError("epsilon must be a number above 0, not infinite")
        epsilon = float_at_most(
            epsilon
        )  # short floats of numpy's would do the arithmetic in their own way
        check_strategy(strategy, min_rate)  # before anything is spent on it
        data, guessed = self._measured_pairs(pairs_valid, y_valid)
        shares, column = data.together is not None, None
        if shares:
            column = together_digest(data.ids, data.together)
        meanings = meanings_of(shares=shares, column=column)
        fitted_pairs, stated = fitted_to(self)
        if stated is None:  # an earlier process's fit: what its certificate says
            stated = meanings_of_certificate(self.certificate_)
        check_same_meanings(stated, meanings)
        graph = name_of_pairs(data, own_secret(self, pairs_valid, guessed=guessed))
        group = kappa_of(data)
        noise = calibrate_laplace(epsilon, kappa=group.of(self.unit), adjacency=self.adjacency)
        scaled = self.components_ / getattr(
            self, "column_scale_", 1.0
        )  # of rows as they were learned
        longest = 2 * self.data_norm * float(np.linalg.norm(scaled, 2))
        histogram = DistanceHistogram(self.components_, longest)
        query = Query("threshold", histogram.shape, noise, mechanism=LAPLACE)
        check_noise(noise, query.n_entries, LAPLACE.norm)
        kappas = {unit: group.of(unit) for unit in UNITS}
        source = TrustedNoise() if self.random_state is None else SeededNoise(self.random_state)
        same = graph is not None and graph == fitted_pairs
        made = ThresholdChoice(query, kappas, data.n_pairs, source.name, guessed, same)
        made_so_far = (*getattr(self, "_threshold_choices", ()), made)
        joint = metric_and_thresholds(self.certificate_, made_so_far)
        if self.accountant is not None:
            self.accountant.spend(
                [query.event()], kappas, note="threshold", graph=graph, meanings=meanings
            )
        # Before the noise is drawn: what fails after that counts, and no older certificate speaks for it.
        self._threshold_choices = made_so_far
        self.__dict__.pop("threshold_certificate_", None)
        similar, dissimilar = Engine(data, source).answer(query, histogram)
        found = best_threshold(histogram.edges, similar, dissimilar, strategy, min_rate, beta)
        self.set_threshold(found)
        self.match_odds_ = match_odds(
            histogram.edges, similar, dissimilar, noise
        )  # post-processing
        self.threshold_certificate_ = joint
        return self

    def set_threshold(self, threshold: float) -> Self:
        """Call pairs nearer than ``threshold`` similar, others dissimilar.

        Nobody knows where a number set by hand comes from, so no certificate speaks for it:
        ``threshold_certificate_`` goes. Thresholds calibrated before stay counted in the next one's.
        """
        super().set_threshold(threshold)
        self.__dict__.pop("threshold_certificate_", None)
        return self
