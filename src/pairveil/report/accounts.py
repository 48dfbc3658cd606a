"""The page's last sections: noise and budget, what is not promised, how to recompute all of it."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

from pairveil.privacy.events import event_from_dict
from pairveil.privacy.mechanisms import NOISES
from pairveil.report.charts import Bar, horizontal_bars
from pairveil.report.data import Budget, ReportData
from pairveil.report.markup import Html, bullets, figure, join, section, table, tabs, tag
from pairveil.report.words import caveats, cost, number, one_in, percent

if TYPE_CHECKING:
    from pairveil.privacy.certificate import Certificate

MAX_BARS = 9  # the last spendings and the budget; the table has them all


def noise(data: ReportData) -> Html:
    """Everything that was released with noise, and what it cost."""
    certificate = data.certificate
    if certificate is None:
        return Html("")
    rows = [
        [
            str(i),
            event_from_dict(event).words,
            f"{number(event_from_dict(event).noise)} × clip",
            percent(float(event.get("sample_rate", 1.0))),
            number(float(event.get("steps", event.get("epochs", 1)))),
        ]
        for i, event in enumerate(certificate.events, start=1)
    ]
    return section(
        "noise",
        "Noise and budget",
        tag("p", "Randomness: ", tag("b", certificate.noise_source), "."),
        table(
            "Everything that was released, with its noise",
            ["#", "what", "noise", "share of pairs in each sum", "times"],
            rows,
            class_="wide",
        ),
        _budget(data.summary.budget),
    )


def _budget(budget: Budget | None) -> Html:
    if budget is None:
        return join(
            tag("h3", "Ledger"),
            tag(
                "p",
                "This fit was not charged to a ledger. If the same people were or will be used for another "
                "release, the epsilons add up; ",
                tag("code", "--ledger FILE"),
                " keeps the sum.",
                class_="absent",
            ),
        )
    rows, bars, before = [], [], 0.0
    for i, entry in enumerate(budget.entries, start=1):
        name = entry.note or f"spending {i}"
        tip = f"{name}: epsilon {cost(entry.epsilon_so_far)} of {number(budget.epsilon)} in all"
        bars.append(Bar(f"after {i}", entry.epsilon_so_far, cost(entry.epsilon_so_far), tip))
        added = entry.epsilon_so_far - before
        rows.append([str(i), name, entry.when, number(added), cost(entry.epsilon_so_far)])
        before = entry.epsilon_so_far
    left = max(budget.epsilon - before, 0.0)
    bars.append(
        Bar("budget", budget.epsilon, number(budget.epsilon), "the whole budget", strong=True)
    )
    ledger = table(
        "The ledger",
        ["#", "spent on", "when", "epsilon added", "epsilon in all"],
        rows,
        class_="wide",
    )
    return join(
        tag("h3", "Ledger"),
        tag(
            "p",
            f"Budget: epsilon {number(budget.epsilon)} at delta {one_in(budget.delta)} for one {budget.unit} "
            f"({budget.adjacency}). Spent {cost(before)}, left {number(left)}. Several spendings together "
            "usually cost less than the sum of their epsilons.",
        ),
        figure(
            horizontal_bars(
                bars[-MAX_BARS:],
                title="Bars: epsilon spent in all after each entry, and the budget.",
                start=0.0,
                end=budget.epsilon,
                label_width=80.0,
            ),
            "Epsilon spent in all after each entry of the ledger.",
            ledger,
        ),
    )


def limits(data: ReportData) -> Html:
    """What is not promised."""
    parts = [bullets(caveats(data.certificate))]
    if data.certificate is not None:
        parts += [tag("h3", "Treated as public"), bullets(data.certificate.public)]
    return section("limits", "What is not promised", *parts)


def recompute(data: ReportData) -> Html:
    """How anyone can check every number on the page."""
    certificate = data.certificate
    if certificate is None:
        return Html("")
    verdict = {
        True: "The numbers were recomputed from the certificate when this page was made, and they hold.",
        False: "The numbers have not been recomputed for this page; the commands below do it.",
    }[data.problems == ()]
    if data.problems:
        verdict = "The numbers were recomputed when this page was made, and they do not hold."
    folder = shlex.quote(data.folder)
    python = (
        "from pairveil import ReleasedMetric\n\n"
        f"metric = ReleasedMetric.load({data.folder!r})   # checks the file's SHA-256\n"
        "metric.certificate.verify()            # recomputes every epsilon\n"
        "print(metric.certificate.promise())"
    )
    shell = [f"pairveil certificate {folder}", *_account(certificate)]
    return section(
        "recompute",
        "Recompute it yourself",
        tag("p", verdict),
        tabs(
            "How to recompute",
            [
                ("Command line", _code("\n".join(shell))),
                ("Python", _code(python)),
                ("The certificate", _code(json.dumps(certificate.to_dict(), indent=1))),
            ],
        ),
        tag(
            "p",
            "SHA-256 of metric.safetensors: ",
            tag("code", certificate.metric_sha256 or "not yet saved", class_="hash"),
        ),
    )


def _account(certificate: Certificate) -> list[str]:
    """The command that recomputes epsilon from one event; more than one needs `certificate`."""
    event = certificate.events[0]
    known = certificate.mechanism in NOISES and "steps" in event  # one batch, by noise on a sum
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


def _code(text: str) -> Html:
    return tag("pre", tag("code", text), tabindex=0)
