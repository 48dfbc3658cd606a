"""What will be asked of the data during a fit, fixed before any data are touched.

A plan is a tuple of queries and a few public numbers. The same frozen object tells the engine what to
run and the accountant what was run, so the two cannot disagree. A *recipe* is the heart of a
learner: which queries it asks for, and how it makes a model of the answers.
`make_plan` gives every query the noise that its share of the budget affords, to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pairveil.engine.statistics import UNIT
from pairveil.errors import InputError, warn
from pairveil.privacy.calibrate import calibrate_choice, calibrate_gaussian
from pairveil.privacy.events import Event
from pairveil.privacy.grid import check_noise, choose_grid
from pairveil.privacy.mechanisms import (
    EXPONENTIAL,
    GAUSSIAN,
    Budget,
    Mechanism,
    Query,
    Sampling,
    slack_of_plan,
)
from pairveil.privacy.profile import epsilon_of
from pairveil.privacy.samplers import rate_below
from pairveil.privacy.units import float_at_most

if TYPE_CHECKING:
    from pairveil.engine.engine import Engine

_WAS = {"Ask": "QuerySpec", "Setting": "PublicFacts"}


def __getattr__(name: str) -> Any:
    if name not in _WAS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warn(f"pairveil.engine.{name} is {_WAS[name]} now", DeprecationWarning)
    return globals()[_WAS[name]]


class PublicFacts(NamedTuple):
    """The public numbers that a recipe may plan with.

    Attributes
    ----------
    budget : Budget
    n_records, n_features : int
    data_norm : float
        Public bound on a person's l2 norm.
    mechanism : Mechanism
    records : str
        A name of `pairveil.records.kinds.KINDS`.
    choices : bool
        Whether a noisy choice can be asked: not of several parties, whose scores nobody may see.
    """

    budget: Budget
    n_records: int
    n_features: int
    data_norm: float = 1.0
    mechanism: Mechanism = GAUSSIAN
    records: str = "pairs"
    choices: bool = True


class QuerySpec(NamedTuple):
    """A query that a recipe wants, and the share of the budget it is worth.

    Attributes
    ----------
    name : str
    shape : tuple of int
        The most numbers that an answer may have.
    share : float
        Part of mu^2 (Gaussian) or of epsilon (Laplace). Poisson-sampled queries get what the others
        leave; at most one of them is allowed.
    choice : bool
        A noisy choice among that many candidates instead of a noisy sum: ``steps`` choices, each from all
        records. Whether one is asked must follow from public numbers (docs/theory/accounting.md).
    steps, sampling, sample_rate
        As in `Query`.
    """

    name: str
    shape: tuple[int, ...]
    share: float
    steps: int = 1
    sampling: Sampling = "poisson"
    sample_rate: float = 1.0
    choice: bool = False


@dataclass(frozen=True)
class Plan:
    """All queries of one fit, and the public numbers its training may use.

    Parameters
    ----------
    queries : tuple of Query
        In the order in which they are first asked.
    n_records, n_features : int
    data_norm : float
        Public bound on a person's norm.
    options : mapping
        The recipe's public parameters, for the certificate.

    Examples
    --------
    >>> plan = Plan((Query("survey", (4,), 20.0),), n_records=9, n_features=2)
    >>> plan["survey"].noise_multiplier, "contest" in plan
    (20.0, False)
    """

    queries: tuple[Query, ...]
    n_records: int
    n_features: int
    data_norm: float = 1.0
    options: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Query:
        for query in self.queries:
            if query.name == name:
                return query
        raise InputError(
            f"the plan has no query '{name}': `ask` must name every query that `run` asks"
        )

    def __contains__(self, name: object) -> bool:
        return any(query.name == name for query in self.queries)

    def events(self) -> tuple[Event, ...]:
        """What the accountant is told: one event for each query."""
        return tuple(query.event() for query in self.queries)

    def to_dict(self) -> dict[str, Any]:
        """Public description for the certificate."""
        return {
            "releases": [query.to_dict() for query in self.queries],
            "n_features": self.n_features,
            "data_norm": self.data_norm,
            **self.options,
        }


class Recipe(Protocol):
    """The heart of a learner: which queries it asks, and what model it makes of the answers."""

    @property
    def headline(self) -> str:
        """The query whose noise stands for the fit (``noise_multiplier_``)."""
        ...

    def ask(self, facts: PublicFacts) -> tuple[QuerySpec, ...]:
        """Which queries are asked, and how the budget is divided over them; from public numbers alone."""
        ...

    def run(self, plan: Plan, engine: Engine) -> Any:
        """The model, from the engine's answers alone."""
        ...

    def options(self) -> dict[str, Any]:
        """Public parameters, for the certificate."""
        ...


# ---- noise for every query, within the budget to the last bit ------------------------------------

HARDLY_PRIVATE = 20.0

NOTHING_PROMISED = (
    "it would promise nothing (at epsilon 20 odds may change by a factor of 485 million)"
)

SLACK_SHARE = 1e-3
"""Part of delta set aside for what exact discrete noise costs; the true cost is far smaller."""


def make_plan(recipe: Recipe, facts: PublicFacts) -> Plan:
    """Give every query that a recipe asks for the noise that its share of the budget affords.

    Examples
    --------
    >>> from pairveil.learners.contrastive.recipe import ContrastiveRecipe
    >>> from pairveil.privacy.mechanisms import Budget
    >>> facts = PublicFacts(Budget(1.0, 1e-5, 1, "zero-out"), n_records=500, n_features=30)
    >>> plan = make_plan(ContrastiveRecipe(), facts)
    >>> 0.999 < epsilon_of(plan.events(), kappa=1, delta=1e-5) <= 1.0
    True
    """
    asked = recipe.ask(facts)
    planned: dict[str, Query] = {}
    # What has no closed form is calibrated last, against what the others cost.
    for ask in sorted(asked, key=_turn):
        others = [query.event() for query in planned.values()]
        last = len(planned) == len(asked) - 1
        planned[ask.name] = _query(ask, facts, others, last=last)
    if len(planned) < len(asked) or sum(map(_is_sampled, asked)) > 1:
        raise ValueError("a recipe asks for each query once, and for one Poisson sample at most")
    return Plan(
        tuple(planned[ask.name] for ask in asked),
        facts.n_records,
        facts.n_features,
        facts.data_norm,
        recipe.options(),
    )


def plan_within(
    recipe: Recipe,
    facts: PublicFacts,
    delta: float,
    largest_kappa: int,
    *,
    exact: bool,
    shares: int = 1,
) -> tuple[Plan, float]:
    """A plan that costs at most the epsilon asked for, and the part of delta that its exact noise uses.

    The budget of ``facts`` has the delta that is left for the queries; ``delta`` is what is promised in
    all, ``largest_kappa`` that of all units that are reported. ``exact``: noise is drawn exactly, which takes
    a part of delta, in so many ``shares`` (`pairveil.privacy.grid.delta_slack`).
    """
    budget, turn = facts.budget, 0
    while True:
        plan = make_plan(recipe, facts._replace(budget=budget))
        _check_integers(plan)
        if not budget.is_private:
            return plan, 0.0
        slack = 0.0
        if exact:
            slack = slack_of_plan(plan.to_dict(), largest_kappa, shares)
            if slack > SLACK_SHARE * delta or not _is_drawable(plan):
                raise _refusal(recipe, facts, delta, largest_kappa)
        for query in plan.queries:
            _check_noise(query)
        cost = epsilon_of(
            plan.events(), kappa=budget.kappa, adjacency=budget.adjacency, delta=delta - slack
        )
        if cost <= facts.budget.epsilon:
            return plan, slack
        # The plan leaves a margin for rounding; where that is not enough, aim lower.
        turn += 1
        lower = min(facts.budget.epsilon / cost, 1 - 1e-12 * 2**turn)
        budget = budget._replace(epsilon=budget.epsilon * lower)


def _check_integers(plan: Plan) -> None:
    """Refuse, before anything is spent, what 64 bits cannot hold, whatever the clip bounds will be."""
    # A clip just below a power of two has the finest grid for its size; the compiled loops keep a tenth free.
    clip, n_pairs = math.nextafter(2.0, 0.0), math.ceil(1.2 * plan.n_records)
    for query in plan.queries:
        if not query.is_choice:  # its unit is coarser than any grid
            choose_grid(clip, query.n_entries, norm=query.mechanism.norm, n_pairs=n_pairs)


def _check_noise(query: Query) -> None:
    """Refuse what cannot be drawn exactly: sums on their grid, choices by their unit."""
    if not query.is_choice:
        check_noise(query.noise_multiplier, query.n_entries, query.mechanism.norm)
        return
    try:
        rate_below(EXPONENTIAL.eta(query.noise_multiplier), UNIT)
    except InputError:
        raise InputError(
            "so small an epsilon or delta, or so large a kappa, leaves a choice to chance alone: nothing "
            "could be learned from it"
        ) from None


def _is_drawable(plan: Plan) -> bool:
    """Whether all noise is coarser than its grid (a sum of more entries has a finer one, never coarser)."""
    finest = 2 * choose_grid(1.0, 1)
    return all(query.is_choice or query.noise_multiplier >= finest for query in plan.queries)


def _refusal(recipe: Recipe, facts: PublicFacts, delta: float, largest_kappa: int) -> InputError:
    """Whether epsilon or delta is to blame for noise that cannot be drawn exactly."""
    budget = facts.budget
    if budget.epsilon > HARDLY_PRIVATE:  # would less of it do?
        modest = facts._replace(budget=budget._replace(epsilon=HARDLY_PRIVATE))
        plan = make_plan(recipe, modest)
        if _is_drawable(plan) and slack_of_plan(plan.to_dict(), largest_kappa) <= (
            SLACK_SHARE * delta
        ):
            return too_large(budget.epsilon)
    return InputError("delta is too small for exact discrete noise here: choose a larger delta")


def too_large(epsilon: Any) -> InputError:
    """What to say of an epsilon for which no noise is drawn."""
    return InputError(
        f"epsilon={float_at_most(epsilon):g} is too large: {NOTHING_PROMISED}, and its noise is finer than "
        "exact noise can be; choose a smaller epsilon (float('inf') for no privacy)"
    )


def _is_sampled(ask: QuerySpec) -> bool:
    return ask.sampling == "poisson" and ask.sample_rate < 1


def _turn(ask: QuerySpec) -> int:
    """Sums, then choices, then a sample."""
    return 2 if _is_sampled(ask) else int(ask.choice)


def _query(ask: QuerySpec, facts: PublicFacts, others: list[Event], *, last: bool) -> Query:
    budget = facts.budget
    if ask.choice and not facts.choices:
        raise InputError(
            f"this learner asks for a noisy choice ('{ask.name}'), for which there is no proof where several "
            "parties learn together: choose a learner that asks for sums alone"
        )
    mechanism = EXPONENTIAL if ask.choice else facts.mechanism
    kind = (ask.steps, mechanism, ask.sampling, ask.sample_rate, facts.records)
    silent = Query(ask.name, ask.shape, 0.0, *kind)  # refuses what has no proof
    if not budget.is_private:
        return silent
    if ask.choice and last and budget.delta > 0:
        # The closed form is not tight: what the composed profile leaves is all theirs.
        noise = 1 / calibrate_choice(
            budget.epsilon,
            budget.delta,
            kappa=budget.kappa,
            adjacency=budget.adjacency,
            n_choices=ask.steps,
            other_events=others,
        )
    elif not silent.is_sampled:
        noise = mechanism.multiplier(budget, ask.share, silent.epochs)
    elif ask.sample_rate * ask.steps <= budget.delta:
        raise InputError(
            "so rarely would a record be sampled that delta alone pays for it, and next to no noise would be "
            "added: choose a larger sample rate, more steps or a smaller delta"
        )
    else:
        noise = calibrate_gaussian(
            budget.epsilon,
            budget.delta,
            kappa=budget.kappa,
            adjacency=budget.adjacency,
            sample_rate=ask.sample_rate,
            steps=ask.steps,
            other_events=others,
        )
    return Query(ask.name, ask.shape, noise, *kind)
