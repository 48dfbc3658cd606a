"""Privacy numbers in plain words: the filters of the templates."""

from __future__ import annotations

import math
import shlex

from pairveil.privacy.units import WORDS, round_up

NO_BOUND = "no bound"
NBSP = "\u00a0"  # a number and its sign stay on one line

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
    >>> plain_public("the bound on the features' norm", "people")
    "the limit on the size of a person's features"
    """
    return _PLAIN[said].format(records) if said in _PLAIN else said


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
    """By how much the odds between two stories can change: exp(epsilon), rounded up.

    Examples
    --------
    >>> odds_factor(1.0), odds_factor(9.0)
    ('2.72', '8,104')
    """
    factor = math.exp(epsilon)
    return f"{math.ceil(factor):,}" if factor >= 1000 else round_up(factor, 3)


def odds(epsilon: float) -> str:
    """exp(epsilon), to one digit.

    Examples
    --------
    >>> odds(1.0)
    '2.7'
    """
    return f"{math.exp(epsilon):,.1f}"


def sure(epsilon: float) -> float:
    """How sure someone undecided can become in the worst case, but for delta.

    Examples
    --------
    >>> round(sure(1.0), 3)
    0.731
    """
    return 1 / (1 + math.exp(-epsilon))


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


def in_100(share: float, digits: int = 0) -> str:
    """A share as so many of a hundred.

    Examples
    --------
    >>> in_100(0.8761), in_100(0.8761, 1)
    ('88', '87.6')
    """
    return f"{100 * share:.{digits}f}"


def span(low: float, high: float) -> str:
    """Between which shares, in per cent.

    Examples
    --------
    >>> span(0.0123456, 0.2)
    '1.23 to 20 %'
    """
    return f"{100 * low:.3g} to {100 * high:.3g} %"


def in_bits(bits: float, noise: float | None = None) -> str:
    """Evidence with its sign, and with its noise where it is known.

    Examples
    --------
    >>> in_bits(-0.02), in_bits(2.25, 0.044), in_bits(0.6, 9.7)
    ('0.0', '+2.2 ± 0.04', '+0.6 ± 10')
    """
    shown = f"{bits:+.1f}"
    shown = "0.0" if shown in ("+0.0", "-0.0") else shown
    if not noise:
        return shown
    return f"{shown} ± {noise:.0f}" if noise >= 1 else f"{shown} ± {noise:.1g}"


def short(name: str, longest: int = 23) -> str:
    """A name that fits beside a bar.

    Examples
    --------
    >>> short("age"), len(short("a" * 99))
    ('age', 23)
    """
    return name if len(name) <= longest else f"{name[: longest - 11]}…{name[-10:]}"


FILTERS = (
    shlex.quote, repr, plain_public, number, cost, percent, at_most, odds_factor, odds, sure, one_in, in_100,
    span, in_bits, short,
)  # fmt: skip
