"""Dirt in files: one list, left out by ids where asked for, and nothing released tells of a label."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from running import run_here as run

FIT = ("fit", "--no-scale", "people.csv")


@pytest.fixture
def dirty(files: Path, tmp_path: Path) -> Path:
    """A person twice, a pair of a person with herself, two strangers, and one label that is none."""
    (tmp_path / "people.csv").write_text((files / "people.csv").read_text())
    people = (files / "people.csv").read_text().splitlines()
    pairs = (files / "pairs.csv").read_text().splitlines()
    first = people[1].split(",")[0]
    (tmp_path / "twice.csv").write_text("\n".join([*people, people[1]]) + "\n")
    bad = [f"{first},{first},same", "kanarienvogel-x,p002,same", "p003,kanarienvogel-x,different"]
    left, right, _ = pairs[1].split(",")
    named = [pairs[0], f"{left},{right},verdächtig", *pairs[2:], *bad]
    (tmp_path / "dirty.csv").write_text("\n".join(named) + "\n")
    return tmp_path


def test_all_that_is_wrong_is_one_list_and_a_private_file(dirty: Path) -> None:
    words = ("fit", "--no-scale", "twice.csv", "dirty.csv", "--problems", "wrong.csv")
    done = run(*words, cwd=dirty)
    assert done.code == 2
    lines = done.err.splitlines()
    [first] = [at for at, one in enumerate(lines) if one.startswith("pairveil: ")]
    parts = ("4 kinds of faults", "repeats an id", "1 label cannot be read", "a person with herself",
             "without features")  # fmt: skip
    for line, part in zip(lines[first:], parts, strict=True):
        assert part in line
    assert "--leave-out" in lines[first]
    assert all(line.startswith("- ") for line in lines[first + 1 :])
    assert "kanarienvogel" not in done.err
    assert "verdächtig" not in done.err
    rows = list(csv.DictReader((dirty / "wrong.csv").read_text().splitlines()))
    assert {one["problem"] for one in rows} == {"repeated id", "label", "self-pair", "unknown id"}
    assert not (dirty / "release").exists()


def test_the_private_file_is_not_written_into_a_release(dirty: Path) -> None:
    (dirty / "release").mkdir()
    (dirty / "release" / "metric.safetensors").write_bytes(b"")
    words = ("kappa", "dirty.csv", "--features", "twice.csv", "--problems", "release/wrong.csv")
    done = run(*words, cwd=dirty)
    assert done.code == 2
    assert "is private" in done.err
    assert not (dirty / "release" / "wrong.csv").exists()


def test_leave_out_goes_by_ids_and_says_how_many(dirty: Path) -> None:
    words = ("fit", "--no-scale", "twice.csv", "dirty.csv", "--leave-out", "--json")
    done = run(*words, "--dry-run", cwd=dirty)
    assert done.code == 0, done
    found = json.loads(done.out)["left_out"]
    assert found["self_pairs"] == 1
    assert found["repeated_ids"] == 1
    assert found["people"] == 2
    assert "label" not in json.dumps(found)
    clean = run(*FIT, "dirty.csv", "--leave-out", "--json", "--dry-run", cwd=dirty)
    assert json.loads(clean.out)["left_out"] == {
        "self_pairs": 1, "unknown_ids": 2, "people": 0, "pairs": 3
    }  # fmt: skip


def test_a_label_that_cannot_be_read_is_in_no_output(files: Path, tmp_path: Path) -> None:
    """The same release but for its noisy matrix, whatever one label says."""
    pairs = (files / "pairs.csv").read_text().splitlines()
    left, right, _ = pairs[1].split(",")
    shown = []
    for at, label in enumerate(("same", "different", "verdächtig")):
        file, out = tmp_path / "pairs.csv", tmp_path / f"release{at}"
        file.write_text("\n".join([pairs[0], f"{left},{right},{label}", *pairs[2:]]) + "\n")
        done = run(*FIT, str(file), "--json", "--seed", "1", "--out", str(out), cwd=files)
        assert done.code == 0, done
        found = json.loads(done.out)
        found.pop("out")
        found["certificate"].pop("release_sha256", None)
        found["certificate"].pop("metric_sha256", None)
        shown.append(
            (found, sorted(one.name for one in out.iterdir()), (out / "README.md").exists())
        )
        assert ("cannot be read" in done.err) == (label == "verdächtig")
    assert shown[0] == shown[1] == shown[2]


def test_kappa_checks_ids_against_the_people_before_columns_are_described(dirty: Path) -> None:
    words = ("kappa", "dirty.csv", "--features", "twice.csv")
    done = run(*words, cwd=dirty)
    assert done.code == 2
    assert "repeats an id" in done.err
    assert "a person with herself" in done.err
    assert run(*words, "--leave-out", "--json", cwd=dirty).code == 0
    listed = run(*words, "--label", "label", "--problems", "wrong.csv", cwd=dirty)
    assert "1 label cannot be read" in listed.err
    assert ",label," in (dirty / "wrong.csv").read_text()
    alone = run("kappa", "dirty.csv", cwd=dirty)
    assert "leave it out: --leave-out" in alone.err


def released(done, out: Path) -> tuple:
    """All that a fit hands out but its noisy matrix."""
    found = json.loads(done.out)
    found.pop("out")
    for name in ("release_sha256", "metric_sha256"):
        found["certificate"].pop(name, None)
    return found, sorted(one.name for one in out.iterdir())


@pytest.mark.parametrize("scaling", ["--no-scale", "--bounds"])
@pytest.mark.parametrize("learns", ["pairs", "links", "groups", "classes", "tuples"])
def test_a_cell_that_is_no_number_stops_no_fit_and_is_in_no_output(
    files: Path, tmp_path: Path, scaling: str, learns: str
) -> None:
    """Without a schema there is no fill value: the person stays in the graph and contributes nothing."""
    header, *people = (files / "people.csv").read_text().splitlines()
    bounds = {name: [-10, 10] for name in header.split(",")[1:]}
    (tmp_path / "bounds.json").write_text(json.dumps(bounds))
    said = ["--bounds", "bounds.json"] if scaling == "--bounds" else ["--no-scale"]
    ids = [one.split(",")[0] for one in people]
    head, *pairs = (files / "pairs.csv").read_text().splitlines()
    file, more = "pairs.csv", []
    if learns == "links":
        file, head = "pairs.txt", "# links"
        pairs = [
            one.replace(",", " ").replace("same", "1").replace("different", "-1") for one in pairs
        ]
    elif learns == "classes":
        header += ",kind"
        people = [f"{one},{'ab'[at % 2]}" for at, one in enumerate(people)]
        more = ["--classes", "kind", "--class-list", "a,b"]
    elif learns == "tuples":
        head = "anchor,positive,negative"
        pairs = [",".join(ids[at : at + 3]) for at in range(0, len(ids) - 2, 3)]
        more = ["--learner", "triplet", "--unit", "person"]
    elif learns == "groups":
        head, more = "left,right,label,group", ["--groups", "group", "--unit", "person"]
        pairs = [
            f"{ids[at]},{ids[at + 1]},{('same', 'different')[at % 4 > 1]},{at}"
            for at in range(0, len(ids) - 1, 2)
        ]
    (tmp_path / file).write_text("\n".join([head, *pairs]))
    more = more if learns == "classes" else [file, *more]
    found, first = [], people[0]
    for at, cell in enumerate(("0.5", "kanarienvogel", "", "inf")):
        cells = first.split(",")
        cells[1] = cell
        table = "\n".join([header, ",".join(cells), *people[1:]])
        (tmp_path / "people.csv").write_text(table)
        out = tmp_path / f"release{at}"
        words = ("fit", "people.csv", *more, *said, "--epsilon", "8", "--seed", "1", "--json")
        done = run(*words, "--out", str(out), cwd=tmp_path)
        assert done.code == 0, done.err
        found.append(released(done, out))
        said_once = done.err.count("1 row of people with a cell that is no number (row 1)")
        assert said_once == (at > 0), done.err
        assert "kanarienvogel" not in done.err
    assert found[0] == found[1] == found[2] == found[3]
