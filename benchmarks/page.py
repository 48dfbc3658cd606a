"""The log of measurements and the docs' page of them, made from the results of ``python -m benchmarks``.

``python -m benchmarks.page benchmarks/results docs/benchmarks.md`` writes every table into
``benchmarks/results/README.md`` and the few that most readers need into the page.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reproduction.cells import write_whole

from benchmarks.tables import FEW_PAIRS, HALVES, HARM, number, of, read, summary
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
LOG = "README.md"  # in the folder of the results
LOG_INTRODUCTION = """# Log of measurements

This log has every table that was measured, each with its command; [the docs' page](../../docs/benchmarks.md)
has the few that most readers need.

What stands above the mark 'by hand' is written by `make bench` from the JSON files beside this log
(`python -m benchmarks.page`). The machine was shared: compare times as ratios within one run.
"""
INTRODUCTION = """# Benchmarks

This page says how much accuracy a private metric keeps, what a fit costs, and which command measures it.

`make bench` writes it, and the log with every table, `benchmarks/results/README.md`. The machine was shared:
compare times as ratios within one run.
"""


def write_page(results: str | Path, page: str | Path) -> Path:
    """Write the log of every result that is there, and the page of the few that most readers need.

    Parameters
    ----------
    results : path
        Folder of ``utility.json``, ``tables.jsonl``, ``kappa.json``, ``kernels.json``, ``speed.json``,
        ``scale.json``, ``parties.json``; missing ones are left out. The log goes there, and keeps what
        stands below its mark.
    page : path
        Markdown file of the page; it returns.
    """
    folder, target = Path(results), Path(page)
    found = {
        name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        for name in SECTIONS
        if (folder / f"{name}.json").exists()
    }
    if (folder / "tables.jsonl").exists():
        found["tables"] = read(folder / "tables.jsonl")
    if not found:
        raise InputError(f"{folder} holds no results; run python -m benchmarks first")
    parts = [section(found[name]) for name, section in SECTIONS.items() if name in found]
    before = (folder / LOG).read_text(encoding="utf-8") if (folder / LOG).exists() else ""
    if BY_HAND in before:
        parts.append(BY_HAND + before.partition(BY_HAND)[2])
    write_whole(folder / LOG, "\n".join([LOG_INTRODUCTION, *parts]))
    shown = [short(found[name]) for name, short in SHORT.items() if name in found]
    write_whole(target, "\n".join([INTRODUCTION, *shown, all_measured("\n".join(parts))]))
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


def parties_section(result: Mapping[str, Any]) -> str:
    """What three hospitals gain by learning together, and what a message costs."""
    rows = result["utility"]
    cells = {(r["way"], r["dataset"], r["epsilon"]): r for r in rows}
    columns = list(dict.fromkeys(key[1:] for key in cells))
    gained = [
        _row([way, *(_with_interval(cells[way, *column]) for column in columns)])
        for way in dict.fromkeys(key[0] for key in cells)
    ]
    dearer = ", ".join(
        f"{row['by_renyi']:.4g} in place of {row['epsilon']:.4g}" for row in result["price"]
    )
    return "\n".join(
        [
            "## Several parties",
            "",
            f"`python -m benchmarks parties --seeds {result['seeds']} --people {result['people']}`: three "
            "hospitals, each with labelled paths of its own people; pair AUC on other people, mean and half "
            "width of the 95 % interval. Paths have relationship kappa 1, added up (person kappas of 2) "
            f"6. Charged by Rényi divergence, as Skellam noise would be, the same variance costs {dearer}.",
            "",
            _row(["", *(f"{dataset}, epsilon {epsilon:g}" for dataset, epsilon in columns)]),
            _rule(1 + len(columns)),
            *gained,
            "",
            f"A fit with {result['rows'][0]['answers']} answers; the parties are threads of one machine, "
            "without a network; times are those of all together.",
            "",
            *_overhead(result),
            "",
        ]
    )


def _with_interval(row: Mapping[str, Any]) -> str:
    return f"{row['pair_auc']:.3f} ± {row['interval']:.3f}"


def _overhead(result: Mapping[str, Any]) -> list[str]:
    heads = (
        "parties",
        "processor seconds a fit",
        "ms an answer",
        "bytes sent by each",
        "bytes got by each",
    )
    rows = [
        _row([f"{r['parties']}", f"{r['seconds']:.2f}", f"{1000 * r['per_answer']:.1f}",
              f"{r['bytes_sent']:,}", f"{r['bytes_got']:,}"])
        for r in result["rows"]
    ]  # fmt: skip
    return [_row(heads), _rule(len(heads)), *rows]


SECTIONS: dict[str, Any] = {
    "utility": utility_section,
    "tables": tables_section,
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
    "parties": parties_section,
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


# ---- the few that most readers need ------------------------------------------------------------------

NEEDED = {  # of the settings of `utility`: the epsilons that the page shows
    "paths": (4.0, 1.0, 0.1),
    "matching": (1.0, 0.1),
    "paths, pure epsilon": (1.0,),
}


def short_utility(result: Mapping[str, Any]) -> str:
    """Gain kept by data set, for the settings that most people use."""
    rows = [r for r in result["rows"] if r["epsilon"] in NEEDED.get(r["method"], ())]
    names = list(dict.fromkeys(row["dataset"] for row in rows))
    cells = {(r["method"], r["unit"], r["epsilon"], r["dataset"]): r["gain_kept"] for r in rows}
    return "\n".join(
        [
            "## What accuracy is kept",
            "",
            f"`python -m benchmarks utility --data DIR --seeds {result['seeds']}`: gain kept "
            "([protocol](theory/learner.md#how-accuracy-is-measured)), zero-out, delta "
            f"{result['delta']:g} (pure epsilon: 0), mean of {result['seeds']} seeds on which no default "
            "was chosen; the log has the intervals.",
            "",
            _row(["selection (unit)", "epsilon", *names]),
            _rule(2 + len(names)),
            *(
                _row([f"{method} ({unit})", f"{epsilon:g}",
                      *(_kept(cells.get((method, unit, epsilon, name))) for name in names)])
                for method, unit, epsilon in dict.fromkeys(key[:3] for key in cells)
            ),
            "",
        ]
    )  # fmt: skip


def short_tables(rows: Sequence[dict[str, Any]]) -> str:
    """On tables for which nothing was chosen: gain kept, tables that end below Euclid, random labels."""
    reported = [row for row in rows if row["table"] in NAMES["report"]]
    by_cell = {line["cell"]: line for line in summary(reported)}
    cells = [cell for cell in by_cell if re.fullmatch(r"[\d.]+", cell)]
    random = [by_cell.get(f"{cell} no information", {}) for cell in cells]
    return "\n".join(
        [
            "## Many tables",
            "",
            f"`python -m benchmarks tables`: {len({row['table'] for row in reported})} real and drawn "
            f"tables on which no rule was chosen, gain kept against LDA. Harmed: tables of {FEW_PAIRS} pairs "
            f"or more whose mean ends more than {HARM:g} of AUC below Euclid. From random labels there is "
            "nothing to learn, and a fit may end below Euclid.",
            "",
            _row(["epsilon", *cells]),
            _rule(1 + len(cells)),
            _row(["gain kept", *(f"{by_cell[cell]['gain kept']:.2f}" for cell in cells)]),
            _row(["tables harmed", *(
                str(by_cell[cell]["real harmed"] + by_cell[cell]["drawn harmed"]) for cell in cells
            )]),
            _row(["worst table, AUC - Euclid", *(number(by_cell[cell]["worst mean"]) for cell in cells)]),
            _row(["the same, random labels", *(
                number(one["worst mean"]) if one else "" for one in random
            )]),
            "",
        ]
    )  # fmt: skip


def short_scale(result: Mapping[str, Any]) -> str:
    """Processor time and memory of a fit, whole and for each pair."""
    heads = ("pairs", "fit, seconds", "a pair, microseconds", "peak MB", "a pair, bytes")
    rows = [
        _row([f"{r['n_pairs']:,}", f"{r['fit_cpu_seconds']:.3g}",
              f"{1e6 * r['fit_cpu_seconds'] / r['n_pairs']:.2g}",
              f"{r['peak_mb']:,}", f"{1e6 * r['peak_mb'] / r['n_pairs']:,.0f}"])
        for r in result["rows"]
    ]  # fmt: skip
    return "\n".join(
        [
            "## Speed and memory",
            "",
            "`python -m benchmarks scale`: a hundred pairs a person, 64 features in float32, the default "
            "plan with exact noise. Processor time of a whole fit, kappa and selection included; some 350 MB "
            "are the program's own.",
            "",
            _row(heads),
            _rule(len(heads)),
            *rows,
            "",
        ]
    )


def short_speed(result: Mapping[str, Any]) -> str:
    """What others take, as multiples of our time."""
    shapes = list(dict.fromkeys(row["shape"] for row in result["rows"]))
    cells = {(row["method"], row["shape"]): row["ratio"] for row in result["rows"]}
    methods = [m for m in dict.fromkeys(m for m, _ in cells) if m in PEERS]
    said = "; ".join(f"{m} {', '.join(f'{cells[m, one]:.3g}' for one in shapes)}" for m in methods)
    return (
        f"`python -m benchmarks speed`: processor time as a multiple of pairveil's, on three shapes "
        f"({', '.join(shapes)}): {said}.\n"
    )


def short_parties(result: Mapping[str, Any]) -> str:
    """Pair AUC together and alone, and the time of a fit by the number of parties."""
    rows = {(r["way"], r["dataset"], r["epsilon"]): r["pair_auc"] for r in result["utility"]}
    columns = list(dict.fromkeys(key[1:] for key in rows))
    ways = list(dict.fromkeys(key[0] for key in rows))
    times = ", ".join(f"{r['parties']}: {r['seconds']:.2g}" for r in result["rows"])
    return "\n".join(
        [
            "## Several parties",
            "",
            f"`python -m benchmarks parties --seeds {result['seeds']} --people {result['people']}`: three "
            "hospitals, each with labelled paths of its own people; pair AUC on other people. Processor "
            f"seconds of a fit by number of parties, all parties together, without a network: {times}.",
            "",
            _row(["", *(f"{dataset}, epsilon {epsilon:g}" for dataset, epsilon in columns)]),
            _rule(1 + len(columns)),
            *(_row([way, *(f"{rows[way, *c]:.3f}" for c in columns)]) for way in ways),
            "",
        ]
    )


def all_measured(log: str) -> str:
    """Each section of the log with its command."""
    lines = [
        "## What else was measured",
        "",
        "Sections of the log `benchmarks/results/README.md`, and their commands:",
        "",
    ]
    for section in re.split(r"^## ", log, flags=re.M)[1:]:
        title, _, text = section.partition("\n")
        command = re.search(r"`((?:\w+=\w+ )?(?:python|pytest|pairveil) [^`]+)`", text)
        if title not in SHOWN_WHOLE and command is not None:
            lines.append(f"- {title}: `{command[1]}`")
    return "\n".join([*lines, ""])


PEERS = ("Opacus GradSampleModule", "Opacus PrivacyEngine", "metric-learn MMC")
SHORT: dict[str, Any] = {
    "utility": short_utility,
    "tables": short_tables,
    "scale": short_scale,
    "speed": short_speed,
    "parties": short_parties,
}
SHOWN_WHOLE = ("What accuracy is kept", "Many tables", "Speed", "Scale", "Several parties")


def _kept(gain: float | None) -> str:
    return "" if gain is None else f"{round(gain, 2) + 0.0:.2f}"  # no -0.00


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
