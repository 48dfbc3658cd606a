"""`pairveil report` and `pairveil export` on a real release folder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from pairveil.cli.app import app
from pairveil.errors import InputError
from pairveil.release.metric import ReleasedMetric
from pairveil.report.data import SUMMARY_FILE

L = np.random.default_rng(1).normal(size=(2, 6))


@pytest.fixture
def release(tmp_path: Path, full_data) -> Path:
    names = tuple(name for name, _ in full_data.metric.weights)
    return ReleasedMetric(L, full_data.certificate, names).save(tmp_path / "release")


def _run(*arguments: object) -> dict:
    done = CliRunner().invoke(app, [str(a) for a in arguments] + ["--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_report_from_a_bare_release(release: Path, tmp_path: Path) -> None:
    said = _run("report", release, "-o", tmp_path / "page.html")
    assert said["valid"] is True
    page = Path(said["out"]).read_text(encoding="utf-8")
    assert "Numbers check out: every epsilon was recomputed" in page
    assert ReleasedMetric.load(release).certificate.metric_sha256 in page
    assert "No curve and no map are shown" in page


def test_report_with_a_summary_goes_beside_the_release(release: Path, full_data) -> None:
    (release / SUMMARY_FILE).write_text(full_data.summary.to_json(), encoding="utf-8")
    said = _run("report", release)
    assert said["out"] == str(release / "report.html")
    page = Path(said["out"]).read_text(encoding="utf-8")
    assert full_data.summary.title in page
    assert "No curve is shown" not in page


def test_report_says_when_the_certificate_is_false(release: Path) -> None:
    file = release / "certificate.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    content["epsilons"]["pair"]["zero-out"] /= 2
    file.write_text(json.dumps(content), encoding="utf-8")
    said = _run("report", release)
    assert said["valid"] is False
    assert "the certificate does not hold" in (release / "report.html").read_text(encoding="utf-8")


@pytest.fixture
def public_table(tmp_path: Path, full_data) -> Path:
    names = [name for name, _ in full_data.metric.weights]
    rng = np.random.default_rng(2)
    classes = rng.choice(["benign", "malignant", "benign & <b>odd</b>", "d", "e"], size=80)
    rows = rng.normal(size=(80, 6)) + (classes == "malignant")[:, None]
    file = tmp_path / "public.csv"
    lines = [",".join(["id", *names, "diagnosis"])]
    lines += [",".join([f"p{i}", *map(str, row), classes[i]]) for i, row in enumerate(rows)]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def test_a_public_table_gives_scores_and_a_map(release: Path, public_table: Path) -> None:
    said = _run(
        "report", release, "--public-test", public_table, "--test-classes", "diagnosis",
        "--title", "Tumours", "--institution", "St. Anna", "--purpose", "P", "--recipient", "R",
    )  # fmt: skip
    page = Path(said["out"]).read_text(encoding="utf-8")
    assert "80 people (public.csv)" in page
    assert "St. Anna · pairveil privacy report" in page
    assert "<b>odd</b>" not in page
    assert "No curve is shown" not in page
    assert "No points are drawn" not in page


def test_a_public_table_needs_its_classes(release: Path, public_table: Path) -> None:
    with pytest.raises(InputError, match="go together"):
        _run("report", release, "--public-test", public_table)
    with pytest.raises(InputError, match="there is no file"):
        _run("report", release, "--public-test", "nowhere.csv", "--test-classes", "diagnosis")
    with pytest.raises(InputError, match="has no column"):
        _run("report", release, "--public-test", public_table, "--classes", "nothing")
    assert not (release / "report.html").exists()


@pytest.mark.parametrize("to", ["csv", "sql", "sklearn", "onnx"])
def test_export_writes_every_format(release: Path, tmp_path: Path, to: str) -> None:
    if to == "onnx":
        pytest.importorskip("onnx", reason="onnx is not installed")
    said = _run("export", release, "--to", to, "-o", tmp_path / "metric.out")
    assert said["bytes"] == (tmp_path / "metric.out").stat().st_size > 100


def test_no_release_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no release"):
        _run("report", tmp_path)
    with pytest.raises(InputError, match="holds no release"):
        _run("export", tmp_path, "--to", "csv", "-o", tmp_path / "out.csv")
