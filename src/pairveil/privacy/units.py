"""Who is protected, and against which comparison: the words every promise is made of.

The topology (who is paired with whom) is public; the contents of the pairs are private. A unit says
how many pairs' contents may change together (``kappa``), an adjacency says how they change.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

Unit = Literal["pair", "relationship", "person"]
Adjacency = Literal["zero-out", "replace"]

UNITS: tuple[Unit, ...] = get_args(Unit)
ADJACENCIES: tuple[Adjacency, ...] = get_args(Adjacency)

UNIT_SENTENCES: dict[Unit, str] = {
    "pair": "one pair: the features' difference and the label of any single pair",
    "relationship": (
        "one relationship: the pairs that someone who knows all others would have to be missing to "
        "be in doubt about how two people relate"
    ),
    "person": "one person: every pair in which that person takes part",
}
"""What each unit protects, in plain English (used by certificates and reports)."""

ADJACENCY_SENTENCES: dict[Adjacency, str] = {
    "zero-out": "the protected pairs are compared with pairs that contribute nothing",
    "replace": (
        "the protected pairs are compared with the same pairs holding any other contents, "
        "for instance 'same' against 'different'"
    ),
}
"""What each adjacency compares, in plain English (used by certificates and reports)."""


def round_up(value: float, digits: int = 4) -> str:
    """A number for people, rounded so that no promise looks better than it is.

    Examples
    --------
    >>> round_up(1.00049), round_up(0.99993), round_up(2.0), round_up(12345.6)
    ('1.001', '1', '2', '12350')
    """
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    if 0 < value < 1e-300:  # too small for a unit of its own
        return "1e-300"
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
    shown = math.ceil(value / unit - 1e-9) * unit
    return f"{shown:.{digits}g}" if shown < 10**digits else f"{shown:.0f}"
