"""Each kind of bad input has its own clear error, and no message shows what is in the file.

Every file here is full of canaries: ids, labels, feature values and classes that occur nowhere
else. `refusal` searches them in everything Python would print of the error.
"""

import json
import re
import traceback
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pairveil.errors import InputError, PrivateNote
from pairveil.records import files
from pairveil.records.pairset import PairSet
from pairveil.records.readers import read_classes, read_features, read_pairs

ANN, BOB, CID = "Zqann71", "Zqbob72", "Zqcid73"  # ids
X, Y = "8317.25", "9461.75"  # feature values
WORD = "Zqlabel"  # a label that is none
CANARY = re.compile(r"zq|8317|9461|6151", re.I)  # 6151: integer ids
FEATURES = f"id,age,dose\n{ANN},{X},1\n{BOB},{Y},2\n{CID},{X},3\n"
PAIRS = f"left,right,label\n{ANN},{BOB},same\n{BOB},{CID},different\n"


def refusal(call):
    """The message of the InputError that ``call`` raises, after searching it for canaries."""
    with pytest.raises(InputError) as caught:
        call()
    shown = "".join(traceback.format_exception(caught.value))
    # The source lines of this file and of the package may be shown; the messages are what counts.
    messages = [line for line in shown.splitlines() if not line.startswith((" ", "\t"))]
    assert messages, "nothing was searched"
    for line in messages:
        assert not CANARY.search(line), line
    chain = caught.value
    while chain is not None:
        assert not CANARY.search(str(chain)), str(chain)
        assert not CANARY.search(repr(chain.args)), repr(chain.args)
        chain = chain.__cause__ or (None if chain.__suppress_context__ else chain.__context__)
    return str(caught.value)


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def parquet(columns):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue().to_pybytes()


def test_the_search_finds_a_canary_that_is_there():
    def leak():
        raise InputError(f"bad value {X}")

    def leak_by_cause():
        try:
            raise ValueError(WORD)
        except ValueError as error:
            raise InputError("bad value") from error

    for wrong in (leak, leak_by_cause):
        with pytest.raises(AssertionError):
            refusal(wrong)


# Bytes that a damaged file passes off as text.
NOT_TEXT = pa.array([b"\xff" + ANN.encode()]).view(pa.string())
GOOD_PARQUET = parquet({"id": [ANN, BOB], "age": [8317.25, 9461.75]})

FEATURE_CASES = {
    "empty file": ("f.csv", "", r"f\.csv is empty"),
    "blank file": ("f.csv", "\n\n", r"f\.csv is empty"),
    "header only": ("f.csv", "id,age\n", r"f\.csv has (a header but )?no rows"),
    "header only, no newline": ("f.csv", "id,age", r"f\.csv has (a header but )?no rows"),
    "ragged, too few": ("f.csv", f"id,age\n{ANN},{X}\n{BOB}\n", "row 2: 1 fields .* 2 columns"),
    "ragged, too many": ("f.csv", f"id,age\n{ANN},{X},{Y}\n", "row 1: 3 fields .* 2 columns"),
    "not numeric": ("f.csv", f"id,age\n{ANN},{X}\n{BOB},{WORD}\n{CID},{WORD}\n", "'age' is not numeric"),
    "no id": ("f.csv", f"id,age\n{ANN},{X}\n,{Y}\n", "column 'id' is empty in row 2"),
    "id twice": ("f.csv", f"id,age\n{ANN},{X}\n{ANN},{Y}\n", "repeats an id .*: row 2"),
    "wrong columns": ("f.csv", f"nr,age\n{ANN},{X}\n", "no column 'id'; it has 2 columns with other"),
    "column twice": ("f.csv", f"id,age,age\n{ANN},{X},{Y}\n", "two columns have the same name"),
    "no header": ("f.csv", f"{ANN},{X}\n{BOB},{Y}\n", "first row looks like data"),
    "only ids": ("f.csv", f"id\n{ANN}\n", "no feature columns"),
    "latin-1 id": ("f.csv", f"id,age\n{ANN}é,{X}\n".encode("latin-1"), "not UTF-8"),
    "latin-1 header": ("f.csv", f"id,âge\n{ANN},{X}\n".encode("latin-1"), "not UTF-8"),
    "utf-16": ("f.csv", FEATURES.encode("utf-16"), "not UTF-8 text but UTF-16.* -f utf-16"),
    "utf-16 without mark": ("f.csv", FEATURES.encode("utf-16-le"), "not UTF-8 text but UTF-16"),
    "binary as csv": ("f.csv", GOOD_PARQUET, "not UTF-8|not a readable table|has no column"),
    "damaged gzip": ("f.csv.gz", b"\x1f\x8b" + FEATURES.encode(), "cannot be read"),
    "truncated parquet": ("f.parquet", GOOD_PARQUET[:-20], "not a whole Parquet file"),
    "csv as parquet": ("f.parquet", FEATURES, "not a whole Parquet file"),
    "empty parquet": ("f.parquet", parquet({"id": [], "age": []}), "no rows"),
    "parquet, wrong columns": ("f.parquet", parquet({"nr": [ANN]}), "it has 1 column with other names"),
    "parquet, not numeric": (
        "f.parquet", parquet({"id": [ANN], "ward": [WORD]}), "column 'ward' is not numeric"),
    "parquet, no id": ("f.parquet", parquet({"id": [ANN, None], "age": [1.0, 2.0]}), "row 2"),
    "parquet, decimal ids": ("f.parquet", parquet({"id": [8317.25], "age": [1.0]}), "ids must be"),
    "unknown suffix": ("f.data", FEATURES, "told by the suffix"),
    "spreadsheet": ("f.xlsx", b"PK\x03\x04" + FEATURES.encode(), "a spreadsheet.* 'CSV UTF-8'"),
    "spreadsheet as csv": ("f.csv", b"PK\x03\x04\xff\x80\0" + FEATURES.encode(), "a spreadsheet"),
    "parquet as csv": ("f.csv", b"PAR1\xff" + GOOD_PARQUET, "a Parquet file: name it .parquet"),
    "gzip as csv": ("f.csv", b"\x1f\x8b\xff" + FEATURES.encode(), "compressed: name it f.csv.gz"),
    "words as a first row": ("f.csv", "zqann,zqward,zqhiv\nzqbob,zqw,zqx\n", "3 columns with other"),
    "capitals": ("f.csv", f"ID,age\n{ANN},{X}\n", "differs from 'id' in capitals or spaces only"),
    "not an array": ("f.npy", FEATURES, "not a whole NumPy file"),
    "truncated archive": ("f.npz", b"PK\x03\x04" + FEATURES.encode(), "not a whole NumPy file"),
}  # fmt: skip


@pytest.mark.parametrize("case", FEATURE_CASES)
def test_features(case, tmp_path):
    name, content, message = FEATURE_CASES[case]
    path = write(tmp_path, name, content)
    assert re.search(message, refusal(lambda: read_features(path)))


PAIR_CASES = {
    "empty file": ("p.csv", "", r"p\.csv is empty"),
    "no pairs": ("p.csv", "left,right,label\n", "no pairs|no rows"),
    "no pairs in parquet": (
        "p.parquet", parquet({"left": [], "right": [], "label": []}), "there are no pairs"),
    "unknown labels": (
        "p.csv", f"left,right,label\n{ANN},{CID},{WORD}\n", "'label' holds no labels.* row 1 has none"),
    "missing labels": ("p.csv", f"left,right,label\n{ANN},{CID},\n", "row 1 has none of these"),
    "bare zeros": ("p.csv", f"left,right,label\n{ANN},{BOB},1\n{BOB},{CID},0\n", "zero_means"),
    "booleans": ("p.csv", f"left,right,label\n{ANN},{BOB},true\n{BOB},{CID},false\n", "zero_mea"),
    "missing id": ("p.csv", PAIRS + f"{ANN},,same\n", "column 'right' is empty in row 3"),
    "ragged": ("p.csv", PAIRS + f"{ANN},{CID}\n", "row 3: 2 fields .* 3 columns"),
    "wrong columns": (
        "p.csv", PAIRS.replace("left", "a"), "no column 'left'; its columns are: a, right, label"),
    "no header": ("p.csv", PAIRS.split("\n", 1)[1], "first row looks like data"),
    "no header, numbers": ("p.csv", "6151,6152,1\n6152,6153,-1\n", "first row looks like data"),
    "wrong encoding": ("p.csv", PAIRS.replace(ANN, ANN + "ü").encode("latin-1"), "not UTF-8"),
    "truncated parquet": (
        "p.parquet", parquet({"left": [ANN], "right": [BOB], "label": [1]})[:-9], "whole Parquet"),
    "binary ids": (
        "p.parquet", parquet({"left": [b"\xff" + ANN.encode()], "right": [b"a"], "label": [1]}),
        "ids must be integers or text"),
    "parquet, ids not UTF-8": (
        "p.parquet", parquet({"left": NOT_TEXT, "right": [BOB], "label": [1]}), "'left' holds text that is"),
    "parquet, labels not UTF-8": (
        "p.parquet", parquet({"left": [ANN], "right": [BOB], "label": NOT_TEXT}), "row 1 has none"),
    "list labels": ("p.parquet", parquet({"left": [1], "right": [2], "label": [[WORD]]}), "row 1"),
    "lfw line": ("p.txt", f"1\t1\n{ANN}\t{WORD}\t4\n", "line 2: expected"),
    "lfw encoding": ("p.txt", f"1\t1\n{ANN}é\t1\t4\n".encode("latin-1"), "not UTF-8"),
    "voxceleb line": ("p.txt", f"1 {ANN}/a {BOB}/b\n{ANN}/a\n", "line 2: expected"),
    "links line": ("p.txt", f"ML {ANN} {BOB}\n{WORD}\n", "line 2: expected"),
    "unclear text": ("p.txt", f"{ANN} {BOB}\n", "cannot tell the layout"),
    "only comments": ("p.txt", f"# {ANN}\n", "no pairs"),
    "not json": ("p.json", f'{{"match": [{ANN}', "not JSON .line 1, column 12"),
    "json list": ("p.json", json.dumps([ANN]), "cannot tell the layout"),
    "dedupe, no field": (
        "p.json", json.dumps({"match": [[{"name": ANN}, {"name": BOB}]]}), "they have 1 with other names"),
    "dedupe, no pairs": ("p.json", json.dumps({"match": [], "distinct": []}), "no pairs"),
    "dedupe, id of no kind": (
        "p.json", json.dumps({"match": [[{"id": [ANN]}, {"id": {"a": BOB}}]]}), "integers or text"),
    "dedupe, mixed ids": (
        "p.json",
        json.dumps({"match": [[{"id": ANN}, {"id": BOB}], [{"id": 6151.5}, {"id": BOB}]]}),
        "integers or text"),
    "json too deep": ("p.json", "[" * 100_000, "nested more than 32 deep"),
    "dedupe, no id": ("p.json", json.dumps({"match": [[{"id": ANN}, {"id": None}]]}), "empty in row 1"),
}  # fmt: skip


@pytest.mark.parametrize("case", PAIR_CASES)
def test_pairs(case, tmp_path):
    name, content, message = PAIR_CASES[case]
    path = write(tmp_path, name, content)
    assert re.search(message, refusal(lambda: read_pairs(path)))


@pytest.mark.parametrize("score", [X, WORD])
def test_so_it_is_with_a_score(score, tmp_path):
    path = write(
        tmp_path, "p.csv", f"unique_id_l,unique_id_r,clerical_match_score\n{ANN},{BOB},{score}\n"
    )
    with pytest.warns(PrivateNote, match=r"^1 label cannot be read \(row 1\)") as said:
        assert read_pairs(path).labels.tolist() == [0]
    assert not any(CANARY.search(str(one.message)) for one in said)


@pytest.mark.parametrize("label", [WORD, "", "7"])
def test_a_label_that_is_none_stops_nothing_and_is_said_without_it(label, tmp_path):
    path = write(tmp_path, "p.csv", PAIRS + f"{ANN},{CID},{label}\n")
    with pytest.warns(PrivateNote, match=r"^1 label cannot be read \(row 3\)") as said:
        table = read_pairs(path)
    assert table.labels.tolist() == [1, -1, 0]
    assert not any(CANARY.search(str(one.message)) for one in said)


@pytest.mark.parametrize("reader", [read_features, read_pairs])
@pytest.mark.parametrize("name", ["no.csv", "no.parquet", "no.txt", "no.json"])
def test_a_file_that_is_not_there(reader, name, tmp_path):
    if reader is read_features and name in ("no.txt", "no.json"):
        name = "no.npy"
    assert "there is no file" in refusal(lambda: reader(tmp_path / name))
    (tmp_path / name).mkdir()
    assert "is a folder" in refusal(lambda: reader(tmp_path / name))


@pytest.mark.parametrize(
    ("last", "message"),
    [
        (",x,1,1", "column 'id' is empty in row 2001"),
        ("2000,x,1", "row 2001: 3 fields"),
    ],
)
def test_an_error_far_down_a_large_file_names_its_row(last, message, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_BLOCK_BYTES", 4096)  # so that the file is many blocks
    rows = [f"{n},x,{n}.5,1" for n in range(2000)]
    path = write(tmp_path, "f.csv", "id,ward,age,dose\n" + "\n".join([*rows, last]) + "\n")
    said = refusal(lambda: read_features(path, columns=["dose", "age"]))
    assert message in said


JOIN_CASES = {
    "self pair": (f"left,right,label\n{ANN},{ANN},same\n", r"person with herself \(row 1\)"),
    "unknown id": (PAIRS + f"{ANN},Zqdan74,same\n", r"1 of 3 pairs .*first: row 3"),
    "integers for text": ("left,right,label\n6151,6152,same\n", "integers in one table and text"),
}


@pytest.mark.parametrize("case", JOIN_CASES)
def test_joining(case, tmp_path):
    content, message = JOIN_CASES[case]
    people = read_features(write(tmp_path, "f.csv", FEATURES))
    pairs = read_pairs(write(tmp_path, "p.csv", content))
    assert re.search(message, refusal(lambda: PairSet.join(people, pairs)))


def test_a_contradiction_does_not_stop_anything_and_is_said_without_values(tmp_path):
    people = read_features(write(tmp_path, "f.csv", FEATURES))
    pairs = read_pairs(write(tmp_path, "p.csv", PAIRS + f"{BOB},{ANN},different\n"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data = PairSet.join(people, pairs)
    said = [str(warning.message) for warning in caught]
    assert re.search(r"1 pair has contradicting labels \(first in row 1\)", said[1])
    assert 0 in data.labels
    assert not any(CANARY.search(text) for text in said)


def test_what_is_changed_is_said_without_values(tmp_path):
    people = read_features(write(tmp_path, "f.csv", FEATURES))
    pairs = read_pairs(write(tmp_path, "p.csv", PAIRS + f"{BOB},{ANN},same\n"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data = PairSet.join(people, pairs, data_norm=1.0)
    said = [str(warning.message) for warning in caught]
    assert all(warning.category is PrivateNote for warning in caught)
    assert re.search(r"1 pair appeared before and was merged \(row 3\)", said[0])
    assert re.search(r"3 of 3 people's rows", said[1])
    assert not any(CANARY.search(text) for text in [*said, repr(data), repr(people), repr(pairs)])


@pytest.mark.parametrize("kind", [pd.DataFrame, lambda c: pl.DataFrame(c, strict=False), dict])
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"id": [ANN, None], "age": [8317.25, 1.0]}, "column 'id' is empty in row 2"),
    ],
)
def test_data_frames(kind, columns, message):
    assert re.search(message, refusal(lambda: read_features(kind(columns))))


def test_data_frames_that_are_no_table():
    assert "different lengths" in refusal(lambda: read_features({"id": [ANN], "age": [1.0, 2.0]}))
    assert "cannot read a table from a list" in refusal(lambda: read_features([ANN]))


def test_options_that_do_not_fit(tmp_path):
    features, pairs = write(tmp_path, "f.csv", FEATURES), write(tmp_path, "p.csv", PAIRS)
    said = refusal(lambda: read_features(features, columns=["weight"]))
    assert "no column 'weight'; its columns are: id, age, dose" in said
    assert "no column 'ward'" in refusal(lambda: read_features(features, exclude=["ward"]))
    assert "no column 'ward'" in refusal(lambda: read_classes(features, "ward"))
    for columns in (["age", "age"], ["id"], []):
        said = refusal(lambda columns=columns: read_features(features, columns=columns))
        assert "each feature column once" in said or "no feature columns" in said
    assert "different columns" in refusal(lambda: read_pairs(pairs, left="right"))
    assert "columns are: left, right, label" in refusal(lambda: read_pairs(pairs, label="y"))


def test_array_files(tmp_path):
    path = tmp_path / "f.npz"
    np.savez(path, Z=np.ones((2, 2)))
    assert "no array 'X'; it has 1 with other" in refusal(lambda: read_features(path))
    assert "no array 'y'" in refusal(lambda: read_classes(path, "y"))
    np.savez(path, X=np.array([[ANN]], dtype=object), ids=np.array([6151]))
    assert "Python objects" in refusal(lambda: read_features(path))
    np.save(tmp_path / "f.npy", np.array([ANN]))
    assert "dimensions" in refusal(lambda: read_features(tmp_path / "f.npy"))
    assert "features only" in refusal(lambda: read_classes(tmp_path / "f.npy", "y"))


def test_damaged_files_are_refused_or_read_but_never_break_the_reader(tmp_path):
    rng = np.random.default_rng(20)
    good = [
        ("f.csv", FEATURES.encode(), read_features),
        ("f.parquet", GOOD_PARQUET, read_features),
        ("p.csv", PAIRS.encode(), read_pairs),
        ("p.txt", f"1\t1\n{ANN}\t1\t4\n{ANN}\t1\t{BOB}\t1\n".encode(), read_pairs),
        ("p.json", json.dumps({"match": [[{"id": ANN}, {"id": BOB}]]}).encode(), read_pairs),
    ]
    n_refused = 0
    for turn in range(300):
        name, content, reader = good[turn % len(good)]
        damaged = bytearray(content)
        for _ in range(rng.integers(1, 5)):
            at = int(rng.integers(len(damaged)))
            damaged[at : at + int(rng.integers(0, 3))] = rng.bytes(int(rng.integers(0, 3)))
        path = write(tmp_path, name, bytes(damaged))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PrivateNote)  # a damaged label is a null one
                reader(path)
        except InputError:  # anything else fails the test
            n_refused += 1
    assert 100 < n_refused < 300
