"""key_pairs: the paper's Fig. 3, and that the key pairs do what is said of them."""

from itertools import combinations, pairwise

import networkx as nx
import numpy as np
import pytest
from graph_examples import FIG3, FIG3_NAMES, random_pairs, small_graphs
from reproduction.graphs import exact_kappa

from pairveil.audit.attack import key_pairs
from pairveil.errors import InputError
from pairveil.graph.kappa import kappa


def separated_and_off_cycles(pairs, gone, s, t, v):
    """Whether, without the pairs `gone`, s and t are apart and v is on no cycle."""
    rest = [tuple(map(int, p)) for j, p in enumerate(pairs) if j not in set(gone)]
    graph = nx.Graph(rest)
    graph.add_nodes_from(np.unique(pairs).tolist())
    if nx.has_path(graph, s, t):
        return False
    ends = [a + b - v for a, b in rest if v in (a, b)]
    graph.remove_node(v)
    return not any(a == b or nx.has_path(graph, a, b) for a, b in combinations(ends, 2))


def check_paths(pairs, paths, s, t):
    """Each is a walk from s to t without a repeated person; no pair is used twice."""
    used = [j for path in paths for j in path]
    assert len(used) == len(set(used))
    for path in paths:
        at, seen = s, {s}
        for j in path:
            assert at in pairs[j]
            at = int(sum(pairs[j]) - at)
            assert at not in seen
            seen.add(at)
        assert at == t


def test_the_papers_figure_3():
    found = key_pairs(FIG3, 0, 1)
    assert sorted(FIG3_NAMES[j] for j in found.cut) == ["sc", "st"]
    assert {FIG3_NAMES[j] for j in found.key} in ({"st", "sc", "bs"}, {"st", "sc", "sa"})
    # The paper's figure takes away three pairs; its formula says 2 + min(c_s, c_t) = 2, since t is
    # on no cycle once the paths' pairs are gone. Without st and sc alone t is on c, e, t, u.
    assert (found.endpoint, found.count, found.paper_count) == (0, 3, 2)
    assert not separated_and_off_cycles(FIG3, found.cut, 0, 1, 1)
    assert [len(path) for path in found.paths] == [1, 3]
    check_paths(FIG3, found.paths, 0, 1)


@pytest.mark.oracle
@pytest.mark.parametrize("simple", [True, False])
def test_key_pairs_do_it_and_nothing_smaller_does(simple):
    for pairs in small_graphs(seed=31, how_many=60, simple=simple, max_people=6, max_pairs=9):
        people = np.unique(pairs).tolist()
        worst = worst_on_paper = 0
        for s, t in combinations(people, 2):
            found = key_pairs(pairs, s, t)
            check_paths(pairs, found.paths, s, t)
            assert separated_and_off_cycles(pairs, found.key, s, t, found.endpoint)
            assert len(found.cut) == len(found.paths)
            for size in range(found.count):
                for gone in combinations(range(len(pairs)), size):
                    for v in (s, t):
                        assert not separated_and_off_cycles(pairs, gone, s, t, v)
            assert found.paper_count <= found.count
            worst, worst_on_paper = max(worst, found.count), max(worst_on_paper, found.paper_count)
        assert worst <= kappa(pairs).relationship
        if nx.is_connected(nx.Graph(pairs.tolist())):
            assert worst == kappa(pairs).relationship
        assert worst_on_paper <= exact_kappa(pairs)


def test_where_the_papers_count_is_too_small():
    # Two triangles joined by a bridge; s = 1 and t = 4 are off the bridge.
    barbell = [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (0, 3)]
    found = key_pairs(barbell, 1, 4)
    assert (found.paper_count, found.count) == (1, 2)
    one_is_enough = any(
        separated_and_off_cycles(barbell, [j], 1, 4, v) for j in range(7) for v in (1, 4)
    )
    assert not one_is_enough


def test_people_who_are_not_connected_need_no_cut():
    two_triangles = [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)]
    found = key_pairs(two_triangles, 0, 3)
    assert (found.paths, found.cut, found.count, found.endpoint) == ((), (), 1, 0)


@pytest.mark.oracle
def test_a_hundred_thousand_pairs():
    rng = np.random.default_rng(32)
    pairs = random_pairs(rng, 50_000, 100_000, simple=False)
    degree = np.bincount(pairs.ravel())
    s, t = (int(v) for v in np.argsort(degree)[-2:])
    found, b = key_pairs(pairs, s, t), kappa(pairs).per_person
    check_paths(pairs, found.paths, s, t)
    assert separated_and_off_cycles(pairs, found.cut + found.key, s, t, found.endpoint)
    assert found.count == min(b[s], b[t])


def test_a_long_path():
    path = np.array(list(pairwise(range(100_001))))
    found = key_pairs(path, 0, 100_000)
    assert found.paths == (tuple(range(100_000)),)
    assert found.count == found.paper_count == len(found.cut) == 1


@pytest.mark.parametrize(
    ("s", "t", "says"), [(0, 0, "same person"), (9, 1, "s does not occur"), (0, 9, "t does not")]
)
def test_bad_targets(s, t, says):
    with pytest.raises(InputError, match=says):
        key_pairs(FIG3, s, t)
