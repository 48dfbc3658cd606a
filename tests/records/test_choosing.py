"""Choosing pairs: the promised kappa always holds, and many pairs are kept."""

from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairveil.errors import InputError
from pairveil.graph.choosing import design_pairs, select_pairs
from pairveil.graph.kappa import kappa


def random_pairs(seed, n_people, n_pairs):
    """Uniform pairs, repeats possible, no self pairs."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, n_people, size=n_pairs)
    b = (a + rng.integers(1, n_people, size=n_pairs)) % n_people
    return np.stack([a, b], axis=1)


graphs = st.builds(random_pairs, st.integers(0, 2**32 - 1), st.integers(2, 40), st.integers(1, 120))
every_example = settings(deadline=None, max_examples=80, derandomize=True)


def acyclic(pairs):
    graph = nx.MultiGraph(pairs.tolist())
    return graph.number_of_edges() == graph.number_of_nodes() - nx.number_connected_components(
        graph
    )


def is_positions(kept, pairs):
    return (
        kept.dtype == np.int64
        and (np.diff(kept) > 0).all()
        and kept[0] >= 0
        and kept[-1] < len(pairs)
    )


@every_example
@given(graphs, st.integers(0, 5))
def test_paths_keep_their_promise(pairs, seed):
    kept = select_pairs(pairs, "paths", random_state=seed)
    found = kappa(pairs[kept])
    assert is_positions(kept, pairs)
    assert acyclic(pairs[kept])
    assert (found.pair, found.relationship) == (1, 1)
    assert found.person <= 2


@every_example
@given(graphs, st.integers(0, 5))
def test_a_matching_keeps_its_promise_and_is_maximal(pairs, seed):
    kept = select_pairs(pairs, "matching", random_state=seed)
    assert kappa(pairs[kept]).person == 1
    matched = set(pairs[kept].ravel().tolist())
    assert all(a in matched or b in matched for a, b in pairs.tolist())


@every_example
@given(graphs, st.integers(0, 5))
def test_a_forest_spans(pairs, seed):
    kept = select_pairs(pairs, "forest", random_state=seed)
    graph = nx.Graph(pairs.tolist())
    assert acyclic(pairs[kept])
    assert kappa(pairs[kept]).relationship == 1
    assert len(kept) == graph.number_of_nodes() - nx.number_connected_components(graph)


@every_example
@given(graphs, st.sampled_from(["all", "forest", "paths", "matching"]), st.integers(1, 5))
def test_max_degree_combines_with_each_kind_and_leaves_no_room(pairs, how, limit):
    own = {"paths": 2, "matching": 1}.get(how, limit)
    kept = select_pairs(pairs, how, max_degree=limit, random_state=0)
    degree = np.bincount(pairs[kept].ravel(), minlength=pairs.max() + 1)
    assert degree.max() <= min(own, limit)
    if how in ("paths", "forest"):
        assert acyclic(pairs[kept])
    # Maximal: each pair left out would exceed a limit, or close a cycle where none is allowed.
    components = nx.utils.UnionFind(range(pairs.max() + 1))
    for a, b in pairs[kept].tolist():
        components.union(a, b)
    taken = {frozenset(pair) for pair in pairs[kept].tolist()}
    for j in set(range(len(pairs))) - set(kept.tolist()):
        a, b = pairs[j].tolist()
        if {a, b} in taken:  # a second mention
            continue
        closes = how in ("paths", "forest") and components[a] == components[b]
        assert max(degree[a], degree[b]) >= min(own, limit) or closes


@every_example
@given(graphs, st.sampled_from(["paths", "forest", "matching"]))
def test_the_promise_does_not_hang_on_numbering_or_order(pairs, how):
    rng = np.random.default_rng(1)
    moved = rng.permutation(40)[pairs][rng.permutation(len(pairs))]
    promise = {"paths": 2, "matching": 1, "forest": 10**9}[how]
    for given_pairs in (moved, moved * 10**10):  # sparse numbers too
        found = kappa(given_pairs[select_pairs(given_pairs, how, random_state=3)])
        assert found.relationship == 1
        assert found.person <= promise


def test_a_seed_reproduces_and_another_seed_differs():
    pairs = random_pairs(7, 300, 600)
    for how in ("paths", "forest", "matching"):
        first = select_pairs(pairs, how, random_state=5)
        np.testing.assert_array_equal(first, select_pairs(pairs, how, random_state=5))
        generator = np.random.default_rng(5)
        np.testing.assert_array_equal(first, select_pairs(pairs, how, random_state=generator))
        assert first.tolist() != select_pairs(pairs, how, random_state=6).tolist()
        np.testing.assert_array_equal(
            design_pairs(50, how, random_state=5), design_pairs(50, how, random_state=5)
        )


def test_all_keeps_the_first_mention_of_every_pair():
    pairs = random_pairs(7, 30, 60)
    first: dict[frozenset, int] = {}
    for at, pair in enumerate(pairs.tolist()):
        first.setdefault(frozenset(pair), at)
    assert len(first) < 60
    assert select_pairs(pairs, "all").tolist() == sorted(first.values())


def test_a_forest_avoids_stars_where_it_can():
    # A wheel: a star at the hub spans it, and so does a path along the rim.
    wheel = np.array([(0, i) for i in range(1, 41)] + [(i, i % 40 + 1) for i in range(1, 41)])
    assert kappa(wheel[select_pairs(wheel, "forest", random_state=0)]).person <= 3
    star = wheel[:40]  # here it cannot
    assert kappa(star[select_pairs(star, "forest", random_state=0)]).person == 40


def test_many_pairs_are_kept_on_the_random_graph():
    # The setting of issue 2: E = 2V, V = 18,700. Seen over seeds 0..9: paths 0.938 to 0.942 V,
    # matching 0.488 to 0.490 V; the bounds are the and no sampling error comes near them.
    n_people = 18_700
    pairs = random_pairs(0, n_people, 2 * n_people)
    graph = nx.Graph(pairs.tolist())
    assert len(select_pairs(pairs, "paths", random_state=0)) >= 0.88 * n_people
    assert len(select_pairs(pairs, "matching", random_state=0)) >= 0.45 * n_people
    forest = select_pairs(pairs, "forest", random_state=0)
    assert len(forest) == graph.number_of_nodes() - nx.number_connected_components(graph)
    assert kappa(pairs[forest]).person <= 5  # 4 for most seeds


@pytest.mark.oracle
def test_matching_is_near_the_maximum():
    pairs = random_pairs(3, 1000, 2000)
    best = len(nx.max_weight_matching(nx.Graph(pairs.tolist()), maxcardinality=True))
    assert len(select_pairs(pairs, "matching", random_state=0)) >= 0.98 * best


def test_a_pairset_is_taken_and_not_changed():
    pairs = random_pairs(2, 10, 20)
    pairs.flags.writeable = False
    kept = select_pairs(SimpleNamespace(pairs=pairs), "paths", random_state=0)
    np.testing.assert_array_equal(kept, select_pairs(pairs, "paths", random_state=0))


@pytest.mark.parametrize("n_people", [2, 3, 10, 101])
def test_designs_keep_their_promise(n_people):
    sizes = {"paths": n_people - 1, "forest": n_people - 1, "matching": n_people // 2}
    for how, limit in (("paths", 2), ("forest", 3), ("matching", 1)):
        pairs = design_pairs(n_people, how, random_state=1)
        assert pairs.shape == (sizes[how], 2)
        assert pairs.dtype == np.int64
        assert set(pairs.ravel().tolist()) <= set(range(n_people))
        assert acyclic(pairs)
        assert kappa(pairs).person <= limit
        assert kappa(pairs).relationship == 1


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: select_pairs([], "paths"), "no pairs"),
        (lambda: select_pairs([(0, 1, 2)], "paths"), r"\(K, 2\)"),
        (lambda: select_pairs([(0, 1), (2,)], "paths"), r"\(K, 2\)"),
        (lambda: select_pairs([(0.0, 1.0)], "paths"), "integer"),
        (lambda: select_pairs([(0, 1), (-1, 2)], "paths"), "negative"),
        (
            lambda: select_pairs([(0, 1), (3, 3)], "paths"),
            r"1 pair joins a person with herself \(row 2\)",
        ),
        (lambda: select_pairs([(0, 1)], "stars"), "how must be"),
        (lambda: select_pairs([(0, 1)], "all", max_degree=0), "at least 1"),
        (lambda: select_pairs([(0, 1)], "all", max_degree=1.5), "whole number"),
        (lambda: select_pairs([(0, 1)], "paths", random_state="x"), "random_state"),
        (lambda: select_pairs([(0, 1)], "paths", random_state=-1), "negative"),
        (lambda: design_pairs(1), "at least 2"),
        (lambda: design_pairs(2.5), "whole number"),
        (lambda: design_pairs(5, "all"), "how must be"),
    ],
)
def test_bad_input_is_refused_in_words(call, says):
    with pytest.raises(InputError, match=says):
        call()
