"""Loading benchmark sets and setting experiments up."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from reproduction.data import Benchmark, available, load

from pairveil.errors import InputError
from reproduction import data, protocol


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, size=(120, 3)).astype(float)
    return X, (rng.random(120) < 0.5).astype(int)


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch):
    monkeypatch.delenv("PAIRVEIL_DATA", raising=False)


def test_npz_and_dat_hold_the_same_people(table, tmp_path):
    X, y = table
    np.savez(tmp_path / "mine.npz", X=X.astype(np.uint8), y=y.astype(np.uint8))
    np.savetxt(tmp_path / "IPUMS-US.dat", np.column_stack([X, y]), fmt="%g")
    np.savetxt(tmp_path / "commas.dat", np.column_stack([X, y]), fmt="%g", delimiter=",")
    assert available(tmp_path) == ("commas", "ipums_us", "mine")
    for name in ("mine", "ipums-us", "commas"):
        found = load(name, tmp_path)
        assert (found.X == X).all()
        assert (found.classes == y).all()
    assert load("mine", tmp_path).train_people == 84
    assert load("ipums_us", tmp_path).train_people == 102  # a cut-down known file: test people stay


def test_the_environment_names_the_folder(table, tmp_path, monkeypatch):
    np.savez(tmp_path / "bank.npz", X=table[0], y=table[1])
    monkeypatch.setenv("PAIRVEIL_DATA", str(tmp_path))
    assert available() == ("bank",)
    assert load("bank").downsample
    with pytest.raises(InputError, match="does not exist"):
        available(tmp_path / "nowhere")


def test_lopsided_unknown_sets_are_downsampled(table, tmp_path):
    y = np.zeros(120, dtype=int)
    y[:20] = 1
    np.savez(tmp_path / "rare.npz", X=table[0], y=y)
    found = load("rare", tmp_path)
    assert found.downsample
    assert found.train_people == 28
    split = protocol.make_split(found, np.random.default_rng(0))
    assert abs(split.y_train.mean() - 0.5) < 0.3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1 2 0\n3 4 7\n", "last column must hold the label"),
        ("1 2 0\n3 secret 1\n", "not a table of numbers"),
        ("1 2 0\n3 1\n", "not a table of numbers"),
        ("1 nan 0\n3 4 1\n", "row 0 holds a value that is not a finite number"),
        ("1 2 0\n3 4 0\n", "two classes"),
    ],
)
def test_bad_files_are_refused_without_their_values(content, message, tmp_path):
    (tmp_path / "bad.dat").write_text(content)
    with pytest.raises(InputError, match=message) as problem:
        load("bad", tmp_path)
    assert "secret" not in str(problem.value)


def test_missing_arrays_and_names_are_explained(table, tmp_path):
    np.savez(tmp_path / "odd.npz", X=table[0])
    with pytest.raises(InputError, match="arrays X and y"):
        load("odd", tmp_path)
    with pytest.raises(InputError, match=r"adult\.npz .*--download"):
        load("adult", tmp_path)
    with pytest.raises(InputError, match=r"ipums_us\.dat"):
        load("ipums_us", tmp_path)


def openml(data_id, as_frame, parser):
    """What scikit-learn returns for a tiny table with one categorical column."""
    assert data_id in (1461, 1590)
    assert (as_frame, parser) == (False, "liac-arff")
    rows = [[30.0, 0.0], [40.0, 1.0], [50.0, np.nan], [np.nan, 2.0]] * 5
    return SimpleNamespace(
        data=np.array(rows),
        feature_names=["age", "job"],
        categories={"job": ["a", "b", "c"]},
        target=np.array(["no", "yes"] * 10),
    )


def test_openml_tables_are_fetched_once_and_become_one_hot(monkeypatch, tmp_path):
    monkeypatch.setattr("sklearn.datasets.fetch_openml", openml)
    assert data.download(tmp_path) == ("adult", "bank")
    assert data.download(tmp_path) == ()
    assert available(tmp_path) == ("adult", "bank")
    assert len(list(tmp_path.iterdir())) == 2
    found = load("bank", tmp_path)
    assert found.X[:4].tolist() == [[30, 1, 0, 0], [40, 0, 1, 0], [50, 0, 0, 0], [0, 0, 0, 1]]
    assert found.classes[:4].tolist() == [0, 1, 0, 1]


def test_no_network_is_explained(monkeypatch, tmp_path):
    def offline(**_):
        raise OSError("no route")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", offline)
    with pytest.raises(InputError, match=r"OpenML could not be reached.*adult\.npz"):
        data.download(tmp_path)
    with pytest.raises(InputError, match="not on OpenML"):
        data.fetch("ipums_br")


def test_rows_and_columns_are_scaled(table):
    for norm, order in (("l1", 1), ("l2", 2)):
        rows = protocol.scale(table[0], norm)
        assert rows.min() >= 0
        assert np.linalg.norm(rows, order, axis=1).max() <= 1
    given = protocol.scale([[2.0], [4.0]], bounds=(np.array([0.0]), np.array([8.0])))
    assert given.tolist() == [[0.25], [0.5]]


def small() -> Benchmark:
    rng = np.random.default_rng(1)
    classes = np.repeat([0, 1, 2], [50, 80, 120])
    return Benchmark("small", rng.random((250, 4)), classes, 90, True, "made up")


def test_split_is_disjoint_balanced_and_the_same_for_both_norms():
    l1 = protocol.make_split(small(), np.random.default_rng(2), "l1")
    l2 = protocol.make_split(small(), np.random.default_rng(2), "l2")
    assert (l1.y_train == l2.y_train).all()
    assert l1.n_people == 90
    assert len(l1.y_test) == 160
    everyone = np.vstack([l2.X_train, l2.X_test])
    assert len(np.unique(everyone, axis=0)) == 250
    assert np.bincount(l1.y_train).min() > 20
    quick = protocol.make_split(small(), np.random.default_rng(2), max_people=40)
    assert (quick.n_people, len(quick.y_test)) == (40, 40)


@pytest.mark.parametrize("density", [2.0, 6.0])
def test_the_papers_graph_has_its_properties(density):
    split = protocol.make_split(small(), np.random.default_rng(2))
    graph = protocol.paper_graph(split, np.random.default_rng(3), density)
    assert len(graph.pairs) == density * split.n_people
    assert (graph.labels == 1).sum() == (graph.labels == -1).sum()
    ordered = np.sort(graph.pairs, axis=1)
    assert (ordered[:, 0] < ordered[:, 1]).all()
    assert len(np.unique(ordered, axis=0)) == len(ordered)
    same = split.y_train[graph.pairs[:, 0]] == split.y_train[graph.pairs[:, 1]]
    assert ((graph.labels == 1) == same).all()


def test_a_graph_that_cannot_be_drawn_is_refused():
    split = protocol.make_split(small(), np.random.default_rng(2), max_people=10)
    with pytest.raises(InputError, match="do not have"):
        protocol.paper_graph(split, np.random.default_rng(3), density=8.0)


def test_designs_are_labelled_by_class():
    split = protocol.make_split(small(), np.random.default_rng(2))
    paths = protocol.design(split, "paths", np.random.default_rng(0))
    assert len(paths.pairs) == split.n_people - 1
    assert np.bincount(paths.pairs.ravel()).max() == 2
    assert set(paths.labels.tolist()) == {1, -1}


def test_scores_are_repeatable_and_see_a_good_metric():
    rng = np.random.default_rng(4)
    classes = rng.integers(0, 2, 300)
    X = np.column_stack([classes + 0.1 * rng.normal(size=300), 5 * rng.random(300)])
    split = protocol.Split("made", X[:150], classes[:150], X[150:], classes[150:])
    good, bad = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    first = protocol.score(good, split, 0, n_pairs=2000)
    assert first == protocol.score(good, split, 0, n_pairs=2000)
    assert first["pair_auc"] > 0.99
    assert first["knn_accuracy"] > 0.99
    assert protocol.score(bad, split, 0, n_pairs=2000)["pair_auc"] < 0.6
    assert protocol.score(bad, split, 0, n_pairs=2000, knn_people=50)["knn_accuracy"] < 0.8
    assert protocol.untrained(split, 3, rng).shape == (3, 2)
