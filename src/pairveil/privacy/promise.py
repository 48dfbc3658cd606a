"""The promise of a certificate in one paragraph of plain English."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from pairveil.printable import printable
from pairveil.privacy.units import (
    ADJACENCY_SENTENCES,
    ADJACENCY_SENTENCES_OF_GROUPS,
    ADJACENCY_SENTENCES_OF_PEOPLE,
    UNIT_SENTENCES,
    UNIT_SENTENCES_OF_GROUPS,
    UNIT_SENTENCES_OF_PEOPLE,
    Adjacency,
    Unit,
    round_up,
)

if TYPE_CHECKING:
    from pairveil.privacy.certificate import Certificate


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
    words, why = _WORDS[c.records], " and ".join(c.why_not_for_release())
    sentences = [
        f"NOT FOR RELEASE: {why}." if why else "",
        "One number protects a pair, a relationship and a person alike." if one_number(c) else "",
        f"This metric is (epsilon={round_up(c.epsilon)}, delta={c.delta:g})-differentially "
        f"private for the contents of {words.counted(c.kappa)}, which covers {words.units[c.unit]} "
        f"(adjacency '{c.adjacency}': {words.compared[c.adjacency]}).",
        _guess_sentence(c.best_guess(), words),
        _both_sentence(c, words),
        words.public,
        _selection_sentence(c),
    ]
    # The caveat is the sender's text: nothing in it may speak to a terminal.
    return printable(" ".join(sentence for sentence in sentences if sentence))


class _Words(NamedTuple):
    """How one kind of records is spoken of."""

    one: str
    many: str
    those: str
    instance: str
    public: str
    units: Mapping[Unit, str]
    compared: Mapping[Adjacency, str]

    def counted(self, number: int) -> str:
        return f"1 {self.one}" if number == 1 else f"{self.many.format(number)}"


_WORDS = {
    "pairs": _Words(
        "used pair",
        "at most {} used pairs",
        "pairs",
        "'same' and 'different'",
        "Who is paired with whom is public and not protected.",
        UNIT_SENTENCES,
        ADJACENCY_SENTENCES,
    ),
    "groups": _Words(
        "group of people",
        "{} groups of people",
        "contents",
        "'same' and 'different'",
        "Who is in which group is public and not protected.",
        UNIT_SENTENCES_OF_GROUPS,
        ADJACENCY_SENTENCES_OF_GROUPS,
    ),
    "people": _Words(
        "person",
        "{} people",
        "people",
        "one class and another",
        "Who the people are and the list of classes is public and not protected.",
        UNIT_SENTENCES_OF_PEOPLE,
        ADJACENCY_SENTENCES_OF_PEOPLE,
    ),
}


def one_number(certificate: Certificate) -> bool:
    """Whether one epsilon holds for every unit and adjacency, as it does where records are groups."""
    stated = {epsilon for by in certificate.epsilons.values() for epsilon in by.values()}
    return certificate.records == "groups" and len(stated) == 1


def _both_sentence(c: Certificate, words: _Words) -> str:
    by = c.epsilons[c.unit]
    if one_number(c):
        return "Epsilon is the same whether those contents are blanked or exchanged for others."
    return (
        f"Epsilon is {round_up(by['zero-out'])} when those {words.those} are compared with none at all "
        f"and {round_up(by['replace'])} when they are compared with other contents."
    )


def times_in_100(share: float) -> str:
    """A bound on a share as 'so many times in 100', rounded up.

    Examples
    --------
    >>> times_in_100(0.60563), times_in_100(0.7)
    ('60.6', '70')
    """
    return f"{math.ceil(1000 * share - 1e-9) / 10:g}"


def _guess_sentence(share: float, words: _Words) -> str:
    those = "of what is protected" if words.those == "contents" else f"of these {words.those}"
    if share > 0.99:
        return (
            "There is no real protection: someone who knows everything else and weighs two contents "
            f"{those} may be right more than 99 times in 100."
        )
    return (
        f"Someone who knows everything else and weighs two contents {those} that were equally likely "
        f"before, {words.instance} for instance, is right at most {times_in_100(share)} "
        "times in 100 after seeing this metric; a coin is right 50 times."
    )


def _selection_sentence(c: Certificate) -> str:
    caveat = c.selection.get("caveat")
    if not caveat:
        return ""
    full = c.selection.get("full_graph_relationship_kappa")
    text = str(caveat).rstrip(".") + "."
    return text if full is None else f"{text} In the full graph kappa is {full}."
