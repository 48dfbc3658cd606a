"""`python -m benchmarks tables`: the pair learner on many tables, beside an earlier run of it.

Defaults are chosen on one half of the tables and reported on the other, with other seeds. To compare two
versions, run the same half and seeds in a checkout of each: people, pairs, noise and test pairs are the same.
"""

from __future__ import annotations

import json
import math
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from reproduction.data import Benchmark, load
from reproduction.protocol import LabelledPairs, Split, design, make_split
from sklearn import datasets
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from threadpoolctl import threadpool_limits

from pairveil import DPPMetricLearner
from pairveil.evaluation.scores import pair_auc
from pairveil.files import write_file

DELTA = 1e-5
LEAST_GAIN = 0.02  # of AUC: where LDA gains less over Euclid there is nothing to keep
HARM = 0.005  # of AUC below Euclid, on average, that counts as harm
FEW_PAIRS = 300  # below which a table may end below Euclid
TEST_PAIRS = 50_000
HALVES = ("selection", "report")
Make = Callable[[Path | None], Benchmark]


@dataclass(frozen=True)
class Table:
    """A table to learn on.

    ``family``: tables of the same people; ``make`` takes the data folder; ``max_people`` cuts the training
    people down; ``half``: 'selection', 'report' or 'both'.
    """

    name: str
    family: str
    make: Make
    max_people: int | None = None
    half: str = "both"

    @property
    def is_drawn(self) -> bool:
        """Whether nobody collected it."""
        return self.family.startswith("drawn")


def of(half: str) -> tuple[Table, ...]:
    """The tables of a half."""
    return tuple(table for table in TABLES if table.half in (half, "both"))


def stored(name: str, max_people: int | None = None, half: str = "both") -> Table:
    """A table of the data folder, or an embedded one."""
    said = name if max_people is None else f"{name}, {max_people} people"
    return Table(said, name, lambda folder: load(name, folder), max_people, half)


def bundled(name: str, half: str = "both", parts: int = 2) -> Table:
    """A table that comes with scikit-learn; a number to predict is cut into parts of equal size."""

    def make(folder: Path | None) -> Benchmark:
        del folder
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        if name == "diabetes":
            y = np.digitize(y, np.quantile(y, np.arange(1, parts) / parts))
        return benchmark(name, X, y)

    return Table(f"{name}, {parts} parts" if name == "diabetes" else name, name, make, None, half)


def changed(
    name: str,
    change: Callable[[Benchmark], Benchmark],
    half: str = "both",
    people: int | None = None,
) -> Table:
    """A stored table with something done to it."""
    said = f"{name}, {change.__name__.replace('_', ' ')}"
    return Table(said, name, lambda folder: change(load(name, folder)), people, half)


def unscaled(table: Benchmark) -> Benchmark:
    """Columns of very different sizes under one bound, as where nobody scaled them."""
    X = table.X * 10.0 ** np.random.default_rng(700).uniform(-3, 0, table.X.shape[1])
    d = X.shape[1]
    return replace(table, X=X, bounds=(np.zeros(d), np.full(d, np.abs(X).max())))


def with_noise(table: Benchmark) -> Benchmark:
    """Twice as many columns again that say nothing."""
    shape = (len(table.X), 2 * table.X.shape[1])
    noise = np.random.default_rng(700).uniform(size=shape)
    return replace(table, X=np.hstack([table.X, noise]), bounds=None)


def odd_or_even(table: Benchmark) -> Benchmark:
    """Ten digits as two classes."""
    return replace(table, classes=table.classes % 2)


def by_sex(table: Benchmark) -> Benchmark:
    """Another column of Adult as the class: the two of sex, which stand at 71 and 72."""
    return benchmark("adult, sex", np.delete(table.X, [71, 72], axis=1), table.X[:, 71] > 0)


def drawn(number: int, n: int = 0, d: int = 0, classes: int = 0, rare: float = 0.0) -> Table:
    """Classes with means of their own, columns correlated; what is not given is drawn.

    ``rare``: share of the second of two classes. Columns are normal, binary, or of a long tail.
    """
    rng = np.random.default_rng([2026, number])
    classes = classes or int(rng.choice([2, 2, 2, 3, 5, 9, 16, 40]))
    d = d or int(2 ** rng.uniform(2.4, 9.6))
    n = n or int(min(2 ** rng.uniform(7.8, 15.6), 5e6 / d))
    shares = rng.dirichlet(np.full(classes, rng.choice([2.0, 50.0])))
    if rare:
        shares = np.array([1 - rare, rare])
    informative = rng.permutation(d)[: max(2, int(d * 2 ** rng.uniform(-4, 0)))]
    apart, common = rng.uniform(1.5, 4.0) * math.sqrt(math.log2(classes)), rng.uniform(0, 1.5)
    factors = int(rng.integers(1, max(2, d // 4) + 1))
    shape = str(rng.choice(["normal", "normal", "binary", "long tail"]))
    if classes > 9:  # else LDA gains nothing
        shape = "normal"

    def make(folder: Path | None) -> Benchmark:
        del folder
        draw = np.random.default_rng([2027, number])
        y = draw.choice(classes, n, p=shares / shares.sum())
        means = np.zeros((classes, d))
        spread = draw.exponential(size=(classes, len(informative)))
        spread *= draw.choice([-1, 1], spread.shape)
        means[:, informative] = apart * spread / math.sqrt((spread**2).sum(1).mean())
        loadings = draw.normal(size=(factors, d)) * common / math.sqrt(factors)
        X = means[y] + draw.normal(size=(n, d)) + draw.normal(size=(n, factors)) @ loadings
        if shape == "binary":
            X = (draw.normal(size=d) < X).astype(float)
        elif shape == "long tail":
            X = np.exp(X * draw.uniform(0.3, 1.2, d))
        return benchmark(f"drawn {number}", X, y)

    said = f"drawn {number}, {classes} classes, {int(0.7 * n)} x {d}, {shape}"
    return Table(said, f"drawn {number}", make, None, HALVES[number % 2])


def benchmark(name: str, X: Any, classes: Any) -> Benchmark:
    """Seven people in ten train."""
    rows, codes = np.asarray(X, float), np.unique(classes, return_inverse=True)[1].astype(np.int64)
    return Benchmark(name, rows, codes, int(0.7 * len(codes)), downsample=False, source=name)


TABLES = (
    *(stored(name, n) for name in ("adult", "bank") for n in (None, 6300)),
    *(stored("adult", n, half) for n, half in ((1500, "selection"), (700, "report"))),
    *(stored("bank", n, half) for n, half in ((1500, "report"), (700, "selection"))),
    stored("ipums_br"),
    *(stored("ipums_br", n, half) for n, half in ((2000, "selection"), (420, "report"))),
    *(stored("ipums_br", n, half) for n, half in ((6300, "report"), (400, "selection"))),
    changed("adult", by_sex, "report", 4000),
    changed("bank", unscaled, "selection"),
    stored("breast_cancer"),
    changed("breast_cancer", unscaled, "report"),
    changed("breast_cancer", with_noise, "selection"),
    stored("digits"),
    changed("digits", odd_or_even, "report"),
    bundled("wine", "report"),
    bundled("iris", "selection"),
    bundled("diabetes", "report"),
    bundled("diabetes", "selection", 3),
    *(drawn(number, 1414, 20, 2) for number in range(100, 104)),
    *(drawn(number, 1331, 10, 32) for number in range(104, 108)),
    *(drawn(number, 643, 12, 9) for number in range(108, 110)),
    *(drawn(number, 5714, 16, 2, 0.06) for number in range(110, 114)),
    *(drawn(number) for number in range(200, 240)),
)


class Cell(NamedTuple):
    """How a table is learned on: paths at relationship level, or a matching at person level."""

    epsilon: float
    mechanism: str = "gaussian"
    how: str = "paths"
    permuted: bool = False

    def __str__(self) -> str:
        words = ["pure"] * (self.mechanism != "gaussian") + [self.how] * (self.how != "paths")
        return " ".join([*words, f"{self.epsilon:g}", *["no information"] * self.permuted])


CELLS = (
    *(Cell(e) for e in (8.0, 4.0, 1.0, 0.5, 0.1, 0.03)),
    *(Cell(e, "laplace") for e in (4.0, 1.0, 0.1)),
    Cell(1.0, how="matching"),
    *(Cell(e, permuted=True) for e in (8.0, 1.0, 0.1)),
)


class Draw(NamedTuple):
    """People of a table, their pairs by how they are made, and scores on test people."""

    split: Split
    pairs: dict[str, LabelledPairs]
    score: Callable[[Any], float]
    euclid: float
    lda: float

    def learned(self, cell: Cell, seed: int) -> NDArray[np.float64]:
        """The metric of a cell."""
        pairs, labels = self.pairs[cell.how].pairs, self.pairs[cell.how].labels
        learner = DPPMetricLearner(
            epsilon=cell.epsilon,
            delta=DELTA,
            unit="relationship" if cell.how == "paths" else "person",
            mechanism=cell.mechanism,
            select="all",
            preprocessor=self.split.X_train,
            random_state=seed,
        )
        if cell.permuted:
            labels = np.random.default_rng([seed, 2021]).permutation(labels)
        return np.asarray(learner.fit(pairs, labels).components_)


def draw(table: Table, folder: Path | None, seed: int) -> Draw:
    """Seven people in ten with pairs, and how metrics score on the others."""
    rng = np.random.default_rng([seed, 2020])
    split = make_split(table.make(folder), rng, max_people=table.max_people)
    pairs = {"paths": design(split, "paths", rng), "matching": design(split, "matching", rng)}

    def score(components: Any) -> float:
        return round(pair_auc(components, split.X_test, split.y_test, TEST_PAIRS, seed), 5)

    lda = LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto")
    lda.fit(split.X_train, split.y_train)
    best = score(lda.scalings_[:, : len(lda.classes_) - 1].T)
    return Draw(split, pairs, score, score(None), best)


def run(
    tables: Iterable[Table],
    seeds: Sequence[int],
    folder: Path | None = None,
    cells: Iterable[Cell] = CELLS,
    progress: Callable[[str], None] | None = None,
) -> list[dict[str, Any]]:
    """A row for each table and seed: number of pairs, AUC of Euclid and of LDA, AUC of each cell."""
    rows = []
    for table in tables:
        for seed in seeds:
            with threadpool_limits(1), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made = draw(table, folder, seed)
                aucs = {str(cell): made.score(made.learned(cell, seed)) for cell in cells}
            known = {"table": table.name, "drawn": table.is_drawn, "seed": seed}
            known |= {"pairs": len(made.pairs["paths"].pairs), "euclid": made.euclid}
            rows.append(known | {"lda": made.lda, "cells": aucs})
        if progress is not None:
            progress(table.name)
    return rows


def gains(rows: Sequence[dict[str, Any]]) -> dict[str, dict[str, tuple[float, float, float]]]:
    """By cell and table: gain kept (nan where there is none), mean and least gain in AUC, over seeds."""
    by_table = defaultdict(list)
    for row in rows:
        by_table[row["table"]].append(row)
    found: dict[str, dict[str, tuple[float, float, float]]] = defaultdict(dict)
    for name, mine in by_table.items():
        lda = float(np.mean([row["lda"] - row["euclid"] for row in mine]))
        for cell in mine[0]["cells"]:
            aucs = np.array([row["cells"][cell] - row["euclid"] for row in mine])
            kept = float(aucs.mean()) / lda if lda >= LEAST_GAIN else math.nan
            found[cell][name] = (kept, float(aucs.mean()), float(aucs.min()))
    return found


def summary(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """By cell: mean gain kept; of tables of `FEW_PAIRS` or more, those below Euclid, worst mean and draw."""
    kinds = {row["table"]: row["drawn"] for row in rows if row["pairs"] >= FEW_PAIRS}
    lines = []
    for cell, tables in gains(rows).items():
        kept = np.array([one[0] for one in tables.values()])
        judged = {name: one for name, one in tables.items() if name in kinds}
        harmed = [kinds[name] for name, one in judged.items() if one[1] < -HARM]
        lines.append(
            {
                "cell": cell,
                "gain kept": float(np.nanmean(kept)),
                "real harmed": harmed.count(False),
                "drawn harmed": harmed.count(True),
                "worst mean": min((one[1] for one in judged.values()), default=math.nan),
                "worst draw": min((one[2] for one in judged.values()), default=math.nan),
            }
        )
    return lines


def markdown(rows: Sequence[dict[str, Any]], before: Sequence[dict[str, Any]] = ()) -> str:
    """The summary as a table, each number behind that of an earlier run where one is given."""
    lines, old = summary(rows), {line["cell"]: line for line in summary(before)}
    heads = list(lines[0])
    said = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for line in lines:
        was = old.get(line["cell"], {})
        cells = [
            (f"{number(was[head])} -> " if was else "") + number(line[head]) for head in heads[1:]
        ]
        said.append("| " + " | ".join([line["cell"], *cells]) + " |")
    return "\n".join(said)


def table_by_table(rows: Sequence[dict[str, Any]], before: Sequence[dict[str, Any]] = ()) -> str:
    """Gain kept of each table; nan where LDA gains too little."""
    runs = [gains(some) for some in (before, rows) if some]
    cells = list(runs[-1])
    said = ["| table | " + " | ".join(cells) + " |", "|---" * (len(cells) + 1) + "|"]
    for name in runs[-1][cells[0]]:
        shown = [" -> ".join(number(run[cell][name][0]) for run in runs) for cell in cells]
        said.append("| " + " | ".join([name, *shown]) + " |")
    return "\n".join(said)


def number(value: float) -> str:
    """A count, or a figure to three places."""
    return str(value) if isinstance(value, int) else f"{value:.3f}"


def read(path: Path) -> list[dict[str, Any]]:
    """Rows of an earlier run."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """A line each row."""
    write_file(path, "".join(json.dumps(row) + "\n" for row in rows))
