"""The promise of a certificate in one paragraph of plain English.

What a certificate treats as public, by the kind of records that the fit learned from.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pairveil.printable import printable
from pairveil.privacy.units import (
    ADJACENCY_SENTENCES,
    ADJACENCY_SENTENCES_OF_CHOICES,
    ADJACENCY_SENTENCES_OF_GROUPS,
    ADJACENCY_SENTENCES_OF_PEOPLE,
    ADJACENCY_SENTENCES_OF_TUPLES,
    POINTS_ARE_PUBLIC,
    UNIT_SENTENCES,
    UNIT_SENTENCES_OF_GROUPS,
    UNIT_SENTENCES_OF_LINKS,
    UNIT_SENTENCES_OF_PEOPLE,
    UNIT_SENTENCES_OF_TUPLES,
    Adjacency,
    Unit,
    round_up,
)

if TYPE_CHECKING:
    from pairveil.privacy.certificate import Certificate

# ---- What a certificate treats as public, by the kind of records that the fit learned from -------

_PAIRED = "who is paired with whom, the number of people and of pairs, and which pairs were used"

_TOUCHED = "the records that each unit touches, the clip bound and the noise scale"

_PUBLIC_CHOICES = (
    "the items with their features, who the workers are, and between which items each of them chose",
    _TOUCHED,
)

PUBLIC_OF = {
    "pairs": (
        _PAIRED,
        "kappa, the sampling rate, the number of steps, the clip bound and the noise scale",
        "the bound on the features' norm, the margin's rule, and where the learning started",
    ),
    "groups": (
        "who is in which group and paired with whom, the number of people and of groups",
        "the records that each unit touches, the number of steps, the clip bound and the noise scale",
        "the bound on the features' norm, the margin's rule, and where the learning started",
    ),
    "people": (
        "how many people there are, who they are, and the list of classes",
        _TOUCHED,
        "the bound on the features' norm",
    ),
    "tuples": (
        "who is in a tuple with whom, the number of people and of tuples, and which tuples were used",
        "the tuples that each unit touches, the sampling rate, the number of steps, the clip bound and the "
        "noise scale",
        "the bound on the features' norm, the margin, and where the learning started",
    ),
    "counted pairs": (
        _PAIRED,
        "kappa, the clip bound and the noise scale",
        "the columns that pairs are counted by: comparisons and their levels, or the range of scores",
    ),
    "choices": _PUBLIC_CHOICES,
    "workers": _PUBLIC_CHOICES,
}


def public_of(kinds: Iterable[str]) -> tuple[str, ...]:
    """What a certificate about these kinds of records treats as public, each sentence once.

    Examples
    --------
    >>> public_of(["pairs"]) == PUBLIC_OF["pairs"]
    True
    """
    return tuple(dict.fromkeys(said for kind in kinds for said in PUBLIC_OF[kind]))


# ---- The promise of a certificate in one paragraph of plain English ------------------------------


@dataclass(frozen=True)
class _Words:
    """How a promise about some kind of records is worded."""

    one: str = "1 used pair"
    several: str = "at most {} used pairs"
    those: str = "pairs"
    instance: str = "'same' and 'different'"
    released: str = "metric"
    public: str = "Who is paired with whom is public and not protected."
    units: dict[Unit, str] = field(default_factory=lambda: UNIT_SENTENCES)
    compared: dict[Adjacency, str] = field(default_factory=lambda: ADJACENCY_SENTENCES)


_PEOPLE = _Words(
    "1 person",
    "{} people",
    "people",
    "one class and another",
    public="Who the people are and the list of classes is public and not protected.",
    units=UNIT_SENTENCES_OF_PEOPLE,
    compared=ADJACENCY_SENTENCES_OF_PEOPLE,
)

_CHOICES = _Words(
    "1 choice",
    "at most {} choices",
    "choices",
    "one item and the other",
    "ranking",
    "Who the workers are and between which items each of them chose is public and not protected.",
    compared=ADJACENCY_SENTENCES_OF_CHOICES,
)

_GROUPS = _Words(
    "1 group of people",
    "{} groups of people",
    "people",
    public="Who is in which group is public and not protected.",
    units=UNIT_SENTENCES_OF_GROUPS,
    compared=ADJACENCY_SENTENCES_OF_GROUPS,
)

_TUPLES = _Words(
    "1 used tuple",
    "at most {} used tuples",
    "tuples",
    "'closer to this one' and 'closer to that one'",
    public="Who is in a tuple with whom is public and not protected.",
    units=UNIT_SENTENCES_OF_TUPLES,
    compared=ADJACENCY_SENTENCES_OF_TUPLES,
)

_LINKS = _Words(
    "1 used link",
    "at most {} used links",
    "links",
    "'together' and 'apart'",
    "clustering",
    "Which points are linked is public and not protected, and neither are the points: their features may be "
    "read off the clusters.",
    UNIT_SENTENCES_OF_LINKS,
    {how: said.replace("pairs", "links") for how, said in ADJACENCY_SENTENCES.items()},
)

_WORDS = {
    "people": _PEOPLE,
    "groups": _GROUPS,
    "tuples": _TUPLES,
    "counted pairs": _Words(instance="'match' and 'no match'", released="linkage model"),
    "choices": _CHOICES,
    "workers": replace(_CHOICES, one="1 worker", several="at most {} workers"),
}


def promise(certificate: Certificate) -> str:
    """What is promised to whom; `Certificate.promise` is the usual way in.

    Examples
    --------
    >>> from pairveil.privacy.certificate import _example
    >>> "is right at most 59.9 times in 100" in promise(_example())
    True
    """
    c = certificate
    if not math.isfinite(c.epsilon):
        return "No privacy is promised: this metric was learned without enough noise."
    by, words = c.epsilons[c.unit], _WORDS.get(c.records, _Words())
    if "n_clusters" in c.plan:
        words = replace(words, released="clustering")
    if "error_curve" in c.plan:
        told = c.plan["error_curve"]
        several = isinstance(told, Mapping) and "scores" in told
        words = replace(words, released="evaluation" if several else "error curve")
    if POINTS_ARE_PUBLIC in c.public:
        words = _LINKS
    records = words.one if c.kappa == 1 else words.several.format(c.kappa)
    why = " and ".join(c.why_not_for_release())
    sentences = [
        f"NOT FOR RELEASE: {why}." if why else "",
        "One number protects a pair, a relationship and a person alike." if one_number(c) else "",
        f"This {words.released} is (epsilon={round_up(c.epsilon)}, delta={c.delta:g})-differentially "
        f"private for the contents of {records}, which covers {words.units[c.unit]} "
        f"(adjacency '{c.adjacency}': {words.compared[c.adjacency]}).",
        _guess_sentence(c.best_guess(), words),
        "Epsilon is the same whether those contents are blanked or exchanged for others."
        if one_number(c)
        else f"Epsilon is {round_up(by['zero-out'])} when those {words.those} are compared with none at all "
        f"and {round_up(by['replace'])} when they are compared with other contents.",
        words.public,
        _selection_sentence(c),
    ]
    # The caveat is the sender's text: nothing in it may speak to a terminal.
    return printable(" ".join(sentence for sentence in sentences if sentence))


def one_number(certificate: Certificate) -> bool:
    """Whether one epsilon holds for every unit and adjacency, as it does where records are groups.

    Examples
    --------
    >>> from pairveil.privacy.certificate import _example
    >>> one_number(_example())
    False
    """
    stated = {epsilon for by in certificate.epsilons.values() for epsilon in by.values()}
    return certificate.records == "groups" and len(stated) == 1


def times_in_100(share: float) -> str:
    """A bound on a share as 'so many times in 100', rounded up.

    Examples
    --------
    >>> times_in_100(0.60563), times_in_100(0.7)
    ('60.6', '70')
    """
    return f"{math.ceil(1000 * share - 1e-9) / 10:g}"


def _guess_sentence(share: float, words: _Words) -> str:
    those = f"of these {words.those}"
    if share > 0.99:
        return (
            "There is no real protection: someone who knows everything else and weighs two contents "
            f"{those} may be right more than 99 times in 100."
        )
    return (
        f"Someone who knows everything else and weighs two contents {those} that were equally likely "
        f"before, {words.instance} for instance, is right at most {times_in_100(share)} "
        f"times in 100 after seeing this {words.released}; a coin is right 50 times."
    )


def _selection_sentence(c: Certificate) -> str:
    caveat = c.selection.get("caveat")
    if not caveat:
        return ""
    full = c.selection.get("full_graph_relationship_kappa")
    text = str(caveat).rstrip(".") + "."
    return text if full is None else f"{text} In the full graph kappa is {full} for a relationship."
