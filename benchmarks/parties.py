"""`python -m benchmarks parties`: what learning together costs, and what it brings.

Every party is a thread of one process, with all messages that it would send; so times are those of the work
of all parties together, without a network. Utility: three hospitals with equal shares of a table's people,
together and each alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from reproduction.data import load
from reproduction.protocol import Split, make_split, score

from benchmarks.measuring import machine
from pairveil.graph.choosing import design_pairs
from pairveil.learners.contrastive.learner import DPPMetricLearner
from pairveil.parties import simulate
from pairveil.parties.rehearsal import line
from pairveil.privacy.compose import epsilon_from_mu, mu_from_epsilon
from pairveil.records.embedded import label_pairs
from pairveil.records.pairset import PairSet

DELTA = 1e-5
N_PAIRS, N_FEATURES = 30 * 512, 30
DATA = ("adult", "bank")
HOSPITALS = 3
Report = Callable[[str], None] | None


def run(data: Path | None, seeds: int, people: int, report: Report = None) -> dict[str, Any]:
    """Overhead for several numbers of parties, utility on two tables, and the price of two kinds of noise."""
    return {
        "rows": overhead(report=report),
        "utility": utility(data, seeds, people, report),
        "price": price(),
        "seeds": seeds,
        "people": people,
        "machine": machine(),
    }


def overhead(n_parties: Sequence[int] = (3, 10, 30), report: Report = None) -> list[dict[str, Any]]:
    """Processor seconds of a fit and an answer, bytes that each party sends and gets; 1 is the local fit."""
    rng = np.random.default_rng(0)
    people = rng.uniform(-1, 1, size=(2 * N_PAIRS, N_FEATURES)) / math.sqrt(N_FEATURES)
    pairs = np.arange(2 * N_PAIRS).reshape(-1, 2)
    labels = rng.choice([-1, 1], N_PAIRS)
    whole = PairSet(people, pairs, labels, ids=np.arange(2 * N_PAIRS))
    learner = DPPMetricLearner(select="all")
    learner.fit(whole)  # loads what is loaded once
    rows = [{"parties": 1, **_timed(lambda: learner.fit(whole)), "bytes_sent": 0, "bytes_got": 0}]
    answers = sum(query["steps"] for query in learner.certificate_.plan["releases"])
    for n in n_parties:
        share = N_PAIRS // n
        parts = [
            PairSet(people[2 * first : 2 * (first + share)], pairs[:share], labels[first : first + share],
                    ids=np.arange(2 * first, 2 * (first + share)))
            for first in range(0, share * n, share)
        ]  # fmt: skip
        lines: list[Any] = []

        def together(parts: Any = parts, lines: Any = lines) -> None:
            lines[:] = [line() for _ in parts]
            simulate(learner, parts, kappa_rule="disjoint", lines=lines)

        timed = _timed(together)
        ours, theirs = lines[0]
        rows.append(
            {"parties": n, **timed, "bytes_sent": theirs.n_bytes, "bytes_got": ours.n_bytes}
        )
        if report is not None:
            report(f"{n} parties")
    return [{**row, "answers": answers, "per_answer": row["seconds"] / answers} for row in rows]


def _timed(work: Callable[[], Any], times: int = 3) -> dict[str, float]:
    """The least of some runs, in processor time of all parties: a busy machine disturbs it less."""
    found = []
    for _ in range(times):
        begun = time.process_time()
        work()
        found.append(time.process_time() - begun)
    return {"seconds": min(found)}


def utility(
    data: Path | None, seeds: int, people: int, report: Report = None
) -> list[dict[str, Any]]:
    """Pair AUC on test people: three hospitals together, in two ways, and the mean of each alone."""
    found: dict[tuple[str, float, str], list[float]] = {}
    for name in DATA:
        benchmark = load(name, data)
        for seed in range(700, 700 + seeds):
            split = make_split(
                benchmark, np.random.default_rng(seed), max_people=HOSPITALS * people
            )
            parts = hospitals(split, people, seed)
            euclid = score(None, split, seed, knn_people=50)["pair_auc"]
            for epsilon in (1.0, 0.1):
                learner = DPPMetricLearner(epsilon, DELTA, random_state=seed)
                ways: dict[str, list[Any]] = {
                    "Euclid": [None],
                    "each alone": [learner.fit(part).components_ for part in parts],
                }
                for noise in ("parties", "coordinator"):
                    joint = simulate(learner, parts, kappa_rule="disjoint", noise=noise)  # type: ignore[arg-type]
                    ways[f"together, noise of {noise}"] = [joint.components]
                joint = simulate(learner, parts, kappa_rule="sum")
                ways["together, kappas added up"] = [joint.components]
                for way, metrics in ways.items():
                    aucs = [
                        euclid
                        if one is None
                        else score(one, split, seed, knn_people=50)["pair_auc"]
                        for one in metrics
                    ]
                    found.setdefault((name, epsilon, way), []).append(float(np.mean(aucs)))
            if report is not None:
                report(f"{name}, seed {seed}")
    return [
        {"dataset": name, "epsilon": epsilon, "way": way, "pair_auc": float(np.mean(aucs)),
         "interval": float(1.96 * np.std(aucs, ddof=1) / math.sqrt(len(aucs))) if len(aucs) > 1 else 0.0}
        for (name, epsilon, way), aucs in found.items()
    ]  # fmt: skip


def hospitals(split: Split, people: int, seed: int) -> list[PairSet]:
    """Training people dealt to three hospitals, each of which had paths of its own people labelled."""
    dealt = np.random.default_rng(seed).permutation(split.n_people)
    found = []
    for place in range(HOSPITALS):
        own = np.sort(dealt[place * people : (place + 1) * people])
        pairs = design_pairs(len(own), how="paths", random_state=seed)
        labels = label_pairs(pairs, split.y_train[own])
        found.append(PairSet(split.X_train[own], pairs, labels, ids=own))
    return found


def price(epsilons: Sequence[float] = (1.0, 0.1)) -> list[dict[str, float]]:
    """Epsilon of one variance: as the accountant has it, and by the Rényi divergence that Skellam noise has.

    On our grids the terms in which Skellam's differs from a Gaussian's are below 1e-18: what is left is the
    conversion (Canonne, Kamath and Steinke 2020, Proposition 12).
    """
    rows = []
    for epsilon in epsilons:
        mu = mu_from_epsilon(epsilon, DELTA)
        orders = 1 + np.logspace(-1, 4, 20_000)
        renyi = orders * mu**2 / 2
        bound = renyi + np.log1p(-1 / orders) - (math.log(DELTA) + np.log(orders)) / (orders - 1)
        rows.append(
            {"epsilon": epsilon_from_mu(mu, DELTA), "by_renyi": float(bound.min()), "mu": mu}
        )
    return rows
