"""Groups of people as records: given, cut out of pairs, or dealt from people with classes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from pairveil.engine.backends.records import clipped, is_remote
from pairveil.errors import InputError
from pairveil.graph.choosing import check_size, design_groups, select_pairs
from pairveil.graph.kappa import kappa
from pairveil.learners.inputs import Resolved
from pairveil.learners.material import Material, selection_seed, stated_selection
from pairveil.privacy.mechanisms import Budget, mechanism_named
from pairveil.privacy.units import ASSUMED_TOPOLOGY, SELECTED_CAVEAT
from pairveil.records.groups import GroupSet, check_numbers, members_of
from pairveil.records.kinds import GROUPS

SIZES = (3, 8)
GROUPS_PER_NOISE = 20.0


def material_of_groups(given: Any, groups: GroupSet) -> Material:
    """Given groups as material: in canonical order, rows clipped, all of them used.

    Parameters
    ----------
    given : parameters
        Plain: data_norm.
    """
    data = clipped(groups.canonical(), given.data_norm)
    return Material(
        given=data,
        used=data,
        used_rows=range(data.n_pairs),
        kind=GROUPS.name,
        costs=GROUPS.costs(),
        selection=stated_selection("all", None, 1),
        n_given=data.n_pairs,
    )


def cut_pairs(given: Any, found: Resolved) -> Material:
    """Given pairs, cut into groups by who is paired with whom alone.

    Parameters
    ----------
    given : parameters
        Plain and checked, with select='groups'.
    found : Resolved
        The pairs, in canonical order.
    """
    refuse_together(getattr(found.data, "together", None))
    if is_remote(found.data):
        raise InputError(
            "groups are cut out of pairs on this machine: give pairs that fit into its memory"
        )
    if given.kappa != "auto":
        raise InputError("kappa is for single pairs: a unit is in one group, so leave kappa='auto'")
    data = clipped(found.data, given.data_norm)
    size, seed = usual_size(given, data), selection_seed(given.random_state)
    kept = select_pairs(data, "groups", random_state=seed, group_size=size)
    used = data if len(kept) == data.n_pairs else data.subset(kept)
    full = kappa(data.pairs)
    return Material(
        given=data,
        used=GroupSet.of_pairs(used, components(used.pairs, used.n_people)),
        used_rows=kept if found.positions is None else np.sort(found.positions[kept]),
        kind=GROUPS.name,
        costs=GROUPS.costs(),
        selection=stated_selection(
            given.select, None if used is data else SELECTED_CAVEAT, full.relationship
        ),
        public=(ASSUMED_TOPOLOGY,) if found.inferred else (),
        for_release=not found.inferred,
        given_kappa=full,
        used_kappa=kappa(used.pairs),
        group_limit=size,
    )


def refuse_together(together: Any) -> None:
    """Refuse groups where people change together: such people may be in several groups."""
    if together is not None:
        raise InputError(
            "groups are records of their own, and people who change together may be in several: leave "
            "'together' out, or choose select='paths', 'forest', 'matching' or 'all'"
        )


def usual_size(given: Any, data: Any) -> int:
    """Most people of a group, from public numbers alone: smaller groups where the noise is louder.

    Large groups average sampling error away, but leave few records against the noise. So many people that
    groups stay `GROUPS_PER_NOISE` times as many as the noise is long in one direction; within `SIZES`.

    Parameters
    ----------
    given : parameters
        Plain and checked: epsilon, delta, unit, adjacency, mechanism.
    data : PairSet
    """
    delta = 0.0 if mechanism_named(given.mechanism).is_pure else given.delta
    budget = Budget(given.epsilon, delta, GROUPS.costs()[given.unit], given.adjacency)
    if not budget.is_private:
        return SIZES[1]
    noise = mechanism_named(given.mechanism).multiplier(budget, 1.0)
    people = len(np.unique(data.pairs))
    wanted = people / (noise * math.sqrt(data.n_features)) / GROUPS_PER_NOISE
    return int(np.clip(round(min(wanted, SIZES[1])), *SIZES))


def components(ends: NDArray[Any], n_people: int) -> NDArray[np.int64]:
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
        kind=GROUPS.name,
        costs=GROUPS.costs(),
        selection={**people.selection, "full_graph_relationship_kappa": 1},
        n_given=made.n_pairs,
    )
