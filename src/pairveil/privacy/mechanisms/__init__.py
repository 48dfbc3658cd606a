"""The kinds of noise that can be certified: one file each, and one line here.

A mechanism is an object. It knows the norm in which contributions are clipped, the event that the
accountant is told, how its noise follows from a share of a budget, how that noise is drawn, and what exact
noise takes off delta. Options, certificates and their verification ask the object; none knows its name.
"""

from __future__ import annotations

from pairveil.errors import InputError
from pairveil.privacy.mechanisms.base import Budget, Drawn, Mechanism, Sampling
from pairveil.privacy.mechanisms.exponential import EXPONENTIAL
from pairveil.privacy.mechanisms.gaussian import GAUSSIAN
from pairveil.privacy.mechanisms.laplace import LAPLACE

MECHANISMS: dict[str, Mechanism] = {
    mechanism.name: mechanism for mechanism in (GAUSSIAN, LAPLACE, EXPONENTIAL)
}
"""Every mechanism by the name that users and certificates give it."""

NOISES: tuple[str, ...] = tuple(name for name, one in MECHANISMS.items() if one.on_sums)
"""Those that a learner can be given as ``mechanism=``; the first is the default. Choices are asked for by
recipes (`pairveil.engine.plan.Ask`)."""

__all__ = ["MECHANISMS", "NOISES", "Budget", "Drawn", "Mechanism", "Sampling", "mechanism_named"]


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
