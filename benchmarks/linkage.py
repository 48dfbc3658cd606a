"""Recall at precision 0.99 of private linkage models on Splink's historical_50k, and their rivals.

    PAIRVEIL_DATA=FOLDER python benchmarks/linkage.py

FOLDER holds historical_50k.parquet (50,578 records of 5,156 people). Half of the people, two records each,
are labelled along a path; pairs of the others that agree in a blocking key are the test.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from pairveil import DPPMetricLearner
from pairveil.linkage import PrivateLinkageModel, level_frequencies, text_levels
from pairveil.privacy import calibrate_gaussian

COLUMNS = {
    "first_name": (0.4, 0.7), "surname": (0.4, 0.7), "dob": (0.5, 0.75), "birth_place": (0.4, 0.7),
    "postcode_fake": (0.4, 0.7), "gender": (), "occupation": (),
}  # fmt: skip
N_LEVELS = [len(cuts) + 2 for cuts in COLUMNS.values()]
EPSILONS = (1.0, 0.1, 0.03)


def main() -> None:
    """Print a table."""
    records = pd.read_parquet(Path(os.environ.get("PAIRVEIL_DATA", ".")) / "historical_50k.parquet")
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    train, test = split(records)
    y, truth = same(records, train), same(records, test) > 0
    levels, seen = compared(records, train), compared(records, test)
    print(
        f"{len(train):,} labelled pairs (a path), {len(test):,} test pairs, {truth.mean():.1%} matches"
    )
    agree = sum((seen[:, c] == n - 1).astype(float) for c, n in enumerate(N_LEVELS))
    print(f"unweighted agreement      {recall(agree, truth):.3f}")
    plain = PrivateLinkageModel(epsilon=float("inf")).fit(levels, y, train, N_LEVELS)
    print(f"without privacy           {recall(plain.match_weights(seen), truth):.3f}")
    print(f"EM without labels         {recall(by_em(records, seen), truth):.3f}")
    for epsilon in EPSILONS:
        found = []
        for seed in range(runs):
            model = PrivateLinkageModel(epsilon=epsilon, random_state=seed)
            weights = model.fit(levels, y, train, N_LEVELS).match_weights(seen)
            found.append(recall(weights, truth))
        rival = max(
            np.mean(
                [recall(logistic(levels, y, seen, epsilon, *s, seed), truth) for seed in range(3)]
            )
            for s in ((5, 1.0), (60, 1.0), (60, 16.0))
        )
        print(
            f"epsilon {epsilon:<6g}            {np.mean(found):.3f} (least of {runs}: {min(found):.3f}); "
            f"logistic regression, best of three settings {rival:.3f}; metric learner "
            f"{np.mean([recall(by_metric(levels, y, seen, epsilon, s), truth) for s in range(3)]):.3f}"
        )


def split(records: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Labelled pairs of half of the people, and blocked pairs of the others."""
    rng = np.random.default_rng(0)
    people = np.array(records["cluster"].unique().tolist(), dtype=object)
    rng.shuffle(people)
    rows = records.groupby("cluster").indices
    chosen = people[: len(people) // 2]
    path = np.concatenate([rng.choice(rows[person], 2, replace=False) for person in chosen])
    others = records[~records["cluster"].isin(set(chosen))]
    keys = (
        (others["surname"] + "|" + others["first_name"].str[:1]).fillna(""),
        others["dob"].fillna(""),
        others["postcode_fake"].fillna(""),
    )
    pairs: set[tuple[int, int]] = set()
    for key in keys:
        for name, block in pd.Series(others.index.to_numpy()).groupby(key.to_numpy()):
            if name and len(block) <= 120:
                ends = np.triu_indices(len(block), 1)
                pairs.update(zip(*(block.to_numpy()[one] for one in ends), strict=True))
    return np.column_stack([path[:-1], path[1:]]), np.array(sorted(pairs))


def compared(records: pd.DataFrame, pairs: np.ndarray) -> np.ndarray:
    """Levels of seven comparisons."""
    sides = [records.iloc[pairs[:, side]] for side in (0, 1)]
    return np.column_stack([
        text_levels(*(side[column].tolist() for side in sides), cuts)
        for column, cuts in COLUMNS.items()
    ])  # fmt: skip


def same(records: pd.DataFrame, pairs: np.ndarray) -> np.ndarray:
    """+1 where both records are one person's."""
    who = records["cluster"].to_numpy(dtype=object)
    return np.where(who[pairs[:, 0]] == who[pairs[:, 1]], 1, -1)


def recall(scores: np.ndarray, truth: np.ndarray, precision: float = 0.99) -> float:
    """The largest share of matches that a threshold finds at this precision; ties stay together."""
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(truth[order])
    last = np.append(np.diff(scores[order]) != 0, True)
    good = last & (hits >= precision * np.arange(1, len(hits) + 1))
    return float(hits[good].max() / truth.sum()) if good.any() else 0.0


def logistic(
    levels: np.ndarray,
    y: np.ndarray,
    seen: np.ndarray,
    epsilon: float,
    steps: int,
    rate: float,
    seed: int,
) -> np.ndarray:
    """The rival: clipped noisy gradients on level indicators, of the same budget (zero-out, kappa 1)."""
    rng = np.random.default_rng(seed)
    X, Z = (
        np.column_stack([
            np.ones(len(one)), *((one[:, c] == v) for c, n in enumerate(N_LEVELS) for v in range(n))
        ])
        for one in (levels, seen)
    )  # fmt: skip
    noise = calibrate_gaussian(epsilon, 1e-5, kappa=1, steps=steps)
    w, mean, lengths = np.zeros(X.shape[1]), np.zeros(X.shape[1]), np.linalg.norm(X, axis=1)
    for step in range(steps):
        slope = -y / (1 + np.exp(y * (X @ w)))
        slope *= np.minimum(1, 1 / np.maximum(np.abs(slope) * lengths, 1e-9))
        w = w - rate * (X.T @ slope + rng.normal(0, noise, len(w))) / len(y)
        mean += w * (step >= steps // 2)
    return np.asarray(Z[:, 1:] @ mean[1:])


def by_em(records: pd.DataFrame, blocked: np.ndarray, rounds: int = 60) -> np.ndarray:
    """The rival without labels or privacy, as Splink trains: u of random pairs, m by EM on blocked ones.

    One session for each blocking rule, without the comparisons that it fixes; a comparison's m is the mean of
    its sessions. Gives the weights of the blocked pairs.
    """
    ends = np.random.default_rng(0).integers(0, len(records), (50_000, 2))
    u = level_frequencies(compared(records, ends[ends[:, 0] != ends[:, 1]]), N_LEVELS)
    names, found = list(COLUMNS), [[] for _ in COLUMNS]
    for fixed in (("first_name", "surname"), ("dob",), ("postcode_fake",)):
        key = names.index(fixed[-1])
        session = blocked[blocked[:, key] == N_LEVELS[key] - 1]
        free = [c for c, name in enumerate(names) if name not in fixed]
        m = {c: np.r_[np.full(n - 1, 0.2 / (n - 1)), 0.8] for c, n in enumerate(N_LEVELS)}
        share = 0.1
        for _ in range(rounds):
            odds = share / (1 - share) * np.exp2(bits_of(m, u, session, free))
            match = odds / (1 + odds)
            share = match.mean()
            for c in free:
                known = session[:, c] >= 0
                count = np.bincount(session[known, c], match[known], N_LEVELS[c]) + 1e-6
                m[c] = count / count.sum()
        for c in free:
            found[c].append(m[c])
    means = {c: np.mean(tables, axis=0) for c, tables in enumerate(found)}
    return bits_of(means, u, blocked, list(means))


def bits_of(
    m: dict[int, np.ndarray], u: list[np.ndarray], levels: np.ndarray, used: list[int]
) -> np.ndarray:
    """Match weights of some comparisons; nulls add nothing."""
    return np.asarray(sum(np.append(np.log2(m[c] / u[c]), 0.0)[levels[:, c]] for c in used))


def by_metric(
    levels: np.ndarray, y: np.ndarray, seen: np.ndarray, epsilon: float, seed: int
) -> np.ndarray:
    """The metric learner on numeric comparison vectors: how much each comparison lacks of full agreement."""
    most = np.array(N_LEVELS) - 1
    lacks, new = (
        np.where(one < 0, 0.5, 1 - one / most) / np.sqrt(len(most)) for one in (levels, seen)
    )
    rows = np.concatenate([lacks, np.zeros_like(lacks)])  # a pair is its vector and nothing
    ends = np.column_stack([np.arange(len(y)), len(y) + np.arange(len(y))])
    learner = DPPMetricLearner(epsilon=epsilon, preprocessor=rows, random_state=seed).fit(ends, y)
    return np.asarray(-np.linalg.norm(new @ learner.components_.T, axis=1))


if __name__ == "__main__":
    main()
