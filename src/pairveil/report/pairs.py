"""How the pairs hang together, before and after selection: from counts that the release carries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pairveil.graph import GraphSummary
from pairveil.privacy.verdict import records_of
from pairveil.report.charts import histogram, star
from pairveil.report.data import ReportData
from pairveil.report.parts import Figure, table
from pairveil.report.words import counted, number, percent

if TYPE_CHECKING:
    from pairveil.privacy.certificate import Certificate


def graph(data: ReportData) -> dict[str, Any]:
    """The busiest person before and after, everybody's number of pairs, and kappa."""
    certificate, summary = data.certificate, data.summary
    if certificate is not None and certificate.records == "people":
        return {"people": number(certificate.n_pairs_used), "groups": None, "others": ""}
    if certificate is not None and certificate.records == "groups":
        plan = certificate.plan  # the sender's: whatever is no number is not shown
        count, size = (
            number(found) if isinstance(found, int) else "a few"
            for found in (plan.get("n_groups"), plan.get("group_size"))
        )
        entered = {
            "count": count,
            "size": size,
            "used": number(certificate.n_pairs_used),
            "given": number(certificate.n_pairs_given),
        }
        return {"people": None, "groups": entered, "others": ""}
    if certificate is not None and certificate.records != "pairs":
        entered_as = counted(certificate.n_pairs_used, certificate)
        return {"people": None, "groups": None, "others": entered_as}
    before, after = summary.given, summary.used
    if before is not None and after is not None and before.n_pairs == after.n_pairs:
        before = None  # nothing was left out: one picture says it all
    panels = [
        _panel(name, found, strong=found is after)
        for name, found in (("Before: all pairs given", before), ("After: pairs used", after))
        if found is not None
    ]
    if len(panels) == 1:
        panels[0]["name"] = "The pairs used"
    return {
        "people": None,
        "others": "",
        "groups": None,
        "panels": panels,
        "selection": "" if certificate is None else _selection(certificate, summary.given),
        "numbers": _numbers(before, after, certificate),
    }


def _selection(certificate: Certificate, given: GraphSummary | None) -> str:
    used, total = certificate.n_pairs_used, certificate.n_pairs_given
    if used == total:
        return f"All {number(total)} {records_of(certificate)} given were used."
    full = certificate.selection.get("full_graph_relationship_kappa")
    if full is None and given is not None:
        full = given.kappa["relationship"]
    now = certificate.kappas["relationship"]
    fell = ""
    if full == now:
        fell = f" For a relationship kappa is {number(now)} with and without it."
    elif full is not None:
        fell = (
            f" For a relationship kappa fell from {number(full)} to {number(now)}, and the noise that is "
            "needed with it."
        )
    how = str(certificate.selection.get("how", "all"))
    return (
        f"Selection '{how}' kept {number(used)} of {number(total)} pairs ({percent(used / total)}). It "
        f"looked at who is paired with whom, and at no feature and no label.{fell}"
    )


def _panel(name: str, found: GraphSummary, *, strong: bool) -> dict[str, Any]:
    most = found.degrees[-1][0]
    busy = "1 pair" if most == 1 else f"{number(most)} pairs"
    return {
        "name": name,
        "star": star(most, title=f"{name}. The person in most pairs is in {busy}.", strong=strong),
        "histogram": Figure(
            histogram(
                found.degrees,
                title=f"{name}: histogram of the number of pairs a person is in.",
                value_name="pairs",
            ),
            f"In how many of {number(found.n_pairs)} pairs each of {number(found.n_people)} people is.",
            table(
                f"{name}: people by number of pairs",
                ("pairs", "people"),
                [(str(value), number(people)) for value, people in found.degrees],
            ),
        ),
    }


def _numbers(
    before: GraphSummary | None, after: GraphSummary | None, certificate: Certificate | None
) -> Any:
    """Kappa of each protected unit before and after, where the release tells."""
    if before is None or after is None or certificate is None:
        return None
    names = (("A relationship", "relationship"), ("A person", "person"))
    rows = [("Pairs", number(before.n_pairs), number(after.n_pairs))]
    rows += [
        (f"{words}: pairs that count together (kappa)", number(before.kappa[unit]), number(after.kappa[unit]))
        for words, unit in names
    ]  # fmt: skip
    return table("What selection did", ("", "before", "after"), rows)
