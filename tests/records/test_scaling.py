"""Public bounds: given, read, written; never computed from data."""

import inspect
import json

import numpy as np
import pytest
from scipy import sparse

from pairveil.errors import DataWarning, InputError
from pairveil.records import scaling
from pairveil.records.scaling import PublicBounds, scale_to_bounds

BOUNDS = PublicBounds([0, 30], [120, 250], ["age", "height"])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_go_to_the_unit_interval_and_outliers_to_its_ends(dtype):
    values = np.array([[60, 140], [-5, 30], [500, 251]], dtype=dtype)
    with pytest.warns(DataWarning, match=r"3 values .*column 'age' \(2\), column 'height' \(1\)"):
        scaled = scale_to_bounds(values, BOUNDS)
    assert scaled.dtype == dtype
    np.testing.assert_allclose(scaled, [[0.5, 0.5], [0, 0], [1, 1]])


def test_one_person_s_scaled_row_does_not_depend_on_the_others():
    values = np.random.default_rng(0).uniform(30, 120, size=(20, 2))
    np.testing.assert_array_equal(
        scale_to_bounds(values, BOUNDS)[:1], scale_to_bounds(values[:1], BOUNDS)
    )


def test_data_norm_makes_clipping_needless():
    with pytest.warns(DataWarning, match="2 values lay outside the public bounds"):
        rows = scale_to_bounds(np.array([[1e6, 1e6]]), BOUNDS, data_norm=3.0)
    assert np.linalg.norm(rows) == pytest.approx(3.0)


def test_sparse_needs_lower_bounds_of_zero():
    values = sparse.csr_array([[0.0, 5.0], [20.0, 0.0]])
    with pytest.warns(DataWarning, match=r"1 value lay .*column 1 \(1\)"):
        scaled = scale_to_bounds(values, PublicBounds([0, 0], [10, 10]))
    np.testing.assert_array_equal(scaled.toarray(), [[0, 0.5], [1, 0]])
    with pytest.raises(InputError, match="lower bounds of 0"):
        scale_to_bounds(values, BOUNDS)


def test_values_within_the_bounds_are_not_spoken_of():
    scale_to_bounds(np.array([[0.0, 30.0], [120.0, 250.0]]), BOUNDS)


@pytest.mark.parametrize("name", ["bounds.json", "bounds.csv"])
def test_bounds_survive_a_file_and_leave_no_other(name, tmp_path):
    BOUNDS.write(tmp_path / name)
    found = PublicBounds.read(tmp_path / name)
    assert found.names == BOUNDS.names
    np.testing.assert_array_equal([found.lower, found.upper], [BOUNDS.lower, BOUNDS.upper])
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "bounds.json"
    path.write_text("{}")

    def fail(*args, **options):
        raise OSError("disk full")

    monkeypatch.setattr(scaling.json, "dump", fail)
    with pytest.raises(InputError, match="disk full"):
        BOUNDS.write(path)
    assert path.read_text() == "{}"
    assert [file.name for file in tmp_path.iterdir()] == ["bounds.json"]


def test_bounds_are_matched_by_name():
    assert BOUNDS.ordered(["height"]).lower.tolist() == [30]
    with pytest.raises(InputError, match="no bounds for column 'weight'"):
        BOUNDS.ordered(["age", "weight"])
    with pytest.raises(InputError, match="no column names"):
        PublicBounds([0], [1]).ordered(["age"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 5], [1, 5], ["a", "b"]), "bounds of column 'b' must be finite, lower < upper"),
        (([0], [np.inf]), "bounds of column 1"),
        (([0], [1, 2]), "as many lower as upper"),
        ((["x"], [1]), "must be numbers"),
        (([0, 0], [1, 1], ["a", "a"]), "each name once"),
    ],
)
def test_bounds_that_bound_nothing_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        PublicBounds(*arguments)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("b.json", "[1]", "expected"),
        ("b.json", "{", "not JSON .line 1"),
        ("b.json", json.dumps({"age": [1]}), "column 'age' needs"),
        ("b.json", "{}", "no bounds"),
        ("b.csv", "column,lower\nage,1\n", "row 1: needs columns"),
        ("b.csv", "column,lower,upper\nage,1\n", "row 1: needs columns"),
        ("b.csv", "column,lower,upper\nage,low,high\n", "must be numbers"),
    ],
)
def test_files_that_hold_no_bounds_are_refused(name, content, message, tmp_path):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message):
        PublicBounds.read(tmp_path / name)


def test_wrong_number_of_columns():
    with pytest.raises(InputError, match="bounds for 1 columns, features of 2"):
        scale_to_bounds(np.ones((1, 2)), PublicBounds([0], [1]))


def test_nothing_here_takes_a_minimum_or_maximum_of_data():
    source = inspect.getsource(scaling)
    assert not any(word in source for word in (".min(", ".max(", "quantile", "np.min", "np.max"))
