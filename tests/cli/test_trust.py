"""`certificate` and `sign`: what was recomputed, what is the sender's word, who signed, which graph."""

from __future__ import annotations

import csv
import json
import shutil
import stat
from pathlib import Path

import pytest
from running import run_here as run

N = 60


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """People in a ring, so that every selection of paths keeps all pairs but one; and a release."""
    here = tmp_path_factory.mktemp("ring")
    with (here / "people.csv").open("w", newline="", encoding="utf-8") as file:
        rows = [[f"q{i}", i % 7 / 20, i % 3 / 9] for i in range(N)]
        csv.writer(file).writerows([["id", "a", "b"], *rows])
    _write(here / "pairs.csv", [[f"q{i}", f"q{(i + 1) % N}"] for i in range(N)])
    words = ["fit", "--no-scale", "people.csv", "pairs.csv", "--epsilon", 4, "--delta", 1e-3]
    done = run(*words, "--out", "release", "--graph-salt", "salt.txt", cwd=here)
    assert done.code == 0, done.err
    return here


def _write(path: Path, ends: list[list[str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        labels = [[*pair, "same" if i % 2 else "different"] for i, pair in enumerate(ends)]
        csv.writer(file).writerows([["left", "right", "label"], *labels])


def test_it_says_what_was_checked_and_what_was_not(ring: Path) -> None:
    shown = run("certificate", "release", cwd=ring)
    assert shown.code == 0
    assert shown.out.startswith("Numbers check out: every epsilon was recomputed")
    assert "times in 100" in shown.out
    assert "Left out: 1 pair with an answer." in shown.out
    assert "knows less can sometimes learn more" in shown.out
    assert "best guess right" in shown.out
    assert "recomputed: every epsilon" in " ".join(shown.out.split())
    assert "Noise and kappa are the sender's word; not signed." in shown.out
    said = run("certificate", "release", "--json", cwd=ring).json
    assert (said["valid"], said["signed"], said["signature"]) == (True, False, "absent")
    assert said["kappa_matches"] is None
    assert 0.5 < said["best_guess"]["relationship"] < said["best_guess"]["person"] < 1.0
    assert said["recomputed"]
    assert said["senders_word"]


def test_kappa_is_recounted_and_the_graph_compared(ring: Path) -> None:
    words = ["certificate", "release", "--pairs", "pairs.csv"]
    said = run(*words, "--salt", "salt.txt", "--json", cwd=ring).json
    assert (said["kappa_matches"], said["graph_matches"]) == (True, True)
    shown = run(*words, "--salt", "salt.txt", cwd=ring)
    told = " ".join(shown.out.split())
    assert "kappa of all pairs was recounted: 2, stated 2" in told
    assert "selection 'paths' was made again" in told
    assert "its digest agrees" in told
    assert "Noise is the sender's word; not signed." in told
    without = run(*words, "--json", cwd=ring).json
    assert (without["kappa_matches"], without["graph_matches"]) == (True, None)


def test_another_graph_is_refused(ring: Path, tmp_path: Path) -> None:
    # As many pairs and the same kappas, but other people: only the digest tells.
    moved = [[f"q{(7 * i) % N}", f"q{(7 * (i + 1)) % N}"] for i in range(N)]
    _write(tmp_path / "other.csv", moved)
    words = ["certificate", ring / "release", "--pairs", "other.csv"]
    done = run(*words, "--salt", ring / "salt.txt", "--json", cwd=tmp_path)
    assert done.code == 2
    assert json.loads(done.out)["graph_matches"] is False
    assert "the digest differs" in done.err
    # Chords: a larger kappa than is stated.
    _write(tmp_path / "chords.csv", [*moved[:-6], *([f"q{i}", f"q{i + 30}"] for i in range(6))])
    done = run("certificate", ring / "release", "--pairs", "chords.csv", "--json", cwd=tmp_path)
    assert done.code == 2
    assert json.loads(done.out)["kappa_matches"] is False
    # Fewer pairs.
    _write(tmp_path / "fewer.csv", moved[:20])
    done = run("certificate", ring / "release", "--pairs", "fewer.csv", cwd=tmp_path)
    assert (done.code, "60 were given" in done.err) == (2, True)


def test_the_salt_is_for_its_owner_and_not_in_the_release(ring: Path) -> None:
    salt = ring / "salt.txt"
    assert stat.S_IMODE(salt.stat().st_mode) == 0o600
    written = (ring / "release" / "certificate.json").read_text()
    assert salt.read_text().strip() not in written
    assert len(json.loads(written)["graph_digest"]) == 64
    done = run("certificate", "release", "--salt", "salt.txt", cwd=ring)
    assert (done.code, "--pairs" in done.err) == (2, True)
    done = run("certificate", "release", "--pairs", "pairs.csv", "--salt", "pairs.csv", cwd=ring)
    assert (done.code, "holds no salt" in done.err) == (2, True)


def test_signing(ring: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(ring / "release", tmp_path / "release"))
    said = run("sign", "--new-key", "key.pem", "--json", cwd=tmp_path).json
    assert said == {"key": "key.pem", "public_key": "key.pem.pub"}
    unsigned = run("certificate", folder, "--signer", "key.pem.pub", "--json", cwd=tmp_path)
    assert unsigned.code == 2
    assert "is not signed" in unsigned.err
    assert json.loads(unsigned.out)["signed"] is False
    assert run("sign", folder, "--key", "key.pem", "--json", cwd=tmp_path).json["signed"] is True
    checked = ["certificate", folder, "--signer", "key.pem.pub"]
    said = run(*checked, "--json", cwd=tmp_path).json
    assert (said["signed"], said["uncovered"]) == (True, [])
    shown = run(*checked, cwd=tmp_path).out
    assert "signed by the holder of the key" in shown
    assert f"Signed on {said['signed_at']}" in shown
    unchecked = run("certificate", folder, cwd=tmp_path)
    assert "by whom was not checked" in unchecked.out
    assert run("certificate", folder, "--json", cwd=tmp_path).json["signature"] == "not checked"
    run("sign", "--new-key", "other.pem", "-q", cwd=tmp_path)
    wrong = run("certificate", folder, "--signer", "other.pem.pub", cwd=tmp_path)
    assert (wrong.code, "wrongly signed" in wrong.err) == (2, True)
    (folder / "report.html").write_text("<h1>epsilon 0.001</h1>")
    assert run(*checked, "--json", cwd=tmp_path).json["uncovered"] == ["report.html"]
    assert "NOT covered by the signature: report.html" in run(*checked, cwd=tmp_path).out
    (folder / "metric.safetensors").write_bytes(b"changed")
    tampered = run(*checked, cwd=tmp_path)
    assert (tampered.code, "tampered with: metric.safetensors" in tampered.err) == (2, True)


def test_a_page_does_not_go_into_a_signed_folder(ring: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(ring / "release", tmp_path / "release"))
    run("sign", "--new-key", "key.pem", cwd=tmp_path)
    run("sign", folder, "--key", "key.pem", cwd=tmp_path)
    done = run("report", folder, cwd=tmp_path)
    assert (done.code, "sign again" in done.err) == (2, True)
    assert not (folder / "report.html").exists()
    assert run("report", folder, "-o", "page.html", cwd=tmp_path).code == 0
    assert run("certificate", folder, "--signer", "key.pem.pub", cwd=tmp_path).code == 0


@pytest.mark.parametrize("how", ["epsilon", "signer", "summary", "metric", "delta"])
def test_a_release_that_fails_a_check_is_not_to_be_used(
    ring: Path, tmp_path: Path, how: str
) -> None:
    folder = Path(shutil.copytree(ring / "release", tmp_path / "release"))
    words = ["certificate", folder]
    content = json.loads((folder / "certificate.json").read_text())
    if how == "epsilon":
        content["epsilon"] = content["epsilons"]["relationship"]["zero-out"] = 0.1
    elif how == "delta":
        content["delta"] = 0.1
    elif how == "summary":
        (folder / "summary.json").write_text("{}")
    elif how == "metric":
        file = folder / "metric.safetensors"
        file.write_bytes(file.read_bytes()[:-1] + b"!")
    else:
        run("sign", "--new-key", "key.pem", "-q", cwd=tmp_path)
        words += ["--signer", "key.pem.pub"]
    (folder / "certificate.json").write_text(json.dumps(content))
    done = run(*words, cwd=tmp_path)
    assert done.code == 2
    assert "do not use" in (done.out + done.err).lower()
    assert "at most" not in (done.out + done.err).lower()
    assert "epsilon of this release" not in done.out
    if how in ("epsilon", "delta"):
        assert run("report", folder, cwd=tmp_path).code == 0
        page = (folder / "report.html").read_text(encoding="utf-8")
        assert "Do not use." in page
        assert "Name and role" not in page


def test_wrong_use_is_one_clear_line(ring: Path, tmp_path: Path) -> None:
    for words in (["sign"], ["sign", ring / "release"], ["sign", "--key", "k"]):
        done = run(*words, cwd=tmp_path)
        assert (done.code, done.out) == (2, "")
        assert "--new-key" in done.err
    run("sign", "--new-key", "key.pem", cwd=tmp_path)
    folder = Path(shutil.copytree(ring / "release", tmp_path / "forged"))
    forged = json.loads((folder / "certificate.json").read_text())
    forged["epsilon"] = forged["epsilons"]["relationship"]["zero-out"] = 0.1
    (folder / "certificate.json").write_text(json.dumps(forged))
    done = run("sign", folder, "--key", "key.pem", cwd=tmp_path)
    assert (done.code, "nothing to stand behind" in done.err) == (2, True)
    assert not (folder / "signature.dsse.json").exists()
