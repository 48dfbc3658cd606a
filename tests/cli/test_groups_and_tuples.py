"""`fit` on groups of people, on relative comparisons, and on the classes that a schema marks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import run_here

from pairveil import (
    Certificate,
    DPPMetricLearner,
    DPPTripletLearner,
    PrivacyLedger,
    ReleasedMetric,
    read_features,
)
from pairveil.graph import kappa_of_tuples
from pairveil.records import read_groups, read_tuples

N = 240
LISTED = ["--classes", "kind", "--class-list", "x,y"]


def _table(path: Path, head: str, rows: list[Any]) -> None:
    path.write_text("\n".join([head, *(",".join(map(str, row)) for row in rows)]), encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """240 people in 60 wards of four, a chain of pairs in each ward, and triples; p5 is a canary."""
    made = tmp_path_factory.mktemp("units")
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, N)
    X = 0.1 * rng.normal(size=(N, 3)) + 0.2 * kind[:, None]
    ids = ["kanarienvogel" if i == 5 else f"p{i}" for i in range(N)]
    people = [[ids[i], *X[i].round(3), "xy"[kind[i]], f"w{i // 4}"] for i in range(N)]
    _table(made / "people.csv", "id,a,b,c,kind,ward", people)
    chain = [i for i in range(N) if i % 4 < 3]
    same = {i: "same" if kind[i] == kind[i + 1] else "different" for i in chain}
    pairs = [[ids[i], ids[i + 1], same[i], f"w{i // 4}"] for i in chain]
    _table(made / "pairs.csv", "left,right,label,ward", pairs)
    _table(made / "overlap.csv", "left,right,label,ward", [*pairs, [ids[5], "p9", "same", "w1"]])
    triples = [(i, i + 1, i + 2) for i in range(0, N - 2, 2)]
    triples = [(a, p, n) if kind[a] == kind[p] else (a, n, p) for a, p, n in triples]
    rows = [[ids[one] for one in members] for members in triples]
    _table(made / "triples.csv", "anchor,positive,negative", rows)
    _table(made / "strange.csv", "anchor,positive,negative", [["p1", ids[5], "nobody"], *rows])
    _table(made / "twice.csv", "anchor,positive,negative", [*rows, [ids[5], "p6", ids[5]]])
    single = [[*row[:-1], "w999" if i == 7 else row[-1]] for i, row in enumerate(people)]
    _table(made / "single.csv", "id,a,b,c,kind,ward", single)
    numbers = "".join(f"[columns.{one}]\ntype = 'number'\nbounds = [-1, 1]\n" for one in "abc")
    marked = "[columns.kind]\ntype = 'class'\nvalues = ['x', 'y']\n"
    (made / "schema.toml").write_text(f"[columns.id]\ntype = 'id'\n{numbers}{marked}")
    return made


def test_groups_of_a_pairs_file(folder: Path, tmp_path: Path) -> None:
    out, ledger = tmp_path / "release", tmp_path / "ledger.json"
    words = ["fit", "people.csv", "pairs.csv", "--groups", "ward", "--exclude", "kind,ward"]
    words += ["--no-scale", "--epsilon", 4, "--out", out, "--ledger", ledger, "--budget", 5]
    said = run_here(*words, "--dry-run", cwd=folder)
    assert "360 of 360 pairs used" in said.out
    assert "one group can" in " ".join(said.out.split())
    assert list(tmp_path.iterdir()) == []
    done = run_here(*words, "--checkpoint", tmp_path / "ck", "--report", "--json", cwd=folder)
    made = Certificate.from_dict(done.json["certificate"])
    assert made.verify().problems == ()
    assert made.for_release
    assert made.records == "groups"
    assert len({e for by in made.epsilons.values() for e in by.values()}) == 1
    assert len(PrivacyLedger.open(ledger).entries) == 1
    assert (out / "report.html").is_file()
    assert not (tmp_path / "ck").exists()


def test_the_command_fits_what_python_fits(folder: Path, tmp_path: Path) -> None:
    people = read_features(folder / "people.csv", exclude=["kind", "ward"])
    words = ["--exclude", "kind,ward", "--no-scale", "--epsilon", 8, "--seed", 3, "--overwrite"]
    given = {
        "groups": (["pairs.csv", "--groups", "ward"], DPPMetricLearner, read_groups),
        "tuples": (["triples.csv", "--learner", "triplet"], DPPTripletLearner, read_tuples),
    }
    for options, learner, read in given.values():
        run_here("fit", "people.csv", *options, *words, "--out", tmp_path / "r", cwd=folder)
        more = {"group": "ward"} if read is read_groups else {}
        fitted = learner(epsilon=8.0, random_state=3).fit(read(folder / options[0], people, **more))
        metric = ReleasedMetric.load(tmp_path / "r")
        np.testing.assert_array_equal(metric.components, fitted.components_)
        assert metric.certificate.events == fitted.certificate_.events


@pytest.mark.parametrize(("groups", "n"), [("4", 60), ("7", 34), ("ward", 60)])
def test_people_with_classes_are_dealt(groups: str, n: int, folder: Path, tmp_path: Path) -> None:
    words = ["people.csv", *LISTED, "--groups", groups, "--no-scale", "--out", tmp_path / "r"]
    words += [] if groups == "ward" else ["--exclude", "ward"]
    made = run_here("fit", *words, "--dry-run", "--json", cwd=folder).json["certificate"]
    assert Certificate.from_dict(made).records == "groups"
    assert made["plan"]["n_groups"] == n
    assert made["plan"]["n_features"] == 3
    assert made["unit"] == "person"


def test_tuples_are_charged_by_their_hypergraph(folder: Path, tmp_path: Path) -> None:
    data = read_tuples(
        folder / "triples.csv", read_features(folder / "people.csv", exclude=["kind", "ward"])
    )
    words = ["people.csv", "triples.csv", "--exclude", "kind,ward", "--no-scale", "--dry-run"]
    words += ["--unit", "person", "--out", tmp_path / "r"]
    for learner in ("triplet", "tuplet"):
        tail = ["--learner", learner, "--select", "all", "--json"]
        made = run_here("fit", *words, *tail, cwd=folder).json["certificate"]
        assert Certificate.from_dict(made).records == "tuples"
        assert made["kappa"] == kappa_of_tuples(data).person == 2
        assert made["n_pairs_used"] == 119
    said = " ".join(
        run_here(
            "fit", *words, "--learner", "triplet", "--select", "matching", cwd=folder
        ).out.split()
    )
    assert "of 119 tuples used (select matching); person-level kappa of those used is 1" in said
    assert "one tuple can" in said


def test_classes_and_their_list_are_what_the_schema_marks(folder: Path, tmp_path: Path) -> None:
    words = ["fit", "people.csv", "--schema", "schema.toml", "--out", tmp_path / "r", "--dry-run"]
    marked = run_here(*words, "--json", cwd=folder).json["certificate"]
    assert marked == run_here(*words, *LISTED, "--json", cwd=folder).json["certificate"]
    assert marked == run_here(*words, *LISTED[:2], "--json", cwd=folder).json["certificate"]
    assert marked["for_release"]
    assert marked["unit"] == "person"
    # With pairs the marked column is no feature, and nothing is learned from it.
    pairs = run_here(*words[:2], "pairs.csv", *words[2:], "--json", cwd=folder).json["certificate"]
    assert pairs["unit"] == "relationship"


PAIRS = ["people.csv", "pairs.csv", "--exclude", "kind,ward"]
TRIPLES = ["people.csv", "triples.csv", "--exclude", "kind,ward", "--learner", "triplet"]
FAR = ["file:///people.npy", "file:///pairs.parquet", "--dask", "tcp://nowhere:1"]
WRONG: list[tuple[str, list[str]]] = [
    ("groups overlap: somebody in row", ["people.csv", "overlap.csv", *PAIRS[2:], "--groups", "ward"]),
    ("a group needs at least two people: 1 groups", ["single.csv", *LISTED, "--groups", "ward"]),
    ("--select goes with PAIRS, not with --groups", [*PAIRS, "--groups", "ward", "--select", "all"]),
    ("--kappa goes with PAIRS, not with --classes", ["people.csv", *LISTED, "--groups", "4", "--kappa", "2"]),
    ("no column 'wart'", [*PAIRS, "--groups", "wart"]),
    ("no column 'wart'", ["people.csv", *LISTED, "--groups", "wart"]),
    ("a group has from 2 to 64 people", ["people.csv", *LISTED, "--exclude", "ward", "--groups", "1"]),
    ("--together does not go with groups", [*PAIRS, "--groups", "ward", "--together", "ward"]),
    ("--together does not go with tuples", [*TRIPLES, "--together", "ward"]),
    ("--groups goes with PAIRS, not with tuples", [*TRIPLES, "--groups", "ward"]),
    ("--left goes with PAIRS, not with tuples", [*TRIPLES, "--left", "a"]),
    ("needs FEATURES and TUPLES", ["people.csv", *LISTED, "--learner", "triplet"]),
    ("tuples names an id without features (first: row 1)", ["people.csv", "strange.csv", *TRIPLES[2:]]),
    ("1 tuple names a person twice (row 120)", ["people.csv", "twice.csv", *TRIPLES[2:]]),
    ("for tuples", [*TRIPLES, "--select", "groups"]),
    ("workers read single pairs", [*FAR, "--groups", "ward"]),
    ("workers read single pairs", [*FAR, "--select", "groups"]),
    ("workers read single pairs", [*FAR, "--learner", "triplet"]),
]  # fmt: skip


@pytest.mark.parametrize(("said", "words"), WRONG)
def test_mistakes_cost_nothing(said: str, words: list[str], folder: Path, tmp_path: Path) -> None:
    """And no message names a person: `run_here` looks for the canary."""
    more = ["--no-scale", "--ledger", tmp_path / "ledger", "--budget", 1, "--out", tmp_path / "r"]
    done = run_here("fit", *words, *more, cwd=folder)
    assert done.code == 2
    assert said in " ".join(done.err.split())
    assert "Traceback" not in done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "records", "kappas"),
    [
        (["people.csv", *LISTED, "--exclude", "ward", "--groups", "4"], "groups", {1}),
        (["people.csv", "pairs.csv", "--groups", "ward", "--exclude", "kind,ward"], "groups", {1}),
        (["people.csv", *LISTED, "--exclude", "ward"], "people", {1, 2}),
        (
            ["people.csv", "triples.csv", "--exclude", "kind,ward", "--learner", "triplet"],
            "tuples",
            {1, 2, 3},
        ),
    ],
)
def test_a_plan_is_what_fit_would_certify(
    folder: Path, words: list[str], records: str, kappas: set[int]
) -> None:
    rows = run_here("plan", *words, "--epsilon", 2, "--json", cwd=folder).json["rows"]
    assert {row["unit"] for row in rows} == {"pair", "relationship", "person"}
    (person,) = [row for row in rows if row["unit"] == "person"]
    assert person["records"] == records
    assert {row["kappa"] for row in rows} <= kappas
    fit = ["fit", *words, "--no-scale", "--unit", "person", "--epsilon", 2, "--dry-run", "--json"]
    made = Certificate.from_dict(run_here(*fit, cwd=folder).json["certificate"])
    assert person["kappa"] == made.kappas["person"]
    assert person["n_pairs_used"] == made.n_pairs_used
    assert person["best_guess"] == made.best_guess("person")
    shown = run_here("plan", *words, cwd=folder)
    assert "Recommended" in shown.out
    assert "pairveil fit people.csv" in shown.out


def test_a_plan_depends_on_no_class_and_asks_for_the_public_list(
    folder: Path, tmp_path: Path
) -> None:
    rng = np.random.default_rng(1)
    people = (folder / "people.csv").read_text(encoding="utf-8").splitlines()
    other = [line.split(",") for line in people[1:]]
    moved = [[row[0], *rng.normal(size=3).round(2), "x", row[5]] for row in other]
    _table(tmp_path / "people.csv", people[0], moved)
    words = ["plan", "people.csv", *LISTED, "--exclude", "ward", "--epsilon", 1, "--json"]
    assert run_here(*words, cwd=folder).json == run_here(*words, cwd=tmp_path).json
    refused = run_here("plan", "people.csv", "--classes", "kind", cwd=folder)
    assert refused.code == 2
    assert "--class-list" in refused.err
