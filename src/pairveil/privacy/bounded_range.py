"""What a noisy choice costs: the profile of an eta-bounded-range mechanism, exactly and on a grid.

A mechanism has *bounded range* eta when, between neighbouring inputs, the largest and the smallest
log-ratio of its outputs' probabilities differ by at most eta (Durfee and Rogers 2019). All of them are
dominated by one pair of densities with the profile

    H(e^epsilon) = (1 - e^((epsilon - eta)/2))^2 / (1 - e^(-eta))   for |epsilon| <= eta

(docs/theory/choice.md, Theorem 2). In this module ``eta`` is the whole range: kappa, and 2 for replace, are
already in it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize_scalar

from pairveil.privacy.dominating import MAX_CELLS, MAX_LOSS, UnresolvableError, on_grid

if TYPE_CHECKING:
    from dp_accounting.pld.pld_pmf import DensePLDPmf


def choice_delta(eta: float, epsilon: float) -> float:
    """Return the smallest delta that holds at ``epsilon`` for every choice of range ``eta``.

    Examples
    --------
    >>> choice_delta(1.0, 0.0) == math.tanh(0.25)
    True
    >>> choice_delta(1.0, 1.0), round(choice_delta(1.0, -2.0), 6)
    (0.0, 0.864665)
    """
    if epsilon >= eta:
        return 0.0
    if epsilon <= -eta:
        return -math.expm1(epsilon)
    if epsilon == 0.0:
        return math.tanh(eta / 4.0)
    return math.expm1(0.5 * (epsilon - eta)) ** 2 / -math.expm1(-eta)


def choice_epsilon(eta: float, delta: float) -> float:
    """Return the epsilon >= 0 of one choice of range ``eta`` at ``delta``, rounded up.

    H(e^epsilon) = delta solved for epsilon: eta + 2 ln(1 - sqrt(delta (1 - e^(-eta)))).

    Examples
    --------
    >>> round(choice_epsilon(0.102, 1e-5), 4), choice_epsilon(0.1, 0.0)
    (0.1, 0.1)
    >>> choice_epsilon(0.1, 0.03)  # delta is above tanh(0.025): the best guess gains nothing more
    0.0
    """
    if delta == 0.0:
        return eta
    root = math.sqrt(delta * -math.expm1(-eta))
    if not root < 1.0:  # delta next to 1: the float of the root says nothing
        return eta
    # A relative error of 3 * 2^-53 in the root moves its logarithm by that over 1 - root.
    rounding = 1e-15 * (eta + 1.0 / (1.0 - root))
    return min(eta, max(0.0, eta + 2.0 * math.log1p(-root) + rounding))


def choice_rho(eta: float) -> float:
    """Return rho of zero-concentrated privacy: a choice of range ``eta`` is eta^2/8-zCDP.

    Examples
    --------
    >>> choice_rho(0.5)
    0.03125
    """
    return 0.125 * eta * eta


def epsilon_from_zcdp(rho: float, delta: float) -> float:
    """Return an epsilon of every rho-zCDP mechanism at ``delta`` > 0, or ``inf``.

    Canonne, Kamath and Steinke 2020, Proposition 12: for each alpha > 1 the value below is an epsilon
    that holds; the search for the best alpha cannot make it unsound.

    Examples
    --------
    >>> round(epsilon_from_zcdp(0.03125, 1e-5), 3)
    1.012
    """
    if not 1e-200 < rho < math.inf:  # next to the floats' ends nothing below is sure
        return math.inf

    def at(log_order: float) -> float:
        order = math.exp(log_order)  # alpha - 1
        raised = rho * (1.0 + order) - math.log(delta) / order
        lowered = math.log1p(1.0 / order) + math.log1p(order) / order
        return raised - lowered + 1e-15 * (raised + lowered)  # rounded up, also where it cancels

    centre = 0.5 * (
        math.log(-math.log(delta)) - math.log(rho)
    )  # near the best order, were it not lowered
    found = minimize_scalar(at, bounds=(centre - 5.0, centre + 5.0), method="bounded")
    return max(0.0, min(at(float(found.x)), at(centre)))


def choice_spread(eta: float) -> float:
    """Return the symmetric KL divergence of the dominating pair, 2 (eta coth(eta/2) - 2).

    Examples
    --------
    >>> round(choice_spread(1.0), 4), round(choice_spread(1e-6) * 1e12, 4)
    (0.3279, 0.3333)
    """
    if eta < 0.01:
        return eta * eta / 3.0  # the difference above cancels; off by less than 1e-5 of itself
    return 2.0 * (eta / math.tanh(0.5 * eta) - 2.0)


def discretise_choice(eta: float, interval: float) -> DensePLDPmf:
    """Return the dominating pair's loss on multiples of ``interval``, rounded pessimistically.

    In each cell [l, l + interval) both masses are kept and moved to its two ends ('connect the dots',
    Doroshenko et al. 2022). The masses of [a, b] under P and under Q have the ratio e^((a + b)/2), so a
    cell is split as one point at its middle would be: nothing cancels.

    Examples
    --------
    >>> pmf = discretise_choice(0.5, 0.1)
    >>> round(choice_delta(0.5, 0.25), 5), round(float(pmf.get_delta_for_epsilon(0.25)), 5)
    (0.03509, 0.03649)
    """
    if eta > MAX_LOSS or 2.0 * eta / interval > MAX_CELLS:
        raise UnresolvableError("the privacy losses do not fit a grid")
    eta = max(
        eta, 1e-100
    )  # halves of the smallest floats are 0; a larger range covers a smaller one
    # One cell more at each side: eta/interval may round to a whole number across it.
    first, last = math.floor(-eta / interval) - 1, math.ceil(eta / interval) + 1
    losses = interval * np.arange(first, last + 1, dtype=np.float64)
    left, right = np.clip(losses[:-1], -eta, eta), np.minimum(losses[1:], eta)
    width = np.maximum(right - left, 0.0)
    mass = np.exp(0.5 * (left - eta)) * np.expm1(0.5 * width) / -math.expm1(-eta)
    middle = np.clip(left + 0.5 * width - losses[:-1], 0.0, interval)  # beyond eta there is no mass
    share = np.clip(np.expm1(-middle) / math.expm1(-interval), 0.0, 1.0)
    probs = np.zeros(losses.size)
    probs[:-1] += mass * (1.0 - share)
    probs[1:] += mass * share
    return on_grid(interval, first, probs)
