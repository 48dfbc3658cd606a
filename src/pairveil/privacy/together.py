"""What a model and an error curve measured for it cost together."""

from __future__ import annotations

from typing import Any

from pairveil.errors import InputError
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.costs import Cost, costs_of_counts, costs_of_pairs
from pairveil.privacy.events import event_from_dict
from pairveil.privacy.mechanisms.gaussian import GAUSSIAN
from pairveil.privacy.public_facts import public_of
from pairveil.privacy.slack import slack_of_plan
from pairveil.privacy.units import NOISE_SOURCES, PEOPLE_TOGETHER, UNITS, UNKNOWN_TOPOLOGY, Unit

COUNTED = "counted pairs"


def model_and_curve(model: Certificate, curve: Certificate) -> Certificate:
    """One certificate for a model and an error curve, at the larger of their deltas.

    Their pairs may be others, so chains of pairs run through both: a relationship is given as many pairs of
    each as a person has (docs/theory/guarantee.md, 'Several releases'). A ledger that both were charged to
    says the same, or less where it knows that the pairs are the same.

    Parameters
    ----------
    model, curve : Certificate

    Raises
    ------
    InputError
        They are about records of other kinds, or mean something else by a person.
    """
    _check(model, curve)
    costs: dict[str, dict[Unit, Cost]] = {}
    for kind in dict.fromkeys((*(model.costs or ("pairs",)), COUNTED)):
        sizes = _sizes(kind, model, curve)
        of_kind = costs_of_counts(sizes, l1=False) if kind == COUNTED else costs_of_pairs(sizes)
        costs[kind] = of_kind
    joint = {unit: max(by_unit[unit].records for by_unit in costs.values()) for unit in UNITS}
    plan = {
        **model.plan,
        "releases": [*model.plan["releases"], *curve.plan["releases"]],
        "thresholds": [{"n_pairs": curve.n_pairs_used, "kappas": dict(curve.kappas)}],
        "error_curve": curve.plan["error_curve"],
    }
    slack = max(model.delta_slack, curve.delta_slack)
    if slack > 0.0:
        slack = max(slack, slack_of_plan(plan, max(joint.values())))
    source = min(
        (model.noise_source, curve.noise_source), key=lambda name: NOISE_SOURCES.get(name, False)
    )
    said = dict.fromkeys((*model.public, *curve.public))
    return Certificate.issue(
        [event_from_dict(event) for event in (*model.events, *curve.events)],
        delta=max(model.delta, curve.delta),
        unit=model.unit,
        adjacency=model.adjacency,
        kappas=joint,
        mechanism=model.mechanism,
        n_pairs_given=model.n_pairs_given,
        n_pairs_used=model.n_pairs_used,
        selection=model.selection,
        noise_source=source,
        for_release=model.for_release and curve.for_release,
        delta_slack=slack,
        public=[one for one in said if one not in public_of(costs)],
        plan=plan,
        costs=costs,
    )


def _sizes(kind: str, model: Certificate, curve: Certificate) -> dict[Unit, int]:
    """How many records of a kind each unit holds, chains across both releases included."""
    parts: list[Any] = [curve.costs] if kind == COUNTED else []
    stated = model.costs or {"pairs": costs_of_pairs(model.kappas)}  # type: ignore[arg-type]
    parts = [part[kind] for part in (*parts, stated) if part is not None and kind in part]
    sizes = {unit: max(part[unit].records for part in parts) for unit in UNITS}
    sizes["relationship"] = max(sizes["relationship"], sizes["person"])
    return sizes


def refuse_search(certificate: Certificate) -> None:
    """Refuse what is to stand beside the best of several fits in one certificate: none could be checked."""
    if "search" in certificate.plan:
        raise InputError(
            "the metric is the best of a search, and its certificate stands alone: charge both to a ledger, "
            "which says what they cost together"
        )


def _check(model: Certificate, curve: Certificate) -> None:
    refuse_search(model)
    kinds = {"pairs"} if model.costs is None else set(model.costs)
    if "error_curve" not in curve.plan or not kinds <= {"pairs", COUNTED}:
        raise InputError("only a model of pairs and an error curve have one certificate together")
    if (model.mechanism, curve.mechanism) != (GAUSSIAN.name, GAUSSIAN.name):
        raise InputError("only releases with Gaussian noise have one certificate; use a ledger")
    if UNKNOWN_TOPOLOGY in (*model.public, *curve.public):
        raise InputError("who is in which pair is not known: there is no promise for both together")
    if (PEOPLE_TOGETHER in model.public) != (PEOPLE_TOGETHER in curve.public):
        raise InputError(
            "the model's promise covers people who change together and the curve's single people: they have "
            "no promise in common"
        )
    people = [
        (part.plan.get(name) or {}).get("entity_records")
        for part, name in ((model, "linkage"), (curve, "error_curve"))
    ]
    if people[0] != people[1]:
        raise InputError(
            "the model and the curve have different bounds on the records of a person: give both the same "
            "entity_records"
        )
