"""What a check of a claim returns."""

from __future__ import annotations

from typing import Literal, NamedTuple

Verdict = Literal[
    "holds", "holds but is met by an untrained metric", "does not hold", "not testable here"
]


class Finding(NamedTuple):
    """What was measured, in words, and what follows."""

    measured: str
    verdict: Verdict


def verdict_of(holds: bool) -> Verdict:
    """The plain yes or no."""
    return "holds" if holds else "does not hold"


UNTESTABLE: Verdict = "not testable here"
