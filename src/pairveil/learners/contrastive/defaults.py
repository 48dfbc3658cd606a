"""The one set of defaults: public rules in (d, K, epsilon, delta, kappa), never in the data.

How they were found, and what did not help: docs/decisions/0005-learner.md.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from pairveil.engine.plan import Setting
from pairveil.learners.scatter_moments import MOST_FEATURES
from pairveil.privacy.costs import cost_of


class Shares(NamedTuple):
    """How the budget is divided: parts of mu^2 (Gaussian) or of epsilon (Laplace)."""

    survey: float
    signal: float
    gradients: float
    moments: float
    contest: float


SHARES = Shares(0.17, 0.17, 0.54, 0.04, 0.08)
SHARES_BY_CHOICE = Shares(0.10, 0.25, 0.55, 0.03, 0.07)
PURE_SHARES = Shares(0.10, 0.18, 0.56, 0.06, 0.10)
SCARCE = 50.0
"""Where there are fewer pairs than this for each unit of noise, the side queries get their full share."""
MARGIN_SHARE = 0.03
"""What ``margin='private'`` takes off all other shares."""

N_STEPS = 100
N_STEPS_PURE = 8
N_STEPS_PURE_BY_CHOICE = 16
N_STEPS_PURE_FAINT = 3
N_STEPS_WITHOUT_NOISE = 300
MARGIN = 1.0


def usual_steps(setting: Setting, *, by_choice: bool = False) -> int:
    """How many gradients are asked for where the user does not say.

    The noise of a pure epsilon grows with the number of questions: few of them where it is loud.
    """
    if not setting.budget.is_private:
        return N_STEPS_WITHOUT_NOISE
    if not setting.mechanism.is_pure:
        return N_STEPS
    if by_choice:
        return N_STEPS_PURE_FAINT if is_faint(setting) else N_STEPS_PURE_BY_CHOICE
    return N_STEPS_PURE if setting.n_records >= FEW_PAIRS else N_STEPS_PURE // 2


def divide(setting: Setting, *, by_choice: bool = False) -> Shares:
    """Shares of the queries: the more pairs there are for the noise, the more goes to the descent.

    Examples
    --------
    >>> from pairveil.privacy.mechanisms import Budget
    >>> budget = Budget(1.0, 1e-5, 1, "zero-out")
    >>> [round(divide(Setting(budget, n, 30)).gradients, 2) for n in (400, 40_000)]
    [0.54, 0.86]
    """
    if setting.mechanism.is_pure:
        return PURE_SHARES
    if not setting.budget.is_private:
        return SHARES
    full = SHARES_BY_CHOICE if by_choice else SHARES
    noise = setting.mechanism.multiplier(setting.budget, 1.0) * math.sqrt(setting.n_features)
    part = min(1.0, max(0.3, math.sqrt(SCARCE * noise / setting.n_records)))
    side = {name: part * share for name, share in full._asdict().items() if name != "gradients"}
    return Shares(gradients=1 - sum(side.values()), **side)


FAINT_VECTOR = 200.0
"""Fewer pairs than this for the length of a noise vector: the vector of signals drowns."""
FEW_PAIRS = 2_000
"""From fewer pairs a choice is no better than the vector, and pure noise leaves half of the steps."""
FEW_COLUMNS = 10
"""A vector of fewer numbers costs little more than a choice, and tells more."""


def is_faint(setting: Setting, faint: float = FAINT_VECTOR) -> bool:
    """Whether a noisy vector of one number a column drowns: fewer than ``faint`` records for its length.

    In l1, where noise on every entry goes with the sum of all, its length is that sum.
    """
    d = setting.n_features
    width = d if setting.mechanism.norm == "l1" else math.sqrt(d)
    return setting.n_records < faint * setting.mechanism.multiplier(setting.budget, 1.0) * width


def starts_by_choice(setting: Setting, faint: float | None = None) -> bool:
    """Whether a chosen column is a better start than those that stand out of a noisy vector.

    The choice pays for one number and the vector for d of them: it wins where the vector drowns, and with a
    pure epsilon, which pays for the sum of all entries, already where it is half under.

    Examples
    --------
    >>> from pairveil.privacy.mechanisms import Budget
    >>> at = [Setting(Budget(e, 1e-5, 1, "zero-out"), 8_000, 30) for e in (1.0, 0.1)]
    >>> [starts_by_choice(setting) for setting in at]
    [False, True]
    """
    few = setting.n_records < FEW_PAIRS or setting.n_features < FEW_COLUMNS
    if not setting.budget.is_private or few:
        return False
    if faint is None:
        faint = 2 * FAINT_VECTOR if setting.mechanism.is_pure else FAINT_VECTOR
    return is_faint(setting, faint)


def learns_from_pairs(setting: Setting, n_classes: int) -> bool:
    """Whether people with classes are learned from by pairs; from public numbers alone.

    Measured in docs/guides/classes.md. For a person sums over people win. A fact about two people costs them
    two records and paths of pairs one, and then two classes are told apart better by pairs. More columns than
    statistics can take go to pairs as well.

    Parameters
    ----------
    setting : Setting
        Of the people.
    n_classes : int

    Examples
    --------
    >>> from pairveil.privacy.mechanisms import Budget
    >>> at = [Setting(Budget(1.0, 1e-5, kappa, "zero-out"), 398, 30) for kappa in (1, 2)]
    >>> [learns_from_pairs(setting, n_classes=2) for setting in at]
    [False, True]
    """
    if setting.n_features > MOST_FEATURES:
        return True
    return n_classes == 2 and cost_of(setting.budget.kappa).records > 1
