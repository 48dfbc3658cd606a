"""Kappas of tuples against brute force, and choices that look at members alone."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairveil import InputError, kappa
from pairveil.graph.choosing import sample_tuples, select_tuples
from pairveil.graph.kappa import kappa_of_tuples
from pairveil.records.kinds import RecordKind
from pairveil.records.records import Records
from pairveil.records.tupleset import TupleSet


def components(n, tuples, without=()):
    """Sets of people that chains of tuples tie together, people in ``without`` taken out."""
    sets = [{v} for v in range(n) if v not in without]
    for one in tuples:
        joined = [s for s in sets if s & set(one)]
        sets = [s for s in sets if not s & set(one)] + ([set().union(*joined)] if joined else [])
    return sets


def on_a_cycle(n, tuples, v):
    """Whether two tuples of v lead to each other without v."""
    own = [set(one) - {v} for one in tuples if v in one]
    rest = components(n, tuples_without(tuples, v), without=(v,))
    touched = [{i for i, s in enumerate(rest) if s & one} for one in own]
    return any(a & b for a, b in itertools.combinations(touched, 2))


def tuples_without(tuples, v):
    return [one for one in tuples if v not in one]


def is_hidden(n, tuples, s, t):
    """Whether s and t are tied by no chain, and one of them is on no cycle."""
    apart = not any({s, t} <= found for found in components(n, tuples))
    return apart and not (on_a_cycle(n, tuples, s) and on_a_cycle(n, tuples, t))


def exact_relationship(n, tuples):
    """The most, over two people, of the fewest tuples that must be missing to hide how they relate."""
    worst = 0
    for s, t in itertools.combinations(range(n), 2):
        for count in range(len(tuples) + 1):
            kept = itertools.combinations(tuples, len(tuples) - count)
            if any(is_hidden(n, list(rest), s, t) for rest in kept):
                worst = max(worst, count)
                break
    return worst


def brute_b(n, tuples, v):
    """Degree less the pieces into which people tied to v fall when v goes, plus one."""
    own = [set(one) - {v} for one in tuples if v in one]
    if not own:
        return 0
    rest = [set(one) for one in tuples_without(tuples, v)]
    pieces = list(own)  # the members of a tuple stay together when v leaves it
    for one in rest:
        joined = [p for p in pieces if p & one]
        if joined:
            pieces = [p for p in pieces if not p & one] + [set().union(one, *joined)]
    merged = True
    while merged:
        merged = False
        for a, b in itertools.combinations(range(len(pieces)), 2):
            if pieces[a] & pieces[b] or any(one & pieces[a] and one & pieces[b] for one in rest):
                pieces = [p for i, p in enumerate(pieces) if i not in (a, b)] + [
                    pieces[a] | pieces[b]
                ]
                merged = True
                break
        for one in rest:
            for i, p in enumerate(pieces):
                if p & one and not one <= p:
                    pieces[i] = p | one
                    merged = True
    return len(own) - len(pieces) + 1


@st.composite
def hypergraphs(draw, most=7, n=6):
    size = draw(st.integers(3, 4))
    sets = draw(
        st.lists(
            st.sets(st.integers(0, n - 1), min_size=size, max_size=size), min_size=1, max_size=most
        )
    )
    return n, sorted({tuple(sorted(one)) for one in sets})


@settings(max_examples=80, deadline=None)
@given(hypergraphs())
def test_the_numbers_are_those_of_their_definitions(graph):
    n, tuples = graph
    found = kappa_of_tuples(tuples)
    degrees = [sum(v in one for one in tuples) for v in range(n)]
    shared = [
        sum({s, t} <= set(one) for one in tuples) for s, t in itertools.combinations(range(n), 2)
    ]
    b = sorted(brute_b(n, tuples, v) for v in range(n))
    assert found.person == max(degrees)
    assert found.pair == max(shared)
    assert (found.relationship, found.paper_bound) == (b[-2], b[-1])
    assert 1 <= found.pair <= found.relationship <= found.person
    assert found.n_pairs == len(tuples)


@settings(max_examples=40, deadline=None)
@given(hypergraphs(most=5, n=5))
def test_so_many_missing_tuples_always_hide_a_relationship(graph):
    n, tuples = graph
    assert exact_relationship(n, tuples) <= kappa_of_tuples(tuples).relationship


@pytest.mark.parametrize("how", ["paths", "forest", "matching"])
@settings(max_examples=60, deadline=None)
@given(graph=hypergraphs(most=12, n=9), seed=st.integers(0, 99))
def test_selections_keep_their_word(how, graph, seed):
    _, tuples = graph
    members = np.array(tuples)
    kept = select_tuples(members, how, random_state=seed)
    found = kappa_of_tuples(members[kept])
    assert found.relationship == 1
    assert found.person <= {"paths": 2, "forest": 99, "matching": 1}[how]
    for other in np.setdiff1d(np.arange(len(members)), kept):  # nothing more fits
        more = kappa_of_tuples(members[np.append(kept, other)])
        limit = {"paths": 2, "forest": 99, "matching": 1}[how]
        assert more.person > limit or more.relationship > 1


def test_tuples_of_a_tree_of_pairs_have_the_kappa_of_its_pairs():
    """Each pair with a third person of its own is a pair again: the numbers are those of the graph."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        pairs = np.unique(np.sort(rng.integers(8, size=(12, 2)), axis=1), axis=0)
        pairs = pairs[pairs[:, 0] < pairs[:, 1]]
        tuples = np.column_stack([pairs, 8 + np.arange(len(pairs))])
        wanted, found = kappa(pairs), kappa_of_tuples(tuples)
        assert (found.pair, found.person) == (1, wanted.person)
        assert (found.relationship, found.paper_bound) == (wanted.relationship, wanted.paper_bound)


def test_a_long_chain_is_counted_in_linear_time_and_space():
    n = 200_000
    chain = np.column_stack([2 * np.arange(n), 2 * np.arange(n) + 1, 2 * np.arange(n) + 2])
    found = kappa_of_tuples(chain)
    assert (found.pair, found.relationship, found.person, found.n_pairs) == (1, 1, 2, n)
    assert len(select_tuples(chain, "paths", random_state=0)) == n


@pytest.mark.parametrize("size", [3, 5, 8])
@pytest.mark.parametrize("most", [1, 3])
def test_nobody_is_sampled_more_often_than_was_said(size, most):
    tuples = sample_tuples(50, size, most, random_state=0)
    assert np.bincount(tuples.ravel(), minlength=50).max() <= most
    assert len(tuples) >= most * (50 // size) - most  # hardly any twice
    np.testing.assert_array_equal(tuples, sample_tuples(50, size, most, random_state=0))
    assert (tuples[:, 1:] > tuples[:, :-1]).all()
    data = TupleSet(np.zeros((50, 1)), tuples)
    assert data.canonical()[0] is data  # sampled tuples are in canonical order


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_people": 2}, "3 members need"),
        ({"size": 2}, "size must be from 3"),
        ({"size": 33}, "size must be from 3"),
        ({"max_per_person": 0}, "max_per_person"),
        ({"n_people": True}, "n_people"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_designs_that_make_no_sense_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        sample_tuples(**{"n_people": 9, **options})


def test_what_is_no_tuple_is_refused():
    for wrong, message in (
        ([[0, 1, 1]], "names a person twice"),
        ([[0, 1]], "from 3 to 32"),
        ([[0, 1, -2]], "outside"),
        ([[0.0, 1.0, 2.0]], "integers"),
        ([], "no tuples"),
        ([[0, 1, 2], [0, 1]], "as many members"),
    ):
        with pytest.raises(InputError, match=message):
            kappa_of_tuples(wrong)


def test_any_kind_that_is_counted_on_tuples_is_counted():
    """By its members and its own sizes, whatever its face calls them."""

    class Quadruplets(Records):
        record_kind = RecordKind("quadruplets", "quadruplet", graph="tuples", sizes=(4, 4))

    found = Quadruplets.checked_before(members=np.array([[0, 1, 2, 3], [0, 1, 4, 5], [6, 7, 8, 9]]))
    assert kappa_of_tuples(found) == kappa_of_tuples(found.members)
    assert len(select_tuples(found, "matching", random_state=0)) == 2
    with pytest.raises(InputError, match="quadruplets"):
        kappa_of_tuples(found._changed(members=found.members[:, :3]))
