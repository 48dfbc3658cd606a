"""The page's last parts: what left the house with which noise, the budget, how to recompute all of it.

How the pairs hang together, before and after selection: from counts that the release carries.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pairveil.graph import GraphSummary
from pairveil.privacy.events import event_from_dict
from pairveil.privacy.verdict import records_of
from pairveil.records.kinds import KINDS, PAIRS
from pairveil.release.release import (
    CLUSTERS_FILE,
    CURVE_FILE,
    LINKAGE_FILE,
    NETWORK_FILE,
    RANKING_FILE,
)
from pairveil.report.charts import Bar, Figure, Table, histogram, horizontal_bars, star, table
from pairveil.report.data import Budget, ReportData
from pairveil.report.words import cost, counted, number, one_in, one_record, percent

if TYPE_CHECKING:
    from pairveil.privacy.certificate import Certificate

# ---- from counts that the release carries --------------------------------------------------------


def graph(data: ReportData) -> dict[str, Any]:
    """The busiest person before and after, everybody's number of pairs, and kappa."""
    certificate, summary = data.certificate, data.summary
    kind = PAIRS if certificate is None else KINDS[certificate.records]
    if certificate is not None and kind.alone:
        return {"people": number(certificate.n_pairs_used), "groups": None, "others": ""}
    if certificate is not None and kind.holds_pairs:
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
    if certificate is not None and not kind.pairwise:
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


# ---- what left the house with which noise, the budget, how to recompute all of it ----------------

MAX_BARS = 9  # the last spendings and the budget; the table has them all

RELEASES = {
    "level counts": "counts: how often each comparison has each level, in matches and in other pairs",
    "score counts": "counts: how many pairs of each kind score at least so much",
    "survey": "survey of the columns: how they spread, how many pairs are alike",
    "signal": "signal: which columns differ more between people who differ",
    "gradients": "gradients: the steps of the learning itself",
    "margins": "margins: how far apart people who differ are",
    "moments": "moments: the lengths of distances, learned and plain",
    "contest": "contest: whether learned distance beats plain distance",
    "columns": "columns: their means and spreads",
    "chosen column": "choice of the column that tells two classes best",
    "class steps": "class steps: which ways the classes differ",
    "separation": "separation: how far apart the learned directions put the classes",
    "contrast": "contrast: which directions tell the farther of two people from the nearer",
    "pair moments": "second moments of the differences, of like and of unlike pairs",
    "start": "start: the column from which the learning starts",
    "centres": "centres: counts and sums of the points in each cluster",
    "votes": "votes: how many links agree with each of the proposed clusterings",
    "choices": "choices: how often each item was preferred",
    "class statistics": "class statistics: counts, sums and second moments by class",
}
"""Names that our learners give their queries, said for people; other names stand as they are."""

READ_OFF = {
    LINKAGE_FILE: "The receiver can also recompute, from linkage.json alone: every match weight, "
    "log2(m / u); the match probability of a pair under the receiver's own prior; the size of the noise on "
    "each weight. Not without the labelled pairs, which stay: how good the weights are, and that kappa is "
    "right.",
    CURVE_FILE: "The receiver can also recompute, from error_curve.json alone: the threshold for any other "
    "false-match rate, with its bands. Not without the scored pairs, which stay: the rates themselves.",
}
"""What can be worked out from a release beside its epsilons, and what cannot."""


def noise(certificate: Certificate) -> dict[str, Any]:
    """Everything that was released with noise."""
    one = one_record(certificate)
    return {
        "source": certificate.noise_source,
        "table": _noise_table(certificate, one),
        "search": _search(certificate),
    }


def _search(certificate: Certificate) -> str:
    """That the release is the best of several fits, where it is."""
    trials = [event["mean_trials"] for event in certificate.events if "trials" in event]
    if not trials:
        return ""
    return (
        f"This is the best of several fits: {number(trials[0])} were made on average, each of a candidate "
        "drawn at random, and the one that scored best on pairs held back was kept. The table lists what a "
        "fit of each candidate asks, one after the other; the promise covers all of them together."
    )


def _noise_table(certificate: Certificate, one: str) -> Table:
    rows = []
    asked = [
        inner
        for event in certificate.events  # of a search: what a trial of each candidate asks
        for inner in (
            [e for trial in event["trials"] for e in trial] if "trials" in event else [event]
        )
    ]
    for event, (name, entries) in zip(asked, _names(certificate, len(asked)), strict=True):
        told = event_from_dict(event)
        rate = float(event.get("sample_rate", 1.0))
        over = f"all {records_of(certificate)}"
        if "epochs" in event:
            over = f"batches of the {records_of(certificate)}"
        elif rate < 1:
            over = f"a random sample, {percent(rate)}"
        rows.append(
            (
                name or told.words,
                entries,
                number(told.noise),
                over,
                number(float(event.get("steps", event.get("epochs", 1)))),
            )
        )
    columns = ("What was asked", "numbers", "noise", "over", "times")
    caption = (
        "Everything that was computed from the private data; noise is in multiples of the most that one "
        f"{one} can add"
    )
    return table(caption, columns, rows)


def _names(certificate: Certificate, n_events: int) -> list[tuple[str, str]]:
    """Each event's name and count of numbers, where the plan tells of as many queries as there are events."""
    queries = certificate.plan.get("releases")
    if not isinstance(queries, list | tuple) or len(queries) != n_events:
        return [("", "")] * n_events
    found = []
    for query in queries:
        told = query if isinstance(query, Mapping) else {}
        name, entries = str(told.get("name", "")), told.get("entries")
        if isinstance(entries, bool) or not isinstance(entries, int) or not 0 < entries < 2**53:
            found.append((RELEASES.get(name, name), ""))
        else:
            found.append((RELEASES.get(name, name), number(entries)))
    return found


def budget(found: Budget | None) -> dict[str, Any] | None:
    """What the ledger allows, what was spent and what is left; None without a ledger."""
    if found is None:
        return None
    rows, bars, before = [], [], 0.0
    for i, entry in enumerate(found.entries, start=1):
        name = entry.note or f"spending {i}"
        tip = f"{name}: epsilon {cost(entry.epsilon_so_far)} of {number(found.epsilon)} in all"
        bars.append(Bar(f"after {i}", entry.epsilon_so_far, cost(entry.epsilon_so_far), tip))
        added = entry.epsilon_so_far - before
        rows.append((str(i), name, entry.when, number(added), cost(entry.epsilon_so_far)))
        before = entry.epsilon_so_far
    whole = Bar("budget", found.epsilon, number(found.epsilon), "the whole budget", strong=True)
    columns = ("#", "spent on", "when", "epsilon added", "epsilon in all")
    chart = horizontal_bars(
        [*bars[-MAX_BARS:], whole],
        title="Bars: epsilon spent in all after each entry, and the budget.",
        start=0.0,
        end=found.epsilon,
        label_width=80.0,
    )
    return {
        "sentence": (
            f"Budget: epsilon {number(found.epsilon)} at delta {one_in(found.delta)} for one {found.unit} "
            f"({found.adjacency}). Spent {cost(before)}, left {number(max(found.epsilon - before, 0.0))}. "
            "Several spendings together usually cost less than the sum of their epsilons."
        ),
        "figure": Figure(
            chart,
            "Epsilon spent in all after each entry of the ledger.",
            table("The ledger", columns, rows),
        ),
    }


def recompute(data: ReportData, certificate: Certificate) -> dict[str, Any]:
    """How anyone can check every number on the page."""
    verdict = "The numbers have not been recomputed for this page; the commands below do it."
    if data.problems == ():
        verdict = "The numbers were recomputed from the certificate when this page was made, and they hold."
        verdict += (
            " That noise was added is the sender's word; no signature was checked for this page."
        )
    kinds = {LINKAGE_FILE: "ReleasedLinkage", CURVE_FILE: "ErrorCurve"}
    kinds |= {RANKING_FILE: "ReleasedRanking", CLUSTERS_FILE: "ReleasedClusters"}
    kind, package, beside = kinds.get(data.file, "ReleasedMetric"), "pairveil", ""
    if data.file == NETWORK_FILE:
        kind, package, beside = "ReleasedNetwork", "pairveil.deep", ", module"  # of these layers
    python = (
        f"from {package} import {kind}\n\n"
        f"release = {kind}.load({data.folder!r}{beside})   # checks the file's SHA-256\n"
        "release.certificate.verify()            # recomputes every epsilon\n"
        "print(release.certificate.promise())"
    )
    shell = [f"pairveil certificate {shlex.quote(data.folder)}", *_account(certificate)]
    return {
        "verdict": verdict,
        "ways": [("Command line", "\n".join(shell)), ("Python", python)],
        "file": data.file,
        "more": READ_OFF.get(data.file, ""),
        "sha256": certificate.metric_sha256 or "not yet saved",
    }


def _account(certificate: Certificate) -> list[str]:
    """The command that recomputes epsilon from one event; more than one needs `certificate`."""
    event = certificate.events[0]
    known = event["kind"] == certificate.mechanism  # one batch, by noise on a sum
    if len(certificate.events) != 1 or not known:
        return []
    command = [
        "pairveil account",
        f"--kappa {certificate.kappa}",
        f"--mechanism {certificate.mechanism}",
        f"--noise-multiplier {event_from_dict(event).noise!r}",
        f"--steps {event['steps']}",
        f"--delta {certificate.delta - certificate.delta_slack!r}",
        f"--adjacency {certificate.adjacency}",
    ]
    if "sample_rate" in event:
        command.insert(2, f"--sample-rate {event['sample_rate']!r}")
    return [" \\\n  ".join(command)]
