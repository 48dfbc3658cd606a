"""Triplets, tuplets and pairs side by side, at equal person-level epsilon.

The protocol is that of docs/theory/learner.md; gain kept is against LDA. All is drawn blind to labels:
pairs are a matching (one pair a person) or paths (two), tuples come from `sample_tuples`.

Run it as ``python -m benchmarks.tuples --data DIR``.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from reproduction.data import load
from reproduction.protocol import How, Split, design, make_split
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from pairveil.array_types import FloatArray
from pairveil.errors import DataWarning, PrivateNote
from pairveil.evaluation.scores import gain_kept, pair_auc
from pairveil.graph.choosing import sample_tuples
from pairveil.learners.contrastive.learner import DPPMetricLearner
from pairveil.learners.tuples import DPPTupletLearner
from pairveil.records.tupleset import TupleSet

Fit = Callable[[Split, float, int], FloatArray]

EPSILONS = {"digits": (8.0, 4.0, 1.0), "breast_cancer": (8.0, 4.0, 1.0)}
USUAL_EPSILONS = (1.0, 0.3, 0.1)
PER_PERSON = {"digits": 8, "breast_cancer": 8}
"""Tuples of one person; large tables need fewer, and take longer."""
FIRST_SEED = 300
"""Defaults were chosen on seeds below it."""


def _tuples(size: int, loss: str) -> Fit:
    def fit(split: Split, epsilon: float, seed: int) -> FloatArray:
        asked = sample_tuples(
            split.n_people, size, PER_PERSON.get(split.name, 2), random_state=seed
        )
        data = TupleSet.of_classes(split.X_train, asked, split.y_train, pairs=loss == "pairs")
        learner = DPPTupletLearner(
            loss=loss,  # type: ignore[arg-type]
            epsilon=epsilon,
            unit="person",
            select="all",
            random_state=seed,
        )
        return learner.fit(data).components_

    return fit


def _pairs(kind: type[Any], how: How) -> Fit:
    def fit(split: Split, epsilon: float, seed: int) -> FloatArray:
        pairs = design(split, how, np.random.default_rng(seed))
        learner = kind(
            epsilon=epsilon, unit="person", preprocessor=split.X_train, random_state=seed
        )
        found: FloatArray = learner.fit(pairs.pairs, pairs.labels).components_
        return found

    return fit


METHODS: dict[str, Fit] = {
    "pairs (matching), contrastive": _pairs(DPPMetricLearner, "matching"),
    "pairs (paths), contrastive": _pairs(DPPMetricLearner, "paths"),
    "triplets": _tuples(3, "triplet"),
    "5-tuplets": _tuples(5, "tuplet"),
    "8-tuplets": _tuples(8, "tuplet"),
    "8-tuplets, hinge": _tuples(8, "triplet"),
    "4 pairs (C-pair)": _tuples(8, "pairs"),
}


def run(
    names: tuple[str, ...] = ("digits", "adult"),
    folder: str | None = None,
    seeds: int = 3,
    methods: tuple[str, ...] = tuple(METHODS),
) -> list[dict[str, Any]]:
    """Gain kept of each method, by data set and epsilon.

    Parameters
    ----------
    folder : path, optional
        Where the benchmark files are.
    methods : tuple of str
        Of `METHODS`.

    Returns rows: dataset, method, epsilon, gain_kept (one a seed).
    """
    rows = []
    for name in names:
        benchmark = load(name, folder)
        splits = [
            (seed, make_split(benchmark, np.random.default_rng([seed, 2020])))
            for seed in range(FIRST_SEED, FIRST_SEED + seeds)
        ]
        for method in methods:
            for epsilon in EPSILONS.get(name, USUAL_EPSILONS):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DataWarning)
                    warnings.simplefilter("ignore", PrivateNote)
                    kept = [_kept(METHODS[method], split, epsilon, seed) for seed, split in splits]
                rows.append(
                    {"dataset": name, "method": method, "epsilon": epsilon, "gain_kept": kept}
                )
    return rows


def _kept(fit: Fit, split: Split, epsilon: float, seed: int) -> float:
    lda = LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto")
    lda.fit(split.X_train, split.y_train)
    directions = min(len(lda.classes_) - 1, split.X_train.shape[1])
    metrics = (fit(split, epsilon, seed), None, lda.scalings_[:, :directions].T)
    return gain_kept(
        *(pair_auc(found, split.X_test, split.y_test, 50_000, seed) for found in metrics)
    )


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as a table for the docs: means, and the spread over seeds.

    Examples
    --------
    >>> print(table([{"dataset": "digits", "method": "triplets", "epsilon": 8.0, "gain_kept": [0.1, 0.3]}]))
    | digits | 8 |
    |---|---|
    | triplets | .20 ± .10 |
    """
    lines = []
    for name in dict.fromkeys(row["dataset"] for row in rows):
        own = [row for row in rows if row["dataset"] == name]
        epsilons = sorted({row["epsilon"] for row in own}, reverse=True)
        lines += [f"| {name} | {' | '.join(f'{e:g}' for e in epsilons)} |"]
        lines += ["|---" * (1 + len(epsilons)) + "|"]
        for method in dict.fromkeys(row["method"] for row in own):
            found = {row["epsilon"]: row["gain_kept"] for row in own if row["method"] == method}
            lines += [f"| {method} | {' | '.join(_cell(found[e]) for e in epsilons)} |"]
        lines += [""]
    return "\n".join(lines).rstrip()


def _cell(kept: list[float]) -> str:
    mean, spread = float(np.mean(kept)), float(np.std(kept))
    return f"{mean:.2f} ± {spread:.2f}".replace("0.", ".")


def main() -> None:
    """Print the table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder of the benchmark files")
    parser.add_argument("--names", nargs="+", default=["digits", "adult"])
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows = run(tuple(given.names), given.data, given.seeds, tuple(given.methods))
    print(json.dumps(rows) if given.json else table(rows))


if __name__ == "__main__":
    main()
