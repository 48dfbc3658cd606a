"""Who is protected, and against which comparison: the words every promise is made of.

The topology (who is paired with whom) is public; the contents of the pairs are private. A unit says
how many pairs' contents may change together (``kappa``), an adjacency says how they change. The sentences
are text, `words.toml`: of each kind of records, and what is said besides.
"""

from __future__ import annotations

import math
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any, SupportsFloat

from pairveil.records.kinds import ADJACENCIES, KINDS, UNITS, UNITS_OF_CHOICES, Adjacency, Unit

__all__ = ["ADJACENCIES", "UNITS", "UNITS_OF_CHOICES", "Adjacency", "Unit"]

_TEXT: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("words.toml").read_text(encoding="utf-8")
)


@dataclass(frozen=True)
class Words:
    """How one kind of records is worded: a table of ``words.toml``, where each sentence is explained."""

    record: str
    records: str
    one: str
    several: str
    those: str
    instance: str
    released: str
    not_protected: str
    structure: str
    public: tuple[str, ...]
    public_plain: tuple[str, ...]
    limits: str
    dropped: str
    called: Mapping[str, str]
    covers: Mapping[str, str]
    compared: Mapping[str, str]
    against: Mapping[str, str]
    guessed: Mapping[str, str]
    meaning: Mapping[str, str]

    @classmethod
    def of(cls, kind: str) -> Words:
        """The words of a kind of records; what its table leaves out is worded as for another kind."""
        table = dict(_TEXT[kind])
        model = table.pop("like", "pairs")
        like = vars(cls.of(model)) if model else {}
        lists = {name: tuple(said) for name, said in table.items() if isinstance(said, list)}
        tables = {
            name: {**like.get(name, {}), **said}
            for name, said in table.items()
            if isinstance(said, dict)
        }
        return cls(**{**like, **table, **lists, **tables})


WORDS: dict[str, Words] = {kind: Words.of(kind) for kind in (*KINDS, "links")}
"""By kind of records. Pairs of public points are links: only what the links say is private."""


def public_of(kinds: Iterable[str]) -> tuple[str, ...]:
    """What a certificate about these kinds of records treats as public, each sentence once."""
    return tuple(dict.fromkeys(said for kind in kinds for said in WORDS[kind].public))


POINTS_ARE_PUBLIC: str = _TEXT["said"]["points_are_public"]
"""Said where a clustering of the points themselves is handed out."""
UNKNOWN_TOPOLOGY: str = _TEXT["said"]["unknown_topology"]
"""Said where pairs came without ids. Epsilon of the other units is stated as infinite."""
PEOPLE_TOGETHER: str = _TEXT["said"]["people_together"]
"""Said where a column says who changes together. Kappa of the unit 'person' is then theirs together."""
DECLARED_KAPPA: str = _TEXT["said"]["declared_kappa"]
"""Said where the user gave kappa instead of having it read off the graph."""
SEARCHED: str = _TEXT["said"]["searched"]
"""What every certificate of a private search says."""
PARTIES: str = _TEXT["said"]["parties"]
"""What every certificate of several parties says."""
KAPPA_RULES: dict[str, str] = {
    rule: _TEXT["said"][f"parties_{rule}"] for rule in ("union", "sum", "disjoint")
}
"""How kappa follows from that of several parties, and what is said of it."""
NETWORK_CODE: str = _TEXT["said"]["network_code"]
"""Said where a network has code of which nobody knows that it keeps rows apart."""
ASSUMED = (NETWORK_CODE, KAPPA_RULES["disjoint"])
"""Sentences of what a promise assumes, beside what it treats as public."""
SCORED_APART: str = _TEXT["said"]["scored_apart"]
"""What every certificate says whose score is of people who were not learned from."""
SELECTED_CAVEAT = WORDS["pairs"].dropped
"""Said where labelled pairs were dropped."""

PROMISE: dict[str, str] = _TEXT["promise"]
VERDICT: dict[str, str] = _TEXT["verdict"]
"""Sentences with gaps, by what they say."""
FIELDS: dict[str, str] = _TEXT["certificate"]
"""What each field of a certificate is."""
UNFIT: dict[str, dict[str, str]] = _TEXT["unfit"]
"""Why a release must not be handed out: what its certificate says of it, the reason, and what to do."""
ASSUMED_CLASSES = UNFIT["classes"]["said"]
"""Said where nobody gave the list of classes."""
ASSUMED_LEVELS = UNFIT["levels"]["said"]
"""Said where nobody gave the number of levels."""
REHEARSED = UNFIT["rehearsal"]["said"]
"""Said where several parties were played by one machine."""
ASSUMED_TOPOLOGY = UNFIT["topology"]["said"]
"""Said where nobody told who is who. The kappas then hold for rows, not for people."""

SEEDED_NOISE = "seeded NumPy floating-point noise"
TRUSTED_NOISE = "operating-system entropy, exact discrete noise ({sampler} sampler)"
PARTIES_NOISE = "operating-system entropy, exact discrete noise, a share of it from each party"
NOISE_SOURCES: dict[str, bool] = {
    SEEDED_NOISE: False,
    TRUSTED_NOISE.format(sampler="compiled"): True,
    TRUSTED_NOISE.format(sampler="opendp"): True,
    PARTIES_NOISE: True,
}
"""The sources of noise that a certificate may name, and whether their noise is fit for a release."""

SCORE_QUERY = "score counts"
"""Name of the query that scores are read off; it ends every trial of a search."""


def float_at_most(value: SupportsFloat) -> float:
    """A number as a float that is not above it: what was asked for is never exceeded by rounding."""
    if isinstance(value, Integral):
        value = int(value)  # numpy would compare it as a float
    try:
        nearest = float(value)
    except OverflowError:  # an int beyond all floats
        return sys.float_info.max
    # The comparison is exact: of ints and floats always, of numpy's longer floats in their own precision.
    return math.nextafter(nearest, -math.inf) if bool(nearest > value) else nearest  # type: ignore[operator]


def round_up(value: float, digits: int = 4) -> str:
    """A number for people, rounded so that no promise looks better than it is."""
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    if 0 < value < 1e-300:  # too small for a unit of its own
        return "1e-300"
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
    shown = math.ceil(value / unit - 1e-9) * unit
    return f"{shown:.{digits}g}" if shown < 10**digits else f"{shown:.0f}"


def times_in_100(share: float) -> str:
    """A bound on a share as 'so many times in 100', rounded up."""
    return f"{math.ceil(1000 * share - 1e-9) / 10:g}"


SINGLE = "single"
"""What a unit means unless said otherwise: a person is one id, a relationship is one of two ids."""
LINKS_ALONE = "links of public points"
"""What units mean where points are public: of a person only what her links say is protected."""
UNNAMED = "together ?"
"""A column says who changes together, and nobody said who the people are."""


def meanings_of(
    *, shares: bool = False, column: str | None = None, entity_records: int | None = None
) -> dict[str, str]:
    """What units mean that are not `SINGLE`, as ledgers compare it."""
    if entity_records is not None and entity_records > 1:
        return dict.fromkeys(("relationship", "person"), f"entity {entity_records}")
    if shares:
        return {"person": UNNAMED if column is None else f"together {column}"}
    return {}
