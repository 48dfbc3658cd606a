"""What the first screens show: what was released, the best guess, what is not promised, who is protected."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, get_args

from pairveil.privacy.promise import one_number
from pairveil.privacy.units import Unit, round_up
from pairveil.release.folder import CURVE_FILE
from pairveil.report.charts import Bar, horizontal_bars
from pairveil.report.data import ReportData
from pairveil.report.evidence import gain_in_brief
from pairveil.report.measured import attacked
from pairveil.report.parts import Fact, Figure, table
from pairveil.report.pictures import hundred_guesses
from pairveil.report.words import (
    adjacency_meaning,
    at_most,
    caveats,
    cost,
    counted,
    guesses_in_100,
    headline,
    is_weak,
    kind_of,
    number,
    odds_factor,
    one_in,
    plain_public,
    records_of,
    unit_meaning,
)

if TYPE_CHECKING:
    from pairveil.audit.auditor import Finding
    from pairveil.privacy.certificate import Certificate


def status(data: ReportData) -> tuple[str, bool]:
    """May this be handed out? In a few words, and whether the answer is yes."""
    certificate = data.certificate
    if certificate is None:
        return "No privacy promised", False
    if data.problems:
        return "The certificate does not hold", False
    if not certificate.for_release:
        return "Not for release", False
    if is_weak(certificate):
        return "Certified, but protects little", False
    return ("For release, recomputed" if data.problems == () else "For release"), True


def first_screen(data: ReportData) -> dict[str, Any]:
    """What was released, how well anyone can guess, and what it is good for."""
    certificate = data.certificate
    calm = certificate is not None and certificate.for_release and not is_weak(certificate)
    bounded = certificate is not None and not is_weak(certificate)
    return {
        "calm": calm,
        "headline": headline(certificate),
        "large": _large(certificate) if bounded and certificate is not None else "",
        "icons": hundred_guesses(guesses_in_100(certificate)) if bounded and certificate else None,
        "released": _released(data),
        "promise": None if certificate is None else certificate.promise(),
        "facts": [] if certificate is None else _facts(data, certificate),
    }


def _large(certificate: Certificate) -> str:
    return f"At most {guesses_in_100(certificate)} guesses in 100 are right. A coin gets 50."


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
            if certificate.records == "groups"
            else f"{records_of(certificate).capitalize()} used",
            number(used),
            "all that were given" if used == given else f"of {number(given)} given",
        ),
        gain_in_brief(data),
    ]


# ---- limits -----------------------------------------------------------------------------------


def limits(data: ReportData) -> dict[str, Any]:
    """What is not promised, and what counts as public."""
    certificate = data.certificate
    public = () if certificate is None else certificate.public
    records = "" if certificate is None else records_of(certificate)
    return {
        "caveats": caveats(certificate),
        "public": [plain_public(sentence, records) for sentence in public],
    }


# ---- who is protected -------------------------------------------------------------------------

SIX_NUMBERS = (
    "One and the same noise protects small things strongly and large things less. The table gives the "
    "guarantee for each of them, so that nobody has to guess which one was meant."
)
ONE_NUMBER = (
    "Everything about a person is in one group, and groups are hidden as a whole: one number holds for a "
    "pair, a relationship and a person, blanked or replaced."
)


def protected(certificate: Certificate, audit: Finding | None = None) -> dict[str, Any]:
    """Three units by two comparisons, what the numbers mean to an attacker, and what one saw."""
    records, shown = kind_of(certificate), records_of(certificate)
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
    terms = [(unit.capitalize(), unit_meaning(unit, records)) for unit in units]
    for words, adjacency in (("blanked (zero-out)", "zero-out"), ("replaced", "replace")):
        terms.append(
            (f"{shown.capitalize()} {words}", f"Bounds {adjacency_meaning(adjacency, records)}.")
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
        "worst case: who held two stories for equally likely, odds of 1 to 1, can hold at most "
        f"{odds_factor(epsilon)} to 1 after seeing the release, for one {unit}, except with probability "
        f"about delta. The factor is e to the power {round_up(epsilon)}, the epsilon for what is replaced."
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
