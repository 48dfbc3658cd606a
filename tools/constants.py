"""Halve and double each fitted number of the pair learner, and print what that does to the gain kept.

``python -m tools.constants --data DIR`` fills ``benchmarks/results/constants.json`` (numbers that stand there
are not run again) and prints the table of docs/decisions/0005-learner.md. A changed number meets the same
people, pairs and draws of noise as the usual one.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from reproduction.protocol import LabelledPairs, Split, design, make_split
from threadpoolctl import threadpool_limits

from pairveil.files import write_file
from pairveil.learners.contrastive import recipe
from pairveil.learners.contrastive.learner import DPPMetricLearner
from pairveil.learners.fitted import numbers_of
from tools import expected_runs
from tools.expected_runs import gain_on

RESULTS = Path("benchmarks/results/constants.json")
USUAL = "as it is"
SEEDS = (700,)
TEST_PAIRS = 20_000
FACTORS = {"halved": 0.5, "doubled": 2.0}


class Cell(NamedTuple):
    """A table of `tools.expected_runs` and an epsilon; designed paths, relationship level."""

    table: str
    epsilon: float
    mechanism: str = "gaussian"

    def title(self) -> str:
        """Its name, for the table."""
        pure = "" if self.mechanism == "gaussian" else " pure"
        return f"{self.table.split(',')[0]} {self.epsilon:g}{pure}"


CELLS = (
    Cell("bank, 4000 people", 0.1),
    *(Cell("breast_cancer", e) for e in (0.5, 2.0)),
    Cell("digits", 4.0),
    Cell("drawn 2", 0.1),
    Cell("breast_cancer", 4.0, "laplace"),
    Cell("bank, 4000 people", 1.0, "laplace"),
)


@contextmanager
def changed(name: str, factor: float) -> Iterator[None]:
    """The learner with one number changed; whole numbers stay whole."""
    usual = recipe.NUMBERS
    value = getattr(usual, name, 0.0) * factor
    whole = isinstance(getattr(usual, name, 0.0), int)
    if name != USUAL:
        recipe.NUMBERS = replace(usual, **{name: max(1, round(value)) if whole else value})
    try:
        yield
    finally:
        recipe.NUMBERS = usual


@cache
def drawn(name: str, folder: Path | None, seed: int) -> tuple[Split, LabelledPairs, Any]:
    """People of a table, pairs to learn from, and how a metric is scored."""
    (table,) = [table for table in expected_runs.TABLES if table.name == name]
    rng = np.random.default_rng([seed, 2020])
    split = make_split(table.make(folder), rng, max_people=table.max_people)
    return split, design(split, "paths", rng), gain_on(split, seed, TEST_PAIRS)


def kept(cell: Cell, folder: Path | None, gains: dict[str, float]) -> list[float]:
    """Gain kept, by seed."""
    found = []
    for seed in SEEDS:
        split, pairs, gain = drawn(cell.table, folder, seed)
        learner = DPPMetricLearner(
            epsilon=cell.epsilon,
            mechanism=cell.mechanism,
            preprocessor=split.X_train,
            random_state=seed,
        ).fit(pairs.pairs, pairs.labels)
        found.append(round(gain(learner.components_) / gains[cell.table], 4))
    return found


def moved(results: dict[str, Any], name: str, which: str) -> tuple[float, float, str]:
    """Mean change of the gain kept with its standard error, and the worst cell where it loses over .02."""
    change = {
        cell: np.subtract(runs, results[USUAL][cell])
        for cell, runs in results[f"{name}, {which}"].items()
    }
    every = np.concatenate(list(change.values()))
    worst = min(change, key=lambda cell: float(change[cell].mean()))
    least = float(change[worst].mean())
    error = float(every.std(ddof=1)) / math.sqrt(len(every))
    return float(every.mean()), error, f"{least:+.2f} {worst}" if least < -0.02 else ""


def table(results: dict[str, Any]) -> str:
    """The numbers with meaning, provenance and the cost of halving and doubling them."""
    lines = [
        "| number | value | meaning | from | halved | worst cell | doubled | worst cell |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, (value, known) in numbers_of(recipe.NUMBERS).items():
        cells = [name, f"{value:g}", known.meaning, known.origin]
        for which in FACTORS:
            mean, error, worst = moved(results, name, which)
            cells += [f"{mean:+.3f} ± {error:.3f}", worst]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def variants() -> Iterator[tuple[str, str, float]]:
    """The learner as it is, then each number halved and doubled."""
    yield USUAL, USUAL, 1.0
    for name in numbers_of(recipe.NUMBERS):
        for which, factor in FACTORS.items():
            yield f"{name}, {which}", name, factor


def main() -> None:
    """Run what is missing, for as long as asked, and print the table."""
    parser = argparse.ArgumentParser(description="Halve and double each fitted number.")
    parser.add_argument("--data", type=Path, help="folder with adult.npz and bank.npz")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after so long")
    given = parser.parse_args()
    end = time.monotonic() + given.seconds
    tables = json.loads(expected_runs.RESULTS.read_text())["tables"]
    gains = {one["table"]: float(np.mean(one["reference"])) for one in tables}
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for key, name, factor in variants():
        if key in results or time.monotonic() > end:
            continue
        with threadpool_limits(1), warnings.catch_warnings(), changed(name, factor):
            warnings.simplefilter("ignore")
            results[key] = {cell.title(): kept(cell, given.data, gains) for cell in CELLS}
        lines = ",\n".join(
            f"{json.dumps(one)}: {json.dumps(found)}" for one, found in results.items()
        )
        write_file(RESULTS, f"{{{lines}}}\n")
    print(table(results))


if __name__ == "__main__":
    main()
