"""Groups of people as records: given, cut out of pairs, or dealt from people with classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from pairveil.data.groups import GroupSet, check_numbers, members_of
from pairveil.engine.backends.records import clipped, is_remote
from pairveil.errors import InputError
from pairveil.graph.grouping import check_size, design_groups
from pairveil.learners.inputs import Resolved
from pairveil.learners.material import Material, material_of_pairs, selection_seed
from pairveil.privacy.costs import RECORD_KINDS, Cost
from pairveil.privacy.units import UNITS, Unit

COSTS_OF_GROUPS: dict[Unit, Cost] = dict.fromkeys(UNITS, RECORD_KINDS["groups"])
"""A pair, a relationship and a person are each in one group, which moves by two clips
(docs/theory/groups.md)."""


def material_of_groups(given: Any, groups: GroupSet, stacklevel: int) -> Material:
    """Given groups as material: in canonical order, rows clipped, all of them used.

    Parameters
    ----------
    given : parameters
        Plain: data_norm.
    groups : GroupSet
    """
    data = clipped(groups.canonical(), given.data_norm, stacklevel + 1)
    return Material(
        given=data,
        used=data,
        used_rows=range(data.n_pairs),
        kind="groups",
        costs=COSTS_OF_GROUPS,
        selection={"how": "all", "caveat": None, "full_graph_relationship_kappa": 1},
        n_given=data.n_pairs,
    )


def cut_pairs(given: Any, found: Resolved, stacklevel: int) -> Material:
    """Given pairs, cut into groups by who is paired with whom alone.

    Parameters
    ----------
    given : parameters
        Plain and checked, with select='groups'.
    found : Resolved
        The pairs, in canonical order.
    """
    refuse_cluster(given.backend)
    if is_remote(found.data):
        raise InputError("groups are summed on this machine: give pairs that fit into its memory")
    if given.kappa != "auto":
        raise InputError("kappa is for single pairs: a unit is in one group, so leave kappa='auto'")
    pairs = material_of_pairs(given, found, stacklevel + 1)
    used = pairs.used
    groups = GroupSet.of_pairs(used, _components(used.pairs, used.n_people))
    return replace(pairs, used=groups, kind="groups", costs=COSTS_OF_GROUPS)


def _components(ends: NDArray[Any], n_people: int) -> NDArray[np.int64]:
    """Which cluster everybody is in; -1 for people without pairs. Groups were cut as connected clusters."""
    joined = sparse.coo_array((np.ones(len(ends)), tuple(ends.T)), shape=(n_people, n_people))
    found = connected_components(joined, directed=False)[1].astype(np.int64)
    paired = np.zeros(n_people, dtype=np.bool_)
    paired[ends] = True
    return np.where(paired, found, -1)


def grouped_people(given: Any, people: Material, groups: Any) -> Material:
    """People with classes in groups: dealt by a size, or as their numbers say.

    Parameters
    ----------
    given : parameters
        Plain and checked.
    people : Material
        Of people with classes, in canonical order.
    groups : int or integer array of shape (n,)
        Size of the groups, or each person's group (-1 for none) in the order in which people were given.
    """
    refuse_cluster(given.backend)
    data = people.used
    if np.ndim(groups) == 0:
        check_size(groups)
        if data.n_records < groups:
            raise InputError(f"{data.n_records} people are fewer than one group of {groups}")
        seed = selection_seed(given.random_state)
        members = design_groups(data.n_records, int(groups), random_state=seed)
    else:
        numbers = check_numbers(groups, data.n_records)
        if people.order is not None:
            numbers = numbers[people.order]
        members = members_of(numbers)[0]
    made = GroupSet.of_classes(
        data.features, members, data.classes, data.ids, data.feature_names
    ).canonical()
    return replace(
        people,
        given=made,
        used=made,
        used_rows=range(made.n_pairs),
        kind="groups",
        costs=COSTS_OF_GROUPS,
        selection={**people.selection, "full_graph_relationship_kappa": 1},
        n_given=made.n_pairs,
    )


def refuse_cluster(backend: str) -> None:
    """Groups are summed on this machine."""
    if backend == "dask":
        raise InputError("groups are summed on this machine: backend='auto'")
