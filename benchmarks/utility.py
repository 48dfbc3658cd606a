"""`python -m benchmarks utility`: what accuracy is kept at which epsilon, with one set of defaults.

The protocol is that of docs/theory/learner.md. The reference of a data set is the better of our own
non-private learner on the paper's graph and scikit-learn's supervised learners, which see every
training person's class.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from reproduction.data import EMBEDDED, available, data_folder, load
from reproduction.protocol import (
    How,
    LabelledPairs,
    Split,
    design,
    make_split,
    paper_graph,
    score,
    untrained,
)
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from threadpoolctl import threadpool_limits

from pairveil.evaluation.scores import gain_kept
from pairveil.files import write_file
from pairveil.graph.choosing import sample_tuples
from pairveil.learners.contrastive.learner import ContrastiveMetricLearner, DPPMetricLearner
from pairveil.learners.tuples import DPPTripletLearner
from pairveil.privacy.mechanisms import GAUSSIAN, LAPLACE, mechanism_named
from pairveil.privacy.units import ADJACENCIES
from pairveil.records.tupleset import TupleSet

DELTA = 1e-5
REFERENCES = ("non-private", "LDA", "NCA")
FIRST_SEED = 9100
FEW_PEOPLE = 2000
"""Of fewer, everybody is in 8 triples, else in 2: large tables have enough of them."""


@dataclass(frozen=True)
class Setting:
    """One private row of the table.

    'classes' is `fit_classes`: people with classes, no pairs given; a number: groups of so many; 'triples':
    comparisons of three people, drawn blind to classes.
    """

    method: str
    unit: Literal["pair", "relationship", "person"]
    pairs: How | Literal["paper", "classes", "triples"] | int
    epsilon: float
    mechanism: str = GAUSSIAN.name
    select: str = "all"
    adjacency: Literal["zero-out", "replace"] = "zero-out"


SETTINGS = (
    *(Setting("paths", "relationship", "paths", e) for e in (4.0, 1.0, 0.5, 0.1, 0.03, 0.01)),
    *(Setting("matching", "person", "matching", e) for e in (1.0, 0.1)),
    *(
        Setting("paths, pure epsilon", "relationship", "paths", e, LAPLACE.name)
        for e in (4.0, 1.0, 0.1)
    ),
    Setting("paper's graph, all pairs", "relationship", "paper", 1.0),
)
_OF_CLASSES: tuple[tuple[str, Literal["classes", "matching"]], ...] = (
    ("fit_classes", "classes"),
    ("matching", "matching"),
)
CLASS_SETTINGS = (
    *(
        Setting(method, "person", how, e)
        for method, how in _OF_CLASSES
        for e in (float("inf"), 8.0, 4.0, 1.0, 0.5, 0.1, 0.03)
    ),
    *(
        Setting(f"groups of {m}", "person", m, e)
        for m in (3, 8)
        for e in (float("inf"), 8.0, 4.0, 1.0)
    ),
    *(Setting("triples", "person", "triples", e) for e in (8.0, 4.0, 1.0)),
)
"""Person level, zero-out, where each person has a class; the same people in pairs stand beside it."""
GIVEN_SETTINGS = tuple(
    Setting(f"{select}, {adjacency}", "person", "paper", e, select=select, adjacency=adjacency)
    for select in ("matching", "paths", "groups")
    for adjacency in ADJACENCIES
    for e in (8.0, 4.0)
)
"""Person level, from given pairs (the paper's graph): which selection keeps most."""


def run(
    data: str | Path | None = None,
    seeds: int = 10,
    datasets: Sequence[str] | None = None,
    jobs: int = 2,
    out: str | Path | None = None,
    settings: Iterable[Setting] = SETTINGS,
    max_people: int | None = None,
    progress: Callable[[str], None] | None = None,
    first_seed: int = FIRST_SEED,
) -> dict[str, Any]:
    """Measure every setting on every data set.

    Parameters
    ----------
    data : path, optional
        Folder of benchmark files; the embedded tables are always measured too.
    seeds : int
        Repeats; each draws people, pairs, noise and test pairs anew.
    datasets : sequence of str, optional
        Names; default all.
    jobs : int
        Processes.
    out : path, optional
        Folder for ``utility.json``.
    max_people : int, optional
        Cut data sets down (quick runs).
    progress : callable, optional
        Told the name of each finished data set.
    first_seed : int
        Seeds count from here; no default was chosen on those from `FIRST_SEED` on.

    Returns ``rows``: dataset, method, unit, epsilon, delta, pair_auc (mean over seeds), pair_auc_interval
    (half width, 95 %), euclidean_pair_auc, reference_pair_auc, reference, gain_kept, gain_kept_interval,
    knn_accuracy, knn_balanced, seeds.
    """
    folder = data_folder(data)
    found = available(folder) if folder is not None else ()
    names = list(datasets or dict.fromkeys((*found, *EMBEDDED)))
    wanted = tuple(settings)
    rows: list[dict[str, Any]] = []
    for name in names:
        cells = Parallel(n_jobs=jobs)(
            delayed(_one_seed)(name, folder, seed, wanted, max_people)
            for seed in range(first_seed, first_seed + seeds)
        )
        rows += _summarise(name, cells)
        if progress is not None:
            progress(name)
    result = {"rows": rows, "seeds": seeds, "first_seed": first_seed, "delta": DELTA}
    if out is not None:
        _write(result, Path(out))
    return result


def _one_seed(
    name: str, folder: Path | None, seed: int, settings: tuple[Setting, ...], max_people: int | None
) -> dict[Any, dict[str, float]]:
    """Scores of every method and setting on one draw of people and pairs."""
    rng = np.random.default_rng([seed, 2020])
    split = make_split(load(name, folder), rng, max_people=max_people)
    graph = paper_graph(split, rng)
    metrics: dict[Any, NDArray[np.float64] | None] = {
        "Euclidean": None,
        "untrained": untrained(split, 4, rng),
    }
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner = ContrastiveMetricLearner(preprocessor=split.X_train, random_state=seed)
        metrics["non-private"] = learner.fit(graph.pairs, graph.labels).components_
        metrics |= _supervised(split, seed)
        for setting in settings:
            metrics[setting] = _private(setting, split, graph, seed, rng)
        return {key: score(found, split, seed, knn_people=2000) for key, found in metrics.items()}


def _private(
    setting: Setting, split: Split, graph: LabelledPairs, seed: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """The metric that one setting learns."""
    asked: dict[str, Any] = {
        "epsilon": setting.epsilon,
        "delta": DELTA,
        "unit": setting.unit,
        "adjacency": setting.adjacency,
        "mechanism": setting.mechanism,
        "preprocessor": split.X_train,
        "random_state": seed,
    }
    if setting.pairs == "classes" or isinstance(setting.pairs, int):
        listed = range(
            int(max(split.y_train.max(), split.y_test.max())) + 1
        )  # public with the file
        groups = "auto" if setting.pairs == "classes" else setting.pairs
        learner = DPPMetricLearner(**asked)
        return learner.fit_classes(split.X_train, split.y_train, listed, groups).components_
    if setting.pairs == "triples":
        most = 8 if split.n_people < FEW_PEOPLE else 2
        members = sample_tuples(split.n_people, 3, most, random_state=seed)
        triples = TupleSet.of_classes(split.X_train, members, split.y_train)
        return DPPTripletLearner(select="all", **asked).fit(triples).components_
    pairs = graph if setting.pairs == "paper" else design(split, setting.pairs, rng)
    learner = DPPMetricLearner(select=setting.select, **asked)
    return learner.fit(pairs.pairs, pairs.labels).components_


def _supervised(split: Split, seed: int) -> dict[str, NDArray[np.float64]]:
    """scikit-learn's learners that finish: LDA on everyone, NCA on 1,000 people."""
    lda = LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto").fit(
        split.X_train, split.y_train
    )
    n_directions = len(np.unique(split.y_train)) - 1
    some = np.random.default_rng(seed).permutation(split.n_people)[:1000]
    nca = NeighborhoodComponentsAnalysis(
        n_components=min(8, split.X_train.shape[1]), max_iter=30, random_state=seed
    ).fit(split.X_train[some], split.y_train[some])
    return {"LDA": lda.scalings_[:, :n_directions].T, "NCA": nca.components_}


def _summarise(name: str, cells: list[dict[Any, dict[str, float]]]) -> list[dict[str, Any]]:
    """Means and 95 % intervals over seeds; the reference is the best mean of `REFERENCES`."""

    def values(key: Any, what: str) -> NDArray[np.float64]:
        return np.array([cell[key][what] for cell in cells])

    euclid = values("Euclidean", "pair_auc")
    reference = max(REFERENCES, key=lambda key: float(values(key, "pair_auc").mean()))
    best = values(reference, "pair_auc")
    rows = []
    for key in cells[0]:
        auc = values(key, "pair_auc")
        # The ratio of means: a seed's own ratio explodes where the gain is small.
        kept = gain_kept(float(auc.mean()), float(euclid.mean()), float(best.mean()))
        spread = _interval(auc - euclid) / max(float((best - euclid).mean()), 1e-12)
        private = isinstance(key, Setting)
        rows.append(
            {
                "dataset": name,
                "method": key.method if private else key,
                "unit": key.unit if private else None,
                "mechanism": key.mechanism if private else None,
                "epsilon": key.epsilon if private else None,
                "delta": (0.0 if mechanism_named(key.mechanism).is_pure else DELTA)
                if private
                else None,
                "pair_auc": float(auc.mean()),
                "pair_auc_interval": _interval(auc),
                "euclidean_pair_auc": float(euclid.mean()),
                "reference": reference,
                "reference_pair_auc": float(best.mean()),
                "gain_kept": kept,
                "gain_kept_interval": spread,
                "worst_harm": float(np.max(euclid - auc)),
                "knn_accuracy": float(values(key, "knn_accuracy").mean()),
                "knn_balanced": float(values(key, "knn_balanced").mean()),
                "seeds": len(cells),
            }
        )
    return rows


def _interval(values: NDArray[np.float64]) -> float:
    """Half width of the 95 % interval of the mean (normal approximation)."""
    if len(values) < 2:
        return float("nan")
    return float(1.96 * values.std(ddof=1) / np.sqrt(len(values)))


def _write(result: dict[str, Any], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_file(folder / "utility.json", json.dumps(result, indent=1) + "\n")
