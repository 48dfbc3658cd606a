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
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.privacy.mechanisms import MECHANISMS
from pairveil.privacy.units import ADJACENCIES, UNITS, float_at_most

SMALLEST_EPSILON, LARGEST_EPSILON = 1e-12, 1e6

_CHOICES: dict[str, tuple[str, ...]] = {
    "unit": UNITS,
    "select": ("paths", "forest", "matching", "all"),
    "adjacency": ADJACENCIES,
    "mechanism": tuple(MECHANISMS),
    "sampling": ("poisson", "disjoint"),
    "loss": ("contrastive",),
    "backend": ("auto", "numpy", "dask"),
}
_LIMITS = ("epsilon", "delta")  # what must not be exceeded
_NUMBERS = (
    "kappa",
    "n_components",
    "margin",
    "max_grad_norm",
    "sample_rate",
    "n_steps",
    "learning_rate",
    "data_norm",
)


def plain_parameters(learner: Any) -> Any:
    """The parameters of a learner, as attributes; numbers are Python's own.

    Parameters
    ----------
    learner : estimator
        Its parameters need not have been checked: what is no real number stays as it is.

    Examples
    --------
    >>> from pairveil import DPPMetricLearner
    >>> parameters = plain_parameters(DPPMetricLearner(epsilon=np.float32(1), n_steps=np.int8(9)))
    >>> parameters.epsilon, parameters.n_steps, parameters.margin
    (1.0, 9, 'auto')
    """
    parameters = dict(learner.get_params(deep=False))
    for name in {*_LIMITS, *_NUMBERS} & set(parameters):
        parameters[name] = _plain(parameters[name], limit=name in _LIMITS)
    return SimpleNamespace(**parameters)


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


def check_parameters(learner: Any, n_features: int) -> None:
    """Refuse parameters that make no sense; nothing has been spent yet.

    Which parameters there are is the learner's matter; those of one name mean the same everywhere.
    """
    delta, given = learner.delta, vars(learner)
    check_epsilon(learner.epsilon)
    if not (_is_number(delta) and 0 < delta < 1):
        raise InputError("delta must be a number between 0 and 1, both excluded")
    for name, allowed in _CHOICES.items():
        if name in given:
            _check_choice(name, given[name], allowed)
    if not isinstance(learner.accountant, PrivacyLedger | None):
        raise InputError("accountant must be a PrivacyLedger or None")
    kappa, k = given.get("kappa", "auto"), given.get("n_components")
    if kappa != "auto" and not (_is_whole(kappa) and kappa >= 1):
        raise InputError("kappa must be 'auto' or a whole number of at least 1")
    if k is not None and not (_is_whole(k) and 1 <= k <= n_features):
        raise InputError(
            f"n_components must be None or from 1 to {n_features}, the number of features"
        )
    _check_descent(given)


def _check_descent(given: dict[str, Any]) -> None:
    if given.get("margin", "auto") not in ("auto", "private"):
        check_bound("margin", given["margin"])
    for name in ("max_grad_norm", "sample_rate", "n_steps", "learning_rate"):
        if given.get(name, "auto") != "auto":
            check_bound(name, given[name])
    rate, steps = given.get("sample_rate", "auto"), given.get("n_steps", "auto")
    if rate != "auto" and rate > 1:
        raise InputError("sample_rate must be at most 1")
    if steps != "auto" and not _is_whole(steps):
        raise InputError("n_steps must be 'auto' or a whole number")


def _check_choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(allowed)}")


def check_bound(name: str, value: object) -> None:
    """Refuse what is no positive number, or so far out that sums would leave the range of floats."""
    if not (_is_number(value) and 1e-9 <= float(value) <= 1e9):  # type: ignore[arg-type]
        raise InputError(f"{name} must be a number above 0 (from 1e-9 to 1e9)")


def _is_number(value: object) -> bool:
    return (
        isinstance(value, int | float | np.integer | np.floating)
        and not isinstance(value, bool)
        and value == value
    )


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
