"""The selections of pairs, by name: one entry each. Command line, checks and docs read them here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from pairveil.errors import InputError

if TYPE_CHECKING:  # the command line starts with these names, and nothing heavy
    import numpy as np
    from numpy.typing import NDArray

NO_LIMIT = 2**31 - 1
Design = Callable[[Any], Any]
"""People in random order -> the pairs to label."""


class Selection(NamedTuple):
    """A rule for which pairs to use; it looks at who is paired with whom, and at nothing else.

    Attributes
    ----------
    limit : int
        Most pairs of one person.
    acyclic : bool
        Whether no chain of kept pairs leads back to where it began.
    spans : bool
        Whether it then grows beyond paths until everybody who can be is tied in.
    says : str
        What it is, for people.
    design : callable or None
        The pairs to label before anyone labels them; None where there is no such design.
    people : int or None
        Most people of a group, where pairs are cut into groups that are records.
    """

    limit: int
    acyclic: bool
    spans: bool
    says: str
    design: Design | None
    people: int | None = None


def _path(people: NDArray[np.int64]) -> NDArray[np.int64]:
    import numpy as np

    return np.stack([people[:-1], people[1:]], axis=1)


def _tree(people: NDArray[np.int64]) -> NDArray[np.int64]:
    import numpy as np

    return np.stack([people[(np.arange(1, len(people)) - 1) // 2], people[1:]], axis=1)


def _matching(people: NDArray[np.int64]) -> NDArray[np.int64]:
    return people[: len(people) // 2 * 2].reshape(-1, 2)


SELECTIONS: dict[str, Selection] = {
    "paths": Selection(2, True, False, "at most two pairs a person, no cycle", _path),
    "forest": Selection(NO_LIMIT, True, True, "no cycle, as many pairs as that allows", _tree),
    "matching": Selection(1, False, False, "one pair a person", _matching),
    "groups": Selection(
        NO_LIMIT, False, False, "disjoint groups of at most 8 people, all pairs inside", None, 8
    ),
    "all": Selection(NO_LIMIT, False, False, "every pair", None),
}
DESIGNS = {name: found.design for name, found in SELECTIONS.items() if found.design is not None}


def selection_named(how: object) -> Selection:
    """The selection of that name.

    Examples
    --------
    >>> selection_named("matching").limit
    1
    """
    if not isinstance(how, str) or how not in SELECTIONS:
        raise InputError(f"how must be one of {', '.join(SELECTIONS)}")
    return SELECTIONS[how]
