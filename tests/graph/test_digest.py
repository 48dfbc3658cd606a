"""The name of a graph: the same for the same pairs of people, another for anything else."""

import numpy as np
import pytest

from pairveil.graph.digest import graph_digest

IDS = np.array([f"p{i}" for i in range(9)])
PAIRS = np.array([[0, 1], [1, 2], [4, 3], [7, 2]])


def test_order_sides_and_people_without_pairs_do_not_matter():
    rng = np.random.default_rng(0)
    one = graph_digest(IDS, PAIRS, b"salt" * 8)
    for _ in range(20):
        order = rng.permutation(len(IDS))
        place = np.argsort(order)
        shuffled = place[PAIRS][rng.permutation(len(PAIRS))]
        flip = rng.random(len(PAIRS)) < 0.5
        shuffled[flip] = shuffled[flip, ::-1]
        assert graph_digest(IDS[order], shuffled, b"salt" * 8) == one
    assert graph_digest(np.append(IDS, "alone"), PAIRS, b"salt" * 8) == one


@pytest.mark.parametrize(
    ("ids", "pairs"),
    [
        (IDS, PAIRS[:3]),
        (IDS, np.array([[0, 1], [1, 2], [4, 3], [7, 1]])),
        (np.array([*IDS[:8], "p9"]), np.array([[0, 1], [1, 2], [4, 3], [8, 2]])),
        (IDS.astype(object), np.array([[0, 1], [1, 2], [4, 3], [7, 2], [7, 2]])),
    ],
)
def test_another_graph_has_another_name(ids, pairs):
    assert graph_digest(ids, pairs) != graph_digest(IDS, PAIRS)


def test_ids_are_tagged_and_kept_apart():
    pairs = np.array([[0, 1]])
    names = [
        np.array([1, 2]),
        np.array(["1", "2"]),
        np.array([1.0, 2.0]),
        np.array([b"1", b"2"]),
        np.array(["1\0002", ""]),
        np.array(["ab", "c"]),
        np.array(["a", "bc"]),
    ]
    assert len({graph_digest(ids, pairs) for ids in names}) == len(names)


def test_salt_and_no_ids():
    assert graph_digest(None, PAIRS) is None
    assert len({graph_digest(IDS, PAIRS, salt) for salt in (None, b"a" * 32, b"b" * 32)}) == 3
