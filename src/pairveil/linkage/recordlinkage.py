"""recordlinkage: match weights as the coefficients of its logistic classifier."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pairveil.array_types import FloatArray
from pairveil.errors import InputError


def to_recordlinkage(model: Any, prior: float | None = None) -> tuple[FloatArray, float]:
    """Coefficients and intercept for ``recordlinkage.LogisticRegressionClassifier``.

    A model with its ``prior`` *is* a logistic regression on indicators of levels: the log odds are those of
    the prior plus the natural logarithm of m / u of every level that a pair has. recordlinkage compares into
    0 and 1, so each comparison must have two levels; a null is not known to it, and counts as 0.

    Parameters
    ----------
    model : PrivateLinkageModel or ReleasedLinkage
    prior : float, optional
        How likely a pair of yours is a match; the model's own by default.

    Examples
    --------
    >>> from pairveil.linkage import ReleasedLinkage
    >>> model = ReleasedLinkage((np.array([0.2, 0.8]),), (np.array([0.9, 0.1]),), 0.5)
    >>> coefficients, intercept = to_recordlinkage(model)
    >>> coefficients.round(3), round(intercept, 3)
    (array([3.584]), -1.504)
    """
    released = model.released() if hasattr(model, "released") else model
    if set(released.n_levels) != {2}:
        raise InputError(
            "recordlinkage's features are 0 or 1: every comparison of the model must have two levels"
        )
    before = released.prior if prior is None else float(prior)
    if not 0 < before < 1:
        raise InputError("prior must be a number between 0 and 1, both excluded")
    ratios = [np.log(m / u) for m, u in zip(released.m, released.u, strict=True)]
    intercept = math.log(before / (1 - before)) + sum(float(one[0]) for one in ratios)
    return np.array([float(one[1] - one[0]) for one in ratios]), intercept
