"""The page's first sections: the headline, who is protected, how the pairs hang together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairveil.privacy.promise import one_number
from pairveil.privacy.units import UNITS
from pairveil.report.charts import Bar, histogram, horizontal_bars
from pairveil.report.data import GraphSummary, ReportData
from pairveil.report.markup import Html, bullets, figure, join, section, table, tabs, tag
from pairveil.report.words import (
    MEANINGS,
    adjacency_meaning,
    at_most,
    cost,
    headline,
    is_weak,
    number,
    odds_factor,
    one_in,
    percent,
)

if TYPE_CHECKING:
    from pairveil.privacy.certificate import Certificate


def hero(data: ReportData) -> Html:
    """The promise in one sentence, in full, and in six numbers."""
    certificate = data.certificate
    parts = [tag("p", headline(certificate), class_="headline")]
    if certificate is not None:
        parts.append(tag("p", certificate.promise(), class_="promise"))
        parts.append(_facts(certificate))
    calm = certificate is not None and certificate.for_release and not is_weak(certificate)
    shown = "card hero" if calm else "card hero stop"
    return tag("section", *parts, class_=shown, aria_label="The promise", id="promise")


def status(data: ReportData) -> Html:
    """One pill: may this be handed out?"""
    certificate = data.certificate
    if certificate is None:
        return tag("p", "No privacy promised", class_="pill bad")
    if data.problems:
        return tag("p", "The certificate does not hold", class_="pill bad")
    if not certificate.for_release:
        return tag("p", "Not for release", class_="pill bad")
    if is_weak(certificate):
        return tag("p", "Certified, but protects little", class_="pill bad")
    words = "For release, recomputed" if data.problems == () else "For release"
    return tag("p", words, class_="pill good")


def problems(data: ReportData) -> Html:
    """What is wrong with the certificate, where anything is."""
    if not data.problems:
        return Html("")
    return tag(
        "section",
        tag("h2", "The certificate does not hold"),
        tag("p", "Its numbers were recomputed when this page was made, and these do not follow:"),
        bullets(data.problems),
        class_="card alarm",
        role="alert",
    )


def _facts(certificate: Certificate) -> Html:
    records = certificate.records
    adjacency = (
        f"{records} blanked" if certificate.adjacency == "zero-out" else f"{records} replaced"
    )
    facts = [
        ("Epsilon", cost(certificate.epsilon), f"{certificate.unit}, {adjacency}"),
        ("Delta", one_in(certificate.delta), "slack of the promise"),
        ("Best guess right at most", at_most(certificate.best_guess()), "a coin: 50 %"),
        ("Kappa", number(certificate.kappa), f"{records} that move together"),
        (
            f"{'Pairs' if records == 'groups' else records.capitalize()} used",
            number(certificate.n_pairs_used),
            f"of {number(certificate.n_pairs_given)} given",
        ),
    ]
    return tag(
        "dl",
        [
            tag(
                "div",
                tag("dt", name),
                tag("dd", tag("strong", value), tag("span", note)),
                class_="fact",
            )
            for name, value, note in facts
        ],
        class_="facts",
    )


def protected(data: ReportData) -> Html:
    """Three units by two adjacencies, and what the numbers mean to an attacker."""
    certificate = data.certificate
    if certificate is None:
        return Html("")
    replace = certificate.epsilons[certificate.unit]["replace"]
    records = certificate.records
    meanings = MEANINGS[records]
    return section(
        "protected",
        "Who is protected, and how well",
        tag(
            "p",
            "Everything about a person is in one group, and groups are hidden as a whole: one number holds "
            "for a pair, a relationship and a person, blanked or replaced."
            if one_number(certificate)
            else "One and the same noise protects small things strongly and large things less. The table "
            "gives the guarantee for each of them, so that nobody has to guess which one was meant.",
        ),
        _units_table(certificate),
        tag(
            "div",
            tag(
                "div",
                figure(
                    _guess_chart(certificate),
                    "How often the best possible guesser is right between two equally likely stories, "
                    "knowing everything else about the data. 50 % is a coin.",
                    table(
                        "Best guess by protected unit",
                        ["Protected unit", "right at most"],
                        [[unit, at_most(certificate.best_guess(unit))] for unit in UNITS],
                    ),
                ),
                tag("h3", "What epsilon means"),
                tag("p", _odds_sentence(replace, certificate.unit)),
            ),
            tag(
                "div",
                tag("h3", "Reading the table"),
                tag(
                    "dl",
                    [
                        join(tag("dt", unit.capitalize()), tag("dd", meanings[unit]))
                        for unit in UNITS
                    ],
                    tag("dt", f"{records.capitalize()} blanked (zero-out)"),
                    tag("dd", f"Bounds {adjacency_meaning('zero-out', records)}."),
                    tag("dt", f"{records.capitalize()} replaced"),
                    tag("dd", f"Bounds {adjacency_meaning('replace', records)}."),
                    class_="terms",
                ),
            ),
            class_="columns",
        ),
    )


def _odds_sentence(epsilon: float, unit: str) -> str:
    if epsilon > 30.0:
        return f"Epsilon gives no useful bound for one {unit}."
    factor = odds_factor(epsilon)
    return (
        f"The best guess is an average over everything that could have been released. Epsilon bounds the "
        f"worst case: who held 'same' and 'different' for equally likely, odds of 1 to 1, can hold at most "
        f"{factor} to 1 after seeing the metric, for one {unit}, except with probability about delta. The "
        "factor is e to the power epsilon."
    )


def _units_table(certificate: Certificate) -> Html:
    rows = []
    for unit in UNITS:
        by = certificate.epsilons[unit]
        chosen = unit == certificate.unit
        name = join(
            unit.capitalize(), tag("span", "certified", class_="badge") if chosen else Html("")
        )
        cells = [
            tag("b", cost(by[how])) if chosen and how == certificate.adjacency else cost(by[how])
            for how in ("zero-out", "replace")
        ]
        rows.append([
            name,
            number(certificate.kappas[unit]),
            *cells,
            at_most(certificate.best_guess(unit)),
        ])  # fmt: skip
    columns = [
        "Protected unit",
        "kappa",
        f"epsilon, {certificate.records} blanked",
        f"epsilon, {certificate.records} replaced",
        "best guess right at most",
    ]
    return table(
        f"Guarantee for each unit at delta {one_in(certificate.delta)}",
        columns,
        rows,
        class_="wide",
    )


def _guess_chart(certificate: Certificate) -> Html:
    bars = []
    for unit in UNITS:
        share = certificate.best_guess(unit)
        tip = f"{unit}: the best guess is right at most {at_most(share)} of the time"
        bars.append(
            Bar(unit.capitalize(), share, at_most(share), tip, strong=unit == certificate.unit)
        )
    return horizontal_bars(
        bars,
        title="Bars: best guess right at most, for a pair, a relationship and a person.",
        start=0.5,
        end=1.0,
        ticks=[(i / 10, f"{10 * i} %") for i in range(5, 11)],
        label_width=96.0,
    )


# ---- the graph --------------------------------------------------------------------------------


def graph(data: ReportData) -> Html:
    """Degrees, b, the people who set kappa, and what selection kept."""
    certificate, summary = data.certificate, data.summary
    if certificate is not None and certificate.records == "people":
        return _people(certificate)
    if certificate is not None and certificate.records == "groups":
        return _groups(certificate)
    panels = [
        (name, _graph_panel(found))
        for name, found in (("Pairs used", summary.used), ("All pairs given", summary.given))
        if found is not None
    ]
    if panels:
        body = tabs("Which pairs", panels) if len(panels) > 1 else panels[0][1]
    else:
        body = tag(
            "p",
            "The release folder holds no summary of the pair graph, so its shape is not drawn here; the "
            "numbers kappa above come from the certificate.",
            class_="absent",
        )
    return section(
        "graph",
        "How the pairs hang together",
        tag(
            "p",
            "Pairs that share people reveal each other. Kappa says how many pairs must be hidden together "
            "for one of them to be hidden, and the noise has to grow with it.",
        ),
        _selection(certificate, summary.given) if certificate is not None else Html(""),
        body,
        _why_rank_two() if panels else Html(""),
    )


def _people(certificate: Certificate) -> Html:
    return tag(
        "section",
        tag("h2", "How people enter"),
        tag(
            "p",
            f"The metric was made of sums over {number(certificate.n_pairs_used)} people with a class each: "
            "counts, sums of features and second moments, with noise. No pair was formed: each person is in "
            "the sums once, a fact about two people is in them twice.",
        ),
        class_="card",
        id="graph",
    )


def _groups(certificate: Certificate) -> Html:
    size = certificate.plan.get("group_size")
    of = f" of at most {number(size)} people" if isinstance(size, int) else ""
    return section(
        "graph",
        "How groups enter",
        tag(
            "p",
            f"The metric was made of sums over disjoint groups{of}, with noise. "
            f"{number(certificate.n_pairs_used)} of {number(certificate.n_pairs_given)} pairs are inside a "
            "group; what a group says is the mean over its pairs, bounded as a whole. Each person is in one "
            "group at most, and so is each pair and each relationship: kappa is 1 for all of them.",
        ),
    )


def _selection(certificate: Certificate, given: GraphSummary | None) -> Html:
    how = str(certificate.selection.get("how", "all"))
    used, total = certificate.n_pairs_used, certificate.n_pairs_given
    full = certificate.selection.get("full_graph_relationship_kappa")
    if full is None and given is not None:
        full = given.kappa["relationship"]
    if used == total:
        return tag("p", f"All {number(total)} pairs given were used.")
    before = "" if full is None else f" Kappa of relationships fell from {number(full)} to "
    after = "" if full is None else f"{number(certificate.kappas['relationship'])}."
    return tag(
        "p",
        "Selection ",
        tag("b", f"'{how}'"),
        f" kept {number(used)} of {number(total)} pairs ({percent(used / total)}), without looking at "
        f"features or labels.{before}{after}",
    )


def _graph_panel(found: GraphSummary) -> Html:
    kappa = found.kappa
    published = (
        f" The published bound for a relationship would be {number(kappa['paper_bound'])}."
        if kappa["paper_bound"] != kappa["relationship"]
        else ""
    )
    return join(
        tag(
            "p",
            f"{number(found.n_pairs)} pairs of {number(found.n_people)} people. Kappa: "
            f"{number(kappa['relationship'])} for a relationship, {number(kappa['person'])} for a person."
            f"{published}",
        ),
        tag(
            "div",
            _counts_figure(found.degrees, "degree", "In how many pairs each person is (degree)."),
            _counts_figure(
                found.b,
                "b",
                "How many pairs must be missing to hide a link of each person (b). The second "
                "largest b is kappa.",
            ),
            class_="columns",
        ),
        tag("div", _top(found), class_="columns"),
    )


def _top(found: GraphSummary) -> Html:
    return table(
        "The people with the largest b, by rank and never by name",
        ["Rank", "b", "degree", "sets"],
        [
            [str(one.rank), str(one.b), str(one.degree), _role(one.rank, one.b, found)]
            for one in found.top[:5]
        ],
        class_="wide",
    )


def _why_rank_two() -> Html:
    return tag(
        "div",
        tag("h3", "Why the second rank decides"),
        tag(
            "p",
            "A relationship has two ends, and it is hidden as soon as the pairs around either end are. The "
            "end with the smaller b decides, so the worst relationship costs the second largest b. A person "
            "is protected against the largest degree.",
        ),
    )


def _role(rank: int, b: int, found: GraphSummary) -> str:
    if rank == 1:
        return "the published bound"
    return "kappa of relationships" if rank == 2 and b == found.kappa["relationship"] else ""


def _counts_figure(counts: tuple[tuple[int, int], ...], name: str, caption: str) -> Html:
    rows = [[str(value), number(people)] for value, people in counts]
    return figure(
        histogram(counts, title=f"Histogram of {name}, people on the vertical axis.", value_name=name),
        caption,
        table(f"People by {name}", [name, "people"], rows),
    )  # fmt: skip
