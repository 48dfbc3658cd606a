"""The paper's remarks on other learning from pairs, checked on learners that were built; and our own checks.

What answers an open problem, or goes beyond what the paper says, is ours and not counted as its claim.
"""

from __future__ import annotations

import warnings

import numpy as np
from benchmarks.clustering import data_sets, draw_links
from benchmarks.ranking import FIRST_SEED, draw_crowd
from numpy.typing import NDArray
from scipy.stats import binomtest, kendalltau
from sklearn.metrics import adjusted_rand_score

from pairveil.array_types import FloatArray
from pairveil.audit.canaries import person_canary
from pairveil.audit.exact_audit import audit_exactly
from pairveil.errors import DataWarning, PrivacyLeakWarning
from pairveil.evaluation.scores import pair_auc
from pairveil.graph.choosing import design_pairs
from pairveil.graph.kappa import kappa
from pairveil.learners.clustering import PrivateConstrainedKMeans, k_means
from pairveil.learners.contrastive.learner import DPPMetricLearner
from pairveil.learners.ranking import PrivatePreferenceRanker
from pairveil.learners.tuples import DPPTripletLearner, DPPTupletLearner
from pairveil.privacy.calibrate import calibrate_gaussian
from pairveil.records.embedded import label_pairs, load_digits, load_patients
from reproduction.baselines import Warner
from reproduction.experiments import acyclic_pairs, strips
from reproduction.published import Settings, algorithm1
from reproduction.verdicts import Finding, everywhere, pm, positive

CLUSTERINGS, RANKINGS, TARGETS, SPLITS, XINGS = 5, 8, 40, 5, 20


def matching_attack() -> Finding:
    """Fig. 1: the attacker trains on both conjectures about one pair and compares with what was published."""
    rng = np.random.default_rng(7)
    X, classes = strips(rng)
    graph = acyclic_pairs(classes, rng)
    right = {"nonpriv": 0, "dpp": 0}
    for variant in right:
        plan = Settings(variant, epsilon=1.0, n_components=2, margin=1.0, batch_size=30, epochs=1)  # type: ignore[arg-type]

        def fit(labels: NDArray[np.int8], seed: int, plan: Settings = plan) -> FloatArray:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PrivacyLeakWarning)
                # the attacker knows start and batches; the noise of DPP is drawn anew
                return algorithm1(X, graph.pairs, labels, plan, seed, np.eye(2)).M

        for target in rng.choice(len(graph.pairs), TARGETS, replace=False):
            other = graph.labels.copy()
            other[target] *= -1
            published = fit(graph.labels, 0)
            noise = 0 if variant == "nonpriv" else 1 + int(target)
            gaps = [
                float(np.abs(fit(labels, noise) - published).sum())
                for labels in (graph.labels, other)
            ]
            right[variant] += gaps[0] < gaps[1]
    odds = {v: binomtest(n, TARGETS).proportion_ci() for v, n in right.items()}
    said = {v: f"{n} ({odds[v].low:.2f} to {odds[v].high:.2f})" for v, n in right.items()}
    return Finding(
        f"toy, random graph, one epoch from the identity: of {TARGETS} relationships {said['nonpriv']} are "
        f"told by matching the metric without privacy; with noise (DPP, claimed 1) {said['dpp']}",
        right["nonpriv"] == TARGETS,
    )


def edge_privacy() -> Finding:
    """Is an edge's epsilon enough for a relationship? Labels with edge DP by Warner's answers, a K4."""
    group, answer = kappa([(a, b) for a in range(4) for b in range(a)]).relationship, Warner(1.0)
    together = group * (answer.log_mass(1, 1) - answer.log_mass(1, -1))
    return Finding(
        f"in a clique of four {group} pairs tell of one relationship: edge DP at 1 leaves log odds of "
        f"{together:.2f}. Edge DP for groups of kappa is applicable, and is what DPP defines",
        together > answer.epsilon + 1e-9,
    )


def tuples_of_people() -> Finding:
    """Triplets and tuplets: does any query of one fit move further than is charged?"""
    found = [
        audit_exactly(learner, n_features=3)
        for learner in (DPPTripletLearner(), DPPTupletLearner())
    ]
    worst = max(query.ratio for one in found for query in one.queries)
    return Finding(
        "private learners from triplets and tuplets exist (docs/guides/classes.md); on their worst case no "
        f"query moves by more than {worst:.3f} of its charge. A record then tells of three people or more",
        all(one.verdict == "consistent" for one in found),
    )


def networks() -> Finding:
    """'Replace the gradient sensitivity over a lot': pairs through a shared layer, clipped whole or branch
    by branch.

    Of a layer x -> V x the pair's gradient is delta_s x_s^T + delta_t x_t^T: both branches count.
    """
    rng, clip, worst = np.random.default_rng(0), 0.1, {"whole": 0.0, "branches": 0.0}
    for _ in range(300):
        group, people = int(rng.integers(1, 4)), rng.normal(size=(3, 2, 5))
        if rng.random() < 0.5:
            people[:, 1] = -people[:, 0]
        V = rng.normal(size=(4, 5))
        moved = dict.fromkeys(worst, np.zeros((4, 5)))
        for x in people[:group]:
            delta = (V @ (x[0] - x[1]))[:, None] * np.array([1.0, -1.0])
            parts = np.array([np.outer(delta[:, t], x[t]) for t in (0, 1)])
            sizes = np.linalg.norm(parts.reshape(2, -1), axis=1)
            whole = parts.sum(axis=0)
            moved["whole"] = moved["whole"] + whole * min(1.0, clip / np.linalg.norm(whole))
            each = parts * np.minimum(1.0, clip / sizes)[:, None, None]
            moved["branches"] = moved["branches"] + each.sum(axis=0)
        for how, sum_ in moved.items():
            worst[how] = max(worst[how], float(np.linalg.norm(sum_)) / (group * clip))
    return Finding(
        f"kappa pairs move a lot by {worst['whole']:.3f} kappa clips when a pair is clipped whole, by "
        f"{worst['branches']:.2f} when each branch is clipped, as hooks for one input do "
        "(docs/guides/networks.md)",
        worst["whole"] <= 1 + 1e-9,
    )


def xing_method() -> Finding:
    """Xing et al.'s method with noisy sums: its projection needs one bounded sum over similar pairs.

    Maximise the summed distance of dissimilar pairs subject to trace(M S) <= 1, S the sum of dx dx^T over
    similar pairs, M diagonal: ten steps along a noisy gradient, each projected by the noisy S, released
    once. That it exists refutes 'cannot' only if it is also better than no learning.
    """
    patients, steps = load_patients(), 10
    people = np.random.default_rng(1).permutation(len(patients.classes))
    train, test = people[:400], people[400:]
    X, classes = patients.features.values, np.asarray(patients.classes)
    pairs, d = train[design_pairs(len(train), how="paths", random_state=0)], X.shape[1]
    square = (
        X[pairs[:, 0]] - X[pairs[:, 1]]
    ) ** 2  # rows of length at most 1: columns lie in [0, d^-1/2]
    same = label_pairs(pairs, classes) > 0

    def learned(epsilon: float, seed: int) -> float:
        rng, sigma = np.random.default_rng(seed), 0.0
        if epsilon < np.inf:
            sigma = calibrate_gaussian(epsilon, 1e-5, kappa=1, adjacency="replace", steps=steps + 1)
        S = square[same].sum(axis=0) + sigma * d**-0.5 * rng.normal(size=d)  # rows: at most d^-1/2
        S = np.maximum(S, len(pairs) / (200 * d))
        M = 1 / (S * d)
        for step in range(steps):
            each = square[~same] / np.maximum(1e-9, np.sqrt(square[~same] @ M))[:, None]
            each /= np.maximum(1.0, np.linalg.norm(each, axis=1, keepdims=True))
            uphill = each.sum(axis=0) + sigma * rng.normal(size=d)
            M = np.maximum(0, M + uphill / (S * S * d * (1 + step)))
            M /= max(1e-12, float(M @ S))  # the projection: it sees S alone
        return pair_auc(np.diag(np.sqrt(M)), X[test], classes[test], 20_000, 0)

    euclid = pair_auc(None, X[test], classes[test], 20_000, 0)
    gains = [learned(4.0, seed) - euclid for seed in range(XINGS)]
    return Finding(
        f"its projection needs noisy sums only, {steps + 1} answers: pair AUC on patients above Euclid's "
        f"{euclid:.3f} by {pm(gains)} at (4, 1e-5) in {XINGS} repeats, by {learned(np.inf, 0) - euclid:+.3f} "
        "without privacy",
        False if positive(gains) else None,
    )


def any_optimiser() -> Finding:
    """Algorithms of different kinds under one engine: does any query move further than is charged?"""
    algorithms = {
        "gradient descent": DPPMetricLearner(n_steps=5),
        "a closed form": DPPMetricLearner(unit="person"),
        "Newton's method": PrivatePreferenceRanker(),
        "k-means": PrivateConstrainedKMeans(2, spectral=False),
    }
    # Of three classes and few columns statistics are released, and the metric is made of them.
    canaries = {"a closed form": person_canary(n_classes=3)}
    found = [
        audit_exactly(learner, n_features=3, canary=canaries.get(name))
        for name, learner in algorithms.items()
    ]
    worst = max(query.ratio for one in found for query in one.queries)
    return Finding(
        f"solved here: {', '.join(algorithms)} ask one engine for noisy sums under a plan; no query moves "
        f"by more than {worst:.3f} of its charge (examples/any_optimiser.py)",
        all(one.verdict == "consistent" for one in found),
    )


def statistics_instead() -> Finding:
    """Open problem 2: statistics of people instead of pairs, on digits at person-level epsilon 4."""
    people = load_digits()
    X, classes = people.features.values, np.asarray(people.classes)
    scores: dict[str, list[float]] = {"Euclid": [], "statistics": [], "pairs": []}
    for seed in range(SPLITS):
        split = np.random.default_rng(seed).permutation(len(X))
        train, test = split[:1200], split[1200:]
        pairs = design_pairs(len(train), how="matching", random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            whole = DPPMetricLearner(epsilon=4.0, delta=1e-5, unit="person", random_state=seed)
            whole.fit_classes(X[train], classes[train], classes=list(np.unique(classes)))
            paired = DPPMetricLearner(
                epsilon=4.0, delta=1e-5, unit="person", select="all", preprocessor=X[train],
                random_state=seed,
            ).fit(pairs, label_pairs(pairs, classes[train]))  # fmt: skip
        for name, W in zip(scores, (None, whole.components_, paired.components_), strict=True):
            scores[name].append(pair_auc(W, X[test], classes[test], 20_000, seed))
    leads = [np.subtract(scores["statistics"], scores[name]) for name in ("pairs", "Euclid")]
    return Finding(
        f"solved here (docs/guides/classes.md): pair AUC on digits at person-level epsilon 4, {SPLITS} "
        f"repeats: {np.mean(scores['statistics']):.3f}, above pairs by {pm(leads[0])}, above Euclid by "
        f"{pm(leads[1])}",
        everywhere(leads),
    )


def intransitive_relations() -> Finding:
    """A triangle: the kappa of the appendix, and what the other two pairs say of the third."""
    triangle = np.array([[0, 1], [1, 2], [0, 2]])
    count = kappa(triangle).intransitive
    people = np.random.default_rng(0).normal(size=(3, 5))
    known = (people[0] - people[1]) + (people[1] - people[2])
    error = float(np.abs(known - (people[0] - people[2])).max())
    return Finding(
        f"on a triangle that count is {count}: hide one pair, and the differences of the other two add up "
        f"to its own (error {error:.0e}); labels are covered, features are not",
        count > 1 or error > 1e-9,
    )


def constrained_clustering() -> Finding:
    """Links moved from one list to the other leave what is public as it is; what they are worth, on iris."""
    name, X, y = next(data_sets())
    plain, ours, same = adjusted_rand_score(y, k_means(X, 3)), [], True
    for seed in range(FIRST_SEED, FIRST_SEED + CLUSTERINGS):
        ml, cl = draw_links(y, 500, seed)
        learner = PrivateConstrainedKMeans(3, 1.0, random_state=seed, spectral=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            moved = learner.certify(X, ml=np.concatenate([ml, cl]))
            certificate = learner.fit(X, ml=ml, cl=cl).certificate_
        same &= certificate is not None and certificate == moved and bool(certificate.verify())
        ours.append(adjusted_rand_score(y, learner.labels_))
    gains = np.array(ours) - plain
    return Finding(
        f"500 private links at epsilon 1 raise the adjusted Rand index of {name} from {plain:.3f} by "
        f"{pm(gains)} ({CLUSTERINGS} repeats)",
        (positive(gains) if same else False),
    )


def crowd_preferences() -> Finding:
    """One worker's choices, and one choice, against their charge; and how near the ranking comes."""
    found = [
        audit_exactly(PrivatePreferenceRanker(unit=unit, adjacency=adjacency), n_features=4)
        for unit in ("worker", "choice")
        for adjacency in ("zero-out", "replace")
    ]
    worst = max(query.ratio for one in found for query in one.queries)
    tau = []
    for seed in range(FIRST_SEED, FIRST_SEED + RANKINGS):
        crowd = draw_crowd(seed, 500, 20, features=False)
        fits = (PrivatePreferenceRanker(e, random_state=seed) for e in (1.0, float("inf")))
        tau.append(
            [kendalltau(fit.fit(crowd.choices, 20).strengths_, crowd.strengths)[0] for fit in fits]
        )
    private, plain = np.transpose(tau)
    near = positive(private - plain + 0.05)
    return Finding(
        f"a worker's choices move the sum by {worst:.3f} of the charge; Kendall's tau {private.mean():.3f} "
        f"at worker-level epsilon 1, by {pm(plain - private)} less than without privacy ({RANKINGS} crowds)",
        near if worst <= 1 + 1e-9 else False,
    )
