"""The pair recipe on groups: every sum is over groups, and a group's contribution is the mean over its pairs.

A person who changes may change everything in her group, so what counts is that a group contributes one vector
of length at most C, before and after: it moves by 2C at most (docs/theory/records.md). A mean of vectors of
length at most C is one. It is taken over the pairs that are not null; how many those are is private, and may
be used, since it only shapes that vector. Gradients are clipped group by group (`SetGradient`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from pairveil.array_types import FloatArray
from pairveil.engine.engine import Engine
from pairveil.engine.gradients import SetGradient
from pairveil.engine.plan import Ask, Plan, Setting
from pairveil.engine.statistics import TILE, Labels, Statistic
from pairveil.learners import preparing
from pairveil.learners.contrastive.recipe import ContrastiveRecipe
from pairveil.privacy.grid import UNIT_ROUNDOFF, Norm
from pairveil.privacy.mechanisms import Query
from pairveil.records.groups import slots


class GroupMean(Statistic):
    """A statistic of pairs, as one of groups: the mean over the pairs of a group that are not null.

    Parameters
    ----------
    of : Statistic
        Of pairs.
    size : int
        Most people of a group.
    """

    def __init__(self, of: Statistic, size: int) -> None:
        self.of, self.size = of, size
        self.clip, self.scale, self.largest_term = of.clip, of.scale, of.largest_term

    @property
    def shape(self) -> tuple[int, ...]:
        """As that of pairs."""
        return self.of.shape

    def tile_sum(self, people: Any, labels: Labels, norm: Norm) -> FloatArray:  # type: ignore[override]
        """Sum of the means."""
        if people.shape[1] > self.size:
            raise ValueError("`sensitivity` is that of smaller groups: GroupMean(..., size=m)")
        first, second = slots(people.shape[1])
        live, total = np.count_nonzero(labels, axis=1), np.zeros(self.shape)
        for n_pairs in np.unique(live[live > 0]):  # groups with as many pairs have one divisor
            some, told = people[live == n_pairs], labels[live == n_pairs]
            group, slot = np.nonzero(told)
            differences = some[group, first[slot]] - some[group, second[slot]]
            total += self.of.tile_sum(differences, told[group, slot], norm) / n_pairs
        return total

    def sensitivity(self, norm: Norm, grid: float, dtype: Any = np.float64) -> float:
        """As every statistic's; and a tile's sum has as many terms as its groups have pairs, in both worlds.

        Terms of a group have a length of ``terms`` in all, so an error of gamma(n) terms is in n of them.
        """
        terms, n_pairs = max(self.clip, self.largest_term), self.size * (self.size - 1) // 2
        gamma = 2 * TILE * n_pairs * UNIT_ROUNDOFF  # with room for the sums of the sums
        return super().sensitivity(norm, grid, dtype) + 2 * gamma * TILE * terms


class _OfGroups:
    """An engine that is asked for sums over ``each`` pairs of every group, and makes them of means."""

    def __init__(self, engine: Engine, plan: Plan, size: int, each: float) -> None:
        self._engine, self._plan, self._size, self._each = engine, plan, size, each

    def answer(self, query: Query, statistic: Statistic) -> FloatArray:
        mean = GroupMean(statistic, self._size)
        return self._each * self._engine.answer(self._plan[query.name], mean)

    def descend(self, query: Query, gradient: SetGradient, rate: float, steps: int) -> FloatArray:
        clip = gradient.clip / self._each**preparing.NUMBERS.clip_power
        gradient = replace(gradient, clip=clip, size=self._size)
        return self._engine.descend(self._plan[query.name], gradient, rate * self._each, steps)


@dataclass(frozen=True)
class GroupRecipe(ContrastiveRecipe):
    """Survey, start and descent on groups: as on their pairs, with noise that is so much larger.

    A group counts as many pairs as it has beyond a tree through its people, and one for the tree: pairs along
    a tree share people without showing the same label twice, and kept more of the gain as one.
    """

    size: int = 2  # most people of a group, groups, and pairs in all of them. Public
    n_groups: int = 1
    n_pairs: int = 1
    n_classes: int | None = None  # the public number of classes, where people have one each

    def ask(self, setting: Setting) -> tuple[Ask, ...]:
        """As of pairs, without a choice, to whose scores a group would add those of many pairs."""
        return tuple(
            Ask("signal", (setting.n_features,), ask.share) if ask.choice else ask
            for ask in super().ask(setting)
        )

    def options(self) -> dict[str, Any]:
        """Public parameters, for the certificate."""
        groups = {"group_size": self.size, "n_groups": self.n_groups, "n_classes": self.n_classes}
        return {**super().options(), **groups}

    def run(self, plan: Plan, engine: Engine) -> FloatArray:
        """The components of a metric, array of shape (n_components, n_features)."""
        each = max(1.0, self.n_pairs / self.n_groups - self.size + 2)
        louder = {
            "gradients": each ** (1 - preparing.NUMBERS.clip_power)
        }  # relative to the clip bound
        queries = tuple(
            replace(one, noise_multiplier=one.noise_multiplier * louder.get(one.name, each))
            for one in plan.queries
        )
        of_pairs = replace(plan, queries=queries, n_records=round(self.n_groups * each))
        of_groups = _OfGroups(engine, plan, self.size, each)
        return super().run(of_pairs, cast(Engine, of_groups))
