"""What each epsilon, unit and selection would buy, from public numbers; spends nothing.

A row is a whole fit planned and certified as `fit` would do it. Labels and features enter none of it, so
neither the table nor the line that is recommended tells anything about them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from types import SimpleNamespace
from typing import Any

import numpy as np

from pairveil.data.pairset import PairSet
from pairveil.errors import PairveilWarning
from pairveil.graph.kappa import Kappa
from pairveil.graph.recommending import SELECTIONS_OF_PAIRS, recommended_selection
from pairveil.learners.contrastive.learner import DPPMetricLearner
from pairveil.learners.expected import ENOUGH, ExpectedGain, expected_gain
from pairveil.learners.inputs import Resolved
from pairveil.learners.material import material_of_pairs
from pairveil.learners.parameters import check_common, plain_parameters
from pairveil.learners.preparing import prepare
from pairveil.plots import new_axes
from pairveil.privacy.noise import TrustedNoise
from pairveil.privacy.promise import times_in_100
from pairveil.privacy.units import UNITS, round_up

EPSILONS = (0.3, 1.0, 2.0, 4.0, 8.0)
GUESS_ALLOWED = 0.75


@dataclass(frozen=True)
class PlannedFit:
    """One line: a fit that could be made.

    Attributes
    ----------
    epsilon, unit, select
        What to say to ``fit``.
    kappa, n_pairs_used : int
    signal : float
        Pairs against noise: what the expected gain is read off.
    gain_low, gain_high : float
        Share of the non-private learner's gain over plain distance that eight in ten such fits kept
        (`pairveil.learners.expected`).
    best_guess : float
        How often, at most, anyone tells two equally likely contents of the unit apart; 0.5 is a coin.
    person_epsilon, person_best_guess : float
        What the same fit promises to a person, whatever ``unit`` is.
    """

    epsilon: float
    unit: str
    select: str
    kappa: int
    n_pairs_used: int
    signal: float
    gain_low: float
    gain_high: float
    best_guess: float
    person_epsilon: float
    person_best_guess: float


@dataclass(frozen=True)
class Outlook:
    """All lines, the one that is recommended, and why."""

    rows: tuple[PlannedFit, ...]
    recommended: PlannedFit
    why: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as ``pairveil plan --json`` prints it."""
        return {
            "rows": [asdict(row) for row in self.rows],
            "recommended": {**asdict(self.recommended), "why": self.why},
        }

    def _repr_html_(self) -> str:
        """A table for notebooks, the recommended line in bold."""
        head = "".join(f"<th>{escape(name)}</th>" for name in HEADINGS)
        body = "".join(
            "<tr>" + "".join(f"<td>{self._marked(row, cell)}</td>" for cell in cells(row)) + "</tr>"
            for row in self.rows
        )
        return f"<table><tr>{head}</tr>{body}</table><p>{escape(self.why)}</p>"

    def _marked(self, row: PlannedFit, cell: object) -> str:
        shown = escape(str(cell))
        return f"<b>{shown}</b>" if row == self.recommended else shown

    def plot(self, ax: Any = None) -> Any:
        """Best guess about a person against the middle of the expected gain, a line each selection.

        Needs ``pip install 'pairveil[plots]'``. Returns matplotlib's axes.
        """
        ax = new_axes() if ax is None else ax
        for select in dict.fromkeys(row.select for row in self.rows):
            line = sorted(
                (row.person_best_guess, (row.gain_low + row.gain_high) / 2)
                for row in self.rows
                if row.select == select
            )
            ax.plot(*zip(*line, strict=True), marker="o", label=select)
        best = self.recommended
        ax.plot(best.person_best_guess, (best.gain_low + best.gain_high) / 2, "k*", markersize=14)
        ax.set(
            xlabel="best guess about a person, at most", ylabel="expected share of the gain kept"
        )
        ax.legend(title="select")
        return ax


HEADINGS = ("epsilon", "unit", "select", "kappa", "pairs", "gain %", "guess %", "person")


def cells(row: PlannedFit) -> list[Any]:
    """A line for people: promises rounded up."""
    person = row.person_epsilon
    return [
        f"{row.epsilon:g}",
        row.unit,
        row.select,
        row.kappa,
        row.n_pairs_used,
        f"{100 * row.gain_low:.0f}-{100 * row.gain_high:.0f}",
        times_in_100(row.best_guess),
        round_up(person) if math.isfinite(person) else "infinite",
    ]


def outlook(
    data: PairSet,
    epsilons: Sequence[float] = EPSILONS,
    units: Sequence[str] = UNITS,
    selections: Sequence[str] | None = None,
    **parameters: Any,
) -> Outlook:
    """Plan a fit for each epsilon, unit and selection; look at no label and no feature.

    Parameters
    ----------
    data : PairSet
        Labels are not needed.
    epsilons, units, selections
        What to plan for; by default all selections whose records are pairs.
    **parameters
        Of `DPPMetricLearner`, the same for all lines: delta, adjacency, mechanism, data_norm, n_components.

    Examples
    --------
    >>> from pairveil import PairSet, design_pairs
    >>> import numpy as np
    >>> found = outlook(PairSet(np.zeros((500, 5)), design_pairs(500, random_state=0)), epsilons=(1.0, 4.0))
    >>> len(found.rows), found.recommended.person_best_guess <= 0.75
    (24, True)
    """
    # A label of its own for no pair: a plan must be the same whatever they are.
    blind = replace(data, labels=np.ones(data.n_pairs))
    kappas: dict[str, Kappa] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PairveilWarning)  # each line would say the same again
        found = Resolved(*blind.canonical(), False)
        chosen = SELECTIONS_OF_PAIRS if selections is None else tuple(selections)
        rows = tuple(
            row
            for unit in units
            for select in chosen
            for row in _lines(found, unit, select, epsilons, parameters, kappas)
        )
    best, why = recommend(rows, recommended_selection(kappas))
    return Outlook(rows, best, why)


def _lines(
    found: Resolved,
    unit: Any,
    select: str,
    epsilons: Sequence[float],
    parameters: dict[str, Any],
    kappas: dict[str, Kappa],
) -> Iterator[PlannedFit]:
    """Lines of one unit and selection; ``kappas`` is told kappa of what the selection keeps."""
    learner = DPPMetricLearner(unit=unit, select=select, **parameters)
    material = None
    for epsilon in epsilons:
        learner.epsilon = epsilon
        given: SimpleNamespace = plain_parameters(learner)
        check_common(given)
        learner._check(given, found.data.n_features)
        if material is None:  # depends on unit and selection only
            material = material_of_pairs(given, found, stacklevel=2)
            if material.used_kappa is not None:
                kappas[select] = material.used_kappa
        planned = prepare(learner._recipe(given), given, material, TrustedNoise()).certificate
        if planned is None:  # an infinite epsilon promises nothing
            continue
        gain: ExpectedGain = expected_gain(planned)
        yield PlannedFit(
            epsilon=given.epsilon,
            unit=unit,
            select=select,
            kappa=planned.kappas[unit],
            n_pairs_used=planned.n_pairs_used,
            signal=gain.signal,
            gain_low=gain.low,
            gain_high=gain.high,
            best_guess=planned.best_guess(unit),
            person_epsilon=planned.epsilons["person"][planned.adjacency],
            person_best_guess=planned.best_guess("person"),
        )


def recommend(rows: Sequence[PlannedFit], select: str) -> tuple[PlannedFit, str]:
    """The line to take, and why: a promise to a person that means something, then what it brings.

    Of the lines with the recommended selection at which nobody guesses a person's content right more often
    than 75 times in 100: the strongest promise among those whose expected range begins at half of the gain
    or above; where there is none, the line with the loudest signal.
    """
    mine = [row for row in rows if row.select == select]
    kept = [row for row in mine if row.person_best_guess <= GUESS_ALLOWED]
    if not kept:
        best = min(mine, key=lambda row: (row.person_best_guess, -row.signal))
        return best, _said(
            best, "the strongest promise to a person here; a smaller epsilon would be stronger"
        )
    enough = [row for row in kept if row.gain_low >= ENOUGH]
    if enough:
        best = min(
            enough, key=lambda row: (round(row.person_best_guess, 3), -row.signal, _rank(row))
        )
        return best, _said(
            best, "the strongest promise to a person that is likely to keep half of the gain"
        )
    best = max(kept, key=lambda row: (round(row.signal, 6), -_rank(row)))
    return best, _said(
        best,
        "the most that may be hoped for while nobody guesses a person right more than 75 times in 100",
    )


def _rank(row: PlannedFit) -> int:
    """Units from the strongest: where lines are the same, the promise is said by the strongest."""
    return ("person", "relationship", "pair").index(row.unit)


def _said(row: PlannedFit, reason: str) -> str:
    gain = ExpectedGain(row.signal, row.gain_low, row.gain_high)
    return (
        f"epsilon {row.epsilon:g}, unit {row.unit}, select {row.select}: {reason}. {gain.said()} To a person "
        f"it promises epsilon {round_up(row.person_epsilon)}, a best guess of "
        f"{times_in_100(row.person_best_guess)} in 100."
    )
