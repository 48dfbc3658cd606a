"""What the first screens show: what was released, the best guess, what is not promised, who is protected."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any, get_args

from pairveil.errors import InputError
from pairveil.privacy.certificate import one_number
from pairveil.privacy.joint_certificate import model_and_curve
from pairveil.privacy.units import Unit, round_up
from pairveil.privacy.verdict import (
    Releases,
    Verdict,
    kind_of,
    records_of,
    unit_name,
    verdict,
)
from pairveil.records.kinds import KINDS
from pairveil.release.release import CURVE_FILE
from pairveil.report.charts import Bar, Fact, Figure, horizontal_bars, hundred_guesses, table
from pairveil.report.data import ReportData
from pairveil.report.quality import attacked, gain_in_brief
from pairveil.report.words import (
    at_most,
    caveats,
    cost,
    counted,
    number,
    odds_factor,
    one_in,
    plain_public,
)

if TYPE_CHECKING:
    from pairveil.audit.auditor import Finding
    from pairveil.privacy.certificate import Certificate


def verdict_of(data: ReportData, releases: Releases | None = None) -> Verdict:
    """The verdict on everything that the page shows, all releases of the sender's ledger together.

    ``releases``: what the ledger says, where the summary does not.
    """
    certificate, budget = data.certificate, data.summary.budget
    if budget is not None:
        releases = Releases(len(budget.entries), budget.best_guess)
    beside, measured = data.together, []
    if data.curve is not None and data.file != CURVE_FILE:
        measured.append(data.curve.certificate)
    if certificate is not None and data.evaluation is not None:
        measured.append(data.evaluation.certificate)
        with suppress(InputError):
            beside = model_and_curve(certificate, data.evaluation.certificate)
    if measured and (beside is None or len(measured) > 1):
        releases = Releases(1 + len(measured), {})  # nothing is known of them together
    why = [why for one in measured if one is not None for why in one.why_not_for_release()]
    failures = [f"what was measured for this page must not leave: {one}" for one in why]
    if data.audit is not None and data.audit.verdict == "violated":
        failures.append("an attack on this very plan found more than is promised")
    return verdict(
        certificate, problems=data.problems, failures=failures, releases=releases, beside=beside
    )


def first_screen(data: ReportData, releases: Releases | None = None) -> dict[str, Any]:
    """The verdict, what was released, and what it is good for."""
    certificate, found = data.certificate, verdict_of(data, releases)
    bounds = {unit: times for unit, times in found.in_100.items() if times is not None}
    worst = max(bounds, key=lambda unit: bounds[unit], default=None)
    shown = found.usable and certificate is not None
    return {
        "verdict": found,
        "calm": found.usable and certificate is not None and certificate.unit in bounds,
        "bounds": _bounds(found, certificate) if shown and certificate is not None else [],
        "icons": None if worst is None else hundred_guesses(bounds[worst]),
        "drawn": "" if worst is None or certificate is None else unit_name(certificate, worst),
        "released": _released(data),
        "promise": certificate.promise() if shown and certificate is not None else None,
        "facts": _facts(data, certificate) if shown and certificate is not None else [],
    }


def _bounds(found: Verdict, certificate: Certificate) -> list[Fact]:
    """The verdict's numbers, each with what it is about."""
    facts = []
    for unit, times in found.in_100.items():
        value = "no promise" if times is None else f"at most {times} in 100"
        facts.append(Fact(f"One {unit_name(certificate, unit)}", value, found.about[unit]))
    if found.open_in_100 is not None:
        value = f"no promise: at least {found.open_in_100} in 100 may be open"
        facts.append(Fact("Whoever knows the answers left out", value, found.left_out_means))
    return facts


def _released(data: ReportData) -> str:
    metric, certificate = data.metric, data.certificate
    what = (
        f"A rule that says how alike two people are, as a table of {number(metric.n_components)} × "
        f"{number(metric.n_features)} numbers (a distance metric)."
    )
    if data.linkage:
        what = (
            "A table that says how much each comparison of two records counts for or against a match "
            "(a linkage model)."
        )
    elif data.file == CURVE_FILE:
        what = (
            "How often a rule that compares people is wrong, at each threshold that it might use (an error "
            "curve, from which an operating point is chosen)."
        )
    elif data.answer is not None:
        what = data.answer.released
    if certificate is None:
        return f"{what} It was learned without noise."
    if data.problems:
        return what
    each = {
        "pairs": "pairs of people, each marked 'same' or 'different'",
        "groups": "pairs inside disjoint groups of people",
        "people": "people with a class each",
        "counted pairs": "pairs of records, each marked 'match' or 'no match'",
        "links": "links between points, each of which says 'together' or 'apart'",
        "workers": "workers and what each of them chose",
    }.get(kind_of(certificate), certificate.records)
    kept = " No row of the data is handed out." if kind_of(certificate) != "links" else ""
    return (
        f"{what} It was learned from {number(certificate.n_pairs_used)} {each}; random noise was added "
        f"before anything was kept.{kept}"
    )


def _facts(data: ReportData, certificate: Certificate) -> list[Fact]:
    used, given = certificate.n_pairs_used, certificate.n_pairs_given
    return [
        Fact(
            "Privacy budget spent (epsilon)",
            cost(certificate.epsilon),
            "one number for a pair, a relationship and a person; smaller is more private"
            if one_number(certificate)
            else f"for one {certificate.unit}; smaller is more private",
        ),
        Fact(
            "Pairs used"
            if KINDS[certificate.records].holds_pairs
            else f"{records_of(certificate).capitalize()} used",
            number(used),
            "all that were given" if used == given else f"of {number(given)} given",
        ),
        gain_in_brief(data),
    ]


# ---- limits -----------------------------------------------------------------------------------


def limits(data: ReportData) -> dict[str, Any]:
    """What is not promised, and what counts as public; of a certificate that does not hold, nothing is."""
    certificate = None if data.problems else data.certificate
    public = () if certificate is None else certificate.public
    records = "" if certificate is None else records_of(certificate)
    return {
        "caveats": caveats(certificate),
        "public": [plain_public(sentence, records) for sentence in public],
    }


# ---- who is protected -------------------------------------------------------------------------

SIX_NUMBERS = (
    "One pair is better protected than a whole person. The table gives the guarantee for each."
)
ONE_NUMBER = (
    "Everything about a person is in one group, and groups are hidden as a whole: one number holds for a "
    "pair, a relationship and a person, blanked or replaced."
)


def protected(certificate: Certificate, audit: Finding | None = None) -> dict[str, Any]:
    """Three units by two comparisons, what the numbers mean to an attacker, and what one saw."""
    shown = records_of(certificate)
    units = units_of(certificate)
    rows = []
    for unit in units:
        by = certificate.epsilons[unit]
        rows.append((
            unit.capitalize(),
            counted(certificate.kappas[unit], certificate),
            cost(by["zero-out"]),
            cost(by["replace"]),
            at_most(certificate.best_guess(unit)),
        ))  # fmt: skip
    columns = (
        "Protected",
        "counts together (kappa)",
        f"epsilon, {shown} blanked",
        f"epsilon, {shown} replaced",
        "best guess right at most",
    )
    terms = [(unit.capitalize(), certificate.words.meaning[unit]) for unit in units]
    for words, adjacency in (("blanked (zero-out)", "zero-out"), ("replaced", "replace")):
        terms.append(
            (f"{shown.capitalize()} {words}", certificate.words.against[adjacency].format(shown))
        )
    return {
        "lead": ONE_NUMBER if one_number(certificate) else SIX_NUMBERS,
        "table": table(
            f"The guarantee for each, at delta {one_in(certificate.delta)}",
            columns,
            rows,
            chosen=units.index(certificate.unit),
            chosen_as="certified",
        ),
        "bars": _guess_bars(certificate),
        "attacked": None if audit is None else attacked(audit, certificate.unit),
        "odds": _odds_sentence(certificate.epsilons[certificate.unit]["replace"], certificate.unit),
        "terms": terms,
    }


def units_of(certificate: Certificate) -> list[Unit]:
    """What the certificate states a guarantee for, small things first."""
    return [unit for unit in get_args(Unit) if unit in certificate.epsilons]


def _odds_sentence(epsilon: float, unit: str) -> str:
    if math.isinf(epsilon) or epsilon > 30.0:
        return f"Epsilon gives no useful bound for one {unit}."
    return (
        "The best guess is an average over everything that could have been released. Epsilon bounds the "
        f"worst case: someone who was undecided about one {unit} can become at most "
        f"{at_most(1 / (1 + math.exp(-epsilon)))} sure, except with probability about delta. That is odds of "
        f"{odds_factor(epsilon)} to 1, e to the power {round_up(epsilon)}, the epsilon for what is replaced."
    )


def _guess_bars(certificate: Certificate) -> Figure:
    bars = []
    for unit in units_of(certificate):
        share = certificate.best_guess(unit)
        tip = f"{unit}: the best guess is right at most {at_most(share)} of the time"
        chosen = unit == certificate.unit
        bars.append(Bar(unit.capitalize(), share, at_most(share), tip, strong=chosen))
    chart = horizontal_bars(
        bars,
        title="Bars: best guess right at most, for each thing that is protected.",
        start=0.5,
        end=1.0,
        ticks=[(i / 10, f"{10 * i} %") for i in range(5, 11)],
        label_width=96.0,
    )
    return Figure(
        chart,
        "How often the best possible guesser is right between two equally likely stories, knowing "
        "everything else about the data. 50 % is a coin. The table above has the numbers.",
    )
