"""Tables with many classes or few people, drawn or rendered here, and what `fit_classes` keeps on them.

They stand in for kinds of data that cannot be shipped: small images, speakers, leaves, wide tables of few
people, a rare class. The protocol is that of docs/theory/learner.md; the reference is the better of LDA and
NCA. Prints one Markdown row a table::

    python -m tools.many_classes --first-seed 340 --seeds 10
    python -m tools.many_classes --first-seed 340 --seeds 10 --adjacency replace
    python -m tools.many_classes --shuffled   # classes that say nothing: how far the AUC moves
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
from benchmarks.utility import DELTA, _supervised
from reproduction.data import Benchmark, load
from reproduction.protocol import Split, make_split
from sklearn.datasets import load_iris, load_wine
from threadpoolctl import threadpool_limits

from pairveil.evaluation.scores import pair_auc
from pairveil.learners.contrastive.learner import DPPMetricLearner

SIDE = 14
EPSILONS = (float("inf"), 8.0, 4.0, 1.0, 0.5, 0.1)
N_PAIRS = 50_000
Table = tuple[Any, Any]


def glyph_images(n: int = 5000) -> Table:
    """Digits in matplotlib's fonts, sheared and bent like handwriting, 14 x 14 pixels."""
    import torch
    from benchmarks.glyphs import FONTS, _plates
    from torch.nn import functional as F

    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    classes, fonts = rng.integers(10, size=n), rng.integers(len(FONTS), size=n)
    turn, shear = rng.normal(0, 0.08, n), rng.normal(0, 0.12, n)
    wide, high = 1 / rng.uniform(0.7, 0.95, n), 1 / rng.uniform(0.85, 0.95, n)
    cos, sin, move = np.cos(turn), np.sin(turn), rng.uniform(-0.04, 0.04, (2, n))
    maps = np.array([[wide * cos, shear - sin, move[0]], [sin, high * cos, move[1]]])
    maps = np.moveaxis(maps, 2, 0).astype(np.float32)
    size = 2 * SIDE
    grid = F.affine_grid(torch.from_numpy(maps), [n, 1, size, size], align_corners=False)
    bent = torch.from_numpy(rng.normal(0, 0.07, (n, 2, 4, 4)).astype(np.float32))
    bent = F.interpolate(bent, size=(size, size), mode="bicubic", align_corners=True)
    grid = grid + bent.permute(0, 2, 3, 1)
    plates = torch.from_numpy(_plates())[classes, fonts]
    drawn = F.grid_sample(plates, grid, align_corners=False)[:, 0].numpy()
    drawn = drawn.reshape(n, SIDE, 2, SIDE, 2).mean((2, 4)).reshape(n, SIDE * SIDE)
    return np.clip(drawn * rng.uniform(0.8, 1, (n, 1)), 0, 1), classes


def drawn_table(
    seed: int,
    n: int,
    d: int,
    k: int,
    *,
    told_in: int,
    apart: float,
    factors: int,
    decay: float,
    own: float = 0.5,
    skewed: bool = True,
    parts: tuple[float, ...] | None = None,
    scales: float = 0.5,
) -> Table:
    """Class means in ``told_in`` directions, common factors, noise and a scale of each column."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % k) if parts is None else rng.choice(k, size=n, p=parts)
    common = rng.normal(size=(factors, d)) * (np.arange(1, factors + 1) ** -decay)[:, None]
    means = rng.normal(size=(k, told_in)) @ rng.normal(size=(told_in, d))
    means = means / np.sqrt(told_in) * apart
    people = rng.normal(size=(n, factors))
    if skewed:
        people = people * np.exp(0.4 * rng.normal(size=(n, 1)))
    X = means[y] + people @ common + own * rng.normal(size=(n, d))
    X = X * np.exp(scales * rng.normal(size=d))
    if skewed:
        some = rng.random(d) < 0.33
        X[:, some] = np.exp(0.7 * X[:, some] / X[:, some].std(axis=0))
    return X, y


_LEAVES = partial(
    drawn_table, 12, d=64, k=32, told_in=16, apart=0.8, factors=12, own=0.35, decay=0.7
)
TABLES: dict[str, Callable[[], Table]] = {
    "images": cache(glyph_images),
    "speakers": partial(
        drawn_table, 11, 640, 24, 9, told_in=6, apart=0.9, factors=8, decay=0.6, skewed=False
    ),
    "speakers, skewed": partial(
        drawn_table, 21, 640, 24, 9, told_in=8, apart=0.75, factors=8, decay=0.6, scales=0.3
    ),
    "leaves": partial(_LEAVES, n=2143),
    "few leaves": partial(_LEAVES, n=643),
    "five classes, one of 6 %": partial(
        drawn_table, 15, 3000, 20, 5, told_in=4, apart=0.7, factors=8, decay=0.5,
        parts=(0.3, 0.3, 0.2, 0.14, 0.06),
    ),
    "two classes, one of 6 %": partial(
        drawn_table, 14, 4000, 12, 2, told_in=1, apart=1.2, factors=5, own=0.6, decay=0.5,
        parts=(0.94, 0.06),
    ),
    "voices, two classes": partial(
        drawn_table, 13, 252, 751, 2, told_in=1, apart=0.45, factors=25, own=0.6, decay=0.2,
        parts=(0.26, 0.74),
    ),
    "wine": partial(load_wine, return_X_y=True),
    "iris": partial(load_iris, return_X_y=True),
}  # fmt: skip


def benchmark(name: str) -> Benchmark:
    """A table by name; seven tenths of its people train."""
    if name in ("digits", "breast_cancer"):
        return load(name)
    if name == "few digits":
        return replace(load("digits"), train_people=448)
    X, y = TABLES[name]()
    return Benchmark(
        name, np.asarray(X, float), np.asarray(y, np.int64), int(0.7 * len(y)), False, "drawn"
    )


def fitted(split: Split, epsilon: float, adjacency: Any, seed: int, shuffled: bool) -> Any:
    """The metric that `fit_classes` learns at person level."""
    learner = DPPMetricLearner(
        epsilon=epsilon, delta=DELTA, unit="person", adjacency=adjacency, random_state=seed
    )
    y = np.random.default_rng(seed).permutation(split.y_train) if shuffled else split.y_train
    classes = range(int(max(split.y_train.max(), split.y_test.max())) + 1)
    return learner.fit_classes(split.X_train, y, classes).components_


def row(name: str, seeds: range, adjacency: str, shuffled: bool) -> str:
    """Size, Euclid, reference, and gain kept (or what the AUC moves by, for shuffled classes)."""
    found: dict[Any, list[float]] = {}
    for seed in seeds:
        split = make_split(benchmark(name), np.random.default_rng([seed, 2020]))
        metrics: dict[Any, Any] = {"Euclid": None, **_supervised(split, seed)}
        metrics |= {e: fitted(split, e, adjacency, seed, shuffled) for e in EPSILONS}
        for key, metric in metrics.items():
            auc = pair_auc(metric, split.X_test, split.y_test, N_PAIRS, seed)
            found.setdefault(key, []).append(auc)
    mean = {key: float(np.mean(values)) for key, values in found.items()}
    euclid, best = mean["Euclid"], max(mean["LDA"], mean["NCA"])
    moved = [np.subtract(found[e], found["Euclid"]) for e in EPSILONS]
    error = [gain.std(ddof=1) / np.sqrt(len(gain)) / (best - euclid) for gain in moved]
    cells = (
        [f"{gain.mean():+.4f}" for gain in moved]
        if shuffled
        else [
            f"{gain.mean() / (best - euclid):.2f} ± {e:.2f}"
            for gain, e in zip(moved, error, strict=True)
        ]
    )
    n, d = split.X_train.shape
    head = f"{name} ({n:,} people, {d} columns, {len(np.unique(split.y_train))} classes)"
    return f"| {head} | {euclid:.3f}, {best:.3f} | {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first-seed", type=int, default=600)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--adjacency", choices=["zero-out", "replace"], default="zero-out")
    parser.add_argument("--shuffled", action="store_true")
    parser.add_argument("--table", action="append")
    asked = parser.parse_args()
    seeds = range(asked.first_seed, asked.first_seed + asked.seeds)
    print(
        f"| {asked.adjacency} | Euclid, reference | "
        + " | ".join(f"{e:g}" for e in EPSILONS)
        + " |"
    )
    print("|---" * (2 + len(EPSILONS)) + "|")
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in asked.table or [*TABLES, "digits", "few digits", "breast_cancer"]:
            print(row(name, seeds, asked.adjacency, asked.shuffled), flush=True)


if __name__ == "__main__":
    main()
