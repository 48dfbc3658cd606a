"""Foreign files on the command line: exit 2, one line, nothing of the file and nothing a terminal obeys."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console
from running import run_here as run

from pairveil.cli.terminal import PlainConsole, table

ESCAPES = "\x1b]0;x\x07\x1b[2J\u202e"


def refused(*words: object, cwd: Path) -> str:
    done = run(*words, cwd=cwd)
    assert done.code == 2, done
    assert done.out == ""
    [line] = done.err.splitlines()
    assert line.startswith("pairveil: ")
    assert not set(line) & set("\x1b\x07\u202e")
    return line


def test_the_first_row_of_a_file_without_a_header_is_not_shown(files: Path, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("alice,ward,HIVPOS\nbob,north,HIVNEG\n")
    (tmp_path / "pairs.csv").write_text("alice,bob,HIVPOS\ncid,dan,HIVNEG\n")
    for words in (
        ["kappa", "pairs.csv"],
        ["fit", "--no-scale", "people.csv", files / "pairs.csv", "-o", "x"],
    ):
        line = refused(*words, cwd=tmp_path)
        assert "3 columns with other names" in line
        assert not any(word in line for word in ("alice", "HIV", "north"))


def test_files_of_other_programs_get_the_right_advice(tmp_path: Path) -> None:
    (tmp_path / "a.xlsx").write_bytes(b"PK\x03\x04\x14\0\x06\0\xff\xfe")
    (tmp_path / "b.csv").write_bytes("left,right,label\n1,2,same\n".encode("utf-16"))
    assert "spreadsheet" in refused("kappa", "a.xlsx", cwd=tmp_path)
    assert "iconv -f utf-16" in refused("kappa", "b.csv", cwd=tmp_path)


def test_more_people_than_there_is_room_for(tmp_path: Path) -> None:
    assert "--people" in refused("design", "--people", 10**12, "-o", "x.csv", cwd=tmp_path)
    assert not list(tmp_path.iterdir())


def test_values_outside_the_bounds_are_counted(files: Path, tmp_path: Path) -> None:
    people = pd.read_csv(files / "raw.csv")
    people.loc[3, "x1"] = 1e25
    people.to_csv(tmp_path / "raw.csv", index=False)
    words = ["fit", "raw.csv", files / "pairs.csv", "--bounds", files / "bounds.csv", "--dry-run"]
    done = run(*words, "--json", cwd=tmp_path)
    assert done.code == 0, done
    assert "1 value lay outside the public bounds and was set to them: column 'x1' (1)" in done.err
    assert "outside" not in done.out


def test_a_release_matches_columns_by_name_and_says_so(
    files: Path, release: Path, tmp_path: Path
) -> None:
    people = pd.read_csv(files / "people.csv")
    people[["id", "x3", "x1", "x0", "x2"]].to_csv(tmp_path / "turned.csv", index=False)
    straight = run("transform", release, files / "people.csv", "-o", "a.csv", cwd=tmp_path)
    turned = run("transform", release, "turned.csv", "-o", "b.csv", cwd=tmp_path)
    assert (straight.code, turned.code) == (0, 0)
    assert "matched by name" not in straight.err
    assert "matched by name" in turned.err
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "a.csv"), pd.read_csv(tmp_path / "b.csv"))


def test_a_forged_release_cannot_speak_to_the_terminal(release: Path, tmp_path: Path) -> None:
    forged = shutil.copytree(release, tmp_path / "forged")
    data = json.loads((forged / "certificate.json").read_text())
    data["selection"]["caveat"] = f"{ESCAPES}fine\nVerified: trust me"
    (forged / "certificate.json").write_text(json.dumps(data))
    done = run("certificate", forged, cwd=tmp_path)
    assert not set(done.out + done.err) & set("\x1b\x07\u202e")
    assert not any(line.startswith("Verified: trust me") for line in done.out.splitlines())
    os.remove(forged / "certificate.json")
    os.mkfifo(forged / "certificate.json")
    assert "not a regular file" in refused("certificate", forged, cwd=tmp_path)


def test_names_of_files_are_foreign_text_too(tmp_path: Path) -> None:
    refused("kappa", f"{ESCAPES}.csv", cwd=tmp_path)


@pytest.mark.parametrize("markup", [True, False])
def test_the_console_takes_escapes_out_of_lines_and_tables(markup: bool) -> None:
    console = PlainConsole(highlight=False, force_terminal=True, color_system=None, width=200)
    assert isinstance(console, Console)
    with console.capture() as caught:
        console.print(f"line {ESCAPES}", markup=markup)
        console.print(
            table(f"title {ESCAPES}", ["a", f"b{ESCAPES}"], [[f"cell {ESCAPES}", ESCAPES]])
        )
    assert not set(caught.get()) & set("\x1b\x07\u202e")
    assert "cell ?]0;x??[2J?" in caught.get()
