"""read_features and read_pairs on every kind of table."""

import gzip

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from pairveil.errors import InputError
from pairveil.records import files
from pairveil.records.pairset import PairSet
from pairveil.records.readers import read_classes, read_features, read_pairs

PEOPLE = {"id": ["a", "b", "c"], "age": [0.1, 0.2, 0.3], "dose": [1, 2, 3]}
PAIRS = {"left": ["a", "b"], "right": ["b", "c"], "label": ["same", "different"]}


def as_csv(columns, folder):
    path = folder / "table.csv"
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


def as_gzipped_csv(columns, folder):
    path = folder / "table.csv.gz"
    path.write_bytes(gzip.compress(pd.DataFrame(columns).to_csv(index=False).encode()))
    return path


def as_tsv(columns, folder):
    path = folder / "table.tsv"
    pd.DataFrame(columns).to_csv(path, index=False, sep="\t")
    return path


def as_bom_csv(columns, folder):
    path = folder / "table.CSV"
    path.write_text(pd.DataFrame(columns).to_csv(index=False), encoding="utf-8-sig")
    return path


def as_parquet(columns, folder):
    path = folder / "table.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def as_indexed_parquet(columns, folder):
    path = folder / "table.parquet"
    pd.DataFrame(columns, index=[f"row{n}" for n in range(len(columns["age"]))]).to_parquet(path)
    return path


def as_pandas(columns, folder):
    return pd.DataFrame(columns)


def as_pandas_with_named_index(columns, folder):
    return pd.DataFrame(columns).set_index(next(iter(columns)))


def as_pandas_indexed_by_a_column(columns, folder):
    return pd.DataFrame(columns).set_index(next(iter(columns)), drop=False)


def as_polars(columns, folder):
    return pl.DataFrame(columns)


def as_lazy_polars(columns, folder):
    return pl.LazyFrame(columns)


def as_arrow(columns, folder):
    return pa.table(columns)


KINDS = [
    as_csv, as_gzipped_csv, as_tsv, as_bom_csv, as_parquet, as_pandas,
    as_pandas_with_named_index, as_pandas_indexed_by_a_column, as_polars, as_lazy_polars, as_arrow,
]  # fmt: skip


@pytest.mark.parametrize("kind", [*KINDS, as_indexed_parquet])
def test_features_of_every_kind_of_table(kind, tmp_path):
    table = read_features(kind(PEOPLE, tmp_path))
    assert table.ids.tolist() == ["a", "b", "c"]
    assert table.names == ("age", "dose")
    np.testing.assert_array_equal(table.values, [[0.1, 1], [0.2, 2], [0.3, 3]])


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_of_every_kind_of_table(kind, tmp_path):
    table = read_pairs(kind(PAIRS, tmp_path))
    assert table.left.tolist() == ["a", "b"]
    assert table.right.tolist() == ["b", "c"]
    assert table.labels.tolist() == [1, -1]
    assert table.rows.tolist() == [1, 2]


@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_chosen_by_options(kind, tmp_path):
    people = {"ward": ["x", "y"], "nr": [4, 5], "u": [0.5, 0.25], "v": [1.0, 2.0]}
    source = kind(people, tmp_path)
    assert read_features(source, id="nr", exclude=["ward"]).names == ("u", "v")
    chosen = read_features(source, id="nr", columns=["v", "u"])
    assert chosen.names == ("v", "u")
    np.testing.assert_array_equal(chosen.values, [[1.0, 0.5], [2.0, 0.25]])
    assert read_classes(source, "ward").tolist() == ["x", "y"]
    pairs = kind({"x": [1], "p2": [5], "p1": [4], "is_match": [True]}, tmp_path)
    table = read_pairs(pairs, left="p1", right="p2", label="is_match")
    assert (table.left.tolist(), table.right.tolist(), table.labels.tolist()) == ([4], [5], [1])


@pytest.mark.parametrize("kind", [as_csv, as_parquet, as_pandas, as_polars])
def test_from_files_to_a_pair_set(kind, tmp_path):
    people = read_features(kind(PEOPLE, tmp_path))
    pairs = read_pairs(kind(PAIRS, tmp_path))
    data = PairSet.join(people, pairs)
    np.testing.assert_allclose(data.differences(), [[-0.1, -1.0], [-0.1, -1.0]])


def test_the_row_numbers_that_pandas_writes_are_no_feature(tmp_path):
    path = tmp_path / "people.csv"
    pd.DataFrame(PEOPLE).to_csv(path)  # with its index, in a column without a name
    assert read_features(path).names == ("age", "dose")
    pd.DataFrame(PAIRS).to_csv(path)
    assert read_pairs(path).left.tolist() == ["a", "b"]
    with pytest.raises(InputError, match="columns are: left, right, label"):
        read_pairs(path, left="a1")


def test_semicolons_between_columns(tmp_path):
    path = tmp_path / "people.csv"
    pd.DataFrame(PEOPLE).to_csv(path, index=False, sep=";")
    assert read_features(path).names == ("age", "dose")


def test_a_row_as_wide_as_a_genome(tmp_path):
    path = tmp_path / "people.csv"
    names = [f"snp{n}" for n in range(50_000)]
    path.write_text(",".join(["id", *names]) + "\n" + ",".join(["a", *["0.12345678"] * 50_000]))
    assert read_features(path).n_features == 50_000


def test_labels_need_not_be_there_when_they_are_not_asked_for(tmp_path):
    without = as_csv({"left": [1], "right": [2]}, tmp_path)
    assert read_pairs(without, label=None).labels is None
    assert read_pairs(without, require_labels=False).labels is None
    with pytest.raises(InputError, match="no column 'label'; its columns are: left, right"):
        read_pairs(without)
    bare = as_csv({"left": [1], "right": [2], "label": [0]}, tmp_path)
    assert read_pairs(bare, label=None).labels is None
    assert read_pairs(bare, zero_means="dissimilar").labels.tolist() == [-1]


def test_ids_keep_leading_zeros_and_words_that_mean_missing_elsewhere(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("left,right,label\n007,NA,1\n8,null,-1\n")
    table = read_pairs(path)
    assert table.left.tolist() == ["007", "8"]
    assert table.right.tolist() == ["NA", "null"]


def test_integer_ids_that_turn_to_text_in_a_later_batch(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_BLOCK_BYTES", 4096)  # so that the file is many blocks
    path = tmp_path / "pairs.csv"
    rows = [f"{n},{n + 1},1" for n in range(2000)] + ["A7,3,-1"]
    path.write_text("left,right,label\n" + "\n".join(rows) + "\n")
    table = read_pairs(path)
    assert table.left[[0, 1999, 2000]].tolist() == ["0", "1999", "A7"]
    assert table.right[[0, 2000]].tolist() == ["1", "3"]  # one kind on both sides
    assert len(PairSet.join(read_features(table_of(table)), table).pairs) == 2001


def table_of(pairs):
    ids = np.unique(np.concatenate([pairs.left, pairs.right]).astype(str))
    return {"id": ids.tolist(), "x": np.zeros(len(ids))}


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.int64(), pa.uint64(), pa.float64()])
def test_integer_ids_of_any_width_are_one_kind(kind, tmp_path):
    path = tmp_path / "pairs.parquet"
    ids = pa.array([1, 2]).cast(kind)
    pq.write_table(pa.table({"left": ids, "right": pa.array([3, 4])}), path)
    table = read_pairs(path, label=None)
    assert table.left.dtype == np.int64
    assert table.left.tolist() == [1, 2]


def test_unsigned_ids_too_large_for_int64_stay_exact():
    large = 2**64 - 1
    table = read_pairs(
        {"left": np.array([large], dtype=np.uint64), "right": np.array([1], dtype=np.uint64)},
        label=None,
    )
    assert table.left.tolist() == [str(large)]


def test_categories_are_read_as_what_they_stand_for():
    frame = pd.DataFrame(PAIRS).astype("category")
    assert read_pairs(frame).left.tolist() == ["a", "b"]
    assert read_pairs(pl.DataFrame(PAIRS).cast(pl.Categorical)).labels.tolist() == [1, -1]


def test_float32_stays_and_mixtures_become_float64(tmp_path):
    path = tmp_path / "people.parquet"
    small = pa.array([0.5, 0.25], pa.float32())
    pq.write_table(pa.table({"id": [1, 2], "u": small, "v": small}), path)
    assert read_features(path).values.dtype == np.float32
    pq.write_table(pa.table({"id": [1, 2], "u": small, "v": [1, 2], "w": [True, False]}), path)
    assert read_features(path).values.dtype == np.float64


def test_arrays_and_array_files(tmp_path):
    values = np.arange(6.0).reshape(3, 2)
    np.save(tmp_path / "people.npy", values)
    np.savez(tmp_path / "people.npz", X=values, ids=np.array(["a", "b", "c"]), y=[0, 1, 0])
    np.savez(tmp_path / "bare.npz", X=values)
    for source in (values, tmp_path / "people.npy", tmp_path / "bare.npz"):
        table = read_features(source)
        assert table.ids.tolist() == [0, 1, 2]
        np.testing.assert_array_equal(table.values, values)
    assert read_features(tmp_path / "people.npz").ids.tolist() == ["a", "b", "c"]
    assert read_classes(tmp_path / "people.npz", "y").tolist() == [0, 1, 0]


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_sparse_features_stay_sparse(kind, tmp_path):
    values = np.array([[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]])
    sparse.save_npz(tmp_path / "people.npz", kind(values))
    for source in (kind(values), tmp_path / "people.npz"):
        table = read_features(source)
        assert sparse.issparse(table.values)
        assert table.values.format == "csr"
        np.testing.assert_array_equal(table.values.toarray(), values)
    data = PairSet.join(table, read_pairs({"left": [0], "right": [1]}, label=None), data_norm=2.0)
    np.testing.assert_array_equal(data.differences().toarray(), [[-2.0, 1.0]])


def test_integer_pairs_make_no_python_object_per_row(tmp_path):
    import tracemalloc

    n_pairs = 400_000
    path = tmp_path / "pairs.parquet"
    left = np.arange(n_pairs)
    pq.write_table(
        pa.table({"left": left, "right": left + 1, "label": np.ones(n_pairs, np.int8)}), path
    )
    tracemalloc.start()
    table = read_pairs(path)
    blocks = sum(stat.count for stat in tracemalloc.take_snapshot().statistics("filename"))
    tracemalloc.stop()
    assert table.n_pairs == n_pairs
    assert blocks < n_pairs / 10  # objects alive: thousands, not one a row


def test_tables_do_not_print_values():
    people, pairs = read_features(PEOPLE), read_pairs(PAIRS)
    assert repr(people) == "FeatureTable(3 people, 2 features)"
    assert repr(pairs) == "PairTable(2 pairs, labelled)"


def test_arrays_go_to_arrow_and_back_as_pyarrow_takes_them():
    import pyarrow as pa

    from pairveil.records.tables import _FEW, as_arrow, as_numpy

    for values in (
        np.arange(5)[::2],
        np.arange(3, dtype=np.int32),
        np.array([], dtype=np.int64),
        np.array([1.5, -2.0]),
        np.array(["", "ä", "b" * 40], dtype=object),
        np.array([], dtype=object),
        np.array(["x"] * (_FEW + 1), dtype=object),
        np.array(["x", None], dtype=object),
    ):
        wanted = pa.array(values)
        made = as_arrow(values)
        made.validate(full=True)
        assert made.to_pylist() == wanted.to_pylist()
        assert made.type == wanted.type or not len(values)
        assert as_numpy(made[1:]).tolist() == values[1:].tolist()
    for values in ([True, False, True], [True, None], [1.0, 2.0], [1, None]):
        array = pa.array(values)
        assert as_numpy(array[1:]).tolist() == pytest.approx(
            array[1:].to_numpy(zero_copy_only=False).tolist(), nan_ok=True
        )
