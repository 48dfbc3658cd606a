"""Make of the runs of `tools.expected_runs` the ranges that ``plan`` and ``fit`` say, and check them.

``python -m tools.expected_ranges`` writes ``src/pairveil/learners/expected_ranges.toml``, of pairs and of
people with classes, and prints how often the ranges held on tables that they had not seen
(docs/decisions/0021-expected.md).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairveil.files import write_file
from pairveil.learners.outlook import range_at
from pairveil.privacy.mechanisms import mechanism_named
from tools.expected_runs import CLASS_RESULTS, RESULTS

MODULE = Path("src/pairveil/learners/expected_ranges.toml")
KINDS = {
    RESULTS: ("", "(signal, low, high)"),
    CLASS_RESULTS: ("CLASSES_", "The same of people with classes"),
}
"""Of each file of runs: how names in the module begin, and what is said of them."""
LEFT_OUT = 0.1  # of the runs on either side: the range holds eight in ten
LEAST_GAIN = 0.02  # of AUC: where the reference gains less there is nothing to keep
Knots = tuple[tuple[float, float, float], ...]


class Runs(NamedTuple):
    """One entry a run; each family of tables weighs the same."""

    family: NDArray[np.str_]
    pure: NDArray[np.bool_]
    signal: NDArray[np.float64]
    kept: NDArray[np.float64]
    weight: NDArray[np.float64]

    def only(self, these: NDArray[np.bool_]) -> Runs:
        """Some of the runs."""
        columns: list[Any] = [column[these] for column in self]
        return Runs(*columns)


def read_runs(results: dict[str, Any]) -> Runs:
    """The runs on tables where there is something to gain; more than all of it counts as all."""
    rows = []
    for table in results["tables"]:
        gain = float(np.mean(table["reference"]))
        if gain < LEAST_GAIN:
            continue
        for number, _, pairs, strength, auc in table["runs"]:
            is_pure = mechanism_named(results["settings"][number][3]).is_pure
            signal = pairs * strength / table["n_features"] ** 0.5
            rows.append((table["family"], is_pure, signal, min(auc / gain, 1.0)))
    family, pure, signals, kept = (np.array(column) for column in zip(*rows, strict=True))
    of = np.unique(family, return_inverse=True)[1]
    return Runs(family, pure, signals, kept, weight=1 / np.bincount(of)[of])


def knots_of(runs: Runs) -> Knots:
    """Ranges at powers of two: quantiles of runs up to twice or half as loud, made to rise with signal."""
    at = np.log2(runs.signal)
    found = []
    for power in range(int(np.ceil(at.min())), int(at.max()) + 1):
        near = runs.weight * np.maximum(0.0, 1 - np.abs(at - power))
        ends = [_quantile(runs.kept, near, share) for share in (LEFT_OUT, 1 - LEFT_OUT)]
        found.append((2.0**power, *ends))
    table = np.array(found)
    table[:, 1:] = np.round(20 * np.clip(np.maximum.accumulate(table[:, 1:]), 0, 1)) / 20
    return tuple((float(s), float(a), float(b)) for s, a, b in table)


def _quantile(values: NDArray[np.float64], weight: NDArray[np.float64], share: float) -> float:
    order = np.argsort(values)
    below = np.cumsum(weight[order]) / weight.sum()
    return float(values[order][min(int(np.searchsorted(below, share)), len(values) - 1)])


def held(knots: Knots, runs: Runs) -> NDArray[np.bool_]:
    """Which runs kept what the range says, to the five per cent that it is rounded to."""
    ends = np.array([range_at(knots, signal) for signal in runs.signal])
    return (runs.kept > ends[:, 0] - 0.025) & (runs.kept < ends[:, 1] + 0.025)


def left_out(runs: Runs, group_of: Callable[[str], str]) -> NDArray[np.bool_]:
    """Which runs the range held that was made of all other groups of tables."""
    groups = np.array([group_of(name) for name in runs.family])
    found = np.zeros(len(groups), dtype=bool)
    for group in np.unique(groups):
        mine = groups == group
        found[mine] = held(knots_of(runs.only(~mine)), runs.only(mine))
    return found


def module_text() -> str:
    """The file that the package ships."""
    lines = [
        "# Expected share of the gain by signal: written by `python -m tools.expected_ranges`."
    ]
    for results, (begins, says) in KINDS.items():
        runs = read_runs(json.loads(results.read_text()))
        for name, pure in (("WITH_DELTA", False), ("PURE", True)):
            knots = knots_of(runs.only(runs.pure == pure))
            lines += ["", f"# {says}, for noise {'without' if pure else 'with a delta'}."]
            lines += [f"{begins}{name} = ["]
            lines += [*(f"    {list(knot)}," for knot in _needed(knots)), "]"]
    return "\n".join(lines) + "\n"


def _needed(knots: Knots) -> Knots:
    """Without those at either end that say the same as their neighbour."""
    first, last = 0, len(knots)
    while last - first > 1 and knots[first][1:] == knots[first + 1][1:]:
        first += 1
    while last - first > 1 and knots[last - 1][1:] == knots[last - 2][1:]:
        last -= 1
    return knots[first:last]


def coverage(runs: Runs) -> str:
    """A table for the docs: how often the range held, and how wide it was."""
    rows = ["| noise | signal | runs | held, table left out | width |", "|---|---|---|---|---|"]
    limits = (0.0, 8.0, 32.0, 128.0, 512.0, np.inf)
    for pure in (False, True):
        mine = runs.only(runs.pure == pure)
        good, knots = left_out(mine, str), knots_of(mine)
        width = np.array([np.diff(range_at(knots, s))[0] for s in mine.signal])
        for low, high in [*pairwise(limits), (0.0, np.inf)]:
            at = (mine.signal >= low) & (mine.signal < high)
            if at.any():
                shares = [np.average(of[at], weights=mine.weight[at]) for of in (good, width)]
                said = "all" if (low, high) == (0.0, np.inf) else f"{low:g} to {high:g}"
                kind = "pure" if pure else "with delta"
                rows.append(f"| {kind} | {said} | {at.sum()} | {shares[0]:.2f} | {shares[1]:.2f} |")
        across = left_out(mine, lambda name: "drawn" if name.startswith("drawn") else "real")
        for kind in ("real", "drawn"):
            of = np.array([name.startswith("drawn") for name in mine.family]) == (kind == "drawn")
            share = np.average(across[of], weights=mine.weight[of])
            rows.append(f"| | {kind} tables from the others alone | {of.sum()} | {share:.2f} | |")
    return "\n".join(rows)


def main() -> None:
    """Write the module and print the check."""
    write_file(MODULE, module_text())
    for results in KINDS:
        print(f"{results}\n\n{coverage(read_runs(json.loads(results.read_text())))}\n")


if __name__ == "__main__":
    main()
