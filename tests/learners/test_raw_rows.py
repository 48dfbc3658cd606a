"""``schema=`` and ``bounds=`` inside a learner give what the same rows, made ready by hand, give."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from pairveil import (
    ContrastiveMetricLearner,
    DPPMetricLearner,
    DPPTripletLearner,
    GroupSet,
    InputError,
    PairSet,
    ReleasedMetric,
    Schema,
    TupleSet,
)
from pairveil.schema.schema import to_toml

pytestmark = pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")
RNG = np.random.default_rng(0)
N = 80
GROUPS = RNG.integers(0, 2, N)
RAW = pd.DataFrame(
    {
        "age": 30 + 40 * GROUPS + RNG.normal(size=N) * 8,
        "ward": np.where(RNG.random(N) < 0.3 + 0.4 * GROUPS, "a", "b"),
        "dose": RNG.normal(size=N),
    }
)
RAW.loc[3, "age"] = np.nan
SCHEMA = Schema.from_dict(
    {
        "columns": {
            "age": {"type": "number", "bounds": [0, 120], "indicator": True},
            "ward": {"type": "category", "categories": ["a", "b"]},
            "dose": {"type": "number", "bounds": [-4, 4]},
        }
    }
)
PAIRS = np.array([(i, (i + 1) % N) for i in range(N)] + [(i, (i + 5) % N) for i in range(N)])
Y = np.where(GROUPS[PAIRS[:, 0]] == GROUPS[PAIRS[:, 1]], 1, -1)
ENCODED = SCHEMA.encode(RAW)[0]


def learner(**more: object) -> DPPMetricLearner:
    return DPPMetricLearner(random_state=0, **({"epsilon": 4.0} | more))


def test_the_distance_of_two_people_takes_raw_rows_too():
    """``get_metric`` is `pair_distance`; of numbers alone, raw rows have the shape of encoded ones."""
    made = learner(schema=SCHEMA, preprocessor=RAW).fit(PAIRS, Y)
    metric, rows = made.get_metric(), RAW.to_numpy()
    turned = RAW[["dose", "age", "ward"]]
    for a, b in PAIRS[:6]:
        wanted = pytest.approx(made.pair_distance([[a, b]])[0])
        assert metric(rows[a], rows[b]) == wanted
        assert metric(turned.iloc[a], rows[b]) == wanted


@pytest.mark.parametrize("epsilon", [4.0, np.inf])
def test_a_schema_inside_is_the_schema_outside(epsilon):
    inside = learner(epsilon=epsilon, schema=SCHEMA, preprocessor=RAW).fit(PAIRS, Y)
    outside = learner(epsilon=epsilon, preprocessor=ENCODED * SCHEMA.factor()).fit(PAIRS, Y)
    np.testing.assert_allclose(inside.components_, outside.components_ * SCHEMA.factor())
    assert inside.certificate_ == outside.certificate_
    assert inside.n_features_in_ == 3
    assert inside.feature_names_in_.tolist() == ["age", "ward", "dose"]
    wanted = outside.transform(ENCODED * SCHEMA.factor())
    for table in (
        RAW,
        pl.from_pandas(RAW),
        RAW[["dose", "ward", "age"]],
        RAW.to_numpy(),
        np.arange(N),
    ):
        np.testing.assert_allclose(inside.transform(table), wanted, atol=1e-12)
    np.testing.assert_allclose(
        inside.pair_distance(PAIRS), outside.pair_distance(PAIRS), atol=1e-12
    )
    raw_pairs = RAW.to_numpy()[PAIRS]
    np.testing.assert_allclose(
        inside.pair_distance(raw_pairs), outside.pair_distance(PAIRS), atol=1e-12
    )
    if epsilon == np.inf:
        assert inside.threshold_ == pytest.approx(outside.threshold_)
        assert learner(epsilon=epsilon, schema=SCHEMA).fit(
            inside.prepare(PAIRS, Y)
        ).threshold_ == pytest.approx(outside.threshold_)


def test_bounds_inside_scale_and_the_metric_takes_raw_numbers():
    numbers = RAW[["age", "dose"]].fillna(60.0)
    bounds = {"dose": (-4, 4), "age": (0, 120)}
    made = learner(bounds=bounds, preprocessor=numbers).fit(PAIRS, Y)
    scale = np.array([1 / 8, 1 / 120]) / np.sqrt(2)
    ready = np.clip((numbers[["dose", "age"]].to_numpy() - [-4, 0]) * scale, 0, 1)
    outside = learner(preprocessor=ready).fit(PAIRS, Y)
    np.testing.assert_allclose(made.components_, outside.components_ * scale)
    np.testing.assert_allclose(made.pair_distance(PAIRS), outside.pair_distance(PAIRS), atol=1e-12)
    assert made.feature_names_in_.tolist() == ["dose", "age"]
    np.testing.assert_allclose(
        made.transform(numbers), numbers[["dose", "age"]] @ made.components_.T
    )
    as_set = PairSet(numbers.to_numpy(), PAIRS, Y, feature_names=("age", "dose"))
    np.testing.assert_allclose(learner(bounds=bounds).fit(as_set).components_, made.components_)


def test_a_private_threshold_measures_raw_rows_too():
    made = learner(schema=SCHEMA, preprocessor=RAW).fit(PAIRS, Y)
    made.calibrate_threshold(PAIRS, Y, epsilon=50.0)
    assert np.mean(made.predict(PAIRS) == Y) > 0.6
    assert made.threshold_certificate_.verify()


def test_people_with_classes():
    inside = DPPMetricLearner(
        unit="person", epsilon=8.0, random_state=0, schema=SCHEMA
    ).fit_classes(RAW, GROUPS, (0, 1))
    outside = DPPMetricLearner(unit="person", epsilon=8.0, random_state=0)
    outside.fit_classes(ENCODED * SCHEMA.factor(), GROUPS, (0, 1))
    np.testing.assert_allclose(inside.components_, outside.components_ * SCHEMA.factor())


def test_tuples_are_read_by_a_schema_too():
    triplets = np.array([(i, (i + 1) % N, (i + 7) % N) for i in range(N)])
    inside = DPPTripletLearner(epsilon=8.0, random_state=0, schema=SCHEMA, preprocessor=RAW).fit(
        triplets
    )
    outside = DPPTripletLearner(epsilon=8.0, random_state=0, preprocessor=ENCODED * SCHEMA.factor())
    outside.fit(triplets)
    np.testing.assert_allclose(inside.components_, outside.components_ * SCHEMA.factor())


def test_records_that_hold_their_features_are_scaled_already():
    records = TupleSet(np.zeros((4, 3)), [[0, 1, 2]])
    with pytest.raises(InputError, match="leave schema and bounds out"):
        DPPTripletLearner(schema=SCHEMA).fit(records)
    groups = GroupSet(np.zeros((4, 3)), members=[[0, 2, 3]], labels=[[1, -1, -1]])
    with pytest.raises(InputError, match="leave schema and bounds out"):
        learner(schema=SCHEMA).fit(groups)


def test_a_learner_writes_its_release(tmp_path):
    made = learner(schema=SCHEMA, preprocessor=RAW).fit(PAIRS, Y)
    folder = made.release(tmp_path / "out")
    metric = ReleasedMetric.load(folder)
    assert metric.schema == SCHEMA
    assert (folder / "schema.toml").read_text() == to_toml(SCHEMA)
    np.testing.assert_allclose(metric.transform(RAW), made.transform(RAW))
    np.testing.assert_allclose(metric.distance(RAW[:5], RAW[5:10]), made.pair_distance(
        [[i, i + 5] for i in range(5)]))  # fmt: skip
    assert metric.certificate.verify()
    with pytest.raises(InputError, match="already holds a release"):
        made.release(folder)
    assert made.release(folder, overwrite=True) == folder
    with pytest.raises(InputError, match="promises nothing"):
        learner(epsilon=np.inf, preprocessor=ENCODED).fit(PAIRS, Y).release(tmp_path / "none")


def test_a_changed_schema_is_not_the_metrics(tmp_path):
    folder = learner(schema=SCHEMA, preprocessor=RAW).fit(PAIRS, Y).release(tmp_path / "out")
    text = (folder / "schema.toml").read_text()
    (folder / "schema.toml").write_text(text.replace("[0, 120]", "[0, 12]"))
    with pytest.raises(InputError, match="changed after the release"):
        ReleasedMetric.load(folder)


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"schema": SCHEMA, "bounds": {"age": (0, 1)}}, "not both"),
        ({"schema": {"age": 1}}, "schema must be"),
        ({"schema": "no-such-file.toml"}, "no file"),
        ({"bounds": 3}, "bounds must be"),
        ({"bounds": {"age": 3}}, r"must be \(lower, upper\)"),
        ({"bounds": {"height": (0, 1)}}, "lacks 1 of the metric's"),
    ],
)
def test_wrong_facts_are_refused_before_anything_is_spent(parameters, problem):
    with pytest.raises(InputError, match=problem):
        learner(preprocessor=RAW, **parameters).fit(PAIRS, Y)


@pytest.mark.parametrize(
    "how", [{"schema": SCHEMA}, {"bounds": {"age": (0, 120), "dose": (-4, 4)}}]
)
def test_the_learner_without_privacy_reads_raw_rows_too(how):
    table = RAW if "schema" in how else RAW[["age", "dose"]].fillna(60.0)
    bare = ContrastiveMetricLearner(preprocessor=table, **how).fit(PAIRS, Y)
    whole = learner(epsilon=np.inf, select="all", preprocessor=table, **how).fit(PAIRS, Y)
    np.testing.assert_allclose(bare.transform(table), whole.transform(table))
    assert bare.score(PAIRS, Y) == whole.score(PAIRS, Y)
    assert hasattr(bare.fit(PAIRS, Y), "schema_") == ("schema" in how)
