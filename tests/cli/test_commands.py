"""Every command of the design: JSON keys, what people read, quiet.

Each is started once in a process of its own (`run`), which has imported nothing before.
"""

from __future__ import annotations

import csv
import json
import re
from importlib.resources import files as resources
from pathlib import Path

import jsonschema
import pytest
from running import run, run_here

from pairveil.cli.terminal import Terminal
from pairveil.jobs.demo import tell_demo
from pairveil.privacy.certificate import _example
from pairveil.records.embedded import student_table

KAPPAS = {"pair", "relationship", "paper_bound", "person", "intransitive"}
SCHEMA = json.loads(resources("pairveil.privacy").joinpath("certificate.schema.json").read_text())


def test_kappa(files: Path) -> None:
    said = run("kappa", "pairs.csv", "--json", cwd=files).json
    assert (said["n_people"], said["n_pairs"]) == (90, 180)
    assert set(said["kappa"]) == KAPPAS
    assert (said["kappa"]["relationship"], said["kappa"]["person"]) == (4, 4)
    shown = run_here("kappa", "pairs.csv", cwd=files)
    assert re.search(r"^relationship +4 ", shown.out, re.M)
    assert "Recommended: `pairveil select --how paths`" in " ".join(shown.out.split())
    assert max(map(len, shown.out.splitlines()[:8])) <= 80
    assert run_here("kappa", "pairs.csv", "--quiet", cwd=files) == (0, "", "")


def test_kappa_reads_notes_of_other_layouts(files: Path) -> None:
    shown = run_here("kappa", "lfw.txt", cwd=files)
    assert "note: Each id is one image" in shown.err
    said = run_here("kappa", "lfw.txt", "--json", cwd=files)
    assert "image" in said.json["notes"][0]
    assert said.err == ""


def test_select_and_design(files: Path, tmp_path: Path) -> None:
    out = tmp_path / "used.csv"
    said = run("select", "pairs.csv", "--how", "paths", "-o", out, "--json", cwd=files).json
    assert said["kappa"]["relationship"] == 1
    assert said["full_graph_kappa"]["relationship"] == 4
    with out.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == said["n_pairs"] < 180
    assert set(rows[0]) == {"left", "right", "label"}
    out = tmp_path / "to-label.parquet"
    said = run("design", "--people", 50, "--how", "matching", "-o", out, "--json", cwd=files).json
    assert (said["n_pairs"], said["kappa"]["person"], out.is_file()) == (25, 1, True)


def test_select_warns_of_dropped_labels(files: Path, tmp_path: Path) -> None:
    shown = run_here("select", "pairs.csv", "-o", tmp_path / "x.csv", cwd=files)
    said = " ".join(shown.out.split())
    assert "along a minimum cut 4 of them, along others more" in said
    assert "`fit --select paths` on the full file says so" in said
    whole = run_here("select", "pairs.csv", "--how", "all", "-o", tmp_path / "y.csv", cwd=files)
    assert "labels still exist" not in " ".join(whole.out.split())


def test_account_agrees_with_the_theory_page(files: Path) -> None:
    words = "account --kappa 13 --sample-rate 0.05 --noise-multiplier 20 --steps 200 --delta 1e-5"
    assert 1.82 < run(*words.split(), "--json", cwd=files).json["epsilon"] < 1.84
    pure = "account --mechanism laplace --kappa 2 --noise-multiplier 10 --steps 5 --delta 0 --json"
    assert run_here(*pure.split(), cwd=files).json["epsilon"] == pytest.approx(1.0)


def test_account_shows_no_less_than_it_found(files: Path) -> None:
    """A stated epsilon is rounded up: the number nearest to this one, 1.0001, would be below it."""
    words = "account --mechanism laplace --kappa 1 --noise-multiplier 2.9996 --steps 3 --delta 0"
    found = run_here(*words.split(), "--json", cwd=files).json["epsilon"]
    assert round(found, 4) < found
    assert float(run_here(*words.split(), cwd=files).out.split()[1]) >= found


def test_fit_json(files: Path, tmp_path: Path) -> None:
    out = tmp_path / "release"
    words = ["fit", "raw.csv", "splink.csv", "--bounds", "bounds.csv", "--threshold", 0.5]
    said = run_here(*words, "--epsilon", 2, "--unit", "person", "--select", "matching",
               "--out", out, "--seed", 1, "--json", cwd=files)  # fmt: skip
    assert (
        said.err == "note: Scores of at least 0.5 are similar\n"
    )  # to the operator, not in the JSON
    certificate = said.json["certificate"]
    assert said.json["out"] == str(out)
    assert (certificate["unit"], certificate["kappa"]) == ("person", 1)
    assert 1.9 < certificate["epsilon"] <= 2.0
    assert certificate["for_release"] is False
    judged = run_here("certificate", out, cwd=files)
    assert judged.out.startswith("Do not use")
    jsonschema.validate(certificate, SCHEMA)
    written = json.loads((out / "certificate.json").read_text(encoding="utf-8"))
    jsonschema.validate(written, SCHEMA)
    assert written | {"metric_sha256": None} == certificate | {"metric_sha256": None}


def test_fit_says_what_it_will_spend(files: Path) -> None:
    shown = run_here("fit", "--no-scale", "people.csv", "pairs.csv", "--dry-run", cwd=files)
    assert shown.code == 0
    for piece in (
        "of 180 pairs used (select paths)",
        "kappa of all pairs is 4",
        "Noise: ",
        "protected unit   kappa   zero-out   replace",
        "Expected effect",
        "nothing was spent",
    ):
        assert piece in shown.out
    assert not (files / "release").exists()


def test_a_release_holds_what_it_should(release: Path) -> None:
    names = {"metric.safetensors", "certificate.json", "README.md", "summary.json", "report.html"}
    assert {entry.name for entry in release.iterdir()} == names
    assert list(release.parent.iterdir()) == [release]  # no draft was left beside it


def test_certificate(release: Path) -> None:
    said = run("certificate", release, "--json", cwd=release).json
    assert said["valid"] is True
    assert (said["delta"], said["unit"], said["for_release"]) == (1e-5, "relationship", True)
    assert 2.9 < said["epsilon"] <= 3.0
    shown = run_here("certificate", release, cwd=release)
    assert "differentially private for the contents of" in shown.out
    assert "Verified" in shown.out
    assert run_here("certificate", release, "-q", cwd=release) == (0, "", "")


def test_a_forged_certificate_is_refused(release: Path, tmp_path: Path) -> None:
    forged = json.loads((release / "certificate.json").read_text(encoding="utf-8"))
    forged["epsilon"] = forged["epsilons"]["relationship"]["zero-out"] = 0.1
    (tmp_path / "certificate.json").write_text(json.dumps(forged), encoding="utf-8")
    (tmp_path / "metric.safetensors").write_bytes((release / "metric.safetensors").read_bytes())
    done = run_here("certificate", tmp_path, cwd=tmp_path)
    assert done.code == 2
    assert "the certificate does not hold" in done.err
    assert "Verified" not in done.out


def test_transform(files: Path, release: Path, tmp_path: Path) -> None:
    out = tmp_path / "projected.csv"
    said = run("transform", release, "people.csv", "-o", out, "--json", cwd=files).json
    assert said["n_rows"] == 90
    with out.open(encoding="utf-8") as file:
        header = next(csv.reader(file))
    assert header == ["id", *(f"component_{i + 1}" for i in range(said["n_components"]))]


def test_evaluate(files: Path, release: Path) -> None:
    words = ["evaluate", release, "classes.csv", "--classes", "class", "--pairs", 2000]
    said = run(*words, "--json", cwd=files).json
    assert {"pair_auc", "euclidean_pair_auc", "knn_accuracy"} <= set(said)
    assert said["euclidean_pair_auc"] > 0.7  # the classes of these files are far apart
    assert "Euclidean" in run_here(*words, cwd=files).out


def test_report_and_export(release: Path, tmp_path: Path) -> None:
    said = run("report", release, "-o", tmp_path / "page.html", "--json", cwd=tmp_path).json
    assert said["out"] == str(tmp_path / "page.html")
    assert "<html" in (tmp_path / "page.html").read_text(encoding="utf-8")
    said = run("export", release, "--to", "csv", "-o", tmp_path / "m.csv", "--json", cwd=tmp_path)
    assert said.json["out"] == str(tmp_path / "m.csv")


def test_demo(tmp_path: Path) -> None:
    said = run("demo", "--json", "--seed", 0, cwd=tmp_path).json
    assert {"out", "certificate", "pair_auc", "euclidean_pair_auc", "gain_kept"} <= set(said)
    assert said["gain_kept"] >= max(0.9, said["gain_low"])  # the forecast holds
    attacked, guesses = said["attack"], said["attack"]["guesses"]
    assert attacked["right_without_privacy"] == guesses
    assert attacked["right"] <= 0.606 * guesses  # what is proved of it
    assert (tmp_path / "demo-out" / "report.html").is_file()
    # The release holds the schema: it takes the raw table.
    table = student_table()
    lines = [
        ",".join(table),
        *(",".join(cell or "" for cell in row) for row in zip(*table.values(), strict=True)),
    ]
    (tmp_path / "students.csv").write_text("\n".join(lines[:9]), encoding="utf-8")
    said = run(
        "transform", "demo-out", "students.csv", "-o", "out.csv", "--json", cwd=tmp_path
    ).json
    assert said["n_rows"] == 8


@pytest.mark.parametrize(("auc", "why"), [(0.77, True), (0.81, False)])
def test_a_demo_that_keeps_nothing_says_why(capsys, auc: float, why: bool) -> None:
    scores = {"pair_auc": auc, "euclidean_pair_auc": 0.77, "reference_pair_auc": 0.86}
    attacked = {"guesses": 20, "right": 11, "right_without_privacy": 20}
    kept, page = (auc - 0.77) / 0.09, Path("demo-out/report.html")
    tell_demo(Terminal(), _example(), scores, kept, attacked, page)
    told = capsys.readouterr().out.replace("\n", " ")
    assert ("plain distance was released" in told) == why
    assert "100 times in 100" in told  # all figures of the same denominator
    assert "55 times, a coin 50 (20 games)" in told


def test_audit(tmp_path: Path) -> None:
    said = run("audit", "--target", "laplace", "--runs", 200, "--json", cwd=tmp_path).json
    assert said["verdict"] == "consistent"
    assert said["claimed_epsilon"] == 1.0


def test_attack(tmp_path: Path) -> None:
    told = run("attack", "--targets", 20, cwd=tmp_path).out
    assert "by about 0.112 (standard error)" in " ".join(told.split())
    rows = run("attack", "--targets", 20, "--json", cwd=tmp_path).json["rows"]
    assert {"learner", "epsilon", "attacker", "n_targets", "recovered", "bound"} <= rows[0].keys()
    assert {row["learner"] for row in rows} == {
        "non-private", "published-dpp", "published-dpp-s", "pairveil",
    }  # fmt: skip
    assert {row["epsilon"] for row in rows if row["learner"] == "pairveil"} == {0.1, 1.0, 4.0}
    assert rows[0]["epsilon"] == "inf"
    assert all(row["n_targets"] == 20 for row in rows)
    found = {(row["learner"], row["epsilon"], row["attacker"]): row for row in rows}
    assert found["non-private", "inf", "all-other-pairs"]["recovered"] == 1.0
    assert found["pairveil", 1.0, "all-other-pairs"]["recovered"] < 0.9
