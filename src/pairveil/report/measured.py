"""What was measured beside the promise: an attack on the plan, a charged evaluation, gain against epsilon.

None of it reads a private pair: the attack plays on made-up pairs, the evaluation was charged when it was
made, and the range follows from public numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import defstruct

from pairveil.errors import InputError
from pairveil.foreign import decode, read_json
from pairveil.report.charts import Bar, gain_band, horizontal_bars
from pairveil.report.data import Evaluation, PublicTest
from pairveil.report.parts import Figure, table
from pairveil.report.words import cost, number, percent

if TYPE_CHECKING:
    from pairveil.audit.auditor import Finding
    from pairveil.privacy.certificate import Certificate

SCORES = (
    "pair_auc", "pair_auc_low", "pair_auc_high", "euclidean_pair_auc", "euclidean_pair_auc_low",
    "euclidean_pair_auc_high",
)  # fmt: skip


# ---- an attack on the plan --------------------------------------------------------------------


def attacked(found: Finding, unit: str) -> dict[str, Any]:
    """What an audit of this plan saw, beside what is promised."""
    seen, promised = found.lower_bound, found.claimed_epsilon
    verdict = (
        "The attack found no more than was promised. It cannot prove the promise; the proof does."
    )
    if found.verdict == "violated":
        verdict = (
            "The attack found more than was promised: do not release, and report this as an error."
        )
    elif seen > promised:
        verdict = "That is above the promise, but within chance: repeat it with `pairveil audit`."
    least = f"{math.floor(100 * seen) / 100:g}"  # a lower bound is rounded down
    bars = [
        Bar("seen, at least", seen, least, f"the attack saw an epsilon of {least} at least"),
        Bar("promised", promised, cost(promised), f"epsilon {cost(promised)} is promised", strong=True),
    ]  # fmt: skip
    chart = horizontal_bars(
        bars,
        title="Bars: epsilon that an attack saw at least, and epsilon promised at most.",
        start=0.0,
        end=max(seen, promised) or 1.0,
        label_width=108.0,
    )
    return {
        "sentence": (
            f"This plan was run {number(found.n_runs)} times on made-up data that differ as much as two "
            f"accounts of one {unit} can, and the attacker saw every noisy sum, more than is ever released. "
            f"So much was seen with {percent(found.confidence)} confidence; no real data were used."
        ),
        "verdict": verdict,
        "alarm": found.verdict == "violated",
        "figure": Figure(
            chart, f"Epsilon for one {unit}: what the attack saw, and what is promised at most."
        ),
    }


# ---- a charged evaluation ---------------------------------------------------------------------


_EvaluationFields = defstruct(
    "_EvaluationFields",
    [
        *((name, float | Literal["inf"]) for name in (*SCORES, "confidence")),
        ("n_pairs", int),
        ("certificate", dict[str, Any]),
        ("metric_sha256", str),
    ],
)


def read_evaluation(path: str | Path, certificate: Certificate | None) -> Evaluation:
    """What ``pairveil evaluate --epsilon --out`` wrote about this release.

    Raises InputError: the file is damaged, is about another metric, or its certificate does not hold.
    """
    from pairveil.privacy.certificate import Certificate

    file = Path(path)
    content = read_json(file)
    decode(content, _EvaluationFields, file.name)
    if certificate is None or content["metric_sha256"] != certificate.metric_sha256:
        raise InputError(f"--evaluation: {file.name} is about another metric than this release")
    cost_of_it = Certificate.from_dict(content["certificate"])
    if not cost_of_it.verify():
        raise InputError(f"--evaluation: the certificate in {file.name} does not hold")
    shares = [float(content[name]) for name in (*SCORES, "confidence")]
    if not all(0 <= share <= 1 for share in shares) or not 0 < content["n_pairs"] < 2**53:
        raise InputError(f"--evaluation: {file.name} holds scores that are none")
    return Evaluation(
        (shares[0], shares[1], shares[2]), (shares[3], shares[4], shares[5]), content["n_pairs"],
        shares[6], cost_of_it,
    )  # fmt: skip


def evaluated(found: Evaluation) -> dict[str, Any]:
    """The scores on private pairs, and what they cost."""
    rows = [
        (name, f"{100 * value:.1f}", f"{100 * low:.1f} to {100 * high:.1f}")
        for name, (value, low, high) in (
            ("this metric", found.score),
            ("plain distance", found.plain),
        )
    ]
    spent = found.certificate
    seeded = "" if spent.for_release else " It was made with a seed and is not for release."
    return {
        "table": table(
            "Right order of two pairs, of 100",
            ("", "measured", f"interval, {percent(found.confidence)} for both"),
            rows,
        ),
        "sentence": (
            f"{number(found.n_pairs)} labelled pairs that are private were compared, with noise: one of "
            "people who belong together and one of people who differ, which is closer? A coin gets 50."
        ),
        "cost": (
            f"This measurement cost epsilon {cost(spent.epsilon)} for one {spent.unit} "
            f"({spent.adjacency}) of its own, beside that of the metric; a ledger that was charged for both "
            f"says what they cost together.{seeded}"
        ),
    }


# ---- gain against epsilon ---------------------------------------------------------------------


def expected(
    here: float, ranges: Sequence[tuple[float, float, float]], test: PublicTest
) -> dict[str, Any]:
    """The range of the gain by epsilon, and what this metric reached with the epsilon that it has."""
    kept = test.gain_kept
    rows = [
        (f"{cost(at)}{' (this metric)' if at == here else ''}", f"{100 * low:.0f} to {100 * high:.0f} %")
        for at, low, high in ranges
    ]  # fmt: skip
    reached = (
        "How much of the gain this metric kept is not known: learning from the public people themselves "
        "gains too little over plain distance, or they are too few."
    )
    if kept is not None and test.reference is not None:
        share = percent(kept) if kept > 0 else "none"
        reached = (
            f"A metric learned without privacy from the public people themselves (one half learns, the other "
            f"is scored, both ways) is right {100 * test.reference:.1f} times in 100. Of its gain over "
            f"plain distance, this metric reached {share}."
        )
    return {
        "figure": Figure(
            gain_band(ranges, (here, kept), title="Range: gain to expect against epsilon."),
            "Share of what learning without privacy gains over plain distance. Band: eight in ten fits with "
            "as many pairs and columns on other tables; diamond: this metric.",
            table("Gain to expect by epsilon", ("epsilon", "of the gain"), rows),
        ),
        "reached": reached,
    }
