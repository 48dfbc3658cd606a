"""One certificate for a model and what was measured for it on private pairs: thresholds, or an error curve.

The pairs of both may be others, so a unit is given as many pairs as it has in any of them; chains of pairs
run through both, so a relationship is given all pairs of a person, unless they are known to be the very same
pairs (docs/theory/guarantee.md, 'Several releases').
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pairveil.errors import InputError
from pairveil.privacy.certificate import Certificate
from pairveil.privacy.costs import Cost, costs_of_counts, costs_of_pairs
from pairveil.privacy.events import event_from_dict
from pairveil.privacy.mechanisms.gaussian import GAUSSIAN
from pairveil.privacy.public_facts import public_of
from pairveil.privacy.queries import Query
from pairveil.privacy.slack import slack_of_plan
from pairveil.privacy.units import (
    ASSUMED_TOPOLOGY,
    NOISE_SOURCES,
    PEOPLE_TOGETHER,
    UNITS,
    UNKNOWN_TOPOLOGY,
    UNNAMED,
    Unit,
    meanings_of,
)

COUNTED = "counted pairs"


@dataclass(frozen=True)
class ThresholdChoice:
    """One private choice of a threshold: a histogram of distances with noise.

    Parameters
    ----------
    kappas : mapping
        Of each unit, in the graph of the pairs it was chosen on.
    noise_source : str
        Name of the source that its noise came from, which need not be the fit's.
    inferred_topology : bool
        Whether people had to be recognised by equal feature rows.
    same_pairs : bool
        Whether its pairs are known to be the very pairs of the fit: then no chain runs from one to the other.
    """

    query: Query
    kappas: Mapping[Unit, int]
    n_pairs: int
    noise_source: str
    inferred_topology: bool
    same_pairs: bool = False


def metric_and_thresholds(metric: Certificate, made: Sequence[ThresholdChoice]) -> Certificate:
    """One certificate for a metric and every threshold that was chosen for it since the fit.

    It is for release only if every part is, and says so if anybody's identity was guessed.
    """
    _refuse_search(metric)
    costs = dict(metric.costs or {"pairs": costs_of_pairs(metric.kappas)})  # type: ignore[arg-type]
    fitted = costs.get("pairs")
    sizes: dict[Unit, int] = {
        unit: max([fitted[unit].records if fitted else 1, *(one.kappas[unit] for one in made)])
        for unit in UNITS
    }
    # As a ledger adds them up: by a person's pairs unless all are over the very same pairs.
    same = fitted is not None and all(one.same_pairs for one in made)
    costs["pairs"] = costs_of_pairs(sizes if same else _chained(sizes))
    if "tuples" in costs:  # chains run through tuples and pairs alike
        of_tuples = {unit: cost.records for unit, cost in costs["tuples"].items()}
        costs["tuples"] = costs_of_pairs(_chained(of_tuples))
    guessed = any(one.inferred_topology for one in made)
    return _joined(
        metric,
        costs,
        queries=[one.query.to_dict() for one in made],
        events=[one.query.event().to_dict() for one in made],
        sources=[one.noise_source for one in made],
        for_release=not guessed,
        public=[ASSUMED_TOPOLOGY] if guessed else [],
        thresholds=[
            {"n_pairs": one.n_pairs, "kappas": dict(one.kappas)}
            | ({"same_pairs": True} if same else {})
            for one in made
        ],
    )


def model_and_curve(model: Certificate, curve: Certificate) -> Certificate:
    """One certificate for a model and an error curve, at the larger of their deltas.

    A ledger that both were charged to says the same, or less where it knows that the pairs are the same.

    Raises InputError: they are about records of other kinds, or mean something else by a person.
    """
    _check(model, curve)
    costs: dict[str, dict[Unit, Cost]] = {}
    for kind in dict.fromkeys((*(model.costs or ("pairs",)), COUNTED)):
        sizes = _sizes(kind, model, curve)
        costs[kind] = costs_of_counts(sizes, l1=False) if kind == COUNTED else costs_of_pairs(sizes)
    return _joined(
        model,
        costs,
        queries=curve.plan["releases"],
        events=curve.events,
        sources=[curve.noise_source],
        for_release=curve.for_release,
        public=curve.public,
        delta=max(model.delta, curve.delta),
        slack=curve.delta_slack,
        thresholds=[
            {
                "n_pairs": curve.n_pairs_used,
                "n_pairs_given": curve.n_pairs_given,
                "kappas": dict(curve.kappas),
            }
        ],
        error_curve=curve.plan["error_curve"],
        selection=_selection(model.selection, curve.selection),
    )


def _selection(model: Mapping[str, Any], curve: Mapping[str, Any]) -> dict[str, Any]:
    """How the model's pairs were selected, with the caveat that the pairs of either part demand."""
    full = "full_graph_relationship_kappa"
    return {
        **model,
        "caveat": model["caveat"] or curve["caveat"],
        full: max(model[full], curve[full]),
    }


def _joined(
    first: Certificate,
    costs: Mapping[str, Mapping[Unit, Cost]],
    *,
    queries: Iterable[Mapping[str, Any]],
    events: Iterable[Mapping[str, Any]],
    sources: Sequence[str],
    for_release: bool,
    public: Sequence[str],
    delta: float | None = None,
    slack: float = 0.0,
    selection: Mapping[str, Any] | None = None,
    **added: Any,
) -> Certificate:
    """The first certificate with the queries of a second part, recomputed; ``added`` goes into its plan."""
    joint = {unit: max(by_unit[unit].records for by_unit in costs.values()) for unit in UNITS}
    plan = {**first.plan, "releases": [*first.plan["releases"], *queries], **added}
    slack = max(first.delta_slack, slack)
    if slack > 0.0:  # a larger kappa can need more
        slack = max(slack, slack_of_plan(plan, max(joint.values())))
    source = min((first.noise_source, *sources), key=lambda name: NOISE_SOURCES.get(name, False))
    said = dict.fromkeys((*first.public, *public))
    return Certificate.issue(
        [event_from_dict(event) for event in (*first.events, *events)],
        delta=first.delta if delta is None else delta,
        unit=first.unit,
        adjacency=first.adjacency,
        kappas=joint,
        mechanism=first.mechanism,
        n_pairs_given=first.n_pairs_given,
        n_pairs_used=first.n_pairs_used,
        selection=first.selection if selection is None else selection,
        noise_source=source,  # a seed, if one was used
        for_release=first.for_release and for_release and NOISE_SOURCES.get(source, False),
        delta_slack=slack,
        public=[one for one in said if one not in public_of(costs)],
        plan=plan,
        costs=costs,
    )


def _chained(sizes: Mapping[Any, int]) -> dict[Unit, int]:
    """As many records of each unit, a relationship given all of a person's."""
    return {**sizes, "relationship": max(sizes["relationship"], sizes["person"])}


def _sizes(kind: str, model: Certificate, curve: Certificate) -> dict[Unit, int]:
    """How many records of a kind each unit holds, chains across both releases included."""
    parts: list[Any] = [curve.costs] if kind == COUNTED else []
    stated = model.costs or {"pairs": costs_of_pairs(model.kappas)}  # type: ignore[arg-type]
    parts = [part[kind] for part in (*parts, stated) if part is not None and kind in part]
    return _chained({unit: max(part[unit].records for part in parts) for unit in UNITS})


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


def _refuse_search(certificate: Certificate) -> None:
    """Refuse what is to stand beside the best of several fits in one certificate: none could be checked."""
    if "search" in certificate.plan:
        raise InputError(
            "the metric is the best of a search, and its certificate stands alone: charge both to a ledger, "
            "which says what they cost together"
        )


def _check(model: Certificate, curve: Certificate) -> None:
    _refuse_search(model)
    kinds = {"pairs"} if model.costs is None else set(model.costs)
    if "error_curve" not in curve.plan or not kinds <= {"pairs", COUNTED}:
        raise InputError("only a model of pairs and an error curve have one certificate together")
    if (model.mechanism, curve.mechanism) != (GAUSSIAN.name, GAUSSIAN.name):
        raise InputError("only releases with Gaussian noise have one certificate; use a ledger")
    if UNKNOWN_TOPOLOGY in (*model.public, *curve.public):
        raise InputError("who is in which pair is not known: there is no promise for both together")
    check_same_meanings(meanings_of_certificate(model), meanings_of_certificate(curve))
