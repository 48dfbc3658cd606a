"""`schema` and `plan`: from a raw table to a choice, and nothing spent on the way."""

from __future__ import annotations

import csv
import shlex
from pathlib import Path

import pytest
from running import run, run_here

FACTS = """
version = 1
[columns.id]
type = "id"
[columns.age]
type = "number"
bounds = [0, 120]
[columns.ward]
type = "category"
categories = ["a", "b"]
[columns.visit]
type = "date"
bounds = [2020-01-01, 2030-01-01]
"""


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """People with an odd age, a gap, a ward that nobody knows, and pairs of them."""
    ages = ["30", "", "999", "verdächtig"] * 10
    with (tmp_path / "people.csv").open("w", newline="", encoding="utf-8") as file:
        rows = [
            [f"p{i}", age, "abz"[i % 3], f"2021-01-{1 + i % 28:02d}"] for i, age in enumerate(ages)
        ]
        csv.writer(file).writerows([["id", "age", "ward", "visit"], *rows])
    with (tmp_path / "pairs.csv").open("w", newline="", encoding="utf-8") as file:
        rows = [[f"p{i}", f"p{(i + 1) % 40}", "same" if i % 3 else "different"] for i in range(40)]
        csv.writer(file).writerows([["left", "right", "label"], *rows])
    (tmp_path / "facts.toml").write_text(FACTS)
    return tmp_path


def test_the_template_names_columns_and_holds_no_value(raw):
    done = run_here("schema", "people.csv", "-o", "new.toml", "--json", cwd=raw)
    assert done.json["out"] == "new.toml"
    types = {column["name"]: column["type"] for column in done.json["columns"]}
    assert types == {"id": "id", "age": "category", "ward": "category", "visit": "date"}
    text = (raw / "new.toml").read_text()
    assert "999" not in text
    assert "verdächtig" not in text
    assert "2021-01" not in text
    assert run_here("schema", "people.csv", "-o", "new.toml", cwd=raw).code == 2  # may be filled in
    assert run_here("schema", "people.csv", "-o", "new.toml", "--overwrite", cwd=raw).code == 0
    assert run_here("schema", "people.csv", "-o", "new.csv", cwd=raw).code == 2


@pytest.mark.parametrize("command", ["plan", "fit"])
def test_swapped_files_are_told_where_a_schema_names_the_columns(raw, command):
    done = run_here(
        command, "pairs.csv", "people.csv", "--schema", "facts.toml", "--left", "a", cwd=raw
    )
    assert done.code == 2
    assert "are the two files swapped?" in done.err


def test_a_column_that_is_read_wrong_or_cut_off_is_told_and_stops_nothing(raw):
    words = ("fit", "people.csv", "pairs.csv", "--schema", "facts.toml", "--dry-run")
    assert run_here(*words, cwd=raw).code == 0  # one age in four is none
    people = (raw / "people.csv").read_text()
    (raw / "people.csv").write_text(people.replace(",30,", ',"30,5",').replace(",999,", ',"99,5",'))
    done = run_here(*words, cwd=raw)
    assert done.code == 0  # of a column of which half is read one cell would decide
    assert "most cells of 1 column cannot be read as the schema says: age" in done.err
    assert 'decimal = ","' in done.err
    assert "30,5" not in done.err
    (raw / "people.csv").write_text(people.replace(",30,", ",3000,"))
    done = run_here(*words, cwd=raw)
    assert done.code == 0
    assert "most cells of age lie outside the bounds" in done.err


def test_a_plan_knows_what_the_ledger_would_have_spent(raw):
    fit = (
        "fit",
        "people.csv",
        "pairs.csv",
        "--schema",
        "facts.toml",
        "--ledger",
        "l.json",
        "--delta",
        "1e-3",
    )
    assert run_here(*fit, "--budget", "3", "--epsilon", "1", cwd=raw).code == 0
    pairs = (raw / "pairs.csv").read_text().splitlines()
    (raw / "others.csv").write_text("\n".join(pairs[:-3]) + "\n")
    words = ("others.csv", "--schema", "facts.toml", "--ledger", "l.json", "--delta", "1e-3")
    plan = ("plan", "people.csv", *words, "--epsilon", "0.5", "--epsilon", "8")
    found = run_here(*plan, "--json", cwd=raw).json
    rows = {(row["epsilon"], row["unit"], row["select"]): row for row in found["rows"]}
    few, many = rows[0.5, "relationship", "paths"], rows[8.0, "relationship", "paths"]
    assert few["allowed"]
    assert not many["allowed"]
    assert many["ledger_epsilon"] > 3
    assert all(row["allowed"] == (row["ledger_epsilon"] <= 3) for row in rows.values())
    assert found["recommended"]["allowed"]
    again = ("fit", "people.csv", *words, "-o", "again", "--dry-run", "--select", "paths")
    quoted = run_here(*again, "--epsilon", "0.5", cwd=raw)
    assert (
        f"{few['ledger_epsilon']:.3g} will be after this" in quoted.out
    )  # other pairs: a person's kappa
    refused = run_here(*again, "--epsilon", "8", cwd=raw)
    assert refused.code == 3
    assert "counts as a person does" in refused.err
    shown = run_here(*plan, cwd=raw).out
    assert "over" in shown
    assert "--ledger l.json" in shown
    assert all(len(line) <= 80 for line in shown.splitlines() if line.startswith(("0.5", "8")))


def test_blanks_are_asked_for(raw):
    run_here("schema", "people.csv", "-o", "new.toml", cwd=raw)
    done = run_here("plan", "people.csv", "pairs.csv", "--schema", "new.toml", cwd=raw)
    assert done.code == 2
    assert "3 columns have blanks" in done.err


def test_the_plan_of_a_raw_table(raw):
    before = sorted(raw.iterdir())
    words = (
        "plan",
        "people.csv",
        "pairs.csv",
        "--schema",
        "facts.toml",
        "--epsilon",
        "1",
        "--epsilon",
        "4",
    )
    found = run_here(*words, "--json", cwd=raw).json
    keys = {
        "epsilon",
        "unit",
        "select",
        "kappa",
        "n_pairs_used",
        "gain_low",
        "gain_high",
        "best_guess",
    }
    assert all(keys <= set(row) for row in found["rows"])
    assert len(found["rows"]) == 2 * 3 * 4
    assert keys | {"why"} <= set(found["recommended"])
    page = run_here(*words, cwd=raw)
    assert page.code == 0
    assert "Recommended:" in page.out
    assert "--schema facts.toml" in page.out
    assert "outside the bounds" in page.err
    assert sorted(raw.iterdir()) == before  # spends nothing, writes nothing


def test_the_command_that_plan_prints_can_be_typed(raw):
    """With the columns that were left out, and file names that have blanks in them."""
    (raw / "people.csv").rename(raw / "our people.csv")
    words = ("plan", "our people.csv", "pairs.csv", "--schema", "facts.toml", "--exclude", "ward")
    page = run_here(*words, cwd=raw).out
    [line] = [one for one in page.splitlines() if one.startswith("pairveil fit")]
    typed = shlex.split(page[page.index(line) :].split("Recommended", 1)[0])
    assert typed[2:4] == ["our people.csv", "pairs.csv"]
    assert typed[typed.index("--exclude") + 1] == "ward"
    assert run_here(*typed[1:], "--dry-run", cwd=raw).code == 0


def test_the_command_names_the_column_of_labels_that_was_not_named(raw):
    lines = (raw / "pairs.csv").read_text().splitlines()
    (raw / "other.csv").write_text(
        "\n".join([lines[0].replace("label", "course"), *lines[1:]]) + "\n"
    )
    page = run_here(
        "plan", "people.csv", "other.csv", "--schema", "facts.toml", "--epsilon", 1, cwd=raw
    )
    assert " --label course " in page.out.splitlines()[-1]
    assert "Labels: column 'course'" in page.out
    odd = (raw / "other.csv").read_text().replace("same", "perhaps", 1)
    (raw / "odd.csv").write_text(odd)  # by that column all that is wrong is listed, as `fit` does
    page = run_here(
        "plan", "people.csv", "odd.csv", "--schema", "facts.toml", "--epsilon", 1, cwd=raw
    )
    assert "1 label cannot be read" in page.err


def test_a_plan_without_a_schema_says_what_its_command_lacks(raw):
    (raw / "ages.csv").write_text("id,age\np1,0.3\np2,0.5\np3,0.9\n")
    (raw / "graph.csv").write_text("left,right\np1,p2\np2,p3\n")
    page = run_here("plan", "ages.csv", "graph.csv", "--epsilon", 1, cwd=raw).out
    assert "--schema FILE, --bounds FILE, or --no-scale" in " ".join(page.split())


def test_unlabelled_pairs_can_be_planned(raw):
    (raw / "graph.csv").write_text("left,right\np1,p2\np2,p3\n")
    words = ("plan", "people.csv", "graph.csv", "--schema", "facts.toml", "--epsilon", 1, "--json")
    assert run_here(*words, cwd=raw).json["rows"]


def test_a_release_of_a_raw_table_takes_raw_tables(raw):
    words = (
        "fit",
        "people.csv",
        "pairs.csv",
        "--schema",
        "facts.toml",
        "--epsilon",
        3,
        "--out",
        "rel",
    )
    done = run_here(*words, "--json", cwd=raw)
    assert done.json["certificate"]["plan"]["n_features"] == 5
    assert "outside the bounds" in done.err
    assert (raw / "rel/schema.toml").exists()
    assert run_here("transform", "rel", "people.csv", "-o", "a.csv", cwd=raw).code == 0
    text = (raw / "people.csv").read_text(encoding="utf-8")
    wards = [row.split(",")[2] for row in text.splitlines()[1:]]
    (raw / "kind.csv").write_text(
        "\n".join(["kind," + text.splitlines()[0]]
                  + [f"{w},{row}" for w, row in zip(wards, text.splitlines()[1:], strict=True)]),
        encoding="utf-8",
    )  # fmt: skip
    scores = run_here(
        "evaluate", "rel", "kind.csv", "--classes", "kind", "--pairs", 200, "--json", cwd=raw
    )
    assert 0 <= scores.json["pair_auc"] <= 1
    assert run_here("certificate", "rel", cwd=raw).code == 0


def test_columns_semicolons_excel_and_standard_input(raw):
    openpyxl = pytest.importorskip("openpyxl")
    rows = list(csv.reader((raw / "people.csv").read_text(encoding="utf-8").splitlines()))
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append([float(cell) if cell.isdecimal() else cell or None for cell in row])
    book.save(raw / "people.xlsx")
    book.close()
    (raw / "semi.csv").write_text("\n".join(";".join(row) for row in rows), encoding="utf-8")
    made = []
    for name in ("people.csv", "people.xlsx", "semi.csv"):
        words = (
            "plan",
            name,
            "pairs.csv",
            "--schema",
            "facts.toml",
            "--exclude",
            "ward,visit",
            "--epsilon",
            1,
        )
        done = run_here(*words, "--json", cwd=raw)
        made.append((done.json, done.err))
    assert made[0] == made[1] == made[2]
    done = run("kappa", "-", cwd=raw, stdin=(raw / "pairs.csv").read_bytes())
    assert "40 pairs of 40 people" in done.out
    both = run_here("fit", "-", "-", "--no-scale", cwd=raw)
    assert "cannot both be standard input" in both.err


def test_which_cells_were_not_taken_as_they_stand_is_said_by_plan_and_counted_by_others(raw):
    files = ("people.csv", "pairs.csv", "--schema", "facts.toml")
    plan = run_here("plan", *files, "--epsilon", "1", cwd=raw)
    [full] = [line for line in plan.err.splitlines() if "cells" in line]
    assert "in ward (13), age (10)" in full
    assert "Check the schema" in full
    for command in (("fit", *files, "--out", "r"), ("transform", "r", "people.csv", "-o", "t.csv")):
        done = run_here(*command, cwd=raw)
        assert done.code == 0, done.err
        [brief] = [line for line in done.err.splitlines() if "cells" in line]
        assert "10 missing, 10 not readable; most in" in brief
        assert len(brief) < 160
