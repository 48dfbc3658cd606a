"""read_groups: a file of pairs with a column that says in which group each pair is."""

from __future__ import annotations

from typing import Any

import numpy as np

from pairveil.errors import InputError
from pairveil.records.groups import GroupSet
from pairveil.records.labels import Meaning
from pairveil.records.pairset import PairSet
from pairveil.records.readers import read_classes, read_pairs
from pairveil.records.resolving import look_up
from pairveil.records.tables import FeatureTable


def read_groups(
    source: Any,
    features: FeatureTable,
    group: str = "group",
    *,
    left: str = "left",
    right: str = "right",
    label: str = "label",
    zero_means: Meaning | None = None,
    merge_similar_ids: bool = False,
) -> GroupSet:
    """Read labelled pairs that are sorted into disjoint groups of people.

    Parameters
    ----------
    source : path, DataFrame or mapping
        A table of pairs: two ids, a label, and a group.
    features : FeatureTable
        The people, as `read_features` gives them.
    group : str
        The column of groups, whole numbers or text; it must be public.
    left, right, label, zero_means, merge_similar_ids
        As for `read_pairs`.

    Returns
    -------
    GroupSet
        Pairs of a group that the file does not list are null.

    Raises
    ------
    InputError
        Somebody is in pairs of two groups; and as for `read_pairs`.

    Examples
    --------
    >>> people = FeatureTable(ids=["ann", "bob", "cid", "dan"], values=np.eye(4))
    >>> read_groups(
    ...     {
    ...         "left": ["ann", "cid"],
    ...         "right": ["bob", "dan"],
    ...         "label": ["same", "different"],
    ...         "group": ["ward 1", "ward 2"],
    ...     },
    ...     people,
    ... )
    GroupSet(2 groups of at most 2 people, 2 pairs, 4 features)
    """
    table = read_pairs(
        source, left, right, label, zero_means, "table", merge_similar_ids=merge_similar_ids
    )
    _, number = np.unique(read_classes(source, group).astype(str), return_inverse=True)
    ends = look_up(table, features.ids)
    groups = np.full(features.n_people, -1, dtype=np.int64)
    groups[ends[:, 0]] = groups[ends[:, 1]] = number  # of several mentions, one
    elsewhere = np.flatnonzero((groups[ends] != number[:, None]).any(axis=1))
    if elsewhere.size:
        raise InputError(
            f"groups overlap: somebody in row {elsewhere[0] + 1} of the pairs is in a pair of another group "
            "too; put everybody into one group"
        )
    return GroupSet.of_pairs(PairSet.join(features, table), groups)
