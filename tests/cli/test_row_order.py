"""The command line: order, contradictions and similar ids in files."""

from __future__ import annotations

from pathlib import Path

import openpyxl
from running import run_here as run

HEAD = "left,right,label\n"


def test_select_writes_a_function_of_the_set_and_keeps_contradictions(tmp_path: Path) -> None:
    rows = ["b,a,1", "c,b,-1", "d,c,1", "a,b,-1", "d,a,-1"]
    (tmp_path / "one.csv").write_text(HEAD + "\n".join(rows) + "\n")
    (tmp_path / "two.csv").write_text(HEAD + "\n".join(rows[::-1]) + "\n")
    written = []
    for name in ("one", "two"):
        done = run(
            "select",
            f"{name}.csv",
            "-o",
            f"{name}-used.csv",
            "--how",
            "all",
            "--json",
            cwd=tmp_path,
        )
        assert done.json["n_pairs"] == 4
        assert not any("contradicting" in note for note in done.json["notes"])
        written.append((tmp_path / f"{name}-used.csv").read_text())
    assert written[0] == written[1]
    assert written[0].replace('"', "").splitlines()[1:] == [
        "a,b,1", "a,b,-1", "a,d,-1", "b,c,-1", "c,d,1",
    ]  # fmt: skip


def test_contradicting_labels_do_not_stop_a_fit_and_are_counted_on_stderr(
    files: Path, tmp_path: Path
) -> None:
    pairs = (files / "pairs.csv").read_text().splitlines()
    left, right, label = pairs[1].split(",")
    other = "different" if label == "same" else "same"
    (tmp_path / "pairs.csv").write_text("\n".join([*pairs, f"{right},{left},{other}"]) + "\n")
    done = run(
        "fit",
        "--no-scale",
        files / "people.csv",
        "pairs.csv",
        "--seed",
        "0",
        "--json",
        "--dry-run",
        cwd=tmp_path,
    )
    assert "1 pair has contradicting labels" in " ".join(done.err.split())
    assert "contradicting" not in done.out
    plain = run(
        "fit",
        "--no-scale",
        files / "people.csv",
        files / "pairs.csv",
        "--seed",
        "0",
        "--json",
        "--dry-run",
        cwd=tmp_path,
    )
    assert done.json["certificate"] == plain.json["certificate"]


def test_similar_ids_are_counted_and_merged_on_request(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text(HEAD + "ann,bob,1\nANN,cid,1\nann ,dan,-1\n")
    apart = run("kappa", "pairs.csv", "--json", cwd=tmp_path).json
    assert apart["kappa"]["person"] == 1
    assert apart["notes"][0].startswith("2 ids of the pairs differ from another one")
    assert "--merge-similar-ids takes them as one" in apart["notes"][0]
    together = run("kappa", "pairs.csv", "--merge-similar-ids", "--json", cwd=tmp_path).json
    assert together["kappa"]["person"] == 3
    assert together["notes"] == []


def test_similar_ids_are_said_even_to_those_who_asked_for_quiet(tmp_path: Path) -> None:
    """If they are one person's, the epsilon of everything that follows is too small."""
    (tmp_path / "pairs.csv").write_text(HEAD + "ann,bob,1\nANN,cid,-1\n")
    done = run("kappa", "pairs.csv", "-q", cwd=tmp_path)
    assert "kappa is too small" in " ".join(done.err.split())
    assert done.out == ""


def test_row_numbers_of_repeated_pairs_are_for_the_operator_alone(tmp_path: Path) -> None:
    """In a file that is sorted by label the number of a row tells a label."""
    rows = [f"p{n},p{n + 1},{1 if n % 2 else -1}" for n in range(9)]
    said = []
    for name, again in (("one", "p2,p1,1"), ("two", "p2,p1,-1")):
        listed = sorted([*rows, again], key=lambda row: row.rpartition(",")[2])
        (tmp_path / f"{name}.csv").write_text(HEAD + "\n".join(listed) + "\n")
        for words in (("kappa",), ("select", "-o", "used.csv")):
            done = run(*words, f"{name}.csv", "--json", cwd=tmp_path)
            assert "1 pair appeared before and was merged (row" in " ".join(done.err.split())
            said.append((words[0], done.json))
    assert said[:2] == said[2:]


def test_what_other_libraries_say_of_a_cell_is_in_no_output(tmp_path: Path) -> None:
    """openpyxl names the cell of a day that Excel does not know."""
    book = openpyxl.Workbook()
    for row in (["left", "right", "seen"], ["a", "b", 1e12], ["c", "d", 30000.0]):
        book.active.append(row)
    book.active["C2"].number_format = book.active["C3"].number_format = "yyyy-mm-dd"
    book.save(tmp_path / "pairs.xlsx")
    done = run("kappa", "pairs.xlsx", "--json", cwd=tmp_path)
    assert done.json["notes"] == []
    assert "C2" in done.err
