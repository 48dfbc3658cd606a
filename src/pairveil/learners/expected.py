"""How much of the non-private learner's gain a planned fit may be expected to keep: public numbers only.

The range is that of some 1,200 fits to pairs, or 500 to people with classes, on 31 tables, read off one
number; how it was made, and how often it held on tables left out: docs/decisions/0021-expected.md.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pairveil.privacy.compose import mu_from_epsilon
from pairveil.privacy.mechanisms import mechanism_named
from pairveil.records.kinds import KINDS

ENOUGH = 0.5

RANGES: dict[str, list[list[float]]] = tomllib.loads(
    Path(__file__).with_name("expected_ranges.toml").read_text(encoding="utf-8")
)
"""(signal, low, high) by records and noise, as ``python -m tools.expected_ranges`` wrote them."""


class ExpectedGain(NamedTuple):
    """Of fits with this signal, eight in ten kept a share of the gain from ``low`` to ``high``."""

    signal: float
    low: float
    high: float

    def said(self, records: str = "pairs") -> str:
        """The range as a sentence, and what to do where it may be nothing."""
        gain = "of what learning without privacy gains over plain distance"
        if self.high == 0:
            said = f"Nine in ten fits like it kept nothing {gain}"
        else:
            low, high = 100 * self.low, 100 * self.high
            said = f"Eight in ten fits like it kept {low:.0f} to {high:.0f} % {gain}"
        return said + (
            f": more {records} or fewer columns would help." if self.low < ENOUGH else "."
        )


def strength_of(planned: Any) -> float:
    """What the whole budget would be as one sum: mu of a Gaussian one, epsilon of a pure one."""
    events = planned.events[0]["parts"][0] if "score" in planned.plan else planned.events
    sums = [e for e in events if e["kind"] != "choice"]
    choices = [e for e in events if e["kind"] == "choice"]
    if mechanism_named(planned.mechanism).is_pure:
        spent = sum(e["steps"] / e["scale_multiplier"] for e in sums)
        return float(spent + sum(e["steps"] * e["eta"] for e in choices))
    power = sum(
        e.get("steps", 1) * (e.get("sample_rate", 1.0) / e["noise_multiplier"]) ** 2 for e in sums
    )
    # A choice is worth mu = eta / 2 (docs/theory/accounting.md, Proposition 3).
    return math.sqrt(power + sum(e["steps"] * (e["eta"] / 2) ** 2 for e in choices))


def n_learned(planned: Any) -> int:
    """How many of the used records were learned from: not those that were scored."""
    return int(planned.n_pairs_used - planned.plan.get("score", {}).get("n_pairs", 0))


def signal_of(planned: Any) -> float:
    """Pairs times the strength of the budget, over the root of the number of columns; all of it is public."""
    # Where records are groups, noise is added to those.
    records = planned.plan.get("n_groups", n_learned(planned))
    return float(records * strength_of(planned) / math.sqrt(planned.plan["n_features"]))


def range_at(knots: Sequence[Sequence[float]], signal: float) -> tuple[float, float]:
    """Both ends at a signal, between knots by its logarithm, to five per cent."""
    at, *ends = np.array(knots).T
    low, high = (float(np.interp(math.log2(signal), np.log2(at), end)) for end in ends)
    return round(20 * low) / 20, round(20 * high) / 20


def was_measured(planned: Any) -> bool:
    """Whether fits like it were run: to pairs, by descent, or `fit_classes` of the default learner.

    Both with room for Euclid. Which learner was fitted to people is not in a certificate: the caller knows.
    """
    plan = planned.plan
    if plan.get("n_components", 0) is not None:  # or not said: another learner's
        return False
    if KINDS[planned.records].alone:
        return "n_classes" in plan
    return KINDS[planned.records].pairwise and any(
        q["name"] == "gradients" for q in plan["releases"]
    )


def knots_for(planned: Any) -> list[list[float]]:
    """(signal, low, high) that were measured for its records and its kind of noise."""
    noise = "PURE" if mechanism_named(planned.mechanism).is_pure else "WITH_DELTA"
    return RANGES[f"CLASSES_{noise}" if KINDS[planned.records].alone else noise]


def expected_gain(planned: Any) -> ExpectedGain:
    """What to expect of a planned fit, from its certificate; 0 to 1 where no such fits were run."""
    signal = signal_of(planned)
    if not was_measured(planned):
        return ExpectedGain(signal, 0.0, 1.0)
    return ExpectedGain(signal, *range_at(knots_for(planned), signal))


def gain_by_epsilon(
    planned: Any, epsilons: Sequence[float]
) -> tuple[tuple[float, float, float], ...]:
    """(epsilon, low, high) of the same plan with other noise; none where no such fits were run.

    The signal grows as the strength of the budget: as epsilon of a pure plan, as mu of a Gaussian one.
    """
    is_pure = mechanism_named(planned.mechanism).is_pure
    # What is asked of people follows epsilon: other noise would be another plan.
    if not KINDS[planned.records].pairwise or not was_measured(planned):
        return ()
    if not is_pure and planned.mu() is None:
        return ()

    def strength(epsilon: float) -> float:
        return epsilon if is_pure else mu_from_epsilon(epsilon, planned.delta)

    each, knots = signal_of(planned) / strength(planned.epsilon), knots_for(planned)
    return tuple((epsilon, *range_at(knots, each * strength(epsilon))) for epsilon in epsilons)
