"""Neighbour lists: checks of the input, dtypes, sparse numbers, multiplicity."""

from types import SimpleNamespace

import numpy as np
import pytest
from graph_examples import random_pairs

from pairveil.errors import InputError
from pairveil.graph.kappa import build_adjacency, checked_pairs


@pytest.mark.parametrize(
    ("pairs", "says"),
    [
        ([], "no pairs"),
        (np.empty((0, 2), dtype=int), "no pairs"),
        ([0, 1], r"\(K, 2\)"),
        ([(0, 1, 2)], r"\(K, 2\)"),
        ([(0, 1), (2,)], r"\(K, 2\)"),
        ([(0.0, 1.0)], "integer"),
        ([("a", None)], "integer"),
        ([(True, False)], "integer"),
        ([(0, 1), (3, -1)], r"1 pair points outside .*negative.*\(row 2\)"),
        ([(0, 1), (2, 3), (4, 4)], r"1 pair joins a person with herself \(row 3\)"),
        (np.array([[0, 2**63]], dtype=np.uint64), r"above 2\*\*63 - 1"),
    ],
)
def test_bad_input_is_refused_in_words(pairs, says):
    with pytest.raises(InputError, match=says):
        checked_pairs(pairs)


def test_people_may_be_named_by_text():
    assert checked_pairs([("b", "a"), ("b", "c")]).tolist() == [[1, 0], [1, 2]]


def test_message_does_not_repeat_a_persons_number():
    with pytest.raises(InputError) as caught:
        checked_pairs([(0, 1), (987_654, 987_654)])
    assert "987" not in str(caught.value)


@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
)
def test_every_integer_dtype_and_order_gives_the_same_lists(dtype):
    pairs = random_pairs(np.random.default_rng(3), 40, 90)
    expected = build_adjacency(pairs)
    for given in (pairs.astype(dtype), np.asfortranarray(pairs.astype(dtype))):
        found = build_adjacency(given)
        np.testing.assert_array_equal(found.offsets, expected.offsets)
        np.testing.assert_array_equal(found.neighbours, expected.neighbours)
    assert expected.neighbours.dtype == np.int32


def test_lists_hold_each_pair_from_both_sides_in_order():
    pairs = random_pairs(np.random.default_rng(4), 30, 200, simple=False)  # long lists too
    found = build_adjacency(pairs)
    for v in range(30):
        mine = sorted([b for a, b in pairs if a == v] + [a for a, b in pairs if b == v])
        assert found.neighbours[found.offsets[v] : found.offsets[v + 1]].tolist() == mine


def test_lists_longer_than_the_insertion_sort_are_sorted_and_counted():
    pairs = [(0, i) for i in range(60, 0, -1)] + [(7, 0), (0, 7)]
    found = build_adjacency(pairs)
    assert found.neighbours[:62].tolist() == sorted([*range(1, 61), 7, 7])
    assert found.multiplicity == 3


def test_sparse_numbers_are_compacted_and_dense_ones_are_not():
    found = build_adjacency([(10**12, 5), (5, 70)])
    assert found.people.tolist() == [5, 70, 10**12]
    assert found.neighbours.tolist() == [1, 2, 0, 0]
    assert build_adjacency([(0, 500)]).people is None


def test_the_callers_array_is_left_alone_and_may_be_read_only():
    pairs = np.array([[0, 1], [1, 2]])
    pairs.flags.writeable = False
    assert build_adjacency(SimpleNamespace(pairs=pairs)).n == 3
    assert pairs.tolist() == [[0, 1], [1, 2]]


def test_a_person_beyond_the_table_is_refused():
    with pytest.raises(InputError, match="not below the 2 people"):
        build_adjacency([(0, 2)], n_people=2)


def test_loops_say_the_same_by_python_and_by_machine_code(monkeypatch):
    import sys

    from pairveil._compiled import Loop
    from pairveil.graph import kappa as adjacency
    from pairveil.graph import loops
    from pairveil.graph.kappa import correlate

    rng = np.random.default_rng(0)
    pairs = rng.integers(0, 60, (150, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]

    def found():
        graph = adjacency.build_adjacency(pairs)
        seen = correlate(graph)
        lists = graph.offsets.tolist(), graph.neighbours.tolist(), graph.multiplicity
        return lists, seen.b.tolist(), seen.largest, seen.second, seen.max_degree

    compiled = found()
    for name, loop in list(vars(loops).items()):
        if isinstance(loop, Loop):
            monkeypatch.setattr(loops, name, loop.py_func)
    assert found() == compiled
    slow = Loop(lambda values: values.sum())
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    assert slow(np.arange(4)) == 6
    assert slow._compiled is None
