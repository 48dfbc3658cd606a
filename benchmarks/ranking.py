"""How near a private ranking comes to the non-private one: Kendall's tau with the truth, on drawn choices.

Beside `PrivatePreferenceRanker` stand the non-private fit and randomised response, where each worker answers
each question truthfully only by a coin that she throws herself: the other simple way to protect choices.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau

from benchmarks.measuring import write_result
from pairveil.array_types import FloatArray
from pairveil.learners.ranking import AskedDifferences, PrivatePreferenceRanker, fit_strengths

EPSILONS = (0.1, 0.3, 1.0, 3.0)
FIRST_SEED = 300
N_ITEMS, N_FEATURES = 20, 5


class Crowd(NamedTuple):
    """Choices drawn by the model, and the truth that they were drawn from."""

    choices: NDArray[np.int64]
    items: Any
    strengths: FloatArray


def draw_crowd(seed: int, n_workers: int, asked: int, *, features: bool) -> Crowd:
    """Workers who are each asked about random pairs of 20 items whose strengths have deviation 1.

    Examples
    --------
    >>> draw_crowd(0, 3, 4, features=False).choices.shape
    (12, 3)
    """
    rng = np.random.default_rng([seed, 17])
    table = rng.normal(size=(N_ITEMS, N_FEATURES))
    truth = table @ rng.normal(size=N_FEATURES) if features else rng.normal(size=N_ITEMS)
    truth = (truth - truth.mean()) / truth.std()
    left = rng.integers(N_ITEMS, size=n_workers * asked)
    right = (left + rng.integers(1, N_ITEMS, size=len(left))) % N_ITEMS
    first = rng.random(len(left)) < 1 / (1 + np.exp(truth[right] - truth[left]))
    chosen, other = np.where(first, left, right), np.where(first, right, left)
    choices = np.column_stack([np.arange(len(left)) // asked, chosen, other])
    return Crowd(choices, table if features else N_ITEMS, truth)


def read_swissmetro(path: Path) -> tuple[NDArray[np.int64], FloatArray]:
    """Choices of 1,192 travellers, 9 each, between train, Swissmetro and car, as choices between two.

    An item is one alternative of one question, with travel time, cost and headway (hundreds) and which of the
    three it is. A choice among three is two choices, each between the chosen one and another.

    ``path``: ``swissmetro.dat`` as biogeme ships it, separated by tabs.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    names, *rows = (line.split("\t") for line in lines if line.strip())
    table = dict(zip(names, np.array(rows, dtype=np.float64).T, strict=True))
    known = (table["CHOICE"] > 0) & (table["TRAIN_AV"] * table["SP"] > 0)
    data = {name: column[known] for name, column in table.items()}
    free = data["GA"] > 0  # an annual ticket makes trains free
    one, zero = np.ones(int(known.sum())), np.zeros(int(known.sum()))
    items = np.stack(
        [
            [data["TRAIN_TT"], data["TRAIN_CO"] * ~free, data["TRAIN_HE"], 100 * one, zero],
            [data["SM_TT"], data["SM_CO"] * ~free, data["SM_HE"], zero, zero],
            [data["CAR_TT"], data["CAR_CO"], zero, zero, 100 * one],
        ]
    ).transpose(2, 0, 1)
    there = np.column_stack([one, one, data["CAR_AV"]]) > 0
    chosen = data["CHOICE"].astype(np.int64) - 1
    first = 3 * np.arange(len(chosen))
    choices = [
        np.column_stack([data["ID"].astype(np.int64), first + chosen, first + other])[
            (chosen != other) & there[:, other]
        ]
        for other in range(3)
    ]
    return np.concatenate(choices), items.reshape(-1, 5) / 100


def swissmetro(path: Path, seeds: int = 20) -> list[dict[str, Any]]:
    """Tau between private and non-private utilities of all alternatives, and choices foretold."""
    choices, items = read_swissmetro(path)
    plain = PrivatePreferenceRanker(math.inf).fit(choices, items)
    sample = np.random.default_rng(0).choice(len(items), 2000, replace=False)
    rows = [_foretold("non-private", None, None, [plain], plain, choices, sample)]
    for epsilon in EPSILONS:
        for unit in ("worker", "choice"):
            fits = [
                PrivatePreferenceRanker(epsilon, unit=unit, random_state=FIRST_SEED + k).fit(
                    choices, items
                )  # type: ignore[arg-type]
                for k in range(seeds)
            ]
            rows.append(_foretold("private", epsilon, unit, fits, plain, choices, sample))
    return rows


def _foretold(
    method: str, epsilon: Any, unit: Any, fits: Any, plain: Any, choices: Any, sample: Any
) -> dict[str, Any]:
    taus = [kendalltau(f.strengths_[sample], plain.strengths_[sample])[0] for f in fits]
    right = [np.mean(f.strengths_[choices[:, 1]] > f.strengths_[choices[:, 2]]) for f in fits]
    spread = 1.96 * float(np.std(taus)) / math.sqrt(len(taus))
    return {
        "features": "Swissmetro", "method": method, "unit": unit, "epsilon": epsilon,
        "kendall_tau": float(np.mean(taus)), "interval": spread, "foretold": float(np.mean(right)),
    }  # fmt: skip


def randomised_response(crowd: Crowd, epsilon: float, asked: int, seed: int) -> FloatArray:
    """Strengths from answers that are turned round by a coin, epsilon shared by a worker's questions."""
    rng = np.random.default_rng([seed, 18])
    kept = 1 / (1 + math.exp(-epsilon / asked)) if asked else 1.0
    gain = 2 * kept - 1
    _, chosen, other = crowd.choices.T
    table = np.eye(N_ITEMS) if isinstance(crowd.items, int) else crowd.items
    signs = np.where(rng.random(len(chosen)) < kept, 1.0, -1.0) / gain
    apart = table[chosen] - table[other]
    answer = signs @ apart
    weight = np.ones(len(apart))
    # An answer by coin has variance 1 / gain^2 instead of at most 1.
    b, _ = fit_strengths(AskedDifferences(apart, weight, weight / gain**2), answer, 0.0, 2.0)
    return np.asarray(table @ b)


def run(
    seeds: int = 20,
    n_workers: int = 500,
    asked: int = 20,
    out: Path | None = None,
    real: Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Mean tau and its 95 % interval for each method and epsilon, with and without features.

    Parameters
    ----------
    seeds : int
        Repeats; on none of these seeds a default was chosen.
    real : path, optional
        ``swissmetro.dat``, to be measured too.
    out : path, optional
        Folder for ``ranking.json``.
    """
    rows = []
    for features in (False, True):
        for method, epsilon, unit in _settings():
            taus = [
                _tau(method, epsilon, unit, FIRST_SEED + k, n_workers, asked, features)
                for k in range(seeds)
            ]
            spread = 1.96 * float(np.std(taus, ddof=1)) / math.sqrt(seeds) if seeds > 1 else 0.0
            row = {
                "features": features, "method": method, "unit": unit, "epsilon": epsilon,
                "kendall_tau": float(np.mean(taus)), "interval": spread,
            }  # fmt: skip
            rows.append(row)
            if progress is not None:
                progress(f"{method}, epsilon {epsilon}")
    if real is not None:
        rows += swissmetro(real, seeds)
    result = {"seeds": seeds, "workers": n_workers, "choices_each": asked, "rows": rows}
    write_result(result, out, "ranking")
    return result


def _settings() -> list[tuple[str, float | None, str | None]]:
    plain: list[tuple[str, float | None, str | None]] = [("non-private", None, None)]
    private = [("private", e, unit) for e in EPSILONS for unit in ("worker", "choice")]
    by_coin = [("randomised response", e, "worker") for e in EPSILONS]
    return [*plain, *private, *by_coin]


def _tau(
    method: str,
    epsilon: float | None,
    unit: Any,
    seed: int,
    n_workers: int,
    asked: int,
    features: bool,
) -> float:
    crowd = draw_crowd(seed, n_workers, asked, features=features)
    if method == "randomised response":
        found = randomised_response(crowd, float(epsilon or 0), asked, seed)
    else:
        ranker = PrivatePreferenceRanker(
            math.inf if epsilon is None else epsilon, unit=unit or "worker", random_state=seed
        )
        found = ranker.fit(crowd.choices, crowd.items).strengths_
    return float(kendalltau(found, crowd.strengths)[0])
