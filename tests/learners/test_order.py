"""A fit is a function of the set of pairs: shuffled rows, swapped sides, another order of people.

Flipping one label must move nothing but that pair's own contribution: not the pairs used, not the batch or
the tile of any other, not the certificate.
"""

import json
import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from pairveil import DPPMetricLearner, PairSet, PrivacyLedger, read_features, read_pairs
from pairveil.engine.backends.local import topology_digest
from pairveil.engine.checkpoint import fit_digest
from pairveil.engine.gradients import SetGradient
from pairveil.engine.losses import ContrastiveLoss
from pairveil.engine.statistics import clipped_sum
from pairveil.errors import DataWarning, PrivateNote
from pairveil.learners.contrastive.recipe import ColumnSignal, DissimilarDistances, Survey
from pairveil.learners.histogram import DistanceCounts
from pairveil.privacy.noise import SeededNoise

N, D, K = 60, 3, 150
OPTIONS: dict[str, Any] = {"epsilon": 8.0, "n_steps": 4, "random_state": 0}
SAMPLINGS: dict[str, dict[str, Any]] = {
    "full": {},
    "poisson": {"sample_rate": 0.3, "select": "all", "unit": "pair"},
    "disjoint": {"sampling": "disjoint", "sample_rate": 0.25, "select": "all", "unit": "pair"},
}
FLIPPED = 77
rng = np.random.default_rng(0)
IDS = np.array([f"s{i:02d}/x.wav" for i in rng.permutation(N)], dtype=object)
X = rng.normal(size=(N, D)) * 0.2
_ends = np.sort(rng.integers(0, N, (4 * K, 2)), axis=1)
PAIRS = rng.permutation(np.unique(_ends[_ends[:, 0] != _ends[:, 1]], axis=0))[:K]
LABELS = np.where(np.abs(X[PAIRS[:, 0], 0] - X[PAIRS[:, 1], 0]) < 0.2, 1, -1).astype(np.int8)


def labels_of(flip):
    labels = LABELS.copy()
    labels[FLIPPED] *= -1 if flip else 1
    return labels


def mixed(seed, flip=False):
    """Ids left and right, labels: rows shuffled and sides swapped unless the seed is None."""
    rows, swap = np.arange(K), np.zeros(K, dtype=bool)
    if seed is not None:
        shuffle = np.random.default_rng(seed)
        rows, swap = shuffle.permutation(K), shuffle.random(K) < 0.5
    ends = IDS[PAIRS[rows]]
    ends[swap] = ends[swap, ::-1]
    return ends, labels_of(flip)[rows]


def write_pairs(layout, folder, ends, labels):
    """The same pairs in the layout of another tool."""
    path = folder / f"{layout}-{len(list(folder.iterdir()))}{'.json' if layout in JSON else '.txt'}"
    both = {value: ends[labels == value].tolist() for value in (1, -1)}
    if layout == "dedupe":
        content = {
            name: [[{"id": a}, {"id": b}] for a, b in both[value]]
            for name, value in (("match", 1), ("distinct", -1))
        }
        path.write_text(json.dumps(content))
    elif layout == "links.json":
        path.write_text(json.dumps({"must_link": both[1], "cannot_link": both[-1]}))
    elif layout == "links":
        lines = [f"must-link {a} {b}" for a, b in both[1]] + [f"CL {a} {b}" for a, b in both[-1]]
        path.write_text("\n".join(lines))
    elif layout == "voxceleb":
        rows = zip(labels, ends, strict=True)
        path.write_text("\n".join(f"{int(y == 1)} {a} {b}" for y, (a, b) in rows))
    return path


JSON = ("dedupe", "links.json")
LAYOUTS = ("table", "splink", "dedupe", "links.json", "links", "voxceleb")


def read(layout, folder, seed=None, flip=False):
    """A PairSet as a reader and `join` make it; people are sorted by their class, or shuffled."""
    ends, labels = mixed(seed, flip)
    if layout == "table":
        order = np.argsort(labels, kind="stable")  # as files are
        source: Any = {
            "left": ends[order, 0],
            "right": ends[order, 1],
            "label": labels[order],
        }
        pairs = read_pairs(source)
    elif layout == "splink":
        scores = np.where(labels == 1, 0.9, 0.1)
        names = ("unique_id_l", "unique_id_r", "clerical_match_score")
        pairs = read_pairs(dict(zip(names, (*ends.T, scores), strict=True)))
    else:
        kind = "links" if layout == "links.json" else layout
        pairs = read_pairs(write_pairs(layout, folder, ends, labels), layout=kind)
    people = np.argsort(X[:, 0]) if seed is None else np.random.default_rng(seed).permutation(N)
    table = {"id": IDS[people], **{f"x{j}": X[people, j] for j in range(D)}}
    return PairSet.join(read_features(table), pairs)


def outcome(learner, data):
    """What may be compared: used pairs by id, certificate, every noisy sum (and so every integer sum)."""
    sums = []
    learner.fit(data, on_answer=lambda *released: sums.append(released[2].ravel()))
    used = {frozenset(pair) for pair in data.ids[data.pairs[learner.used_pairs_]]}
    assert len(used) == learner.n_pairs_used_ == len(learner.used_pairs_)
    return (
        used,
        learner.certificate_.to_dict(),
        np.concatenate([*sums, learner.components_.ravel()]),
    )


def assert_same(one, other):
    assert one[0] == other[0]
    assert one[1] == other[1]
    np.testing.assert_array_equal(one[2], other[2])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_reader(layout, tmp_path):
    first = outcome(DPPMetricLearner(**OPTIONS), read(layout, tmp_path))
    assert_same(first, outcome(DPPMetricLearner(**OPTIONS), read(layout, tmp_path, seed=1)))
    flipped = outcome(DPPMetricLearner(**OPTIONS), read(layout, tmp_path, seed=2, flip=True))
    assert flipped[:2] == first[:2]


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("backend", ["auto", "numpy"])
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_every_way_of_summing(sampling, backend, kind, tmp_path):
    learner = {**OPTIONS, **SAMPLINGS[sampling], "backend": backend}

    def data(*how):
        found = read("table", tmp_path, *how)
        return found if kind == "dense" else found.with_features(sparse.csr_array(found.features))

    first = outcome(DPPMetricLearner(**learner), data())
    assert_same(first, outcome(DPPMetricLearner(**learner), data(3)))
    assert outcome(DPPMetricLearner(**learner), data(4, True))[:2] == first[:2]


@pytest.mark.parametrize("how", ["indices", "callable", "rows"])
@pytest.mark.filterwarnings("ignore::pairveil.errors.PrivacyLeakWarning")
def test_arrays(how):
    shuffle = np.random.default_rng(5)
    order, swap = shuffle.permutation(K), shuffle.random(K) < 0.5
    other = PAIRS[order]
    other[swap] = other[swap, ::-1]
    found = []
    for pairs, labels in ((PAIRS, LABELS), (other, LABELS[order])):
        table = {"indices": X, "callable": lambda rows: X[rows], "rows": None}[how]
        learner = DPPMetricLearner(preprocessor=table, **OPTIONS)
        learner.fit(X[pairs] if how == "rows" else pairs, labels)
        used = {tuple(sorted(pair)) for pair in pairs[learner.used_pairs_].tolist()}
        assert (np.diff(learner.used_pairs_) > 0).all()
        found.append((used, learner.certificate_.to_dict(), learner.components_))
    assert_same(*found)


def test_a_flipped_label_moves_its_own_contribution_and_no_other(tmp_path):
    learner = DPPMetricLearner(select="all", **OPTIONS)
    one, other = (
        learner.prepare(read("dedupe", tmp_path, flip=flip), None).records.used
        for flip in (False, True)
    )
    np.testing.assert_array_equal(one.pairs, other.pairs)
    at = np.flatnonzero(one.labels != other.labels)
    assert at.size == 1
    gradient = SetGradient(np.eye(2, D), ContrastiveLoss(1.0), 0.5, (1.0, 0.5))
    for compiled in (True, False):

        def total(data, rows, compiled=compiled):
            return clipped_sum(
                data, rows, gradient, "l2", 2.0**-31, compiled=compiled, separately=True
            )

        moved = total(one, None) - total(other, None)
        np.testing.assert_array_equal(moved, total(one, at) - total(other, at))
        assert moved.any()


def test_ledger_and_checkpoint_know_the_set(tmp_path):
    ledger = PrivacyLedger(100.0, 1e-4)
    for seed in (None, 6):
        DPPMetricLearner(accountant=ledger, **OPTIONS).fit(read("table", tmp_path, seed))
    names = {entry.graph for entry in ledger.entries}
    assert len(ledger.entries) == 2
    assert len(names) == 1
    prepared = [
        DPPMetricLearner(**OPTIONS).prepare(read("table", tmp_path, seed), None)
        for seed in (None, 6)
    ]
    assert len({fit_digest(p.plan, p.records.used) for p in prepared}) == 1


# ---- pairs with contradicting labels


def with_contradiction(first=1):
    """Pair 0 is there twice more, with both labels."""
    ends = np.concatenate([PAIRS, PAIRS[:1, ::-1], PAIRS[:1]])
    return PairSet(X, ends, np.concatenate([LABELS, [first, -first]]))


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_a_contradiction_neither_stops_a_fit_nor_shows_in_its_certificate(sampling):
    learner = {**OPTIONS, **SAMPLINGS[sampling]}
    plain = DPPMetricLearner(**learner).fit(PairSet(X, PAIRS, LABELS))
    found = []
    for first in (1, -1):
        with pytest.warns(DataWarning) as caught:
            found.append(DPPMetricLearner(**learner).fit(with_contradiction(first)))
        assert [w.category for w in caught] == [PrivateNote, PrivateNote]
        assert {w.filename for w in caught} == {__file__}
    for fitted in found:
        assert fitted.certificate_.to_dict() == plain.certificate_.to_dict()
        np.testing.assert_array_equal(fitted.used_pairs_, plain.used_pairs_)
    np.testing.assert_array_equal(found[0].components_, found[1].components_)


def statistics():
    W = np.random.default_rng(1).normal(size=(2, D))
    loss = ContrastiveLoss(1.0)
    return [
        Survey(D, 2.0, clip=0.5),
        ColumnSignal(D, (1.0, 0.5), clip=0.5),
        DissimilarDistances(2.0, clip=0.5),
        DistanceCounts(components=W, longest=4.0),
        SetGradient(W, loss, 0.5, (1.0, 0.5)),
    ]


@pytest.mark.parametrize("statistic", statistics(), ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")
def test_a_null_pair_contributes_nothing(statistic, kind, dtype):
    data, _ = with_contradiction().canonical()
    data = data.subset(np.union1d(np.flatnonzero(data.labels == 0), np.arange(60)))
    null = np.flatnonzero(data.labels == 0)
    assert null.size == 1
    data = data.with_features(kind(X.astype(dtype)))
    others = np.flatnonzero(data.labels != 0)
    for norm in ("l2", "l1"):
        for options in (
            {"compiled": True},
            {"compiled": False},
            {"compiled": True, "separately": True},
            {"compiled": False, "separately": True},
        ):
            asked = (statistic, norm, 2.0**-31)
            assert not clipped_sum(data, null, *asked, **options).any()
            if "separately" in options:
                np.testing.assert_array_equal(
                    clipped_sum(data, None, *asked, **options),
                    clipped_sum(data, others, *asked, **options),
                )
    assert clipped_sum(data, others, statistic, "l2", 2.0**-31).any()


def test_steps_taken_together_leave_a_null_pair_out():
    from pairveil.engine.engine import Engine
    from pairveil.privacy.mechanisms import Query

    query = Query("gradients", (2, D), 1.0, 3, sample_rate=0.2)
    gradient = SetGradient(np.eye(2, D), ContrastiveLoss(1.0), 0.5, (1.0, 0.5))
    with pytest.warns(DataWarning):
        data, _ = with_contradiction().canonical()
    labels = np.where(data.labels == 0, 1, data.labels)
    zeroed = PairSet.checked_before(
        features=data.features, members=data.pairs.copy(), content=labels
    )
    at = int(np.flatnonzero(data.labels == 0)[0])
    zeroed.pairs[at, 1] = zeroed.pairs[at, 0]  # a difference of zero
    moved = [Engine(one, SeededNoise(0)).descend(query, gradient, 0.1, 3) for one in (data, zeroed)]
    np.testing.assert_array_equal(*moved)


# ---- Dask


def frames(data, parts):
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    columns = dict(zip(("left", "right", "label"), (*data.pairs.T, data.labels), strict=True))
    frame = pd.DataFrame(columns)
    return dd.from_map(
        lambda part: part, [frame.iloc[p] for p in np.array_split(np.arange(len(frame)), parts)],
        meta=frame.iloc[:0],
    )  # fmt: skip


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_dask_gives_the_local_fit_whatever_the_order_and_the_partitions(client, sampling, tmp_path):
    da = pytest.importorskip("dask.array")
    from pairveil.engine.backends.dask import open_dask_pairs

    learner = {**OPTIONS, **SAMPLINGS[sampling]}
    shuffle = np.random.default_rng(7)
    order, swap = shuffle.permutation(K), shuffle.random(K) < 0.5
    ends = PAIRS[order]
    ends[swap] = ends[swap, ::-1]
    by_label = np.argsort(LABELS, kind="stable")
    local = DPPMetricLearner(**learner).fit(PairSet(X, PAIRS, LABELS))
    used = {tuple(pair) for pair in PAIRS[local.used_pairs_].tolist()}
    cases = [
        (PairSet(X, PAIRS[by_label], LABELS[by_label]), 3),
        (PairSet(X, ends, LABELS[order]), 5),
        (PairSet(X, PAIRS, LABELS).canonical()[0], 2),
    ]
    names = set()
    for data, parts in (
        cases[::2] if sampling == "full" else cases[1:2]
    ):  # the sort knows no sampling
        remote = open_dask_pairs(da.from_array(X, chunks=25), frames(data, parts))
        ours = DPPMetricLearner(backend="dask", **learner).fit(remote)
        np.testing.assert_array_equal(ours.components_, local.components_)
        assert ours.certificate_.to_dict() == local.certificate_.to_dict()
        rows = np.asarray(ours.used_pairs_)
        assert {tuple(sorted(pair)) for pair in data.pairs[rows].tolist()} == used
        names.add(topology_digest(remote.canonical()[0]))
    assert len(names) == 1
    near = DPPMetricLearner(backend="dask", **learner).fit(cases[0][0])
    np.testing.assert_array_equal(near.components_, local.components_)


def test_dask_makes_one_record_of_all_mentions(client):
    da = pytest.importorskip("dask.array")
    from pairveil.engine.backends.dask import open_dask_pairs

    data = with_contradiction()
    remote = open_dask_pairs(da.from_array(X, chunks=25), frames(data, 4))
    assert remote.n_pairs == K + 2
    options = {**OPTIONS, "select": "all"}
    with pytest.warns(DataWarning):
        local = DPPMetricLearner(**options).fit(data)
    with pytest.warns(DataWarning) as caught:
        ours = DPPMetricLearner(backend="dask", **options).fit(remote)
    assert [w.category for w in caught] == [PrivateNote, PrivateNote]
    assert {w.filename for w in caught} == {__file__}
    np.testing.assert_array_equal(ours.components_, local.components_)
    np.testing.assert_array_equal(ours.used_pairs_, local.used_pairs_)
    assert ours.certificate_.to_dict() == local.certificate_.to_dict()


def test_a_pickle_does_not_tell_where_pairs_stood_in_a_file_that_is_sorted_by_label():
    """One flipped label moves a row of such a file, and other pairs' positions with it."""
    pairs, features = np.array([[i, j] for i in range(8) for j in range(i)]), np.eye(8)
    labels = np.resize([1, -1, -1], len(pairs))
    states = []
    for flipped in (False, True):
        y = np.where((np.arange(len(pairs)) == 4) & flipped, -labels, labels)
        by_label = np.argsort(y, kind="stable")
        learner = DPPMetricLearner(preprocessor=features, random_state=0, select="matching")
        with pytest.warns(DataWarning, match="few for"):
            learner.fit(pairs[by_label], y[by_label])
        states.append((learner.used_pairs_.tolist(), pickle.loads(pickle.dumps(learner))))
    assert states[0][0] != states[1][0]
    for _, back in states:
        assert not hasattr(back, "used_pairs_")
        assert back.transform(features).shape == (8, 8)
