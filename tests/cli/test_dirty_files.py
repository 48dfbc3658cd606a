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
