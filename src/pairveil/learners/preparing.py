"""From parameters and material to a plan and its certificate, before any noise is drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from pairveil._warn import warn
from pairveil.engine.plan import Plan, Recipe, Setting
from pairveil.engine.planning import SLACK_SHARE, plan_within
from pairveil.errors import DataWarning, InputError
from pairveil.learners.material import Material
from pairveil.learners.named_people import name_of_pairs
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.mechanisms import Budget, mechanism_named
from pairveil.privacy.noise import NoiseSource
from pairveil.privacy.verdict import delta_too_large

_TOO_FEW = dict.fromkeys(("choices", "workers"), "the ranking will be mostly chance")


@dataclass(frozen=True)
class Prepared:
    """A fit that is ready to start.

    Attributes
    ----------
    material : Material
    recipe : Recipe
    plan : Plan
    certificate : Certificate or None
        None when epsilon is infinite.
    noise : NoiseSource
        Where sampling and noise will come from.
    about : str
        What the answers depend on, is public, and is not in the plan: a schema, a metric that is measured,
        a network's first weights. A checkpoint is of this and of nothing else.
    secret : bytes or None
        What pairs of row numbers are named with (`own_secret`).
    """

    material: Material
    recipe: Recipe
    plan: Plan
    certificate: Certificate | None
    noise: NoiseSource
    about: str = ""
    secret: bytes | None = field(default=None, repr=False, compare=False)

    @property
    def graph(self) -> str | None:
        """A name for who is paired with whom, where it is known."""
        return name_of_pairs(self.material.used, self.secret)

    def cost(self) -> dict[str, Any]:
        """What a ledger is charged for the fit; where records are pairs kappa is the cost of a unit."""
        material, certificate = self.material, self.certificate
        return {
            "events": tuple(self.plan.events()),
            "kappas": dict(material.kappas if material.kind == "pairs" else material.costs),
            "delta_slack": 0.0 if certificate is None else certificate.delta_slack,
            "graph": self.graph,
            "meanings": material.meanings,
        }


def prepare(recipe: Recipe, given: Any, material: Material, noise: NoiseSource) -> Prepared:
    """Plan and certify a fit.

    Parameters
    ----------
    given : parameters
        Plain and checked: epsilon, delta, unit, adjacency, mechanism, data_norm.
    noise : NoiseSource
        Says whether the fit is for release.
    """
    mechanism, costs, n = mechanism_named(given.mechanism), material.costs, material.used.n_records
    delta = 0.0 if mechanism.is_pure else given.delta
    left = delta * (1 - SLACK_SHARE) if noise.for_release else delta
    setting = setting_of(given, material, left)
    largest = max(cost.records for cost in costs.values())
    plan, slack = plan_within(recipe, setting, delta, largest, exact=noise.for_release)
    certificate = None
    if setting.budget.is_private:
        certificate = Certificate.issue(
            plan.events(),
            delta=delta,
            unit=given.unit,
            adjacency=given.adjacency,
            kappas=material.kappas,
            mechanism=given.mechanism,
            n_pairs_given=material.counts[0],
            n_pairs_used=material.counts[1],
            selection=material.selection,
            noise_source=noise.name,
            for_release=noise.for_release and material.for_release,
            delta_slack=slack,
            public=material.public,
            plan=plan.to_dict(),
            costs={material.kind: costs},
        )
        refuse_large_delta(certificate)
        _warn(n, plan)
    return Prepared(material, recipe, plan, certificate, noise)


def setting_of(given: Any, material: Material, delta: float) -> Setting:
    """The public numbers that a recipe may plan with, from plain parameters and material."""
    return Setting(
        Budget(given.epsilon, delta, material.costs[given.unit], given.adjacency),
        n_records=material.used.n_records,
        n_features=material.used.n_features,
        data_norm=given.data_norm,
        mechanism=mechanism_named(given.mechanism),
        records=material.kind,
    )


def refuse_large_delta(certificate: Certificate) -> None:
    """Refuse, before anything is charged, a delta that would allow to show one of the records.

    Raises InputError: it is not below 1 over the number of records; says which would be.
    """
    if reason := delta_too_large(certificate):
        raise InputError(reason)


def _warn(n: int, plan: Plan) -> None:
    """Say what a careful user would want to know; all of it follows from public numbers."""
    kind = plan.queries[0].records
    if kind == "counted pairs":  # counts have no features to hide behind noise
        return
    first = plan.queries[0]  # the first look at the data; a choice pays for one number only
    noise = first.noise_multiplier * math.sqrt(1 if first.is_choice else plan.n_features)
    if n / noise < 3:
        warn(
            f"{n} {kind} are few for {plan.n_features} features at this epsilon: "
            f"{_TOO_FEW.get(kind, 'the metric will most likely stay Euclidean')}; use more {kind}, fewer "
            "features or a larger epsilon",
            DataWarning,
        )
