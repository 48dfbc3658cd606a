"""Pairs over files: the same numbers from every kind of file, and what is refused."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from pairveil.errors import InputError
from pairveil.records.ondisk import open_pairs

PAIRS = np.array([[0, 1], [1, 2], [3, 0]], dtype=np.int32)
LABELS = np.array([1, -1, -1], dtype=np.int8)


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / "people.npy", np.arange(8, dtype=np.float32).reshape(4, 2))
    np.save(tmp_path / "pairs.npy", PAIRS)
    np.save(tmp_path / "labels.npy", LABELS)
    write(tmp_path, PAIRS[:, 0], PAIRS[:, 1], LABELS)
    return tmp_path


def write(folder, left, right, label):
    pq.write_table(
        pa.table({"left": left, "right": right, "label": label}), folder / "pairs.parquet"
    )


def test_parquet_and_arrays_give_the_same_pairs(folder):
    mapped = open_pairs(folder / "people.npy", folder / "pairs.npy", folder / "labels.npy")
    read = open_pairs(folder / "people.npy", folder / "pairs.parquet")
    ordered, positions = mapped.canonical()
    np.testing.assert_array_equal(mapped.pairs, PAIRS)
    np.testing.assert_array_equal(mapped.labels, LABELS)
    np.testing.assert_array_equal(ordered.pairs, [sorted(PAIRS[at]) for at in positions])
    np.testing.assert_array_equal(read.pairs, ordered.pairs)
    np.testing.assert_array_equal(read.labels, ordered.labels)
    for data in (mapped, read):
        assert data.pairs.dtype == np.int32
        assert data.features.dtype == np.float32
    assert not mapped.features.flags.owndata  # mapped, not read
    assert not mapped.pairs.flags.owndata
    assert open_pairs(folder / "people.npy", folder / "pairs.npy").labels is None


def test_a_folder_of_parts_is_the_whole_file(folder):
    whole = open_pairs(folder / "people.npy", folder / "pairs.parquet")
    parts = folder / "parts"
    parts.mkdir()
    for name, at in (("b", slice(2, 3)), ("a", slice(0, 2))):
        write(parts, PAIRS[at, 0], PAIRS[at, 1], LABELS[at])
        (parts / "pairs.parquet").rename(parts / f"{name}.parquet")
    read = open_pairs(folder / "people.npy", parts)
    np.testing.assert_array_equal(read.pairs, whole.pairs)
    np.testing.assert_array_equal(read.labels, whole.labels)
    assert read.pairs.dtype == np.int32


def test_sparse_features_stay_sparse(folder):
    sparse.save_npz(folder / "people.npz", sparse.csr_array(np.eye(4)))
    assert sparse.issparse(open_pairs(folder / "people.npz", folder / "pairs.parquet").features)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([0, 1], [1, 4], [1, 1]), "outside"),
        (([0, 1], [1, 2**40], [1, 1]), "'right' holds a number outside"),
        (([0, 1], [1, 2], [1, 0]), "label"),
        (([0, 1], [1, 2], [1, 300]), "'label' holds a number outside"),
        (([0, None], [1, 2], [1, 1]), "'left' must hold whole numbers"),
        ((["a", "b"], [1, 2], [1, 1]), "'left' must hold whole numbers"),
        (([0, 1], [1, 1], [1, 1]), "herself"),
    ],
)
def test_wrong_columns_are_refused_without_showing_values(folder, columns, message):
    write(folder, *columns)
    with pytest.raises(InputError, match=message) as caught:
        open_pairs(folder / "people.npy", folder / "pairs.parquet")
    assert "300" not in str(caught.value)


def test_wrong_files_are_refused(folder):
    with pytest.raises(InputError, match="no file"):
        open_pairs(folder / "nobody.npy", folder / "pairs.npy")
    with pytest.raises(InputError, match="no column 'a'"):
        open_pairs(folder / "people.npy", folder / "pairs.parquet", left="a")
    with pytest.raises(InputError, match="one of its columns"):
        open_pairs(folder / "people.npy", folder / "pairs.parquet", folder / "labels.npy")
    (folder / "pairs.parquet").write_bytes(b"nothing")
    with pytest.raises(InputError, match="not a whole Parquet"):
        open_pairs(folder / "people.npy", folder / "pairs.parquet")
    (folder / "pairs.npy").write_bytes(b"nothing")
    with pytest.raises(InputError, match="not a whole NumPy"):
        open_pairs(folder / "people.npy", folder / "pairs.npy")
