"""Run the pair learner on many tables, and keep what it gained at which public numbers.

``python -m tools.expected_runs --data DIR`` fills ``benchmarks/results/expected.json``; tables that stand
there are not run again. With ``--classes`` `fit_classes` is run and ``expected_classes.json`` filled;
what there is to gain is taken from the first. `tools.expected_ranges` makes of them what ``plan`` and
``fit`` say is to be expected. The protocol is that of ``python -m benchmarks utility``
(docs/theory/learner.md), on seeds that chose no default.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.tables import (
    Table,
    benchmark,
    bundled,
    by_sex,
    changed,
    odd_or_even,
    stored,
    unscaled,
    with_noise,
)
from benchmarks.utility import DELTA, Setting
from reproduction.data import Benchmark
from reproduction.protocol import Split, design, make_split, paper_graph
from sklearn import datasets
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from threadpoolctl import threadpool_limits

from pairveil.evaluation.scores import pair_auc
from pairveil.files import write_file
from pairveil.learners.contrastive.learner import ContrastiveMetricLearner, DPPMetricLearner
from pairveil.learners.outlook import strength_of, was_measured

RESULTS = Path("benchmarks/results/expected.json")
CLASS_RESULTS = Path("benchmarks/results/expected_classes.json")
SEEDS = (700, 701, 702)
TEST_PAIRS = 50_000

SETTINGS = (
    *(Setting("paths", "relationship", "paths", e) for e in (0.03, 0.1, 0.3, 1.0, 3.0, 8.0)),
    *(Setting("matching", "person", "matching", e) for e in (0.1, 1.0, 4.0)),
    *(Setting("given", "relationship", "paper", e, select="paths") for e in (0.1, 1.0, 4.0)),
    Setting("given, all pairs", "relationship", "paper", 1.0),
    Setting("given", "person", "paper", 4.0, select="matching"),
    *(Setting("pure", "relationship", "paths", e, "laplace") for e in (0.1, 1.0, 4.0, 8.0)),
    Setting("pure", "person", "matching", 4.0, "laplace"),
)

CLASS_SETTINGS = (
    *(Setting("fit_classes", "person", "classes", e) for e in (0.1, 0.3, 1.0, 3.0, 8.0)),
    *(Setting("fit_classes", "person", "classes", e, "laplace") for e in (0.3, 1.0, 4.0)),
)


def permuted(table: Benchmark) -> Benchmark:
    """Nothing can be learned."""
    return replace(table, classes=np.random.default_rng(700).permutation(table.classes))


def drawn(number: int) -> Table:
    """A synthetic table whose size, classes and difficulty are drawn."""
    rng = np.random.default_rng([700, number])
    d, n = int(2 ** rng.uniform(2.5, 7)), int(2 ** rng.uniform(9.5, 14.5))
    classes = int(rng.choice([2, 2, 2, 3, 5, 10]))
    least = int(np.ceil(np.log2(classes))) + 1
    informative = int(rng.integers(least, max(least + 1, min(d, 12)) + 1))
    sep = float(rng.uniform(0.4, 1.6))

    def make(folder: Path | None) -> Benchmark:
        del folder
        X, y = datasets.make_classification(
            n, d, n_informative=min(informative, d), n_redundant=0, n_classes=classes,
            n_clusters_per_class=1, class_sep=sep, flip_y=0.05, random_state=number,
        )  # fmt: skip
        return benchmark(f"drawn {number}", X, y)

    return Table(f"drawn {number}", f"drawn {number}", make)


def _named(name: str, table: Table) -> Table:
    """A table under the name that its runs were kept under."""
    return replace(table, name=name)


TABLES = (
    *(stored("adult", n) for n in (None, 1500, 5000)),
    _named("adult, sex", changed("adult", by_sex, people=4000)),
    _named("adult, classes permuted", changed("adult", permuted, people=4000)),
    *(stored("bank", n) for n in (None, 1500, 4000)),
    changed("bank", unscaled),
    *(stored("ipums_br", n) for n in (None, 2000, 8000)),
    stored("breast_cancer"),
    changed("breast_cancer", unscaled),
    _named("breast_cancer, noise columns", changed("breast_cancer", with_noise)),
    stored("digits"),
    changed("digits", odd_or_even),
    bundled("wine"),
    bundled("iris"),
    _named("diabetes", bundled("diabetes")),
    *(drawn(number) for number in range(12)),
)


def run(table: Table, folder: Path | None, n_seeds: int = 3) -> dict[str, Any]:
    """Every setting and seed on one table.

    ``reference``: what the better of LDA and the learner without privacy gains in pair AUC over Euclid, by
    seed; ``runs``: setting, seed, pairs used, strength of the budget, gain in AUC over Euclid.
    """
    seen = table.make(folder)
    best: dict[str, list[float]] = {"non-private": [], "LDA": []}
    runs = []
    for seed in SEEDS[:n_seeds]:
        rng = np.random.default_rng([seed, 2020])
        split = make_split(seen, rng, max_people=table.max_people)
        graph = paper_graph(split, rng)
        gain = gain_on(split, seed)
        learner = ContrastiveMetricLearner(preprocessor=split.X_train)
        best["non-private"].append(gain(learner.fit(graph.pairs, graph.labels).components_))
        lda = LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto")
        lda.fit(split.X_train, split.y_train)
        best["LDA"].append(gain(lda.scalings_[:, : len(lda.classes_) - 1].T))
        for number, setting in enumerate(SETTINGS):
            pairs = graph if setting.pairs == "paper" else design(split, setting.pairs, rng)  # type: ignore[arg-type]
            private = DPPMetricLearner(
                epsilon=setting.epsilon, delta=DELTA, unit=setting.unit, select=setting.select,
                mechanism=setting.mechanism, preprocessor=split.X_train, random_state=seed,
            ).fit(pairs.pairs, pairs.labels)  # fmt: skip
            strength = float(f"{strength_of(private.certificate_):.4g}")
            auc = round(gain(private.components_), 5)
            runs.append([number, seed, private.n_pairs_used_, strength, auc])
    reference = max(best, key=lambda name: float(np.mean(best[name])))
    return {
        "table": table.name,
        "family": table.family,
        "n_features": split.X_train.shape[1],
        "n_classes": int(seen.classes.max()) + 1,
        "reference": [round(g, 5) for g in best[reference]],
        "runs": runs,
    }


def run_classes(table: Table, folder: Path | None, known: dict[str, Any]) -> dict[str, Any]:
    """`fit_classes` in every setting on a table whose reference is known; people used instead of pairs."""
    seen = table.make(folder)
    listed, runs = range(known["n_classes"]), []
    for seed in SEEDS[:2]:
        split = make_split(seen, np.random.default_rng([seed, 2020]), max_people=table.max_people)
        gain = gain_on(split, seed)
        for number, setting in enumerate(CLASS_SETTINGS):
            private = DPPMetricLearner(
                epsilon=setting.epsilon, delta=DELTA, unit=setting.unit, mechanism=setting.mechanism,
                random_state=seed,
            ).fit_classes(split.X_train, split.y_train, listed)  # fmt: skip
            made = private.certificate_
            assert made is not None
            if was_measured(made) and made.records == "people":  # pairs have a range of their own
                strength = float(f"{strength_of(made):.4g}")
                auc = round(gain(private.components_), 5)
                runs.append([number, seed, made.n_pairs_used, strength, auc])
    return {**known, "runs": runs}


def gain_on(split: Split, seed: int, n_pairs: int = TEST_PAIRS) -> Callable[[Any], float]:
    """Pair AUC above Euclid's on the test people."""
    at = (split.X_test, split.y_test, n_pairs, seed)
    euclid = pair_auc(None, *at)
    return lambda components: pair_auc(components, *at) - euclid


def main() -> None:
    """Run the tables that are not there yet."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="folder with adult.npz, bank.npz, ipums_br.npz")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after so long")
    parser.add_argument("--seeds", type=int, default=3, help="of pairs; at most 3")
    parser.add_argument("--classes", action="store_true", help="fit_classes instead of pairs")
    asked = parser.parse_args()
    end = time.monotonic() + asked.seconds
    file, chosen = (CLASS_RESULTS, CLASS_SETTINGS) if asked.classes else (RESULTS, SETTINGS)
    done = json.loads(file.read_text())["tables"] if file.exists() else []
    known = (
        {one["table"]: one for one in json.loads(RESULTS.read_text())["tables"]}
        if asked.classes
        else {}
    )
    there = {one["table"] for one in done}
    for table in [t for t in TABLES if t.name not in there]:
        if time.monotonic() > end:
            break
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if asked.classes:
                done.append(run_classes(table, asked.data, known[table.name]))
            else:
                done.append(run(table, asked.data, asked.seeds))
        settings = [[s.method, s.unit, s.epsilon, s.mechanism] for s in chosen]
        content = {"settings": settings, "tables": done}
        write_file(file, json.dumps(content).replace('{"table"', '\n{"table"') + "\n")
        print(table.name)


if __name__ == "__main__":
    main()
