"""A warning names the caller's line, whatever of this package and of scikit-learn stands between."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from pairveil import PairSet
from pairveil.errors import DataWarning
from pairveil.release.metric import ReleasedMetric
from pairveil.release.sklearn_transformer import MetricTransformer

METRIC = ReleasedMetric(np.eye(2), feature_names=("a", "b"))
SWAPPED = pd.DataFrame({"b": [1.0], "a": [2.0]})


@pytest.mark.parametrize(
    "warns",
    [
        lambda: METRIC.transform(SWAPPED),
        lambda: make_pipeline(MetricTransformer(METRIC)).fit(SWAPPED).transform(SWAPPED),
        lambda: PairSet(np.eye(2), np.array([[0, 1], [1, 0]]), [1, 1]).canonical(),
    ],
    ids=["at once", "through a pipeline", "from a container"],
)
def test_a_warning_names_the_line_of_the_caller(warns):
    with pytest.warns(DataWarning) as caught:
        warns()
    assert {warning.filename for warning in caught} == {__file__}
