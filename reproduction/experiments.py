"""The paper's Figs. 6 to 10 measured again, at any setting of what the paper leaves open.

A *setting* holds every choice that the text does not make; a figure is a list of cells, and ``measure`` fills
one. The steelman runs the same figures at other settings. Stated in the paper and so no part of a setting:
density 2, h 0.5, |B| 50, rho 1, k = 5, 20 repeats; one epoch in Fig. 9, three for h and |B| in Fig. 10; the
toy's epsilon 2, m 1, |B| 30 and ten epochs.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from pairveil.array_types import FloatArray
from pairveil.errors import DataWarning, PrivacyLeakWarning
from pairveil.evaluation.scores import pair_auc
from pairveil.graph.choosing import select_pairs
from pairveil.graph.kappa import Kappa, kappa
from pairveil.learners.contrastive.learner import DPPMetricLearner
from reproduction.baselines import Duchi, input_perturbation
from reproduction.cells import Key
from reproduction.data import Benchmark, load
from reproduction.field import greedy_bound
from reproduction.graphs import greedy_kappa
from reproduction.mechanisms import JointStaircase, ReducedLaplace, Staircase
from reproduction.protocol import (
    GraphKind,
    LabelledPairs,
    Split,
    by_component,
    design,
    draw_graph,
    labelled,
    make_split,
    score,
)
from reproduction.published import (
    Laplace,
    PublishedResult,
    Settings,
    Variant,
    algorithm1,
)
from reproduction.theorems import row_gradients

GRAPHS: tuple[GraphKind, ...] = ("random", "even")
FIGURES = ("toy", "accuracy", "mechanisms", "parameters")
PUBLISHED = ("dpp", "dpp-s", "node-dp", "inputper")
FIXED = ("euclid", "untrained", "nonpriv")
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
OUR_EPSILONS = (1.0, 4.0)
DELTA = 1e-5
#: Fig. 9's methods -> (variant, mechanism); Lap-S is Laplace with Theorem 2's sensitivity.
MECHANISMS: dict[str, tuple[Variant, Any]] = {
    "NonPriv": ("nonpriv", None),
    "Lap": ("dpp", Laplace),
    "Lap-S": ("dpp-s", ReducedLaplace),
    "SCDF": ("dpp", Staircase),
    "SCDF-joint": ("dpp", JointStaircase),
    "Duchi": ("dpp", Duchi),
}
MECHANISM_EPSILONS = (1.0, 4.0)
#: Fig. 10's panels -> (variant, values). Only h 0.5 and 2, |B| 50, rho 1 and 2, d' 16 and 32 are named.
PANELS: dict[str, tuple[Variant, tuple[float, ...]]] = {
    "h": ("dpp-s", (0.1, 0.25, 0.5, 1.0, 2.0)),
    "batch_size": ("dpp-s", (10, 25, 50, 100, 200)),
    "rho": ("nonpriv", (0.25, 0.5, 1.0, 2.0, 4.0)),
    "n_components": ("nonpriv", (2, 4, 8, 16, 32)),
}
BY_OBJECTIVE = ("h", "batch_size")
RECORDS, TOY_PAIRS = 40, 5_000


@dataclass(frozen=True)
class Setting:
    """One choice for everything that the paper leaves open; the defaults are the page's base setting.

    Parameters
    ----------
    graph : {"random", "even", "blocks"}
        `protocol.draw_graph`.
    start : {"gaussian", "uniform", "identity", "pca"}
        W before the first step: entries of variance 1/d', entries uniform in [0, 1], the first rows of the
        identity, principal directions of the people (in the paper's favour uncharged).
    n_components, epochs : int
        d' (0 is d) and T_max where the text names none.
    margin : {"l1", "l2"}
        Norm of the mean distance; the paper's notation says l1.
    step_rule, update, kappa_factor
        Readings of Algorithm 1 (`reproduction.published`).
    batches : {"any", "components"}
        From all pairs, or collected from a component of the graph (the remark after Theorem 2).
    kappa : {"bound", "greedy"}
        Appendix A's kappa', or what its greedy search gives.
    toy : {"drawn", "filled"}
        The toy's strips where Fig. 6 puts them, or stretched until they fill the unit ball.
    input_margin : {"noisy", "preset"}
        InputPer's m: from the pairs that its collector sees, or from the true ones as all others have it.
    """

    graph: GraphKind = "random"
    start: str = "gaussian"
    n_components: int = 16
    epochs: int = 3
    margin: str = "l1"
    step_rule: str = "sqrt"
    update: str = "rowwise"
    batches: str = "any"
    kappa_factor: str = "once"
    kappa: str = "bound"
    toy: str = "drawn"
    input_margin: str = "noisy"

    def __str__(self) -> str:
        words = {
            "start": f"{self.start} start",
            "n_components": f"d' = {self.n_components or 'd'}",
            "epochs": f"{self.epochs} epoch" + "s" * (self.epochs > 1),
            "margin": f"{self.margin} margin",
            "step_rule": f"{self.step_rule} steps",
            "update": f"{self.update} rows",
            "batches": "batches from components" if self.batches == "components" else "any batches",
            "kappa_factor": f"kappa {self.kappa_factor}",
            "kappa": f"kappa by {self.kappa}",
            "toy": f"toy {self.toy}",
            "input_margin": f"InputPer's margin {self.input_margin}",
        }
        base = Setting(self.graph)
        return f"{self.graph} graph, " + ", ".join(
            text for name, text in words.items()
            if name in ("start", "n_components", "epochs")
            or getattr(self, name) != getattr(base, name)
        )  # fmt: skip


#: What the steelman may choose from.
OPTIONS: dict[str, tuple[Any, ...]] = {
    "graph": ("random", "even", "blocks"),
    "start": ("gaussian", "uniform", "identity", "pca"),
    "n_components": (16, 4, 0),
    "epochs": (3, 1),
    "margin": ("l1", "l2"),
    "step_rule": ("sqrt", "recursive"),
    "update": ("rowwise", "simultaneous"),
    "batches": ("any", "components"),
    "kappa_factor": ("once", "twice"),
    "kappa": ("bound", "greedy"),
    "toy": ("drawn", "filled"),
}


@dataclass(frozen=True)
class Size:
    """How much is measured; the full size is the paper's, but for kNN on 5,000 random test people."""

    people: int | None = None
    test_pairs: int = 50_000
    knn_people: int = 5_000
    epsilons: tuple[float, ...] = EPSILONS
    mechanism_epsilons: tuple[float, ...] = MECHANISM_EPSILONS


FULL = Size()
QUICK = Size(people=400, test_pairs=5_000, knn_people=400)


def keys_of(
    figure: str, setting: Setting, sets: Mapping[str, int], seeds: Iterable[int], size: Size
) -> list[Key]:
    """The cells of a figure at one setting; ``sets`` are the data sets at hand, with their rows."""
    names = list(sets)
    if figure == "toy":
        chosen, cells = ["toy"], [{"variant": v} for v in ("nonpriv", "dpp", "dpp-s")]
    elif figure == "accuracy":
        chosen = names
        # JSON has no infinity: "none" stands for no privacy
        cells = [{"method": m, "epsilon": "none"} for m in FIXED]
        cells += [{"method": m, "epsilon": e} for e in size.epsilons for m in PUBLISHED]
    elif figure == "ours":
        chosen, cells = names, [{"method": "ours-relationship", "epsilon": e} for e in OUR_EPSILONS]
    elif figure == "bounds":
        chosen, cells = names, [{"method": m, "epsilon": 4.0} for m in ("greedy", "matching")]
    elif figure == "peaks":
        chosen, cells = [*names, "toy"], [{}]
    elif figure == "mechanisms":
        chosen = [name for name in ("adult", "bank") if name in names] or names[:1]
        cells = [{"method": m, "epsilon": e} for e in size.mechanism_epsilons for m in MECHANISMS]
    else:
        chosen = ["bank" if "bank" in names else names[0]]
        cells = [{"panel": p, "value": v} for p, (_, values) in PANELS.items() for v in values]
    measured = {"people": size.people, "test_pairs": size.test_pairs, "knn_people": size.knn_people}
    return [
        {"figure": figure, "data": name, "rows": sets.get(name, 0), "seed": seed, **measured,
         **asdict(_as_far_as_it_matters(figure, setting, cell)), **cell}
        for name in chosen for seed in seeds for cell in cells
    ]  # fmt: skip


def _as_far_as_it_matters(figure: str, setting: Setting, cell: Key) -> Setting:
    """The setting without what a cell does not depend on: cells are shared between settings."""
    base = Setting()
    kept = {f.name for f in fields(Setting)} - {"toy"}
    if cell.get("method") != "inputper":
        kept -= {"input_margin"}
    method = cell.get("method", cell.get("variant", ""))
    if figure == "toy":
        kept = {"graph", "start", "step_rule", "update", "batches", "toy"}
    elif figure == "bounds":
        kept = {"graph"}
    elif figure == "peaks":
        kept = {"graph", "start", "n_components", "margin"}
    elif figure == "ours" or method == "euclid":
        kept = set()
    elif method == "untrained":
        kept = {"start", "n_components"}
    elif method in ("nonpriv", "NonPriv", "inputper") or cell.get("panel") in (
        "rho",
        "n_components",
    ):
        kept -= {"kappa", "kappa_factor"}
    if figure == "mechanisms" or cell.get("panel") in BY_OBJECTIVE:
        kept -= {"epochs"}
    if cell.get("panel") == "n_components":
        kept -= {"n_components"}
    return Setting(**{name: getattr(setting, name) for name in kept}) if kept else base


# --- what is measured on ---------------------------------------------------------------------------


class Bed(NamedTuple):
    """One repeat: the people, their pairs, and the sizes of groups that the pairs imply."""

    split: Split
    graph: LabelledPairs
    kappa: Kappa
    greedy: int
    margins: dict[str, float]


@lru_cache(maxsize=4)
def _benchmark(name: str, folder: str | None) -> Benchmark:
    return load(name, folder)


@lru_cache(maxsize=6)
def bed(name: str, folder: str | None, kind: GraphKind, seed: int, people: int | None) -> Bed:
    """People, l1-normalised as the paper has them, and their pairs."""
    split = make_split(_benchmark(name, folder), np.random.default_rng([seed, 0]), "l1", people)
    return on_graph(split, draw_graph(split, kind, np.random.default_rng([seed, 1])))


def on_graph(split: Split, graph: LabelledPairs) -> Bed:
    """A bed of people and pairs that are given."""
    dx = split.X_train[graph.pairs[:, 0]] - split.X_train[graph.pairs[:, 1]]
    apart = dx[graph.labels < 0]
    margins = {
        name: float(np.linalg.norm(apart, ord=int(name[1]), axis=1).mean()) for name in ("l1", "l2")
    }
    return Bed(split, graph, kappa(graph.pairs), greedy_kappa(graph.pairs), margins)


def strips(rng: np.random.Generator, each: int = 100) -> tuple[FloatArray, NDArray[np.int64]]:
    """The toy: two parallel, elongated Gaussians of ``each`` points, inside the l1 unit ball."""
    classes = np.repeat([0, 1], each)
    along = rng.normal(0.0, 0.07, 2 * each)
    across = rng.normal(0.0, 0.012, 2 * each) + np.where(classes == 1, 0.03, -0.03)
    turn = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2)
    return np.array([0.3, 0.3]) + np.column_stack([along, across]) @ turn, classes


def acyclic_pairs(
    classes: NDArray[np.int64], rng: np.random.Generator, kind: GraphKind = "random", each: int = 50
) -> LabelledPairs:
    """``each`` pairs within class 0, within class 1 and between them, closing no cycle.

    'random' draws them one by one; 'even' pairs everybody within the class, then couples with couples.

    Examples
    --------
    >>> classes = np.repeat([0, 1], 100)
    >>> for kind in ("random", "even"):
    ...     graph = acyclic_pairs(classes, np.random.default_rng(0), kind)
    ...     print(len(graph.pairs), int((graph.labels == -1).sum()), kappa(graph.pairs).relationship)
    150 50 1
    150 50 1
    """
    if kind != "random":
        within = [rng.permutation(np.flatnonzero(classes == c))[: 2 * each] for c in (0, 1)]
        couples = [group.reshape(-1, 2) for group in within]
        between = np.column_stack([couple[:, 0] for couple in couples])
        return labelled(rng.permutation(np.concatenate([*couples, between])), classes)
    root = np.arange(len(classes))

    def find(v: int) -> int:
        while root[v] != v:
            v = root[v]
        return v

    chosen: list[tuple[int, int]] = []
    for first, second in ((0, 0), (1, 1), (0, 1)):
        wanted = len(chosen) + each
        while len(chosen) < wanted:
            a = int(rng.choice(np.flatnonzero(classes == first)))
            b = int(rng.choice(np.flatnonzero(classes == second)))
            if find(a) != find(b):
                root[find(a)] = find(b)
                chosen.append((a, b))
    return labelled(chosen, classes)


def toy_bed(setting: Setting, seed: int) -> Bed:
    """The toy's points and pairs of one repeat; nobody is left to test on."""
    rng = np.random.default_rng([seed, 0])
    X, classes = strips(rng)
    graph = acyclic_pairs(classes, rng, setting.graph)
    if setting.toy == "filled":
        X = X - X.mean(axis=0)
        X = X / np.abs(X).sum(axis=1).max()
    return on_graph(Split("toy", X, classes, X[:0], classes[:0]), graph)


# --- how it is measured ----------------------------------------------------------------------------


def start(setting: Setting, split: Split, n_components: int, seed: int) -> FloatArray:
    """W before the first step."""
    d, rng = split.X_train.shape[1], np.random.default_rng([seed, 4])
    rows = min(n_components or d, d)
    if setting.start == "gaussian":
        return rng.normal(scale=rows**-0.5, size=(rows, d))
    if setting.start == "uniform":
        return rng.random((rows, d))
    if setting.start == "identity":
        return np.eye(rows, d)
    directions: FloatArray = np.linalg.eigh(np.cov(split.X_train.T))[1].T[::-1]
    return directions[:rows]


def learn(here: Bed, setting: Setting, method: str, seed: int, **given: Any) -> PublishedResult:
    """A published learner as published; ``given`` are Algorithm 1's parameters for this cell."""
    W = start(setting, here.split, given.pop("n_components", setting.n_components), seed)
    group = here.kappa.paper_bound if setting.kappa == "bound" else here.greedy
    plan = Settings(
        "nonpriv" if method == "inputper" else cast(Variant, method),
        n_components=len(W),
        kappa=here.kappa.person if method == "node-dp" else group,
        step_rule=cast(Any, setting.step_rule),
        kappa_factor=cast(Any, setting.kappa_factor),
        update=cast(Any, setting.update),
        shuffle=setting.batches == "any",
        **{"epochs": setting.epochs, "margin": here.margins[setting.margin], **given},
    )
    graph = here.graph
    if setting.batches == "components":
        graph = by_component(graph, np.random.default_rng([seed, 5]))
    train = algorithm1
    if method == "inputper":
        train = input_perturbation
        if setting.input_margin == "noisy":
            plan = replace(plan, margin=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)  # what it leaks is the subject here
        rng = np.random.default_rng([seed, 3])
        return train(here.split.X_train, graph.pairs, graph.labels, plan, rng, W)


def measure(key: Key, folder: str | None) -> dict[str, Any]:
    """Fill one cell."""
    setting = Setting(**{f.name: key[f.name] for f in fields(Setting)})
    if key["figure"] == "toy":
        return _toy(key, setting)
    if key["figure"] in ("ours", "bounds"):
        return _ours(key, setting, folder)
    if key["figure"] == "peaks":
        return _peaks(key, setting, folder)
    if key.get("panel") == "n_components":
        setting = replace(setting, n_components=int(key["value"]))
    here = bed(key["data"], folder, setting.graph, key["seed"], key["people"])
    return {"accuracy": _accuracy, "mechanisms": _mechanism, "parameters": _parameter}[
        key["figure"]
    ](key, setting, here)


def _toy(key: Key, setting: Setting) -> dict[str, Any]:
    here = toy_bed(setting, key["seed"])
    result = learn(
        here, setting, key["variant"], key["seed"],
        epsilon=2.0, n_components=2, margin=1.0, h=0.5, batch_size=30, epochs=10, record_every=1,
    )  # fmt: skip
    return {
        "kappa": result.kappa,
        "objective": result.objective.tolist(),
        "sensitivity": result.sensitivity.tolist(),
        "theorem1": 2 * result.kappa * 0.5 / 30,
        "pair_auc": pair_auc(
            result.W, here.split.X_train, here.split.y_train, TOY_PAIRS, key["seed"]
        ),
        "pair_auc_before": pair_auc(
            None, here.split.X_train, here.split.y_train, TOY_PAIRS, key["seed"]
        ),
    }


def _peaks(key: Key, setting: Setting, folder: str | None) -> dict[str, Any]:
    """The largest clipped gradient over all pairs, of the row where it is least: g' of a full batch."""
    seed, toy = key["seed"], key["data"] == "toy"
    here = (
        toy_bed(setting, seed)
        if toy
        else bed(key["data"], folder, setting.graph, seed, key["people"])
    )
    W = start(setting, here.split, 2 if toy else setting.n_components, seed)
    margin = 1.0 if toy else here.margins[setting.margin]
    ends = here.split.X_train[here.graph.pairs]
    dx, y = ends[:, 0] - ends[:, 1], (here.graph.labels < 0).astype(np.float64)
    peaks = [
        np.abs(row_gradients(W, r, dx, y, margin, 0.5)).sum(axis=1).max() for r in range(len(W))
    ]
    return {"least": float(min(peaks))}


def _scores(W: FloatArray | None, key: Key, split: Split) -> dict[str, float]:
    return score(W, split, key["seed"], n_pairs=key["test_pairs"], knn_people=key["knn_people"])


def _accuracy(key: Key, setting: Setting, here: Bed) -> dict[str, Any]:
    method, seed = key["method"], key["seed"]
    if method == "euclid":
        return {**_scores(None, key, here.split), "kappa": 0}
    if method == "untrained":
        W = start(setting, here.split, setting.n_components, seed)
        return {**_scores(W, key, here.split), "kappa": 0}
    epsilon = 1.0 if key["epsilon"] == "none" else key["epsilon"]
    found = learn(here, setting, method, seed, epsilon=epsilon)
    return {**_scores(found.W, key, here.split), "kappa": found.kappa}


def _mechanism(key: Key, setting: Setting, here: Bed) -> dict[str, Any]:
    """The objective during one epoch.

    Noise alone changes it: it lengthens W, and longer distances cost dissimilar pairs less.
    """
    variant, mechanism = MECHANISMS[key["method"]]
    found = learn(
        here, setting, variant, key["seed"], epsilon=key["epsilon"], epochs=1, mechanism=mechanism,
        record_every=max(1, len(here.graph.pairs) // 50 // 25),
    )  # fmt: skip
    return {
        "kappa": found.kappa,
        "objective_end": float(found.objective[-1]),
        "at": found.objective_at.tolist(),
        "objective": found.objective.tolist(),
    }


def _parameter(key: Key, setting: Setting, here: Bed) -> dict[str, Any]:
    """One value of one parameter: h and |B| by the objective of a private run, the others by accuracy."""
    panel, value = key["panel"], key["value"]
    variant = PANELS[panel][0]
    if panel not in BY_OBJECTIVE:
        given = {"margin": value * here.margins[setting.margin]} if panel == "rho" else {}
        found = learn(here, setting, variant, key["seed"], **given)
        return {**_scores(found.W, key, here.split), "kappa": 0}
    batch = int(value) if panel == "batch_size" else 50
    steps = len(here.graph.pairs) // batch * 3
    found = learn(
        here, setting, variant, key["seed"], epsilon=4.0, epochs=3, batch_size=batch,
        h=value if panel == "h" else 0.5, record_every=max(1, steps // RECORDS),
    )  # fmt: skip
    return {
        "kappa": found.kappa,
        "objective_end": float(found.objective[-1]),
        # in epochs, so that batch sizes can be compared
        "at": (found.objective_at / found.objective_at[-1] * 3).tolist(),
        "objective": found.objective.tolist(),
    }


def _ours(key: Key, setting: Setting, folder: str | None) -> dict[str, Any]:
    """Our learner at its defaults on l2-normalised people.

    "ours-relationship" asks for labelled paths of its own, half as many pairs as the paper's. "matching" and
    "greedy" keep pairs of the paper's graph, at most one of a person, and promise epsilon to persons.
    """
    seed, how = key["seed"], key["method"]
    split = make_split(
        _benchmark(key["data"], folder), np.random.default_rng([seed, 0]), "l2", key["people"]
    )
    if how == "ours-relationship":
        graph = design(split, "paths", np.random.default_rng([seed, 2]))
    else:
        graph = draw_graph(split, setting.graph, np.random.default_rng([seed, 1]))
        chosen = greedy_bound(graph.pairs)
        if how == "matching":
            chosen = select_pairs(graph.pairs, "matching", random_state=seed)
        graph = LabelledPairs(graph.pairs[chosen], graph.labels[chosen])
    learner = DPPMetricLearner(
        epsilon=key["epsilon"], delta=DELTA, select="all", preprocessor=split.X_train, random_state=seed,
        unit="relationship" if how == "ours-relationship" else "person",
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # small tables are measured on purpose
        learner.fit(graph.pairs, graph.labels)
    proof = learner.certificate_
    assert proof is not None
    return {
        **_scores(learner.components_, key, split),
        "kappa": learner.kappa_,
        "kept": len(graph.pairs),
        "people_in": split.n_people,
        "epsilon_sound": proof.epsilon,
        "epsilon_replace": proof.epsilons["relationship"]["replace"],
    }
