"""exact_kappa: the table of docs/theory/graph.md, and the chain of bounds on random small graphs."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from graph_examples import TABLE, random_pairs, small_graphs
from reproduction.graphs import exact_kappa

from pairveil.errors import InputError
from pairveil.graph.kappa import kappa


def largest_edge_connectivity(pairs):
    """lam_max: the most edge-disjoint paths between any two people (parallel pairs add up)."""
    graph = nx.Graph()
    for a, b in pairs:
        weight = graph.get_edge_data(a, b, {"capacity": 0})["capacity"]
        graph.add_edge(int(a), int(b), capacity=weight + 1)
    return max(nx.maximum_flow_value(graph, s, t) for s, t in combinations(graph, 2))


@pytest.mark.parametrize("name", TABLE)
def test_theory_table(name):
    pairs, exact, *_ = TABLE[name]
    assert exact_kappa(pairs) == exact


@pytest.mark.oracle
@pytest.mark.parametrize("simple", [True, False])
def test_the_chain_of_bounds(simple):
    strict = 0
    for pairs in small_graphs(seed=21, how_many=200, simple=simple):
        exact, found = exact_kappa(pairs), kappa(pairs)
        assert largest_edge_connectivity(pairs) <= exact <= found.relationship
        assert found.relationship <= found.paper_bound <= found.person
        strict += found.relationship < found.paper_bound
    assert strict > 0  # the chain is not tested on equal numbers only


def test_numbering_does_not_matter():
    rng = np.random.default_rng(22)
    pairs = random_pairs(rng, 6, 9)
    assert exact_kappa(rng.permutation(6)[pairs] * 1000) == exact_kappa(pairs)


def test_large_graphs_are_refused_with_the_way_out():
    with pytest.raises(InputError, match=r"at most 18 pairs, got 21; kappa\(pairs\).relationship"):
        exact_kappa(list(combinations(range(7), 2)))
