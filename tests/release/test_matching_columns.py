"""Tables with column names are matched by name: in every kind of table, by every way to use a metric."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pairveil import (
    ContrastiveMetricLearner,
    DPPMetricLearner,
    PairSet,
    ReleasedMetric,
    design_pairs,
)
from pairveil.errors import DataWarning, InputError
from pairveil.release.sklearn_transformer import MetricTransformer

NAMES = ("age", "bmi", "dose")
L = np.array([[1.0, 20.0, 300.0], [0.0, 1.0, 0.5]])
X = np.random.default_rng(0).normal(size=(30, 3))
FRAME = pd.DataFrame(X, columns=list(NAMES))
TURNED = FRAME[["dose", "age", "bmi"]]
KINDS = {
    "pandas": lambda frame: frame,
    "polars": pl.DataFrame,
    "lazy": lambda frame: pl.DataFrame(frame).lazy(),
    "arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}
METRIC = ReleasedMetric(L, None, NAMES)
PAIRS = design_pairs(30, random_state=0)
Y = np.where(np.arange(len(PAIRS)) % 2, 1, -1)


def fitted(preprocessor: object) -> DPPMetricLearner:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return DPPMetricLearner(preprocessor=preprocessor, random_state=0).fit(PAIRS, Y)


@pytest.fixture(scope="module")
def learner() -> DPPMetricLearner:
    return fitted(FRAME)


USERS = {
    "released": METRIC.transform,
    "distance": lambda table: METRIC.distance(table, table) + METRIC.transform(table)[:, 0],
    "transformer": MetricTransformer(METRIC).transform,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("user", USERS)
def test_a_table_is_matched_by_name(user: str, kind: str) -> None:
    use, make = USERS[user], KINDS[kind]
    wanted = use(X)
    np.testing.assert_allclose(use(make(FRAME)), wanted)
    with pytest.warns(DataWarning, match="matched by name"):
        np.testing.assert_allclose(use(make(TURNED)), wanted)
    for wrong, said in [
        (FRAME.rename(columns={"bmi": "weight"}), "lacks 1 of the metric's 3 columns: bmi"),
        (FRAME.assign(secret=1.0), "4 columns where the metric has 3: 1 of them is not"),
        (FRAME[["age", "bmi"]], "lacks 1"),
    ]:
        with pytest.raises(InputError, match=said) as caught:
            use(make(wrong))
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_a_learner_remembers_the_columns(learner: DPPMetricLearner, kind: str) -> None:
    assert learner.feature_names_in_.tolist() == list(NAMES)
    make, wanted = KINDS[kind], learner.transform(X)
    np.testing.assert_allclose(learner.transform(make(FRAME)), wanted)
    with pytest.warns(DataWarning, match="matched by name"):
        np.testing.assert_allclose(learner.transform(make(TURNED)), wanted)
    with pytest.raises(InputError, match="lacks 1"):
        learner.transform(make(FRAME.rename(columns={"age": "Age"})))


def test_a_preprocessor_put_in_later_is_matched_too(learner: DPPMetricLearner) -> None:
    wanted = learner.pair_distance(PAIRS)
    learner.preprocessor = TURNED
    try:
        with pytest.warns(DataWarning, match="matched by name"):
            np.testing.assert_allclose(learner.pair_distance(PAIRS), wanted)
    finally:
        learner.preprocessor = FRAME


def test_the_metric_function_matches_rows_of_a_frame(learner: DPPMetricLearner) -> None:
    metric = learner.get_metric()
    assert metric(TURNED.iloc[0], FRAME.iloc[1]) == pytest.approx(metric(X[0], X[1]))
    with pytest.raises(InputError, match="lacks"):
        metric(FRAME.iloc[0].rename({"age": "x"}), X[1])


def test_names_come_from_pair_sets_and_go_with_a_new_fit() -> None:
    data = PairSet(X, PAIRS, Y, None, NAMES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner = ContrastiveMetricLearner(n_steps=5).fit(data)
        assert learner.feature_names_in_.tolist() == list(NAMES)
        learner.preprocessor = X
        assert not hasattr(learner.fit(PAIRS, Y), "feature_names_in_")


def test_numbered_columns_have_no_names() -> None:
    np.testing.assert_allclose(METRIC.transform(pd.DataFrame(X)), METRIC.transform(X))
    assert not hasattr(fitted(pd.DataFrame(X)), "feature_names_in_")
    assert not hasattr(fitted(X), "feature_names_in_")


def test_two_columns_of_one_name_are_refused() -> None:
    twice = pd.DataFrame(np.ones((2, 3)), columns=["age", "bmi", "bmi"])
    with pytest.raises(InputError, match="two columns have the same name"):
        METRIC.transform(twice)
    with pytest.raises(InputError):
        ReleasedMetric(L, None, ("bmi", "age", "bmi")).transform(twice)
