"""Halve and double each fitted number of the pair learner, and say what that does to the gain kept.

``python -m tools.constants --data DIR`` fills ``benchmarks/results/constants.json`` (numbers that stand there
are not run again) and prints the table of docs/decisions/0023-constants.md. Three seeds that chose no
default; a changed number meets the same people, pairs and draws of noise as the usual one.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from reproduction.protocol import LabelledPairs, Split, design, make_split
from threadpoolctl import threadpool_limits

from pairveil.files import write_file
from tools import expected_runs
from tools.expected_runs import SEEDS, gain_on

RESULTS = Path("benchmarks/results/constants.json")
PACKAGE = "pairveil.learners.contrastive"
USUAL = "as it is"
TEST_PAIRS = 20_000


class Cell(NamedTuple):
    """A table of `tools.expected_runs` and an epsilon; designed paths, relationship level.

    ``chooses``: whether the learner starts on a chosen column there.
    """

    table: str
    epsilon: float
    mechanism: str = "gaussian"
    chooses: bool = False

    @property
    def pure(self) -> bool:
        """Whether its noise has no delta."""
        return self.mechanism != "gaussian"

    def said(self) -> str:
        """Its name, for the table."""
        return f"{self.table.split(',')[0]} {self.epsilon:g}{' pure' if self.pure else ''}"


CELLS = (
    Cell("bank, 4000 people", 0.1, chooses=True),
    *(Cell("breast_cancer", e) for e in (0.5, 2.0)),
    Cell("digits", 4.0),
    Cell("drawn 2", 0.1, chooses=True),
    Cell("breast_cancer", 4.0, "laplace"),
    Cell("adult, 5000 people", 0.3, "laplace", chooses=True),
    Cell("bank", 1.0, "laplace", chooses=True),
)


class Constant(NamedTuple):
    """A number in the source: where it stands once, with ``{}`` for it."""

    module: str
    text: str
    value: float
    name: str = ""
    most: float = math.inf
    rest: float = 0.0

    def said(self) -> str:
        """Its name, for the table."""
        return self.name or self.text.split(" =")[0]


def of(module: str, **values: float) -> list[Constant]:
    """Numbers that have a line and a name of their own."""
    return [Constant(module, name + " = {}", value) for name, value in values.items()]


def shares(name: str, *values: float) -> list[Constant]:
    """Each of the shares of one line, by its place there; the descent takes what the others leave."""
    found = []
    for i, part in enumerate(("survey", "signal", "gradients", "moments", "contest")):
        said = [f"{value:.2f}" for value in values]
        said[2], said[i] = "{rest}", "{}" if i != 2 else ""
        text = f"{name} = Shares({', '.join(said)})"
        found.append(Constant("defaults", text, values[i], f"{name}.{part}", rest=values[2]))
    return [one for one in found if not one.name.endswith("gradients")]


CONSTANTS = (
    *shares("SHARES", 0.17, 0.17, 0.54, 0.04, 0.08),
    *shares("SHARES_BY_CHOICE", 0.10, 0.25, 0.55, 0.03, 0.07),
    *shares("PURE_SHARES", 0.10, 0.18, 0.56, 0.06, 0.10),
    *of("defaults", SCARCE=50.0, N_STEPS=100, N_STEPS_PURE=8, N_STEPS_PURE_BY_CHOICE=16),
    *of("defaults", N_STEPS_PURE_FAINT=3, FAINT_VECTOR=200.0, FEW_COLUMNS=10),
    Constant("defaults", "FEW_PAIRS = {}", 2_000),
    Constant("defaults", "max({}, math.sqrt(SCARCE", 0.3, "least part of the side queries"),
    *of("start", EVEN=2.0),
    *of("recipe", DROWNED=0.07),
    *of("start", SIDE=0.5, MAX_DIRECTIONS=10, USUAL_DIRECTIONS=5, SIGNAL_CLIP=0.6, HIDDEN=3.0),
    *of("start", OF_THRESHOLD=0.3, STANDS_OUT=5.0, START_LENGTH=2.0),
    *of("recipe", TOTAL_STEP=1000.0, STEP_PER_SIGNAL=2.5, MAX_STEP=20.0, SHRINKAGE=0.5),
    *of("recipe", SAMPLING=0.3, MUCH_SIGNAL=240.0, TYPICAL_DISTANCE=0.6, L1_PER_L2=0.5),
    Constant("recipe", "CLIP = ({}, 0.2, 0.4)", 0.05, "CLIP, few pairs"),
    Constant("recipe", "CLIP = (0.05, {}, 0.4)", 0.2, "CLIP, many pairs"),
    Constant("recipe", "CLIP = (0.05, 0.2, {})", 0.4, "CLIP, much signal"),
    Constant("recipe", "np.clip({} / signal, *BLEND)", 0.9, "BLEND, by signal"),
    Constant("recipe", "BLEND = ({}, 0.3)", 0.03, "BLEND, least"),
    Constant("recipe", "BLEND = (0.03, {})", 0.3, "BLEND, most"),
    Constant("start", "max(noise, {} * float(spread.max())", 0.01, "least spread of a column"),
    Constant("recipe", "DistanceMoments(candidates, {} * wide", 0.6, "clip of moments"),
    Constant("recipe", "{}**2, 1))", 0.03, "least deviation of distances"),
    Constant("recipe", "np.clip(0.2 * math.sqrt(signal / {}), 0.2", 40.0, "signal at contest's clip"),
    Constant("recipe", "np.clip({} / signal - 4.8, -2, 3)", 60.0, "demand, by signal"),
    Constant("recipe", "np.clip(60 / signal - {}, -2, 3)", 4.8, "demand, offset"),
    Constant("recipe", "np.clip(60 / signal - 4.8, -{}, 3)", 2.0, "demand, least"),
    Constant("recipe", "np.clip(60 / signal - 4.8, -2, {})", 3.0, "demand, most"),
    *of("doubt", LUCK=0.04, SCARCE=16.0, CLIP=0.2, DEVIATIONS=3.0, BELIEVED=0.5),
    *of("doubt", NARROWLY=1.0, SCANT=2.0, SPEAKS=4.0, MORE=0.1),
    Constant("doubt", "MOST = {}", 0.6, most=0.9),  # MORE comes on top, and 1 is all
    Constant("doubt", "LOST = {}", 0.85, most=1.0),
)  # fmt: skip


def source_of(constant: Constant) -> tuple[ModuleType, str, str]:
    """The module, its source, and how the number stands there."""
    module = import_module(f"{PACKAGE}.{constant.module}")
    text = Path(str(module.__file__)).read_text()
    # A line may write 0.10 or 2_000, and 50 must not be found in 50.0.
    for form in (
        str(constant.value),
        f"{constant.value:g}",
        f"{constant.value:.2f}",
        f"{constant.value:_}",
    ):
        snippet = constant.text.replace("{}", form).replace("{rest}", f"{constant.rest:.2f}")
        starts = "(?m)^" if constant.text.endswith(" = {}") else ""
        if len(re.findall(starts + re.escape(snippet) + r"(?![\d._])", text)) == 1:
            return module, text, snippet
    raise ValueError(
        f"{constant.said()} is not once in {constant.module}: update tools/constants.py"
    )


@contextmanager
def changed(constant: Constant | None, factor: float) -> Iterator[None]:
    """The learner with one number changed: functions look numbers up in their module when they run."""
    if constant is None:
        yield
        return
    module, text, snippet = source_of(constant)
    value = min(constant.most, constant.value * factor)
    whole = isinstance(constant.value, int)
    other = constant.text.replace("{}", str(max(1, round(value)) if whole else value))
    other = other.replace("{rest}", str(constant.rest + constant.value - value))
    exec(compile(text.replace(snippet, other), str(module.__file__), "exec"), vars(module))
    try:
        yield
    finally:
        exec(compile(text, str(module.__file__), "exec"), vars(module))


@cache
def drawn(name: str, folder: Path | None, seed: int) -> tuple[Split, LabelledPairs, Any]:
    """People of a table, pairs to learn from, and how a metric is scored."""
    (table,) = [table for table in expected_runs.TABLES if table.name == name]
    rng = np.random.default_rng([seed, 2020])
    split = make_split(table.make(folder), rng, max_people=table.max_people)
    return split, design(split, "paths", rng), gain_on(split, seed, TEST_PAIRS)


def kept(cell: Cell, folder: Path | None, gains: dict[str, float]) -> list[float]:
    """Gain kept, by seed."""
    from pairveil.learners.contrastive.learner import DPPMetricLearner

    found = []
    for seed in SEEDS:
        split, pairs, gain = drawn(cell.table, folder, seed)
        learner = DPPMetricLearner(
            epsilon=cell.epsilon,
            mechanism=cell.mechanism,
            preprocessor=split.X_train,
            random_state=seed,
        ).fit(pairs.pairs, pairs.labels)
        found.append(round(gain(learner.components_) / gains[cell.table], 4))
    return found


def asked(constant: Constant, cell: Cell) -> bool:
    """Whether the number can matter there: pure noise and a chosen start have numbers of their own."""
    text = constant.text
    if "PURE_SHARES" in text or "L1" in text:
        return cell.pure
    if "PURE" in text:
        return cell.pure and cell.chooses == ("CHOICE" in text or "FAINT" in text)
    if "CHOICE" in text or text.split(" =")[0] in ("OF_THRESHOLD", "HIDDEN"):
        return cell.chooses
    if text.startswith(("SHARES", "SIGNAL_CLIP", "STANDS_OUT", "USUAL_DIRECTIONS")):
        return not (cell.pure or cell.chooses)
    return not (cell.pure and constant.module == "defaults" and "SCARCE" in text)


def table(results: dict[str, Any]) -> str:
    """Change of the gain kept over all cells with its standard error, and the worst and best cell."""
    usual = results[USUAL]
    lines = [
        "| number | value | halved | worst cell | doubled | worst cell |",
        "|---|---|---|---|---|---|",
    ]
    for constant in CONSTANTS:
        shown = []
        for which in ("half", "double"):
            runs = results.get(f"{constant.module}: {constant.said()}, {which}")
            if runs is None:
                break
            moved = {cell: np.subtract(runs[cell], usual[cell]) for cell in runs}
            every = np.concatenate(list(moved.values()))
            error = every.std(ddof=1) / math.sqrt(len(every))
            worst = min(moved, key=lambda cell: float(moved[cell].mean()))
            least = float(moved[worst].mean())
            shown += [
                f"{every.mean():+.3f} ± {error:.3f}",
                f"{least:+.2f} {worst}" if least < -0.02 else "",
            ]
        else:
            lines.append(
                f"| {constant.module}: {constant.said()} | {constant.value:g} | "
                + " | ".join(shown)
                + " |"
            )
    return "\n".join(lines)


def variants() -> Iterator[tuple[str, Constant | None, float]]:
    """The learner as it is, then each number halved and doubled."""
    yield USUAL, None, 1.0
    for constant in CONSTANTS:
        for which, factor in (("half", 0.5), ("double", 2.0)):
            yield f"{constant.module}: {constant.said()}, {which}", constant, factor


def main() -> None:
    """Run what is missing, for as long as asked, and print the table."""
    parser = argparse.ArgumentParser(description="Halve and double each fitted number.")
    parser.add_argument("--data", type=Path, help="folder with adult.npz and bank.npz")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after so long")
    given = parser.parse_args()
    end = time.monotonic() + given.seconds
    tables = json.loads(expected_runs.RESULTS.read_text())["tables"]
    gains = {one["table"]: float(np.mean(one["reference"])) for one in tables}
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name, constant, factor in variants():
        if name in results or time.monotonic() > end:
            continue
        with threadpool_limits(1), warnings.catch_warnings(), changed(constant, factor):
            warnings.simplefilter("ignore")
            results[name] = {
                cell.said(): kept(cell, given.data, gains)
                for cell in CELLS
                if constant is None or asked(constant, cell)
            }
        lines = ",\n".join(
            f"{json.dumps(key)}: {json.dumps(found)}" for key, found in results.items()
        )
        write_file(RESULTS, f"{{{lines}}}\n")
    print(table(results))


if __name__ == "__main__":
    main()
