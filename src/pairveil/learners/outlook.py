"""What a planned fit may be expected to bring, and each epsilon, unit and selection: from public numbers.

How much of the non-private learner's gain it keeps is a range: that of some 1,200 fits to pairs, or 500 to
people with classes, on 31 tables, read off one number; how it was made, and how often it held on tables left
out: docs/decisions/0021-expected.md.

A row of an outlook is a whole fit planned and certified as `fit` would do it. Labels and features enter none
of it, so neither the table nor the line that is recommended tells anything about them. Nothing is spent.
"""

from __future__ import annotations

import math
import tomllib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pairveil._lazy import new_axes
from pairveil.errors import PairveilWarning, PrivateNote
from pairveil.graph.choosing import SELECTIONS_OF_PAIRS, recommended_selection
from pairveil.graph.kappa import Kappa
from pairveil.learners.contrastive.learner import DPPMetricLearner
from pairveil.learners.preparing import Prepared
from pairveil.privacy.compose import mu_from_epsilon
from pairveil.privacy.ledger import PrivacyLedger
from pairveil.privacy.mechanisms import mechanism_named
from pairveil.privacy.units import UNITS, round_up, times_in_100
from pairveil.records.kinds import KINDS
from pairveil.records.pairset import PairSet

# ---- what one planned fit may be expected to keep ------------------------------------------------

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


# ---- what each epsilon, unit and selection would buy ---------------------------------------------

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
    # each line would say the same again
    with warnings.catch_warnings(action="ignore", category=PairveilWarning):
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
    rows: list[PlannedFit] = []
    for unit in units:
        for epsilon in epsilons:
            # each line would say the same again: what is wrong with the people is said with the first
            with warnings.catch_warnings(action="ignore", category=PairveilWarning):
                if not rows:
                    warnings.simplefilter("always", PrivateNote)
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
    # Where people are the records, a relationship is two of them: the promise is made to one.
    people = [row for row in rows if KINDS[row.records].alone and row.unit == "person"]
    best, why = recommend(people or rows, rows[0].select)
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
