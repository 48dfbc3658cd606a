"""One certificate for a model and what was measured for it on private pairs: thresholds, or an error curve.

The pairs of the parts may be others, so a unit is given as many pairs as it has in any of them; chains of
pairs run through all, so a relationship is given all pairs of a person, unless they are known to be the very
same pairs (docs/theory/guarantee.md, 'Several releases').
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from pairveil.errors import InputError
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.events import event_from_dict
from pairveil.privacy.mechanisms import GAUSSIAN, Query, slack_of_plan
from pairveil.privacy.units import (
    ASSUMED_TOPOLOGY,
    NOISE_SOURCES,
    PEOPLE_TOGETHER,
    UNITS,
    UNKNOWN_TOPOLOGY,
    UNNAMED,
    Unit,
    meanings_of,
    public_of,
)
from pairveil.records.kinds import COUNTED_PAIRS, KINDS, PAIRS


@dataclass(frozen=True)
class Measurement:
    """A histogram of scores with noise, as the certificate of a model takes it in."""

    kind: str  # of its records
    sizes: Mapping[Unit, int]  # how many of them each unit holds
    queries: Sequence[Mapping[str, Any]]  # as certificates list them
    events: Sequence[Mapping[str, Any]]
    about: Mapping[str, Any]  # what the plan says of its pairs
    noise_source: str  # name of the source that its noise came from, which need not be the fit's
    # Whether its pairs are known to be the very pairs of the fit: then no chain runs from one to the
    # other
    same_pairs: bool = False
    for_release: bool = True
    public: Sequence[str] = ()
    delta: float = 0.0
    slack: float = 0.0
    plan: Mapping[str, Any] = field(default_factory=dict)
    selection: Mapping[str, Any] | None = None

    @classmethod
    def of_threshold(
        cls, query: Query, kappas: Mapping[Unit, int], n_pairs: int, noise_source: str,
        inferred_topology: bool, same_pairs: bool,
    ) -> Self:  # fmt: skip
        """A threshold, chosen by one query; ``inferred_topology``: people were told apart by their rows."""
        return cls(
            PAIRS.name,
            kappas,
            [query.to_dict()],
            [query.event().to_dict()],
            {"n_pairs": n_pairs, "kappas": dict(kappas)},
            noise_source,
            same_pairs,
            for_release=not inferred_topology,
            public=[ASSUMED_TOPOLOGY] if inferred_topology else [],
        )

    @classmethod
    def of_curve(cls, curve: Certificate) -> Self:
        """An error curve, or an AUC, by its own certificate."""
        assert curve.costs is not None
        return cls(
            COUNTED_PAIRS.name,
            {unit: curve.costs[COUNTED_PAIRS.name][unit].records for unit in UNITS},
            curve.plan["releases"],
            curve.events,
            {
                "n_pairs": curve.n_pairs_used,
                "n_pairs_given": curve.n_pairs_given,
                "kappas": dict(curve.kappas),
            },
            curve.noise_source,
            for_release=curve.for_release,
            public=curve.public,
            delta=curve.delta,
            slack=curve.delta_slack,
            plan={"error_curve": curve.plan["error_curve"]},
            selection=curve.selection,
        )


def model_and_curve(model: Certificate, curve: Certificate) -> Certificate:
    """One certificate for a model and an error curve, at the larger of their deltas.

    A ledger that both were charged to says the same, or less where it knows that the pairs are the same.

    Raises InputError: they are about records of other kinds, or mean something else by a person.
    """
    _refuse_alone(model)
    on_pairs = all(KINDS[kind].on_pairs for kind in model.costs_of)
    if "error_curve" not in curve.plan or not on_pairs:
        raise InputError("only a model of pairs and an error curve have one certificate together")
    if (model.mechanism, curve.mechanism) != (GAUSSIAN.name, GAUSSIAN.name):
        raise InputError("only releases with Gaussian noise have one certificate; use a ledger")
    if UNKNOWN_TOPOLOGY in (*model.public, *curve.public):
        raise InputError("who is in which pair is not known: there is no promise for both together")
    check_same_meanings(meanings_of_certificate(model), meanings_of_certificate(curve))
    return joint_certificate(model, [Measurement.of_curve(curve)])


def joint_certificate(model: Certificate, parts: Sequence[Measurement]) -> Certificate:
    """One certificate for a model and all that was counted for it since.

    It is for release only if every part is, and says so if anybody's identity was guessed.
    """
    _refuse_alone(model)
    costs = dict(model.costs_of)
    # As a ledger adds them up: by a person's pairs unless all are over the very same pairs.
    same = any(KINDS[kind].pairwise for kind in costs) and all(one.same_pairs for one in parts)
    for kind in dict.fromkeys((*costs, *(one.kind for one in parts))):
        if KINDS[kind].graph is None:
            continue
        held = [{unit: cost.records for unit, cost in costs.get(kind, {}).items()}]
        held += [dict(one.sizes) for one in parts if one.kind == kind]
        sizes: dict[Unit, int] = {unit: max(one.get(unit, 1) for one in held) for unit in UNITS}
        if KINDS[kind].on_tuples or not same:
            sizes["relationship"] = max(sizes["relationship"], sizes["person"])
        costs[kind] = KINDS[kind].costs(sizes)
    largest = {unit: max(by_unit[unit].records for by_unit in costs.values()) for unit in UNITS}
    queries = (query for one in parts for query in one.queries)
    told = {"same_pairs": True} if same else {}
    plan = {
        **model.plan,
        "releases": [*model.plan["releases"], *queries],
        "thresholds": [{**one.about, **told} for one in parts],
    }
    for one in parts:
        plan |= one.plan
    slack = max(model.delta_slack, *(one.slack for one in parts))
    if slack > 0.0:  # a larger kappa can need more
        slack = max(slack, slack_of_plan(plan, max(largest.values())))
    sources = (model.noise_source, *(one.noise_source for one in parts))
    source = min(
        sources, key=lambda name: NOISE_SOURCES.get(name, False)
    )  # a seed, if one was used
    said = dict.fromkeys((*model.public, *(sentence for one in parts for sentence in one.public)))
    events = (*model.events, *(event for one in parts for event in one.events))
    sound = model.for_release and all(one.for_release for one in parts)
    return Certificate.issue(
        [event_from_dict(event) for event in events],
        delta=max(model.delta, *(one.delta for one in parts)),
        unit=model.unit,
        adjacency=model.adjacency,
        kappas=largest,
        mechanism=model.mechanism,
        n_pairs_given=model.n_pairs_given,
        n_pairs_used=model.n_pairs_used,
        selection=_selection(model.selection, parts),
        noise_source=source,
        for_release=sound and NOISE_SOURCES.get(source, False),
        delta_slack=slack,
        public=[one for one in said if one not in public_of(costs)],
        plan=plan,
        costs=costs,
    )


def _selection(model: Mapping[str, Any], parts: Sequence[Measurement]) -> dict[str, Any]:
    """How the model's pairs were selected, with the caveat that the pairs of any part demand."""
    full, found = "full_graph_relationship_kappa", dict(model)
    for one in parts:
        if one.selection is not None:
            found["caveat"] = found["caveat"] or one.selection["caveat"]
            found[full] = max(found[full], one.selection[full])
    return found


def check_same_meanings(stated: Mapping[str, str], added: Mapping[str, str]) -> None:
    """Refuse two parts that do not mean the same by their units: they have no promise in common.

    ``stated``, ``added``: as `pairveil.privacy.units.meanings_of` has them.
    """
    if stated != added:
        raise InputError(
            "the model and what is added to it do not mean the same by a person, so they have no promise in "
            "common: say of both who changes together, by one column (together=), and how many records a "
            "person has (entity_records=)"
        )
    if UNNAMED in stated.values():
        raise InputError(
            "people change together, and it is not known that both parts mean the same ones: give ids, and "
            "charge both to a ledger, which knows the column"
        )


def meanings_of_certificate(certificate: Certificate) -> dict[str, str]:
    """What a certificate's units mean, as a ledger compares it.

    It does not say which column tells who changes together: whoever guesses a column could confirm it.
    """
    records = [
        (certificate.plan.get(name) or {}).get("entity_records")
        for name in ("linkage", "error_curve")
    ]
    return meanings_of(
        shares=PEOPLE_TOGETHER in certificate.public,
        entity_records=max((one for one in records if one is not None), default=None),
    )


def _refuse_alone(certificate: Certificate) -> None:
    """Refuse what has no certificate together with other releases: none could be checked."""
    reasons = {
        "several parties learned the metric, and its certificate says whom it holds against, so it": (
            certificate.parties is not None
        ),
        "the metric has a score in its certificate, which": "score" in certificate.plan,
        "the metric is the best of a search, and its certificate": "search" in certificate.plan,
    }
    for why in (reason for reason, holds in reasons.items() if holds):
        raise InputError(
            f"{why} stands alone: charge both to a ledger, which says what they cost together"
        )
