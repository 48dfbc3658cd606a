"""Who is protected, and against which comparison: the words every promise is made of.

The topology (who is paired with whom) is public; the contents of the pairs are private. A unit says
how many pairs' contents may change together (``kappa``), an adjacency says how they change.
"""

from __future__ import annotations

from typing import Literal, get_args

Unit = Literal["pair", "relationship", "person"]
Adjacency = Literal["zero-out", "replace"]

UNITS: tuple[Unit, ...] = get_args(Unit)
ADJACENCIES: tuple[Adjacency, ...] = get_args(Adjacency)

UNIT_SENTENCES: dict[Unit, str] = {
    "pair": "one pair: the features' difference and the label of any single pair",
    "relationship": (
        "one relationship: every pair that helps to infer how two people relate, "
        "directly or through chains of other pairs"
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
