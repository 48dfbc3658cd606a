"""The kinds of noise that can be certified: one file each, and one line here.

A mechanism is an object. It knows the norm in which contributions are clipped, the event that the
accountant is told, how its noise follows from a share of a budget, and how that noise is drawn. By name
it is asked for in few places only: docs/architecture.md lists them.
"""

from __future__ import annotations

from pairveil.errors import InputError
from pairveil.privacy.mechanisms.base import Budget, Mechanism, Sampling
from pairveil.privacy.mechanisms.exponential import EXPONENTIAL
from pairveil.privacy.mechanisms.gaussian import GAUSSIAN
from pairveil.privacy.mechanisms.laplace import LAPLACE

MECHANISMS: dict[str, Mechanism] = {
    mechanism.name: mechanism
    for mechanism in (
        GAUSSIAN,
        LAPLACE,
    )
}
"""Every kind of noise on sums by the name that users and certificates give it."""

CHOICES: dict[str, Mechanism] = {EXPONENTIAL.name: EXPONENTIAL}
"""Mechanisms whose answer is a choice. Nobody asks for one by name: recipes do (`Ask.choice`)."""

__all__ = [
    "CHOICES",
    "MECHANISMS",
    "Budget",
    "Mechanism",
    "Sampling",
    "mechanism_named",
    "mechanism_of_query",
]


def mechanism_named(name: object) -> Mechanism:
    """The mechanism of that name.

    Examples
    --------
    >>> mechanism_named("laplace").norm
    'l1'
    """
    if not isinstance(name, str) or name not in MECHANISMS:
        raise InputError(f"mechanism must be one of {', '.join(MECHANISMS)}")
    return MECHANISMS[name]


def mechanism_of_query(name: object) -> Mechanism:
    """The mechanism of a query, which may be a choice.

    Examples
    --------
    >>> mechanism_of_query("exponential").norm
    'range'
    """
    return CHOICES[name] if isinstance(name, str) and name in CHOICES else mechanism_named(name)
