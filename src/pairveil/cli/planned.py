"""What a fit is about to spend and may be expected to do, told from public numbers before it starts."""

from __future__ import annotations

import math
from typing import Any

from pairveil.cli.output import stdout, table
from pairveil.privacy.mechanisms import mechanism_named
from pairveil.privacy.promise import times_in_100
from pairveil.privacy.units import round_up

# Gain kept (share of the non-private learner's gain in pair AUC over Euclid) by signal, the smallest and
# the largest seen on breast cancer, digits, Bank, Adult and IPUMS-BR at five epsilons from 0.03 to 4,
# with all and with 3,000 people. Data differ more than seeds do, hence the wide middle.
EFFECTS = (
    (10.0, "0 to 55 %, mostly nothing,"),
    (40.0, "0 to 85 %, mostly little,"),
    (130.0, "0 to 100 %, mostly more than half,"),
    (400.0, "50 to 100 %, mostly nine tenths,"),
    (math.inf, "90 to 100 %"),
)


def signal_of(planned: Any) -> float:
    """Pairs divided by noise times the root of the number of features; all of it is public.

    The noise is that of one sum which had the whole budget: the fits' shares do not matter.
    """
    # Queries of other kinds (a noisy choice) have little of the budget, and no part in the tables above.
    sums = [e for e in planned.events if "noise_multiplier" in e]
    power = sum(e.get("steps", 1) / e["noise_multiplier"] ** 2 for e in sums)
    return float(_records_of(planned) * math.sqrt(power / planned.plan["n_features"]))


def _records_of(planned: Any) -> int:
    """What is summed over: groups of people where the plan has some, else pairs (or people)."""
    return int(planned.plan.get("n_groups", planned.n_pairs_used))


def expected_effect(planned: Any) -> str:
    """One line on what to expect of a planned fit, from its certificate."""
    if mechanism_named(planned.mechanism).is_pure:
        return "Expected effect: pure epsilon keeps less of the gain than noise with a delta does."
    signal = signal_of(planned)
    kept = next(text for limit, text in EFFECTS if signal < limit)
    records, features = _records_of(planned), planned.plan["n_features"]
    return (
        f"Expected effect: {records:,} {planned.records} against this noise and {features} features give a "
        f"signal of {signal:,.0f}. At such a signal our benchmarks kept {kept} of what learning without "
        "privacy gains over plain distance."
    )


def print_plan(planned: Any, headline: str) -> None:
    """What is about to be spent, before it is; ``headline`` is the query whose noise stands for the fit."""
    selection = planned.selection
    line = f"{planned.n_pairs_used:,} of {planned.n_pairs_given:,} pairs used"
    if planned.n_pairs_used < planned.n_pairs_given:
        line += (
            f" (select {selection['how']}); relationship-level kappa of all pairs is "
            f"{selection['full_graph_relationship_kappa']}, of those used {planned.kappas['relationship']}"
        )
    stdout.print(f"{line}.")
    main = next(r for r in planned.plan["releases"] if r["name"] == headline)
    stdout.print(
        f"Noise: {main['steps']} times '{headline}', on each entry {main['noise_multiplier']:.3g} times the "
        f"most that one record can add; {len(planned.events) - 1} queries besides."
    )
    print_epsilons(planned, f"epsilon at delta {planned.delta:g}, by unit")
    stdout.print(expected_effect(planned))


def print_epsilons(certificate: Any, title: str) -> None:
    """Epsilon for the three units in both adjacencies, and what it means to a guesser."""
    rows = [
        [
            unit,
            certificate.kappas[unit],
            _shown(by["zero-out"]),
            _shown(by["replace"]),
            f"{times_in_100(certificate.best_guess(unit))} %",
        ]
        for unit, by in certificate.epsilons.items()
    ]
    columns = ["protected unit", "kappa", "zero-out", "replace", "best guess right"]
    stdout.print(table(title, columns, rows))
    stdout.print(
        "Best guess: how often, at most, anyone can tell two equally likely contents apart; a coin is "
        "right 50 % of the time."
    )


def _shown(epsilon: float) -> str:
    """Rounded up: no promise may look better than it is."""
    return round_up(epsilon) if math.isfinite(epsilon) else "infinite"
