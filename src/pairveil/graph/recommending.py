"""Which selection of pairs to take: the one answer that ``kappa``, ``plan``, ``fit`` and the studio give.

A unit's noise grows with its kappa and what is learned with the number of pairs K, so K / kappa decides,
whatever the epsilon, the columns and the mechanism are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from pairveil.graph.choosing import select_pairs
from pairveil.graph.kappa import Kappa, kappa
from pairveil.graph.selections import SELECTIONS

# What groups of people keep of the gain has not been measured: they are not compared.
SELECTIONS_OF_PAIRS = tuple(name for name, rule in SELECTIONS.items() if rule.people is None)
NEARLY = 0.9


def kappas_of_selections(pairs: NDArray[Any]) -> dict[str, Kappa]:
    """kappa of what each selection keeps of these pairs."""
    return {
        how: kappa(pairs[select_pairs(pairs, how, random_state=0)]) for how in SELECTIONS_OF_PAIRS
    }


def recommended_selection(found: Mapping[str, Kappa]) -> str:
    """The selection that leaves most pairs for the noise of a promise to a person.

    Of those within a tenth of the most, the one that leaves most for the noise of a promise about a
    relationship: it promises the same to a person, and more to a relationship.

    ``found``: of each selection, kappa of the pairs that it keeps.

    Examples
    --------
    >>> import numpy as np
    >>> path = np.array([(i, i + 1) for i in range(9)])
    >>> star = np.array([(0, i) for i in range(1, 9)])
    >>> [recommended_selection(kappas_of_selections(pairs)) for pairs in (path, star)]
    ['paths', 'forest']
    """
    most = max(one.n_pairs / one.person for one in found.values())
    near = [name for name, one in found.items() if one.n_pairs / one.person >= NEARLY * most]
    return max(near, key=lambda name: found[name].n_pairs / found[name].relationship)
