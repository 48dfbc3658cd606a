"""The released metric keeps scikit-learn's whole contract."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

from pairveil import InputError, ReleasedMetric
from pairveil.release.sklearn_transformer import MetricTransformer

L = np.array([[3.0, 0.0, 1.0], [0.0, 2.0, 0.0]])


@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks_pass():
    found = check_estimator(MetricTransformer(), on_fail=None, on_skip=None)
    assert {one["check_name"] for one in found if one["status"] == "failed"} == set()
    assert sum(one["status"] == "passed" for one in found) > 40


def test_a_released_matrix_is_fitted_from_the_start():
    X = np.arange(6.0).reshape(2, 3)
    metric = MetricTransformer(ReleasedMetric(L, feature_names=("a", "b", "c")))
    np.testing.assert_array_equal(metric.transform(X), X @ L.T)
    np.testing.assert_array_equal(metric.transform(sparse.csr_array(X)), X @ L.T)
    assert metric.n_features_in_ == 3
    assert metric.feature_names_in_.tolist() == ["a", "b", "c"]
    assert metric.get_feature_names_out().tolist() == ["metric0", "metric1"]


def test_without_a_matrix_it_is_euclid_of_what_fit_saw():
    table = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    with pytest.raises(NotFittedError):
        MetricTransformer().transform(table)
    metric = MetricTransformer().fit(table)
    np.testing.assert_array_equal(metric.transform(table), table.to_numpy())
    with pytest.raises(InputError, match="3 features, but it is expecting 2"):
        metric.transform(np.zeros((1, 3)))


@pytest.mark.parametrize(
    "X", [[[1.0, "kanarienvogel", 2.0]], [[1.0, np.nan, 2.0]], [[1j, 0, 0]], [1.0, 2.0, 3.0], [[]],
          [[1.0, {"kanarienvogel": 1}, 2.0]]],
)  # fmt: skip
def test_what_is_no_row_of_numbers_is_refused_without_being_shown(X):
    with pytest.raises(InputError) as caught:
        MetricTransformer(ReleasedMetric(L)).transform(X)
    assert "kanarienvogel" not in str(caught.value)
