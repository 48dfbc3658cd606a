"""`design --ids`: pairs to label, by the ids that people have."""

from __future__ import annotations

import csv

import pytest
from running import run_here


@pytest.mark.parametrize("name", ["people.csv", "people.txt"])
def test_pairs_are_of_the_ids_and_follow_no_order(name, tmp_path):
    ids = ["zoe", "7", "ann", "bob", "007"]
    made = []
    for at, listed in enumerate((ids, ids[::-1])):
        rows = listed if name.endswith("txt") else ["who,age", *(f"{one},30" for one in listed)]
        (tmp_path / name).write_text("\n".join(rows))
        words = ("design", "--ids", name, "--id", "who", "--seed", 0, "-o", f"{at}.csv", "--json")
        assert run_here(*words, cwd=tmp_path).json["n_pairs"] == 4
        with (tmp_path / f"{at}.csv").open() as file:
            made.append([tuple(row) for row in csv.reader(file)])
    assert made[0] == made[1]
    assert {one for pair in made[0][1:] for one in pair} == set(ids)


def test_one_of_both_is_asked_for(tmp_path):
    (tmp_path / "people.txt").write_text("ann\nann\nbob")
    assert run_here("design", cwd=tmp_path).code == 2
    assert run_here("design", "--people", 5, "--ids", "people.txt", cwd=tmp_path).code == 2
    done = run_here("design", "--ids", "people.txt", cwd=tmp_path)
    assert done.code == 2
    assert "ann" not in done.err
