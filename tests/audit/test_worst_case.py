"""The worst case of a whole fit: within the promise, and close to all that it allows, release by release."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from pairveil.audit.canaries import Neighbours, canary_of, worst_case
from pairveil.audit.targets import KAPPA, Watcher, n_others
from pairveil.engine.engine import Engine
from pairveil.engine.plan import PublicFacts, make_plan
from pairveil.graph.kappa import kappa as kappa_of
from pairveil.learners.contrastive import recipe
from pairveil.learners.contrastive.recipe import ContrastiveRecipe
from pairveil.privacy.mechanisms import Budget
from pairveil.privacy.noise import SeededNoise
from pairveil.records.pairset import PairSet

DELTA = 1e-5
RUNS = 6
RECIPE = ContrastiveRecipe()


class PartOfTheNoise(SeededNoise):
    """Draws a part of the noise that the plan names."""

    part = 1.0

    def noisy(self, family, total, scale, grid=None):
        return super().noisy(family, total, scale * self.part, grid)


def shares_of_mu(worlds, budget, recipe=RECIPE, part=1.0):
    """Part of each release's claimed mu^2 that the inputs realise, and of the whole: means over runs."""
    plan = make_plan(recipe, PublicFacts(budget, worlds.first.n_pairs, 2))
    claimed = {
        q.name: q.steps * (budget.sensitivity / q.noise_multiplier) ** 2 for q in plan.queries
    }
    reached, watcher = Counter(), Watcher(worlds)
    for run in range(RUNS):
        data = (worlds.first, worlds.second)[run % 2]
        watcher.reset()
        noise = PartOfTheNoise(run)
        noise.part = part
        recipe.run(plan, Engine(data, noise, on_answer=watcher))
        for name, found in watcher.reached.items():
            # No release may show more than was accounted: this is the sensitivity, not an average.
            assert found <= claimed[name] * (1 + 1e-6)
        reached.update(watcher.reached)
    parts = {name: reached[name] / RUNS / claimed[name] for name in claimed}
    return parts, sum(reached.values()) / RUNS / sum(claimed.values())


@pytest.mark.parametrize(("unit", "kappa"), list(KAPPA.items()))
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_zero_out_is_seen_by_every_release(epsilon, unit, kappa):
    budget = Budget(epsilon, DELTA, kappa, "zero-out")
    parts, whole = shares_of_mu(worst_case(unit, kappa, 2, "zero-out", n_others(budget)), budget)
    assert min(parts.values()) > 0.99
    assert whole > 0.99


@pytest.mark.parametrize("part", [1.0, 0.1])
@pytest.mark.parametrize("n_steps", [1, 4])
def test_zero_out_is_seen_in_few_steps_and_through_little_noise(n_steps, part):
    """Less noise than planned must be seen all the better: W does not escape the canary."""
    parts, whole = shares_of_mu(
        worst_case("pair", 1, 2, "zero-out", n_others(Budget(1.0, DELTA, 1, "zero-out"))),
        Budget(1.0, DELTA, 1, "zero-out"),
        replace(RECIPE, n_steps=n_steps),
        part,
    )
    assert min(parts.values()) > 0.99
    assert whole > 0.99


@pytest.mark.parametrize(("unit", "kappa"), list(KAPPA.items()))
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_replacing_moves_all_signed_releases_by_twice_their_bound(epsilon, unit, kappa):
    """The survey has parts that no replacement turns around: there the charge is an upper bound."""
    budget = Budget(epsilon, DELTA, kappa, "replace")
    parts, whole = shares_of_mu(worst_case(unit, kappa, 2, "replace", n_others(budget)), budget)
    assert min(parts["signal"], parts["gradients"]) > 0.85
    assert whole > 0.86**2


@pytest.mark.parametrize(("adjacency", "limit"), [("zero-out", 0.9), ("replace", 0.6)])
def test_a_lone_pair_along_no_column_is_weaker(adjacency, limit, monkeypatch):
    """What was audited before: no other pairs, so noise sets weights and start, and the signal is blind.

    Noise set weights while a share that it cannot tell from a half did not count as one (`PairNumbers`).
    """
    monkeypatch.setattr(recipe, "NUMBERS", replace(recipe.NUMBERS, known=0.0))
    column = canary_of("pair", 1, 2, adjacency)
    turn = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2)
    worlds = [PairSet(w.features @ turn, w.pairs, w.labels) for w in (column.first, column.second)]
    alone = Neighbours(*worlds, adjacency)
    parts, whole = shares_of_mu(alone, Budget(1.0, DELTA, 1, adjacency))
    assert parts["signal"] < 0.05
    assert whole < limit**2


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize(("unit", "kappa"), list(KAPPA.items()))
def test_the_inputs_are_neighbours_of_the_unit(unit, kappa, adjacency):
    worlds = worst_case(unit, kappa, 3, adjacency, n_others=40, data_norm=2.0)
    graph = kappa_of(worlds.first)
    assert worlds.kappa == kappa == {"pair": 1}.get(unit, getattr(graph, unit))
    assert (worlds.first.labels[-40:] == worlds.second.labels[-40:]).all()
    assert (worlds.first.features[-80:] == worlds.second.features[-80:]).all()
    for world in (worlds.first, worlds.second):
        assert np.linalg.norm(world.features, axis=1).max() <= 2.0
        assert sum(world.labels[-40:] > 0) == 20


def test_one_feature_will_do():
    budget = Budget(1.0, DELTA, 1, "zero-out")
    worlds = worst_case("pair", 1, 1, "zero-out", n_others(budget))
    plan = make_plan(RECIPE, PublicFacts(budget, worlds.first.n_pairs, 1))
    watcher = Watcher(worlds)
    RECIPE.run(plan, Engine(worlds.second, SeededNoise(0), on_answer=watcher))
    assert watcher.reached["gradients"] > 0
    assert watcher.reached["signal"] == 0  # one column has nothing to stand out from
