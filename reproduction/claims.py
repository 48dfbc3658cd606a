"""Every checkable sentence of the paper, with the check that decides it.

A claim is data: where the paper says it, what it says, which experiments it needs, and a function from
results to a Finding. The page is written from these, never typed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from reproduction import beyond, steelman
from reproduction import graph_theorems as graphs
from reproduction import observations as seen
from reproduction import theorems as proved
from reproduction.findings import UNTESTABLE, Finding
from reproduction.observations import Results


@cache
def _computed(check: Callable[[], Finding]) -> Finding:
    """A check without results always finds the same: once a process is enough."""
    return check()


@dataclass(frozen=True)
class Claim:
    """One sentence of the paper.

    ``needs`` names the experiment whose results ``check`` reads ("" for a check by computation).
    """

    id: str
    where: str
    sentence: str
    check: Callable[..., Finding]
    needs: str = ""

    @property
    def command(self) -> str:
        """What a reader runs to see it."""
        return f"python -m reproduction {self.needs or 'toy'}"

    def decide(self, results: Results) -> Verdicted:
        """Run the check, if the experiment it needs was run."""
        if not self.needs:
            finding = _computed(self.check)
        elif self.needs in results:
            finding = self.check(results)
        else:
            finding = Finding(f"the experiment `{self.needs}` was not run", UNTESTABLE)
        figures = [f for f in results.get(self.needs, {}).get("files", []) if f.endswith(".png")]
        tried = results.get("steelman", {}).get("rows")
        return Verdicted(
            self.id, self.where, self.sentence, finding.measured, finding.verdict, self.command,
            figures[-1] if figures else "", self.needs,
            steelman.best_case(self.id, tried) if tried else "",
        )  # fmt: skip


@dataclass(frozen=True)
class Verdicted:
    """A claim with what we measured; plain data for JSON.

    ``best_case``: what becomes of it at the setting that favours it most ("" where none was sought).
    """

    id: str
    where: str
    sentence: str
    measured: str
    verdict: str
    command: str
    figure: str
    needs: str
    best_case: str


CLAIMS: tuple[Claim, ...] = (
    # by computation
    Claim("theorem-1", "Theorem 1", "A row's l1 gradient sensitivity on a minibatch is at most "
          "2 kappa h/|B|.", proved.theorem_1),
    Claim("noise-1", "Remark after Theorem 1", "Adding Lap(2 kappa h/(|B| eps)) to the iterative batch "
          "gradient makes the algorithm satisfy DPP.", proved.noise_of_theorem_1),
    Claim("parallel", "Remark after Theorem 1; Section VI-B", "The whole algorithm satisfies epsilon if "
          "every batch is disjoint; an epoch costs epsilon'.", proved.parallel_composition),
    Claim("lemma-1", "Lemma 1", "The gradient of a row is infinite if and only if y = 0 and ||W_r|| is "
          "unbounded.", proved.lemma_1),
    Claim("theorem-2", "Theorem 2", "The sensitivity on any batch is at most kappa(g' + g'')/|B|.",
          proved.theorem_2),
    Claim("noise-2", "Section VI-B", "Algorithm 1 (with Theorem 2's noise) naturally satisfies the "
          "definition of DPP.", proved.noise_of_theorem_2),
    Claim("full-batch", "Remark after Theorem 2", "g' = h if full batch gradient descent is applied.",
          proved.full_batch_peak),
    Claim("variance-law", "Section VI-B", "The variance of the noisy gradient is proportional to "
          "(sensitivity/epsilon')^2.", proved.noise_follows_sensitivity),
    Claim("corollary-1", "Appendix C", "A dissimilar pair's row gradient is at most 2m in l2.",
          proved.corollary_1),
    Claim("gaussian", "Appendix C", "sigma >= sqrt(2 ln(1.25/delta)) sensitivity/epsilon gives approximate "
          "DP.", proved.classic_gaussian),
    Claim("prop-1", "Proposition 1", "|P_st| + min(c_s, c_t) <= De(s) - Co+(s).", graphs.proposition_1),
    Claim("prop-1-iff", "Proposition 1", "Equality holds if and only if c_s = c_t.",
          graphs.proposition_1_equality),
    Claim("kappa-prime", "Appendix A", "kappa' is an upper bound of kappa.", graphs.kappa_prime),
    Claim("kappa-degree", "Appendix A", "DPP is upper bounded by Node DP (kappa at most the maximum "
          "degree).", graphs.kappa_below_degree),
    Claim("kappa-tree", "Appendix A", "On a tree kappa is 1, whatever the maximum degree.",
          graphs.kappa_on_trees),
    Claim("cycle", "Section V-A", "When an individual is included in a circle, its feature can be "
          "calculated.", graphs.cycle_reveals),
    Claim("steps", "Section VII", "The step rule enforces sum eta = infinity and sum eta^2 < infinity.",
          proved.step_sizes),
    Claim("lap-variance", "Section VII-C", "Lap's variance is 4h^2/(|B|^2 eps^2).",
          proved.laplace_variance),
    Claim("duchi-ratio", "Section VII-C", "Duchi's variance is around 10,000 times larger than Lap's.",
          proved.duchi_ratio),
    Claim("input-correlation", "Section VII-B", "InputPer needs no special consideration for the pair "
          "correlations.", proved.input_correlation),
    Claim("clustering", "Discussion", "Constrained clustering uses must-link and cannot-link pairs; thus "
          "DPP applies to this case.", beyond.constrained_clustering),
    Claim("preferences", "Discussion", "Where workers label their preferences pairwise, DPP can be "
          "defined too.", beyond.crowd_preferences),
    Claim("any-optimiser", "Conclusion", "An open problem: a general privacy implementation that is not "
          "limited to the exact optimisation strategy.", beyond.any_optimiser),
    Claim("intransitive", "Appendix B", "For an intransitive relation only 1 + min(c_s, c_t) pairs need "
          "concern, for the correlation of feature differences.", beyond.intransitive_relations),
    # on reruns
    Claim("toy-faster", "Section VII-A", "The objective of DPP-S decreases faster than that of DPP and "
          "fluctuates less.", seen.toy_faster, "toy"),
    Claim("toy-close", "Section VII-A", "DPP-S is very close to NonPriv.", seen.toy_close, "toy"),
    Claim("toy-steady", "Section VII-A", "NonPriv converges steadily among the three.",
          seen.toy_steady, "toy"),
    Claim("toy-sensitivity", "Section VII-A", "The sensitivity after reduction is dramatically lower than "
          "the standard one.", seen.toy_sensitivity, "toy"),
    Claim("rises", "Section VII-B", "The accuracy of every randomised method rises steadily with "
          "epsilon.", seen.rises, "accuracy"),
    Claim("node-below", "Section VII-B", "Node DP's accuracy is always lower than DPP's.",
          seen.node_below_dpp, "accuracy"),
    Claim("reduced-above", "Section VII-B", "DPP-S effectively enhances the accuracy.",
          seen.reduced_above_dpp, "accuracy"),
    Claim("input-worst", "Section VII-B", "In most cases InputPer shows the worst performance.",
          seen.input_worst, "accuracy"),
    Claim("input-us", "Section VII-B", "On IPUMS-US InputPer outperforms the others when epsilon is not "
          "large.", seen.ipums_us, "accuracy"),
    Claim("little-lost", "Abstract", "Accuracy declines less than 0.01 throughout all benchmark data sets "
          "at epsilon 4.", seen.little_lost, "accuracy"),
    Claim("auc-lost", "Abstract", "... 'without compromising the output performance much', by pair AUC: "
          "better than an untrained and the Euclidean metric.", seen.auc_lost, "accuracy"),
    Claim("scdf", "Section VII-C", "SCDF converges faster than Lap.", seen.scdf_faster, "mechanisms"),
    Claim("lap-s", "Section VII-C", "Lap-S converges fastest of all mechanisms.",
          seen.reduced_fastest, "mechanisms"),
    Claim("duchi-worst", "Section VII-C", "Duchi performs worst.", seen.duchi_worst, "mechanisms"),
    Claim("h-half", "Section VII-D", "The objective converges faster when h = 0.5.",
          seen.h_half, "parameters"),
    Claim("h-two", "Section VII-D", "With h = 2 the objective first increases and then decreases "
          "steadily.", seen.h_two_rises, "parameters"),
    Claim("batch", "Section VII-D", "|B| = 50 reaches the lowest objective within the limited epochs.",
          seen.batch_fifty, "parameters"),
    Claim("rho-two", "Section VII-D", "rho = 2 obtains the best accuracy.", seen.rho_two, "parameters"),
    Claim("rho-one", "Section VII-D", "The accuracy of rho = 1 is only slightly lower than the best.",
          seen.rho_one, "parameters"),
    Claim("d-sixteen", "Section VII-D", "The highest accuracy is obtained when d' = 16.",
          seen.sixteen_rows, "parameters"),
    Claim("d-variance", "Section VII-D", "With the decrease of dimension the variance of the testing "
          "accuracy increases significantly.", seen.variance_grows, "parameters"),
)  # fmt: skip


def decide_all(results: Results) -> list[dict[str, Any]]:
    """Every claim decided, as plain data."""
    return [asdict(claim.decide(results)) for claim in CLAIMS]


def page(claims: Sequence[dict[str, Any]], setting: str, figures: str = "") -> str:
    """The claims as a Markdown page; ``figures`` is where they lie, seen from the page."""
    lines = [
        "# The paper's claims, rerun",
        "",
        "Generated by `python -m reproduction`; do not edit. The paper is Li, Pan, Sui and Tsang, *Secure "
        "Metric Learning via Differential Pairwise Privacy* (2020). " + setting,
        "",
        "The paper leaves open how W starts (here: Gaussian entries of variance 1/d'), d' and the number "
        "of epochs where it does not name them (16 and 3), most values of its grids, and whether line 5 "
        "means 1/sqrt(tau) (here) or, literally, 1/sqrt(tau!). Its toy data are reconstructed from their "
        "description. A claim about a figure that does not hold here may do so for these reasons; the "
        "checks by computation do not depend on them. kNN is asked about 5,000 random test people a "
        "repeat.",
        "",
        "Theorem-like claims are checked by search and constructed cases, claims about figures on reruns "
        "of them. 'A above B' compares repeats in pairs; a case is 'clear' when the 95 % interval of the "
        "difference leaves out zero. A claim about every case holds where each is clear and does not hold "
        "where one is clearly against it (the cases share the 5 % of such errors); else it is *not "
        "decided*.",
        "",
        *_of_best_cases(claims),
        _count(claims),
        "",
        "| claim | where | the paper says | we measured | verdict | command, figure |",
        "|---|---|---|---|---|---|",
    ]
    for c in claims:
        figure = f"`{c['command']}`" + (
            f", [{c['figure']}]({figures}{c['figure']})" if c["figure"] else ""
        )
        if not c["needs"]:
            figure = "by computation in any `python -m reproduction`"
        verdict = f"**{c['verdict']}**" + (f"; {c['best_case']}" if c["best_case"] else "")
        cells = (c["id"], c["where"], c["sentence"], c["measured"], verdict, figure)
        lines.append("| " + " | ".join(_cell(text) for text in cells) + " |")
    return "\n".join(lines) + "\n"


def _of_best_cases(claims: Collection[dict[str, Any]]) -> list[str]:
    if not any(c["best_case"] for c in claims):
        return []
    tried = steelman.GRID
    rows = ", ".join(str(d or "d") for d in tried["n_components"])
    return [
        f"*At its best setting* (`python -m reproduction steelman`): every start "
        f"({', '.join(tried['start'])}), "
        f"d' ({rows}), number of epochs ({', '.join(map(str, tried['epochs']))}) and rho of the margin "
        f"({' and '.join(f'{rho:g}' for rho in tried['rho'])}) together, once, on "
        f"{steelman.SEARCH_PEOPLE:,} people a data set; then, for each claim about accuracy, the setting "
        f"that favours it most, on {steelman.RERUN_PEOPLE:,} people drawn anew for each repeat (on as many "
        "as above for little-lost and auc-lost, which that favours). "
        "The choice is the claim's own measure on the test people, in the paper's favour: nobody who "
        "releases a metric could choose so. 'Untrained' is then the start itself, and the PCA of the "
        "people's features is not charged. The number behind the verdict says by how much the claim is "
        "met (+) or missed (-): the mean of its cases, for little-lost and auc-lost the worst data set, for "
        "input-worst the median case.",
        "",
    ]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _count(claims: Collection[dict[str, Any]]) -> str:
    verdicts = [c["verdict"] for c in claims]
    counts = {v: verdicts.count(v) for v in dict.fromkeys(verdicts)}
    return f"Of {len(verdicts)}: " + ", ".join(f"{n} {v}" for v, n in counts.items()) + "."
