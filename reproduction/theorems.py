"""The paper's theorem-like sentences, checked by computation: searches and constructed cases.

Each check returns a Finding; the numbers in it are computed here, never typed. 'Holds' for a bound means
that a search found no violation (and how tight it came); 'does not hold' always comes with a case.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from pairveil.array_types import FloatArray
from reproduction.baselines import Duchi, Warner
from reproduction.mechanisms import JointStaircase
from reproduction.published import ClassicGaussian, Laplace
from reproduction.verdicts import Finding


def row_gradients(
    W: FloatArray, r: int, dx: FloatArray, y: FloatArray, margin: float, h: float, norm: int = 1
) -> FloatArray:
    """Clipped gradient of row r for each pair: the paper's Eq. 6 and line 7, written out."""
    distance = np.linalg.norm(dx @ W.T, axis=1)
    push = np.where(
        (distance > 0) & (distance < margin), 1 - margin / np.maximum(distance, 1e-300), 0
    )
    gradients = ((1 - y + y * push) * (dx @ W[r]))[:, None] * dx
    size = np.linalg.norm(gradients, ord=norm, axis=1, keepdims=True)
    clipped: FloatArray = gradients / np.maximum(1.0, size / h)
    return clipped


def _differences(rng: np.random.Generator, n: int, d: int, norm: int = 1) -> FloatArray:
    """Differences of people of norm 1, some at the extremes of the ball."""
    people = rng.laplace(size=(2, n, d)) * (rng.random((2, n, d)) < rng.choice([0.3, 1.0]))
    people /= np.maximum(1e-12, np.linalg.norm(people, ord=norm, axis=2, keepdims=True))
    difference: FloatArray = people[0] - people[1]
    return difference


def _neighbour_ratio(bound: Literal["theorem 1", "theorem 2"]) -> float:
    """Largest ||g_r(B) - g_r(B')|| / bound over random neighbouring batches."""
    rng, worst = np.random.default_rng(0), 0.0
    for _ in range(3000):
        n, d, rows = 6, int(rng.integers(1, 5)), int(rng.integers(1, 4))
        group, h, margin = int(rng.integers(1, 4)), 10 ** rng.uniform(-1, 0.5), rng.uniform(0.2, 3)
        W = rng.normal(scale=10 ** rng.uniform(-1, 1), size=(rows, d))
        dx, y = _differences(rng, n, d), rng.integers(0, 2, n).astype(np.float64)
        dx2, y2 = dx.copy(), y.copy()
        dx2[:group], y2[:group] = _differences(rng, group, d), rng.integers(0, 2, group)
        if rng.random() < 0.5:  # the same pair with the other label often moves most
            dx2[:group], y2[:group] = dx[:group], 1 - y[:group]
        g, g2 = (row_gradients(W, 0, a, b, margin, h) for a, b in ((dx, y), (dx2, y2)))
        sensitivity = 2 * h
        if bound == "theorem 2":
            far = min(h, max(4 * np.abs(W[0]).sum(), 2 * margin * math.sqrt(rows)))
            sensitivity = float(np.abs(g).sum(axis=1).max()) + far
        moved = np.abs(g.mean(axis=0) - g2.mean(axis=0)).sum()
        worst = max(worst, float(moved / (group * sensitivity / n)))
    return worst


def _neighbours(bound: Literal["theorem 1", "theorem 2"], said: str, but: str) -> Finding:
    worst = _neighbour_ratio(bound)
    return Finding(
        f"3,000 neighbouring batches{said} moved a row by at most {worst:.3f} of {but}",
        worst <= 1 + 1e-9,
    )


def theorem_1() -> Finding:
    """Sensitivity of one row's batch gradient."""
    but = "it: the sensitivity of one row, not of W"
    return _neighbours("theorem 1", " (kappa 1 to 3)", but)


def theorem_2() -> Finding:
    """The inequality of Theorem 2, batch by batch."""
    but = "it: the sensitivity at this batch, not over all"
    return _neighbours("theorem 2", "", but)


def relabelled(rows: int, epsilon: float) -> float:
    """Log-density ratio that relabelling one pair causes when each row gets its own noise."""
    h, margin, W = 0.5, 100.0, np.full((rows, 1), 10.0)
    dx, mechanism, total = np.ones((1, 1)), Laplace(epsilon), 0.0
    for r in range(rows):
        same = row_gradients(W, r, dx, np.zeros(1), margin, h)[0]
        apart = row_gradients(W, r, dx, np.ones(1), margin, h)[0]
        far = np.array([5.0])
        total += mechanism.log_density(far, same, 2 * h) - mechanism.log_density(far, apart, 2 * h)
    return abs(total)


def noise_of_theorem_1() -> Finding:
    """Is row-by-row noise of scale 2 kappa h/(|B| eps) epsilon-private?"""
    costs = {rows: relabelled(rows, 1.0) for rows in (1, 2, 4, 16)}
    text = ", ".join(f"d' = {rows}: {cost:.2f}" for rows, cost in costs.items())
    return Finding(
        f"relabelling one pair changes the log density of one step, claimed at most 1, by {text}: each row "
        "is a further answer about the same batch",
        max(costs.values()) <= 1 + 1e-9,
    )


def _dissimilar_ratio(seed: int, norm: int, bound: Callable[[float, int], float]) -> float:
    """Largest row gradient of a dissimilar pair over ``bound(margin, rows)``, over random pairs and W."""
    rng, worst = np.random.default_rng(seed), 0.0
    for _ in range(3000):
        rows, d, margin = int(rng.integers(1, 5)), int(rng.integers(1, 5)), rng.uniform(0.1, 3)
        W = rng.normal(scale=10 ** rng.uniform(-2, 2), size=(rows, d))
        dx = _differences(rng, 5, d, norm)
        g = row_gradients(W, 0, dx, np.ones(5), margin, math.inf, norm)
        worst = max(worst, float(np.linalg.norm(g, norm, axis=1).max() / bound(margin, rows)))
    return worst


def lemma_1() -> Finding:
    """'Infinite if and only if y = 0 and ||W_r|| is unbounded'."""
    worst = _dissimilar_ratio(1, norm=1, bound=lambda margin, rows: 2 * margin * math.sqrt(rows))
    row, gap = np.array([[1e12, -1e12]]), np.array([[0.5, 0.5]])
    stays = float(np.abs(row_gradients(row, 0, gap, np.zeros(1), 1.0, math.inf)).sum())
    return Finding(
        f"dissimilar gradients reached {worst:.3f} of the bound 2m sqrt(d'), never more. The converse, "
        "which nothing "
        f"uses, fails: a similar pair orthogonal to W_r has gradient {stays:g} at ||W_r|| = 2e12",
        worst <= 1 + 1e-9,
    )


def noise_of_theorem_2() -> Finding:
    """Is noise scaled by the batch's own largest gradient private?"""
    h, margin, epsilon, n = 0.5, 0.1, 1.0, 50
    W, dx, y = np.array([[10.0]]), np.ones((n, 1)), np.ones(n)
    y2 = np.concatenate([[0.0], y[1:]])
    far = min(h, max(4 * float(np.abs(W).sum()), 2 * margin))
    sides = []
    for labels in (y, y2):
        g = row_gradients(W, 0, dx, labels, margin, h)
        sides.append((g.mean(axis=0), (float(np.abs(g).max()) + far) / n))
    mechanism, costs = Laplace(epsilon), []
    for widths in (1, 10, 100):
        output = np.array([widths * sides[1][1]])
        one, other = (
            mechanism.log_density(output, value, sensitivity) for value, sensitivity in sides
        )
        costs.append(abs(one - other))
    return Finding(
        f"one of {n} dissimilar pairs beyond the margin relabelled: the noise scale changes "
        f"{sides[1][1] / sides[0][1]:.1f}-fold; 1, 10, 100 scales away the log density changes by "
        f"{', '.join(f'{c:.1f}' for c in costs)} (claimed: 1): no finite epsilon",
        max(costs) <= epsilon + 1e-9,
    )


def corollary_1() -> Finding:
    """The l2 bound 2m of Appendix C."""
    worst = _dissimilar_ratio(2, norm=2, bound=lambda margin, _: 2 * margin)
    return Finding(
        f"15,000 dissimilar pairs reached {worst:.3f} of 2m, none more",
        worst <= 1 + 1e-9,
    )


def parallel_composition() -> Finding:
    """An epoch of disjoint batches costs what one batch costs."""
    epsilon, group = 1.0, 4
    costs = {}
    for mechanism in (Laplace(epsilon), JointStaircase(epsilon)):
        # kappa pairs in kappa batches: each moves its batch by 1/kappa of the sensitivity
        grid = np.linspace(-3, 3, 2401)
        each = max(
            abs(
                mechanism.log_density(np.array([x]), np.zeros(1), 1.0)
                - mechanism.log_density(np.array([x]), np.array([1 / group]), 1.0)
            )
            for x in grid
        )
        costs[mechanism.name] = group * each
    return Finding(
        f"{group} pairs in {group} batches cost {costs['Lap']:.2f} epsilon in sum (Laplace, one row); with "
        f"a staircase, which Fig. 9 also uses, {costs['SCDF-joint']:.2f}",
        costs["Lap"] <= epsilon + 1e-9,
    )


def step_sizes() -> Finding:
    """sum eta = infinity and sum eta^2 < infinity."""
    steps = np.arange(1, 10_001)
    literal = np.exp(-0.5 * np.cumsum(np.log(steps)))
    usual_square = 1 / steps
    first, left = float(literal.sum()), float(literal[5_000:].sum())
    grows = float(usual_square[5_000:].sum())  # ln 2 for every doubling: no limit
    return Finding(
        f"as written eta is 1/sqrt(tau!) and all steps sum to {first:.2f}; as 1/sqrt(tau) the squares of "
        f"steps 5,001 to 10,000 still add {grows:.2f}: each reading breaks one condition",
        left > 1e-3 or grows < 1e-3,
    )


def laplace_variance() -> Finding:
    """The variance of Lap in the mechanism comparison, 4h^2/(|B|^2 eps^2), and Duchi's '10,000 times'
    that.
    """
    h, n, epsilon = 0.5, 50, 1.0
    said = 4 * h**2 / (n * epsilon) ** 2
    true = {k: Laplace(epsilon).variance(1, 2 * k * h / n) for k in (1, 13)}
    duchi = Duchi(epsilon).variance(1, 2.0)
    return Finding(
        f"noise of scale 2 kappa h/(|B| eps) has {true[1] / said:.0f} times that at kappa 1, "
        f"{true[13] / said:.0f} at 13. The slip goes into the ratio too: {duchi / said:,.0f} by the "
        f"paper's two formulas, {duchi / true[1]:,.0f} and {duchi / true[13]:,.0f} by the true one",
        math.isclose(said, true[1]),
    )


def margin_from_pairs() -> Finding:
    """Is a margin free that is the mean distance of the dissimilar pairs?

    One row, one column, every pair dissimilar and a little shorter than the mean, but for a few long ones.
    One of these becomes null: the margin falls, and with it the gradient of every short pair in every other
    batch.
    """
    h, batch, n = 0.5, 50, 10_000
    dx = np.where(np.arange(n) < n // 100, 2.0, 1.9)
    after = np.concatenate([[0.0], dx[1:]])
    short, one = np.array([[1.9]]), np.ones(1)
    g, moved = (
        float(row_gradients(np.eye(1), 0, short, one, m, h)[0, 0])
        for m in (dx.mean(), after.mean())
    )
    others = (
        (n - n // 100) * abs(g - moved) / batch / (2 * h / batch)
    )  # all batches, in noise scales
    return Finding(
        f"of {n:,} dissimilar pairs one becomes null: the mean distance moves every other batch, and an "
        f"epoch's log density changes by {others:.2f} more than the 1 that is claimed",
        others <= 0,
    )


def noise_follows_sensitivity() -> Finding:
    """Var of the noisy gradient is proportional to (sensitivity/epsilon')^2."""
    shape = [
        Laplace(e).variance(1, sensitivity) / (sensitivity / e) ** 2
        for e in (0.1, 1.0, 4.0)
        for sensitivity in (0.01, 0.5)
    ]
    return Finding(
        f"variance/(sensitivity/epsilon)^2 is {min(shape):.3f} throughout",
        math.isclose(min(shape), max(shape)),
    )


def classic_gaussian() -> Finding:
    """sigma = sqrt(2 ln(1.25/delta)) sensitivity/epsilon gives (epsilon, delta), for the epsilons of
    the text.
    """
    delta, named = 1e-5, (1.0, 2.0, 4.0)
    broken = [
        e
        for e in np.geomspace(0.1, 64, 400)
        if ClassicGaussian(float(e), delta).epsilon_sound(1) > e
    ]
    return Finding(
        f"one answer, delta {delta:g}: true up to {broken[0]:.1f}, beyond every epsilon of the text; the "
        "rows cost sqrt(d') on top",
        broken[0] > max(named),
    )


def input_correlation() -> Finding:
    """'No special consideration is needed for the pair correlations' under InputPer."""
    answer, group = Warner(1.0), 4
    together = group * (answer.log_mass(1, 1) - answer.log_mass(1, -1))
    return Finding(
        f"{group} labels that follow from one relationship shift an attacker's log odds by {together:.2f} "
        f"at a claimed {answer.epsilon:g}",
        together <= answer.epsilon + 1e-9,
    )
