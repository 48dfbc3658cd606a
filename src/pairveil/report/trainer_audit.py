"""The page of an audited trainer: what was claimed, what was found, and what it does not say."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

from pairveil.report.charts import Bar, Fact, Figure, Table, horizontal_bars, table
from pairveil.report.data import Cover
from pairveil.report.page import environment, shell
from pairveil.report.words import number, one_in

if TYPE_CHECKING:  # the page sees plain findings, never the data that they came from
    from pairveil.audit.trainer_audit import Level, TrainerFinding

SECTIONS = (("found", "Found"), ("meaning", "Meaning"), ("how", "Measured"), ("repeat", "Repeat"))
COMPARED = {
    "replace": "contents that say 'same', and others that say 'different'",
    "zero-out": "contents, and none",
}


def render(found: TrainerFinding, command: Sequence[str], cover: Cover | None = None) -> str:
    """The page as a string.

    ``command``: what was typed, for whoever repeats it.

    Examples
    --------
    >>> from pairveil.audit.trainer_audit import audit_trainer
    >>> def noise(X, pairs, y, seed):
    ...     return [seed % 7]
    >>> page = render(audit_trainer(noise, 1.0, runs=40), ["pairveil", "audit"])
    >>> page.startswith("<!doctype html>"), "Nothing found" in page
    (True, True)
    """
    said = cover or Cover()
    violated = found.verdict == "violated"
    worst = max(reversed(found.levels), key=lambda level: level.finding.lower_bound)
    claim, least = number(found.claimed_epsilon), f"{worst.least:.2f}"
    return environment("report").get_template("report/trainer_audit.html").render(
        **shell("report", "audit"),
        title=said.title or f"What {found.trainer} tells of people",
        cover=said,
        made=date.today().isoformat(),
        sections=SECTIONS,
        status="Claim refuted" if violated else "Nothing found",
        status_is_good=not violated,
        large=(
            f"For one {worst.unit} epsilon is at least {least}. Claimed is {claim}."
            if violated
            else f"No more than the claimed epsilon of {claim} was seen."
        ),
        summary=found.summary(),
        facts_=_facts(found, worst),
        levels=_table(found),
        bars=_bars(found),
        meaning=_meaning(found, worst),
        how=_how(worst),
        command=shlex.join(command),
    )  # fmt: skip


def _facts(found: TrainerFinding, worst: Level) -> list[Fact]:
    delta = f"at delta {one_in(found.delta)}" if found.delta else "at delta 0"
    secrets = (
        f"{worst.finding.canary} secrets"
        if worst.mode == "one-run"
        else "half with either contents"
    )
    return [
        Fact("Claimed epsilon", number(found.claimed_epsilon), delta),
        Fact("Largest lower bound", f"{worst.least:.2f}", f"for one {worst.unit}"),
        Fact("Runs that count", f"{worst.finding.n_runs:,}", f"{secrets}, for each line below"),
    ]


def _table(found: TrainerFinding) -> Table:
    rows = [
        (
            level.unit.capitalize(),
            str(level.kappa),
            f"{level.least:.2f}",
            number(found.claimed_epsilon),
            "refuted" if level.finding.verdict == "violated" else "not refuted",
        )
        for level in found.levels
    ]
    columns = ("Secret of one", "pairs that hold it", "epsilon at least", "claimed", "the claim is")
    sure = found.levels[0].finding.confidence
    return table(f"Lower bounds on epsilon, right with {100 * sure:g} % confidence", columns, rows)


def _bars(found: TrainerFinding) -> Figure:
    bars = [
        Bar(
            level.unit.capitalize(),
            level.finding.lower_bound,
            f"{level.least:.2f}",
            f"{level.unit}: epsilon is at least {level.least:.2f}",
            strong=level.finding.verdict == "violated",
        )
        for level in found.levels
    ]
    end = max([bar.value for bar in bars] + [found.claimed_epsilon]) * 1.05
    chart = horizontal_bars(
        bars,
        title="Bars: epsilon that was seen, beside the claim.",
        start=0.0,
        end=end,
        ticks=[(0.0, "0"), (found.claimed_epsilon, f"claim {number(found.claimed_epsilon)}")],
    )
    return Figure(chart, "What was seen, at least, and the claim. Dark bars refute it.")


def _meaning(found: TrainerFinding, worst: Level) -> list[str]:
    seen = worst.finding.lower_bound
    odds = f"{math.exp(min(seen, 30.0)):,.1f}"
    said = [
        f"Whoever holds two stories about a {worst.unit} for equally likely can come to odds of {odds} to 1 "
        "by looking at the model, or higher. At the claimed epsilon the odds would be "
        f"{math.exp(min(found.claimed_epsilon, 30.0)):,.1f} to 1 at most, but for delta."
    ]
    broken = [level.unit for level in found.levels if level.finding.verdict == "violated"]
    if broken and "pair" not in broken:
        said.append(
            "A claim for one example may well be right. Where an example is a pair, a person is in many, and "
            "they change together."
        )
    said.append(
        "A lower bound: the truth may be higher, never lower but for chance. Where nothing was found nothing "
        "is proved: one worst case was planted, and one kind of observer looked."
    )
    return said


def _how(worst: Level) -> list[str]:
    seen = worst.finding
    planted = f"Pairs were planted that hold one secret together: {COMPARED[seen.adjacency]}."
    sure = "A claim is called refuted at 99.9 % confidence only, whatever that of the bounds."
    if worst.mode == "many-run":
        ran = (
            f"The trainer ran {seen.n_runs:,} times for each kind of secret, half of them with either one. "
            "Others taught the observer what to look at."
        )
    else:
        ran = (
            "One secret was planted in each column, by a coin each. Four runs taught the observer what to "
            "look at; then a part of the coins was guessed from the models. The bound is that of "
            "Mahloujifar, Melis and Chaudhuri (2024)."
        )
    return [planted, ran, sure]
