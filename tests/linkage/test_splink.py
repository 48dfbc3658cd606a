"""Real Splink, from end to end: settings, labels, private training, prediction with the same weights."""

import itertools
import json
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from pairveil import InputError
from pairveil.cli.app import app
from pairveil.errors import DataWarning
from pairveil.linkage import PrivateLinkageModel
from pairveil.linkage.splink import from_splink, levels_of_settings, settings_of, to_splink

splink = pytest.importorskip("splink", reason="Splink is an extra: pip install 'pairveil[splink]'")
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning"),
]
REAL = Path(os.environ.get("PAIRVEIL_DATA", "no such folder")) / "historical_50k.parquet"
FIRST = ("thomas", "tom", "ann", "anna", "john", "jon", "mary", "marie", "peter", "karl")
LAST = ("smith", "smyth", "jones", "miller", "mueller", "brown", "braun", "clark")


def made_up(n_people=150, seed=0):
    """Two records a person, with slips, and clerical labels along a path through all records."""
    rng = np.random.default_rng(seed)
    rows = []
    for person in range(n_people):
        first, last = rng.choice(FIRST), rng.choice(LAST)
        dob = f"{rng.integers(1900, 1999)}-0{rng.integers(1, 9)}-1{rng.integers(0, 9)}"
        for _ in range(2):
            row = {"first_name": first, "surname": last, "dob": dob, "cluster": person}
            if rng.random() < 0.2:
                row["first_name"] = rng.choice(FIRST)
            if rng.random() < 0.1:
                row["surname"] = None
            rows.append({"unique_id": f"r{len(rows)}", **row})
    return pd.DataFrame(rows)


def real(n_people=150):
    table = pd.read_parquet(REAL).groupby("cluster").head(2)
    columns = ["unique_id", "first_name", "surname", "dob", "cluster"]
    return table[columns].head(2 * n_people).reset_index(drop=True)


SOURCES = [
    pytest.param(made_up, id="made up"),
    pytest.param(
        real,
        id="historical_50k",
        marks=pytest.mark.skipif(not REAL.exists(), reason="PAIRVEIL_DATA has no historical_50k"),
    ),
]


def clerical(records):
    """Splink's labels; some of them say, with a low score, that a pair does not match."""
    ids, who = records["unique_id"].tolist(), records["cluster"].tolist()
    same = [a == b for a, b in itertools.pairwise(who)]
    scores = np.where(same, 0.97, 0.02)
    return pd.DataFrame(
        {"unique_id_l": ids[:-1], "unique_id_r": ids[1:], "clerical_match_score": scores}
    )


def creator(**more):
    import splink.comparison_library as cl

    usual = {
        "link_type": "dedupe_only",
        "blocking_rules_to_generate_predictions": [splink.block_on("dob")],
        "comparisons": [
            cl.JaroWinklerAtThresholds("first_name", [0.9, 0.7]),
            cl.ExactMatch("surname"),
            cl.LevenshteinAtThresholds("dob", [1, 2]),
        ],
        "retain_intermediate_calculation_columns": True,
    }
    return splink.SettingsCreator(**{**usual, **more})


def linker_of(records, settings=None):
    return splink.Linker(splink.DuckDBAPI().register(records), settings or creator())


@pytest.mark.parametrize("source", SOURCES)
def test_private_training_and_prediction_give_the_same_weights_in_both(source):
    records = source()
    linker = linker_of(records)
    before = linker.misc.save_model_to_json()
    model = PrivateLinkageModel(epsilon=2.0).from_splink(linker, clerical(records))
    assert linker.misc.save_model_to_json() == before  # the caller's linker is as it was
    assert model.certificate_.verify().problems == ()
    assert model.certificate_.for_release
    assert model.certificate_.kappas["relationship"] == 1
    assert model.n_levels_ == (4, 2, 4)
    trained = linker_of(records, model.to_splink(linker, prior=0.01))
    found = trained.inference.predict(warning_mode="never").as_pandas_dataframe()
    gammas = found[["gamma_first_name", "gamma_surname", "gamma_dob"]].to_numpy()
    assert (gammas == -1).any()
    bits = model.match_weights(gammas) + np.log2(0.01 / 0.99)
    assert found["match_weight"].to_numpy() == pytest.approx(bits, abs=1e-12)
    mine = model.match_probability(gammas, prior=0.01)
    assert found["match_probability"].to_numpy() == pytest.approx(mine, abs=1e-12)
    agree = found.merge(records, left_on="unique_id_l", right_on="unique_id").merge(
        records, left_on="unique_id_r", right_on="unique_id"
    )
    same = agree["cluster_x"] == agree["cluster_y"]
    if same.any() and not same.all():
        assert agree.loc[same, "match_weight"].mean() > agree.loc[~same, "match_weight"].mean()


def test_a_record_that_labels_name_in_two_ways_is_one_record():
    """DuckDB takes 01 for 1 where ids are numbers: kappa of a person was 1 for somebody in three pairs."""
    records = made_up(8).assign(unique_id=range(16))
    labels = pd.DataFrame(
        {"unique_id_l": ["1", "01", "001"], "unique_id_r": ["2", "3", "4"]},
    ).assign(clerical_match_score=0.9)
    found = from_splink(linker_of(records), labels)
    assert found.pairs.tolist() == [[1, 2], [1, 3], [1, 4]]
    model = PrivateLinkageModel(unit="person", select="all", random_state=0)
    planned = model.certify(found.levels, found.labels, found.pairs, found.n_levels)
    assert planned.kappas["person"] == 3
    padded = labels.assign(unique_id_l=["01", "05", "06"], unique_id_r=["02", "03", "04"])
    found = from_splink(linker_of(records), padded, n_random=50)
    assert len(found.pairs) == 3 + 9
    assert not set(found.pairs[3:].ravel()) & {1, 2, 3, 4, 5, 6}
    few = from_splink(linker_of(records.head(7)), padded, n_random=50)  # one record is left
    assert len(few.pairs) == len(few.labels) == 3


def test_two_tables_are_linked_by_labels_that_name_their_tables():
    """link_only: an id is unique within its table alone, so both tables call their records 0, 1, 2, ..."""
    records = made_up()
    halves = [records.iloc[side::2].reset_index(drop=True) for side in (0, 1)]
    halves = [half.assign(unique_id=half.index.astype(str)) for half in halves]
    api = splink.DuckDBAPI()
    tables = [
        api.register(half, dataset_display_name=name)
        for half, name in zip(halves, ("old", "new"), strict=True)
    ]
    linker = splink.Linker(tables, creator(link_type="link_only"))
    n = len(halves[0])
    ends = np.array(
        [(i, j) for i in range(n) for j in (i, i + 1) if j < n]
    )  # a path from side to side
    labels = pd.DataFrame({
        "source_dataset_l": "old", "unique_id_l": ends[:, 0].astype(str),
        "source_dataset_r": "new", "unique_id_r": ends[:, 1].astype(str),
        "clerical_match_score": (ends[:, 0] == ends[:, 1]).astype(float),
    })  # fmt: skip
    model = PrivateLinkageModel(epsilon=2.0).from_splink(linker, labels)
    assert model.certificate_.kappas["relationship"] == 1
    trained = splink.Linker(tables, model.to_splink(linker, prior=0.01))
    found = trained.inference.predict(warning_mode="never").as_pandas_dataframe()
    gammas = found[["gamma_first_name", "gamma_surname", "gamma_dob"]].to_numpy()
    bits = model.match_weights(gammas) + np.log2(0.01 / 0.99)
    assert found["match_weight"].to_numpy() == pytest.approx(bits, abs=1e-12)
    crossed = from_splink(linker, labels.head(50), n_random=40)
    assert len(crossed.pairs) == 90
    assert all({one[:3] for one in pair} == {"old", "new"} for pair in crossed.pairs.tolist())
    with pytest.raises(InputError, match="source_dataset_l and source_dataset_r"):
        from_splink(linker, labels.drop(columns=["source_dataset_l", "source_dataset_r"]))


def test_random_pairs_of_other_records_are_compared_too():
    records = made_up(300)
    few = clerical(records).head(99)
    linker = linker_of(records)
    found = from_splink(linker, few, n_random=1000)
    assert (found.pairs[:99] == few[["unique_id_l", "unique_id_r"]].to_numpy()).all()
    assert set(found.labels[99:]) == {-1}
    assert len(found.pairs) == 99 + 499  # of 600 records 500 are in no labelled pair
    assert not set(found.pairs[99:].ravel()) & set(found.pairs[:99].ravel())
    left, right = (records.set_index("unique_id").loc[found.pairs[:, i]] for i in (0, 1))
    same = left["dob"].to_numpy() == right["dob"].to_numpy()
    assert ((found.levels[:, 2] == 3) == same).all()
    model = PrivateLinkageModel(epsilon=1.0).from_splink(linker, few, n_random=1000)
    assert model.certificate_.kappas == {"pair": 1, "relationship": 1, "person": 2}
    assert model.n_pairs_used_ == 598


def test_a_low_clerical_score_is_no_match():
    records = made_up()
    found = from_splink(linker_of(records), clerical(records))
    assert (found.labels == np.where(clerical(records)["clerical_match_score"] > 0.5, 1, -1)).all()
    assert found.names == ("first_name", "surname", "dob")
    left, right = (records.set_index("unique_id").loc[found.pairs[:, i]] for i in (0, 1))
    exact = left["first_name"].to_numpy() == right["first_name"].to_numpy()
    assert ((found.levels[:, 0] == 3) == exact).all()
    null = left["surname"].isna().to_numpy() | right["surname"].isna().to_numpy()
    assert ((found.levels[:, 1] == -1) == null).all()


def test_written_probabilities_are_fixed_and_the_setting_that_splink_4_refuses_is_left_out():
    model = PrivateLinkageModel(epsilon=float("inf")).from_splink(
        linker_of(made_up()), clerical(made_up())
    )
    settings = model.to_splink(creator())
    json.dumps(settings, allow_nan=False)
    assert "match_weight_column_prefix" not in settings
    for comparison, m in zip(settings["comparisons"], model.m_, strict=True):
        null, *levels = comparison["comparison_levels"]
        assert null["is_null_level"]
        assert "m_probability" not in null
        assert [one["m_probability"] for one in levels] == pytest.approx(m[::-1])
        assert all(one["fix_m_probability"] and one["fix_u_probability"] for one in levels)
        assert all(one["u_probability"] > 0 for one in levels)
    prior = settings_of(creator())["probability_two_random_records_match"]
    assert settings["probability_two_random_records_match"] == prior
    assert model.to_splink(creator(), prior=0.2)["probability_two_random_records_match"] == 0.2


def test_a_prior_that_was_given_goes_to_splink_and_one_that_nobody_chose_is_said():
    """Splink's default is 1 in 10,000: at p > 0.95 half of the matches were lost with it."""
    records = made_up()
    model = PrivateLinkageModel(prior=0.003, random_state=0)
    model.from_splink(linker_of(records), clerical(records))
    key = "probability_two_random_records_match"
    assert model.to_splink(creator())[key] == 0.003
    assert model.to_splink(creator(), prior=0.2)[key] == 0.2
    model = PrivateLinkageModel(random_state=0).from_splink(linker_of(records), clerical(records))
    with pytest.warns(DataWarning, match="Splink's default prior"):
        assert model.to_splink(creator())[key] == 0.0001
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        assert model.to_splink(creator(probability_two_random_records_match=0.01))[key] == 0.01


def test_random_pairs_that_were_asked_for_and_not_drawn_are_said():
    records = made_up(50)
    labels = clerical(records).head(89)
    with pytest.warns(DataWarning, match="40 random pairs were asked for and 9 drawn"):
        found = from_splink(linker_of(records), labels, n_random=40)
    assert len(found.pairs) == 89 + 9
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        from_splink(linker_of(records), labels, n_random=9)


def test_labels_may_be_a_table_of_splinks_own():
    records = made_up()
    api = splink.DuckDBAPI()
    linker = splink.Linker(api.register(records), creator())
    labels = linker.table_management.register_labels_table(api.register(clerical(records)))
    found = from_splink(linker, labels)
    assert (found.levels == from_splink(linker, clerical(records)).levels).all()


def test_later_training_keeps_what_was_written():
    records = made_up()
    model = PrivateLinkageModel(random_state=0).from_splink(linker_of(records), clerical(records))
    trained = linker_of(records, model.to_splink(creator()))
    trained.training.estimate_u_using_random_sampling(max_pairs=1e4)
    settings = trained.misc.save_model_to_json()
    exact = settings["comparisons"][0]["comparison_levels"][1]
    assert exact["u_probability"] == pytest.approx(model.u_[0][3], abs=1e-12)


def test_comparisons_are_matched_by_name_and_strangers_are_refused():
    settings = settings_of(creator())
    names, sizes = levels_of_settings(settings)
    m = [np.full(size, 1 / size) for size in sizes]
    m[0] = np.array([0.1, 0.2, 0.3, 0.4])
    turned = to_splink(m[::-1], m[::-1], settings, names[::-1])
    assert turned["comparisons"][0]["comparison_levels"][1]["m_probability"] == 0.4
    with pytest.raises(InputError, match="3 comparisons and the model 2"):
        to_splink(m[:2], m[:2], settings)
    with pytest.raises(InputError, match="comparison 1 of the settings has 4 levels"):
        to_splink([m[1], m[1], m[2]], m, settings)
    for wrong in ({}, {"comparisons": []}, {"comparisons": [{"comparison_levels": 3}]}, 7):
        with pytest.raises(InputError, match="settings"):
            to_splink(m, m, wrong)


def test_records_that_are_not_there_are_said_by_row_and_without_their_ids():
    records = made_up()
    labels = clerical(records)
    labels.loc[4, "unique_id_r"] = "secret"
    with pytest.raises(
        InputError, match="1 labelled pairs name a record that is not there, the first in row 5"
    ) as e:
        from_splink(linker_of(records), labels)
    assert "secret" not in str(e.value)
    twice = pd.concat([records, records.iloc[[3]]])
    with pytest.raises(InputError, match="an id that several records have"):
        from_splink(linker_of(twice), clerical(records))


@pytest.mark.filterwarnings("default::pairveil.errors.DataWarning")
def test_term_frequencies_ask_for_u_of_random_pairs():
    import splink.comparison_library as cl

    records = made_up()
    compared = [cl.ExactMatch("surname").configure(term_frequency_adjustments=True)]
    linker = linker_of(records, creator(comparisons=compared))
    with pytest.warns(DataWarning, match="u of random pairs: give n_random"):
        PrivateLinkageModel(random_state=0).from_splink(linker, clerical(records))


def test_a_linker_of_an_older_splink_is_refused():
    records = made_up()
    with pytest.raises(InputError, match="give a Linker of Splink 5 on DuckDB"):
        from_splink(object(), clerical(records))


def test_the_command_takes_settings_records_and_labels(tmp_path):
    records = made_up()
    records.to_parquet(tmp_path / "records.parquet")
    clerical(records).head(149).to_csv(tmp_path / "labels.csv", index=False)
    (tmp_path / "settings.json").write_text(json.dumps(settings_of(creator())))
    words = [
        "link",
        tmp_path / "settings.json",
        tmp_path / "labels.csv",
        "--out",
        tmp_path / "out",
        "--json",
        "--random-pairs",
        100,
        "--prior",
        0.02,
    ]
    done = CliRunner().invoke(
        app, [*map(str, words), "--records", str(tmp_path / "records.parquet")]
    )
    assert done.exit_code == 0, (done.output, done.exception)
    assert json.loads(done.stdout)["certificate"]["n_pairs_used"] == 149 + 100
    assert json.loads(done.stdout)["certificate"]["for_release"] is True
    checked = CliRunner().invoke(app, ["certificate", str(tmp_path / "out"), "--json"])
    assert json.loads(checked.stdout)["valid"]
    written = json.loads((tmp_path / "out" / "splink.json").read_text())
    assert written["probability_two_random_records_match"] == 0.02
    trained = linker_of(records, str(tmp_path / "out" / "splink.json"))
    assert len(trained.inference.predict(warning_mode="never").as_pandas_dataframe()) > 0
    files = [tmp_path / name for name in ("out", "settings.json", "labels.csv")]
    scored = ["threshold", *files, "--records", tmp_path / "records.parquet", "--fmr", 0.9]
    done = CliRunner().invoke(app, [*map(str, scored), "--epsilon", "8", "--json"])
    assert done.exit_code == 0, (done.output, done.exception)
    assert json.loads(done.stdout)["certificate"]["n_pairs_used"] == 149
    wrong = CliRunner().invoke(app, [*map(str, scored[:4]), "--fmr", "0.9"])
    assert "--records FILE" in str(wrong.exception)
    missing = CliRunner().invoke(app, [*map(str, words), "--overwrite"])
    assert "--records FILE" in str(missing.exception)


def test_the_command_lists_labels_without_records_and_leaves_them_out(tmp_path):
    records = made_up()
    records.to_parquet(tmp_path / "records.parquet")
    listed = clerical(records).head(149)
    stranger, self_pair = listed.iloc[0].copy(), listed.iloc[1].copy()
    stranger["unique_id_r"] = "kanarienvogel"
    self_pair["unique_id_r"] = self_pair["unique_id_l"]
    pd.concat([listed, pd.DataFrame([stranger, self_pair])]).to_csv(
        tmp_path / "labels.csv", index=False
    )
    (tmp_path / "settings.json").write_text(json.dumps(settings_of(creator())))
    files = [
        tmp_path / "settings.json",
        tmp_path / "labels.csv",
        "--records",
        tmp_path / "records.parquet",
    ]
    words = ["link", *files, "--prior", 0.02, "--dry-run", "--json"]
    refused = CliRunner().invoke(app, [*map(str, words)])
    for part in (
        "1 of 151 pairs has no levels (row 150)",
        "1 pair joins a person with herself (row 151)",
    ):
        assert part in str(refused.exception)
    assert "kanarienvogel" not in str(refused.exception)
    done = CliRunner().invoke(app, [*map(str, words), "--leave-out"])
    assert done.exit_code == 0, done.exception
    shown = json.loads(done.stdout)
    assert shown["certificate"]["n_pairs_given"] == 149
    assert shown["left_out"] == {"self_pairs": 1, "unknown_pairs": 1, "levels": 0, "pairs": 2}


def test_a_released_metric_is_a_comparison_with_the_same_distances():
    from pairveil import ReleasedMetric
    from pairveil.linkage import metric_comparison
    from pairveil.schema.columns import NumberColumn
    from pairveil.schema.schema import Schema

    rng = np.random.default_rng(0)
    table = pd.DataFrame({"unique_id": np.arange(40), "a": rng.random(40), "b c": rng.random(40)})
    table.loc[3, "a"] = None
    metric = ReleasedMetric(np.array([[1.0, 0.5], [-0.25, 2.0]]), None, ("a", "b c"))
    settings = {
        "link_type": "dedupe_only",
        "blocking_rules_to_generate_predictions": ["1=1"],
        "comparisons": [metric_comparison(metric, [0.3, 0.8])],
        "retain_matching_columns": True,
        "retain_intermediate_calculation_columns": True,
    }
    found = linker_of(table, settings).inference.predict(warning_mode="never").as_pandas_dataframe()
    rows = table.set_index("unique_id")[["a", "b c"]]
    left, right = (rows.loc[found[f"unique_id_{side}"]].to_numpy() for side in "lr")
    distance = metric.distance(np.nan_to_num(left), np.nan_to_num(right))
    null = np.isnan(left + right).any(axis=1)
    expected = np.where(null, -1, (distance <= 0.3).astype(int) + (distance <= 0.8))
    assert (found["gamma_metric"].to_numpy() == expected).all()
    assert set(expected) == {-1, 0, 1, 2}
    for wrong in ([], [0.8, 0.3], [0.0]):
        with pytest.raises(InputError, match="cuts"):
            metric_comparison(metric, wrong)
    with pytest.raises(InputError, match="name its columns"):
        metric_comparison(ReleasedMetric(np.eye(2)), [0.3])
    raw = Schema((NumberColumn("a", bounds=(0, 9)),))
    with pytest.raises(InputError, match="cannot hold the schema"):
        metric_comparison(ReleasedMetric(np.eye(1), schema=raw), [0.3])
