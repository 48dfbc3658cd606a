"""Labels: clear spellings read, unclear ones refused, none echoed."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from pairveil.errors import InputError, PrivateNote
from pairveil.records.tables import LabelColumn


def parse_labels(values, zero_means=None, rows=None):
    column = LabelColumn(zero_means)
    column.add(pa.array(values, from_pandas=True))
    return column.finish(rows)


@pytest.mark.parametrize(
    ("similar", "dissimilar"),
    [
        (1, -1),
        (1.0, -1.0),
        ("1", "-1"),
        ("+1", "-1"),
        ("1.0", "-1.0"),
        ("similar", "dissimilar"),
        ("Same", "DIFFERENT"),
        ("must-link", "cannot-link"),
        ("must_link", "cannot link"),
        (" match ", "distinct"),
    ],
)
def test_known_spellings(similar, dissimilar):
    assert parse_labels([similar, dissimilar, similar]).tolist() == [1, -1, 1]


@pytest.mark.parametrize(
    "pair",
    [(0, 1), ("0", "1"), (0.0, 1.0), (False, True), ("false", "true"), ("No", "yes"), ("n", "Y ")],
)
def test_zero_and_one_need_a_word(pair):
    with pytest.raises(InputError, match=r"either way \(first: row 1\): say which with zero_means"):
        parse_labels(list(pair))
    assert parse_labels(list(pair), zero_means="dissimilar").tolist() == [-1, 1]
    assert parse_labels(list(pair), zero_means="similar").tolist() == [1, -1]


def test_only_ones_are_plus_one_but_follow_zero_means():
    assert parse_labels([1, 1]).tolist() == [1, 1]
    assert parse_labels([1, 1], zero_means="similar").tolist() == [-1, -1]


def test_only_true_is_not_plus_one():
    with pytest.raises(InputError, match="either way"):
        parse_labels([True, True])


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("is_match", [1, -1]),
        ("Same", [1, -1]),
        ("different", [-1, 1]),
        ("is_distinct", [-1, 1]),
        ("same person", [1, -1]),
    ],
)
def test_a_column_name_can_say_what_true_means(column, expected):
    labels = LabelColumn(column=column)
    labels.add(pa.array([True, False]))
    labels.add(pa.array(["yes", "no"]))
    assert labels.finish(None).tolist() == 2 * expected
    # ... but not what 0 means.
    labels = LabelColumn(column=column)
    labels.add(pa.array([1, 0]))
    with pytest.raises(InputError, match="either way"):
        labels.finish(None)


@pytest.mark.parametrize("others", [[-1], [-1, -1, -1, 0], ["?", None], ["?"] * 9])
def test_where_zero_means_says_how_labels_are_spelled_none_stops_the_reading(others):
    """What all others are was said in public, so that no label decides whether a run goes on."""
    found = parse_labels([str(one) for one in [1, 0, *others]], zero_means="similar").tolist()
    assert found == [-1, 1, *(int(one == 0) for one in others)]


@pytest.mark.parametrize("odd", ["0", "false", "yes", "?", ""])
def test_a_slip_in_a_column_of_ones_is_null(odd):
    """It alone would decide whether a run goes on."""
    assert parse_labels([*["1"] * 30, odd]).tolist() == [*[1] * 30, 0]
    with pytest.raises(InputError, match="either way"):
        parse_labels([*["1"] * 30, "0", "0"])


def test_zero_means_leaves_words_alone():
    assert parse_labels(["same", "0"], zero_means="dissimilar").tolist() == [1, -1]


@pytest.mark.parametrize("bad", ["maybe", "", "2", "nan", "1.5", None])
def test_unknown_labels_are_null_and_where_most_are_named_by_row(bad):
    """One label is private: it stops nothing. A column of something else is no column of labels."""
    assert parse_labels(["same", bad, "different", bad]).tolist() == [1, 0, -1, 0]
    assert parse_labels([1, None, -1]).tolist() == [1, 0, -1]
    with pytest.raises(
        InputError, match=r"holds no labels.*rows 2, 4, 5 have none of these"
    ) as caught:
        parse_labels(["same", bad, "different", bad, bad])
    if bad and bad not in ("2", "1.5"):  # the message's own row numbers hold digits
        assert bad not in str(caught.value)


def test_a_kind_of_label_in_unknown_words_is_told():
    """It is null in every row, and what is learned knows the other kind alone."""
    assert parse_labels(["match", "no match", "No_Match"]).tolist() == [1, -1, -1]
    with pytest.warns(PrivateNote, match=r"labels of one kind alone.*rows 3, 4 have none"):
        found = parse_labels(["match", "match", "unlinked", "unlinked", "match"])
    assert found.tolist() == [1, 1, 0, 0, 1]
    assert parse_labels(["same"] * 20 + ["?"]).tolist() == [1] * 20 + [0]  # a slip


@pytest.mark.parametrize("odd", ["0", "false", "yes"])
def test_a_stray_zero_among_clear_labels_is_null(odd):
    assert parse_labels(["same", odd, "different"]).tolist() == [1, 0, -1]
    assert parse_labels(["1", odd, "-1"]).tolist() == [1, 0, -1]
    with pytest.raises(InputError, match="either way"):
        parse_labels(["1", odd, "1"])


def test_a_stray_minus_one_among_zeros_is_null():
    assert parse_labels([0, 1, -1, 0], zero_means="similar").tolist() == [1, -1, 0, 1]


def test_many_bad_rows_are_summed_up():
    with pytest.raises(InputError, match="rows 1, 2, 3, 4, 5 and 4 more"):
        parse_labels([7] * 9)


def test_row_numbers_are_the_file_s():
    with pytest.raises(InputError, match="rows 12, 13 have none"):
        parse_labels(["same", "x", "z"], rows=np.array([10, 12, 13]))


def test_a_zero_in_a_later_batch_is_found():
    labels = LabelColumn()
    labels.add(pa.array([1, 1]))
    labels.add(pa.array([0]))
    with pytest.raises(InputError, match="first: row 3"):
        labels.finish(None)


def test_categories_and_missing_values():
    labels = LabelColumn()
    labels.add(pa.array(pd.Series(["same", "different"], dtype="category")))
    assert labels.finish(None).tolist() == [1, -1]
    labels.add(pa.nulls(1))
    assert labels.finish(None).tolist() == [1, -1, 0]


def test_mixed_kinds_and_a_wrong_option():
    with pytest.raises(InputError, match="zero_means must be"):
        parse_labels([1], zero_means="zero")
