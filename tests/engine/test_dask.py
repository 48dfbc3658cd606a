"""A fit on a cluster of two processes: the same integers, also when a worker dies; the ledger true."""

import importlib.util
import os
import signal
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from pairveil.cli.app import app
from pairveil.engine.backends import dask as dask_backend
from pairveil.engine.backends.local import backend_for
from pairveil.engine.gradients import SetGradient
from pairveil.engine.losses import ContrastiveLoss, TripletLoss
from pairveil.engine.statistics import clipped_sum
from pairveil.errors import InputError
from pairveil.graph.choosing import design_groups, design_pairs, sample_tuples
from pairveil.learners.classes import ClassScatter
from pairveil.learners.contrastive.learner import DPPMetricLearner
from pairveil.learners.contrastive.recipe import GroupMean, Survey
from pairveil.learners.histogram import ScoreCounts
from pairveil.learners.tuples import DPPTripletLearner
from pairveil.linkage.model import LevelCounts
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.records.groups import GroupSet, People
from pairveil.records.ondisk import open_pairs
from pairveil.records.pairset import CountedPairs, PairSet
from pairveil.records.tupleset import TupleSet
from pairveil.release.metric import ReleasedMetric


def make_data(n=5000):
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 6)) * 0.1 + rng.normal(size=(3, 6))[kinds] * 0.2
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    pairs = design_pairs(n, random_state=0)
    return PairSet(X, pairs, np.where(kinds[pairs[:, 0]] == kinds[pairs[:, 1]], 1, -1))


@pytest.mark.parametrize("rate", [1.0, 0.1])
def test_workers_give_the_integers_of_a_local_sum(client, rate):
    data = make_data()
    gradient = SetGradient(np.eye(2, 6), ContrastiveLoss(1.0), 0.1, (1.0, 0.5), np.arange(1.0, 7.0))
    options = {"separately": rate < 1}
    rows = None if rate == 1 else np.flatnonzero(np.random.default_rng(0).random(4999) < rate)
    cluster = dask_backend.OnCluster(data, client)
    assert len(cluster._parts) > 1
    ours = cluster.add_up(rows, gradient, "l2", 2.0**-31, **options)
    np.testing.assert_array_equal(
        ours, clipped_sum(data, rows, gradient, "l2", 2.0**-31, **options)
    )
    assert ours.any()


def sums_of_other_records():
    """Groups (of two statistics, with tiles below 1,024), tuples, people and counted pairs."""
    rng = np.random.default_rng(1)
    W = rng.normal(size=(3, 80)) * 0.2
    kinds = rng.integers(-1, 4, 9_000)
    X = rng.normal(size=(9_000, 80)) * 0.05
    groups = GroupSet.of_classes(X, design_groups(9_000, 8, random_state=0), kinds)
    vacant = groups.members.copy()
    vacant[::3, 7] = -1  # groups of seven
    some = GroupSet.of_classes(X, vacant, kinds)
    triples = TupleSet(X, sample_tuples(3000, 3, 2, random_state=0)).canonical()[0]
    yield groups, SetGradient(W, ContrastiveLoss(1.0), 0.1, (1.0, 0.5), size=8)
    yield some, GroupMean(Survey(80, 2.0, Survey.bound("l2")), 8)
    yield triples, SetGradient(W, TripletLoss(margin=0.5), 0.1, size=3)
    yield People(X, kinds, 4), ClassScatter(4, np.zeros(80), np.ones(80), ClassScatter.bound("l2"))
    labels, ends = rng.integers(-1, 2, 9_000).astype(np.int8), rng.integers(0, 500, (9_000, 2))
    levels = CountedPairs(rng.integers(-1, 2, (9_000, 2)), labels, ends, np.arange(500))
    yield levels, LevelCounts((2, 2), False, LevelCounts.bound(2, "l2"))
    cells = CountedPairs(rng.integers(0, 9, (9_000, 1)), labels)  # of nobody knows whom
    yield cells, ScoreCounts(9, ScoreCounts.bound(9, "l2"))


def test_all_other_records_have_the_same_integers_too(client):
    for data, statistic in sums_of_other_records():
        cluster = dask_backend.OnCluster(data, client)
        assert (cluster.kind, len(cluster._parts) > 1) == (data.kind, True)
        ours = cluster.add_up(None, statistic, "l2", 2.0**-31)
        np.testing.assert_array_equal(ours, clipped_sum(data, None, statistic, "l2", 2.0**-31))
        assert ours.any()


@pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")
def test_fits_to_groups_tuples_and_classes_are_the_same_on_a_cluster(client):
    data = make_data(2400)
    X, kinds = data.features, np.arange(2400) % 3
    triples = TupleSet.of_classes(X, sample_tuples(2400, 3, 2, random_state=0), kinds)
    made = []
    for backend in ("auto", "dask"):
        common = {"backend": backend, "random_state": 0, "epsilon": 8.0}
        made.append([
            DPPMetricLearner(select="groups", n_steps=2, **common).fit(data),
            DPPMetricLearner(n_steps=2, **common).fit_classes(X, kinds, [0, 1, 2], groups=3),
            DPPMetricLearner(unit="person", **common).fit_classes(X, kinds, [0, 1, 2]),
            DPPTripletLearner(n_steps=2, **common).fit(triples),
        ])  # fmt: skip
    for local, remote in zip(*made, strict=True):
        np.testing.assert_array_equal(remote.components_, local.components_)
        assert remote.certificate_ == local.certificate_


def test_records_that_stay_here_are_refused_before_the_charge(client):
    with pytest.raises(InputError, match="choices are summed on this machine"):
        backend_for(SimpleNamespace(kind="choices"), "dask")


def test_a_fit_is_the_same_when_a_worker_dies_and_the_ledger_is_true(client):
    data = make_data()
    ledgers = [PrivacyLedger(2.0, 1e-4) for _ in range(2)]
    options = {"n_steps": 6, "random_state": 0}
    local = DPPMetricLearner(accountant=ledgers[0], **options).fit(data)
    # Not through a task: a task that ends its worker would be tried again on the next one.
    victim = next(iter(client.run(os.getpid).values()))
    seen = []

    def kill_once(share, spent):
        seen.append(share)
        if len(seen) == 4:
            os.kill(victim, signal.SIGKILL)

    remote = DPPMetricLearner(backend="dask", accountant=ledgers[1], **options)
    remote.fit(data, on_step=kill_once)
    assert len(seen) > 6
    np.testing.assert_array_equal(remote.components_, local.components_)
    assert ledgers[1].spent() == ledgers[0].spent()
    assert remote.certificate_.epsilon == local.certificate_.epsilon
    client.wait_for_workers(2, timeout=300)  # the nanny brought one back
    assert victim not in client.run(os.getpid).values()


def test_small_poisson_batches_are_the_same_steps_on_a_cluster(client):
    data = make_data()
    options = {"n_steps": 60, "sample_rate": 0.01, "random_state": 0}
    local = DPPMetricLearner(**options).fit(data)
    remote = DPPMetricLearner(backend="dask", **options).fit(data)
    np.testing.assert_array_equal(remote.components_, local.components_)


def test_features_mapped_from_a_file_do_not_travel(client, tmp_path):
    data = make_data()
    np.save(tmp_path / "people.npy", data.features)
    np.save(tmp_path / "pairs.npy", data.pairs)
    np.save(tmp_path / "labels.npy", data.labels)
    mapped = open_pairs(*(tmp_path / f"{name}.npy" for name in ("people", "pairs", "labels")))
    sent = dask_backend._recipe(mapped, slice(0, 100))[1]["features"]
    assert sent[0] == str(tmp_path / "people.npy")
    assert dask_backend._mapped_path(mapped.features[1:]) is None  # not the whole file
    assert dask_backend._mapped_path(data.features) is None
    gradient = SetGradient(np.eye(2, 6), ContrastiveLoss(1.0), 0.1, (1.0, 0.5))
    cluster = dask_backend.OnCluster(mapped, client, n_parts=3)
    np.testing.assert_array_equal(
        cluster.add_up(None, gradient, "l2", 2.0**-31),
        clipped_sum(data, None, gradient, "l2", 2.0**-31),
    )


def test_workers_read_a_mapped_file_only_if_it_is_these_features_and_no_others(tmp_path):
    """A slice of a mapped file, or one that was changed in memory, is mapped too: its rows must travel."""
    data, file = make_data(), tmp_path / "people.npy"
    n = data.n_people
    strangers = np.full((7, 6), 1e6)  # unchecked, unclipped, and in no pair
    np.save(file, np.vstack([strangers, data.features]))
    changed = np.load(file, mmap_mode="c")
    changed[:n] = data.features
    for features in (np.load(file, mmap_mode="r")[7:], changed[:n], changed):
        given = PairSet(features, data.pairs, data.labels)
        part = dask_backend._build(*dask_backend._recipe(given, slice(0, 100)))
        np.testing.assert_array_equal(
            part.contents(slice(0, 100))[0], given.contents(slice(0, 100))[0]
        )
    square = np.asfortranarray(data.features[:6])
    np.save(file, square)
    assert dask_backend._mapped_path(np.load(file, mmap_mode="r").T) is None
    assert dask_backend._mapped_path(np.load(file, mmap_mode="r").reshape(4, 9)) is None


def test_the_command_line_fits_on_a_cluster(scheduler, tmp_path):
    data = make_data(400)
    columns = [f"c{i}" for i in range(6)]
    people = pd.DataFrame(data.features, columns=columns).rename_axis("id")
    people.to_csv(tmp_path / "people.csv")
    pairs = pd.DataFrame(data.pairs, columns=["left", "right"]).assign(label=data.labels)
    pairs.to_csv(tmp_path / "pairs.csv", index=False)
    command = [str(tmp_path / "people.csv"), str(tmp_path / "pairs.csv"), "--seed", "0", "--json"]
    for out, more in (("local", []), ("remote", ["--dask", scheduler])):
        done = CliRunner().invoke(
            app, ["fit", "--no-scale", *command, "--out", str(tmp_path / out), *more]
        )
        assert done.exit_code == 0, done.output
    local, remote = (ReleasedMetric.load(tmp_path / out) for out in ("local", "remote"))
    np.testing.assert_array_equal(local.components, remote.components)
    nobody = ["--dask", "nonsense://nowhere", "--out", str(tmp_path / "none")]
    refused = CliRunner().invoke(app, ["fit", "--no-scale", *command, *nobody])
    assert isinstance(refused.exception, InputError)
    assert "no Dask scheduler" in str(refused.exception)
    assert not (tmp_path / "none").exists()


def test_the_command_line_fits_what_workers_read(scheduler, tmp_path):
    data = make_data(400)
    names = [f"c{i}" for i in range(6)]
    people = pd.DataFrame(data.features, columns=names)
    people.to_parquet(tmp_path / "people.parquet", index=False)
    people.rename_axis("id").to_csv(tmp_path / "people.csv")
    pairs = pd.DataFrame(data.pairs, columns=["a", "b"]).assign(label=data.labels)
    pairs.to_parquet(tmp_path / "pairs.parquet", index=False)
    far = [f"file://{tmp_path}/people.parquet", f"file://{tmp_path}/pairs.parquet"]
    near = [str(tmp_path / "people.csv"), str(tmp_path / "pairs.parquet")]
    ledger = ["--ledger", str(tmp_path / "budget.json"), "--budget", "3", "--report"]
    words = ["--left", "a", "--right", "b", "--seed", "0", "--json"]
    for out, files, more in (("far", far, [*ledger, "--dask", scheduler]), ("near", near, [])):
        done = CliRunner().invoke(
            app, ["fit", "--no-scale", *files, *words, "--out", str(tmp_path / out), *more]
        )
        assert done.exit_code == 0, done.output
    released, local = (ReleasedMetric.load(tmp_path / out) for out in ("far", "near"))
    np.testing.assert_array_equal(released.components, local.components)
    assert released.feature_names == tuple(names)
    assert (tmp_path / "far" / "report.html").exists()
    assert len(PrivacyLedger.open(tmp_path / "budget.json").entries) == 1
    mistakes = [
        ([*far, *words], "say --dask"),
        ([far[0], near[1], *words, "--dask", scheduler], "both by the workers"),
        ([*far, *words, "--dask", scheduler, "--exclude", "c1"], "--exclude does not apply"),
        ([*far, "--dask", scheduler], "no column 'left'"),
    ]
    for command, says in mistakes:
        refused = CliRunner().invoke(
            app, ["fit", "--no-scale", *command, "--out", str(tmp_path / "none")]
        )
        assert isinstance(refused.exception, InputError)
        assert says in str(refused.exception)
    assert not (tmp_path / "none").exists()


def test_without_a_cluster_or_dask_the_message_says_what_to_do():
    data = make_data(50)
    code = """
        import sys
        {before}
        from pairveil.engine.backends.dask import connected_client
        try:
            connected_client()
        except Exception as error:
            print(type(error).__name__, error)
    """
    missing = 'pip install "pairveil[dask]"'
    cases = [("sys.modules['distributed'] = None", "MissingExtraError", missing)]
    if importlib.util.find_spec("distributed") is not None:
        cases.append(("", "InputError", "connect first"))
        with pytest.raises(InputError, match="connect first"):
            DPPMetricLearner(backend="dask").fit(data)
    for before, kind, message in cases:
        script = textwrap.dedent(code).replace("{before}", before)
        said = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )
        assert said.stdout.startswith(kind)
        assert message in said.stdout
