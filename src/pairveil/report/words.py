"""Privacy numbers in plain words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pairveil.privacy.units import (
    UNIT_SENTENCES,
    UNIT_SENTENCES_OF_LINKS,
    Unit,
    round_up,
)
from pairveil.privacy.verdict import kind_of, records_of

if TYPE_CHECKING:
    from pairveil.privacy.certificate import Certificate

UNIT_MEANINGS = {
    "pair": "One labelled pair on its own: the difference of two people and their label.",
    "relationship": (
        "Whether two people belong together. If A matches B and B matches C, then A matches C: the pairs "
        "that would tell count together (kappa)."
    ),
    "person": "Everything recorded about one person: all pairs at once.",
}
UNIT_MEANINGS_OF_PEOPLE = {
    "pair": "All that is known of any two people.",
    "relationship": "How two people relate: all that is known of both of them.",
    "person": "Everything recorded about one person: all features and the class.",
}
UNIT_MEANINGS_OF_GROUPS = {
    "pair": "Any two people of one group: their features and their label.",
    "relationship": "How any two people of one group relate.",
    "person": "All features and labels (or the class) of one person at once; she is in one group.",
}
UNIT_MEANINGS_OF_TUPLES = {
    "pair": "How two people compare, in every tuple that holds both of them.",
    "relationship": (
        "Whether two people were said to be close. Answers can be chained: the tuples that would tell count "
        "together (kappa)."
    ),
    "person": "Everything recorded about one person: all tuples at once.",
}
MEANINGS: dict[str, dict[str, str]] = {
    "links": {
        str(unit): f"{text[0].upper()}{text[1:]}." for unit, text in UNIT_SENTENCES_OF_LINKS.items()
    },
    "people": UNIT_MEANINGS_OF_PEOPLE,
    "groups": UNIT_MEANINGS_OF_GROUPS,
    "tuples": UNIT_MEANINGS_OF_TUPLES,
}
"""By kind of records; of others, those of pairs."""
ADJACENCY_MEANINGS = {
    "zero-out": "Compared with a world in which these {} say nothing at all.",
    "replace": (
        "One story against another, for instance 'same' against 'different': what an attacker compares. Read "
        "this column."
    ),
}
"""What an adjacency compares; the gap is for what the records are called."""


_PLAIN = {
    "kappa, the": "how many pairs count together (kappa), the",
    "the records that each unit touches": "how many records one protected fact touches",
    "the tuples that each unit touches": "how many tuples one protected fact touches",
    "the sampling rate, the number of steps, the": "how often sums were taken, over which share, the",
    "the number of steps, the": "how often sums were taken, the",
    ", the clip bound and the noise scale": ", and how much noise was added",
    "the bound on the features' norm": "the limit on the size of a person's features",
    ", the margin's rule, and where the learning started": ", and the fixed rules of the learning",
    ", the margin, and where the learning started": ", and the fixed rules of the learning",
}


def plain_public(said: str, records: str) -> str:
    """What a certificate calls public in the words of its makers, for a reader who is none.

    Examples
    --------
    >>> plain_public("the records that each unit touches, the clip bound and the noise scale", "people")
    'how many people one protected fact touches, and how much noise was added'
    """
    for makers, readers in _PLAIN.items():
        said = said.replace(makers, readers)
    return said.replace("how many records one", f"how many {records} one")


NO_BOUND = "no bound"
NBSP = "\u00a0"  # a number and its sign stay on one line


def number(value: float) -> str:
    """A number as a person writes it.

    Examples
    --------
    >>> number(0.912345), number(1e-5), number(12345), number(float("inf"))
    ('0.912', '0.00001', '12,345', 'no bound')
    """
    if math.isinf(value):
        return NO_BOUND
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) < 1e-4:
        return f"{value:.12f}".rstrip("0") if abs(value) >= 1e-8 else f"{value:.2g}"
    return f"{value:.3g}"


def cost(epsilon: float) -> str:
    """An epsilon, rounded up: a bound must not look smaller than it is.

    Examples
    --------
    >>> cost(2.1541), cost(1.0), cost(float("inf"))
    ('2.155', '1', 'no bound')
    """
    return NO_BOUND if math.isinf(epsilon) else round_up(epsilon)


def percent(share: float) -> str:
    r"""A share in per cent, never rounded to a round 0 or 100 that it is not.

    Examples
    --------
    >>> percent(0.731), percent(0.99996), percent(1.0)
    ('73.1\xa0%', '>\xa099.9\xa0%', '100\xa0%')
    """
    if 0.999 < share < 1.0:
        return f">{NBSP}99.9{NBSP}%"
    if 0.0 < share < 0.0005:
        return f"<{NBSP}0.1{NBSP}%"
    return f"{100 * share:.3g}{NBSP}%"


def at_most(share: float) -> str:
    r"""A bound on a share in per cent, rounded up.

    Examples
    --------
    >>> at_most(0.73101), at_most(0.9991), at_most(1.0)
    ('73.2\xa0%', '>\xa099.9\xa0%', '100\xa0%')
    """
    return percent(share if share > 0.999 else math.ceil(1000 * share - 1e-9) / 1000)


def odds_factor(epsilon: float) -> str:
    """By how much the odds between two stories can change: exp(epsilon).

    Examples
    --------
    >>> odds_factor(1.0), odds_factor(40.0)
    ('2.72', 'no real bound')
    """
    if epsilon > 30.0:
        return "no real bound"
    factor = math.exp(epsilon)
    # Rounded up: a bound must not look smaller than it is.
    return f"{math.ceil(factor):,}" if factor >= 1000 else round_up(factor, 3)


def one_in(delta: float) -> str:
    """A small probability as '1 in so many'.

    Examples
    --------
    >>> one_in(1e-5), one_in(0.0)
    ('1 in 100,000', 'none')
    """
    if 0 < delta < 1e-300:  # its inverse does not fit a float
        return "less than 1 in 10^300"
    return "none" if delta <= 0 else f"1 in {round(1 / delta):,}"


def _is_metric(certificate: Certificate) -> bool:
    other = {"n_clusters", "linkage", "error_curve"} & set(certificate.plan)
    return not other and certificate.records not in ("choices", "workers")


def one_record(certificate: Certificate) -> str:
    """What one of the certificate's records is called."""
    records = records_of(certificate)
    return "person" if records == "people" else records.removesuffix("s")


def counted(count: int, certificate: Certificate) -> str:
    """So many of the certificate's records, with their name."""
    return f"{number(count)} {one_record(certificate) if count == 1 else records_of(certificate)}"


def _public_structure(records: str) -> str:
    if records == "people":
        return (
            "Who the people are, how many there are and the list of classes are public. The promise covers "
            "people's features and classes, and not that they are in the data."
        )
    if records == "links":
        return (
            "The points, their features, and which of them are linked are public and not protected. The "
            "promise covers whether a link says 'together' or 'apart', and nothing else."
        )
    if records == "tuples":
        return (
            "Who is in a tuple with whom is public. The promise covers what the tuples hold, features and "
            "who plays which part, and not that a tuple exists."
        )
    if records == "counted pairs":
        return (
            "Who is paired with whom is public. The promise covers what the pairs hold, levels or scores and "
            "labels, and not that a pair exists."
        )
    if records in ("pairs", "groups"):
        return (
            "Who is paired with whom is public. The promise covers what the pairs hold, features and "
            "labels, and not that a pair exists."
        )
    return (
        f"How many {records} there are and whose they are is public. The promise covers what the {records} "
        "hold, and not that they exist."
    )


def unit_meaning(unit: Unit, records: str) -> str:
    """What a unit covers, for readers.

    Examples
    --------
    >>> unit_meaning("worker", "choices")
    'One worker: everything that this worker chose.'
    """
    known = MEANINGS.get(records, UNIT_MEANINGS)
    said = UNIT_SENTENCES[unit]
    return known.get(unit, f"{said[0].upper()}{said[1:]}.")


def caveats(certificate: Certificate | None) -> list[str]:
    """What the promise does not cover, beside what the verdict says of it."""
    if certificate is None:
        return [
            "Nothing is promised: treat this release as you treat the data it was learned from."
        ]
    found = [_public_structure(kind_of(certificate))]
    if certificate.delta > 0:
        found.append(
            f"The limits may fail with a probability of about {one_in(certificate.delta)}; the guesses in "
            "100 include that."
        )
    if _is_metric(certificate):
        found.append(
            "The recipient's own lists of people, compared with this metric, are not protected by it."
        )
    found += [
        "Releases from the same people that are not in the sender's ledger are not counted.",
        "Every bound was proved, not measured; the true loss may be smaller.",
    ]
    return found
