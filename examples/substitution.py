"""Sampled Gaussian sums when records are substituted: two mixtures of Gaussians, exact and composed.

dp_accounting has one mixture of Gaussians against a single Gaussian, which is adding or removing records.
google/differential-privacy #274 asks for two mixtures, which substitution needs: pairveil's "replace".

Each of k records enters a sum with probability q, as a vector of norm at most 1; the noise is N(0, s^2 I).
All k are substituted. Theorem: with B = Binomial(k, q), no two data sets are told apart better than

    P = sum_i B(i) N(i, s^2)    from    Q = sum_i B(i) N(-i, s^2).

Proof. Give away which other records are sampled: that only helps the attacker. Where i of the k are sampled,
the sum moves by at most i from what the others make it, in either world. Take an event S of probability
Phi(-t) under the noise alone. No shift of length r raises that beyond Phi(r/s - t) or lowers it below
Phi(-r/s - t) (Neyman-Pearson), so P(S) - a Q(S) is at most what the half-line beyond t s has under the pair
above, for every a. Opposite vectors attain it: it is tight. Dominating pairs compose (Zhu, Dong, Wang 2022).

Run it: python examples/substitution.py
"""

import numpy as np
from scipy.stats import binom, norm

from pairveil.privacy.compose import discretise, sampled_gaussian_pairs
from pairveil.privacy.events import GaussianEvent
from pairveil.privacy.profile import delta_of, epsilon_of

k, q, s = 5, 0.3, 1.0
counts = np.arange(k + 1)
weights = binom.pmf(counts, k, q)


def told_apart(left, right):
    """Total variation of two mixtures with the same weights, by integration."""
    x = np.linspace(-15, 25, 400_001)
    p, r = ((weights[:, None] * norm.pdf(x, means[:, None], s)).sum(0) for means in (left, right))
    return np.abs(p - r).sum() * (x[1] - x[0]) / 2


step = [GaussianEvent(noise_multiplier=s, sample_rate=q, steps=1)]
print(f"one step, k = {k}, q = {q}, s = {s}: total variation")
print(f"  two data sets with opposite vectors  {told_apart(counts, -counts):.4f}")
print(
    f"  pairveil, replace                    {delta_of(step, epsilon=0.0, kappa=k, adjacency='replace'):.4f}"
)
print(f"  one mixture of means 2i, not a bound {told_apart(2 * counts, 0 * counts):.4f}")

# dp_accounting composes the pair as it stands: discretise returns its PLD, rounded to the safe side.
(pair,) = sampled_gaussian_pairs(1, 0.01, 1.0, replace=True, lost=0.0)
composed = discretise(pair, 1e-4, 1e-12).self_compose(1000)
plan = [GaussianEvent(noise_multiplier=1.0, sample_rate=0.01, steps=1000)]
ours, added = (
    epsilon_of(plan, delta=1e-5, kappa=1, adjacency=kind) for kind in ("replace", "zero-out")
)
print("1,000 steps, k = 1, q = 0.01, s = 1, delta 1e-5: epsilon")
print(f"  pairveil                             {ours:.3f}")
print(f"  the same pair, dp_accounting's PLD   {composed.get_epsilon_for_delta(1e-5):.3f}")
print(f"  adding or removing instead           {added:.3f}")
