"""Released rankings and clusters: written whole, loaded without training data, checked, shown, signed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.clustering import draw_links
from benchmarks.ranking import draw_crowd

import pairveil
from pairveil import InputError, PrivateConstrainedKMeans, PrivatePreferenceRanker
from pairveil.privacy.units import POINTS_ARE_PUBLIC
from pairveil.release import signing
from pairveil.release.payloads import ReleasedClusters, ReleasedRanking
from pairveil.release.release import load_release
from pairveil.report.facts import read_release
from pairveil.report.page import render

pytestmark = pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")


@pytest.fixture(scope="module")
def ranker() -> PrivatePreferenceRanker:
    crowd = draw_crowd(0, n_workers=80, asked=10, features=False)
    return PrivatePreferenceRanker(epsilon=1.0).fit(crowd.choices, items=20)


@pytest.fixture(scope="module")
def clusters() -> PrivateConstrainedKMeans:
    y = np.arange(90) % 3
    X = np.eye(3)[y] * 5 + np.random.default_rng(0).normal(size=(90, 3))
    ml, cl = draw_links(y, 60, seed=0)
    return PrivateConstrainedKMeans(3, spectral=False).fit(X, ml=ml, cl=cl)


def test_a_ranking_is_read_back_as_it_was(ranker, tmp_path: Path) -> None:
    found = load_release(ranker.release(tmp_path / "out"))
    assert isinstance(found, pairveil.ReleasedRanking)
    assert (found.strengths == ranker.strengths_).all()
    assert found.ranking == tuple(ranker.ranking_)
    assert (found.rank_low == ranker.rank_low_).all()
    assert found.preference(0, 1) == ranker.preference(0, 1)
    assert found.certificate.verify().problems == ()
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "ranking.json", "certificate.json", "README.md"
    }  # fmt: skip


def test_clusters_are_read_back_as_they_were(clusters, tmp_path: Path) -> None:
    found = load_release(clusters.release(tmp_path / "out"))
    assert isinstance(found, pairveil.ReleasedClusters)
    assert (found.labels == clusters.labels_).all()
    assert found.chosen == clusters.chosen_
    rows = clusters.cluster_centers_ + 0.1
    assert (found.predict(rows) == clusters.predict(rows)).all()
    with pytest.raises(InputError, match="3 columns"):
        found.predict([[1.0]])


def test_a_release_of_centres_alone_is_read_as_before(clusters, tmp_path: Path) -> None:
    centres = ReleasedClusters(centers=clusters.cluster_centers_, certificate=clusters.certificate_)
    assert ReleasedClusters.load(centres.save(tmp_path / "out")).labels is None
    page = render(read_release(tmp_path / "out"))
    assert "which cluster a point is in is not handed out" in page


def test_nothing_without_a_promise_is_released(tmp_path: Path) -> None:
    ranker = PrivatePreferenceRanker(epsilon=float("inf")).fit([[0, 0, 1], [1, 0, 1]], 2)
    with pytest.raises(InputError, match="nothing to release"):
        ranker.release(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_earlier_releases_stay_unless_overwriting_is_allowed(ranker, tmp_path: Path) -> None:
    folder = ranker.release(tmp_path / "out")
    with pytest.raises(InputError, match="already holds a release"):
        ranker.release(folder)
    ranker.release(folder, overwrite=True)
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="other files"):
        ranker.release(folder, overwrite=True)


def test_a_changed_file_is_refused(ranker, tmp_path: Path) -> None:
    file = ranker.release(tmp_path / "out") / "ranking.json"
    file.write_text(file.read_text().replace("1", "2", 1))
    with pytest.raises(InputError, match="SHA-256 differs"):
        ReleasedRanking.load(tmp_path / "out")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"format": "other"}, "no pairveil ranking"),
        ({"version": 9}, "another version"),
        ({"strengths": ["a"]}, "wrong type"),
        ({"strengths": []}, "wrong type"),
        ({"strengths": None}, "wrong type"),
        ({"names": ["one"]}, "wrong type"),
        ({"rank_low": 7}, "wrong type"),
    ],
)
def test_damaged_files_are_told(change, told, tmp_path: Path) -> None:
    found = ReleasedRanking(strengths=[1.0, 0.0], names=["a", "b"])
    file = found.save(tmp_path / "out") / "ranking.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(InputError, match=told):
        ReleasedRanking.load(tmp_path / "out")


def test_a_signed_ranking_that_is_changed_is_found_out(ranker, tmp_path: Path) -> None:
    folder = ranker.release(tmp_path / "out")
    public = signing.new_key(tmp_path / "key.pem")
    signing.sign(folder, tmp_path / "key.pem")
    assert signing.check_signature(folder, public).uncovered == ()
    (folder / "ranking.json").write_text("{}")
    with pytest.raises(InputError, match="tampered"):
        signing.check_signature(folder, public)


def test_the_page_of_clusters_promises_nothing_of_the_points(clusters, tmp_path: Path) -> None:
    page = render(read_release(clusters.release(tmp_path / "out")))
    assert POINTS_ARE_PUBLIC in clusters.certificate_.public
    assert "features, and which of them are linked are public" in page
    assert "features and labels" not in page
    assert "ReleasedClusters" in page
    assert "clusters.json" in page
    assert "metric.safetensors" not in page


def test_the_page_of_a_ranking_speaks_of_workers(ranker, tmp_path: Path) -> None:
    page = render(read_release(ranker.release(tmp_path / "out")))
    for words in ("A ranking of 20 items", "workers", "ReleasedRanking", "worst place"):
        assert words in page
    for words in ("distance metric", "made with this metric", "metric.safetensors"):
        assert words not in page
