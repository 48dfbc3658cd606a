"""The published algorithm at its best: which single choice of what the paper leaves open meets most of its
figures?

The search climbs one option at a time from the even graph's base setting, at full size: every other value of
an option is tried with the rest as it stands, and the value that meets most claims stays. 'Meets' means
that the mean over the first half of the seeds lies on the claim's side. The setting found is then judged by
the page's rules on the other half, which had no part in the choice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from reproduction.cells import Key, Rows
from reproduction.claims import CLAIMS
from reproduction.experiments import FIGURES, OPTIONS, Setting

#: Fills the cells of a figure at a setting: (figure, setting, seeds, searching) -> rows.
Run = Callable[[str, Setting, Sequence[int], bool], Rows]
#: Repeats of the choice; the report has the second half of all repeats.
CHOICE = 2


def met(setting: Setting, seeds: Sequence[int], run: Run) -> tuple[int, float]:
    """How many claims about figures lie on the right side in the mean; a tie goes to the smaller
    shortfall.
    """
    count, short = 0, 0.0
    for figure in FIGURES:
        rows = run(figure, setting, seeds, True)
        for claim in CLAIMS:
            if claim.kind == "figures" and claim.figure == figure:
                favour = claim.on(rows)["favour"] or 0.0
                count += favour > 0
                short += min(0.0, favour)
    return count, short


def search(repeats: int, run: Run, options: dict[str, tuple[Any, ...]] = OPTIONS) -> dict[str, Any]:
    """Choose on the first half of the seeds and report on the second; ``tried`` counts the settings."""
    half = max(1, repeats // 2)
    first, second = range(min(CHOICE, half)), range(half, max(repeats, half + 1))
    best = Setting(graph="even")
    tried = {best: met(best, first, run)}
    for name, values in options.items():
        for value in values:
            candidate = replace(best, **{name: value})
            if candidate not in tried:
                tried[candidate] = met(candidate, first, run)
        best = max(tried, key=lambda setting: tried[setting])
    results: dict[str, Any] = {figure: run(figure, best, second, False) for figure in FIGURES}
    findings = {c.id: c.on(results[c.figure]) for c in CLAIMS if c.figure}
    return {
        "setting": str(best), "tried": len(tried), "met": tried[best][0], "chosen_on": len(first),
        "reported_on": len(second), "findings": findings,
        "settings": {str(setting): count for setting, (count, _) in tried.items()},
    }  # fmt: skip


def search_cells(keys: Sequence[Key]) -> list[Key]:
    """What the search reads of a figure: epsilons 0.5 and 4 of Fig. 8 and 1 of Fig. 9, to spare time."""
    return [
        key for key in keys
        if key["figure"] not in ("accuracy", "mechanisms")
        or key["epsilon"] in (("none", 0.5, 4.0) if key["figure"] == "accuracy" else (1.0,))
    ]  # fmt: skip
