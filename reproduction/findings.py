"""What a check of a claim returns, and how repeats decide it.

Repeats decide by intervals: a claim holds, or does not hold, only where the 95 % interval of the paired
difference leaves out what would reverse it. Else it is not decided; with one repeat nothing is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from numpy.typing import ArrayLike

from reproduction.drawing import mean_and_half_width

Verdict = Literal[
    "holds",
    "holds but is met by an untrained metric",
    "does not hold",
    "not decided",
    "not testable here",
]


class Finding(NamedTuple):
    """What was measured, in words, and what follows.

    ``favour``, of claims about accuracy: by how much the claim is met (negative: missed), as the mean
    of its cases, of the worst data set where all are claimed, and the median case where most are.
    """

    measured: str
    verdict: Verdict
    favour: float = math.nan


def verdict_of(holds: bool | None) -> Verdict:
    """The plain yes or no; None is 'not decided'."""
    if holds is None:
        return "not decided"
    return "holds" if holds else "does not hold"


UNTESTABLE: Verdict = "not testable here"


def positive(repeats: ArrayLike, errors: float = 0.05) -> bool | None:
    """Whether the mean is above 0; None where the interval of level ``1 - errors`` does not say.

    Examples
    --------
    >>> positive([0.2, 0.3, 0.2]), positive([-0.1, 0.3, 0.2]), positive([0.2])
    (True, None, None)
    """
    mean, half = mean_and_half_width(repeats, 1 - errors)
    if mean - half > 0:
        return True
    return False if mean + half < 0 else None


def everywhere(cases: Sequence[ArrayLike]) -> bool | None:
    """Whether the mean is above 0 in every case.

    One case refutes, and each of n has its chance to do so by accident: they share the 5 % (Bonferroni).
    To hold, each case must be clear, which no number of cases makes easier.
    """
    if any(positive(case, 0.05 / len(cases)) is False for case in cases):
        return False
    return True if all(positive(case) for case in cases) else None


def mostly(cases: Sequence[bool | None]) -> bool | None:
    """Whether more than half of the cases are true, whatever the undecided ones are."""
    if sum(case is True for case in cases) > len(cases) / 2:
        return True
    return False if sum(case is False for case in cases) >= len(cases) / 2 else None


def least(cases: Sequence[ArrayLike]) -> float:
    """The smallest mean of the cases: what decides a claim about all of them."""
    return min(mean_and_half_width(case)[0] for case in cases)
