"""What a fit is about to spend and may be expected to do, told from public numbers before it starts."""

from __future__ import annotations

import math
from typing import Any

from pairveil.cli.output import stdout, table
from pairveil.privacy.units import round_up, times_in_100
from pairveil.privacy.verdict import Verdict, releases_of, verdict

ONE = {
    "pairs": "pair",
    "groups": "group",
    "tuples": "tuple",
    "people": "person",
    "choices": "choice",
    "workers": "worker",
}


def expected_effect(planned: Any) -> str:
    """One line on what to expect of a planned fit, from its certificate."""
    from pairveil.learners.expected import expected_gain

    gain = expected_gain(planned)
    used, features = planned.n_pairs_used, planned.plan["n_features"]
    return (
        f"Expected effect: {used:,} {planned.records} against this noise and {features} features give a "
        f"signal of {gain.signal:,.0f}. {gain.said(planned.records)}"
    )


def print_plan(planned: Any, headline: str, *, expected: bool = True) -> None:
    """What is about to be spent, before it is; ``headline`` is the query whose noise stands for the fit.

    ``expected``: whether the learner's fits were measured, so that its effect may be told.
    """
    selection = planned.selection
    counted = "pairs" if planned.records == "groups" else planned.records
    line = f"{planned.n_pairs_used:,} of {planned.n_pairs_given:,} {counted} used"
    if planned.n_pairs_used < planned.n_pairs_given:
        line += f" (select {selection['how']})"
        if planned.unit == "relationship":
            line += (
                "; relationship-level kappa of all "
                f"{counted} is {selection['full_graph_relationship_kappa']}, of those used {planned.kappa}"
            )
        else:
            line += f"; {planned.unit}-level kappa of those used is {planned.kappa}"
    stdout.print(f"{line}.")
    main = next(r for r in planned.plan["releases"] if r["name"] == headline)
    one = ONE.get(main.get("records", "pairs"), "record")
    stdout.print(
        f"Noise: '{headline}' is asked {_times(main['steps'])}, with noise on each entry "
        f"{main['noise_multiplier']:.3g} times the most that one {one} can "
        f"add; other queries: {len(planned.events) - 1}."
    )
    print_epsilons(planned, f"epsilon at delta {planned.delta:g}, by unit")
    from pairveil.learners.expected import was_measured

    if expected and was_measured(planned):
        stdout.print(expected_effect(planned))


def print_better_selection(material: Any, unit: Any) -> None:
    """Name the recommended selection where it leaves clearly more pairs for the noise than the one in use."""
    from pairveil.engine.backends.records import choose
    from pairveil.graph.choosing import NEARLY, SELECTIONS_OF_PAIRS, recommended_selection
    from pairveil.records.pairset import PairSet

    if material.used_kappa is None or not isinstance(material.given, PairSet):
        return
    # As `fit` chooses: people who change together count as one.
    found = {how: choose(material.given, how, 0).taken for how in SELECTIONS_OF_PAIRS}
    how = recommended_selection(found)
    now, better = (one.n_pairs / one.of(unit) for one in (material.used_kappa, found[how]))
    if now < NEARLY * better:
        stdout.print(
            f"Recommended: --select {how}, which leaves {better / now:.1f} times as many pairs for the noise."
        )


def judge(certificate: Any, ledger: Any) -> Verdict:
    """The verdict on what was just made: of all releases of the ledger together, where there is one."""
    return verdict(certificate, releases=None if ledger is None else releases_of(ledger))


def print_released(out: Any, judged: Verdict) -> None:
    """Where a release is, and the verdict on it."""
    where = "Released" if judged.usable else "Written"
    stdout.print(f"{where} in {out}; `pairveil certificate {out}` verifies it. {judged.line}")


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


def _times(steps: int) -> str:
    return "once" if steps == 1 else f"{steps:,} times"


def _shown(epsilon: float) -> str:
    """Rounded up: no promise may look better than it is."""
    return round_up(epsilon) if math.isfinite(epsilon) else "infinite"
