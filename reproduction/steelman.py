"""The published algorithm at its best: which single choice of what the paper leaves open meets most of its
figures, and which choice would save each claim on its own?

The grid is the product of `OPTIONS`. The search has two stages on the first half of the seeds. It *sketches*
settings drawn at random from the whole grid, on one data set; then it measures *finalists* on all sets, with
other seeds: the best of the sketches, the setting made of the values that did best in their mean, and the
winner of an earlier search. A claim is met where the mean lies on its side. The winner is judged by the
page's rules on the other half of the seeds, which had no part in the choice.

`defend` is the second reader, on the authors' side: for each claim it takes the sketched setting that favours
this claim most, whatever it does to the others, and judges it likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from reproduction.cells import Key, Rows
from reproduction.claims import CLAIMS, Claim
from reproduction.experiments import FIGURES, OPTIONS, Setting

#: Fills those cells of a figure that a part of the search reads: (figure, setting, seeds, keep) -> rows.
Run = Callable[[str, Setting, Sequence[int], Callable[[Key], bool]], Rows]
ON_FIGURES = tuple(claim for claim in CLAIMS if claim.kind == "figures")
LOST = next(claim for claim in CLAIMS if claim.id == "little-lost")
SKETCHED, HARD = "bank", "adult"
#: Won an earlier search of 16 settings; a finalist of each later one.
EARLIER = Setting(graph="even", epochs=1, update="simultaneous", toy="filled")


class Effort(NamedTuple):
    """How many settings are drawn, how many of them are finalists, and the repeats of both stages."""

    drawn: int = 46
    finalists: int = 4
    sketch: int = 1
    final: int = 2


FULL_EFFORT = Effort()


class Seeds(NamedTuple):
    """Disjoint repeats of the sketch, of the finalists and of the report, as far as there are enough."""

    sketch: Sequence[int]
    final: Sequence[int]
    report: Sequence[int]

    @classmethod
    def of(cls, repeats: int, effort: Effort) -> Seeds:
        """The first half chooses, the second reports."""
        half = max(1, repeats // 2)
        first = range(half)
        later = first[effort.sketch :][: effort.final]
        return cls(first[: effort.sketch], later or first, range(half, max(repeats, half + 1)))


def grid(drawn: int, options: Mapping[str, Sequence[Any]], random_state: int = 28) -> list[Setting]:
    """Both base settings, and as many others drawn from all combinations."""
    rng = np.random.default_rng(random_state)
    found = dict.fromkeys([Setting(graph="random"), Setting(graph="even")])
    size = len(found) + drawn
    for _ in range(50 * size):  # a small grid may have fewer
        if len(found) < size:
            chosen = {name: values[rng.integers(len(values))] for name, values in options.items()}
            found[Setting(**chosen)] = None
    return list(found)


def favours(
    setting: Setting, seeds: Sequence[int], run: Run, keep: Callable[[Key], bool]
) -> dict[str, float]:
    """By how much each claim about a figure is met in the mean (negative: missed), in its own measure."""
    found = {}
    for figure in FIGURES:
        rows = run(figure, setting, seeds, keep)
        found |= {c.id: c.on(rows)["favour"] or 0.0 for c in ON_FIGURES if c.figure == figure}
    return found


def sketch(
    setting: Setting, seeds: Sequence[int], run: Run, one: str, hard: str
) -> dict[str, float]:
    """Every claim on one data set, but little-lost on the set where an untrained metric loses most."""
    found = favours(setting, seeds, run, lambda k: coarse(k) and k["data"] in ("toy", one))
    rows = run("accuracy", setting, seeds, lambda k: LOST.reads(k) and k["data"] == hard)
    return {**found, LOST.id: LOST.on(rows)["favour"]}


def met(favour: Mapping[str, float]) -> tuple[int, float]:
    """How many claims are met; a tie goes to the smaller shortfall."""
    return sum(v > 0 for v in favour.values()), sum(min(0.0, v) for v in favour.values())


def composed(tried: Mapping[Setting, Mapping[str, float]]) -> Setting:
    """Each option at the value whose settings met most claims in their mean."""
    chosen = {}
    for name in OPTIONS:
        counts: dict[Any, list[int]] = {}
        for setting, favour in tried.items():
            counts.setdefault(getattr(setting, name), []).append(met(favour)[0])
        chosen[name] = max(counts, key=lambda value: float(np.mean(counts[value])))
    return Setting(**chosen)


def coarse(key: Key) -> bool:
    """Epsilons 0.5 and 4 of Fig. 8 and 1 of Fig. 9: what both stages of the search read."""
    if key["figure"] == "accuracy":
        return key["epsilon"] in ("none", 0.5, 4.0)
    return key["figure"] != "mechanisms" or key["epsilon"] == 1.0


def search(
    repeats: int,
    run: Run,
    sets: Iterable[str],
    options: Mapping[str, Sequence[Any]] = OPTIONS,
    effort: Effort = FULL_EFFORT,
) -> tuple[dict[str, Any], dict[Setting, dict[str, float]]]:
    """What the page shows of the best single setting, and the favours of every sketched one."""
    seeds, names = Seeds.of(repeats, effort), list(sets)
    one, hard = (n if n in names else names[0] for n in (SKETCHED, HARD))
    tried = {s: sketch(s, seeds.sketch, run, one, hard) for s in grid(effort.drawn, options)}
    order = sorted(tried, key=lambda setting: met(tried[setting]), reverse=True)
    finalists = dict.fromkeys([*order[: effort.finalists], composed(tried), EARLIER])
    final = {s: met(favours(s, seeds.final, run, coarse)) for s in finalists}
    best = max(final, key=lambda setting: final[setting])
    rows = {figure: run(figure, best, seeds.report, lambda _: True) for figure in FIGURES}
    return {
        "setting": str(best), "tried": len({*tried, *final}), "sketched_on": f"{one} (little-lost: {hard})",
        "sketch_repeats": len(seeds.sketch), "final_repeats": len(seeds.final),
        "reported_on": len(seeds.report), "met": final[best][0],
        "findings": {c.id: c.on(rows[c.figure]) for c in CLAIMS if c.figure in rows},
        "sketches": {str(s): met(favour)[0] for s, favour in tried.items()},
        "finalists": {str(s): count for s, (count, _) in final.items()},
    }, tried  # fmt: skip


def defend(
    claims: Iterable[Claim], repeats: int, run: Run, tried: Mapping[Setting, Mapping[str, float]],
    effort: Effort = FULL_EFFORT,
) -> dict[str, Any]:  # fmt: skip
    """Each claim at the sketched setting that favours it most, judged on the second half of the seeds."""
    seeds, found = Seeds.of(repeats, effort), {}
    for claim in claims:
        best = max(tried, key=lambda setting: tried[setting][claim.id])
        rows = run(claim.figure, best, seeds.report, claim.reads)
        found[claim.id] = {"setting": str(best), **claim.on(rows)}
    return found
