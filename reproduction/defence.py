"""The second reader on the authors' side: for each sentence that computation refutes, readings in its favour;
for claims that are rerun and not borne out, choices that the text itself suggests.

Choices and their rules were written down before any of them was run, and all of them are shown. A reading
that the text excludes does not change a verdict.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from pairveil.graph.kappa import kappa
from reproduction.baselines import Duchi, Warner
from reproduction.cells import Key, Rows
from reproduction.claims import CLAIMS
from reproduction.experiments import GRAPHS, Setting
from reproduction.graphs import (
    Edges,
    exact_kappa,
    greedy_kappa,
    path_choices,
    small_graphs,
    targets_of,
)
from reproduction.published import Laplace
from reproduction.steelman import Run
from reproduction.theorems import relabelled
from reproduction.verdicts import (
    Finding,
    joint_scdf_faster,
    reduced_fastest_on_average,
    rises_on_average,
    toy_calmer,
)

#: Found among 3,000 random graphs on five to eight people, of which 65 are like it.
NINE = [(4, 5), (3, 5), (0, 1), (0, 4), (1, 4), (2, 5), (2, 4), (1, 2), (2, 3)]


class Defence(NamedTuple):
    """The reading tried, and what it gives."""

    claim: str
    reading: str
    outcome: Callable[[], str]


def _rows_share() -> str:
    each, rows = 1 / 16, 16
    return (
        f"then the step costs {relabelled(rows, each):.2f}, as claimed, with {rows} times the noise that "
        "Algorithm 1 prints; the figures have the printed noise"
    )


def _approximate() -> str:
    """H of Lap(b) from Lap(2b) at one point, e^-epsilon/4: the noise scale doubled, everything else equal."""
    delta = 1e-5
    return (
        f"a doubled Laplace scale alone has delta e^-eps/4: {math.log(1 / (4 * delta)):.1f} at {delta:g} for "
        "one row of one step, claimed 1, and the text claims no delta"
    )


def _group_share() -> str:
    answer, group = Warner(1 / 4), 4
    together = group * (answer.log_mass(1, 1) - answer.log_mass(1, -1))
    return (
        f"then four labels cost {together:.2f}: this is the consideration that the sentence denies"
    )


def _labels_alone() -> str:
    return "true of labels; the appendix speaks of pairs with their features, and the learner sums these"


def _target_is_pair() -> str:
    """Proposition 1's equality, for paired targets, and in graphs that no person cuts."""
    paired, cut = np.zeros(4, dtype=int), np.zeros(4, dtype=int)
    for graph in small_graphs():
        ends = {tuple(sorted(edge)) for edge in graph}
        people = sorted({v for edge in graph for v in edge})
        whole = len(set(kappa(graph).per_person.tolist())) == 1
        for (s, t), counts in targets_of(graph).items():
            paired += counts if tuple(sorted((s, t))) in ends else 0
            cut += counts if whole and len(people) > 2 else 0
    return (
        f"still {paired[2] + paired[3]} exceptions among {paired[0]:,} targets that are pairs, and "
        f"{cut[2] + cut[3]} among {cut[0]:,} where everybody has the same bound"
    )


def _connected_by_path() -> str:
    """The greedy search over all people of a component instead of over pairs."""

    def found(graph: Edges) -> int:
        bound = kappa(graph).per_person.tolist()
        couples = list(itertools.combinations([bound[v] for v in sorted(set(sum(graph, ())))], 2))
        most = max(sum(couple) for couple in couples)
        return int(max(min(couple) for couple in couples if sum(couple) == most))

    off = sum(found(graph) != exact_kappa(graph) for graph in small_graphs())
    return (
        f"then it misses kappa in {off} of the page's {len(small_graphs())} graphs; on one of {len(NINE)} "
        f"pairs it gives {found(NINE)}, kappa is {exact_kappa(NINE)}: a bound still, not equality"
    )


def _one_is_known() -> str:
    cycle = np.array([[1, -1, 0], [0, 1, -1], [-1, 0, 1], [1, 0, 0]])
    ranks = [int(np.linalg.matrix_rank(rows)) for rows in (cycle, cycle[[0, 1, 3]])]
    return (
        f"then {ranks[0]} of 3 people are determined on a circle and {ranks[1]} of 3 on a path: true, and "
        "the circle adds nothing"
    )


def _other_power() -> str:
    steps = np.arange(1, 10_001)
    half = [float((steps**-p)[5_000:].sum()) for p in (1.0, 2.0)]
    return (
        f"1/tau would do (its second 5,000 steps add {half[0]:.2f}, their squares {half[1]:.4f}); the text "
        "has a square root in either reading"
    )


def _one_sided() -> str:
    variance = 2 * 1.0**2  # of Laplace noise of scale h/(|B| eps), in units of its square
    return (
        f"a sensitivity of h/|B| gives {variance:g}, 2h/|B| gives {4 * variance:g} times h^2/(|B|^2 eps^2): "
        "4 is the square of the scale, the variance is twice that"
    )


def _pairs_are_missing() -> str:
    """Neighbours that lack kappa pairs: a batch of fixed size moves by half of what relabelling moves it."""
    costs = {rows: relabelled(rows, 1.0) / 2 for rows in (1, 2, 16)}
    text = ", ".join(f"d' = {rows}: {cost:.2f}" for rows, cost in costs.items())
    return (
        f"then the step costs half: {text}. True of the toy's two rows, not of the figures' sixteen; Theorem "
        "1's factor of two is for pairs that are replaced"
    )


def _peak_is_public() -> str:
    return (
        f"then sixteen rows cost {relabelled(16, 1.0):.0f}, as under Theorem 1; Algorithm 1 reads g' off the "
        "private batch"
    )


def _never_certain() -> str:
    answer = Warner(1.0)
    odds = 4 * (answer.log_mass(1, 1) - answer.log_mass(1, -1))
    return (
        f"then an attacker is right {1 / (1 + math.exp(-odds)):.2f} of the time, never always: true, and so "
        "it is under edge DP, which the paper calls not applicable for this reason (edge-dp)"
    )


def _other_paths() -> str:
    """Proposition 1's equality with the paths that suit it, as printed and with <= for =."""
    off, weaker, total = 0, 0, 0
    for graph in small_graphs():
        bound = kappa(graph).per_person
        for (s, t), choices in path_choices(graph).items():
            for v, flip in ((s, 1), (t, -1)):
                found = [(n + min(c) == bound[v], c[::flip]) for n, *c in choices]
                off += not any(equal == (a == b) for equal, (a, b) in found)
                weaker += not any(equal == (a <= b) for equal, (a, b) in found)
                total += 1
    return (
        f"for {off} of {total:,} targets no choice of paths meets it, and for {weaker} none meets "
        "'if and only if c_s <= c_t', which the proof would give"
    )


def _kappa_of_other_paths() -> str:
    """The greedy search against every kappa that some choice of paths gives."""

    def misses(graph: Edges) -> bool:
        choices = path_choices(graph).values()
        low, high = (max(of(n + min(c) for n, *c in one) for one in choices) for of in (min, max))
        return not low <= greedy_kappa(graph) <= high

    off = sum(misses(graph) for graph in small_graphs())
    return f"in {off} of the page's graphs what it finds is kappa under no choice of paths"


def _as_printed() -> str:
    return (
        "the text prints 'sum eta^2 <= infinity', which every rule meets: with 1/sqrt(tau) the sentence is "
        "then true and says nothing; the rule as printed still sums to a finite number"
    )


def _order_of_magnitude() -> str:
    ratio = Duchi(1.0).variance(1, 2.0) / Laplace(1.0).variance(1, 2 * 0.5 / 50)
    return (
        f"{ratio:,.0f} is around 10,000 at kappa 1; the figure's graphs have kappa 4 "
        f"({ratio / 16:,.0f}) and 14 ({ratio / 196:,.0f}), and the variance stays wrong"
    )


DEFENCES = (
    Defence("noise-1", "each row is given eps/d'", _rows_share),
    Defence("noise-1", "neighbours lack the pairs", _pairs_are_missing),
    Defence("noise-2", "approximate privacy is meant", _approximate),
    Defence("noise-2", "the batch's peak is public", _peak_is_public),
    Defence("input-correlation", "labels of one relationship share its epsilon", _group_share),
    Defence("input-correlation", "'unreliable' means never certain", _never_certain),
    Defence("intransitive", "labels alone are private", _labels_alone),
    Defence("prop-1-iff", "targets that are pairs; graphs without weak people", _target_is_pair),
    Defence("prop-1-iff", "the paths may be chosen", _other_paths),
    Defence("kappa-greedy", "connected means by a path", _connected_by_path),
    Defence("kappa-greedy", "the paths may be chosen", _kappa_of_other_paths),
    Defence("cycle", "somebody on the circle is known", _one_is_known),
    Defence("steps", "another power was meant", _other_power),
    Defence("steps", "the condition as printed", _as_printed),
    Defence("lap-variance", "another sensitivity was meant", _one_sided),
    Defence("lap-variance", "'around' means the order", _order_of_magnitude),
)


def defences() -> list[dict[str, str]]:
    """Every reading with its outcome, as the page shows them."""
    return [{"claim": d.claim, "reading": d.reading, "outcome": d.outcome()} for d in DEFENCES]


class Choice(NamedTuple):
    """A choice for a claim about a figure: what the text says for it, the setting, the cells, the rule.

    With a rule of its own, or at fewer epsilons, it asks for less than the sentence does.
    """

    claim: str
    words: str
    setting: Setting
    only: Mapping[str, Sequence[Any]] = {}
    rule: Callable[[Rows], Finding] | None = None


_EVEN = Setting(graph="even")
_BUDGETS = (0.5, 2.0, 8.0)
_FIG_9 = {"epsilon": (1.0,), "method": ("Lap", "Lap-S", "SCDF", "Duchi")}
CHOICES = (
    *(Choice("toy-faster", "its second half alone", Setting(graph=graph), rule=toy_calmer)
      for graph in GRAPHS),
    Choice("rises", "the mean over the data sets", _EVEN, {"epsilon": _BUDGETS}, rises_on_average),
    Choice("node-below", "kappa by Appendix A's greedy search", Setting(kappa="greedy"),
           {"epsilon": _BUDGETS, "method": ("dpp", "node-dp")}),
    Choice("reduced-above", "batches from a component, which the text names as the gain's source",
           Setting(graph="blocks", batches="components"),
           {"epsilon": _BUDGETS, "method": ("dpp", "dpp-s")}),
    Choice("input-worst", "InputPer's margin is preset, as the others'",
           replace(_EVEN, input_margin="preset"), {"epsilon": _BUDGETS}),
    *(Choice("scdf", "epsilon 1 alone, which the text computes with", Setting(graph=graph),
             {**_FIG_9, "method": ("Lap", "SCDF")}) for graph in GRAPHS),
    *(Choice("scdf", "noise for the whole row", Setting(graph=graph), {"method": ("Lap", "SCDF-joint")},
             joint_scdf_faster) for graph in GRAPHS),
    *(Choice("lap-s", "epsilon 1 alone, which the text computes with", Setting(graph=graph), _FIG_9)
      for graph in GRAPHS),
    Choice("rho-two", "ten epochs, as the toy has", replace(_EVEN, epochs=10), {"panel": ("rho",)}),
    Choice("rho-two", "a start in [0, 1]", replace(_EVEN, start="uniform"), {"panel": ("rho",)}),
    Choice("d-sixteen", "ten epochs, as the toy has", replace(_EVEN, epochs=10),
           {"panel": ("n_components",)}),
    Choice("d-sixteen", "a start at principal directions", replace(_EVEN, start="pca"),
           {"panel": ("n_components",)}),
    # once more, for the figures' three claims that neither graph bears out, and the remark on full batches
    *(Choice("toy-faster", "a start in [0, 1]: the text's map of what comes out is positive",
             Setting(graph=graph, start="uniform")) for graph in GRAPHS),
    Choice("lap-s", "batches from a component, which the text names as the gain's source",
           Setting(graph="blocks", batches="components"), {"method": _FIG_9["method"]}),
    *(Choice("lap-s", "the mean over epsilons, a panel a data set", Setting(graph=graph),
             {"method": _FIG_9["method"]}, reduced_fastest_on_average) for graph in GRAPHS),
    Choice("rho-two", "a start in [0, 1] and a Euclidean margin, as D_W is",
           replace(_EVEN, start="uniform", margin="l2"), {"panel": ("rho",)}),
    Choice("full-batch", "a start in [0, 1]", Setting(start="uniform")),
)  # fmt: skip


def choices(seeds: Sequence[int], run: Run) -> list[dict[str, Any]]:
    """Every choice with what came of it, judged by the claim's own rule unless it names another."""
    by_id, found = {claim.id: claim for claim in CLAIMS}, []
    for choice in CHOICES:
        claim = by_id[choice.claim]

        def keep(key: Key, only: Mapping[str, Sequence[Any]] = choice.only) -> bool:
            return all(key.get(name) in values for name, values in only.items())

        judged = replace(claim, check=choice.rule or claim.check)
        rows = run(claim.figure, choice.setting, seeds, keep)
        found.append(
            {
                "claim": claim.id,
                "words": choice.words,
                "setting": str(choice.setting),
                "whole": choice.rule is None and "epsilon" not in choice.only,
                **judged.on(rows),
            }
        )
    return found
