"""Pairs and features as Dask collections: the integers of a local fit, and nothing private on the driver."""

import os
import signal
import zipfile
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from pairveil.engine.backends import dask_features, dask_pairs
from pairveil.engine.backends.dask import OnCluster
from pairveil.engine.backends.dask_pairs import DaskPairs, open_dask_pairs
from pairveil.engine.gradients import SetGradient
from pairveil.engine.losses import ContrastiveLoss
from pairveil.engine.statistics import clipped_sum
from pairveil.errors import DataWarning, InputError
from pairveil.graph.kappa import kappa
from pairveil.learners.contrastive.learner import DPPMetricLearner
from pairveil.learners.preparing import BOUNDED_BY_DEGREES
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.records.pairset import PairSet

dd = pytest.importorskip("dask.dataframe")
da = pytest.importorskip("dask.array")

N, D, K = 1500, 5, 5000
OPTIONS = {"n_steps": 5, "random_state": 0, "data_norm": 1.0}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 3, N)
    X = rng.normal(size=(N, D)) * 0.1 + rng.normal(size=(3, D))[kinds] * 0.2
    X *= 0.95 / np.maximum(0.95, np.linalg.norm(X, axis=1, keepdims=True))
    left = rng.integers(0, N, 2 * K)
    pairs = np.stack([left, (left + rng.integers(1, N, 2 * K)) % N], axis=1)
    _, first = np.unique(np.sort(pairs, axis=1), axis=0, return_index=True)
    pairs = pairs[np.sort(first)[:K]]  # no pair twice
    return PairSet(X, pairs, np.where(kinds[pairs[:, 0]] == kinds[pairs[:, 1]], 1, -1))


def frame_of(data, columns=("left", "right", "label")):
    return pd.DataFrame(dict(zip(columns, (*data.pairs.T, data.labels), strict=True)))


def collection(frame, cuts=(1000, 1000, 1003, 4100)):
    """A Dask DataFrame with partitions of unequal lengths, one of them empty."""
    edges = [0, *cuts, len(frame)]
    parts = [frame.iloc[a:b] for a, b in pairwise(edges)]
    return dd.from_map(lambda part: part, parts, meta=frame.iloc[:0])


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    """The same people and pairs as files of several kinds."""
    folder = tmp_path_factory.mktemp("files")
    np.save(folder / "people.npy", data.features)
    with zipfile.ZipFile(folder / "people.zip", "w") as archive:
        archive.write(folder / "people.npy", "people.npy")
    for name in ("people", "pairs"):
        (folder / name).mkdir()
    table = pd.DataFrame(data.features, columns=[f"c{i}" for i in range(D)])
    frame = frame_of(data)
    for i, (a, b) in enumerate([(0, 700), (700, 705), (705, N)]):
        table.iloc[a:b].to_parquet(folder / "people" / f"{i}.parquet", index=False)
    for i, (a, b) in enumerate([(0, 10), (10, 2500), (2500, K)]):
        frame.iloc[a:b].to_parquet(folder / "pairs" / f"{i}.parquet", index=False)
    return folder


@pytest.mark.parametrize(
    "kind", ["mapped", "read from an archive", "parquet", "array", "unknown chunks", "frame"]
)
def test_a_fit_gives_the_numbers_of_a_local_one(client, data, folder, kind):
    features = {
        "mapped": f"file://{folder}/people.npy",
        "read from an archive": f"zip://people.npy::file://{folder}/people.zip",
        "parquet": folder / "people",
        "array": da.from_array(data.features, chunks=(400, 2)),
        "unknown chunks": dd.read_parquet(folder / "people").to_dask_array(),
        "frame": dd.read_parquet(folder / "people"),
    }[kind]
    remote = open_dask_pairs(features, f"file://{folder}/pairs")
    assert repr(remote) == f"DaskPairs({N} people, {K} pairs, {D} features, 3 partitions)"
    assert (remote.features.path is not None) == (kind == "mapped")
    local = DPPMetricLearner(**OPTIONS).fit(data)
    ours = DPPMetricLearner(backend="dask", **OPTIONS).fit(remote)
    np.testing.assert_array_equal(ours.components_, local.components_)
    np.testing.assert_array_equal(ours.used_pairs_, local.used_pairs_)
    assert ours.certificate_.to_dict() == local.certificate_.to_dict()


@pytest.mark.parametrize(
    "options",
    [
        {"select": "matching", "unit": "person"},
        {"select": "all"},
        {"select": "all", "sample_rate": 0.05},
        {"select": "paths", "sample_rate": 0.2, "unit": "pair"},
    ],
)
def test_every_unit_and_every_batch(client, data, options):
    remote = open_dask_pairs(da.from_array(data.features, chunks=400), collection(frame_of(data)))
    local = DPPMetricLearner(**OPTIONS, **options).fit(data)
    ours = DPPMetricLearner(backend="dask", **OPTIONS, **options).fit(remote)
    np.testing.assert_array_equal(ours.components_, local.components_)
    assert ours.certificate_.to_dict() == local.certificate_.to_dict()
    assert list(ours.used_pairs_) == list(local.used_pairs_)


def test_float32_and_rows_that_are_clipped(client, data, folder, tmp_path):
    np.save(tmp_path / "people.npy", data.features.astype(np.float32))
    remote = open_dask_pairs(tmp_path / "people.npy", folder / "pairs")
    assert remote.features.dtype == np.float32
    clipped = {**OPTIONS, "data_norm": 0.4}
    near = PairSet(data.features.astype(np.float32), data.pairs, data.labels)
    with pytest.warns(DataWarning, match="people's rows were longer") as there:
        local = DPPMetricLearner(**clipped).fit(near)
    with pytest.warns(DataWarning, match="people's rows were longer") as here:
        ours = DPPMetricLearner(backend="dask", **clipped).fit(remote)
    np.testing.assert_array_equal(ours.components_, local.components_)
    assert [str(w.message) for w in here] == [str(w.message) for w in there]


class Watched:
    """Everything that reaches the driver."""

    def __init__(self, client, monkeypatch):
        self.seen = []
        fetch = client.gather

        def gather(*a, **k):
            found = fetch(*a, **k)
            self.seen += found
            return found

        monkeypatch.setattr(client, "gather", gather)

    def arrays(self):
        for found in self.seen:
            for item in found if isinstance(found, tuple) else (found,):
                if isinstance(item, np.ndarray):
                    yield item


@pytest.mark.parametrize("unit", ["person", "relationship"])
def test_the_driver_sees_degrees_or_pairs_and_never_contents(client, data, monkeypatch, unit):
    remote = open_dask_pairs(da.from_array(data.features, chunks=400), collection(frame_of(data)))
    watched = Watched(client, monkeypatch)
    learner = DPPMetricLearner(backend="dask", unit=unit, select="all", **OPTIONS)
    monkeypatch.setattr("pairveil.engine.backends.dask_pairs.connected_client", lambda: client)
    monkeypatch.setattr("pairveil.engine.backends.records.connected_client", lambda: client)
    learner.fit(remote)
    arrays = list(watched.arrays())
    sums = [a for a in arrays if a.dtype == np.int64]  # of the statistic, far smaller than a part
    assert sums
    assert max(a.size for a in sums) <= D * D + 2
    others = [a for a in arrays if a.dtype != np.int64]
    assert {a.dtype for a in others} == {np.dtype(np.int32)}  # no features, no labels
    degrees = np.bincount(data.pairs.ravel(), minlength=N)
    np.testing.assert_array_equal(others[0], degrees)
    if unit == "person":
        assert len(others) == 1
        assert learner.kappa_ == kappa(data.pairs).person == degrees.max()
        assert learner.used_pairs_ == range(K)
    else:
        ordered = data.canonical()[0].pairs
        np.testing.assert_array_equal(np.concatenate(others[1:]), ordered)
        assert learner.kappa_ == kappa(data.pairs).relationship


def test_person_level_from_degrees_is_the_local_fit_with_the_same_noise(client, data):
    remote = open_dask_pairs(da.from_array(data.features, chunks=400), collection(frame_of(data)))
    options = {**OPTIONS, "unit": "person", "select": "all"}
    local = DPPMetricLearner(**options).fit(data)
    ours = DPPMetricLearner(backend="dask", **options).fit(remote)
    np.testing.assert_array_equal(ours.components_, local.components_)
    assert ours.certificate_.epsilon == local.certificate_.epsilon
    # Of the other units degrees give bounds: nothing smaller than the truth is certified.
    for unit in ("pair", "relationship"):
        assert ours.certificate_.kappas[unit] >= local.certificate_.kappas[unit]
    assert ours.certificate_.verify().problems == ()
    assert BOUNDED_BY_DEGREES in ours.certificate_.public
    assert BOUNDED_BY_DEGREES not in local.certificate_.public
    counted = DPPMetricLearner(backend="dask", **{**options, "unit": "pair"}).certify(remote)
    assert BOUNDED_BY_DEGREES not in counted.public


def test_a_worker_that_dies_changes_nothing_and_the_ledger_is_charged_once(client, data, folder):
    remote = open_dask_pairs(f"zip://people.npy::file://{folder}/people.zip", folder / "pairs")
    ledgers = [PrivacyLedger(2.0, 1e-4) for _ in range(2)]
    local = DPPMetricLearner(accountant=ledgers[0], **OPTIONS).fit(data)
    victim = next(iter(client.run(os.getpid).values()))
    seen = []

    def kill_once(share, spent):
        seen.append(share)
        if len(seen) == 4:
            os.kill(victim, signal.SIGKILL)

    ours = DPPMetricLearner(backend="dask", accountant=ledgers[1], **OPTIONS)
    ours.fit(remote, on_step=kill_once)
    assert len(seen) > 5
    np.testing.assert_array_equal(ours.components_, local.components_)
    assert len(ledgers[1].entries) == 1
    assert ledgers[1].spent() == ledgers[0].spent()
    client.wait_for_workers(2, timeout=60)
    assert victim not in client.run(os.getpid).values()


def with_value(frame, column, row, value):
    frame = frame.astype({column: object if isinstance(value, str) else float})
    frame.loc[row, column] = value
    return frame


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        ("left", 271828, r"1 pairs point outside the 1500 people.*row 4322\)"),
        ("right", -271828, "point outside"),
        ("left", np.nan, "whole numbers without gaps"),
        ("left", 271.828, "whole numbers without gaps"),
        ("left", "kanarienvogel", "whole numbers without gaps"),
        ("label", 271828, r"1 labels in column 'label' are not \+1.*row 4322\)"),
        ("label", 0, "are not"),
        ("label", np.inf, "are not"),
        ("label", "kanarienvogel", "are not"),
    ],
)
def test_bad_pairs_are_refused_without_their_values(client, data, column, value, says):
    frame = with_value(frame_of(data), column, 4321, value)
    with pytest.raises(InputError, match=says) as caught:
        open_dask_pairs(da.from_array(data.features), collection(frame))
    assert not any(text in str(caught.value) for text in ("2718", "271.8", "kanarien"))


def test_other_mistakes_are_refused_in_words(client, data, folder, tmp_path):
    pairs, people = collection(frame_of(data)), da.from_array(data.features, chunks=400)
    selves = frame_of(data)
    selves.loc[7, "right"] = selves.loc[7, "left"]
    renamed = collection(frame_of(data, ("a", "b", "same")))
    (tmp_path / "broken.npy").write_bytes(b"\x93NUMPY\x01\x00 kanarienvogel")
    whole = (folder / "people.npy").read_bytes()
    (tmp_path / "cut.npy").write_bytes(whole[:-100])
    np.save(tmp_path / "columns.npy", np.asfortranarray(data.features))
    (tmp_path / "no.parquet").write_text("kanarienvogel")
    words = dd.from_pandas(pd.DataFrame({"a": ["kanarienvogel"] * 3}), npartitions=1)
    cases = [
        (people, collection(selves), r"1 pairs join a person with herself.*row 8\)"),
        (people, renamed, "no column 'left'"),
        (people, collection(frame_of(data).iloc[:0], ()), "there are no pairs"),
        (people, data.pairs, "Dask DataFrame or the path"),
        (people, tmp_path / "no.parquet", "not Parquet"),
        (people, "kanarienvogel://bucket/pairs", "of the kind"),
        (data.features, pairs, "Dask array"),
        (words, pairs, "must hold numbers"),
        (people[:, 0], pairs, "two dimensions"),
        (da.zeros((0, 3)), pairs, "no rows"),
        (tmp_path / "broken.npy", pairs, "not a whole NumPy file"),
        (tmp_path / "none.npy", pairs, "no file of features"),
        (tmp_path / "columns.npy", pairs, "row by row"),
    ]
    for features, given, says in cases:
        with pytest.raises(InputError, match=says) as caught:
            open_dask_pairs(features, given)
        assert "kanarienvogel'" not in str(caught.value).replace("kind 'kanarienvogel'", "")
    assert open_dask_pairs(people, renamed, columns=("a", "b", "same")).n_pairs == K
    learner = DPPMetricLearner(backend="dask", **OPTIONS)
    with pytest.raises(InputError, match="not a whole"):
        learner.fit(open_dask_pairs(tmp_path / "cut.npy", pairs))
    gap = data.features.copy()
    gap[1234, 2] = np.nan
    with pytest.raises(InputError, match="column 3, row 1235"):
        learner.fit(open_dask_pairs(da.from_array(gap, chunks=400), pairs))
    remote = open_dask_pairs(people, pairs)
    with pytest.raises(InputError, match="leave y out"):
        learner.fit(remote, data.labels)
    with pytest.raises(InputError, match="backend='dask'"):
        DPPMetricLearner(**OPTIONS).fit(remote)


def test_partitions_that_are_not_what_they_say(client, data):
    """Dask believes what a collection says of its parts; sums must not."""
    frame, pairs = frame_of(data), collection(frame_of(data))
    short = dd.from_map(
        lambda i: frame.iloc[i::2].drop(columns=["label"] * i), range(2), meta=frame.iloc[:0]
    )
    people = da.from_array(data.features, chunks=400)
    with pytest.raises(InputError, match=r"could not read the pairs \(KeyError\)"):
        open_dask_pairs(people, short)
    narrow = people.map_blocks(lambda block: block[:, 1:], dtype=float, chunks=people.chunks)
    words = people.map_blocks(lambda block: block.astype(str), dtype=float)
    for features, says in (
        (narrow, "another number of columns"),
        (words.map_blocks(_named), "number"),
    ):
        with pytest.raises(InputError, match=says):
            open_dask_pairs(features, pairs).clipped(1.0)
    # Said to be float32, for which noise has to cover more rounding, and float64 in truth.
    wide = people.map_blocks(lambda block: block, dtype=np.float32)
    ours = DPPMetricLearner(backend="dask", **OPTIONS).fit(open_dask_pairs(wide, pairs))
    near = PairSet(data.features.astype(np.float32), data.pairs, data.labels)
    local = DPPMetricLearner(**OPTIONS).fit(near)
    np.testing.assert_array_equal(ours.components_, local.components_)


def _named(block):
    return np.where(block == block, "kanarienvogel", block)


def test_pairs_that_change_between_two_readings_are_refused_before_the_charge(client, data, folder):
    """kappa was found on other pairs than those that would be summed."""
    copy = folder / "moving"
    copy.mkdir()
    frame = frame_of(data)
    frame.to_parquet(copy / "0.parquet", index=False)
    people = f"file://{folder}/people.npy"
    other = frame.copy()
    other.loc[0, "right"] = (other.loc[0, "left"] + 1) % N
    remote = open_dask_pairs(people, copy)
    assert isinstance(remote, DaskPairs)
    prepared = remote.clipped(1.0).choose("all", "relationship", 0)
    other.to_parquet(copy / "0.parquet", index=False)
    ledger = PrivacyLedger(2.0, 1e-4)
    learner = DPPMetricLearner(backend="dask", accountant=ledger, select="all", **OPTIONS)
    with pytest.raises(InputError, match="changed between two readings"):
        learner.fit(remote)
    assert not ledger.entries
    with pytest.raises(InputError, match="changed between two readings"):
        prepared.used.parts(client, [0, 1024, K])


def test_a_part_that_was_built_anew_from_other_pairs_is_not_summed(client, data):
    remote = open_dask_pairs(da.from_array(data.features), collection(frame_of(data))).clipped(1.0)
    sums = OnCluster(remote, client)
    gradient = SetGradient(np.eye(2, D), ContrastiveLoss(1.0), 0.1, (1.0, 0.5))
    asked = (None, gradient, "l2", 2.0**-31)
    np.testing.assert_array_equal(sums.add_up(*asked), clipped_sum(data.canonical()[0], *asked))
    sums._parts[1] = client.submit(lambda: None, pure=False)
    with pytest.raises(InputError, match="nothing is released"):
        sums.add_up(*asked)


class Stop(Exception):
    pass


def test_a_checkpoint_goes_on_with_the_same_pairs_only(client, data, tmp_path):
    people = da.from_array(data.features, chunks=400)
    remote = open_dask_pairs(people, collection(frame_of(data)))
    ledger, seen = PrivacyLedger(2.0, 1e-5), []

    def watch(sums, statistic, noisy):
        seen.append(noisy)
        if len(seen) == 4:
            raise Stop

    options = {"backend": "dask", "n_steps": 5, "accountant": ledger}
    with pytest.raises(Stop):
        DPPMetricLearner(**options).fit(remote, on_answer=watch, checkpoint=tmp_path / "fit")
    fewer = open_dask_pairs(people, collection(frame_of(data).iloc[:-1]))
    with pytest.raises(InputError, match="another fit"):
        DPPMetricLearner(**options).fit(fewer, checkpoint=tmp_path / "fit")
    again = []
    # The same pairs in another order and cut otherwise are the same fit.
    same = open_dask_pairs(people, collection(frame_of(data).iloc[::-1], (1, 70, 4999)))
    DPPMetricLearner(**options).fit(
        same, on_answer=lambda *a: again.append(a[2]), checkpoint=tmp_path / "fit"
    )
    for old, new in zip(seen, again[:4], strict=True):
        np.testing.assert_array_equal(old, new)
    assert len(again) > 4
    assert len(ledger.entries) == 1


def test_degrees_are_added_in_a_tree(client, data):
    frame = frame_of(data)
    cuts = list(range(200, K, 200))
    remote = open_dask_pairs(da.from_array(data.features), collection(frame, cuts))
    assert len(remote.partitions) > dask_pairs.FAN_IN
    np.testing.assert_array_equal(remote.degrees, np.bincount(data.pairs.ravel(), minlength=N))


def test_degrees_that_do_not_add_up_are_refused(client, data, monkeypatch):
    remote = open_dask_pairs(da.from_array(data.features), collection(frame_of(data)))
    twice = replace(
        remote, partitions=remote.partitions[:1] * 2, digests=remote.digests[:1] * 2
    )  # one partition for another
    with pytest.raises(InputError, match="do not add up"):
        twice.choose("all", "person", 0)
    wrapped = np.zeros(N, dtype=np.int32)
    wrapped[:3] = (-(2**31), 2**31 - 1, 2 * K + 1)  # the sum is right
    for found in (wrapped, np.full(N, 2, dtype=np.int32)):
        monkeypatch.setattr(dask_pairs, "fetch", lambda *_, found=found: [found])
        with pytest.raises(InputError, match="do not add up"):
            replace(remote).degrees  # noqa: B018


CHANGES = {  # lambdas: workers cannot import this file
    "shorter": lambda block: block[:-3],
    "narrower": lambda block: block[:, 1:],
    "gap": lambda block: np.where(np.arange(len(block))[:, None] == 7, np.nan, block),
    "words": lambda block: np.where(block == block, "kanarienvogel", block),
}


@pytest.mark.parametrize("change", CHANGES)
def test_features_that_change_after_the_check_are_refused_in_words(client, data, change):
    """The rows that a failing task was given would be in the worker's log."""
    remote = open_dask_pairs(
        da.from_array(data.features, chunks=400), collection(frame_of(data))
    ).clipped(1.0)
    changed = [
        dask_features.delayed_task(CHANGES[change])(block) for block in remote.features.blocks
    ]
    moved = replace(remote, features=replace(remote.features, blocks=tuple(changed)))
    with pytest.raises(InputError, match="features changed between two readings"):
        moved.parts(client, [0, 1024, K])


def test_a_mapped_file_that_changes_after_the_check_is_refused(client, data, tmp_path):
    """Compiled loops do not look whether a row is there."""
    path = tmp_path / "people.npy"
    for other in (data.features[:-1], data.features.astype(np.float32), None):
        np.save(path, data.features)
        remote = open_dask_pairs(str(path), collection(frame_of(data))).clipped(1.0)
        assert remote.features.path is not None
        if other is None:
            path.unlink()
        else:
            np.save(path, other)
        with pytest.raises(InputError, match="features changed between two readings"):
            remote.parts(client, [0, 1024, K])
