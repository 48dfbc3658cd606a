"""The published algorithm at its best: what the paper leaves open, set in favour of each claim.

The paper does not say how W starts, what d' and the number of epochs are, or which rho the margin of
its Fig. 8 has. A search tries a grid of all four on small cuts of the data sets. For each claim about
accuracy the setting that met it best, by the claim's own measure on the test people, is its best case. It
is rerun on people drawn anew, more of them and more often, so that chance does not favour it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, product
from pathlib import Path
from typing import Any, cast

import numpy as np

from pairveil.array_types import FloatArray
from pairveil.audit.published import Settings, Variant, algorithm1
from pairveil.graph.kappa import kappa
from reproduction import observations as seen
from reproduction.accuracy import KNN_PEOPLE
from reproduction.cells import Job, Key, Progress, run_jobs, write_table
from reproduction.data import Benchmark, available
from reproduction.experiment import Data, Rows, repeats, rerun
from reproduction.findings import Finding
from reproduction.input_perturbation import input_perturbation
from reproduction.protocol import (
    LabelledPairs,
    Split,
    make_split,
    paper_graph,
    score,
    untrained,
)

#: What the paper leaves open; d' = 0 stands for d.
GRID: dict[str, tuple[Any, ...]] = {
    "start": ("random", "identity", "pca"),
    "n_components": (4, 16, 0),
    "epochs": (1, 3, 10, 20),
    "rho": (1.0, 2.0),
}
QUICK_GRID = {**GRID, "n_components": (4,), "epochs": (1,), "rho": (1.0,)}
EPSILONS = (0.5, 4.0, 8.0)
#: Methods with their epsilons; JSON has no infinity, "none" stands for no privacy.
Methods = tuple[tuple[str, float | str], ...]
FIXED: Methods = (("euclid", "none"), ("untrained", "none"), ("nonpriv", "none"))
AT_FOUR: Methods = (*FIXED, ("dpp", 4.0), ("dpp-s", 4.0))
SEARCHED: Methods = (
    *FIXED,
    *product(("dpp", "dpp-s"), EPSILONS),
    ("node-dp", 4.0),
    ("inputper", 4.0),
)
SEARCH_PEOPLE, RERUN_PEOPLE = 1_000, 4_000
#: More than any data set has. The claims at one epsilon are rerun on whole sets, which favour them:
#: an epoch of more batches learns more at the same noise a batch.
EVERYBODY = 1_000_000
MOST_REPEATS = 5
TEST_PAIRS = 50_000

#: Claims that have a best case: the check that decides each, and what it reads of the rerun.
CHECKS: dict[str, tuple[Callable[[seen.Results], Finding], Methods]] = {
    "rises": (seen.rises, tuple(product(seen.PRIVATE, EPSILONS[::2]))),
    "node-below": (seen.node_below_dpp, tuple(product(("dpp", "node-dp"), EPSILONS))),
    "reduced-above": (seen.reduced_above_dpp, tuple(product(("dpp", "dpp-s"), EPSILONS))),
    "input-worst": (seen.input_worst, tuple(product(seen.PRIVATE, EPSILONS))),
    "little-lost": (seen.little_lost, AT_FOUR),
    "auc-lost": (seen.auc_lost, AT_FOUR),
}


def run(
    data: Data,
    out: str | Path,
    seeds: int = MOST_REPEATS,
    quick: bool = False,
    jobs: int = 2,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Search, then rerun the best settings; at most five repeats. Parameters as ``Experiment.run``.

    Returns ``rows`` of the rerun and ``files``.
    """
    out, seeds = Path(out), min(seeds, MOST_REPEATS)
    grid = QUICK_GRID if quick else GRID
    settings = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    cells = [_cell(setting, m) for setting in settings for m in SEARCHED]
    searched = run_jobs("steelman-search", _jobs(data, 1, quick, cells), out, jobs, progress)
    cells = [
        {**_cell(best_setting(check, searched), m), "max_people": people, "claim": claim}
        for claim, (check, methods) in CHECKS.items()
        for people in [EVERYBODY if methods is AT_FOUR else RERUN_PEOPLE]
        for m in methods
    ]
    rows = run_jobs("steelman", _jobs(data, seeds, quick, cells), out, jobs, progress)
    tables = {"steelman-search": searched, "steelman": rows}
    files = [write_table(out / f"{stem}.csv", table).name for stem, table in tables.items()]
    return {"rows": rows, "files": files}


def _cell(setting: Key, method: tuple[str, float | str]) -> Key:
    return {**setting, "max_people": SEARCH_PEOPLE, "method": method[0], "epsilon": method[1]}


def _jobs(data: Data, seeds: int, quick: bool, cells: Rows) -> list[Job]:
    """A tenth of the people where it shall be quick."""
    shrink = 10 if quick else 1
    cells = [{**cell, "max_people": cell["max_people"] // shrink} for cell in cells]
    return repeats(available(data), data, seeds, cells, measure)


def measure(benchmark: Benchmark, keys: Sequence[Key]) -> Iterator[dict[str, Any]]:
    """Settings and methods of equal size on the same people, pairs and test pairs."""
    for people, some in groupby(keys, key=lambda key: key["max_people"]):
        seed = keys[0]["seed"]
        # The number of people is part of the stream: a rerun sees other people than the search.
        split = make_split(benchmark, np.random.default_rng([seed, people, 0]), "l1", people)
        graph = paper_graph(split, np.random.default_rng([seed, people, 1]))
        found = kappa(graph.pairs)
        for key in some:
            group = found.person if key["method"] == "node-dp" else found.paper_bound
            W = None if key["method"] == "euclid" else _learn(key, split, graph, group)
            scores = score(W, split, seed, n_pairs=TEST_PAIRS, knn_people=KNN_PEOPLE)
            yield {**scores, "kappa": group}


def _learn(key: Key, split: Split, graph: LabelledPairs, group: int) -> FloatArray:
    method, rng = key["method"], np.random.default_rng([key["seed"], key["max_people"], 2])
    start = _start(key, split, rng)
    if method == "untrained":
        return start
    plan = Settings(
        "nonpriv" if method == "inputper" else cast(Variant, method),
        epsilon=1.0 if method == "nonpriv" else float(key["epsilon"]),
        n_components=len(start),
        rho=key["rho"],
        kappa=group,
        epochs=key["epochs"],
    )
    learn = input_perturbation if method == "inputper" else algorithm1
    return rerun(split.X_train, graph, plan, rng, learn, start).W


def _start(key: Key, split: Split, rng: np.random.Generator) -> FloatArray:
    """W before the first step. PCA reads the people's features, in the paper's favour uncharged."""
    d = split.X_train.shape[1]
    rows = min(key["n_components"] or d, d)
    if key["start"] == "random":
        return untrained(split, rows, rng)
    if key["start"] == "identity":
        return np.eye(rows, d)
    directions: FloatArray = np.linalg.eigh(np.cov(split.X_train.T))[1].T[::-1]
    return directions[:rows]


def best_setting(check: Callable[[seen.Results], Finding], rows: Rows) -> Key:
    """The setting that favours a claim most."""
    groups: dict[tuple[Any, ...], Rows] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in GRID), []).append(row)
    favour = {at: check({"accuracy": {"rows": members}}).favour for at, members in groups.items()}
    best = max(favour, key=lambda at: favour[at])
    return dict(zip(GRID, best, strict=True))


def best_case(claim: str, rows: Rows) -> str:
    """What becomes of a claim at its best setting, in words ("" for one that was not searched)."""
    mine = [row for row in rows if row["claim"] == claim]
    if not mine:
        return ""
    finding, at = CHECKS[claim][0]({"accuracy": {"rows": mine}}), mine[0]
    epochs = f"{at['epochs']} epoch" + "s" * (at["epochs"] > 1)
    return (
        f"at its best setting ({at['start']} start, d' = {at['n_components'] or 'd'}, {epochs}, "
        f"rho = {at['rho']:g}): {finding.verdict} ({finding.favour:+.4f})"
    )
