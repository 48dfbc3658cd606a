"""Pairs and features that workers read: the integers of a local fit, refusals without values."""

import os
import signal
import zipfile
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from pairveil.engine.backends import dask as dask_backend
from pairveil.engine.backends.dask import OnCluster, open_dask_pairs
from pairveil.engine.gradients import SetGradient
from pairveil.engine.losses import ContrastiveLoss
from pairveil.engine.statistics import clipped_sum
from pairveil.errors import DataWarning, InputError
from pairveil.learners.contrastive.learner import DPPMetricLearner
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
    assert repr(remote) == f"PairSet({N} people, {K} pairs, {D} features, labelled)"
    assert (dask_backend._mapped_path(remote.features) is not None) == (kind == "mapped")
    names = tuple(f"c{i}" for i in range(D))
    assert remote.feature_names == (names if kind in ("parquet", "frame") else None)
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
        {"select": "all", "unit": "person"},
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
    client.wait_for_workers(2, timeout=300)
    assert victim not in client.run(os.getpid).values()


def with_value(frame, column, row, value):
    frame = frame.astype({column: object if isinstance(value, str) else float})
    frame.loc[row, column] = value
    return frame


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        ("left", 271828, r"1 pair points outside the 1500 people.*row 4322\)"),
        ("right", -271828, "points? outside"),
        ("left", 271828e7, "whole numbers without gaps"),
        ("left", np.nan, "whole numbers without gaps"),
        ("left", 271.828, "whole numbers without gaps"),
        ("left", "kanarienvogel", "whole numbers without gaps"),
        ("label", 271828, r"1 label not \+1.*row 4322"),
        ("label", 257, r"1 label not \+1.*row 4322"),
        ("label", 0, "label not"),
        ("label", np.inf, "whole numbers without gaps"),
        ("label", "kanarienvogel", "whole numbers without gaps"),
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
    (tmp_path / "no.parquet").write_text("kanarienvogel")
    words = dd.from_pandas(pd.DataFrame({"a": ["kanarienvogel"] * 3}), npartitions=1)
    cases = [
        (people, collection(selves), r"1 pair joins a person with herself.*row 8\)"),
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
        (tmp_path / "cut.npy", pairs, "not a whole NumPy file"),
    ]
    for features, given, says in cases:
        with pytest.raises(InputError, match=says) as caught:
            open_dask_pairs(features, given)
        assert "kanarienvogel'" not in str(caught.value).replace("kind 'kanarienvogel'", "")
    assert open_dask_pairs(people, renamed, columns=("a", "b", "same")).n_pairs == K
    gap = data.features.copy()
    gap[1234, 2] = np.nan
    with pytest.raises(InputError, match="column 3, row 1235"):
        open_dask_pairs(da.from_array(gap, chunks=400), pairs)


def test_partitions_that_are_not_what_they_say(client, data):
    """Dask believes what a collection says of its parts; sums must not."""
    frame, pairs = frame_of(data), collection(frame_of(data))
    short = dd.from_map(
        lambda i: frame.iloc[i::2].drop(columns=["label"] * i), range(2), meta=frame.iloc[:0]
    )
    people = da.from_array(data.features, chunks=400)
    with pytest.raises(InputError, match="whole numbers without gaps"):
        open_dask_pairs(people, short)
    turned = dd.from_map(
        lambda i: frame.iloc[i::2][["label", "right", "left"]], range(2), meta=frame.iloc[:0]
    )
    read = open_dask_pairs(people, turned)
    expected = pd.concat([frame.iloc[0::2], frame.iloc[1::2]])
    np.testing.assert_array_equal(read.pairs, expected[["left", "right"]])
    np.testing.assert_array_equal(read.labels, expected["label"])

    def fails(i):
        raise ValueError("kanarienvogel")

    with pytest.raises(InputError, match=r"could not read the pairs \(ValueError\)"):
        open_dask_pairs(people, dd.from_map(fails, range(1), meta=frame.iloc[:0]))
    narrow = people.map_blocks(lambda block: block[:, 1:], dtype=float, chunks=people.chunks)
    words = people.map_blocks(lambda block: np.full(block.shape, "kanarienvogel"), dtype=float)
    for features, says in (
        (narrow, "another number of columns"),
        (words, "must hold numbers"),
    ):
        with pytest.raises(InputError, match=says):
            open_dask_pairs(features, pairs)
    # Said to be float32, for which noise has to cover more rounding: what is summed counts, not what is said.
    wide = people.map_blocks(lambda block: block, dtype=np.float32)
    assert open_dask_pairs(wide, pairs).features.dtype == np.float64


def test_pairs_are_read_once_so_that_kappa_is_that_of_the_pairs_summed(client, data, folder):
    copy = folder / "moving"
    copy.mkdir()
    frame_of(data).to_parquet(copy / "0.parquet", index=False)
    remote = open_dask_pairs(folder / "people", copy)
    (copy / "0.parquet").unlink()
    ours = DPPMetricLearner(backend="dask", select="all", **OPTIONS).fit(remote)
    local = DPPMetricLearner(select="all", **OPTIONS).fit(data)
    np.testing.assert_array_equal(ours.components_, local.components_)
    assert ours.certificate_.to_dict() == local.certificate_.to_dict()


def test_a_mapped_file_that_changes_during_a_fit_is_not_summed(client, data, tmp_path):
    """Compiled loops do not look whether a row is there."""
    path = tmp_path / "people.npy"
    gradient = SetGradient(np.eye(2, D), ContrastiveLoss(1.0), 0.1, (1.0, 0.5))
    asked = (None, gradient, "l2", 2.0**-31)
    for other in (data.features[:-1], data.features.astype(np.float32), None):
        np.save(path, data.features)
        remote = open_dask_pairs(str(path), collection(frame_of(data))).canonical()[0]
        sums, recipe = OnCluster(remote, client), dask_backend._recipe(remote, slice(0, 100))
        total = sums.add_up(*asked)
        np.testing.assert_array_equal(total, clipped_sum(data.canonical()[0], *asked))
        assert dask_backend._build(*recipe).n_pairs == 100
        path.unlink()
        if other is not None:
            np.save(path, other)
        assert dask_backend._build(*recipe) is None
        sums._parts[1] = client.submit(dask_backend._build, *recipe, pure=False)
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
