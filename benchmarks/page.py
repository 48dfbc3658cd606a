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

from benchmarks.tables import HALVES, HARM, number, of, read, summary
from pairveil.errors import InputError

TARGETS = {
    ("paths", 1.0): 0.95,
    ("paths", 0.5): 0.85,
    ("paths", 0.1): 0.5,
    ("matching", 1.0): 0.85,
    ("paths, pure epsilon", 1.0): 0.6,
}
SMALL_TARGETS = {("breast_cancer", "paths", 1.0): 0.8, ("digits", "paths", 4.0): 0.3}
NAMES = {half: {table.name for table in of(half)} for half in HALVES}
SHOWN = (4.0, 1.0, 0.1)  # further epsilons are in the result
BY_HAND = "<!-- by hand: what stands below is kept -->"
INTRODUCTION = """# Benchmarks

This page says what is kept, how fast it is, and which command measures it: one table for each question.

The first six tables are written by `make bench` from `benchmarks/results/*.json`
(`python -m benchmarks.page`). The machine was shared: compare times as ratios within one run.
"""


def write_page(results: str | Path, page: str | Path) -> Path:
    """Write the page of every result that is there, and keep what stands below the mark on it.

    Parameters
    ----------
    results : path
        Folder of ``utility.json``, ``kappa.json``, ``kernels.json``, ``speed.json``, ``scale.json``; missing
        ones are left out.
    page : path
        Markdown file.
    """
    folder, target = Path(results), Path(page)
    parts = [INTRODUCTION]
    for name, section in SECTIONS.items():
        file = folder / f"{name}.json"
        if file.exists():
            parts.append(section(json.loads(file.read_text(encoding="utf-8"))))
    if (folder / "tables.jsonl").exists():
        parts.insert(2, tables_section(read(folder / "tables.jsonl")))
    if len(parts) == 1:
        raise InputError(f"{folder} holds no results; run python -m benchmarks first")
    before = target.read_text(encoding="utf-8") if target.exists() else ""
    if BY_HAND in before:
        parts.append(BY_HAND + before.partition(BY_HAND)[2])
    write_whole(target, "\n".join(parts))
    return target


def utility_section(result: Mapping[str, Any]) -> str:
    """Gain kept by data set and setting, with the target beside it; the scores are in the result."""
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
        f"`python -m benchmarks utility --data DIR --seeds {result['seeds']}`: one set of defaults, "
        f"zero-out, delta {result['delta']:g} (pure epsilon: 0). Gain kept is (AUC - Euclid) / "
        "(reference - Euclid), the mean with the half width of its 95 % interval. AUC is of "
        "class-balanced pairs of test people; the reference is the best of our non-private learner on "
        "the paper's graph, LDA and NCA. **Bold** is below its target. Seeds start at "
        f"{result['first_seed']}; defaults were chosen on others.",
        "",
        _row(["setting", "epsilon", *names]),
        _rule(2 + len(names)),
    ]
    by_key = {(r["dataset"], r["method"], r["epsilon"]): r for r in rows}
    for method, unit, epsilon in settings:
        if epsilon not in SHOWN:
            continue
        cells = []
        for name in names:
            small = name in ("breast_cancer", "digits")
            wanted = (
                SMALL_TARGETS.get((name, method, epsilon))
                if small
                else TARGETS.get((method, epsilon))
            )
            cells.append(_gain(by_key[name, method, epsilon], wanted))
        lines.append(_row([f"{method} ({unit})", f"{epsilon:g}", *cells]))
    return "\n".join([*lines, ""])


def tables_section(rows: Sequence[dict[str, Any]]) -> str:
    """Gain kept on many tables, in both halves, and how many of them end below Euclid."""
    halves = [[row for row in rows if row["table"] in NAMES[half]] for half in HALVES]
    tables, seeds = (
        [len({row[key] for row in half}) for half in halves] for key in ("table", "seed")
    )
    titles = ("gain kept", "real harmed", "drawn harmed", "worst mean", "worst draw")
    lines = [
        "## Many tables",
        "",
        "`python -m benchmarks tables`: the half on which rules are chosen / the half on which they are "
        f"reported ({tables[0]} and {tables[1]} tables, {seeds[0]} and {seeds[1]} seeds from "
        f"{min(row['seed'] for row in rows)}). Mean gain kept against LDA; tables of 300 pairs or more "
        f"whose mean ends more than {HARM:g} of AUC below Euclid; the worst mean and draw. 'No "
        "information': labels at random.",
        "",
        _row(["epsilon", *titles]),
        _row(["---"] * (1 + len(titles))),
    ]
    for both in zip(*map(summary, halves), strict=True):
        shown = [" / ".join(number(one[title]) for one in both) for title in titles]
        lines.append(_row([both[0]["cell"], *shown]))
    return "\n".join([*lines, ""])


def _gain(row: Mapping[str, Any], target: float | None) -> str:
    text = f"{row['gain_kept']:.2f} ± {row['gain_kept_interval']:.2f}"
    return f"**{text}**" if target is not None and row["gain_kept"] < target else text


def timing_section(title: str, said: str, columns: Mapping[str, str]) -> Any:
    """A section of some columns of the rows, by their keys, under a title and a sentence."""

    def section(result: Mapping[str, Any]) -> str:
        table = [_row([_cell(row.get(key)) for key in columns]) for row in result["rows"]]
        head = [_row(list(columns.values())), _rule(len(columns))]
        return "\n".join([f"## {title}", "", said, "", *head, *table, ""])

    return section


def pivot_section(title: str, said: str, across: str, value: str) -> Any:
    """A section with a row for each method and a column for each shape or size."""

    def section(result: Mapping[str, Any]) -> str:
        cells = {(row["method"], row[across]): row[value] for row in result["rows"]}
        columns = list(dict.fromkeys(column for _, column in cells))
        methods = list(dict.fromkeys(method for method, _ in cells))
        head = [_row(["method", *map(_cell, columns)]), _rule(1 + len(columns))]
        rows = [_row([one, *(_cell(cells.get((one, c))) for c in columns)]) for one in methods]
        return "\n".join([f"## {title}", "", said, "", *head, *rows, ""])

    return section


SECTIONS: dict[str, Any] = {
    "utility": utility_section,
    "speed": pivot_section(
        "Speed",
        "`python -m benchmarks speed`: processor time of a fit, as a multiple of pairveil's.",
        "shape",
        "ratio",
    ),
    "scale": timing_section(
        "Scale",
        "`python -m benchmarks scale`: a hundred pairs a person, 64 features in float32, pairs in "
        "Parquet, the default plan, exact noise. Processor seconds; *fit* includes its own kappa and "
        "selection, *pass* is one clipped sum over all given pairs.",
        {
            "n_pairs": "pairs",
            "n_pairs_used": "used",
            "kappa_cpu_seconds": "kappa",
            "select_cpu_seconds": "select",
            "fit_cpu_seconds": "fit",
            "pass_cpu_seconds": "pass",
            "peak_mb": "peak MB",
        },
    ),
    "kappa": pivot_section(
        "How fast kappa is found",
        "`python -m benchmarks kappa`: processor seconds by number of pairs, two for each person.",
        "n_pairs",
        "cpu_seconds",
    ),
    "kernels": timing_section(
        "The hot kernels",
        "`pytest benchmarks/test_kernels.py`, as `make bench` runs it: one thread, the median of the rounds.",
        {"kernel": "kernel", "ms": "ms"},
    ),
}


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}" if value >= 1e-3 else f"{value:.1e}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _rule(n_columns: int) -> str:
    return "|" + "---|" * n_columns


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    write_page(sys.argv[1], sys.argv[2])
