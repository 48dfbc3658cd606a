"""What each epsilon, unit and selection would buy, from public numbers; spends nothing.

A row is a whole fit planned and certified as `fit` would do it. Labels and features enter none of it, so
neither the table nor the line that is recommended tells anything about them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

import numpy as np

from pairveil._lazy import new_axes
from pairveil.errors import PairveilWarning
from pairveil.graph.choosing import SELECTIONS_OF_PAIRS, recommended_selection
from pairveil.graph.kappa import Kappa
from pairveil.learners.contrastive.learner import DPPMetricLearner
from pairveil.learners.expected import ENOUGH, ExpectedGain, expected_gain, was_measured
from pairveil.learners.preparing import Prepared
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.privacy.units import UNITS, round_up, times_in_100
from pairveil.records.pairset import PairSet

EPSILONS = (0.3, 1.0, 2.0, 4.0, 8.0)
GUESS_ALLOWED = 0.75


@dataclass(frozen=True)
class PlannedFit:
    """One line: a fit that could be made."""

    epsilon: float
    unit: str
    select: str
    kappa: int
    n_pairs_used: int
    signal: float  # pairs against noise: what the expected gain is read off
    # Share of the non-private learner's gain over plain distance that eight in ten such fits kept; None
    # where no such fits were run
    gain_low: float | None
    gain_high: float | None
    best_guess: float  # how often, at most, two equally likely contents of the unit are told apart
    person_epsilon: float  # what the same fit promises to a person, whatever ``unit`` is
    person_best_guess: float
    records: str = "pairs"  # what noise is added to sums over
    n_records: int | None = None  # that are used, where they are people or tuples
    ledger_epsilon: float | None = None  # what a ledger would have spent with it
    allowed: bool = True  # by that ledger's budget

    @property
    def middle(self) -> float:
        """Of the expected gain, where it is known."""
        known = self.gain_low is not None and self.gain_high is not None
        return (self.gain_low + self.gain_high) / 2 if known else math.nan  # type: ignore[operator]


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
        head = "".join(f"<th>{escape(name)}</th>" for name in headings(self.recommended))
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
                (row.person_best_guess, row.middle) for row in self.rows if row.select == select
            )
            ax.plot(*zip(*line, strict=True), marker="o", label=select)
        best = self.recommended
        ax.plot(best.person_best_guess, best.middle, "k*", markersize=14)
        ax.set(
            xlabel="best guess about a person, at most", ylabel="expected share of the gain kept"
        )
        ax.legend(title="select")
        return ax


def headings(row: PlannedFit) -> tuple[str, ...]:
    """Of the columns that `cells` fills: by selection, or by what records are."""
    kept = ("select", "kappa", "pairs") if row.n_records is None else ("records", "kappa", "used")
    after = () if row.ledger_epsilon is None else ("ledger",)
    return ("epsilon", "unit", *kept, "gain %", "guess %", "person", *after)


def cells(row: PlannedFit) -> list[Any]:
    """A line for people: promises rounded up."""
    person, gain, after = row.person_epsilon, "not known", []
    if row.ledger_epsilon is not None:
        after = [round_up(row.ledger_epsilon) if row.allowed else "over"]
    if row.gain_low is not None and row.gain_high is not None:
        gain = f"{100 * row.gain_low:.0f}-{100 * row.gain_high:.0f}"
    return [
        f"{row.epsilon:g}",
        row.unit,
        row.select if row.n_records is None else row.records,
        row.kappa,
        row.n_pairs_used if row.n_records is None else row.n_records,
        gain,
        times_in_100(row.best_guess),
        round_up(person) if math.isfinite(person) else "infinite",
        *after,
    ]


def outlook(
    data: PairSet,
    epsilons: Sequence[float] = EPSILONS,
    units: Sequence[str] = UNITS,
    selections: Sequence[str] | None = None,
    ledger: PrivacyLedger | None = None,
    **parameters: Any,
) -> Outlook:
    """Plan a fit for each epsilon, unit and selection; look at no label and no feature.

    Parameters
    ----------
    data : PairSet
        Labels are not needed.
    epsilons, units, selections
        What to plan for; by default all selections whose records are pairs.
    ledger : PrivacyLedger, optional
        Each line says what it would have spent after such a fit, and none is recommended that it refuses.
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
    blind = data.replace(labels=np.ones(data.n_pairs)).canonical()[0]
    kappas: dict[str, Kappa] = {}
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PairveilWarning)  # each line would say the same again
        for unit in units:
            for select in SELECTIONS_OF_PAIRS if selections is None else selections:
                learner = DPPMetricLearner(**{"unit": unit, "select": select, **parameters})
                prepared = learner.set_params(epsilon=epsilons[0]).prepare(blind)
                if prepared.records.used_kappa is not None:
                    kappas[select] = prepared.records.used_kappa
                for epsilon in epsilons:
                    made = learner.set_params(epsilon=epsilon).replan(prepared)
                    if made.certificate is not None:  # an infinite epsilon promises nothing
                        gain = expected_gain(made.certificate)
                        rows.append(_line(made, float(epsilon), gain, ledger))
    best, why = recommend(rows, recommended_selection(kappas))
    return Outlook(tuple(rows), best, why)


def _line(
    made: Prepared, epsilon: float, gain: ExpectedGain, ledger: PrivacyLedger | None, **more: Any
) -> PlannedFit:
    planned = made.certificate
    assert planned is not None
    after = None if ledger is None else ledger.after(made.cost())
    return PlannedFit(
        ledger_epsilon=after,
        allowed=after is None or ledger is None or after <= ledger.epsilon,
        epsilon=epsilon,
        unit=planned.unit,
        select=planned.selection["how"],
        kappa=planned.kappa,
        n_pairs_used=planned.n_pairs_used,
        signal=gain.signal,
        best_guess=planned.best_guess(planned.unit),
        person_epsilon=planned.epsilons["person"][planned.adjacency],
        person_best_guess=planned.best_guess("person"),
        **({"gain_low": gain.low, "gain_high": gain.high} | more),
    )


def outlook_of(
    prepare_fit: Callable[[Any], Prepared],
    learner: Any,
    epsilons: Sequence[float] = EPSILONS,
    units: Sequence[str] = UNITS,
    ledger: PrivacyLedger | None = None,
) -> Outlook:
    """Plan a fit to classes, groups or tuples for each epsilon and unit; spends nothing.

    ``prepare_fit`` makes a prepared fit of a learner, as ``lambda one: one.prepare(tuples)``; of people with
    classes the public list must be given, or the plan would tell which classes there are. Epsilon and unit of
    ``learner`` are replaced.

    Examples
    --------
    >>> from pairveil import DPPMetricLearner
    >>> import numpy as np
    >>> X, y = np.zeros((500, 5)), np.zeros(500)
    >>> found = outlook_of(
    ...     lambda one: one.prepare_classes(X, y, classes=[0, 1]), DPPMetricLearner(), (1.0,), ("person",)
    ... )
    >>> [(row.n_records, row.records, row.kappa, row.person_epsilon <= 1) for row in found.rows]
    [(500, 'people', 1, True)]
    """
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PairveilWarning)  # each line would say the same again
        for unit in units:
            for epsilon in epsilons:
                one = type(learner)(**learner.get_params(deep=False))
                made = prepare_fit(one.set_params(epsilon=epsilon, unit=unit))
                planned = made.certificate
                if planned is None:
                    continue
                ran = isinstance(learner, DPPMetricLearner) and was_measured(planned)
                known = {} if ran else {"gain_low": None, "gain_high": None}
                counted = {"records": planned.records, "n_records": made.plan.n_records}
                rows.append(
                    _line(made, epsilon, expected_gain(planned), ledger, **known, **counted)
                )
    best, why = recommend(rows, rows[0].select)
    return Outlook(tuple(rows), best, why)


def recommend(rows: Sequence[PlannedFit], select: str) -> tuple[PlannedFit, str]:
    """The line to take, and why: a promise to a person that means something, then what it brings.

    Of the lines with the recommended selection at which nobody guesses a person's content right more often
    than 75 times in 100: the strongest promise among those whose expected range begins at half of the gain
    or above; where there is none, the line with the loudest signal.
    """
    mine = [row for row in rows if row.select == select]
    if not any(row.allowed for row in mine):
        best = min(mine, key=lambda row: row.ledger_epsilon or math.inf)
        return best, _said(
            best, "the ledger's budget allows none of these, this one least exceeds it"
        )
    mine = [row for row in mine if row.allowed]
    kept = [row for row in mine if row.person_best_guess <= GUESS_ALLOWED]
    if not kept:
        best = min(mine, key=lambda row: (row.person_best_guess, -row.signal))
        return best, _said(
            best, "the strongest promise to a person here; a smaller epsilon would be stronger"
        )
    enough = [row for row in kept if row.gain_low is not None and row.gain_low >= ENOUGH]
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
    gain = "No range of what such fits keep is known."
    if row.gain_low is not None and row.gain_high is not None:
        gain = ExpectedGain(row.signal, row.gain_low, row.gain_high).said(row.records)
    used = f"selection '{row.select}'" if row.n_records is None else row.records
    return (
        f"epsilon {row.epsilon:g} for one {row.unit}, {used}: {reason}. {gain} To a person it promises "
        f"epsilon {round_up(row.person_epsilon)}, a best guess of "
        f"{times_in_100(row.person_best_guess)} in 100."
    )
