"""People who change together: a household, a site, all patients of one clinician.

A public column says who shares a value. The unit 'person' then covers everybody who shares it, so what counts
is how many used pairs touch one *value*; inside and across alike, each pair once (docs/theory/graph.md).
People without a value stand alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil.graph.choosing import select_pairs
from pairveil.graph.kappa import Kappa
from pairveil.graph.selections import NO_LIMIT, selection_named


def select_together(
    pairs: NDArray[Any], together: NDArray[np.int64], how: str, random_state: Any
) -> NDArray[np.int64]:
    """Which pairs to keep so that few of them touch one value: the selection among values, not people.

    Pairs of people who share a value come last: one for each value that no other pair touches.

    Parameters
    ----------
    pairs : (K, 2) array of people, in canonical order
    together : (n_people,) array
        As `pairveil.records.shared_values.numbered` has it.
    how, random_state
        As for `select_pairs`.

    Examples
    --------
    Two households, three pairs between them, one inside: a matching keeps one.

    >>> pairs = np.array([[0, 1], [0, 2], [1, 2], [1, 3]])
    >>> select_together(pairs, np.array([0, 0, 1, 1]), "matching", 0).tolist()
    [1]
    """
    rule = selection_named(how)
    if rule.limit == NO_LIMIT and not rule.acyclic:
        return np.arange(len(pairs))
    values = together[pairs]
    across = np.flatnonzero(values[:, 0] != values[:, 1])
    kept = np.empty(0, dtype=np.int64)
    if len(across):
        kept = across[select_pairs(values[across], how, random_state=random_state)]
    inside = np.flatnonzero(values[:, 0] == values[:, 1])
    inside = inside[~np.isin(values[inside, 0], values[kept])]
    first = inside[np.unique(values[inside, 0], return_index=True)[1]]
    return np.sort(np.concatenate([kept, first]))


def kappa_together(found: Kappa, pairs: NDArray[Any], together: NDArray[np.int64]) -> Kappa:
    """The same numbers, with all pairs of one value in place of all pairs of one person.

    Examples
    --------
    >>> from pairveil.graph.kappa import kappa
    >>> pairs = np.array([[0, 1], [0, 2], [1, 3]])
    >>> kappa_together(kappa(pairs), pairs, np.array([0, 0, 1, 2])).person
    3
    """
    values = together[pairs]
    once = np.where(
        values[:, 0] == values[:, 1], -1, values[:, 1]
    )  # a pair inside touches one value
    touched = np.concatenate([values[:, 0], once[once >= 0]])
    return replace(found, person=int(np.bincount(touched).max()))
