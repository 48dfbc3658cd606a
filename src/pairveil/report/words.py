"""Privacy numbers in plain words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pairveil.privacy.units import WORDS, round_up
from pairveil.privacy.verdict import records_of
from pairveil.records.kinds import KINDS, UNITS

if TYPE_CHECKING:
    from pairveil.privacy.certificate import Certificate

_PLAIN = {
    said: plain
    for words in WORDS.values()
    for said, plain in zip(words.public, words.public_plain, strict=True)
}
"""What certificates call public in the words of their makers, and for readers who are none."""


def plain_public(said: str, records: str) -> str:
    """A sentence on what is public, for readers of the page; one that no kind of records has stays as it is.

    Examples
    --------
    >>> plain_public("the records that each unit touches, the clip bound and the noise scale", "people")
    'how many people one protected fact touches, and how much noise was added'
    """
    return _PLAIN[said].format(records) if said in _PLAIN else said


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
    return not other and KINDS[certificate.records].units == UNITS


def one_record(certificate: Certificate) -> str:
    """What one of the certificate's records is called."""
    return certificate.words.record


def counted(count: int, certificate: Certificate) -> str:
    """So many of the certificate's records, with their name."""
    return f"{number(count)} {one_record(certificate) if count == 1 else records_of(certificate)}"


def caveats(certificate: Certificate | None) -> list[str]:
    """What the promise does not cover, beside what the verdict says of it."""
    if certificate is None:
        return [
            "Nothing is promised: treat this release as you treat the data it was learned from."
        ]
    found = [certificate.words.structure]
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
