"""Groups of people: dealt out before anything is labelled, or cut out of a graph of given pairs.

Both are blind to labels and features. Groups are disjoint, so that whatever happens to one person
happens to one record (docs/theory/groups.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil._compiled import lazy_njit
from pairveil.array_types import IntArray
from pairveil.errors import InputError

USUAL_SIZE = 8
"""People in a group where nothing else was said (docs/guides/choosing-pairs.md)."""
MOST_IN_A_GROUP = 64


def design_groups(
    n_people: int, size: int = USUAL_SIZE, random_state: int | np.random.Generator | None = None
) -> IntArray:
    """Deal people into disjoint groups, before anyone labels a pair.

    Parameters
    ----------
    n_people : int
        People are 0..n_people-1; the few (fewer than ``size``) who are left over are in no group.
    size : int
        People in each group, 2 to 64.
    random_state : int, Generator or None
        Who sits with whom. Not a privacy matter: the groups are public.

    Returns
    -------
    ndarray of int64, shape (n_people // size, size)
        A row a group, ascending.

    Examples
    --------
    >>> groups = design_groups(10, 3, random_state=0)
    >>> groups.shape, len(set(groups.ravel().tolist()))
    ((3, 3), 9)
    """
    # Here and not above: choosing imports the registry of selections, which names this module.
    from pairveil.graph.choosing import MAX_PEOPLE, generator_of

    check_size(size)
    whole = isinstance(n_people, int | np.integer) and not isinstance(n_people, bool)
    if not whole or not size <= n_people <= MAX_PEOPLE:
        raise InputError(
            f"n_people must be a whole number from {size}, the size of a group, to {MAX_PEOPLE:,}"
        )
    people = generator_of(random_state).permutation(int(n_people)).astype(np.int64)
    groups = np.sort(people[: n_people // size * size].reshape(-1, size), axis=1)
    dealt: IntArray = groups[np.argsort(groups[:, 0])]
    return dealt


def check_size(size: Any) -> None:
    """Refuse what is no size of a group."""
    whole = isinstance(size, int | np.integer) and not isinstance(size, bool)
    if not whole or not 2 <= size <= MOST_IN_A_GROUP:
        raise InputError(f"a group has from 2 to {MOST_IN_A_GROUP} people: give a whole number")


def cut_into_groups(
    ends: NDArray[Any], n_people: int, size: int, rng: np.random.Generator
) -> IntArray:
    """Cut a graph of pairs into vertex-disjoint clusters of at most ``size`` people.

    Clusters grow one person at a time from whoever has the fewest pairs: the next is who has most pairs with
    those inside, then who has fewest left elsewhere. A person's pairs are walked when she joins, and whoever
    is near is looked at ``size`` times: linear in pairs. Keeping the most pairs is NP-hard; this keeps
    separate cliques of that size whole, and of a long path five pairs in six (groups of 8).

    Parameters
    ----------
    ends : integer array of shape (K, 2)
        Pairs, each once.
    rng : Generator
        Breaks ties.

    Returns ndarray of int64, shape (n_people,): each person's group; -1 for people in no group.

    Examples
    --------
    >>> triangles = np.array([[0, 1], [0, 2], [1, 2], [3, 4], [3, 5], [4, 5], [2, 3]])
    >>> groups = cut_into_groups(triangles, 6, 3, np.random.default_rng(0))
    >>> len(set(groups[:3].tolist())), len(set(groups[3:].tolist())), groups[0] == groups[3]
    (1, 1, np.False_)
    """
    shuffled = rng.permutation(n_people)
    pairs = shuffled[np.asarray(ends, dtype=np.int64)]
    both = np.concatenate([pairs, pairs[:, ::-1]])
    both = both[np.argsort(both[:, 0], kind="stable")]
    starts = np.searchsorted(both[:, 0], np.arange(n_people + 1))
    order = np.argsort(np.diff(starts), kind="stable")
    group = _grow(np.ascontiguousarray(both[:, 1]), starts.astype(np.int64), order, size)
    cut: IntArray = group[shuffled]
    return cut


@lazy_njit
def _grow(neighbours, starts, order, size):  # type: ignore[no-untyped-def]
    """Group of each person; everyone's pairs are walked when she joins, and when she is a candidate's tie."""
    n = starts.size - 1
    group = np.full(n, -1, dtype=np.int64)
    left = starts[1:] - starts[:-1]  # pairs with people who are in no group yet
    inside = np.zeros(n, dtype=np.int64)  # pairs with the growing group
    near = np.empty(n, dtype=np.int64)
    count = 0
    for first in order:
        if group[first] >= 0 or left[first] == 0:
            continue
        found, joining, members = 0, first, 0
        while joining >= 0:
            group[joining] = count
            members += 1
            for place in range(starts[joining], starts[joining + 1]):
                other = neighbours[place]
                left[other] -= 1
                if group[other] < 0:
                    if inside[other] == 0:
                        near[found] = other
                        found += 1
                    inside[other] += 1
            joining = -1
            if members < size:
                best = 0
                for c in range(found):
                    other = near[c]
                    if group[other] >= 0:
                        continue
                    tied = inside[other] == best and joining >= 0 and left[other] < left[joining]
                    if inside[other] > best or tied:
                        joining, best = other, inside[other]
        for c in range(found):
            inside[near[c]] = 0
        count += 1
    return group
