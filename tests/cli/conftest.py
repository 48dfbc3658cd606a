"""Files for the command line, one set a test run, and a release made by the command line itself."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

N_PEOPLE, N_FEATURES = 90, 4


def _write(path: Path, header: list[str], rows: list[list[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with people, their pairs, and what a newcomer may do wrong to both."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, N_PEOPLE)
    X = rng.normal(size=(N_PEOPLE, N_FEATURES)) * 0.08
    X[:, 0] += 0.3 * kind
    X[3, 1] = 0.271828  # a canary
    ids = [f"p{i:03d}" for i in range(N_PEOPLE)]
    ids[5] = "kanarienvogel"
    columns = [f"x{i}" for i in range(N_FEATURES)]
    people = [[ids[i], *map(float, X[i])] for i in range(N_PEOPLE)]
    classes = [["well", "ill"][k] for k in kind]
    ends = [(i, (i + 1) % N_PEOPLE) for i in range(N_PEOPLE)] + [
        (i, (i + 7) % N_PEOPLE) for i in range(N_PEOPLE)
    ]
    same = [kind[a] == kind[b] for a, b in ends]
    named = [
        [ids[a], ids[b], "same" if s else "different"] for (a, b), s in zip(ends, same, strict=True)
    ]
    head = ["left", "right", "label"]
    _write(folder / "people.csv", ["id", *columns], people)
    _write(
        folder / "classes.csv",
        ["id", *columns, "class"],
        [[*p, c] for p, c in zip(people, classes, strict=True)],
    )
    _write(folder / "raw.csv", ["id", *columns], [[p[0], *(50 * x for x in p[1:])] for p in people])
    _write(folder / "bounds.csv", ["column", "lower", "upper"], [[c, -50, 50] for c in columns])
    _write(folder / "words.csv", ["id", *columns, "ward"], [[*p, "verdächtig"] for p in people])
    _write(folder / "twice.csv", ["id", *columns], [*people, people[5]])
    _write(folder / "gap.csv", ["id", *columns], [[*p[:2], "", *p[3:]] for p in people])
    _write(folder / "pairs.csv", head, named)
    _write(folder / "zeroone.csv", head, [[a, b, int(y == "same")] for a, b, y in named])
    _write(folder / "columns.csv", ["a", "b", "y"], named)
    _write(folder / "strangers.csv", head, [["kanarienvogel", "nobody", "same"], *named[1:]])
    _write(folder / "alone.csv", head, [["kanarienvogel", "kanarienvogel", "same"], *named])
    _write(folder / "none.csv", head, [])
    _write(folder / "odds.csv", head, [[*ends[:2], "verdächtig"] for ends in named[:4]])
    _write(folder / "both.csv", head, [["p001", "p002", "same"], ["p002", "p001", "different"]])
    _write(
        folder / "splink.csv",
        ["unique_id_l", "unique_id_r", "clerical_match_score"],
        [[a, b, 0.9 if y == "same" else 0.2] for a, b, y in named],
    )
    (folder / "empty.csv").write_text("")
    (folder / "latin.csv").write_bytes("id,x\nm\u00fcller,1\n".encode("latin1"))
    (folder / "ragged.csv").write_text("left,right,label\np001,p002\np003,p004,same\n")
    (folder / "lfw.txt").write_text("1\t1\nAnn\t1\t2\nAnn\t1\tBob\t1\n")
    return folder


@pytest.fixture(scope="session")
def release(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release for which somebody typed `pairveil fit`."""
    from running import run

    out = tmp_path_factory.mktemp("released") / "release"
    words = [
        "fit",
        "--no-scale",
        files / "people.csv",
        files / "pairs.csv",
        "--out",
        out,
        "--epsilon",
        3,
    ]
    done = run(*words, "--report", cwd=files)
    assert done.code == 0, done.err
    return out
