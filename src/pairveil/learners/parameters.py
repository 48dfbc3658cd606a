"""A learner's parameters as plain Python numbers, and what their epsilon can mean.

numpy's short floats would do arithmetic in their own precision: ``np.float32(1)`` as epsilon was once
certified at 1.0000000585. So every number is made a Python number before anything is computed from it,
and epsilon and delta are never rounded up on the way.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from pairveil.engine.planning import too_large
from pairveil.errors import InputError
from pairveil.graph import SELECTIONS
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.privacy.mechanisms import NOISES
from pairveil.privacy.units import ADJACENCIES, UNITS, float_at_most

SMALLEST_EPSILON, LARGEST_EPSILON = 1e-12, 1e6
LARGEST_KAPPA = 10**15  # more pairs than there are: beyond, noise leaves the floats

_CHOICES: dict[str, tuple[str, ...]] = {
    "unit": UNITS,
    "select": tuple(SELECTIONS),
    "adjacency": ADJACENCIES,
    "mechanism": NOISES,
    "backend": ("auto", "numpy", "dask"),
}
_LIMITS = ("epsilon", "delta")  # what must not be exceeded


def plain_parameters(learner: Any) -> Any:
    """The parameters of a learner, as attributes; numbers are Python's own.

    ``learner``: its parameters need not have been checked: what is no real number stays as it is.

    Examples
    --------
    >>> from pairveil import DPPMetricLearner
    >>> parameters = plain_parameters(DPPMetricLearner(epsilon=np.float32(1), n_steps=np.int8(9)))
    >>> parameters.epsilon, parameters.n_steps, parameters.margin
    (1.0, 9, 'auto')
    """
    parameters = learner.get_params(deep=False)
    return SimpleNamespace(
        **{name: _plain(value, limit=name in _LIMITS) for name, value in parameters.items()}
    )


def _plain(value: Any, *, limit: bool) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return value
    if limit:
        return float_at_most(value)
    return int(value) if isinstance(value, int | np.integer) else float(value)


def check_epsilon(epsilon: Any) -> None:
    """Refuse a plain epsilon that is no number above 0, or so far out that it is a slip of the hand.

    Examples
    --------
    >>> check_epsilon(1e9)
    Traceback (most recent call last):
    ...
    pairveil.errors.InputError: epsilon=1e+09 is too large: it would promise nothing ...
    """
    number = isinstance(epsilon, int | float) and not isinstance(epsilon, bool)
    if not (number and epsilon > 0):
        raise InputError("epsilon must be a number above 0 (float('inf') for no privacy)")
    if epsilon < SMALLEST_EPSILON:
        raise InputError(
            f"epsilon={float(epsilon):g} is too small: nothing could be learned; choose at least "
            f"{SMALLEST_EPSILON:g}"
        )
    if epsilon > LARGEST_EPSILON and epsilon != float("inf"):
        raise too_large(epsilon)


def check_common(given: Any, units: tuple[str, ...] = UNITS) -> None:
    """Refuse what makes no sense for any learner; each checks its own parameters in ``_check``.

    A learner need not have all of them: one of people selects no pairs.
    """
    delta, named = given.delta, vars(given)
    check_epsilon(given.epsilon)
    if not (is_number(delta) and 0 < delta < 1):
        raise InputError("delta must be a number between 0 and 1, both excluded")
    for name, allowed in _CHOICES.items():
        if name in named:
            check_choice(name, named[name], units if name == "unit" else allowed)
    if not isinstance(given.accountant, PrivacyLedger | None):
        raise InputError("accountant must be a PrivacyLedger or None")
    kappa = named.get("kappa", "auto")
    if kappa != "auto" and not (is_whole(kappa) and 1 <= kappa <= LARGEST_KAPPA):
        raise InputError("kappa must be 'auto' or a whole number from 1 to 10^15")


def check_components(k: Any, n_features: int) -> None:
    """Refuse a number of components that no metric over so many features has; None is all of them.

    Examples
    --------
    >>> check_components(2, n_features=3)
    """
    if k is not None and not (is_whole(k) and 1 <= k <= n_features):
        raise InputError(
            f"n_components must be None or from 1 to {n_features}, the number of features"
        )


def check_choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Refuse what is none of the names allowed.

    Examples
    --------
    >>> check_choice("unit", "pair", UNITS)
    """
    if value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(allowed)}")


def check_bound(name: str, value: object) -> None:
    """Refuse what is no positive number, or so far out that sums would leave the range of floats."""
    if not (is_number(value) and 1e-9 <= float(value) <= 1e9):  # type: ignore[arg-type]
        raise InputError(f"{name} must be a number above 0 (from 1e-9 to 1e9)")


def is_number(value: object) -> bool:
    """Whether a value is a real number, Python's or numpy's; NaN, True and False are not.

    Examples
    --------
    >>> is_number(0.5), is_number("1"), is_number(float("nan"))
    (True, False, False)
    """
    return (
        isinstance(value, int | float | np.integer | np.floating)
        and not isinstance(value, bool)
        and value == value
    )


def is_whole(value: object) -> bool:
    """Whether a value is a whole number; True and False are not.

    Examples
    --------
    >>> is_whole(3), is_whole(3.0), is_whole(True)
    (True, False, False)
    """
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
