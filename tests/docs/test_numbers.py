"""Numbers that the docs state are those of the code."""

from __future__ import annotations

import math

import pytest
from pages import ROOT

from pairveil.engine.statistics import TILE
from pairveil.evaluation import curve
from pairveil.learners import classes
from pairveil.learners.contrastive.recipe import NUMBERS as PAIRS
from pairveil.privacy import compose as composition
from pairveil.privacy import profile as best_of


def shares(*parts: float) -> str:
    return ", ".join(f"{part:.2f}".lstrip("0") for part in parts)


def farthest() -> float:
    """Of two people of one class, in what they contribute to class statistics (docs/theory/records.md)."""
    _, b, c = (weight**2 for weight in classes.WEIGHTS)
    cosine = -b / (2 * c)
    return math.sqrt(b * (2 - 2 * cosine) + c * (2 - 2 * cosine**2))


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (
            "theory/learner.md",
            f"get {shares(PAIRS.survey_share)} and {PAIRS.start_share:.2f}".replace("0.", "."),
        ),
        ("theory/learner.md", f"clipped to min({PAIRS.clip}, SNR / {PAIRS.unclipped:.0f})"),
        ("theory/learner.md", f"T = {PAIRS.steps} times"),
        ("theory/learner.md", f"S < {PAIRS.faint:.0f}, K ≥ {PAIRS.few_pairs:,}"),
        ("theory/learner.md", f"pays for the sum of its entries, if S < {PAIRS.faint_pure:,.0f}"),
        (
            "theory/learner.md",
            f"({PAIRS.euclid} / SNR)² + ({PAIRS.scarce} d / K')⁴ + {PAIRS.evidence}² / (1 + z²)",
        ),
        ("theory/records.md", f"gives a distance of {farthest():.2f}"),
        ("theory/learner.md", f"There are {classes.NUMBERS.steps} steps"),
        ("theory/learner.md", f"< s x_j <= {classes.WIDTH:.0f}t"),
        ("theory/accounting.md", f"takes {best_of._HULL_POINTS} points"),
        ("theory/learner.md", f"in {curve.AUC_CELLS} public cells"),
        ("theory/accounting.md", f"{composition.MAX_DISTINCT} distinct sampled events"),
        ("theory/noise.md", f"tiles of {TILE:,} pairs"),
        ("theory/learner.md", f"n < {classes.NUMBERS.clear_statistics:.0f} sigma sqrt(d) / k"),
        ("theory/learner.md", f"n < {classes.NUMBERS.clear_vector:,.0f} sigma sqrt(d)"),
        ("theory/learner.md", f"above {classes.MOST_FEATURES:,} columns"),
    ],
)
def test_a_number_of_the_docs_is_the_code_s(page: str, said: str) -> None:
    assert said in " ".join((ROOT / "docs" / page).read_text(encoding="utf-8").split())
