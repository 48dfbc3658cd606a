"""A release is whole, is what its certificate says, and runs nothing when it is read."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from pairveil.errors import InputError
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.mechanisms import Query
from pairveil.privacy.noise import TrustedNoise
from pairveil.privacy.units import SELECTED_CAVEAT
from pairveil.release.metric import ReleasedMetric

QUERY = Query("gradients", (3, 3), 40.0, 100)


@pytest.fixture
def certificate():
    return Certificate.issue(
        [QUERY.event()],
        delta=1e-5,
        unit="relationship",
        adjacency="zero-out",
        kappas={"pair": 1, "relationship": 1, "person": 2},
        mechanism="gaussian",
        n_pairs_given=900,
        n_pairs_used=500,
        selection={
            "how": "paths",
            "caveat": SELECTED_CAVEAT,
            "full_graph_relationship_kappa": 13,
        },
        noise_source=TrustedNoise().name,
        for_release=True,
        delta_slack=1e-12,
        plan={"releases": [QUERY.to_dict()], "n_features": 3, "n_components": None},
    )


@pytest.fixture
def metric(certificate):
    L = np.random.default_rng(0).normal(size=(2, 3))
    return ReleasedMetric(L, certificate, ("age", "height", "weight"), np.array([0.1, 1.0, 2.0]))


def test_what_is_saved_is_what_is_loaded(metric, tmp_path):
    loaded = ReleasedMetric.load(metric.save(tmp_path / "release"))
    assert np.array_equal(loaded.components, metric.components)
    assert np.array_equal(loaded.column_scale, metric.column_scale)
    assert loaded.feature_names == metric.feature_names
    assert loaded.certificate.epsilon == metric.certificate.epsilon
    assert loaded.certificate.verify()
    assert sorted(p.name for p in (tmp_path / "release").iterdir()) == [
        "README.md",
        "certificate.json",
        "metric.safetensors",
    ]


def test_distance_is_the_length_of_the_projected_difference(metric):
    A, B = np.random.default_rng(1).normal(size=(2, 5, 3))
    wanted = [np.linalg.norm(metric.components @ (a - b)) for a, b in zip(A, B, strict=True)]
    np.testing.assert_allclose(metric.distance(A, B), wanted)
    np.testing.assert_allclose(metric.transform(A), A @ metric.components.T)


def test_a_changed_metric_is_refused(metric, tmp_path):
    folder = metric.save(tmp_path / "release")
    other = ReleasedMetric(metric.components * 2, None, metric.feature_names, metric.column_scale)
    blob = other.save(tmp_path / "other") / "metric.safetensors"
    (folder / "metric.safetensors").write_bytes(blob.read_bytes())
    with pytest.raises(InputError, match="changed after the release"):
        ReleasedMetric.load(folder)


@pytest.mark.parametrize("keep", [0, 7, 100, -10])
def test_a_truncated_metric_is_refused(metric, tmp_path, keep):
    folder = metric.save(tmp_path / "release")
    file = folder / "metric.safetensors"
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(InputError, match="damaged or truncated"):
        ReleasedMetric.load(folder)


def test_a_damaged_or_newer_certificate_is_refused(metric, tmp_path):
    folder = metric.save(tmp_path / "release")
    file = folder / "certificate.json"
    whole = file.read_text()
    file.write_text(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="not JSON"):
        ReleasedMetric.load(folder)
    file.write_text(json.dumps({**json.loads(whole), "version": 99}))
    with pytest.raises(InputError, match="version"):
        ReleasedMetric.load(folder)


def test_a_lowered_epsilon_is_found(metric, tmp_path):
    folder = metric.save(tmp_path / "release")
    file = folder / "certificate.json"
    data = json.loads(file.read_text())
    data["epsilon"] = data["epsilons"]["relationship"]["zero-out"] = 0.01
    file.write_text(json.dumps(data))
    assert not ReleasedMetric.load(folder).certificate.verify()


@pytest.mark.parametrize("name", ["n_features", "n_components"])
def test_a_certificate_of_another_shape_is_refused(metric, name):
    plan = {**metric.certificate.plan, name: 7}
    other = replace(metric.certificate, plan=plan)
    with pytest.raises(InputError, match="do not belong together"):
        ReleasedMetric(metric.components, other)


def test_foreign_files_are_never_replaced(metric, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="other files"):
        metric.save(folder, overwrite=True)
    assert (folder / "thesis.txt").read_text() == "years of work"


def test_an_earlier_release_is_replaced_only_on_request(metric, tmp_path):
    folder = metric.save(tmp_path / "release")
    with pytest.raises(InputError, match="already holds a release"):
        metric.save(folder)
    better = ReleasedMetric(metric.components + 1, metric.certificate, metric.feature_names)
    better.save(folder, overwrite=True)
    assert np.array_equal(ReleasedMetric.load(folder).components, better.components)
    assert [p.name for p in tmp_path.iterdir()] == ["release"]


def test_an_interrupted_save_leaves_nothing(metric, tmp_path, monkeypatch):
    monkeypatch.setattr(
        Certificate, "to_json", lambda self: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    with pytest.raises(KeyboardInterrupt):
        metric.save(tmp_path / "release")
    assert list(tmp_path.iterdir()) == []


def test_not_finite_or_empty_is_no_metric():
    for bad in (np.array([[np.nan]]), np.zeros((0, 3)), np.zeros(3)):
        with pytest.raises(InputError):
            ReleasedMetric(bad)


def test_loading_needs_neither_scikit_learn_nor_numba(metric, tmp_path):
    folder = metric.save(tmp_path / "release")
    code = (
        "import sys; from pairveil import ReleasedMetric; "
        f"m = ReleasedMetric.load({str(folder)!r}); m.transform([[1, 2, 3]]); "
        "heavy = {'sklearn', 'numba', 'scipy', 'pandas', 'pyarrow', 'dp_accounting'} & set(sys.modules); "
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
