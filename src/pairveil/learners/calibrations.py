"""What a metric and the thresholds chosen for it on private pairs cost together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pairveil.privacy.certificate import Certificate
from pairveil.privacy.costs import costs_of_pairs
from pairveil.privacy.events import event_from_dict
from pairveil.privacy.public_facts import public_of
from pairveil.privacy.queries import Query
from pairveil.privacy.slack import slack_of_plan
from pairveil.privacy.together import refuse_search
from pairveil.privacy.units import ASSUMED_TOPOLOGY, NOISE_SOURCES, UNITS, Unit


@dataclass(frozen=True)
class Calibration:
    """One private choice of a threshold: a histogram of distances with noise.

    Parameters
    ----------
    query : Query
    kappas : mapping
        Of each unit, in the graph of the pairs it was chosen on.
    n_pairs : int
    noise_source : str
        Name of the source that its noise came from, which need not be the fit's.
    inferred_topology : bool
        Whether people had to be recognised by equal feature rows.
    """

    query: Query
    kappas: Mapping[Unit, int]
    n_pairs: int
    noise_source: str
    inferred_topology: bool


def with_calibrations(certificate: Certificate, made: Sequence[Calibration]) -> Certificate:
    """What the metric and every threshold chosen since the fit cost together.

    The thresholds' pairs may be others than the fit's, so a unit is given as many pairs as it has in any
    of them; chains of pairs run across them, so a relationship may hold all pairs of a person in each
    (docs/theory/guarantee.md, 'Several releases'). The certificate is for release only if every part is,
    names the worst source of noise, and says so if anybody's identity was guessed.
    """
    refuse_search(certificate)
    costs = dict(certificate.costs or {"pairs": costs_of_pairs(certificate.kappas)})  # type: ignore[arg-type]
    fitted = costs.get("pairs")
    joint: dict[Unit, int] = {
        unit: max([fitted[unit].records if fitted else 1, *(one.kappas[unit] for one in made)])
        for unit in UNITS
    }
    joint["relationship"] = max(joint["relationship"], joint["person"])
    costs["pairs"] = costs_of_pairs(joint)
    if "tuples" in costs:  # chains run through tuples and pairs alike
        of_tuples = {unit: cost.records for unit, cost in costs["tuples"].items()}
        of_tuples["relationship"] = max(of_tuples["relationship"], of_tuples["person"])
        costs["tuples"] = costs_of_pairs(of_tuples)
    joint = {unit: max(by_unit[unit].records for by_unit in costs.values()) for unit in UNITS}
    guessed = any(one.inferred_topology for one in made)
    public = [said for said in certificate.public if said not in public_of(costs)]
    if guessed and ASSUMED_TOPOLOGY not in public:
        public.append(ASSUMED_TOPOLOGY)
    sources = [certificate.noise_source, *(one.noise_source for one in made)]
    source = min(
        sources, key=lambda name: NOISE_SOURCES.get(name, False)
    )  # a seed, if one was used
    plan = {
        **certificate.plan,
        "releases": [*certificate.plan["releases"], *(one.query.to_dict() for one in made)],
        "thresholds": [{"n_pairs": one.n_pairs, "kappas": dict(one.kappas)} for one in made],
    }
    slack = certificate.delta_slack
    if slack > 0.0:  # a larger kappa can need more
        slack = max(slack, slack_of_plan(plan, max(joint.values())))
    return Certificate.issue(
        [
            *(event_from_dict(event) for event in certificate.events),
            *(one.query.event() for one in made),
        ],
        delta=certificate.delta,
        unit=certificate.unit,
        adjacency=certificate.adjacency,
        kappas=joint,
        mechanism=certificate.mechanism,
        n_pairs_given=certificate.n_pairs_given,
        n_pairs_used=certificate.n_pairs_used,
        selection=certificate.selection,
        noise_source=source,
        for_release=certificate.for_release and NOISE_SOURCES.get(source, False) and not guessed,
        delta_slack=slack,
        public=public,
        plan=plan,
        costs=costs,
    )
