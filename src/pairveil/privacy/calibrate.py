"""How much noise a budget asks for, where no closed form says it: found by asking the accountant.

Most queries have a closed form, ``multiplier`` of their mechanism, and need none of this; a plan
(`pairveil.engine.plan`) comes here for Poisson samples and for choices that are asked last.

Every result is checked by the accountant itself: ``epsilon_of`` of the returned noise is at most
the epsilon asked for, by construction of the search (it returns the accepted end of a bracket).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from numbers import Real

from pairveil.errors import BudgetError, InputError
from pairveil.privacy.compose import check_adjacency, check_delta, mu_from_epsilon
from pairveil.privacy.events import (
    ChoiceEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    check_events,
    cost_of,
)
from pairveil.privacy.profile import epsilon_of
from pairveil.privacy.units import Adjacency
from pairveil.records.kinds import Cost

_WASTE = 1e-3  # stop when less than this share of epsilon is left unused
_LARGEST = 1e15  # no noise beyond this is meant seriously


def _check_epsilon(epsilon: object) -> float:
    if isinstance(epsilon, bool) or not isinstance(epsilon, Real) or not float(epsilon) > 0.0:
        raise InputError("epsilon must be a number greater than 0 (inf: no privacy, no noise)")
    return float(epsilon)


def calibrate_gaussian(
    epsilon: float,
    delta: float,
    *,
    kappa: int | Cost,
    adjacency: Adjacency = "zero-out",
    sample_rate: float = 1.0,
    steps: int = 1,
    other_events: Iterable[Event] = (),
) -> float:
    """Return the noise multiplier that makes ``steps`` Gaussian sums fit (epsilon, delta).

    Parameters
    ----------
    epsilon, delta : float
        The budget for these steps together with ``other_events``. ``epsilon=inf`` returns 0.0.
    kappa : int or Cost
        How many pairs' contents may change together; a cost where records are not pairs.
    adjacency : {"zero-out", "replace"}
    sample_rate : float, default 1.0
        Poisson sampling rate of each pair in each step.
    steps : int, default 1
    other_events : iterable of events, optional
        What else is released under the same budget (at the same kappa).

    Returns
    -------
    float
        Noise standard deviation on the sum, in units of one pair's clip bound.

    Raises
    ------
    BudgetError
        When the other events alone leave nothing.

    Examples
    --------
    >>> s = calibrate_gaussian(1.0, 1e-5, kappa=1, steps=100)
    >>> round(s, 2)
    37.31
    >>> epsilon_of([GaussianEvent(s, steps=100)], kappa=1, delta=1e-5) <= 1.0
    True
    """

    if check_delta(delta) == 0.0 and _check_epsilon(epsilon) < math.inf:
        raise InputError("Gaussian noise needs delta > 0; use Laplace noise for pure epsilon")

    def enough(reach: float, epsilon: float) -> float:
        # Without sampling mu = kappa sqrt(steps) / s (replace: twice that): enough noise in any case.
        mu = mu_from_epsilon(epsilon, check_delta(delta))
        return math.inf if mu == 0.0 else reach * math.sqrt(steps) / mu

    return _calibrate(
        lambda noise: GaussianEvent(noise, sample_rate, steps), enough,
        epsilon, delta, kappa, adjacency, other_events, exact=sample_rate == 1.0,
    )  # fmt: skip


def calibrate_laplace(
    epsilon: float,
    *,
    kappa: int | Cost,
    adjacency: Adjacency = "zero-out",
    steps: int = 1,
    other_events: Iterable[Event] = (),
    delta: float = 0.0,
) -> float:
    """Return the scale multiplier that makes ``steps`` Laplace sums fit (epsilon, delta).

    Parameters are those of `calibrate_gaussian`; with ``delta=0`` the guarantee is pure.

    Examples
    --------
    >>> calibrate_laplace(1.0, kappa=2, steps=10)
    20.0...
    """
    return _calibrate(
        lambda noise: LaplaceEvent(noise, steps), lambda reach, epsilon: reach * steps / epsilon,
        epsilon, delta, kappa, adjacency, other_events, exact=delta == 0.0,
    )  # fmt: skip


def calibrate_choice(
    epsilon: float,
    delta: float,
    *,
    kappa: int | Cost,
    adjacency: Adjacency = "zero-out",
    n_choices: int = 1,
    other_events: Iterable[Event] = (),
) -> float:
    """Return the largest eta found with which ``n_choices`` noisy choices fit (epsilon, delta).

    Parameters
    ----------
    epsilon, delta, kappa, adjacency, other_events
        As in `calibrate_gaussian`. ``epsilon=inf`` returns ``inf``; ``delta=0`` is a pure guarantee.
    n_choices : int, default 1
        Choices with one eta each, for instance k columns chosen one after the other.

    Returns
    -------
    float
        The eta of ``ChoiceEvent(eta, n_choices)``.

    Examples
    --------
    >>> round(calibrate_choice(0.1, 1e-5, kappa=1), 3), round(calibrate_choice(0.03, 1e-5, kappa=1), 3)
    (0.102, 0.031)
    >>> calibrate_choice(0.1, 0.0, kappa=2, adjacency="replace")
    0.025
    """
    # A choice is eta-DP: with basic composition 1/eta = reach n_choices / epsilon is enough in any case.
    noise = _calibrate(
        lambda noise: ChoiceEvent(1.0 / noise, n_choices),
        lambda reach, epsilon: reach * n_choices / epsilon,
        epsilon, delta, kappa, adjacency, other_events, exact=delta == 0.0,
    )  # fmt: skip
    return 1.0 / noise if noise else math.inf


def _calibrate(
    made: Callable[[float], Event],
    enough: Callable[[float, float], float],
    epsilon: float,
    delta: float,
    kappa: int | Cost,
    adjacency: Adjacency,
    other_events: Iterable[Event],
    *,
    exact: bool,
) -> float:
    """The least noise found with which the event fits beside the others; 0 where epsilon is inf."""
    epsilon, delta = _check_epsilon(epsilon), check_delta(delta)
    cost, others = cost_of(kappa), check_events(other_events)
    adjacency = check_adjacency(adjacency)
    made(1.0)
    if math.isinf(epsilon):
        return 0.0

    def spent(noise: float) -> float:
        return epsilon_of((*others, made(noise)), kappa=cost, adjacency=adjacency, delta=delta)

    find = _nudge if exact and not others else _search
    noise = enough(cost.sensitivity(adjacency), epsilon)
    if math.isinf(noise):
        raise InputError(
            "epsilon and delta are too small, or kappa too large: no finite noise is enough"
        )
    return find(spent, epsilon, noise)


def _nudge(cost: Callable[[float], float], epsilon: float, noise: float) -> float:
    """Return the closed form's noise, raised by rounding errors only until it is accepted."""
    step = 1e-15
    while cost(noise) > epsilon:
        noise *= 1.0 + step
        step *= 4.0
    return noise


def _search(cost: Callable[[float], float], epsilon: float, noise: float) -> float:
    """Return accepted noise that wastes at most a thousandth of epsilon, by a bracket in logs."""
    high, cost_high = noise, cost(noise)
    while cost_high > epsilon:
        if high > _LARGEST:
            raise BudgetError(
                "the other releases use up the whole budget: lower their cost or raise epsilon"
            )
        high *= 4.0
        cost_high = cost(high)
    low = high
    cost_low = cost_high
    while cost_low <= epsilon:
        if epsilon - cost_low <= _WASTE * epsilon:
            return low
        high, cost_high = low, cost_low
        low /= 2.0
        cost_low = cost(low)
    for turn in range(60):
        if epsilon - cost_high <= _WASTE * epsilon or high - low <= 1e-9 * high:
            break
        middle = _aim(low, cost_low, high, cost_high, epsilon, bisect=turn % 4 == 3)
        cost_middle = cost(middle)
        if cost_middle <= epsilon:
            high, cost_high = middle, cost_middle
        else:
            low, cost_low = middle, cost_middle
    return high


def _aim(
    low: float, cost_low: float, high: float, cost_high: float, epsilon: float, *, bisect: bool
) -> float:
    """Return a point inside the bracket: a secant in logs aimed a little below epsilon, or half."""
    if bisect or not (math.isfinite(cost_low) and cost_high > 0.0 and cost_low > cost_high):
        return math.sqrt(low * high)
    target = math.log(epsilon * (1.0 - 0.5 * _WASTE))
    share = (math.log(cost_low) - target) / (math.log(cost_low) - math.log(cost_high))
    share = min(max(share, 0.01), 0.99)
    return math.exp(math.log(low) + share * (math.log(high) - math.log(low)))
