"""The canary of a ranking: all that one worker chose, or one of her choices, among other workers.

Under 'worker' she prefers the same item again and again, so that her choices add up to the longest vector
and are clipped to the bound: null, or turned round, they move the sum by all of their charge. A single
'choice' inside a worker is worst where everybody was asked once (``asked=1``): turned round it moves the
sum by 2 clips. As null it moves it by 1, of 2 charged: in l2 no choice inside a worker moves more
(docs/theory/records.md), and that is not relied on.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairveil.audit.canaries.inputs import Inputs
from pairveil.errors import InputError
from pairveil.privacy.units import Adjacency
from pairveil.records.choices import NO_CHOICE, Choices

IntArray = NDArray[np.intp]


class ChoiceNeighbours(Inputs[Choices]):
    """Two inputs of choices that differ in what was chosen, by one worker or once."""

    hides_features = False  # the items are public

    def __post_init__(self) -> None:
        one, two = self.first, self.second
        same = len(one.pairs) == len(two.pairs) and bool((one.pairs == two.pairs).all())
        if not same or not (one.workers == two.workers).all():
            raise InputError("neighbouring inputs have the same workers and the same questions")
        moved = one.labels != two.labels
        if self.adjacency == "zero-out" and (one.labels[moved] != NO_CHOICE).any():
            raise InputError("zero-out compares with nulls: changed choices of first are null")

    @property
    def changed(self) -> IntArray:
        """Positions of the records whose contents differ."""
        rows = np.flatnonzero(self.first.labels != self.second.labels)
        return np.unique(np.searchsorted(self.second.edges(), rows, side="right") - 1)


def choice_canary(
    unit: Literal["choice", "worker"] = "worker",
    adjacency: Adjacency = "zero-out",
    *,
    n_others: int = 50,
    n_items: int = 4,
    asked: int = 6,
) -> ChoiceNeighbours:
    """One worker's choices, or one choice, against null or against the opposite, among ``n_others`` workers.

    Examples
    --------
    >>> choice_canary("worker", "replace").second
    Choices(306 choices of 51 workers between 4 items)
    """
    rng = np.random.default_rng(0)
    of_canary = 1 if unit == "choice" else asked
    left = rng.integers(n_items, size=n_others * asked)
    right = (left + rng.integers(1, n_items, size=n_others * asked)) % n_items
    pairs = np.concatenate([np.tile([0, 1], (of_canary, 1)), np.column_stack([left, right])])
    workers = np.repeat(np.arange(n_others + 1), [of_canary, *[asked] * n_others])
    labels = np.concatenate([np.ones(of_canary), rng.choice([-1, 1], n_others * asked)])
    second = Choices(workers, pairs, labels, sparse.eye_array(n_items, format="csr"))
    other = second.labels.copy()
    other[:of_canary] = NO_CHOICE if adjacency == "zero-out" else -other[:of_canary]
    return ChoiceNeighbours(replace(second, labels=other), second, adjacency, unit)


def canary_of_choices(learner: Any, kappa: int, n_features: int) -> ChoiceNeighbours:  # noqa: ARG001
    """The worst case for a ranker's own unit and adjacency; ``n_features`` is the number of items."""
    made = choice_canary(learner.unit, learner.adjacency, n_items=max(2, n_features))
    worlds = [replace(world, by=learner.unit) for world in (made.first, made.second)]
    return ChoiceNeighbours(worlds[0], worlds[1], made.adjacency, made.name)
