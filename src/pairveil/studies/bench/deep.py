"""A small convolution net on distorted glyphs, beside Euclid, the linear metric and pairs as examples.

Everybody is in two pairs (paths) at the level of a relationship, and in one pair (matching) or one group at
that of a person; the net that takes pairs as examples sees the paths.
Pair AUC is that of images that were not trained on.

Run it as ``pairveil bench deep``.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from pairveil.data.groups import GroupSet
from pairveil.deep import PrivateMetricTrainer
from pairveil.errors import DataWarning
from pairveil.evaluation.scores import pair_auc
from pairveil.graph.choosing import design_pairs
from pairveil.graph.grouping import design_groups
from pairveil.learners.contrastive.learner import DPPMetricLearner
from pairveil.studies.bench.glyphs import draw_glyphs
from pairveil.studies.bench.measuring import write_result

SIZES = (40_000,)
EPSILONS = (1.0, 4.0, 8.0)
STEPS, DELTA = 60, 1e-6
PAIRS_A_STEP, GROUPS_A_STEP, GROUP = 1024, 512, 8
N_TEST = 5_000


class Split(NamedTuple):
    """Images and digits, for training and for the test."""

    X: NDArray[np.float32]
    y: NDArray[np.int64]
    X_test: NDArray[np.float32]
    y_test: NDArray[np.int64]


def small_net(seed: int) -> nn.Module:
    """Two convolutions and a linear layer: 2,360 weights.

    Examples
    --------
    >>> sum(one.numel() for one in small_net(0).parameters())
    2360
    """
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, stride=2, padding=2), nn.Tanh(),
        nn.Conv2d(6, 12, 3, stride=2, padding=1), nn.Tanh(),
        nn.Flatten(), nn.Linear(192, 8),
    )  # fmt: skip


def _trainer(epsilon: float, seed: int, expected: int, n_records: int, **options: Any) -> Any:
    chosen = {"n_steps": STEPS, "delta": DELTA, "random_state": seed, "select": "all", **options}
    chosen |= {"sample_rate": min(1.0, expected / n_records), "max_grad_norm": 0.3}
    return PrivateMetricTrainer(small_net(seed), epsilon=epsilon, micro_batch=expected, **chosen)


def _paired(split: Split, how: str, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    pairs = design_pairs(len(split.X), how=how, random_state=seed)  # type: ignore[arg-type]
    return pairs, np.where(split.y[pairs[:, 0]] == split.y[pairs[:, 1]], 1, -1)


def net_on_pairs(split: Split, epsilon: float, unit: str, seed: int) -> NDArray[np.float64]:
    """The net, each pair clipped."""
    pairs, y = _paired(split, "matching" if unit == "person" else "paths", seed)
    made = _trainer(epsilon, seed, PAIRS_A_STEP, len(pairs), unit=unit)
    found: NDArray[np.float64] = made.fit(pairs, y, split.X).transform(split.X_test)
    return found


def net_on_groups(split: Split, epsilon: float, unit: str, seed: int) -> NDArray[np.float64]:
    """The net, each group clipped; the triplets inside it are its loss."""
    members = design_groups(len(split.X), GROUP, random_state=seed)
    groups = GroupSet.of_classes(split.X.reshape(len(split.X), -1), members, split.y)
    made = _trainer(epsilon, seed, GROUPS_A_STEP, len(members), unit=unit, loss="triplet")
    found: NDArray[np.float64] = made.fit(groups, None, split.X).transform(split.X_test)
    return found


def pairs_as_examples(split: Split, epsilon: float, unit: str, seed: int) -> NDArray[np.float64]:
    """What a user of Opacus does: each pair an example, and group privacy for a person's two pairs.

    (e, d)-DP for an example is (2e, d (1 + exp(e)))-DP for two of them.
    """
    pairs, y = _paired(split, "paths", seed)
    del unit
    made = _trainer(
        epsilon / 2, seed, PAIRS_A_STEP, len(pairs), unit="pair", delta=_half_delta(epsilon)
    )
    found: NDArray[np.float64] = made.fit(pairs, y, split.X).transform(split.X_test)
    return found


def _half_delta(epsilon: float) -> float:
    return DELTA / (1 + math.exp(epsilon / 2))


def linear(split: Split, epsilon: float, unit: str, seed: int) -> NDArray[np.float64]:
    """The linear private metric, on rows of length 1."""
    pairs, y = _paired(split, "matching" if unit == "person" else "paths", seed)
    learner = DPPMetricLearner(
        epsilon=epsilon, delta=DELTA, unit=unit, preprocessor=_rows(split.X), random_state=seed,  # type: ignore[arg-type]
        select="all",
    )  # fmt: skip
    return np.asarray(learner.fit(pairs, y).transform(_rows(split.X_test)))


def _rows(images: NDArray[np.float32]) -> NDArray[np.float64]:
    rows = images.reshape(len(images), -1).astype(np.float64)
    unit: NDArray[np.float64] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def euclid(split: Split, epsilon: float, unit: str, seed: int) -> NDArray[np.float64]:
    """Nothing learned."""
    del epsilon, unit, seed
    return _rows(split.X_test)


Method = Callable[[Split, float, str, int], NDArray[np.float64]]
Setting = tuple[str, Method, float | None, str | None]


def settings(epsilons: Sequence[float] = EPSILONS) -> list[Setting]:
    """All that is measured: what it is called, how it is made, epsilon and unit."""
    found: list[Setting] = [
        ("Euclid", euclid, None, None),
        ("linear metric", linear, None, None),
        ("net, pairs", net_on_pairs, None, None),
        ("net, triplets in groups", net_on_groups, None, None),
    ]
    by_unit: dict[str, dict[str, Method]] = {
        "relationship": {"linear metric": linear, "net, pairs": net_on_pairs},
        "person": {
            "linear metric": linear,
            "net, pairs as examples": pairs_as_examples,
            "net, triplets in groups": net_on_groups,
        },
    }
    for epsilon in epsilons:
        for unit, methods in by_unit.items():
            found += [(name, method, epsilon, unit) for name, method in methods.items()]
    return found


def run(
    sizes: Sequence[int] = SIZES,
    epsilons: Sequence[float] = EPSILONS,
    seeds: int = 1,
    out: Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Pair AUC of each method.

    Parameters
    ----------
    sizes : sequence of int
        Numbers of people.
    epsilons : sequence of float
    seeds : int
    out : path, optional
        Folder for ``deep_utility.json``.
    progress : callable, optional
    """
    rows = []
    for n in sizes:
        splits = [
            Split(*draw_glyphs(n, 2 * k), *draw_glyphs(N_TEST, 2 * k + 1)) for k in range(seeds)
        ]
        for name, method, epsilon, unit in settings(epsilons):
            began, aucs = time.perf_counter(), []
            for seed, split in enumerate(splits):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DataWarning)
                    Z = method(split, epsilon or math.inf, unit or "relationship", seed)
                aucs.append(pair_auc(None, Z, split.y_test))
            row = {
                "people": n, "method": name, "unit": unit, "epsilon": epsilon,
                "pair_auc": round(float(np.mean(aucs)), 4),
                "seconds": round((time.perf_counter() - began) / seeds, 1),
            }  # fmt: skip
            rows.append(row)
            if progress is not None:
                progress(f"{n} people: {name}, {unit}, epsilon {epsilon}: {row['pair_auc']}")
    result: dict[str, Any] = {"seeds": seeds, "rows": rows}
    if out is not None:
        write_result(result, out, "deep_utility")
    return result
