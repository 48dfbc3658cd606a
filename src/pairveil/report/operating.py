"""The report on an operating point: a DET curve with its band, the threshold, and other rates to choose."""

from __future__ import annotations

from typing import Any

import numpy as np

from pairveil.errors import InputError
from pairveil.release.curve import (
    DET_TICKS,
    ErrorCurve,
    OperatingPoint,
    deviates,
    operating_points,
)
from pairveil.release.release import CURVE_FILE
from pairveil.report.charts import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Chart,
    axis_names,
    drawn,
    hidden,
    mark,
    scale,
    shape,
    text,
)
from pairveil.report.data import ReportData
from pairveil.report.parts import Figure, table
from pairveil.report.words import cost, number, one_in

RATES = (0.0001, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)


def operating(data: ReportData) -> dict[str, Any]:
    """What the page shows of an error curve, and what it costs together with the model it was made for."""
    curve = data.curve
    assert curve is not None
    points = operating_points(curve, RATES)
    rows = [
        (f"{100 * rate:g} %", f"{at:.4g}", _band(low, high), _band(missed, most))
        for rate, at, low, high, missed, most in points
    ]
    side = "distance at most" if curve.of_distance else "score at least"
    asked = next((i for i, point in enumerate(points) if point[0] == curve.asked), None)
    columns = ("False matches aimed at", f"match: {side}", "false matches", "matches missed")
    listed = table("Thresholds to choose from", columns, rows, chosen=asked, chosen_as="chosen")
    return {
        "sentence": _sentence(curve, points, asked),
        "advice": _advice(curve),
        "sample": _sample(curve),
        "together": _together(data),
        "figure": Figure(
            _det(curve, points, asked),
            "False matches against missed matches, one point for each threshold (DET curve, on "
            f"normal-deviate axes). The band holds the true curve with {curve.confidence:.0%} confidence, "
            "sampling and noise included.",
        ),
        "table": listed if rows else None,
    }


def _together(data: ReportData) -> str:
    """Costs of a page that is about two releases: the numbers above are the model's alone."""
    if data.curve is None or data.curve.certificate is None or data.file == CURVE_FILE:
        return ""
    own = data.curve.certificate
    said = (
        f"The curve is a release of its own, with its own certificate: epsilon {cost(own.epsilon)} for one "
        f"{own.unit} ({own.adjacency})."
    )
    if data.together is None:
        return f"{said} A ledger that was charged for both says what they cost together."
    both = data.together
    return (
        f"{said} Model and curve together cost epsilon {cost(both.epsilon)} at delta {one_in(both.delta)} "
        f"for one {both.unit} ({both.adjacency}), by their certificates alone; a ledger that knows that the "
        "pairs are the same may say less."
    )


def _band(low: float, high: float) -> str:
    return f"{100 * low:.3g} to {100 * high:.3g} %"


def _sentence(curve: ErrorCurve, points: list[OperatingPoint], asked: int | None) -> str:
    if asked is None:
        return "No threshold was chosen: the table has some that these pairs can show."
    rate, at, low, high, missed, most = points[asked]
    what = "distance is at most" if curve.of_distance else "score is at least"
    return (
        f"Call pairs a match whose {what} {at:.6g}. Aimed at {100 * rate:g} false matches in 100 pairs that "
        f"do not match; the true number is between {100 * low:.3g} and {100 * high:.3g}. Of 100 pairs that "
        f"match, between {100 * missed:.3g} and {100 * most:.3g} are missed."
    )


def _advice(curve: ErrorCurve) -> str:
    if curve.asked is None:
        return ""
    try:
        return curve.advice(curve.asked)
    except InputError as problem:  # fewer pairs than the sender hoped for
        return f"The rate asked for cannot be shown: {problem}."


def _sample(curve: ErrorCurve) -> str:
    share = ""
    if curve.effective_share < 1:
        share = f" Pairs share people, so bands count {curve.effective_share:.0%} of them as independent."
    return (
        f"Measured on about {number(max(0, round(curve.n_genuine)))} pairs that match and "
        f"{number(max(0, round(curve.n_impostors)))} that do not; each number has noise of about "
        f"{number(curve.count_noise)} pairs.{share} Any other threshold may be read off the released curve: "
        "that costs nothing more."
    )


def _det(curve: ErrorCurve, points: list[OperatingPoint], asked: int | None) -> Chart:
    height = 330.0
    low, high = float(deviates(DET_TICKS[0])), float(deviates(0.999))
    x = scale(low, high, LEFT, WIDTH - RIGHT)
    y = scale(low, high, height - BOTTOM, TOP)
    grid = []
    for tick in DET_TICKS:
        at, words = float(deviates(tick)), f"{100 * tick:g}"
        grid += [
            shape("line", class_="grid", x1=x(at), x2=x(at), y1=TOP, y2=height - BOTTOM),
            shape("line", class_="grid", x1=LEFT, x2=WIDTH - RIGHT, y1=y(at), y2=y(at)),
            text(x(at), height - BOTTOM + 17, words, text_anchor="middle"),
            text(LEFT - 8, y(at) + 4, words, text_anchor="end"),
        ]
    best, worst = (np.minimum(deviates(one), high) for one in curve.outline())
    middle = np.minimum(deviates(np.column_stack([curve.fmr, curve.fnmr])), high)

    def path(line: Any) -> str:
        return " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in line)

    parts = [
        hidden(grid),
        axis_names("false matches, of 100 that do not match", "matches missed, of 100", height),
        shape("polygon", class_="band", points=path([*best, *worst[::-1]])),
        shape("polyline", class_="curve", points=path(middle)),
    ]
    for i, (rate, at, _, _, missed, most) in enumerate(points):
        a = float(deviates(rate))
        b = min(float(np.interp(a, middle[::-1, 0], middle[::-1, 1])), high)
        tip = (
            f"threshold {at:.4g}: {100 * rate:g} false matches of 100 aimed at, "
            f"{100 * missed:.3g} to {100 * most:.3g} of 100 missed"
        )
        if i == asked:
            diamond = shape("path", d=f"M{x(a):.1f} {y(b) - 9:.1f} l9 9 l-9 9 l-9 -9 z")
            label = text(x(a) + 14, y(b) - 8, "chosen", class_="value")
            parts.append(mark(tip, diamond, label, class_="this-fit"))
        else:
            parts.append(mark(tip, shape("circle", cx=x(a), cy=y(b), r=4.5), class_="curve-point"))
    return drawn("Curve: false matches against missed matches, with its band.", height, parts)
