"""Splink's own training (EM, no labels, no privacy) beside private counts, on levels that Splink computes.

    PAIRVEIL_DATA=FOLDER python benchmarks/linkage_splink.py

FOLDER holds historical_50k.parquet. Labelled path and test pairs are those of linkage.py; comparisons,
levels, u of random pairs and EM are Splink's (extra `splink`), without term frequencies. Recall at precision
0.99.
"""

from __future__ import annotations

import logging
import os
import runpy
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import splink
import splink.comparison_library as cl

from pairveil.linkage import PrivateLinkageModel, from_splink
from pairveil.linkage.levels import LabelledLevels
from pairveil.release.linkage import match_weights

bench = runpy.run_path(str(Path(__file__).with_name("linkage.py")))
EPSILONS, RUNS, N_RANDOM = (1.0, 0.1, 0.03), 10, 20_000
RULES = (("surname", "substr(first_name, 1, 1)"), ("dob",), ("postcode_fake",))
COMPARISONS = [
    cl.JaroWinklerAtThresholds("first_name", [0.9, 0.7]),
    cl.JaroWinklerAtThresholds("surname", [0.9, 0.7]),
    cl.LevenshteinAtThresholds("dob", [1, 2]),
    cl.JaroWinklerAtThresholds("birth_place", [0.9, 0.7]),
    cl.LevenshteinAtThresholds("postcode_fake", [1, 2]),
    cl.ExactMatch("gender"),
    cl.ExactMatch("occupation"),
]


def main() -> None:
    """Print a table."""
    logging.disable(logging.WARNING)  # Splink tells its progress
    records = pd.read_parquet(Path(os.environ.get("PAIRVEIL_DATA", ".")) / "historical_50k.parquet")
    train, test = bench["split"](records)
    linker = linker_of(records)
    path, seen = (from_splink(linker, clerical(records, pairs)) for pairs in (train, test))
    truth = seen.labels > 0
    print(f"{len(path.labels):,} labelled pairs, {len(truth):,} test pairs", flush=True)
    best = np.array(seen.n_levels) - 1
    print(
        f"unweighted agreement  {bench['recall']((seen.levels == best).sum(axis=1) * 1.0, truth):.3f}"
    )
    trained = bench["recall"](match_weights(*em(linker), seen.levels), truth)
    print(f"Splink's EM           {trained:.3f}", flush=True)
    random = from_splink(linker, clerical(records, train), n_random=N_RANDOM)
    for name, labels in (("labels alone", path), (f"{N_RANDOM:,} random pairs", random)):
        print(f"without privacy       {recall_of(labels, seen, float('inf'), 1):.3f}, {name}")
        for epsilon in EPSILONS:
            found = recall_of(labels, seen, epsilon, RUNS)
            print(f"epsilon {epsilon:<12g}  {found:.3f}, {name}", flush=True)


def linker_of(records: pd.DataFrame) -> Any:
    """A linker of all records; one thread, so that a run is repeatable."""
    settings = splink.SettingsCreator(
        link_type="dedupe_only",
        comparisons=COMPARISONS,
        blocking_rules_to_generate_predictions=[splink.block_on(*rule) for rule in RULES],
    )
    api = splink.DuckDBAPI(connection=duckdb.connect(config={"threads": 1}))
    return splink.Linker(api.register(records.drop(columns="cluster")), settings)


def clerical(records: pd.DataFrame, pairs: np.ndarray) -> pd.DataFrame:
    """Pairs as Splink's clerical labels."""
    ids = records["unique_id"].to_numpy()
    scores = (bench["same"](records, pairs) > 0).astype(float)
    return pd.DataFrame({
        "unique_id_l": ids[pairs[:, 0]], "unique_id_r": ids[pairs[:, 1]], "clerical_match_score": scores,
    })  # fmt: skip


def em(linker: Any) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """m and u as Splink documents it: u of random pairs, then an EM session for each blocking rule."""
    linker.training.estimate_u_using_random_sampling(max_pairs=1e7, seed=1)
    for rule in RULES:
        linker.training.estimate_parameters_using_expectation_maximisation(splink.block_on(*rule))
    comparisons = linker.misc.save_model_to_json()["comparisons"]
    levels = [
        [level for level in one["comparison_levels"][::-1] if not level.get("is_null_level")]
        for one in comparisons
    ]
    m, u = (
        [np.array([level[key] for level in ranked]) for ranked in levels]
        for key in ("m_probability", "u_probability")
    )
    return m, u


def recall_of(labels: LabelledLevels, seen: LabelledLevels, epsilon: float, runs: int) -> float:
    """Mean over fits."""
    models = (PrivateLinkageModel(epsilon=epsilon, random_state=seed) for seed in range(runs))
    found = [
        bench["recall"](
            model.fit(labels.levels, labels.labels, labels.pairs, labels.n_levels).match_weights(
                seen.levels
            ),
            seen.labels > 0,
        )
        for model in models
    ]
    return float(np.mean(found))


if __name__ == "__main__":
    main()
