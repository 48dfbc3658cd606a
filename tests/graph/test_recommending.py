"""The recommended selection is the one that leaves most pairs for a person's noise."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pairveil.graph.choosing import NEARLY, kappas_of_selections, recommended_selection

EDGES = st.sets(
    st.tuples(st.integers(0, 12), st.integers(0, 12)).filter(lambda e: e[0] < e[1]), min_size=1
)


@given(EDGES)
def test_no_other_selection_is_clearly_better_for_a_person(edges):
    found = kappas_of_selections(np.array(sorted(edges)))
    best = found[recommended_selection(found)]
    signal = best.n_pairs / best.person
    assert all(signal >= NEARLY * one.n_pairs / one.person for one in found.values())


def test_paths_before_a_matching_that_tells_as_much():
    ring = np.array([(i, (i + 1) % 20) for i in range(20)])
    assert recommended_selection(kappas_of_selections(ring)) == "paths"
