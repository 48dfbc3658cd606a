"""A learner without gradient steps: Frank-Wolfe on metrics, private because it sees noisy sums alone.

Over all metrics M with trace at most r a linear function is least at a corner r v v^T, where v is the lowest
eigenvector of the gradient: every answer adds one direction. What is done between two answers is nobody's
concern. docs/guides/new-learner.md explains the parts.

Run it: python examples/any_optimiser.py
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from pairveil import design_pairs, label_pairs, load_patients
from pairveil.array_types import FloatArray
from pairveil.audit import audit_exactly
from pairveil.engine.plan import Plan, PublicFacts, QuerySpec
from pairveil.engine.statistics import Statistic, shrink
from pairveil.errors import InputError
from pairveil.learners.estimator import PrivateMetricLearner
from pairveil.learners.inputs import check_bound, is_whole


@dataclass(frozen=True)
class MatrixGradient(Statistic):
    """Gradient in M of log(1 + exp(y (<M, dx dx^T> - 1))): a pair contributes y p dx dx^T.

    With dx in units of the longest difference ||dx dx^T|| = ||dx||^2 <= 1, and the probability p of the other
    label is at most 1: no contribution is longer than 1, in l2. (In l1 it is ||dx||_1^2, and shortened.)
    """

    M: FloatArray
    longest: float
    clip = 1.0

    @property
    def shape(self) -> tuple[int, ...]:
        return self.M.shape

    def tile_sum(self, differences: Any, labels: Any, norm: str) -> FloatArray:
        dense = differences.toarray() if sparse.issparse(differences) else differences
        rows = np.asarray(dense, dtype=float) / self.longest
        squared = np.einsum("ij,jk,ik->i", rows, self.M, rows)
        other = 1 / (1 + np.exp(-np.clip(labels * (squared - 1), -500, 500)))
        length = np.abs(rows).sum(axis=1) if norm == "l1" else np.sqrt((rows**2).sum(axis=1))
        factor = labels * other * shrink(length**2, self.clip)
        return np.asarray(rows.T @ (factor[:, None] * rows))


@dataclass(frozen=True)
class FrankWolfeRecipe:
    """Minimise over all M with trace at most ``size``: each noisy gradient shows the best corner."""

    size: float
    n_steps: int
    headline: str = "gradients"

    def ask(self, facts: PublicFacts) -> tuple[QuerySpec, ...]:
        d = facts.n_features
        return (QuerySpec("gradients", (d, d), share=1.0, steps=self.n_steps),)

    def run(self, plan: Plan, engine: Any) -> FloatArray:
        query, d = plan["gradients"], plan.n_features
        M, longest = np.zeros((d, d)), 2 * plan.data_norm
        for t in range(query.steps):
            noisy = engine.answer(query, MatrixGradient(M, longest))
            values, vectors = np.linalg.eigh((noisy + noisy.T) / 2)
            v = vectors[:, 0]  # the direction in which the loss falls fastest
            corner = self.size * np.outer(v, v) if values[0] < 0 else np.zeros((d, d))
            M = M + 2 / (t + 2) * (corner - M)
        values, vectors = np.linalg.eigh(M)
        return np.asarray((np.sqrt(np.maximum(values, 0)) * vectors).T[::-1] / longest)

    def options(self) -> dict[str, Any]:
        return {"size": self.size}


class FrankWolfeLearner(PrivateMetricLearner):
    """Learn a metric by noisy Frank-Wolfe steps.

    Parameters
    ----------
    size : float
        Largest trace of the metric, in units of the longest difference.
    n_steps : int
        Answers that are asked for; the budget is divided over them.
    **common
        As for every learner: epsilon, delta, unit, preprocessor, ...
    """

    def __init__(self, size: float = 300.0, n_steps: int = 16, **common: Any) -> None:
        super().__init__(**common)
        self.size = size
        self.n_steps = n_steps

    def _check(self, given: Any, n_features: int) -> None:
        del n_features
        check_bound("size", given.size)
        if not (is_whole(given.n_steps) and given.n_steps >= 1):
            raise InputError("n_steps must be a whole number, at least 1")

    def _recipe(self, given: Any, records: Any) -> FrankWolfeRecipe:
        del records
        return FrankWolfeRecipe(given.size, given.n_steps)


class Greedy(FrankWolfeLearner):
    """It looks at the data once more than was planned."""

    def _recipe(self, given: Any, records: Any) -> FrankWolfeRecipe:
        recipe = super()._recipe(given, records)

        class Again(FrankWolfeRecipe):
            def run(self, plan: Plan, engine: Any) -> FloatArray:
                super().run(plan, engine)
                return super().run(plan, engine)

        return Again(recipe.size, recipe.n_steps)


if __name__ == "__main__":
    patients = load_patients()
    X, pairs = patients.features.values, design_pairs(569, random_state=0)
    y = label_pairs(pairs, patients.classes)
    plain = FrankWolfeLearner(epsilon=float("inf"), preprocessor=X).fit(pairs, y)
    private = FrankWolfeLearner(epsilon=4.0, preprocessor=X, random_state=0).fit(pairs, y)
    print(
        f"pair AUC {plain.score(pairs, y):.2f} without privacy, {private.score(pairs, y):.2f} at epsilon 4"
    )
    print(f"certificate holds: {bool(private.certificate_.verify())}")
    found = audit_exactly(FrankWolfeLearner(unit="pair"), n_features=5)
    print(
        f"audit: {found.verdict}, the worst canary moves {found.queries[0].ratio:.3f} of its charge"
    )
    try:
        Greedy(epsilon=4.0, preprocessor=X, random_state=0).fit(pairs, y)
    except RuntimeError as refused:
        print(f"one answer too many: {refused}")
