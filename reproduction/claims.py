"""Every checkable sentence of the paper, with the rule that decides it; the page is written from these.

A check by computation takes nothing. A rule about a figure takes the rows of that figure on one graph,
and its verdict is the same on every graph or 'depends on the graph' (`verdicts.across_graphs`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from reproduction import graphs, remarks, theorems
from reproduction import verdicts as rules
from reproduction.verdicts import Finding, Rows, across_graphs

#: 'ours' is what the paper does not say: it answers an open problem, or asks for more. Not counted.
Kind = Literal["privacy", "theory", "figures", "remarks", "ours"]
KINDS: tuple[Kind, ...] = ("privacy", "theory", "figures", "remarks", "ours")
#: figure -> graph -> rows
Results = Mapping[str, Mapping[str, Rows]]


@dataclass(frozen=True)
class Claim:
    """One sentence; ``figure`` names the experiment whose rows ``check`` reads ("": by computation).

    ``only`` says which of its cells: column -> values.
    """

    id: str
    kind: Kind
    where: str
    sentence: str
    check: Callable[..., Finding]
    figure: str = ""
    only: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def reads(self, key: Mapping[str, Any]) -> bool:
        """Whether ``check`` looks at this cell of its figure."""
        return all(key.get(name) in values for name, values in self.only.items())

    def decide(self, results: Results) -> dict[str, Any]:
        """What was measured and the verdict, on each graph and in all; plain data for JSON."""
        if self.figure:
            found = {graph: self.on(rows) for graph, rows in results.get(self.figure, {}).items()}
        else:
            found = {"": as_data(_computed(self.check))}
        return {
            "id": self.id, "kind": self.kind, "where": self.where, "sentence": self.sentence,
            "figure": self.figure, "on": found,
            "verdict": across_graphs({graph: one["verdict"] for graph, one in found.items()}),
        }  # fmt: skip

    def on(self, rows: Rows) -> dict[str, Any]:
        """The rule on one graph's rows."""
        if self.id == "input-us" and not rules.pick(rows, data="ipums_us"):
            return {
                "measured": "dataset/IPUMS-US.dat of ppmlguy/DP-AGD is not in the data folder",
                "verdict": "not testable here", "favour": 0.0, "repeats": 0,
            }  # fmt: skip
        return {**as_data(self.check(rows)), "repeats": len({row["seed"] for row in rows})}


def as_data(finding: Finding) -> dict[str, Any]:
    """A finding as the page and JSON hold it."""
    favour = None if finding.favour != finding.favour else float(finding.favour)
    return {"measured": finding.measured, "verdict": finding.verdict, "favour": favour}


@cache
def _computed(check: Callable[[], Finding]) -> Finding:
    """A check without rows always finds the same: once a process is enough."""
    return check()


def decide_all(results: Results) -> list[dict[str, Any]]:
    """Every claim decided."""
    return [claim.decide(results) for claim in CLAIMS]


CLAIMS: tuple[Claim, ...] = (
    # by computation
    Claim("attack", "privacy", "Fig. 1",
          "Training on both conjectures about one pair and matching the metric tells the pair's "
          "relationship.", remarks.matching_attack),
    Claim("noise-1", "privacy", "Remark after Theorem 1",
          "Adding Lap(2 kappa h/(|B| eps)) to the iterative batch gradient makes the algorithm satisfy "
          "DPP.", theorems.noise_of_theorem_1),
    Claim("noise-2", "privacy", "Section VI-B",
          "Algorithm 1 (with Theorem 2's noise) naturally satisfies the definition of DPP.",
          theorems.noise_of_theorem_2),
    Claim("parallel", "privacy", "Remark after Theorem 1; Section VI-B",
          "Disjoint batches: an epoch costs epsilon'.", theorems.parallel_composition),
    Claim("gaussian", "privacy", "Appendix C",
          "sigma >= sqrt(2 ln(1.25/delta)) sensitivity/epsilon gives approximate DP.",
          theorems.classic_gaussian),
    Claim("input-correlation", "privacy", "Section VII-B",
          "InputPer needs no special consideration for the pair correlations.", theorems.input_correlation),
    Claim("edge-dp", "privacy", "Section IV-B; Appendix B",
          "Naive edge DP is not applicable.", remarks.edge_privacy),
    Claim("intransitive", "privacy", "Appendix B",
          "For an intransitive relation only 1 + min(c_s, c_t) pairs need concern.",
          remarks.intransitive_relations),
    Claim("theorem-1", "theory", "Theorem 1",
          "A row's l1 gradient sensitivity on a minibatch is at most 2 kappa h/|B|.", theorems.theorem_1),
    Claim("lemma-1", "theory", "Lemma 1",
          "A row's gradient is infinite only if y = 0 and ||W_r|| is unbounded ('if', which the lemma "
          "also says, nothing uses).", theorems.lemma_1),
    Claim("theorem-2", "theory", "Theorem 2",
          "The sensitivity on any batch is at most kappa(g' + g'')/|B|.", theorems.theorem_2),
    Claim("corollary-1", "theory", "Appendix C",
          "A dissimilar pair's row gradient is at most 2m in l2.", theorems.corollary_1),
    Claim("variance-law", "theory", "Section VI-B",
          "The variance of the noisy gradient is proportional to (sensitivity/epsilon')^2.",
          theorems.noise_follows_sensitivity),
    Claim("fig-3", "theory", "Fig. 3",
          "(s,c) and (s,t) determine the relationship of s and t, a third pair the features.",
          graphs.fig3_counts),
    Claim("prop-1", "theory", "Proposition 1",
          "|P_st| + min(c_s, c_t) <= De(s) - Co+(s).", graphs.proposition_1),
    Claim("prop-1-iff", "theory", "Proposition 1",
          "Equality holds if and only if c_s = c_t.", graphs.proposition_1_equality),
    Claim("intransitive-count", "theory", "Appendix B",
          "c_s = De(s) - Co+(s) - 1, counted over the entire graph.", graphs.intransitive_count),
    Claim("kappa-prime", "theory", "Appendix A",
          "kappa' is an upper bound of kappa.", graphs.kappa_prime),
    Claim("kappa-greedy", "theory", "Appendix A",
          "A greedy search for two connected nodes of largest sum forces kappa' = kappa.",
          graphs.greedy_search),
    Claim("kappa-cost", "theory", "Appendix A",
          "Searching kappa' takes O(|V|(|V| + |E|)).", graphs.search_cost),
    Claim("kappa-degree", "theory", "Appendix A",
          "DPP is upper bounded by Node DP (kappa at most the largest degree).", graphs.kappa_below_degree),
    Claim("kappa-tree", "theory", "Appendix A",
          "On a tree kappa is 1, whatever the largest degree.", graphs.kappa_on_trees),
    Claim("cycle", "theory", "Section V-A",
          "When an individual is included in a circle, its feature can be calculated.",
          graphs.cycle_reveals),
    Claim("steps", "theory", "Section VII",
          "The step rule enforces sum eta = infinity and sum eta^2 < infinity.", theorems.step_sizes),
    Claim("lap-variance", "theory", "Section VII-C",
          "Lap's variance is 4h^2/(|B|^2 eps^2); so Duchi's is around 10,000 times larger.",
          theorems.laplace_variance),
    Claim("full-batch", "remarks", "Remark after Theorem 2",
          "g' = h if full batch gradient descent is applied.", rules.full_batch, "peaks"),
    Claim("tuples", "remarks", "Discussion",
          "DPP serves triplet, (C+1)-tuplet and C-pair losses too.", remarks.tuples_of_people),
    Claim("networks", "remarks", "Discussion",
          "For neural networks replace the gradient sensitivity over a lot.", remarks.networks),
    Claim("xing", "remarks", "Discussion",
          "Xing's method cannot be privatised: its projection exposes the pairs.", remarks.xing_method),
    # on reruns
    Claim("toy-clearer", "figures", "Section VII-A",
          "Transformed by each of the three metrics, the data have a clearer structure.",
          rules.toy_clearer, "toy"),
    Claim("toy-above", "figures", "Section VII-A",
          "NonPriv's objective is not strictly lower than that of DPP-S.", rules.toy_above, "toy"),
    Claim("toy-rounds", "figures", "Section VII-A",
          "DPP seems to need more rounds to converge to a steady point.", rules.toy_rounds, "toy"),
    Claim("toy-faster", "figures", "Section VII-A",
          "The objective of DPP-S decreases faster than that of DPP and fluctuates less.",
          rules.toy_faster, "toy"),
    Claim("toy-close", "figures", "Section VII-A",
          "DPP-S is very close to NonPriv.", rules.toy_close, "toy"),
    Claim("toy-steady", "figures", "Section VII-A",
          "NonPriv converges steadily among the three.", rules.toy_steady, "toy"),
    Claim("toy-sensitivity", "figures", "Section VII-A",
          "The sensitivity after reduction is dramatically lower.", rules.toy_sensitivity, "toy"),
    Claim("rises", "figures", "Section VII-B",
          "The accuracy of every randomised method rises steadily with epsilon.", rules.rises, "accuracy"),
    Claim("node-below", "figures", "Section VII-B",
          "Node DP's accuracy is always lower than DPP's.", rules.node_below, "accuracy"),
    Claim("reduced-above", "figures", "Section VII-B",
          "DPP-S effectively enhances the accuracy.", rules.reduced_above, "accuracy"),
    Claim("input-worst", "figures", "Section VII-B",
          "In most cases InputPer shows the worst performance.", rules.input_worst, "accuracy"),
    Claim("input-us", "figures", "Section VII-B",
          "On IPUMS-US InputPer outperforms the others when epsilon is not large.",
          rules.input_us, "accuracy"),
    Claim("little-lost", "figures", "Abstract",
          "Accuracy declines less than 0.01 throughout all benchmark data sets at epsilon 4.",
          rules.little_lost, "accuracy",
          {"epsilon": ("none", 4.0), "method": ("nonpriv", "untrained", "dpp", "dpp-s")}),
    Claim("scdf", "figures", "Section VII-C",
          "SCDF converges faster than Lap.", rules.scdf_faster, "mechanisms",
          {"method": ("Lap", "SCDF")}),
    Claim("lap-s", "figures", "Section VII-C",
          "Lap-S converges fastest of all mechanisms.", rules.reduced_fastest, "mechanisms",
          {"method": ("Lap", "Lap-S", "SCDF", "Duchi")}),
    Claim("duchi-worst", "figures", "Section VII-C",
          "Duchi performs worst.", rules.duchi_worst, "mechanisms",
          {"method": ("Lap", "Lap-S", "SCDF", "Duchi")}),
    Claim("h-half", "figures", "Section VII-D",
          "The objective converges faster when h = 0.5.", rules.h_half, "parameters",
          {"panel": ("h",)}),
    Claim("h-between", "figures", "Section VII-D",
          "Either a smaller or larger h is slower.", rules.h_between, "parameters",
          {"panel": ("h",)}),
    Claim("h-two", "figures", "Section VII-D",
          "With h = 2 the objective first increases and then decreases.", rules.h_two, "parameters",
          {"panel": ("h",)}),
    Claim("batch", "figures", "Section VII-D",
          "|B| = 50 reaches the lowest objective within the limited epochs.",
          rules.batch_fifty, "parameters",
          {"panel": ("batch_size",)}),
    Claim("rho-two", "figures", "Section VII-D",
          "rho = 2 obtains the best accuracy.", rules.rho_two, "parameters",
          {"panel": ("rho",)}),
    Claim("rho-one", "figures", "Section VII-D",
          "The accuracy of rho = 1 is only slightly lower than the best.", rules.rho_one, "parameters",
          {"panel": ("rho",)}),
    Claim("d-sixteen", "figures", "Section VII-D",
          "The highest accuracy is obtained when d' = 16.", rules.d_sixteen, "parameters",
          {"panel": ("n_components",)}),
    Claim("d-full", "figures", "Section VII-D",
          "d' = 32, without reduction, is close to the best.", rules.d_full, "parameters",
          {"panel": ("n_components",)}),
    Claim("d-variance", "figures", "Section VII-D",
          "With the decrease of dimension the variance of the accuracy increases significantly.",
          rules.d_variance, "parameters",
          {"panel": ("n_components",)}),
    # ours
    Claim("margin", "ours", "Section VII-B",
          "Is a margin free that is read off the pairs?", theorems.margin_from_pairs),
    Claim("auc-gained", "ours", "Abstract",
          "Is the metric at epsilon 4 better than Euclid and an untrained one by pair AUC?",
          rules.auc_gained, "accuracy"),
    Claim("any-optimiser", "ours", "Conclusion, open problem 1",
          "A private implementation not limited to one optimisation strategy.", remarks.any_optimiser),
    Claim("statistics", "ours", "Conclusion, open problem 2",
          "Statistics instead of pairs, with higher utility.", remarks.statistics_instead),
    Claim("clustering", "ours", "Discussion",
          "DPP for constrained clustering.", remarks.constrained_clustering),
    Claim("preferences", "ours", "Discussion",
          "DPP for pairwise preferences of a crowd.", remarks.crowd_preferences),
)  # fmt: skip
