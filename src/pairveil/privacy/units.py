"""Who is protected, and against which comparison: the words every promise is made of.

The topology (who is paired with whom) is public; the contents of the pairs are private. A unit says
how many pairs' contents may change together (``kappa``), an adjacency says how they change.
"""

from __future__ import annotations

import math
import sys
from numbers import Integral
from typing import SupportsFloat

from pairveil.records.kinds import ADJACENCIES, UNITS, UNITS_OF_CHOICES, Adjacency, Unit

__all__ = ["ADJACENCIES", "UNITS", "UNITS_OF_CHOICES", "Adjacency", "Unit"]

UNIT_SENTENCES: dict[Unit, str] = {
    "pair": "one pair: the features' difference and the label of any single pair",
    "relationship": (
        "one relationship: the pairs that someone who knows all others would have to be missing to "
        "be in doubt about how two people relate"
    ),
    "person": "one person: every pair in which that person takes part",
    "choice": "one choice: which of two items a worker preferred, once",
    "worker": "one worker: everything that this worker chose",
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

UNIT_SENTENCES_OF_PEOPLE: dict[Unit, str] = {
    "pair": "one pair: the features and classes of any two people",
    "relationship": "one relationship: the features and classes of the two people in it",
    "person": "one person: all features and the class of that person",
}
"""The same where the records are people: a fact about two people is in both of theirs."""

ADJACENCY_SENTENCES_OF_PEOPLE: dict[Adjacency, str] = {
    "zero-out": "the protected people are compared with people who contribute nothing",
    "replace": (
        "the protected people are compared with the same people having any other features and classes"
    ),
}

UNIT_SENTENCES_OF_GROUPS: dict[Unit, str] = {
    "pair": "one pair: the features and the label of any two people of one group",
    "relationship": "one relationship: how any two people of one group relate",
    "person": "one person: all features and labels (or the class) of that person",
}
"""The same where the records are groups of people: everything about a person is in her one group."""

ADJACENCY_SENTENCES_OF_GROUPS: dict[Adjacency, str] = {
    "zero-out": "what is protected is compared with contents that say nothing; the others of its group stay",
    "replace": "what is protected is compared with any other contents; the others of its group stay",
}

ADJACENCY_SENTENCES_OF_CHOICES: dict[Adjacency, str] = {
    "zero-out": "the protected choices are compared with choices that were never made",
    "replace": "the protected choices are compared with any other choices between the same items",
}

UNIT_SENTENCES_OF_TUPLES: dict[Unit, str] = {
    "pair": "one pair: how two people compare, in every tuple that holds both",
    "relationship": (
        "one relationship: the tuples that someone who knows all others would have to be missing to "
        "be in doubt about how two people relate"
    ),
    "person": "one person: every tuple in which that person takes part",
}
"""The same where the records are tuples of people."""

ADJACENCY_SENTENCES_OF_TUPLES: dict[Adjacency, str] = {
    adjacency: sentence.replace("pairs", "tuples").replace(
        "'same' against 'different'", "another answer"
    )
    for adjacency, sentence in ADJACENCY_SENTENCES.items()
}

UNIT_SENTENCES_OF_LINKS: dict[Unit, str] = {
    "pair": "one link: whether it says 'together' or 'apart'",
    "relationship": (
        "one relationship: the links that someone who knows all others would have to be missing to be in "
        "doubt about whether two points belong together"
    ),
    "person": "one point: what all links at that point say",
}
"""The same where public points are linked: only what the links say is private."""

POINTS_ARE_PUBLIC = (
    "the points that are clustered: their features are not protected, only whether a link says 'together' or "
    "'apart'"
)
"""Said where a clustering of the points themselves is handed out."""

SEEDED_NOISE = "seeded NumPy floating-point noise"
TRUSTED_NOISE = "operating-system entropy, exact discrete noise ({sampler} sampler)"
NOISE_SOURCES: dict[str, bool] = {
    SEEDED_NOISE: False,
    TRUSTED_NOISE.format(sampler="compiled"): True,
    TRUSTED_NOISE.format(sampler="opendp"): True,
}
"""The sources of noise that a certificate may name, and whether their noise is fit for a release."""

ASSUMED_TOPOLOGY = (
    "pairs were given as feature rows, so people were recognised by equal rows: which rows are equal "
    "counts as public, and people with equal features count as one person"
)
"""Said where nobody told who is who. The kappas then hold for rows, not for people."""

ASSUMED_CLASSES = (
    "the list of classes was read off the people: which classes occur counts as public, "
    "also that of one person alone"
)
"""Said where nobody gave the list of classes."""

ASSUMED_LEVELS = (
    "the number of levels of each comparison was read off the pairs: which levels occur counts as public, "
    "also that of one pair alone"
)
"""Said where nobody gave the number of levels."""

UNKNOWN_TOPOLOGY = (
    "nobody said which records the pairs compare: the promise is for one pair, and none is made for a "
    "relationship or a person, who may be in any number of pairs"
)
"""Said where pairs came without ids. Epsilon of the other units is stated as infinite."""

PEOPLE_TOGETHER = (
    "who shares a household, a site or the like, as a column says: people who share one change together, and "
    "the unit 'person' covers all of them at once"
)
"""Said where a column says who changes together. Kappa of the unit 'person' is then theirs together."""

DECLARED_KAPPA = (
    "kappa of the protected unit is a public constant that was declared, not counted; the used pairs need "
    "no more than it"
)
"""Said where the user gave kappa instead of having it read off the graph."""

SELECTED_CAVEAT = (
    "The pairs were selected from pairs that already had labels; whoever knows the labels of the dropped "
    "pairs may be able to tie more than kappa used pairs together, and what changes together beyond kappa "
    "pairs is not covered"
)
"""Said where labelled pairs were dropped."""

SELECTED_TUPLES_CAVEAT = SELECTED_CAVEAT.replace("pairs", "tuples").replace("labels", "answers")
"""Said where tuples with answers were dropped."""


def float_at_most(value: SupportsFloat) -> float:
    """A number as a float that is not above it: what was asked for is never exceeded by rounding.

    Examples
    --------
    >>> import numpy as np
    >>> float_at_most(np.float32(1)), float_at_most(2**53 + 3) <= 2**53 + 3
    (1.0, True)
    """
    if isinstance(value, Integral):
        value = int(value)  # numpy would compare it as a float
    try:
        nearest = float(value)
    except OverflowError:  # an int beyond all floats
        return sys.float_info.max
    # The comparison is exact: of ints and floats always, of numpy's longer floats in their own precision.
    return math.nextafter(nearest, -math.inf) if bool(nearest > value) else nearest  # type: ignore[operator]


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


SINGLE = "single"
"""What a unit means unless said otherwise: a person is one id, a relationship is one of two ids."""
LINKS_ALONE = "links of public points"
"""What units mean where points are public: of a person only what her links say is protected."""
UNNAMED = "together ?"
"""A column says who changes together, and nobody said who the people are."""


def meanings_of(
    *, shares: bool = False, column: str | None = None, entity_records: int | None = None
) -> dict[str, str]:
    """What units mean that are not `SINGLE`, as ledgers compare it.

    Parameters
    ----------
    shares : bool
        Whether a column says who changes together. That widens 'person'; a relationship stays one of two.
    column : str, optional
        Name of that column (`pairveil.records.shared_values.together_digest`), where people have names.
    entity_records : int, optional
        Records of one person, at most. With several a relationship is one of all records of two people.

    Examples
    --------
    >>> meanings_of(), meanings_of(shares=True, column="ab12")
    ({}, {'person': 'together ab12'})
    >>> meanings_of(entity_records=1), meanings_of(entity_records=5)
    ({}, {'relationship': 'entity 5', 'person': 'entity 5'})
    """
    if entity_records is not None and entity_records > 1:
        return dict.fromkeys(("relationship", "person"), f"entity {entity_records}")
    if shares:
        return {"person": UNNAMED if column is None else f"together {column}"}
    return {}


SEARCHED = (
    "the candidates of the search and the mean number of its trials; how many trials there were is not "
    "released, and nothing of those that were not the best"
)
"""What every certificate of a private search says."""

SCORE_QUERY = "score counts"
"""Name of the query that scores are read off; it ends every trial of a search."""
