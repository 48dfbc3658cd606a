"""`certificate` and `sign`: what was recomputed, what is the sender's word, who signed, which graph."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import run_here as run

from pairveil import (
    Certificate,
    DPPMetricLearner,
    DPPTripletLearner,
    PairSet,
    error_curve,
)
from pairveil.jobs.received import make_salt, recount
from pairveil.learners.preparing import entity_sentence
from pairveil.linkage import PrivateLinkageModel
from pairveil.privacy.units import PEOPLE_TOGETHER, UNITS, public_of
from pairveil.records.identity import index_pairs
from pairveil.records.kinds import COUNTED_PAIRS, GROUPS
from pairveil.records.tables import PairTable

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
    lead, checked = shown.out.splitlines()[:2]
    assert re.fullmatch(r"Verified\. At most \d\d in 100 for a relationship\. .*Not signed\.", lead)
    assert "Nothing for a person." in lead
    assert checked.startswith("Numbers check out: every epsilon was recomputed")
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
    assert "the pairs of the selection 'paths' were found again" in told
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


PATH = np.column_stack([np.arange(399), np.arange(1, 400)])
NAMES = np.array([f"p{i:03d}" for i in range(400)], dtype=object)


def _forged(certificate: Certificate, **changes: Any) -> Certificate:
    """A certificate with other words and costs, whose epsilons are recomputed."""
    c = certificate
    fields: dict[str, Any] = {
        "kappas": c.kappas, "public": c.public, "plan": c.plan, "costs": c.costs,
        "selection": c.selection, "n_pairs_used": c.n_pairs_used, **changes,
    }  # fmt: skip
    if fields["kappas"] is not c.kappas:
        full = fields["kappas"]["relationship"]
        fields["selection"] = {**c.selection, "full_graph_relationship_kappa": full}
    return Certificate.issue(
        c._events(), delta=c.delta, unit=c.unit, adjacency=c.adjacency, mechanism=c.mechanism,
        n_pairs_given=c.n_pairs_given, noise_source=c.noise_source, for_release=True,
        delta_slack=c.delta_slack,
        **{**fields, "public": [one for one in fields["public"] if one not in public_of(fields["costs"])]},
    )  # fmt: skip


def _fitted(**options: Any) -> Certificate:
    rng = np.random.default_rng(0)
    features, labels = rng.uniform(-0.4, 0.4, (400, 4)), np.resize([1, -1], 399)
    data = PairSet(features, PATH, labels, ids=NAMES, together=options.pop("together", None))
    given = {"epsilon": 2.0, "unit": "person", "select": "all", **options}
    learner = DPPMetricLearner(**given)
    return learner.certify(data)


def _linked(**options: Any) -> Certificate:
    levels = np.random.default_rng(0).integers(0, 2, (399, 2))
    model = PrivateLinkageModel(**{"epsilon": 2.0, "unit": "person", "select": "all", **options})
    return model.certify(levels, np.resize([1, -1], 399), NAMES[PATH], n_levels=2)


def _groups(size: int) -> Certificate:
    """What a sender writes who calls the whole path groups."""
    c = _fitted()
    plan = json.loads(json.dumps(c.plan))
    for query in plan["releases"]:
        query["records"] = "groups"
    ones = dict.fromkeys(UNITS, 1)
    costs = {"groups": GROUPS.costs()}
    return _forged(c, plan={**plan, "group_size": size}, kappas=ones, costs=costs)


def _few_records() -> Certificate:
    c, kappas = _linked(), {"pair": 1, "relationship": 2, "person": 2}
    plan = {**c.plan, "linkage": {**c.plan["linkage"], "entity_records": 5}}
    costs = {"counted pairs": COUNTED_PAIRS.costs(kappas)}
    said = [*c.public, entity_sentence(5)]
    return _forged(c, plan=plan, public=said, kappas=kappas, costs=costs)


def _two_bounds() -> Certificate:
    c = _few_records()
    return _forged(c, public=[*c.public, entity_sentence(2)])


def _with_curve() -> Certificate:
    rng = np.random.default_rng(0)
    found = error_curve(
        rng.random(399), np.resize([1, -1], 399), NAMES[PATH], 2.0, 1e-5, (0, 1), unit="person"
    )
    return found.with_model(_linked())


def _threshold(same: bool) -> Certificate:
    rng = np.random.default_rng(0)
    data = PairSet(rng.uniform(-0.4, 0.4, (400, 4)), PATH, np.resize([1, -1], 399), ids=NAMES)
    learner = DPPMetricLearner(epsilon=2.0, unit="person", select="all").fit(data)
    rows = np.arange(399 if same else 398)
    learner.calibrate_threshold(data.subset(rows), data.labels[rows], epsilon=1.0)
    return learner.threshold_certificate_


HOMES = np.arange(400) // 20
COUNTED: dict[str, tuple[Callable[[], Certificate], bool | None, tuple[str, ...]]] = {
    "single people": (_fitted, True, ()),
    "a selection": (lambda: _fitted(select="matching"), True, ()),
    "a declared kappa": (lambda: _fitted(kappa=7), True, ()),
    "a seed and all pairs": (lambda: _fitted(random_state=0), True, ()),
    "a seed": (lambda: _fitted(random_state=0, select="matching"), None, UNITS),
    "homes": (lambda: _fitted(together=HOMES), None, ("person",)),
    "homes, selected": (lambda: _fitted(together=HOMES, select="paths"), None, UNITS),
    "homes of one": (
        lambda: _forged(c := _fitted(), public=[*c.public, PEOPLE_TOGETHER]), None, ("person",)
    ),
    "counted": (_linked, True, ()),
    "five records": (lambda: _linked(entity_records=5), True, ()),
    "five records, counted as one": (_few_records, False, ("pair",)),
    "two bounds": (_two_bounds, None, ("relationship", "person")),
    "a model and its curve": (_with_curve, None, UNITS),
    "a threshold on the same pairs": (lambda: _threshold(same=True), True, ()),
    "a threshold on others": (lambda: _threshold(same=False), None, UNITS),
    "real groups": (lambda: _fitted(select="groups"), True, ()),
    "a path of groups": (lambda: _groups(8), False, ()),
    "a path of one large group": (lambda: _groups(400), False, ()),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::pairveil.errors.PairveilWarning")
@pytest.mark.parametrize("what", COUNTED)
def test_kappa_is_said_to_be_counted_only_in_its_own_meaning(what: str) -> None:
    """Three forged releases (2.0 stated, up to 35.6 true) had their kappa 'recounted'."""
    make, matches, unknown = COUNTED[what]
    certificate = make()
    assert certificate.verify().problems == ()
    listed = PairTable(left=NAMES[PATH[:, 0]], right=NAMES[PATH[:, 1]])
    found = recount(certificate, index_pairs(listed), None)
    assert found.kappa_matches is matches, (found.sentences, found.problems)
    if matches is not False:
        assert found.problems == []
        assert found.unknown == tuple(unknown)
        assert sum("was not counted" in one for one in found.sentences) == len(unknown)


def test_records_that_are_no_pairs_are_not_recounted_from_pairs() -> None:
    rng = np.random.default_rng(0)
    people, listed = rng.uniform(-0.4, 0.4, (399, 3)), PairTable(left=PATH[:, 0], right=PATH[:, 1])
    classes = DPPMetricLearner(epsilon=9.0, unit="person").certify_classes(
        people, np.resize([0, 1], 399), classes=[0, 1]
    )
    tuples = DPPTripletLearner(epsilon=9.0, preprocessor=people).certify(
        np.arange(399).reshape(-1, 3)
    )
    for certificate, kind in ((classes, "people"), (tuples, "tuples")):
        assert certificate.records == kind
        found = recount(certificate, index_pairs(listed), None)
        assert (found.kappa_matches, found.problems) == (None, [])
        assert found.unknown == UNITS


def test_what_was_not_counted_stays_the_senders_word(ring: Path, tmp_path: Path) -> None:
    homes = tmp_path / "people.csv"
    lines = (ring / "people.csv").read_text(encoding="utf-8").splitlines()
    told = [f"{lines[0]},home", *(f"{line},{i // 4}" for i, line in enumerate(lines[1:]))]
    homes.write_text("\n".join(told), encoding="utf-8")
    words = ["fit", homes, ring / "pairs.csv", "--no-scale", "--epsilon", 4, "--delta", 1e-3]
    more = ["--together", "home", "--select", "all", "--out", "release"]
    assert run(*words, *more, cwd=tmp_path).code == 0
    shown = run("certificate", "release", "--pairs", ring / "pairs.csv", cwd=tmp_path)
    assert shown.code == 0
    said = " ".join(shown.out.split())
    assert "Noise, and kappa of unit person, are the sender's word; not signed." in said
    assert "kappa of unit 'person' was not counted: it covers people who change together" in said
    words = ["certificate", "release", "--pairs", ring / "pairs.csv", "--json"]
    assert run(*words, cwd=tmp_path).json["kappa_matches"] is None


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
    readme = (folder / "README.md").read_text()
    (folder / "README.md").write_text(f"{readme} changed")
    unkeyed = run("certificate", folder, cwd=tmp_path)  # that needs no key to be seen
    assert (unkeyed.code, "tampered with: README.md" in unkeyed.err) == (2, True)
    assert "Verified" not in unkeyed.out
    (folder / "README.md").write_text(readme)
    (folder / "metric.safetensors").write_bytes(b"changed")
    tampered = run(*checked, cwd=tmp_path)
    assert (tampered.code, "tampered with: metric.safetensors" in tampered.err) == (2, True)
    shutil.copy(ring / "release" / "metric.safetensors", folder)
    (folder / "certificate.json").unlink()
    bare = run(*checked, cwd=tmp_path)
    assert (bare.code, "tampered with: certificate.json" in bare.err) == (2, True)


def test_a_salt_is_there_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill before the write left an empty file, which every later command refused."""
    seen = []

    def before(descriptor: int) -> None:
        seen.append((tmp_path / "salt.txt").exists())

    monkeypatch.setattr(os, "fsync", before)
    salt = make_salt(tmp_path / "salt.txt")
    assert seen[0] is False
    assert (len(salt), make_salt(tmp_path / "salt.txt")) == (32, salt)
    assert stat.S_IMODE((tmp_path / "salt.txt").stat().st_mode) == 0o600


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
