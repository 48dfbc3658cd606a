"""The docs' page of measurements, made from the results of ``python -m benchmarks`` and never typed.

``python -m benchmarks.page benchmarks/results docs/benchmarks.md``
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reproduction.cells import write_whole

from pairveil.errors import InputError

TARGETS = {
    ("paths", 1.0): 0.95,
    ("paths", 0.5): 0.85,
    ("paths", 0.1): 0.5,
    ("matching", 1.0): 0.85,
    ("paths, pure epsilon", 1.0): 0.6,
}
SMALL_TARGETS = {("breast_cancer", "paths", 1.0): 0.8, ("digits", "paths", 4.0): 0.3}
INTRODUCTION = """# Benchmarks

This page is written by `make bench` from `benchmarks/results/*.json`
(`python -m benchmarks.page`).
Timings are noisy where they were made: compare them as ratios within one run.
"""


def write_page(results: str | Path, page: str | Path) -> Path:
    """Write the page of every result that is there.

    Parameters
    ----------
    results : path
        Folder of ``utility.json``, ``kappa.json``, ``kernels.json``, ``speed.json``, ``scale.json``; missing
        ones are left out.
    page : path
        Markdown file.
    """
    folder = Path(results)
    parts = [INTRODUCTION]
    sections = (
        ("utility", utility_section),
        ("kappa", timing_section("kappa", KAPPA)),
        ("kernels", timing_section("kernels", KERNELS)),
    )
    for name, section in sections:
        file = folder / f"{name}.json"
        if file.exists():
            parts.append(section(json.loads(file.read_text(encoding="utf-8"))))
    for name in ("speed", "scale"):
        file = folder / f"{name}.json"
        if file.exists():
            parts.append(plain_section(name, json.loads(file.read_text(encoding="utf-8"))))
    if len(parts) == 1:
        raise InputError(f"{folder} holds no results; run python -m benchmarks first")
    target = Path(page)
    write_whole(target, "\n".join(parts))
    return target


def utility_section(result: Mapping[str, Any]) -> str:
    """Gain kept by data set and setting, with the target beside it, and every score."""
    rows = result["rows"]
    names = list(dict.fromkeys(row["dataset"] for row in rows))
    settings = list(
        dict.fromkeys(
            (r["method"], r["unit"], r["epsilon"]) for r in rows if r["epsilon"] is not None
        )
    )
    lines = [
        "## What accuracy is kept",
        "",
        f"`python -m benchmarks utility --data DIR --seeds {result['seeds']}`: one set of defaults for every "
        f"data set, zero-out adjacency, delta {result['delta']:g} (pure epsilon: 0). "
        "Gain kept is (AUC - Euclid) / "
        "(reference - Euclid) with the half width of its 95 % interval; the reference is the best of our "
        "non-private learner on the paper's graph and scikit-learn's LDA and NCA, which see every training "
        "person's class. Seeds start at 300. Runs on them prompted three of the pair learner's rules; their "
        "values were chosen on other seeds. The run is of the learner before its last three changes; "
        "docs/decisions/0005-learner.md has fresh figures of the learner as it is.",
        "",
        _row(["setting", "unit", "epsilon", "target", *names]),
        _row(["---"] * (4 + len(names))),
    ]
    by_key = {(r["dataset"], r["method"], r["epsilon"]): r for r in rows}
    for method, unit, epsilon in settings:
        target = TARGETS.get((method, epsilon))
        cells = []
        for name in names:
            row = by_key[name, method, epsilon]
            small = SMALL_TARGETS.get((name, method, epsilon))
            wanted = target if name not in ("breast_cancer", "digits") else small
            cells.append(_gain(row, wanted))
        shown = "" if target is None else f"{target:g}"
        lines.append(_row([method, unit, f"{epsilon:g}", shown, *cells]))
    lines += [
        "",
        "**Bold**: below its target (breast cancer: 0.8 at epsilon 1; digits: 0.3 at epsilon 4; the others "
        "as listed).",
        "",
        "### Scores",
        "",
        "Pair AUC on 200,000 class-balanced test pairs, 5-NN accuracy plain and class-balanced; worst harm "
        "is the largest loss against Euclid in any single seed.",
        "",
        _row(["data set", "method", "epsilon", "pair AUC", "5-NN", "5-NN balanced", "worst harm"]),
        _row(["---"] * 7),
    ]
    for row in rows:
        epsilon = "" if row["epsilon"] is None else f"{row['epsilon']:g}"
        auc = f"{row['pair_auc']:.3f} ± {row['pair_auc_interval']:.3f}"
        harm = "" if row["epsilon"] is None else f"{max(0.0, row['worst_harm']):.3f}"
        knn = [f"{row['knn_accuracy']:.3f}", f"{row['knn_balanced']:.3f}"]
        lines.append(_row([row["dataset"], row["method"], epsilon, auc, *knn, harm]))
    return "\n".join([*lines, ""])


def _gain(row: Mapping[str, Any], target: float | None) -> str:
    text = f"{row['gain_kept']:.2f} ± {row['gain_kept_interval']:.2f}"
    return f"**{text}**" if target is not None and row["gain_kept"] < target else text


KAPPA = (
    "## How fast kappa is found",
    "`python -m benchmarks kappa`: a random graph with two pairs a person, each in a new process.",
)
KERNELS = (
    "## The hot kernels",
    "`pytest benchmarks/test_kernels.py`, as `make bench` runs it: one thread, processor time, the median of "
    "the rounds; *ns each* is a pair, a number of noise or one calibration.",
)


def timing_section(name: str, words: tuple[str, str]) -> Any:
    """A section of rows shown as they are, under a title and a sentence."""

    def section(result: Mapping[str, Any]) -> str:
        return "\n".join([words[0], "", words[1], "", *_table(result["rows"]), *_facts(result), ""])

    section.__name__ = f"{name}_section"
    return section


def plain_section(name: str, result: Mapping[str, Any]) -> str:
    """A section of a result whose rows speak for themselves."""
    lines = [
        f"## {name.capitalize()}",
        "",
        f"`python -m benchmarks {name}`",
        "",
        *_table(result["rows"]),
    ]
    return "\n".join([*lines, *_facts(result), ""])


def _facts(result: Mapping[str, Any]) -> list[str]:
    simple = {k: v for k, v in result.items() if isinstance(v, str | int | float) and k != "seeds"}
    return ["", *(f"{key}: {value}" for key, value in simple.items())] if simple else []


def _table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    shown = [_row([_cell(row.get(column)) for column in columns]) for row in rows]
    return [_row([c.replace("_", " ") for c in columns]), _row(["---"] * len(columns)), *shown]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    write_page(sys.argv[1], sys.argv[2])
