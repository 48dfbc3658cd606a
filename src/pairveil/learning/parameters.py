"""A learner's parameters as plain Python numbers, and what their epsilon can mean.

numpy's short floats would do arithmetic in their own precision: ``np.float32(1)`` as epsilon was once
certified at 1.0000000585. So every number is made a Python number before anything is computed from it,
and epsilon and delta are never rounded up on the way.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from pairveil.errors import InputError
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.privacy.mechanisms import MECHANISMS
from pairveil.privacy.units import ADJACENCIES, UNITS, float_at_most

SMALLEST_EPSILON, LARGEST_EPSILON = 1e-12, 1e6
HARDLY_PRIVATE = 20.0
LARGEST_KAPPA = 10**15  # more pairs than there are: beyond, noise leaves the floats
NOTHING_PROMISED = (
    "it would promise nothing (at epsilon 20 odds may change by a factor of 485 million)"
)

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
    for name in (*_LIMITS, *_NUMBERS):
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


def too_large(epsilon: Any) -> InputError:
    """What to say of an epsilon for which no noise is drawn."""
    return InputError(
        f"epsilon={float_at_most(epsilon):g} is too large: {NOTHING_PROMISED}, and its noise is finer than "
        "exact noise can be; choose a smaller epsilon (float('inf') for no privacy)"
    )


def check_parameters(learner: Any, n_features: int) -> None:
    """Refuse parameters that make no sense; nothing has been spent yet."""
    delta = learner.delta
    check_epsilon(learner.epsilon)
    if not (_is_number(delta) and 0 < delta < 1):
        raise InputError("delta must be a number between 0 and 1, both excluded")
    _check_choice("unit", learner.unit, UNITS)
    _check_choice("select", learner.select, ("paths", "forest", "matching", "all"))
    if not isinstance(learner.accountant, PrivacyLedger | None):
        raise InputError("accountant must be a PrivacyLedger or None")
    _check_choice("adjacency", learner.adjacency, ADJACENCIES)
    _check_choice("mechanism", learner.mechanism, tuple(MECHANISMS))
    _check_choice("sampling", learner.sampling, ("poisson", "disjoint"))
    _check_choice("loss", learner.loss, ("contrastive",))
    _check_choice("backend", learner.backend, ("auto", "numpy", "dask"))
    if learner.kappa != "auto" and not (
        _is_whole(learner.kappa) and 1 <= learner.kappa <= LARGEST_KAPPA
    ):
        raise InputError("kappa must be 'auto' or a whole number from 1 to 10^15")
    k = learner.n_components
    if k is not None and not (_is_whole(k) and 1 <= k <= n_features):
        raise InputError(
            f"n_components must be None or from 1 to {n_features}, the number of features"
        )
    if learner.margin not in ("auto", "private"):
        check_bound("margin", learner.margin)
    for name in ("max_grad_norm", "sample_rate", "n_steps", "learning_rate"):
        if getattr(learner, name) != "auto":
            check_bound(name, getattr(learner, name))
    if learner.sample_rate != "auto" and learner.sample_rate > 1:
        raise InputError("sample_rate must be at most 1")
    if learner.n_steps != "auto" and not _is_whole(learner.n_steps):
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
