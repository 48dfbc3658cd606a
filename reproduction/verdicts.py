"""How repeats decide the paper's sentences about its figures: one rule a sentence, fixed before anything is
run.

A rule reads the rows of its figure on one graph. 'A above B' compares repeats in pairs (same people, same
pairs, same start, same test people). A case is clear where the 95 % interval (Student) of the mean
difference leaves out zero. A sentence about every case holds where each case is clear, and does not hold
where one is clearly against it (the cases share the 5 % of such errors); one that says 'most' goes by more
than half of the cases; else it is not decided, and with one repeat nothing is. Where the text is vague, the
rule takes the weaker reading.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import f as fisher
from scipy.stats import t as student

Verdict = Literal[
    "holds", "does not hold", "not decided", "depends on the graph", "depends on the data",
    "not testable here", "not run",
]  # fmt: skip
Rows = Sequence[Mapping[str, Any]]
Rule = Callable[[Rows], "Finding"]

PRIVATE = ("dpp", "dpp-s", "node-dp", "inputper")
SLIGHTLY = 0.01  # the abstract's own 'less than 0.01'


class Finding(NamedTuple):
    """What was measured, in words, and whether the sentence holds (None: not decided).

    ``by_data``: it holds on some data sets, and on others it does not.
    ``favour``, of sentences about figures: by how much it is met (negative: missed), in its own measure.
    """

    measured: str
    holds: bool | None
    favour: float = math.nan
    by_data: bool = False

    @property
    def verdict(self) -> Verdict:
        """In the page's words."""
        if self.by_data:
            return "depends on the data"
        if self.holds is None:
            return "not decided"
        return "holds" if self.holds else "does not hold"


def across_graphs(verdicts: Mapping[str, Verdict]) -> Verdict:
    """The verdict of a sentence from those on each graph: what differs depends on the graph."""
    ran = [verdict for verdict in verdicts.values() if verdict != "not run"]
    if not ran:
        return "not run"
    return ran[0] if len(set(ran)) == 1 else "depends on the graph"


# --- repeats ---------------------------------------------------------------------------------------


def mean_and_half_width(values: ArrayLike, level: float = 0.95) -> tuple[float, float]:
    """Mean and half the interval (Student) over repeats; half width nan for one repeat."""
    array = np.asarray(values, dtype=np.float64)
    if array.size < 2:
        return float(array.mean()), float("nan")
    error = array.std(ddof=1) / np.sqrt(array.size)
    return float(array.mean()), float(student.ppf((1 + level) / 2, array.size - 1) * error)


def positive(repeats: ArrayLike, errors: float = 0.05) -> bool | None:
    """Whether the mean is above 0; None where the interval of level ``1 - errors`` does not say.

    Examples
    --------
    >>> positive([0.2, 0.3, 0.2]), positive([-0.1, 0.3, 0.2]), positive([0.2])
    (True, None, None)
    """
    mean, half = mean_and_half_width(repeats, 1 - errors)
    if mean - half > 0:
        return True
    return False if mean + half < 0 else None


def everywhere(cases: Sequence[ArrayLike]) -> bool | None:
    """Whether the mean is above 0 in every case; to refute, the cases share the 5 % (Bonferroni)."""
    if any(positive(case, 0.05 / len(cases)) is False for case in cases):
        return False
    return True if all(positive(case) for case in cases) else None


def mostly(cases: Sequence[bool | None]) -> bool | None:
    """Whether more than half of the cases are true, whatever the undecided ones are."""
    if sum(case is True for case in cases) > len(cases) / 2:
        return True
    return False if sum(case is False for case in cases) >= len(cases) / 2 else None


def least(cases: Sequence[ArrayLike]) -> float:
    """The smallest mean of the cases: what decides a claim about all of them."""
    return min(mean_and_half_width(case)[0] for case in cases)


def pm(repeats: ArrayLike) -> str:
    """Mean and interval as the page writes them."""
    mean, half = mean_and_half_width(repeats)
    digits = 4 if abs(mean) < 0.1 else 3 if abs(mean) < 10 else 1
    return f"{mean:+.{digits}f}" + (f" ± {half:.{digits}f}" if half == half else " (one repeat)")


def tally(cases: Sequence[ArrayLike]) -> str:
    """The worst case with its interval, and how many are clear either way."""
    sides = [positive(case) for case in cases]
    worst = min(cases, key=lambda case: mean_and_half_width(case)[0])
    return f"worst of {len(cases)} cases {pm(worst)}; {sides.count(True)} clear, {sides.count(False)} against"


def pick(rows: Rows, **where: Any) -> list[Mapping[str, Any]]:
    """The rows with these values."""
    return [row for row in rows if all(row.get(name) == value for name, value in where.items())]


def paired(rows: Rows, column: str, first: dict[str, Any], second: dict[str, Any]) -> NDArray[Any]:
    """first - second over the repeats that both have."""
    a, b = ({r["seed"]: r[column] for r in pick(rows, **side)} for side in (first, second))
    return np.array([a[seed] - b[seed] for seed in sorted(a.keys() & b.keys())])


def curves_of(rows: Rows) -> NDArray[np.float64]:
    """Objectives of several repeats, a row each; longer runs (a graph may have more pairs) are read off."""
    curves = [row["objective"] for row in rows]
    n = min(map(len, curves))
    return np.array([np.interp(np.linspace(0, 1, n), np.linspace(0, 1, len(c)), c) for c in curves])


def mean_of(rows: Rows, column: str, **where: Any) -> float:
    """Mean of a column over the rows with these values."""
    return float(np.mean([row[column] for row in pick(rows, **where)]))


def _names(rows: Rows) -> list[str]:
    return list(dict.fromkeys(row["data"] for row in rows))


def _budgets(rows: Rows) -> list[float]:
    return sorted({row["epsilon"] for row in rows if row["epsilon"] != "none"})


# --- Figs. 6 and 7: the toy ------------------------------------------------------------------------


def _curves(rows: Rows, variant: str) -> NDArray[np.float64]:
    return curves_of(pick(rows, variant=variant))


def _faster(rows: Rows) -> NDArray[Any]:
    """By how much DPP-S's mean objective over the run is below DPP's."""
    return (_curves(rows, "dpp") - _curves(rows, "dpp-s")).mean(axis=1)


def _calmer(rows: Rows) -> NDArray[Any]:
    """By how much the steps of DPP-S spread less than those of DPP."""
    spread = {v: np.diff(_curves(rows, v)).std(axis=1) for v in ("dpp", "dpp-s")}
    return spread["dpp"] - spread["dpp-s"]


def toy_faster(rows: Rows) -> Finding:
    """Mean objective over the run (DPP - DPP-S) and the spread of its steps (the same), both above 0."""
    cases = [_faster(rows), _calmer(rows)]
    return Finding(
        f"mean objective lower by {pm(cases[0])}; steps calmer by {pm(cases[1])}",
        everywhere(cases),
        least(cases),
    )


def toy_calmer(rows: Rows) -> Finding:
    """The second half of that sentence alone."""
    calmer = _calmer(rows)
    return Finding(f"steps calmer by {pm(calmer)}", positive(calmer), float(calmer.mean()))


def toy_close(rows: Rows) -> Finding:
    """DPP-S lies closer to NonPriv's objective than DPP does."""
    gaps = {
        v: np.abs(_curves(rows, v) - _curves(rows, "nonpriv")).mean(axis=1)
        for v in ("dpp", "dpp-s")
    }
    closer = gaps["dpp"] - gaps["dpp-s"]
    return Finding(
        f"distance {gaps['dpp-s'].mean():.4f}, DPP's {gaps['dpp'].mean():.4f}: closer by {pm(closer)}",
        positive(closer),
        float(closer.mean()),
    )


def toy_clearer(rows: Rows) -> Finding:
    """By pair AUC on the toy's points each of the three metrics is above the original distance."""
    gains = {v: [r["pair_auc"] - r["pair_auc_before"] for r in pick(rows, variant=v)]
             for v in ("nonpriv", "dpp", "dpp-s")}  # fmt: skip
    before = np.mean([row["pair_auc_before"] for row in rows])
    text = ", ".join(f"{v} {pm(gain)}" for v, gain in gains.items())
    cases = list(gains.values())
    return Finding(f"pair AUC {before:.3f} before; {text}", everywhere(cases), least(cases))


def toy_above(rows: Rows) -> Finding:
    """DPP-S's objective is below NonPriv's at some of the rounds."""
    share = (_curves(rows, "dpp-s") < _curves(rows, "nonpriv")).mean(axis=1)
    never = len(share) > 1 and not share.any()
    return Finding(
        f"DPP-S is below it in {pm(share)} of the rounds",
        False if never else positive(share),
        float(share.mean()) - 1e-12,
    )


def toy_rounds(rows: Rows) -> Finding:
    """DPP takes more rounds than DPP-S until its objective stays near the mean of its last quarter:
    within a tenth of what NonPriv's objective falls.
    """
    clean = _curves(rows, "nonpriv")
    near = np.abs(clean[:, 0] - clean[:, -1])[:, None] / 10

    def rounds(variant: str) -> NDArray[Any]:
        curves = _curves(rows, variant)
        steady = curves[:, -(curves.shape[1] // 4) :].mean(axis=1, keepdims=True)
        away = np.abs(curves - steady) > near
        last: NDArray[Any] = (away * np.arange(1, away.shape[1] + 1)).max(axis=1)
        return last

    settled = {v: rounds(v) for v in ("nonpriv", "dpp", "dpp-s")}
    more = settled["dpp"] - settled["dpp-s"]
    means = ", ".join(f"{v} {n.mean():.1f}" for v, n in settled.items())
    return Finding(f"rounds: {means}; DPP more by {pm(more)}", positive(more), float(more.mean()))


def toy_steady(rows: Rows) -> Finding:
    """More of NonPriv's steps lower the objective than of the others'."""
    share = {v: (np.diff(_curves(rows, v)) < 0).mean(axis=1) for v in ("nonpriv", "dpp", "dpp-s")}
    leads = [share["nonpriv"] - share[v] for v in ("dpp", "dpp-s")]
    means = ", ".join(f"{v} {s.mean():.2f}" for v, s in share.items())
    return Finding(f"steps that go down: {means}; {tally(leads)}", everywhere(leads), least(leads))


def toy_sensitivity(rows: Rows) -> Finding:
    """The reduced sensitivity is below the standard one (how far below is 'dramatically', the text
    leaves open).
    """
    share = np.array(
        [np.mean(r["sensitivity"]) / r["theorem1"] for r in pick(rows, variant="dpp-s")]
    )
    mean, half = mean_and_half_width(share)
    return Finding(f"{mean:.3f} ± {half:.3f} of it", positive(1 - share), float(1 - mean))


# --- Fig. 8: accuracy ------------------------------------------------------------------------------


def _slopes(rows: Rows) -> dict[tuple[str, str], NDArray[Any]]:
    """What a doubling of epsilon adds to kNN accuracy, by data set and method."""
    budgets = _budgets(rows)
    weight = np.log2(budgets) - np.log2(budgets).mean()
    found = {}
    for name in _names(rows):
        for method in PRIVATE:
            at = [{r["seed"]: r["knn_accuracy"] for r in pick(rows, data=name, method=method, epsilon=e)}
                  for e in budgets]  # fmt: skip
            seeds = sorted(set.intersection(*(set(a) for a in at)))
            table = np.array([[a[seed] for a in at] for seed in seeds])
            found[name, method] = table @ weight / (weight @ weight)
    return found


def rises(rows: Rows) -> Finding:
    """The slope of kNN accuracy on log2(epsilon) is above 0 for every method on every data set."""
    cases = list(_slopes(rows).values())
    return Finding(
        f"a doubling of epsilon adds: {tally(cases)}", everywhere(cases), float(np.mean(cases))
    )


def rises_on_average(rows: Rows) -> Finding:
    """The same of every method's mean over the data sets."""
    slopes = _slopes(rows)
    cases = {m: np.mean([v for (_, of), v in slopes.items() if of == m], axis=0) for m in PRIVATE}
    text = ", ".join(f"{method} {pm(case)}" for method, case in cases.items())
    return Finding(
        f"a doubling of epsilon adds: {text}", everywhere(list(cases.values())),
        least(list(cases.values())),
    )  # fmt: skip


def _above(rows: Rows, better: str, worse: str) -> dict[tuple[str, float], NDArray[Any]]:
    """By how much one method's accuracy is above another's, by data set and epsilon."""
    return {
        (name, e): paired(
            rows, "knn_accuracy",
            {"data": name, "epsilon": e, "method": better},
            {"data": name, "epsilon": e, "method": worse},
        )
        for name in _names(rows)
        for e in _budgets(rows)
    }  # fmt: skip


def node_below(rows: Rows) -> Finding:
    """DPP is above Node DP in every case; exactly equal in every repeat is not below."""
    cases = list(_above(rows, "dpp", "node-dp").values())
    ties = sum(len(case) > 1 and not case.any() for case in cases)
    sizes = ", ".join(
        f"{name} {mean_of(rows, 'kappa', data=name, method='dpp'):.1f} and "
        f"{mean_of(rows, 'kappa', data=name, method='node-dp'):.1f}"
        for name in _names(rows)
    )
    return Finding(
        f"{tally(cases)}, {ties} exactly equal; kappa' and largest degree: {sizes}",
        False if ties else everywhere(cases),
        float(np.mean(cases)) - 1e-12,
    )


def reduced_above(rows: Rows) -> Finding:
    """DPP-S above DPP on average over data sets and epsilons, and on no data set clearly below."""
    cases = _above(rows, "dpp-s", "dpp")
    sets = {
        name: np.mean([case for (of, _), case in cases.items() if of == name], axis=0)
        for name in _names(rows)
    }
    overall = np.mean(list(cases.values()), axis=0)
    against = any(positive(case, 0.05 / len(sets)) is False for case in sets.values())
    text = ", ".join(f"{name} {pm(case)}" for name, case in sets.items())
    return Finding(
        f"{pm(overall)}; {text}", False if against else positive(overall), float(overall.mean())
    )


def _over_input(rows: Rows, case: dict[str, Any]) -> list[NDArray[Any]]:
    """By how much each other method is above InputPer in one case."""
    mine = {**case, "method": "inputper"}
    return [
        paired(rows, "knn_accuracy", {**case, "method": m}, mine)
        for m in PRIVATE
        if m != "inputper"
    ]


def input_worst(rows: Rows) -> Finding:
    """In more than half of the cases (data set, epsilon) every other method is above InputPer."""
    cases = [
        _over_input(rows, {"data": n, "epsilon": e}) for n in _names(rows) for e in _budgets(rows)
    ]
    clear = [everywhere(case) for case in cases]
    lowest = sum(least(case) > 0 for case in cases)
    return Finding(
        f"lowest in {lowest} of {len(cases)} cases ({clear.count(True)} clear, clearly not in "
        f"{clear.count(False)}); median lead {np.median([least(case) for case in cases]):+.4f}",
        mostly(clear),
        float(np.median([least(case) for case in cases])),
    )


def input_us(rows: Rows) -> Finding:
    """On IPUMS-US InputPer is above the others at the smallest epsilon."""
    cases = _over_input(rows, {"data": "ipums_us", "epsilon": min(_budgets(rows))})
    above = [-np.array(case) for case in cases]
    return Finding(
        f"at epsilon {min(_budgets(rows)):g}: {tally(above)}", everywhere(above), least(above)
    )


def _gains(rows: Rows, column: str, name: str, than: str) -> NDArray[Any]:
    """By how much the better (in the mean) of DPP and DPP-S at epsilon 4 is above a method without
    privacy.
    """
    both = [
        paired(
            rows,
            column,
            {"data": name, "method": m, "epsilon": 4.0},
            {"data": name, "method": than},
        )
        for m in ("dpp", "dpp-s")
    ]
    return max(both, key=lambda gains: float(gains.mean()))


def little_lost(rows: Rows) -> Finding:
    """The better of DPP and DPP-S at epsilon 4 loses less than 0.01 on NonPriv on every data set."""
    lost = {name: -_gains(rows, "knn_accuracy", name, "nonpriv") for name in _names(rows)}
    spare = [SLIGHTLY - loss for loss in lost.values()]
    untrained = ", ".join(
        f"{mean_of(rows, 'knn_accuracy', data=n, method='nonpriv') - mean_of(rows, 'knn_accuracy', data=n, method='untrained'):+.3f}"  # noqa: E501
        for n in lost
    )
    text = ", ".join(f"{name} {pm(loss)}" for name, loss in lost.items())
    return Finding(f"lost: {text}; untrained loses {untrained}", everywhere(spare), least(spare))


def auc_gained(rows: Rows) -> Finding:
    """Our own: is the better of DPP and DPP-S at epsilon 4 above Euclid and an untrained metric by
    pair AUC?
    """
    gains = {
        n: [_gains(rows, "pair_auc", n, b) for b in ("euclid", "untrained")] for n in _names(rows)
    }
    text = ", ".join(
        f"{n} {mean_of(rows, 'pair_auc', data=n, method='euclid') + over[0].mean():.3f} "
        f"(Euclid {pm(over[0])})"
        for n, over in gains.items()
    )
    cases = [case for over in gains.values() for case in over]
    return Finding(f"AUC {text}", everywhere(cases), least(cases))


# --- Fig. 9: mechanisms ----------------------------------------------------------------------------


def _lower(rows: Rows, *pairs: tuple[str, str]) -> list[NDArray[Any]]:
    """By how much the first of each pair ends its epoch below the second, by data set and epsilon."""
    return [
        paired(
            rows, "objective_end",
            {"data": name, "epsilon": e, "method": worse},
            {"data": name, "epsilon": e, "method": better},
        )
        for better, worse in pairs
        for name in _names(rows)
        for e in _budgets(rows)
    ]  # fmt: skip


def _ends(rows: Rows, *pairs: tuple[str, str]) -> Finding:
    cases = _lower(rows, *pairs)
    return Finding(f"objective lower by: {tally(cases)}", everywhere(cases), least(cases))


def scdf_faster(rows: Rows) -> Finding:
    """SCDF's objective after the epoch ('the smaller, the better convergence') is below Lap's in
    every case.
    """
    return _ends(rows, ("SCDF", "Lap"))


def joint_scdf_faster(rows: Rows) -> Finding:
    """The same of staircase noise that is drawn for the whole row."""
    return _ends(rows, ("SCDF-joint", "Lap"))


def reduced_fastest(rows: Rows) -> Finding:
    """Lap-S's objective after the epoch is below that of Lap, SCDF and Duchi in every case."""
    return _ends(rows, *(("Lap-S", other) for other in ("Lap", "SCDF", "Duchi")))


def reduced_fastest_on_average(rows: Rows) -> Finding:
    """The same of every data set's mean over epsilons."""
    rivals = [("Lap-S", other) for other in ("Lap", "SCDF", "Duchi")]
    cases = [
        np.mean(_lower(pick(rows, data=name), rival), axis=0)
        for rival in rivals
        for name in _names(rows)
    ]
    return Finding(f"objective lower by: {tally(cases)}", everywhere(cases), least(cases))


def duchi_worst(rows: Rows) -> Finding:
    """Duchi's objective after the epoch is above that of Lap, Lap-S and SCDF in every case."""
    return _ends(rows, *((other, "Duchi") for other in ("Lap", "Lap-S", "SCDF")))


# --- Fig. 10: parameters ---------------------------------------------------------------------------


def _values(rows: Rows, panel: str) -> list[float]:
    return sorted({row["value"] for row in pick(rows, panel=panel)})


def _leads(rows: Rows, panel: str, column: str, value: float) -> dict[float, NDArray[Any]]:
    """By how much one value of a panel is above each other one."""
    at = {v: {"panel": panel, "value": v} for v in _values(rows, panel)}
    return {v: paired(rows, column, at[value], at[v]) for v in at if v != value}


def _best(rows: Rows, panel: str, column: str, sign: int, value: float) -> Finding:
    """``sign`` is +1 where more is better, -1 where less is."""
    leads = {v: sign * lead for v, lead in _leads(rows, panel, column, value).items()}
    rival = min(leads, key=lambda v: leads[v].mean())
    means = ", ".join(
        f"{v:g}: {mean_of(rows, column, panel=panel, value=v):.3f}" for v in _values(rows, panel)
    )
    return Finding(
        f"{means}; lead over {rival:g} {pm(leads[rival])}",
        everywhere(list(leads.values())),
        float(leads[rival].mean()),
    )


def h_half(rows: Rows) -> Finding:
    """h = 0.5 ends with the lowest objective."""
    return _best(rows, "h", "objective_end", -1, 0.5)


def h_between(rows: Rows) -> Finding:
    """Both the smallest and the largest h end above the best value between them."""
    ends = {v: mean_of(rows, "objective_end", panel="h", value=v) for v in _values(rows, "h")}
    outer = (min(ends), max(ends))
    best = min((v for v in ends if v not in outer), key=lambda v: ends[v])
    leads = _leads(rows, "h", "objective_end", best)
    cases = [-leads[v] for v in outer]
    return Finding(
        f"best {best:g}; {outer[0]:g} higher by {pm(cases[0])}, {outer[1]:g} by {pm(cases[1])}",
        everywhere(cases),
        least(cases),
    )


def h_two(rows: Rows) -> Finding:
    """With h = 2 the mean curve peaks above its start in the first half of the run and ends below its
    peak.
    """
    curves = curves_of(pick(rows, panel="h", value=2.0))
    top = int(curves.mean(axis=0)[: curves.shape[1] // 2].argmax())
    rise, fall = curves[:, top] - curves[:, 0], curves[:, top] - curves[:, -1]
    return Finding(
        f"rises by {pm(rise)} to its peak at {top / (curves.shape[1] - 1):.0%} of the run, then falls by "
        f"{pm(fall)}",
        everywhere([rise, fall]),
        least([rise, fall]),
    )


def batch_fifty(rows: Rows) -> Finding:
    """|B| = 50 ends with the lowest objective."""
    return _best(rows, "batch_size", "objective_end", -1, 50)


def rho_two(rows: Rows) -> Finding:
    """rho = 2 has the highest accuracy."""
    return _best(rows, "rho", "knn_accuracy", +1, 2.0)


def _close(rows: Rows, panel: str, value: float) -> Finding:
    leads = _leads(rows, panel, "knn_accuracy", value)
    best = min(leads, key=lambda v: leads[v].mean())
    cases = [SLIGHTLY + lead for lead in leads.values()]
    return Finding(f"{best:g} is above it by {pm(-leads[best])}", everywhere(cases), least(cases))


def rho_one(rows: Rows) -> Finding:
    """rho = 1 is less than 0.01 below every other value."""
    return _close(rows, "rho", 1.0)


def d_sixteen(rows: Rows) -> Finding:
    """d' = 16 has the highest accuracy."""
    return _best(rows, "n_components", "knn_accuracy", +1, 16)


def d_full(rows: Rows) -> Finding:
    """d' = 32, no reduction, is less than 0.01 below every other value."""
    return _close(rows, "n_components", 32)


def d_variance(rows: Rows) -> Finding:
    """The variance of accuracy at the smallest d' is above that at the largest (Fisher's F, 95 %)."""
    values = _values(rows, "n_components")
    runs = [
        [row["knn_accuracy"] for row in pick(rows, panel="n_components", value=v)]
        for v in (values[0], values[-1])
    ]
    n = len(runs[0])
    off = float(fisher.ppf(0.975, n - 1, n - 1)) if n > 1 else math.nan
    below = np.var(runs[1])
    ratio = float(np.var(runs[0]) / below) if below else math.nan
    return Finding(
        f"variance at {values[0]:g} is {ratio:.1f} times that at {values[-1]:g} ({ratio / off:.1f} to "
        f"{ratio * off:.1f})",
        True if ratio > off else False if ratio * off < 1 else None,
        ratio - 1,
    )


# --- the remark after Theorem 2 --------------------------------------------------------------------


def full_batch(rows: Rows) -> Finding:
    """The largest clipped gradient of a full batch is h = 0.5 in every row and repeat, set by set."""
    h, sets = 0.5, _names(rows)
    repeats = {name: np.array([row["least"] for row in pick(rows, data=name)]) for name in sets}
    at_h = {name: bool((peaks >= h - 1e-9).all()) for name, peaks in repeats.items()}
    if min(map(len, repeats.values())) < 2:
        return Finding("one repeat", None)
    text = ", ".join(f"{name} {peaks.min():.3f}" for name, peaks in repeats.items())
    mixed = len(set(at_h.values())) > 1
    return Finding(
        f"h = {h:g}; the row with the smallest peak, all repeats: {text}",
        None if mixed else all(at_h.values()),
        by_data=mixed,
    )
