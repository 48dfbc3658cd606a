"""kappa: the table of docs/theory/graph.md, brute force, networkx, the appendix's intransitive number."""

from itertools import combinations
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from graph_examples import FIG3, TABLE, random_pairs, small_graphs
from hypothesis import given, settings
from hypothesis import strategies as st

from pairveil.errors import InputError
from pairveil.graph.kappa import kappa


def n_components(people, pairs):
    """Components of a graph, by merging labels: slow and plain."""
    label = {v: v for v in people}
    for a, b in pairs:
        old, new = label[a], label[b]
        for v, now in label.items():
            if now == old:
                label[v] = new
    return len(set(label.values()))


def brute_b(pairs):
    """De(v) - Co+(v) as the paper does it: remove v, count the components gained."""
    pairs = [tuple(map(int, p)) for p in pairs]
    people = {v for p in pairs for v in p}
    before = n_components(people, pairs)
    b = {}
    for v in people:
        after = n_components(people - {v}, [p for p in pairs if v not in p])
        b[v] = sum(v in p for p in pairs) - (after - before)
    return b


def appendix_b(pairs):
    """The paper's appendix B, read literally, on a simple graph.

    A pair: 1 + min(c_s, c_t) in G - <s,t>; no pair: min(c_s, c_t) in G. c_v: edges at v that must
    go so that v is on no cycle, found by trying every subset of v's edges.
    """
    pairs = [tuple(sorted(map(int, p))) for p in pairs]
    people = sorted({v for p in pairs for v in p})

    def on_a_cycle(edges, v):
        mine = [p for p in edges if v in p]
        rest = [p for p in edges if v not in p]
        graph = nx.Graph(rest)
        graph.add_nodes_from(people)
        ends = [a + b - v for a, b in mine]
        return any(nx.has_path(graph, a, b) for a, b in combinations(ends, 2))

    def c(edges, v):
        mine = [p for p in edges if v in p]
        for size in range(len(mine) + 1):
            for gone in combinations(mine, size):
                if not on_a_cycle([p for p in edges if p not in gone], v):
                    return size
        raise AssertionError

    values = []
    for s, t in combinations(people, 2):
        if (s, t) in pairs:
            rest = [p for p in pairs if p != (s, t)]
            values.append(1 + min(c(rest, s), c(rest, t)))
        else:
            values.append(min(c(pairs, s), c(pairs, t)))
    return max(values)


@pytest.mark.parametrize("name", TABLE)
def test_theory_table(name):
    pairs, _, paper_bound, relationship, person, intransitive = TABLE[name]
    found = kappa(pairs)
    assert (found.paper_bound, found.relationship) == (paper_bound, relationship)
    assert (found.person, found.intransitive, found.pair) == (person, intransitive, 1)
    assert found.n_pairs == len(pairs)


@pytest.mark.oracle
@pytest.mark.parametrize("simple", [True, False])
def test_b_equals_removing_each_person(simple):
    for pairs in small_graphs(seed=11, how_many=400, simple=simple, max_people=12, max_pairs=25):
        b, found = brute_b(pairs), kappa(pairs)
        expected = [b.get(v, 0) for v in range(pairs.max() + 1)]
        assert found.per_person.tolist() == expected
        assert [found.relationship, found.paper_bound] == sorted(b.values())[-2:]
        assert found.n_people == len(b)


@pytest.mark.oracle
@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.integers(2, 200), st.integers(1, 600), st.integers(0, 2**32 - 1))
def test_b_equals_networkx_blocks(n_people, n_pairs, seed):
    pairs = random_pairs(np.random.default_rng(seed), n_people, n_pairs, simple=False)
    graph = nx.Graph(pairs.tolist())
    blocks = dict.fromkeys(graph, 0)
    for block in nx.biconnected_components(graph):
        for v in block:
            blocks[v] += 1
    degree = np.bincount(pairs.ravel())
    found = kappa(pairs)
    for v in graph:
        assert found.per_person[v] == degree[v] - blocks[v] + 1


@pytest.mark.oracle
def test_intransitive_is_the_appendix_exactly_on_simple_graphs():
    for pairs in small_graphs(seed=12, how_many=250, max_people=7, max_pairs=10):
        found = kappa(pairs)
        assert found.intransitive == appendix_b(pairs)
    # Two triangles joined by a pair: the bridge's ends both have b = 3.
    barbell = [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (0, 3)]
    assert kappa(barbell).intransitive == appendix_b(barbell) == 2
    # Two K4 joined by a bridge: both ends have b = 3, and the bridge attains it.
    k4s = [*combinations(range(4), 2), *combinations(range(4, 8), 2), (0, 4)]
    assert kappa(k4s).intransitive == appendix_b(k4s) == kappa(k4s).relationship == 3


def test_numbering_of_people_and_order_of_pairs_do_not_matter():
    rng = np.random.default_rng(5)
    pairs = random_pairs(rng, 60, 120)
    moved = rng.permutation(60)[pairs][rng.permutation(120)][:, ::-1]
    assert kappa(moved) == kappa(pairs)
    assert kappa(pairs * 10**9) == kappa(pairs)  # sparse numbers
    assert kappa(pairs + 10**7).people.tolist() == np.unique(pairs + 10**7).tolist()


def test_repeated_pairs_count_as_parallel_pairs():
    once, twice = kappa([(0, 1), (1, 2)]), kappa([(0, 1), (1, 2), (1, 0)])
    assert (once.pair, once.relationship, once.person, once.intransitive) == (1, 1, 2, 1)
    # Both copies carry the target's label and difference: two pairs move together.
    assert (twice.pair, twice.relationship, twice.person, twice.intransitive) == (2, 2, 3, 2)
    assert kappa([(3, 4)] * 5).pair == kappa([(3, 4)] * 5).relationship == 5


def test_a_path_of_a_million_people_needs_no_stack():
    n = 10**6
    path = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    found = kappa(path)
    assert (found.relationship, found.paper_bound, found.person) == (1, 1, 2)
    ring = np.concatenate([path, [[n - 1, 0]]])
    assert kappa(ring).relationship == 2


def test_a_pairset_brings_its_people_along():
    pairset = SimpleNamespace(pairs=np.array([[0, 1], [1, 3]]), n_people=6)
    found = kappa(pairset)
    assert found.per_person.tolist() == [1, 1, 0, 1, 0, 0]
    assert found.n_people == 3  # those in a pair


def test_units_and_json():
    found = kappa(FIG3)
    assert [found.of(u) for u in ("pair", "relationship", "person")] == [1, 3, 4]
    with pytest.raises(InputError, match="unit must be"):
        found.of("intransitive")
    assert found.to_dict()["kappa"]["paper_bound"] == 3
    with pytest.raises(ValueError, match="read-only"):
        found.per_person[0] = 9


def test_no_pairs_is_an_error():
    with pytest.raises(InputError, match="no pairs"):
        kappa([])
