"""How much of the non-private learner's gain a planned fit may be expected to keep: public numbers only."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from pairveil.privacy.mechanisms import mechanism_named

# Gain kept (share of the non-private learner's gain in pair AUC over Euclid) by signal, the smallest and
# the largest seen on breast cancer, digits, Bank, Adult and IPUMS-BR at five epsilons from 0.03 to 4,
# with all and with 3,000 people. Data differ more than seeds do, hence the wide middle.
GAINS = (
    (10.0, 0.0, 0.55),
    (40.0, 0.0, 0.85),
    (130.0, 0.0, 1.0),
    (400.0, 0.5, 1.0),
    (math.inf, 0.9, 1.0),
)


class ExpectedGain(NamedTuple):
    """The smallest and the largest share of the gain that benchmarks kept at such a signal."""

    signal: float
    low: float
    high: float


def signal_of(planned: Any) -> float:
    """Pairs divided by noise times the root of the number of features; all of it is public.

    The noise is that of one sum which had the whole budget: the fits' shares do not matter.
    """
    sums = [e for e in planned.events if "noise_multiplier" in e]
    power = sum(e.get("steps", 1) / e["noise_multiplier"] ** 2 for e in sums)
    # A choice is worth mu = eta / 2 (docs/theory/choice.md, Proposition 3).
    power += sum(e["steps"] * (e["eta"] / 2) ** 2 for e in planned.events if e["kind"] == "choice")
    # Where records are groups, noise is added to those.
    records = planned.plan.get("n_groups", planned.n_pairs_used)
    return float(records * math.sqrt(power / planned.plan["n_features"]))


def expected_gain(planned: Any) -> ExpectedGain:
    """What to expect of a planned fit, from its certificate.

    Examples
    --------
    >>> from pairveil import DPPMetricLearner, design_pairs
    >>> import numpy as np
    >>> X = np.zeros((2000, 5)); pairs = design_pairs(2000, random_state=0)
    >>> expected_gain(DPPMetricLearner(epsilon=4.0, preprocessor=X).certify(pairs, np.ones(len(pairs))))
    ExpectedGain(signal=8..., low=0.9, high=1.0)
    """
    # Measured for Gaussian noise only; pure epsilon keeps less.
    if mechanism_named(planned.mechanism).is_pure:
        return ExpectedGain(signal_of(planned), 0.0, 1.0)
    signal = signal_of(planned)
    low, high = next((low, high) for limit, low, high in GAINS if signal < limit)
    return ExpectedGain(signal, low, high)
