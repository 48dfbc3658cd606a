"""What a user relies on, as seeded scenarios: ``python scenarios.py OUT.json [WORD ...]``.

Words choose the scenarios whose names hold one of them.

Public names only, and nothing of this repository: the file is run on the reference version too.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import fields
from importlib.metadata import entry_points
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import pairveil as pv
from pairveil.linkage import PrivateLinkageModel

Scenario = Callable[[], Any]
MOST_NUMBERS = 400
"""Arrays up to this size are written down; of longer ones a digest, and their first numbers."""


# ---- data ---------------------------------------------------------------------------------------


def table(n: int = 90, d: int = 6, n_classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """People whose classes differ in two columns; rows of length 1 at most."""
    rng = np.random.default_rng(7)
    classes = np.arange(n) % n_classes
    X = 0.12 * rng.normal(size=(n, d))
    X[:, 0] += 0.5 * classes / n_classes
    X[:, 1] -= 0.3 * (classes % 2)
    X[:, -1] = np.where(rng.random(n) < 0.7, 0.0, X[:, -1])
    return X / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True)), classes


def graph(classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Paths with chords and a star: every selection keeps other pairs."""
    n = len(classes)
    rng = np.random.default_rng(3)
    path = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    chords = np.column_stack([np.arange(0, n - 4, 3), np.arange(4, n, 3)])
    star = np.column_stack([np.full(9, 5), np.arange(40, 49)])
    pairs = rng.permutation(np.concatenate([path, chords, star]))
    return pairs, np.where(classes[pairs[:, 0]] == classes[pairs[:, 1]], 1, -1)


X, CLASSES = table()
PAIRS, Y = graph(CLASSES)
FEATURES = {
    "dense": X,
    "single": X.astype(np.float32),
    "sparse": sparse.csr_array(np.where(np.abs(X) < 0.05, 0.0, X)),
}


# ---- what is kept of a result -----------------------------------------------------------------------


def numbers(values: Any) -> dict[str, Any]:
    """An array as shape, digest of its bytes and, where it is small, its numbers."""
    found = np.ascontiguousarray(np.asarray(values, dtype=np.float64))
    kept = found.ravel()[:MOST_NUMBERS].tolist()
    return {
        "shape": list(found.shape),
        "sha256": hashlib.sha256(found.tobytes()).hexdigest(),
        "values": kept,
    }


def certificate(one: Any) -> Any:
    """A certificate as its JSON, without versions."""
    if one is None:
        return None
    fields = json.loads(one.to_json())
    fields.pop("versions", None)
    return {**fields, "verified": list(one.verify().problems)}


def fitted(learner: Any, *names: str) -> dict[str, Any]:
    """Learned arrays and the certificate."""
    arrays: dict[str, Any] = {}
    for name in names:
        value = getattr(learner, name)
        arrays[name] = (
            [numbers(one) for one in value] if isinstance(value, list) else numbers(value)
        )
    return {**arrays, "certificate": certificate(learner.certificate_)}


# ---- learners ---------------------------------------------------------------------------------------


def of_pairs(**options: Any) -> Scenario:
    kind = options.pop("features", "dense")
    given = {"epsilon": 2.0, "n_steps": 8, "random_state": 0, **options}
    return lambda: fitted(
        pv.DPPMetricLearner(preprocessor=FEATURES[kind], **given).fit(PAIRS, Y), "components_"
    )


def of_classes(n_classes: int, groups: Any = "auto", **options: Any) -> Scenario:
    def run() -> Any:
        rows, y = table(n_classes=n_classes)
        learner = pv.DPPMetricLearner(random_state=0, **options)
        return fitted(learner.fit_classes(rows, y, range(n_classes), groups), "components_")

    return run


def of_tuples(name: str, size: int, **options: Any) -> Scenario:
    def run() -> Any:
        tuples = pv.sample_tuples(len(X), size, 3, random_state=0)
        learner = getattr(pv, name)(preprocessor=X, random_state=0, **options)
        return fitted(learner.fit(tuples), "components_")

    return run


def of_choices(**options: Any) -> Scenario:
    def run() -> Any:
        rng = np.random.default_rng(0)
        items = rng.integers(6, size=(240, 2))
        items = items[items[:, 0] != items[:, 1]]
        rows = [(f"w{k % 20}", min(pair), max(pair)) for k, pair in enumerate(items.tolist())]
        ranker = pv.PrivatePreferenceRanker(random_state=0, **options).fit(rows, 6)
        return fitted(ranker, "strengths_")

    return run


def of_links(**options: Any) -> Scenario:
    def run() -> Any:
        ml, cl = PAIRS[Y > 0], PAIRS[Y < 0]
        learner = pv.PrivateConstrainedKMeans(2, random_state=0, **options).fit(X, ml=ml, cl=cl)
        return fitted(learner, "labels_")

    return run


def of_levels(**options: Any) -> Scenario:
    def run() -> Any:
        rng = np.random.default_rng(0)
        levels = np.clip(rng.integers(-1, 3, size=(len(Y), 4)) + (Y > 0)[:, None], -1, 2)
        model = PrivateLinkageModel(random_state=0, **options)
        return fitted(model.fit(levels, Y, PAIRS, [3] * 4), "m_", "u_")

    return run


def of_scores(**options: Any) -> Scenario:
    def run() -> Any:
        rng = np.random.default_rng(0)
        scores = np.clip(0.5 + 0.2 * Y + 0.2 * rng.normal(size=len(Y)), 0, 1)
        given = {"epsilon": 4.0, "delta": 1e-3, **options}
        curve = pv.error_curve(scores, Y, PAIRS, score_range=(0, 1), random_state=0, **given)
        parts = {one.name: getattr(curve, one.name) for one in fields(curve)}
        stated = certificate(parts.pop("certificate"))
        arrays = {name: numbers(one) for name, one in parts.items() if isinstance(one, np.ndarray)}
        return {**parts, **arrays, "certificate": stated}

    return run


def of_search(**options: Any) -> Scenario:
    def run() -> Any:
        learner = pv.DPPMetricLearner(preprocessor=X, n_steps=4)
        search = pv.PrivateSearch(
            learner, {"n_components": [1, 2]}, epsilon=4.0, delta=1e-4, random_state=0, **options
        ).fit(PAIRS, Y)
        return {"best": search.best_params_, **fitted(search.best_estimator_, "components_")}

    return run


def audited(name: str, **options: Any) -> Scenario:
    def run() -> Any:
        from pairveil.audit import audit_exactly

        learner = getattr(pv, name)(**options)
        found = audit_exactly(learner, n_features=4)
        return {"verdict": found.verdict, "ratios": {q.name: q.ratio for q in found.queries}}

    return run


UNITS, ADJACENCIES, NOISES = (
    ("pair", "relationship", "person"),
    ("zero-out", "replace"),
    ("gaussian", "laplace"),
)


def learners() -> Iterator[tuple[str, Scenario]]:
    """Learner x unit x selection x mechanism x adjacency x features."""
    selections = ("paths", "forest", "matching", "all")
    for unit, select, noise, adjacency in product(UNITS, selections, NOISES, ADJACENCIES):
        options = {"unit": unit, "select": select, "mechanism": noise, "adjacency": adjacency}
        yield f"pairs {unit} {select} {noise} {adjacency}", of_pairs(**options)
    for kind, noise, unit in product(("single", "sparse"), NOISES, UNITS):
        yield f"pairs {kind} {noise} {unit}", of_pairs(features=kind, mechanism=noise, unit=unit)
    for more in (
        {"sample_rate": 0.2, "n_steps": 20}, {"sample_rate": 0.25, "sampling": "disjoint"},
        {"margin": "private"}, {"n_components": 2}, {"kappa": 3}, {"epsilon": 0.05, "delta": 1e-4},
        {"n_steps": "auto"}, {"epsilon": float("inf")}, {"epsilon": 0.1, "mechanism": "laplace"},
    ):  # fmt: skip
        yield f"pairs {more}", of_pairs(**more)
    for n_classes, epsilon, unit in product((2, 5), (0.05, 1.0, 8.0), ("person", "relationship")):
        yield (f"classes {n_classes} {epsilon} {unit}",
               of_classes(n_classes, epsilon=epsilon, delta=1e-4, unit=unit))  # fmt: skip
    for noise, adjacency in product(NOISES, ADJACENCIES):
        options = {"epsilon": 4.0, "delta": 1e-4, "mechanism": noise, "adjacency": adjacency}
        yield f"classes laplace {noise} {adjacency}", of_classes(3, unit="person", **options)
        yield f"groups {noise} {adjacency}", of_classes(2, 3, n_steps=6, **options)
        yield f"triplets {noise} {adjacency}", of_tuples("DPPTripletLearner", 3, **options)
        yield (
            f"tuplets {noise} {adjacency}",
            of_tuples("DPPTupletLearner", 5, unit="person", **options),
        )
        yield f"choices {noise} {adjacency}", of_choices(**options)
        yield f"links {noise} {adjacency}", of_links(**options)
        yield f"levels {noise} {adjacency}", of_levels(**options)
    for unit in UNITS:
        yield f"levels {unit}", of_levels(unit=unit)
        yield f"scores {unit}", of_scores(unit=unit)
        yield f"links {unit}", of_links(unit=unit, epsilon=4.0)
    yield "choices by choice", of_choices(unit="choice", epsilon=4.0)
    yield "scores replace", of_scores(adjacency="replace")
    yield "search", of_search()
    for unit, adjacency in product(UNITS, ADJACENCIES):
        for name in ("DPPMetricLearner", "DPPTripletLearner"):
            yield f"audit {name} {unit} {adjacency}", audited(name, unit=unit, adjacency=adjacency)
    yield "audit ranking", audited("PrivatePreferenceRanker")
    yield "audit clustering", audited("PrivateConstrainedKMeans", n_clusters=2)


def graphs() -> Iterator[tuple[str, Scenario]]:
    """kappa, selections and designs."""
    yield (
        "kappa",
        lambda: {
            name: int(getattr(pv.kappa(PAIRS), name))
            for name in ("pair", "relationship", "paper_bound", "person", "intransitive")
        },
    )
    for how in ("paths", "forest", "matching", "all"):
        yield f"select {how}", lambda how=how: pv.select_pairs(PAIRS, how, random_state=0).tolist()
        if how != "all":
            yield f"design {how}", lambda how=how: pv.design_pairs(30, how, random_state=0).tolist()


def ledgers() -> Iterator[tuple[str, Scenario]]:
    """Totals of several releases from one ledger, and the file that they leave."""

    def run(units: tuple[str, ...]) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "ledger.json"
            ledger = pv.PrivacyLedger(epsilon=30.0, delta=1e-3, path=path)
            data = pv.PairSet(X, PAIRS, Y, ids=[f"p{i}" for i in range(len(X))])
            for unit in units:
                pv.DPPMetricLearner(epsilon=1.0, n_steps=4, unit=unit, accountant=ledger,
                                    random_state=0).fit(data)  # fmt: skip
            stored, spent = json.loads(path.read_text()), ledger.spent()
        entries = stored.get("entries", stored)
        return {"spent": spent, "entries": without(entries, "time", "at", "when", "id", "date")}

    yield "ledger one", lambda: run(("relationship",))
    yield "ledger three units", lambda: run(UNITS)


def without(value: Any, *names: str) -> Any:
    """A JSON value without some keys, at any depth."""
    if isinstance(value, dict):
        return {key: without(one, *names) for key, one in value.items() if key not in names}
    return [without(one, *names) for one in value] if isinstance(value, list) else value


def networks() -> Iterator[tuple[str, Scenario]]:
    """Networks of all kinds of records, where torch is installed."""
    try:
        import torch

        from pairveil.deep import PrivateMetricTrainer
    except ImportError:
        return
    torch.set_num_threads(1)

    def trained(given: tuple[Any, ...], **options: Any) -> Any:
        torch.manual_seed(0)
        net = torch.nn.Sequential(
            torch.nn.Linear(X.shape[1], 5), torch.nn.Tanh(), torch.nn.Linear(5, 2)
        )
        options = {"epsilon": 4.0, "n_steps": 4, "micro_batch": 32, "random_state": 0, **options}
        return PrivateMetricTrainer(net, **options).fit(*given)

    def run(given: tuple[Any, ...], **options: Any) -> Any:
        learner = trained(given, **options)
        return {
            "embedded": numbers(learner.transform(X.astype(np.float32))),
            "certificate": certificate(learner.certificate_),
        }

    rows = X.astype(np.float32)
    pairs = (PAIRS, Y, rows)
    for unit, adjacency in product(UNITS, ADJACENCIES):
        options = {"unit": unit, "adjacency": adjacency}
        yield f"deep pairs {unit} {adjacency}", lambda options=options: run(pairs, **options)
    for more in (
        {"sample_rate": 0.3}, {"select": "all"}, {"select": "groups"}, {"loss": "cosine"},
        {"autocast": "bfloat16"}, {"epsilon": float("inf")},
    ):  # fmt: skip
        yield f"deep pairs {more}", lambda more=more: run(pairs, **more)
    triplets = pv.sample_tuples(len(X), 3, 2, random_state=0)
    for unit in UNITS:
        yield (
            f"deep triplets {unit}",
            lambda unit=unit: run((triplets, None, rows), loss="triplet", unit=unit),
        )
    yield "page network", lambda: page_of(trained(pairs))


def pages() -> Iterator[tuple[str, Scenario]]:
    """Pages of what the command line does not fit."""
    rng = np.random.default_rng(0)
    items = rng.integers(6, size=(240, 2))
    items = items[items[:, 0] != items[:, 1]]
    rows = [(f"w{k % 20}", *pair) for k, pair in enumerate(items.tolist())]
    ranker = pv.PrivatePreferenceRanker(epsilon=4.0, random_state=0)
    yield "page ranking", lambda: page_of(ranker.fit(rows, 6))
    links = {"ml": PAIRS[Y > 0], "cl": PAIRS[Y < 0]}
    clusters = pv.PrivateConstrainedKMeans(2, epsilon=4.0, random_state=0)
    yield "page clusters", lambda: page_of(clusters.fit(X, **links))


def page_of(learner: Any) -> Any:
    """What the report command makes of a learner's release."""

    def act() -> Any:
        learner.release("release")
        found = run_command("report release -o page.html --json")
        found["stdout"] = without(found["stdout"], "bytes")
        found["files"] = sorted(path.name for path in Path("release").iterdir())
        return {**found, "page": page_text(Path("page.html").read_text())}

    return elsewhere(act)


def clusters() -> Iterator[tuple[str, Scenario]]:
    """The same fits with the workers of a Dask cluster, where dask is installed."""
    try:
        from distributed import Client
    except ImportError:
        return

    def run() -> Any:
        with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None):
            return {
                "pairs": of_pairs(backend="dask")(),
                "sampled": of_pairs(backend="dask", sample_rate=0.2)(),
                "triplets": of_tuples("DPPTripletLearner", 3, epsilon=4.0, backend="dask")(),
            }

    yield "dask", run


# ---- the command line -------------------------------------------------------------------------------


FIT = "fit people.csv pairs.csv --no-scale --seed 0"
LINK = "link levels.csv labels.csv --seed 0"
POINT = "threshold scores.csv --score-range 0,1 --epsilon 4 --fmr 0.3 --seed 0"
PAGE = "report release -o page.html"
LISTED = "--classes class --class-list a,b --no-scale"
TRIPLETS = (
    "fit people.csv triplets.csv --learner triplet --no-scale --epsilon 8 --seed 0 --out release"
)
COMMANDS: dict[str, str] = {
    "kappa": "kappa pairs.csv --json",
    "kappa words": "kappa pairs.csv",
    "select": "select pairs.csv --how paths --seed 0 -o kept.csv --json",
    "select matching": "select pairs.csv --how matching --seed 0 -o kept.csv --json",
    "design": "design --people 20 --how paths -o design.csv --json --seed 0",
    "account": "account --kappa 3 --sample-rate 0.1 --noise-multiplier 4 --steps 100 --delta 1e-5 --json",
    "account replace": "account --kappa 2 --noise-multiplier 9 --steps 9 --delta 1e-5 --adjacency replace",
    "schema": "schema people.csv -o schema.toml --json",
    "fit": "fit people.csv pairs.csv --no-scale --seed 0 --out release --json",
    "fit words": "fit people.csv pairs.csv --no-scale --seed 0 --out release",
    "fit person": "fit people.csv pairs.csv --no-scale --seed 0 --unit person --out release --json",
    "fit matching": "fit people.csv pairs.csv --no-scale --seed 0 --select matching --out release --json",
    "fit laplace": "fit people.csv pairs.csv --no-scale --seed 0 --mechanism laplace --out release --json",
    "fit replace": "fit people.csv pairs.csv --no-scale --seed 0 --adjacency replace --out release --json",
    "fit ledger": "fit people.csv pairs.csv --no-scale --seed 0 --ledger l.json --budget 3 --out r --json",
    "fit classes": "fit classes.csv --classes class --no-scale --seed 0 --epsilon 4 --out release --json",
    "fit unit norm": "fit people.csv pairs.csv --no-scale --data-norm 0.5 --seed 0 --out release --json",
    "plan": "plan people.csv pairs.csv --json",
    "certificate": "certificate release --json",
    "certificate words": "certificate release",
    "certificate pairs": "certificate release --pairs pairs.csv --json",
    "transform": "transform release people.csv -o projected.csv --json",
    "evaluate": "evaluate release classes.csv --classes class --json",
    "export csv": "export release --to csv -o metric.csv --json",
    "export sql": "export release --to sql -o metric.sql --json",
    "report": "report release -o page.html --json",
    "link": "link levels.csv labels.csv --seed 0 --out linkage --json",
    "threshold": "threshold release people.csv pairs.csv --epsilon 4 --fmr 0.3 --seed 0 --json",
    "audit exact": "audit --exact --json",
    "audit target": "audit --target gaussian --runs 400 --json",
    "no command": "nonsense",
    "no file": "fit nobody.csv pairs.csv --out release",
    "no folder": "certificate nowhere --json",
    "zero labels": "kappa zero.csv --json",
    "fit zero labels": "fit people.csv zero.csv --no-scale --out release",
    "self pair": "kappa self.csv",
    "unknown id": "fit people.csv unknown.csv --no-scale --out release",
    "bad label": "fit people.csv label.csv --no-scale --out release",
    "bad number": "fit broken.csv pairs.csv --no-scale --out release",
    "bad unit": "fit people.csv pairs.csv --unit household --out release",
    "bad epsilon": "fit people.csv pairs.csv --no-scale --epsilon -1 --out release",
    "no scale": "fit people.csv pairs.csv --out release",
    "budget": "fit people.csv pairs.csv --no-scale --seed 0 --ledger ledger.json --budget 0.5 --out release",
    "export nothing": "export release --to nonsense -o x",
    "transform columns": "transform release pairs.csv -o out.csv",
    "kappa label": "kappa pairs.csv --label label",
    "select groups": "select pairs.csv --how groups --seed 0 -o kept.csv",
    "design ids": "design --ids people.csv --how matching --seed 0 -o design.csv",
    "fit dry run": f"{FIT} --dry-run --out release",
    "fit forest": f"{FIT} --select forest --unit person --out release --json",
    "fit groups": f"{FIT} --select groups --epsilon 8 --out release --json",
    "fit together": "fit wards.csv pairs.csv --no-scale --seed 0 --together ward --unit person --out r",
    "fit class groups": f"fit classes.csv {LISTED} --groups 3 --epsilon 4 --seed 0 --out release --json",
    "fit columns": "fit people.csv pairs.csv --no-scale --columns c0,c1 --seed 0 --out release --json",
    "fit triplets": f"{TRIPLETS} --json",
    "fit kappa": "fit people.csv pairs.csv --no-scale --select all --kappa 1 --out release",
    "fit no pairs": "fit people.csv --no-scale --out release",
    "fit swapped": "fit pairs.csv people.csv --no-scale --out release",
    "fit twice": "fit twice.csv pairs.csv --no-scale --out release",
    "fit delta": "fit people.csv pairs.csv --no-scale --delta 0 --out release",
    "fit components": "fit people.csv pairs.csv --no-scale --n-components 9 --out release",
    "fit selection": "fit people.csv pairs.csv --no-scale --select stars --out release",
    "fit tuple id": "fit people.csv strange.csv --learner triplet --no-scale --out release",
    "fit second": f"{FIT} --out release --json && fit people.csv pairs.csv --no-scale --out release",
    "plan classes": "plan classes.csv --classes class --class-list a,b --epsilon 1 --json",
    "plan words": "plan people.csv pairs.csv --epsilon 1",
    "link words": f"{LINK} --unit person --out linkage",
    "link entity": f"{LINK} --unit entity --entity-records 2 --out linkage --json",
    "threshold scores": f"{POINT} --json",
    "threshold range": "threshold scores.csv --epsilon 4 --fmr 0.3 --seed 0",
    "evaluate private": "evaluate release people.csv --pairs pairs.csv --epsilon 2 --seed 0 --json",
    "audit learner": "audit --exact --learner triplet --unit person --adjacency replace --json",
    "audit ranking": "audit --exact --learner ranking --unit worker --json",
    "attack": "attack --json",
    "certificate linkage": f"{LINK} --out linkage --json && certificate linkage",
    "fit ranking": "fit people.csv pairs.csv --learner ranking --no-scale --out release",
    "report nothing": "report nowhere -o page.html",
    "report classes": f"fit classes.csv {LISTED} --epsilon 4 --seed 0 --out release && {PAGE}",
    "report groups": f"{FIT} --select groups --epsilon 8 --out release && {PAGE}",
    "report triplets": f"{TRIPLETS} && {PAGE}",
    "report linkage": f"{LINK} --out linkage && report linkage -o page.html",
    "report curve": f"{POINT} -o curve && report curve -o page.html",
    "report both": f"{LINK} --out linkage && threshold linkage levels.csv labels.csv --epsilon 4 --fmr 0.3 "
    "--seed 0 -o curve && report linkage --threshold curve -o page.html",
    "report evaluated": f"{FIT} --out release && evaluate release people.csv --pairs pairs.csv --epsilon 2 "
    "--seed 0 -o score.json && report release --evaluation score.json -o page.html",
    "report test": f"{FIT} --out release && report release --public-test classes.csv "
    "--test-classes class --title Wards -o page.html",
}
NEEDS_RELEASE = (
    "certificate release",
    "transform",
    "evaluate",
    "export",
    "report release",
    "threshold release",
)


def written(folder: Path) -> None:
    """The files that the commands read."""
    names = [f"p{i:03d}" for i in range(len(X))]
    rows = [",".join(["id", *(f"c{j}" for j in range(X.shape[1])), "class"])]
    rows += [f"{name},{','.join(map(repr, row.tolist()))},{'ab'[kind]}" for name, row, kind in
             zip(names, X, CLASSES, strict=True)]  # fmt: skip
    (folder / "classes.csv").write_text("\n".join(rows) + "\n")
    rows = [row.rpartition(",")[0] for row in rows]
    (folder / "people.csv").write_text("\n".join(rows) + "\n")
    (folder / "broken.csv").write_text(
        "\n".join([*rows[:9], rows[9].replace(",0.", ",x.", 1), *rows[10:]])
    )
    said = {1: "same", -1: "different"}
    lines = [
        f"{names[a]},{names[b]},{said[y]}"
        for (a, b), y in zip(PAIRS.tolist(), Y.tolist(), strict=True)
    ]
    for name, more in {
        "pairs": [], "self": ["p001,p001,same"], "unknown": ["p001,q9,same"], "label": ["p003,p009,perhaps"],
    }.items():  # fmt: skip
        (folder / f"{name}.csv").write_text("\n".join(["left,right,label", *lines, *more]) + "\n")
    zero = [
        f"{names[a]},{names[b]},{int(y > 0)}"
        for (a, b), y in zip(PAIRS.tolist(), Y.tolist(), strict=True)
    ]
    (folder / "zero.csv").write_text("\n".join(["left,right,label", *zero]) + "\n")
    rng = np.random.default_rng(0)
    levels = rng.integers(0, 3, size=(len(Y), 3))
    (folder / "levels.csv").write_text("\n".join(["left,right,name,birth,town"] + [
        f"{names[a]},{names[b]},{','.join(map(str, row))}"
        for (a, b), row in zip(PAIRS.tolist(), levels.tolist(), strict=True)]) + "\n")  # fmt: skip
    (folder / "labels.csv").write_text("\n".join(["left,right,label", *lines]) + "\n")
    scores = np.clip(0.5 + 0.2 * Y + 0.2 * rng.normal(size=len(Y)), 0, 1).round(3)
    (folder / "scores.csv").write_text("\n".join(["left,right,label,score"] + [
        f"{line},{score}" for line, score in zip(lines, scores.tolist(), strict=True)]) + "\n")  # fmt: skip
    wards = [f"{row},w{place // 3}" for place, row in enumerate(rows[1:])]
    (folder / "wards.csv").write_text("\n".join([f"{rows[0]},ward", *wards]) + "\n")
    (folder / "twice.csv").write_text("\n".join([*rows, rows[7]]) + "\n")
    triplets = [",".join(names[i] for i in (a, a + 2, a + 1)) for a in range(0, len(X) - 2, 2)]
    for name, more in {"triplets": [], "strange": ["p001,p002,q9"]}.items():
        text = "\n".join(["anchor,positive,negative", *triplets, *more])
        (folder / f"{name}.csv").write_text(text + "\n")


def run_command(words: str) -> dict[str, Any]:
    """Exit code, stdout and stderr of a command in this process."""
    (found,) = (one for one in entry_points(group="console_scripts") if one.name == "pairveil")
    main, out, err = found.load(), io.StringIO(), io.StringIO()
    before, code = sys.argv, 0
    sys.argv = ["pairveil", *words.split()]
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("default")
            main()
    except SystemExit as stop:
        code = int(stop.code or 0)
    finally:
        sys.argv = before
    text = out.getvalue()
    try:
        said: Any = without(
            json.loads(text), "versions", "metric_sha256"
        )  # safetensors orders keys at random
    except ValueError:
        said = text.split("\n")
    return {"exit": code, "stdout": said, "stderr": err.getvalue().split("\n")}


def commands() -> Iterator[tuple[str, Scenario]]:
    """Transcripts of the real entry point."""
    os.environ.update(COLUMNS="100", NO_COLOR="1", TERM="dumb")

    def run(words: str) -> Any:
        def act() -> Any:
            written(Path())
            *before, last = words.split(" && ")
            if words.startswith(NEEDS_RELEASE):
                before = ["fit people.csv pairs.csv --no-scale --seed 0 --out release --json"]
            for one in before:
                run_command(one)
            found = run_command(last)
            if last.startswith("report") and Path("page.html").exists():
                found["page"] = page_text(Path("page.html").read_text())
            made = sorted(str(p) for p in Path().rglob("*") if p.is_file())
            found["files"] = [one for one in made if not one.endswith(".lock")]
            return found

        return elsewhere(act)

    for name, words in COMMANDS.items():
        yield f"command {name}", lambda words=words: run(words)


def elsewhere(act: Scenario) -> Any:
    """What something gives in an empty folder, whose name is left out of it."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            found = json.dumps(act())
        finally:
            os.chdir(here)
    return json.loads(found.replace(folder, "FOLDER"))


def page_text(page: str) -> dict[str, list[str]]:
    """The words of a page, a line a block, and which numbers are in them, wherever they stand."""
    page = re.sub(r"<(script|style|svg)\b.*?</\1>", " ", page, flags=re.S)
    lines = re.sub(r"<[^>]+>", "\n", page).split("\n")
    words = [" ".join(line.split()) for line in lines if line.strip()]
    words = [re.sub(r"\b[0-9a-f]{64}\b", "SHA256", line) for line in words]
    figures = re.findall(r"\d[\d,]*(?:\.\d+)?(?:e[-+]\d+)?", " ".join(words))
    return {"words": words, "numbers": sorted(set(figures))}


def stored() -> Iterator[tuple[str, Scenario]]:
    """Releases of earlier versions are read and verified."""
    root = Path(os.environ.get("NET_STORED", "tests/stored"))
    for folder in sorted(path.parent for path in root.rglob("metric.safetensors")):
        yield (
            f"stored {folder.relative_to(root)}",
            lambda folder=folder: {
                "certificate": certificate(pv.ReleasedMetric.load(folder).certificate),
                "components": numbers(pv.ReleasedMetric.load(folder).components),
            },
        )


def main(out: str, *wanted: str) -> None:
    """Run the scenarios, write what they gave."""
    found: dict[str, Any] = {}
    for make in (graphs, learners, networks, clusters, ledgers, stored, commands, pages):
        for name, scenario in make():
            if wanted and not any(word in name for word in wanted):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    found[name] = scenario()
                except Exception as problem:
                    found[name] = {"error": type(problem).__name__, "message": str(problem)}
    Path(out).write_text(json.dumps(found, indent=1, default=str))


if __name__ == "__main__":
    main(*sys.argv[1:])
