"""The layouts of other tools, from a small file to a PairSet."""

import json
from itertools import product

import numpy as np
import pandas as pd
import pytest

from pairveil.errors import InputError, PrivateNote
from pairveil.linkage.dedupe import from_dedupe
from pairveil.records.pairset import PairSet
from pairveil.records.readers import read_features, read_pairs

# As in Splink's fake_1000_labels.csv.
SPLINK = """unique_id_l,source_dataset_l,unique_id_r,source_dataset_r,clerical_match_score
0,fake_1000,1,fake_1000,1.0
0,fake_1000,4,fake_1000,0.0
1,fake_1000,4,fake_1000,0.5
"""
SPLINK_TWO_SETS = """unique_id_l,source_dataset_l,unique_id_r,source_dataset_r,clerical_match_score
1,north,1,south,0.95
1,north,2,south,0.05
"""
# As dedupe's write_training does: records, tuples spelled out.
DEDUPE = {
    "distinct": [
        {"__class__": "tuple", "__value__": [{"Id": "3", "name": "x"}, {"Id": "4", "name": "y"}]}
    ],
    "match": [
        {"__class__": "tuple", "__value__": [{"Id": "1", "name": "x"}, {"Id": "2", "name": "x"}]},
        [{"Id": "3", "name": "z"}, {"Id": "1", "name": "z"}],
    ],
}
LFW = """2\t1
Abel_Pacheco\t1\t4
Abdel_Madi_Shabneh\t1\tDean_Barker\t1
Akhmed_Zakayev\t2\t3
Abel_Pacheco\t4\tAkhmed_Zakayev\t3
"""
VOXCELEB = """1 id10270/x6uYqmx31kE/00001.wav id10270/8jEAjG6SegY/00008.wav
0 id10270/x6uYqmx31kE/00001.wav id10300/ize_eiCFEg0/00003.wav
"""
LINKS = """# agreed by the two readers
must-link ann bob
cannot-link bob cid

ML cid dan
"""


def joined(table):
    """The table joined with features for everybody in it: the end of the way in."""
    ids = sorted(set(table.left.tolist()) | set(table.right.tolist()))
    people = read_features({"id": ids, "x": np.linspace(0, 1, len(ids))})
    data = PairSet.join(people, table, data_norm=1.0)
    return [(ids[a], ids[b]) for a, b in data.pairs], data.labels


def write(folder, name, content):
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.mark.parametrize("layout", ["auto", "splink"])
def test_splink(layout, tmp_path):
    table = read_pairs(write(tmp_path, "labels.csv", SPLINK), layout=layout)
    pairs, labels = joined(table)
    assert pairs == [(0, 1), (0, 4), (1, 4)]
    assert labels.tolist() == [1, -1, 1]
    assert table.notes == ("Scores of at least 0.5 are similar",)


def test_splink_threshold_and_own_column_names(tmp_path):
    text = SPLINK.replace("unique_id", "person").replace("clerical_match_score", "score")
    table = read_pairs(
        write(tmp_path, "labels.csv", text),
        left="person_l", right="person_r", label="score", layout="splink", threshold=0.6,
    )  # fmt: skip
    assert table.labels.tolist() == [1, -1, -1]


def test_splink_ids_are_unique_only_within_their_dataset(tmp_path):
    table = read_pairs(write(tmp_path, "labels.csv", SPLINK_TWO_SETS))
    pairs, _ = joined(table)
    assert pairs == [("north-__-1", "south-__-1"), ("north-__-1", "south-__-2")]
    with pytest.raises(InputError, match="several source datasets, so ids were read as"):
        PairSet.join(read_features({"id": [1, 2], "x": [0.0, 1.0]}), table)


def test_splink_from_a_data_frame_without_labels():
    frame = pd.DataFrame({"unique_id_l": [1], "unique_id_r": [2], "clerical_match_score": [0.7]})
    assert read_pairs(frame).labels.tolist() == [1]
    assert read_pairs(frame, label=None).labels is None


@pytest.mark.parametrize("score", ["1.01", "-0.1", ""])
def test_splink_scores_are_probabilities(score, tmp_path):
    path = write(tmp_path, "labels.csv", SPLINK.replace("0.0\n", f"{score}\n"))
    with pytest.warns(PrivateNote, match=r"1 label cannot be read \(row 2\)"):
        assert read_pairs(path).labels.tolist() == [1, 0, 1]
    others = SPLINK.replace("0.0\n", f"{score}\n").replace("0.5\n", f"{score}\n")
    several = write(tmp_path, "others.csv", others)  # of half of the scores one more would decide
    with pytest.warns(
        PrivateNote, match=r"2 labels.*rows 2, 3.*These are most: is this the column"
    ):
        assert read_pairs(several).labels.tolist() == [1, 0, 0]
    with pytest.raises(InputError, match="threshold"):
        read_pairs(path, threshold=0.0)


@pytest.mark.parametrize("layout", ["auto", "dedupe"])
def test_dedupe(layout, tmp_path):
    table = read_pairs(write(tmp_path, "training.json", DEDUPE), layout=layout, record_id="Id")
    pairs, labels = joined(table)
    assert pairs == [(3, 4), (1, 2), (3, 1)]
    assert labels.tolist() == [-1, 1, 1]


def test_dedupe_ids_that_are_integers_here_and_text_there(tmp_path):
    records = {"match": [[{"id": 1}, {"id": "2"}], [{"id": "b"}, {"id": 2}]]}
    pairs, _ = joined(read_pairs(write(tmp_path, "training.json", records)))
    assert pairs == [("1", "2"), ("b", "2")]


def test_dedupe_records_without_the_id_field_say_how_to_name_it(tmp_path):
    with pytest.raises(InputError, match="no field 'id'; they have 2 with other names"):
        read_pairs(write(tmp_path, "training.json", DEDUPE))


@pytest.mark.parametrize("bad", [[[{"id": 1}]], [[1, 2]], ["ab"]])
def test_dedupe_pairs_are_two_records(bad, tmp_path):
    with pytest.raises(InputError, match="pair 1 is not two records"):
        read_pairs(write(tmp_path, "training.json", {"match": bad}))


@pytest.mark.parametrize(
    "bad",
    [{"match": 5}, {"match": [[{"id": [1]}, {"id": {}}]]}, {"distinct": None}, {"match": [[1]]}],
)
def test_dedupe_files_of_another_kind_are_refused(bad, tmp_path):
    path = write(tmp_path, "training.json", bad)
    with pytest.raises(InputError, match=r"training\.json"):
        read_pairs(path)
    with pytest.raises(InputError, match=r"training\.json"):
        from_dedupe(path, {"name": (0.5,)})


@pytest.mark.parametrize("layout", ["auto", "lfw"])
def test_lfw(layout, tmp_path):
    table = read_pairs(write(tmp_path, "pairs.txt", LFW), layout=layout)
    pairs, labels = joined(table)
    assert pairs[0] == ("Abel_Pacheco_0001", "Abel_Pacheco_0004")
    assert pairs[1] == ("Abdel_Madi_Shabneh_0001", "Dean_Barker_0001")
    assert labels.tolist() == [1, -1, 1, -1]
    assert table.rows.tolist() == [2, 3, 4, 5]  # lines of the file
    assert "images, not people" in table.notes[0]


def test_lfw_header_with_one_number_and_none(tmp_path):
    body = LFW.split("\n", 1)[1]
    assert read_pairs(write(tmp_path, "pairsDevTrain.txt", "2\n" + body)).n_pairs == 4
    assert read_pairs(write(tmp_path, "pairs.txt", body), layout="lfw").n_pairs == 4


def test_lfw_bad_line(tmp_path):
    path = write(tmp_path, "pairs.txt", LFW + "Abel_Pacheco\tone\t4\n")
    with pytest.raises(InputError, match=r"pairs\.txt, line 6: expected 'name n1 n2'"):
        read_pairs(path)


@pytest.mark.parametrize("layout", ["auto", "voxceleb"])
def test_voxceleb(layout, tmp_path):
    table = read_pairs(write(tmp_path, "veri_test.txt", VOXCELEB), layout=layout)
    pairs, labels = joined(table)
    first = VOXCELEB.split()
    assert pairs == [(first[1], first[2]), (first[4], first[5])]
    assert labels.tolist() == [1, -1]


@pytest.mark.filterwarnings("ignore::pairveil.errors.PrivateNote")
@pytest.mark.parametrize("layout", ["auto", "links", "voxceleb"])
@pytest.mark.parametrize("at", [0, 4])
@pytest.mark.parametrize(
    "said", ["?", "", "7", "not sure", "not, sure", "?\u2028", "\x85no", "?\f"]
)
@pytest.mark.parametrize(
    "line", ["{0} x/a{1} x/b{1}", "{0} a{1} b{1}", "a{1} b{1} {0}", "{1} 1 {0}"]
)
def test_a_label_that_cannot_be_read_stops_no_lines_and_moves_no_pair(
    line, said, at, layout, tmp_path
):
    """Where labels stand the file says, not the line."""
    words = ("1", "0") if "/" in line else ("ML", "CL") if line[0] == "{" else ("1", "-1")
    if (layout == "voxceleb") > ("/" in line) or (layout == "links") > ("/" not in line):
        pytest.skip("another layout")
    labels, found = [words[i % 2] for i in range(5)], []
    for last in (labels[at], said):
        labels[at] = last
        content = "".join(line.format(one, i) + "\n" for i, one in enumerate(labels))
        found.append(read_pairs(write(tmp_path, "pairs.txt", content), layout=layout))
    whole, other = found
    assert whole.left.tolist() == other.left.tolist()
    assert whole.right.tolist() == other.right.tolist()
    assert other.labels.tolist() == [
        0 if i == at else label for i, label in enumerate(whole.labels.tolist())
    ]


def test_voxceleb_bad_line(tmp_path):
    with pytest.raises(InputError, match="line 3: expected '1 path path'"):
        read_pairs(write(tmp_path, "veri_test.txt", VOXCELEB + "a/b\n"))


@pytest.mark.parametrize("layout", ["auto", "links"])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("links.txt", LINKS),
        ("links.txt", "ann bob 1\nbob cid -1\ncid dan 1\n"),
        ("links.txt", "ann,bob,must-link\nbob,cid,cannot-link\ncid,dan,must-link\n"),
        ("links.json", {"must_link": [["ann", "bob"]], "cannot_link": [["bob", "cid"]]}),
    ],
)
def test_links(layout, name, content, tmp_path):
    table = read_pairs(write(tmp_path, name, content), layout=layout)
    pairs, labels = joined(table)
    expected = {("ann", "bob"): 1, ("bob", "cid"): -1, ("cid", "dan"): 1}
    assert pairs == list(expected)[: len(pairs)]
    assert len(pairs) >= 2
    assert labels.tolist() == [expected[pair] for pair in pairs]


def test_whether_links_are_known_does_not_depend_on_a_label(tmp_path):
    for labels in product(("1", "-1", "+1"), repeat=3):
        content = "".join(f"p{at} q{at} {label}\n" for at, label in enumerate(labels))
        found = read_pairs(write(tmp_path, "links.txt", content))
        assert found.labels.tolist() == [int(label) for label in labels]
    with pytest.raises(InputError, match="cannot tell the layout"):  # a number that is no label
        read_pairs(write(tmp_path, "links.txt", "p1 q1 1\np2 q2 7\n"))


def test_links_in_memory_and_bad_links(tmp_path):
    assert read_pairs({"ml": [(0, 1)], "cl": [(1, 2)]}).labels.tolist() == [1, -1]
    with pytest.raises(InputError, match="line 4: expected 'must-link a b'"):
        read_pairs(write(tmp_path, "links.txt", LINKS.replace("\n\nML cid", "\n")))
    with pytest.raises(InputError, match="pair 1 is not two ids"):
        read_pairs(write(tmp_path, "links.json", {"must_link": [["a", "b", "c"]]}))
    with pytest.raises(InputError, match="only must_link and cannot_link"):
        read_pairs(write(tmp_path, "links.json", {"linked": []}), layout="links")


@pytest.mark.parametrize(
    ("name", "content"),
    [("pairs.txt", VOXCELEB), ("pairs.txt", LFW), ("l.txt", LINKS), ("l.csv", SPLINK)],
)
def test_labels_can_be_left_unread_in_every_layout(name, content, tmp_path):
    assert read_pairs(write(tmp_path, name, content), label=None).labels is None


@pytest.mark.parametrize(
    ("name", "content"),
    [("p.txt", "1 a b\n0 c d\n"), ("p.txt", "left right label extra\n"), ("p.json", {"a": 1})],
)
def test_an_unclear_layout_is_asked_for(name, content, tmp_path):
    with pytest.raises(InputError, match="cannot tell the layout; say layout="):
        read_pairs(write(tmp_path, name, content))


def test_a_plain_table_wins_over_splink_columns(tmp_path):
    frame = pd.read_csv(write(tmp_path, "labels.csv", SPLINK))
    frame = frame.assign(left=[7, 8, 9], right=[8, 9, 7], label=1)
    assert read_pairs(frame).left.tolist() == [7, 8, 9]


def test_unknown_layout_and_layouts_that_are_files():
    with pytest.raises(InputError, match="layout must be"):
        read_pairs({"left": [1], "right": [2]}, layout="excel")
    with pytest.raises(InputError, match="give its path"):
        read_pairs(pd.DataFrame(), layout="lfw")


# ---- the registry ------------------------------------------------------------------------------


def test_the_docs_have_a_row_for_every_layout():
    from pathlib import Path

    from pairveil.jobs.job import about_of
    from pairveil.jobs.options import GraphOptions
    from pairveil.records.layouts import LAYOUTS

    guide = Path(__file__).parents[2] / "docs" / "guides" / "data-formats.md"
    rows = [line for line in guide.read_text().splitlines() if line.startswith("| `")]
    wanted = [f"| `{name}` | {one.looks} | {one.note} |" for name, one in LAYOUTS.items()]
    assert [row for row in rows if row in wanted] == wanted
    offered = about_of(GraphOptions.__dataclass_fields__["layout"]).choices
    assert offered == ("auto", *LAYOUTS)


def test_a_layout_is_one_row_of_the_table(tmp_path, monkeypatch):
    from pairveil.records.layouts import LAYOUTS, Layout, of_lines

    def parse(line):
        ends = line.split(" -> ")
        return (*ends, 1) if len(ends) == 2 else None

    made = Layout(
        "`a -> b`",
        "arrows join similar ones",
        lambda look: bool(look.lines) and " -> " in look.lines[0],
        of_lines(parse, "'a -> b'"),
    )
    monkeypatch.setitem(LAYOUTS, "arrows", made)
    file = tmp_path / "pairs.txt"
    file.write_text("ann -> bob\nbob -> cyd\n")
    for layout in ("auto", "arrows"):
        assert read_pairs(file, layout=layout).left.tolist() == ["ann", "bob"]
    with pytest.raises(InputError, match="read from a file"):
        read_pairs({"left": [1]}, layout="arrows")
    file.write_text("ann -> bob\nbob\n")
    with pytest.raises(InputError, match="line 2: expected 'a -> b'"):
        read_pairs(file, layout="arrows")
