"""Files that earlier versions wrote are read and verified by the rules of their own version."""

import json
from pathlib import Path

import numpy as np
import pytest

from pairveil import Certificate, PrivacyLedger, ReleasedMetric
from pairveil.privacy.verdict import verdict
from pairveil.release.release import load_release
from pairveil.release.signing import check_signature

STORED = Path(__file__).parents[1] / "stored"
V1, V2 = STORED / "v1", STORED / "v2"
RELEASES = sorted(file.parent for file in STORED.rglob("certificate.json"))
# What version 0.2 (6c0f3a9) said of its own files.
SPENT = 8.890551503020456
MAPPED = [0.44339695] * 6


def test_every_kind_of_release_is_stored():
    kinds = {type(load_release(folder)).__name__ for folder in RELEASES}
    assert kinds == {
        "ReleasedMetric", "ReleasedLinkage", "ErrorCurve", "ReleasedRanking", "ReleasedClusters",
        "DescribedNetwork",
    }  # fmt: skip


@pytest.mark.parametrize("folder", RELEASES, ids=lambda one: f"{one.parent.name}-{one.name}")
def test_a_stored_release_still_verifies(folder):
    release = load_release(folder)
    assert release.certificate.verify().problems == ()
    # The levels of the stored linkage model were read off its pairs, which is not for release.
    fit = folder.name != "linkage"
    assert (release.certificate.for_release, verdict(release.certificate).usable) == (fit, fit)
    # Written again it is the same file: nothing new is put into it.
    stored = json.loads((folder / "certificate.json").read_text())
    assert release.certificate.to_dict() == stored


@pytest.mark.parametrize("name", ["gaussian", "laplace", "poisson"])
def test_a_release_of_version_0_1_is_what_it_was(name):
    metric = ReleasedMetric.load(V1 / name)
    assert metric.feature_names == ("age", "height", "weight")
    assert metric.certificate.graph_digest is None
    assert 0.5 < metric.certificate.best_guess("pair") < 1.0


@pytest.mark.parametrize("name", ["gaussian", "poisson"])
def test_its_slack_is_that_of_its_names(name):
    data = json.loads((V1 / name / "certificate.json").read_text())
    data["delta_slack"] /= 2
    problems = Certificate.from_dict(data).verify().problems
    assert any("set aside" in problem for problem in problems)


def test_a_ledger_of_version_0_2_spends_what_it_spent():
    before = (V2 / "ledger.json").read_bytes()
    ledger = PrivacyLedger.open(V2 / "ledger.json")
    assert len(ledger.entries) == 4
    assert ledger.spent() == pytest.approx(SPENT, rel=1e-9)
    assert (V2 / "ledger.json").read_bytes() == before  # to look is not to rewrite


def test_a_schema_and_a_signature_of_version_0_2_still_hold():
    folder = V2 / "schema"
    assert check_signature(folder, V2 / "signer.pem.pub")
    np.testing.assert_allclose(ReleasedMetric.load(folder).transform([[0.1] * 6])[0], MAPPED)
