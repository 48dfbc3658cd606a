"""Halve and double each fitted number of a learner, and print what that does to what it keeps.

``python -m tools.constants --kind pairs --data DIR`` fills ``benchmarks/results/constants.json`` (what is
there is not run again) and prints the table of benchmarks/results/README.md. A changed number meets the
same people, records and draws of noise as the usual one. Only pairs need a data folder: the other kinds are
measured on embedded tables, scikit-learn's and drawn ones. A score is the gain kept against LDA; of
clusterings the adjusted Rand index, of rankings the correlation with the true strengths.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from reproduction.protocol import LabelledPairs, Split, design, make_split
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from benchmarks import tables
from pairveil import (
    DPPMetricLearner,
    DPPTripletLearner,
    PrivateConstrainedKMeans,
    PrivatePreferenceRanker,
    TupleSet,
    design_pairs,
    sample_tuples,
)
from pairveil.files import write_file
from pairveil.learners import classes, clustering, preparing, ranking, tuples
from pairveil.learners.contrastive import recipe
from pairveil.learners.recipes import Fitted
from tools import expected_runs
from tools.expected_runs import gain_on

RESULTS = Path("benchmarks/results/constants.json")
USUAL = "as it is"
FACTORS = {"halved": 0.5, "doubled": 2.0}
MOST = {"metric_share": 0.9, "blend_many": 1.0}
"""Shares whose double would leave nothing, at most."""
LOSS = 0.02
"""Of a cell, that is named."""

# ---- cells: what is learned from what, and how it is scored ------------------------------------------


class Cell(NamedTuple):
    """A table and an epsilon; ``size``: of groups, where that is stated."""

    table: str
    epsilon: float
    mechanism: str = "gaussian"
    size: int | None = None

    def __str__(self) -> str:
        pure = "" if self.mechanism == "gaussian" else " pure"
        groups = "" if self.size is None else f" groups of {self.size}"
        return f"{self.table.split(',')[0]} {self.epsilon:g}{pure}{groups}"


@cache
def paired(name: str, folder: Path | None, seed: int) -> tuple[Split, LabelledPairs, Any, float]:
    """People of a table, pairs to learn from, how a metric is scored, and what there is to gain."""
    (table,) = [table for table in expected_runs.TABLES if table.name == name]
    rng = np.random.default_rng([seed, 2020])
    split = make_split(table.make(folder), rng, max_people=table.max_people)
    known = json.loads(expected_runs.RESULTS.read_text())["tables"]
    (gain,) = [float(np.mean(one["reference"])) for one in known if one["table"] == name]
    return split, design(split, "paths", rng), gain_on(split, seed, 20_000), gain


def of_pairs(cell: Cell, folder: Path | None, seed: int) -> float:
    """Gain kept by pairs; designed paths, relationship level."""
    split, pairs, score, gain = paired(cell.table, folder, seed)
    learner = DPPMetricLearner(
        epsilon=cell.epsilon,
        mechanism=cell.mechanism,
        preprocessor=split.X_train,
        random_state=seed,
    )
    return float(score(learner.fit(pairs.pairs, pairs.labels).components_)) / gain


SMALL = {
    **{name: tables.stored(name) for name in ("breast_cancer", "digits")},
    **{name: tables.bundled(name) for name in ("wine", "iris")},
    "drawn two": tables.drawn(100, 4300, 20, 2),
    "drawn nine": tables.drawn(108, 900, 12, 9),
    "drawn rare": tables.drawn(110, 4300, 16, 2, 0.06),
}


@cache
def people(name: str, seed: int) -> tables.Draw:
    """People of a small table, and scores."""
    return tables.draw(SMALL[name], None, seed)


def of_people(learn: Callable[..., Any], cell: Cell, folder: Path | None, seed: int) -> float:
    """Gain kept from people with classes; person level."""
    del folder
    made = people(cell.table, seed)
    asked = {"epsilon": cell.epsilon, "mechanism": cell.mechanism, "unit": "person"}
    metric = learn(made.split, cell, seed, asked | {"random_state": seed})
    return (made.score(metric) - made.euclid) / (made.lda - made.euclid)


def by_classes(split: Split, cell: Cell, seed: int, asked: dict[str, Any]) -> Any:
    """`fit_classes`, by people or by groups."""
    del seed
    listed = np.unique(np.append(split.y_train, split.y_test))
    records = "auto" if cell.size is None else cell.size
    learner = DPPMetricLearner(**asked)
    return learner.fit_classes(split.X_train, split.y_train, listed, records).components_


def by_cut(split: Split, cell: Cell, seed: int, asked: dict[str, Any]) -> Any:
    """Pairs at random, cut into groups; or groups of people with classes."""
    if cell.size is not None:
        return by_classes(split, cell, seed, asked)
    n, rng = split.n_people, np.random.default_rng([seed, 1])
    drawn = np.sort(rng.integers(n, size=(3 * n, 2)), axis=1)
    pairs = np.unique(drawn[drawn[:, 0] < drawn[:, 1]], axis=0)
    same = split.y_train[pairs[:, 0]] == split.y_train[pairs[:, 1]]
    learner = DPPMetricLearner(select="groups", preprocessor=split.X_train, **asked)
    return learner.fit(pairs, np.where(same, 1, -1)).components_


def by_triples(split: Split, cell: Cell, seed: int, asked: dict[str, Any]) -> Any:
    """Triples drawn blind to classes."""
    del cell
    members = sample_tuples(split.n_people, 3, 8, random_state=seed)
    data = TupleSet.of_classes(split.X_train, members, split.y_train)
    return DPPTripletLearner(select="all", **asked).fit(data).components_


def of_links(cell: Cell, folder: Path | None, seed: int) -> float:
    """Adjusted Rand index of clusters that links of designed pairs choose."""
    del folder
    split = people(cell.table, seed).split
    pairs = design_pairs(split.n_people, random_state=seed)
    same = split.y_train[pairs[:, 0]] == split.y_train[pairs[:, 1]]
    model = PrivateConstrainedKMeans(
        len(np.unique(split.y_train)),
        cell.epsilon,
        mechanism=cell.mechanism,
        random_state=seed,
    ).fit(split.X_train, ml=pairs[same], cl=pairs[~same])
    return float(adjusted_rand_score(split.y_train, model.labels_))


def of_choices(cell: Cell, folder: Path | None, seed: int) -> float:
    """Correlation with the true strengths of 30 items, chosen between by workers of many sizes."""
    del folder
    rng = np.random.default_rng([seed, 3])
    strengths = rng.normal(size=30)
    workers = np.repeat(np.arange(300), rng.geometric(0.05, 300))
    left, right = np.array([rng.choice(30, 2, replace=False) for _ in workers]).T
    first = rng.random(len(workers)) < 1 / (1 + np.exp(strengths[right] - strengths[left]))
    chosen, other = np.where(first, left, right), np.where(first, right, left)
    ranker = PrivatePreferenceRanker(cell.epsilon, mechanism=cell.mechanism, random_state=seed).fit(
        np.column_stack([workers, chosen, other]), 30
    )
    return float(np.corrcoef(ranker.strengths_, strengths)[0, 1])


class Kind(NamedTuple):
    """A table of fitted numbers (``module.NUMBERS``), where they are measured, and how."""

    module: Any
    score: Callable[[Cell, Path | None, int], float]
    cells: tuple[Cell, ...]
    seeds: tuple[int, ...]


KINDS = {
    "pairs": Kind(
        recipe,
        of_pairs,
        (
            Cell("bank, 4000 people", 0.1),
            *(Cell("breast_cancer", e) for e in (0.5, 2.0)),
            Cell("digits", 4.0),
            Cell("drawn 2", 0.1),
            Cell("breast_cancer", 4.0, "laplace"),
            Cell("bank, 4000 people", 1.0, "laplace"),
            # where one of the pair's last four numbers decides
            Cell("bank, 4000 people", 1.0),
            Cell("bank, 4000 people", 8.0, "laplace"),
            Cell("digits", 8.0, "laplace"),
            Cell("digits", math.inf),
        ),
        (700, 701, 702),
    ),
    "classes": Kind(
        classes,
        partial(of_people, by_classes),
        (
            *(Cell("breast_cancer", e) for e in (0.5, 2.0)),
            Cell("digits", 1.0),
            Cell("wine", 4.0),
            Cell("drawn nine", 2.0),
            *(Cell("drawn two", e) for e in (0.1, 0.5)),
            Cell("drawn rare", 0.5),
            Cell("iris", 4.0),
            Cell("breast_cancer", 4.0, "laplace"),
            Cell("digits", math.inf),
        ),
        (700, 701),
    ),
    "groups": Kind(
        preparing,
        partial(of_people, by_cut),
        (
            *(Cell("breast_cancer", e) for e in (2.0, 8.0)),
            Cell("digits", 8.0),
            Cell("drawn two", 2.0),
            Cell("breast_cancer", 4.0, size=4),
            Cell("digits", 8.0, size=8),
        ),
        (700, 701, 702),
    ),
    "tuples": Kind(
        tuples,
        partial(of_people, by_triples),
        (
            *(Cell("breast_cancer", e) for e in (2.0, 8.0)),
            Cell("wine", 8.0),
            Cell("drawn two", 1.0),
            Cell("drawn nine", 8.0),
            Cell("breast_cancer", 8.0, "laplace"),
            Cell("breast_cancer", math.inf),
        ),
        (700, 701),
    ),
    "ranking": Kind(
        ranking,
        of_choices,
        (*(Cell("drawn", e) for e in (0.5, 2.0, 8.0)), Cell("drawn", 2.0, "laplace")),
        (700, 701, 702, 703),
    ),
    "clustering": Kind(
        clustering,
        of_links,
        (
            Cell("wine", 8.0),
            *(Cell("iris", e) for e in (1.0, 8.0)),
        ),
        (700, 701),
    ),
}

# ---- numbers, changed ----------------------------------------------------------------------------


def numbers_of(table: Any) -> dict[str, tuple[float, Fitted]]:
    """Value and description of each number of a table, by name."""
    return {one.name: (getattr(table, one.name), one.metadata["fitted"]) for one in fields(table)}


@contextmanager
def changed(kind: Kind, name: str, factor: float) -> Iterator[None]:
    """The learner with one number changed; whole numbers stay whole."""
    usual = kind.module.NUMBERS
    if name != USUAL:
        value = getattr(usual, name)
        new = max(1, round(value * factor)) if isinstance(value, int) else value * factor
        new = min(new, MOST.get(name, new))
        kind.module.NUMBERS = replace(usual, **{name: new})
    try:
        yield
    finally:
        kind.module.NUMBERS = usual


def variants(kind: Kind) -> Iterator[tuple[str, str, float]]:
    """The learner as it is, then each number halved and doubled."""
    yield USUAL, USUAL, 1.0
    for name in numbers_of(kind.module.NUMBERS):
        for which, factor in FACTORS.items():
            yield f"{name}, {which}", name, factor


def moved(results: dict[str, Any], name: str, which: str) -> tuple[float, float, str]:
    """Mean change of the score with its standard error, and the worst cell, if it loses `LOSS`."""
    change = {
        cell: np.subtract(runs, results[USUAL][cell])
        for cell, runs in results[f"{name}, {which}"].items()
    }
    every = np.concatenate(list(change.values()))
    worst = min(change, key=lambda cell: float(change[cell].mean()))
    least = float(change[worst].mean())
    error = float(every.std(ddof=1)) / math.sqrt(len(every))
    return float(every.mean()), error, f"{least:+.2f} {worst}" if least < -LOSS else ""


def table(kind: Kind, results: dict[str, Any]) -> str:
    """The numbers with meaning, provenance and the cost of halving and doubling them."""
    lines = [
        "| number | value | meaning | from | halved | worst cell | doubled | worst cell |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, (value, known) in numbers_of(kind.module.NUMBERS).items():
        cells = [name, f"{value:g}", known.meaning, known.origin]
        for which in FACTORS:
            mean, error, worst = moved(results, name, which)
            cells += [f"{mean:+.3f} ± {error:.3f}", worst]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def read() -> dict[str, dict[str, Any]]:
    """What was run: by kind, variant and cell, the score of each seed."""
    found: dict[str, dict[str, Any]] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    return found


def main() -> None:
    """Run what is missing, for as long as asked, and print the table."""
    parser = argparse.ArgumentParser(description="Halve and double each fitted number.")
    parser.add_argument("--kind", choices=list(KINDS), default="pairs")
    parser.add_argument("--data", type=Path, help="folder with adult.npz and bank.npz, for pairs")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after so long")
    given = parser.parse_args()
    kind, end = KINDS[given.kind], time.monotonic() + given.seconds
    mine = read().get(given.kind, {})
    for key, name, factor in variants(kind):
        if key in mine or time.monotonic() > end:
            continue
        with threadpool_limits(1), warnings.catch_warnings(), changed(kind, name, factor):
            warnings.simplefilter("ignore")
            mine[key] = {
                str(cell): [round(kind.score(cell, given.data, seed), 4) for seed in kind.seeds]
                for cell in kind.cells
            }
        results = read() | {given.kind: mine}  # another kind may run beside it
        lines = [
            f'"{one}": {{\n'
            + ",\n".join(
                f"{json.dumps(which)}: {json.dumps(found)}" for which, found in some.items()
            )
            + "\n}"
            for one, some in results.items()
        ]
        write_file(RESULTS, "{" + ",\n".join(lines) + "}\n")
    print(table(kind, mine))


if __name__ == "__main__":
    main()
