"""The promise of a certificate in one paragraph of plain English."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pairveil.printable import printable
from pairveil.privacy.units import (
    ADJACENCY_SENTENCES,
    ADJACENCY_SENTENCES_OF_PEOPLE,
    UNIT_SENTENCES,
    UNIT_SENTENCES_OF_PEOPLE,
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
    by, of_people = c.epsilons[c.unit], c.records == "people"
    records = _records(c.kappa, of_people)
    units = UNIT_SENTENCES_OF_PEOPLE if of_people else UNIT_SENTENCES
    compared = ADJACENCY_SENTENCES_OF_PEOPLE if of_people else ADJACENCY_SENTENCES
    those = "people" if of_people else "pairs"
    what = "linkage model" if "linkage" in c.plan else "metric"
    why = " and ".join(c.why_not_for_release())
    sentences = [
        f"NOT FOR RELEASE: {why}." if why else "",
        f"This {what} is (epsilon={round_up(c.epsilon)}, delta={c.delta:g})-differentially "
        f"private for the contents of {records}, which covers {units[c.unit]} "
        f"(adjacency '{c.adjacency}': {compared[c.adjacency]}).",
        _guess_sentence(c.best_guess(), of_people),
        f"Epsilon is {round_up(by['zero-out'])} when those {those} are compared with none at all "
        f"and {round_up(by['replace'])} when they are compared with other contents.",
        "Who the people are and the list of classes is public and not protected."
        if of_people
        else "Who is paired with whom is public and not protected.",
        _selection_sentence(c),
    ]
    # The caveat is the sender's text: nothing in it may speak to a terminal.
    return printable(" ".join(sentence for sentence in sentences if sentence))


def _records(count: int, of_people: bool) -> str:
    if of_people:
        return "1 person" if count == 1 else f"{count} people"
    return "1 used pair" if count == 1 else f"at most {count} used pairs"


def times_in_100(share: float) -> str:
    """A bound on a share as 'so many times in 100', rounded up.

    Examples
    --------
    >>> times_in_100(0.60563), times_in_100(0.7)
    ('60.6', '70')
    """
    return f"{math.ceil(1000 * share - 1e-9) / 10:g}"


def _guess_sentence(share: float, of_people: bool) -> str:
    those = "of these people" if of_people else "of these pairs"
    instance = "one class and another" if of_people else "'same' and 'different'"
    if share > 0.99:
        return (
            "There is no real protection: someone who knows everything else and weighs two contents "
            f"{those} may be right more than 99 times in 100."
        )
    return (
        f"Someone who knows everything else and weighs two contents {those} that were equally likely "
        f"before, {instance} for instance, is right at most {times_in_100(share)} "
        "times in 100 after seeing this metric; a coin is right 50 times."
    )


def _selection_sentence(c: Certificate) -> str:
    caveat = c.selection.get("caveat")
    if not caveat:
        return ""
    full = c.selection.get("full_graph_relationship_kappa")
    text = str(caveat).rstrip(".") + "."
    return text if full is None else f"{text} In the full graph kappa is {full}."
