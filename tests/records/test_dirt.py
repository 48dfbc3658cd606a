"""Dirt in tables: one list at reading time, structural faults left out by ids alone, contents never."""

from __future__ import annotations

import csv
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pairveil import DPPMetricLearner, PairSet, kappa, read_features, read_pairs, select_pairs
from pairveil.errors import InputError, PairveilWarning, PrivateNote
from pairveil.records.dirt import sifted, write_problems
from pairveil.schema.schema import Schema

PEOPLE = {"id": ["ann", "bob", "cid", "dan", "bob", "eve "], "age": ["1", "2", "x", "-", "5", "6"]}
SCHEMA = Schema.from_dict({"columns": {"age": {"type": "number", "bounds": [0, 10]}}})
PAIRS = {
    "left": ["ann", "ann", "cid", "dan", "bob", "ann"],
    "right": ["cid", "dan", "dan", "dan", "ann", "Zqzoe"],
    "label": ["same", "Zqmaybe", "different", "same", "same", "different"],
}


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PairveilWarning)
        yield


def read(leave_out: bool) -> tuple[Any, Any, Any]:
    people = read_features(PEOPLE, schema=SCHEMA, leave_out=True)
    pairs, problems = sifted(people, read_pairs(PAIRS), leave_out=leave_out)
    return people, pairs, problems


def test_all_problems_are_one_list_without_values() -> None:
    with pytest.raises(InputError) as caught:
        read(leave_out=False)
    said = str(caught.value)
    for part in (
        "1 row of the features repeats an id that another row has: row 5",
        "column 'age': 1 cell cannot be read (row 3)",  # '-' is a gap
        "1 id of the people with spaces around (row 6)",
        "1 pair joins a person with herself (row 4)",
        "1 of 6 pairs names an id without features (first: row 6)",  # bob is not unknown, but twice there
        "1 label cannot be read (row 2)",
        "leave_out=True",
    ):
        assert part in said
    assert "Zq" not in said


def test_what_is_left_out_follows_from_ids_alone() -> None:
    people, pairs, problems = read(leave_out=True)
    assert people.ids.tolist() == ["ann", "cid", "dan", "eve "]
    assert people.rows.tolist() == [1, 3, 4, 6]
    assert pairs.rows.tolist() == [1, 2, 3]
    assert pairs.labels.tolist() == [1, 0, -1]  # the label that is none stays, null
    assert problems.counts() == {
        "repeated_ids": 1, "self_pairs": 1, "unknown_ids": 1, "people": 2, "pairs": 3
    }  # fmt: skip
    data = PairSet.join(people, read_pairs(PAIRS), leave_out=True)
    assert data.labels.tolist() == [1, 0, -1]


def test_labels_decide_nothing_of_what_is_left_out() -> None:
    _, pairs, problems = read(leave_out=True)
    for labels in (["same"] * 6, ["different"] * 6, ["same", "?", "?", "?", "same", "same"]):
        changed = sifted(
            read_features(PEOPLE, schema=SCHEMA, leave_out=True),
            read_pairs({**PAIRS, "label": labels}),
            leave_out=True,
        )
        assert changed[0].rows.tolist() == pairs.rows.tolist()
        assert changed[1].counts() == problems.counts()


def test_the_list_is_a_file_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "problems.csv"
    write_problems(file, read(leave_out=True)[2])
    assert file.stat().st_mode & 0o077 == 0
    rows = list(csv.DictReader(file.read_text().splitlines()))
    assert {"table": "pairs", "problem": "label", "column": "", "row": "2"} in rows
    assert {"table": "people", "problem": "cell", "column": "age", "row": "3"} in rows
    assert "Zq" not in file.read_text()


def test_clean_tables_have_no_problems_and_nothing_left_is_said() -> None:
    people = read_features({"id": ["ann", "bob"], "age": [1.0, 2.0]}, leave_out=True)
    listed = read_pairs({"left": ["ann"], "right": ["bob"], "label": ["same"]}, leave_out=True)
    assert str(sifted(people, listed)[1]) == ""
    with pytest.raises(InputError, match="nobody is left"):
        read_features({"id": ["ann", "ann"], "age": [1.0, 2.0]}, leave_out=True)
    with pytest.raises(InputError, match="no pair is left"):
        read_pairs({"left": ["ann"], "right": ["ann"], "label": ["same"]}, leave_out=True)
    strangers = read_pairs({"left": ["ann"], "right": ["zoe"], "label": ["same"]})
    with pytest.raises(InputError, match="no pair is left"):
        sifted(people, strangers, leave_out=True)


def test_one_unreadable_label_changes_nothing_but_the_noisy_artefact() -> None:
    """Number of pairs, kappa, selection, digest, plan and certificate are the same bit for bit."""
    rng = np.random.default_rng(3)
    ids = [f"p{at}" for at in range(60)]
    people = read_features({"id": ids, "u": rng.random(60), "v": rng.random(60)})
    ends = rng.permuted(np.tile(np.arange(60), (40, 1)), axis=1)[:, :2]
    table = {
        "left": [ids[a] for a in ends[:, 0]],
        "right": [ids[b] for b in ends[:, 1]],
        "label": np.where(rng.random(40) < 0.5, "same", "different").tolist(),
    }
    fits = []
    for label in ("same", "different", "who knows", ""):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            pairs = read_pairs({**table, "label": [label, *table["label"][1:]]})
        notes = [one.category for one in said if "cannot be read" in str(one.message)]
        assert notes == ([] if label in ("same", "different") else [PrivateNote])
        data = PairSet.join(people, pairs)
        learner = DPPMetricLearner(epsilon=2.0, delta=1e-3, random_state=1).fit(data)
        certificate = learner.certificate_.to_dict()
        fits.append(
            (
                data.n_pairs,
                kappa(data).relationship,
                select_pairs(data, "paths", random_state=0).tolist(),
                learner.n_pairs_used_,
                certificate,
            )
        )
        assert np.isfinite(learner.components_).all()
    assert all(fit == fits[0] for fit in fits[1:])
