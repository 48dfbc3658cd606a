"""Beside the field, in one run: Node_DP's published noise under two accountants, and jax_privacy's greedy
contribution bound beside our matching.

Node_DP (Huang et al., NeurIPS 2025) trains on the pairs of a graph whose degrees are capped at K: each step
on a Poisson sample of them, and on k_neg people sampled for each. Removing an entity moves the sum by one
clip if anything of it is in the batch (their adaptive clipping). Their Theorem 4.1 needs the chance of that,
1 - (1 - rate)^K (1 - batch k_neg / n), here at the mean batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from pairveil.privacy.calibrate import calibrate_gaussian
from pairveil.privacy.events import GaussianEvent
from pairveil.privacy.profile import epsilon_of
from reproduction.cells import Rows
from reproduction.verdicts import mean_of, paired, pick, pm

BATCH, NEGATIVES, DEGREE = 32, 4, 5  # run_reproduce.sh, and K of the paper


class Graph(NamedTuple):
    """A data set of Node_DP: sizes before capping, epochs, and what it publishes."""

    people: int
    pairs: int
    epochs: int
    noise: tuple[tuple[str, float, float], ...]  # (clipping, epsilon, noise multiplier)


PUBLISHED = {
    "sports": Graph(
        357_936, 2_024_691, 1,
        (("adaptive", 10.0, 0.47), ("adaptive", 4.0, 0.61), ("standard", 10.0, 0.835)),
    ),
    "cloth": Graph(960_613, 4_626_125, 1, (("adaptive", 10.0, 0.448), ("adaptive", 4.0, 0.583))),
    "mag_cn": Graph(101_952, 285_991, 2, (("adaptive", 10.0, 0.541), ("adaptive", 4.0, 0.71))),
    "mag_us": Graph(132_558, 702_482, 2, (("adaptive", 10.0, 0.532), ("adaptive", 4.0, 0.705))),
}  # fmt: skip


def node_dp(names: Sequence[str] = tuple(PUBLISHED)) -> Rows:
    """Each published multiplier: epsilon by their Rényi accounting, on one grid, and without negatives.

    The grid takes the same step. Standard clipping lets an entity move the sum by one clip for a pair that it
    is in, and by two for one that it is sampled for (somebody takes its place): a mixture of Gaussians.
    Without negatives the unit is kappa = K: the contents of all K pairs of a person, same rate and steps.
    """
    rows: Rows = []
    for name in names:
        graph = PUBLISHED[name]
        rate, delta = BATCH / graph.pairs, 1 / graph.pairs
        steps = graph.epochs * graph.pairs // BATCH
        sampled = BATCH * NEGATIVES / graph.people
        present = 1 - (1 - rate) ** DEGREE * (1 - sampled)
        for clipping, epsilon, noise in graph.noise:
            renyi, grid = None, None
            if clipping == "adaptive":
                accountant = RdpAccountant()
                gauss = dp_event.GaussianDpEvent(noise)
                accountant.compose(dp_event.PoissonSampledDpEvent(present, gauss), steps)
                renyi = float(accountant.get_epsilon(delta))
                once = GaussianEvent(noise_multiplier=noise, sample_rate=present, steps=steps)
                grid = epsilon_of([once], delta=delta, kappa=1, adjacency="zero-out")
            else:
                weights = np.zeros(DEGREE + 3)
                weights[: DEGREE + 1] = (1 - sampled) * binom.pmf(range(DEGREE + 1), DEGREE, rate)
                weights[2:] += sampled * binom.pmf(range(DEGREE + 1), DEGREE, rate)
                mixture = PLDAccountant()
                moves = np.arange(len(weights), dtype=float)
                step = dp_event.MixtureOfGaussiansDpEvent(noise, moves, weights / weights.sum())
                grid = float(mixture.compose(step, steps).get_epsilon(delta))
            pairs = GaussianEvent(noise_multiplier=noise, sample_rate=rate, steps=steps)
            rows.append(
                {
                    "data": name, "clipping": clipping, "claimed": epsilon, "noise": noise, "steps": steps,
                    "renyi": renyi, "grid": grid,
                    "pairs_only": epsilon_of([pairs], delta=delta, kappa=DEGREE, adjacency="zero-out"),
                    "noise_needed": calibrate_gaussian(
                        epsilon, delta, kappa=DEGREE, adjacency="zero-out", sample_rate=rate, steps=steps
                    ),
                }
            )  # fmt: skip
    return rows


def greedy_bound(pairs: ArrayLike, rounds: int = 8) -> NDArray[np.int64]:
    """Which pairs jax_privacy 2.2's ``greedy_contribution_bound`` keeps: nobody is in two of them.

    In each round everybody who is free votes for their first pair with a free partner; a pair with both
    votes is kept. A pair has two owners, so that its order by owners is the order of the file.

    Examples
    --------
    >>> greedy_bound([(0, 1), (1, 2), (2, 3)]).tolist()
    [0, 2]
    """
    ends = np.asarray(pairs, dtype=np.int64)
    free = np.ones(int(ends.max()) + 1, dtype=bool)
    kept: list[NDArray[np.int64]] = []
    for _ in range(rounds):
        live = np.flatnonzero(free[ends].all(axis=1))
        vote = np.full(len(free), len(ends), dtype=np.int64)
        np.minimum.at(vote, ends[live].ravel(), np.repeat(live, 2))
        agreed = live[(vote[ends[live]] == live[:, None]).all(axis=1)]
        free[ends[agreed].ravel()] = False
        kept.append(agreed)
    return np.sort(np.concatenate(kept))


def bounds_table(rows: Rows) -> Rows:
    """Pairs kept and pair AUC of both bounds, in their means over repeats."""
    table: Rows = []
    for name, graph in dict.fromkeys((row["data"], row["graph"]) for row in rows):
        mine = pick(rows, data=name, graph=graph)
        line = {"data": name, "graph": graph, "people": mine[0]["people_in"]}
        for method in ("greedy", "matching"):
            for column in ("kept", "pair_auc"):
                line[f"{method}_{column}"] = mean_of(mine, column, method=method)
        lead = paired(mine, "pair_auc", {"method": "matching"}, {"method": "greedy"})
        table.append({**line, "lead": pm(lead), "repeats": len(lead)})
    return table
