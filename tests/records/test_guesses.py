"""What columns hold, guessed; swapped files and odd separators are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from pairveil import read_features, read_pairs
from pairveil.errors import InputError
from pairveil.jobs.plan import SchemaJob
from pairveil.records.readers import guess_decimal, guess_label, guess_types

ENDS = {"a": ["p1", "p2", "p3", "p4"], "b": ["p5", "p6", "p7", "p8"]}
COURSE = {"course": ["same", "different", "same", "same"]}
DATES = {"judged_on": ["2024-05-01"] * 4}


@pytest.mark.parametrize(
    ("table", "label"),
    [
        ({**ENDS, **COURSE, **DATES}, "course"),
        ({**COURSE, **ENDS, **DATES}, "course"),
        ({**ENDS, "is_match": ["maybe"] * 4, **COURSE}, "is_match"),  # the name says it
        ({**ENDS, "visits": ["1", "0", "1", "1"], **COURSE}, "course"),  # words before numbers
        ({**ENDS, "verdict_code": ["1", "-1", "1", "1"], **DATES}, "verdict_code"),
        ({**ENDS, **DATES}, None),
        ({**ENDS, **COURSE, "again": COURSE["course"]}, None),
    ],
)
def test_the_label_column_is_the_one_that_holds_labels(table, label) -> None:
    assert guess_label(table) == label


def test_what_labels_say_does_not_choose_the_column() -> None:
    for labels in (["same"] * 4, ["different"] * 4, ["same", "who knows", "different", "same"]):
        assert guess_label({**ENDS, "course": labels, **DATES}) == "course"


@pytest.mark.parametrize("gap", ["-", "n/a", "NA", "", "?", "missing"])
def test_gaps_do_not_make_a_number_a_category(gap) -> None:
    cells = ["12.5", gap, gap, "300", gap, gap]
    assert guess_types({"id": list("abcdef"), "ferritin": cells}, "id")["ferritin"].type == "number"


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["04109", "10115", "80331", "01067"], "category"),
        (["4109", "10115", "80331"], "number"),
        (["0", "0.5", "0.25"], "number"),
        (["07"] + ["8"] * 200, "number"),  # one slip makes no code
    ],
)
def test_codes_with_leading_zeros_are_no_numbers(cells, kind) -> None:
    ids = [str(at) for at in range(len(cells))]
    assert guess_types({"id": ids, "place": cells}, "id")["place"].type == kind


def test_swapped_files_are_told(tmp_path: Path) -> None:
    people, pairs = tmp_path / "people.csv", tmp_path / "pairs.csv"
    people.write_text("id,age\nann,1\nbob,2\n")
    pairs.write_text("left,right,label\nann,bob,same\n")
    with pytest.raises(InputError, match=r"those of pairs: are the two files swapped\?"):
        read_features(pairs)
    with pytest.raises(InputError, match=r"those of people: are the two files swapped\?"):
        read_pairs(people)


def test_the_column_that_holds_labels_is_named(tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("judged_on,left,right,course\n1,ann,bob,same\n2,ann,cid,different\n")
    with pytest.raises(InputError, match=r"column 'course' looks like labels. Name it with label="):
        read_pairs(pairs)


def test_bars_between_cells_are_read_and_mixed_separators_told(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text("id|age|dose\nann|1.5|2\nbob|2|3\n")
    assert read_features(file).values.tolist() == [[1.5, 2.0], [2.0, 3.0]]
    file.write_text("left|right, first|label\nann|bob|same\n")
    with pytest.raises(InputError, match=r"the separator of its cells seems to be '\|'"):
        read_pairs(file)


@pytest.mark.parametrize(
    ("name", "text", "mark"),
    [
        ("a.tsv", "id\tcrp\tage\na\t1,5\t3\nb\t0,25\t4\n", ","),
        ("a.csv", 'id,crp\na,"43,8"\nb,"0,25"\nc,n/a\n', ","),
        ("a.csv", "id,crp,born\na,1.5,31.12.2000\nb,0.25,1.1.1990\n", "."),
        ("a.csv", "id;crp\na;1.5\nb;0.25\n", "."),
        ("a.csv", "id;age\na;1\nb;2\n", ","),
    ],
)
def test_the_decimal_mark_is_guessed_from_how_cells_are_written(name, text, mark, tmp_path):
    (tmp_path / name).write_text(text)
    assert guess_decimal(tmp_path / name) == mark
    out = tmp_path / "schema.toml"
    SchemaJob(features=tmp_path / name, out=out).run()
    assert f'decimal = "{mark}"' in out.read_text()
