"""A released error curve: both error rates against the threshold, with bands, a certificate, and no score.

Error curves as pictures: DET and ROC with their bands.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from msgspec import Meta, Struct
from msgspec.structs import asdict, astuple
from numpy.typing import NDArray

from pairveil._lazy import new_axes
from pairveil.array_types import FloatArray
from pairveil.errors import InputError
from pairveil.foreign import decode
from pairveil.privacy.certificate import Certificate
from pairveil.release.release import CURVE_FILE, About, JsonRelease

# ---- Error curves as pictures: DET and ROC with their bands --------------------------------------

DET_TICKS = (0.0001, 0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99)


def deviates(rates: Any) -> NDArray[np.float64]:
    """Rates on the scale of normal deviates, on which DET curves are drawn; 0 and 1 are cut off.

    Examples
    --------
    >>> deviates(np.array([0.0, 0.5, 1.0])).round(2)
    array([-3.72,  0.  ,  3.72])
    """
    from scipy.special import ndtri  # here: who receives a curve may not have it

    return np.asarray(ndtri(np.clip(rates, DET_TICKS[0], 1 - DET_TICKS[0])))


# ---- both error rates against the threshold, with bands, a certificate, and no score -------------

SHOWN, PAID = 2.0, 1.0
"""A rate can be asked for where its pairs exceed so many standard deviations of sampling and noise: before
epsilon is spent, and of a curve that was paid for, whose band says what is known."""

WIDE = 2.0
"""A band that reaches beyond so many times the rate that was asked for is called wide."""

RATES = ("fmr", "fmr_low", "fmr_high", "fnmr", "fnmr_low", "fnmr_high")

MOST_POINTS = 4096

Rate = Annotated[float, Meta(ge=0, le=1)]
Share = Annotated[float, Meta(gt=0, lt=1)]


class PointFields(Struct):
    """A threshold and its `RATES`, as the file has them."""

    threshold: float
    fmr: Rate
    fmr_low: Rate
    fmr_high: Rate
    fnmr: Rate
    fnmr_low: Rate
    fnmr_high: Rate


class CurveFields(Struct):
    """An error curve as the file has it."""

    confidence: Share
    n_impostors: float
    n_genuine: float
    effective_share: Annotated[float, Meta(gt=0, le=1)]
    count_noise: Annotated[float, Meta(ge=0)]
    score_range: tuple[float, float]
    points: Annotated[list[PointFields], Meta(min_length=2, max_length=MOST_POINTS)]
    asked: Share | None
    of_distance: bool


@dataclass(frozen=True, eq=False)
class ErrorCurve(JsonRelease):
    """Error rates against the threshold, with simultaneous bands; all of it may be handed out.

    A pair is called a match when its score is at least the threshold.

    Attributes
    ----------
    thresholds : array, ascending
    fmr, fnmr : arrays
        False-match rate (impostor pairs at or above) and false non-match rate (genuine pairs below).
    fmr_low, fmr_high, fnmr_low, fnmr_high : arrays
        Hold for all thresholds of both curves together with probability ``confidence``, sampling and noise
        included.
    n_impostors, n_genuine : float
        How many pairs there are, with noise.
    effective_share : float
        Pairs that share people are not independent: bands count this share of them.
    count_noise : float
        Standard deviation of the noise on a number of pairs, at most.
    score_range : (float, float)
    confidence : float
    certificate : Certificate or None
    asked : float or None
        The false-match rate that the sender chose a threshold for.
    of_distance : bool
        Scores are distances with a minus sign.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([1, -1], 10_000)
    >>> scores = np.clip(rng.normal(np.where(y > 0, 0.7, 0.3), 0.1), 0, 1)
    >>> people = np.arange(40_000).reshape(-1, 2)            # pairs that share nobody
    >>> from pairveil import error_curve
    >>> curve = error_curve(scores, y, people, epsilon=0.5, delta=1e-6, score_range=(0, 1), random_state=0)
    >>> round(curve.threshold(fmr=0.01), 2)                  # the true one is 0.533
    0.53
    >>> low, high = curve.fmr_at(curve.threshold(fmr=0.01))
    >>> low < 0.01 < high
    True
    """

    file, what, format = CURVE_FILE, "error curve", "pairveil-error-curve"

    thresholds: FloatArray
    fmr: FloatArray
    fmr_low: FloatArray
    fmr_high: FloatArray
    fnmr: FloatArray
    fnmr_low: FloatArray
    fnmr_high: FloatArray
    n_impostors: float
    n_genuine: float
    effective_share: float
    count_noise: float
    score_range: tuple[float, float]
    confidence: float
    certificate: Certificate | Any
    asked: float | None = None
    of_distance: bool = False

    def threshold(self, fmr: float) -> float:
        """The score from which pairs are matches, at a false-match rate of about ``fmr``.

        Raises
        ------
        InputError
            There are too few impostor pairs to show so small a rate; says how many are needed.
        """
        check_rate(fmr)
        needed = pairs_needed(fmr, self.count_noise, PAID)
        if needed > self.n_impostors:
            kappa = "" if self.certificate is None else f" and kappa {self.certificate.kappa}"
            least = fmr * needed / max(self.n_impostors, 1.0)
            shown = f"{math.ceil(1000 * least) / 1000:g} or more" if least < 1 else "no rate"
            raise InputError(
                f"a false-match rate of {fmr:g} takes about {needed:,} impostor pairs at this epsilon{kappa}"
                f", and there are about {max(0, round(self.n_impostors)):,}, which show {shown}; ask for a "
                "larger rate, or bring more pairs"
            )
        # From the top of the range, where nothing is above, down to the first edge that reaches the rate.
        edges = np.append(self.thresholds, self.score_range[1])[::-1]
        rates = np.append(self.fmr, 0.0)[::-1]
        at = int(np.searchsorted(rates, fmr))
        if at >= len(rates):
            return float(self.thresholds[0])
        if at == 0:
            return float(edges[0])
        before, after = float(rates[at - 1]), float(rates[at])
        if before > fmr / 4:  # tails fall by factors, not by steps
            part = math.log(fmr / before) / math.log(after / before)
        else:
            part = (fmr - before) / (after - before)
        return float(edges[at - 1] + part * (edges[at] - edges[at - 1]))

    def fmr_at(self, threshold: float) -> tuple[float, float]:
        """The band of the false-match rate at a threshold; between edges rates only fall."""
        return self._band(threshold, self.fmr_low, self.fmr_high)

    def fnmr_at(self, threshold: float) -> tuple[float, float]:
        """The band of the false non-match rate at a threshold; between edges rates only rise."""
        return self._band(threshold, self.fnmr_low, self.fnmr_high)

    def _band(self, threshold: float, low: FloatArray, high: FloatArray) -> tuple[float, float]:
        if isinstance(threshold, bool) or not _is_finite(threshold):
            raise InputError("threshold must be a finite number")
        last = len(self.thresholds) - 1
        under = int(np.clip(np.searchsorted(self.thresholds, threshold, "right") - 1, 0, last))
        over = int(np.clip(np.searchsorted(self.thresholds, threshold, "left"), 0, last))
        return float(min(low[under], low[over])), float(max(high[under], high[over]))

    def pairs_for_band(self, fmr: float, times: float = WIDE) -> int:
        """Impostor pairs with which the band would end at about ``times`` the rate, at this noise.

        Examples
        --------
        >>> from pairveil import error_curve
        >>> y, people = np.repeat([1, -1], 500), np.arange(2000).reshape(-1, 2)
        >>> curve = error_curve(np.where(y > 0, 0.9, 0.1), y, people, 1.0, 1e-5, (0, 1), random_state=0)
        >>> curve.pairs_for_band(0.05) < curve.pairs_for_band(0.01) < 20_000
        True
        """
        from scipy.special import ndtri

        check_rate(fmr)
        tail = (1 - self.confidence) / (8 * len(self.thresholds))
        slack = -float(ndtri(tail)) * self.count_noise
        few, many = slack, 1e15
        while many > few * 1.001 + 1:
            n = math.sqrt(max(few, 1.0) * many)
            worst = min(fmr * n + slack, n - slack)
            end = upper_end(worst * self.effective_share, (n - slack) * self.effective_share, tail)
            few, many = (few, n) if end <= times * fmr else (n, many)
        return math.ceil(many)

    def advice(self, fmr: float) -> str:
        """What to say where the band at a rate is wide, and how many pairs would make it narrower."""
        high = self.fmr_at(self.threshold(fmr))[1]
        if high <= WIDE * fmr:
            return ""
        return (
            f"The band is wide: the true rate may be {high / fmr:.2g} times the one asked for. With about "
            f"{self.pairs_for_band(fmr):,} impostor pairs it would be {WIDE:g} times at most (there are "
            f"about {max(0, round(self.n_impostors)):,}); a larger epsilon or a larger rate helps too."
        )

    def with_model(self, certificate: Certificate) -> Certificate:
        """What this curve and the model that it was measured for cost together; see `model_and_curve`."""
        from pairveil.privacy.joint_certificate import model_and_curve

        if self.certificate is None:
            raise InputError("this curve promises nothing: it was counted without noise")
        return model_and_curve(certificate, self.certificate)

    # ---- pictures --------------------------------------------------------------------------------

    def outline(self) -> tuple[FloatArray, FloatArray]:
        """Both ends of the band of (fmr, fnmr) as stairs: the best and the worst that the curve may be.

        Between two thresholds the false-match rate only falls and the other only rises, so the true curve
        stays between the stairs, with probability ``confidence``.
        """
        found = []
        for matched, missed, late in (
            (self.fmr_low, self.fnmr_low, 0),
            (self.fmr_high, self.fnmr_high, 1),
        ):
            # Below all scores every pair is a match, above them none is.
            fmr, fnmr = np.r_[1.0, matched, 0.0], np.r_[0.0, missed, 1.0]
            stairs = np.empty((2 * len(fmr) - 1, 2))
            stairs[::2] = np.column_stack([fmr, fnmr])
            # At best the false matches fall first, at worst the missed ones rise first.
            stairs[1::2, 0] = fmr[:-1] if late else fmr[1:]
            stairs[1::2, 1] = fnmr[1:] if late else fnmr[:-1]
            found.append(stairs)
        return found[0], found[1]

    def plot(self, kind: str = "det", ax: Any = None) -> Any:
        """The curve with its band. Needs ``pip install 'pairveil[plots]'``.

        Parameters
        ----------
        kind : {'det', 'roc'}
            DET: false non-matches against false matches, both on the scale of normal deviates. ROC: matches
            found against false matches.
        ax : matplotlib axes, optional

        Returns
        -------
        matplotlib axes
        """
        if kind not in ("det", "roc"):
            raise InputError("kind must be 'det' or 'roc'")
        ax = new_axes() if ax is None else ax
        det = kind == "det"
        best, worst = self.outline()
        middle = np.column_stack([self.fmr, self.fnmr])
        lines = [deviates(one) if det else one * [1, -1] + [0, 1] for one in (middle, best, worst)]
        band = np.concatenate([lines[1], lines[2][::-1]])
        words = f"{self.confidence:.0%} band, sampling and noise"
        ax.fill(band[:, 0], band[:, 1], alpha=0.25, linewidth=0, label=words)
        ax.plot(lines[0][:, 0], lines[0][:, 1])
        ax.set(xlabel="false-match rate", ylabel="false non-match rate" if det else "matches found")
        if det:
            places, names = deviates(DET_TICKS), [f"{100 * tick:g} %" for tick in DET_TICKS]
            ax.set_xticks(places, names)
            ax.set_yticks(places, names)
        ax.legend()
        return ax

    # ---- files -----------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-able data: what is handed out with a model."""
        columns = [self.thresholds, *(getattr(self, name) for name in RATES)]
        return {
            "confidence": self.confidence,
            "n_impostors": self.n_impostors,
            "n_genuine": self.n_genuine,
            "effective_share": self.effective_share,
            "points": [
                dict(zip(("threshold", *RATES), map(float, row), strict=True))
                for row in zip(*columns, strict=True)
            ],
        }

    def content(self) -> dict[str, Any]:
        """What is handed out with a model, and what the curve was made for."""
        about = ("count_noise", "score_range", "asked", "of_distance")
        return self.to_dict() | {name: getattr(self, name) for name in about}

    @classmethod
    def of(cls, content: dict[str, Any]) -> ErrorCurve:
        """From JSON; InputError where it is no curve."""
        found: CurveFields = decode(content, CurveFields, "the curve")
        columns = np.array([astuple(point) for point in found.points]).T
        low, high = found.score_range
        if not (np.all(np.diff(columns[0]) > 0) and low < high):
            raise InputError("thresholds and the range of scores must ascend")
        numbers = asdict(found)
        del numbers["points"]
        return cls(
            **dict(zip(("thresholds", *RATES), columns, strict=True)), **numbers, certificate=None
        )

    def about(self) -> About:
        """The operating points at usual rates."""
        rows = "\n".join(
            f"| {rate:g} | {at:.6g} | {low:.2%} to {high:.2%} | {missed:.2%} to {most:.2%} |"
            for rate, at, low, high, missed, most in operating_points(
                self, (0.001, 0.01, 0.05, 0.1)
            )
        )
        side = "distance at most" if self.of_distance else "score at least"
        return About(
            "An operating point from labelled pairs",
            f"- `error_curve.json`: false-match and false non-match rates at {len(self.thresholds)} "
            "thresholds, with bands\n  that hold sampling and noise for all thresholds together "
            f"({self.confidence:.0%} confidence).",
            _USE,
            sections=f"""
| false-match rate | match: {side} | false matches | false non-matches |
|---|---|---|---|
{rows}

Rates that are missing take more pairs than there were.
""",
        )


_USE = """\
from pairveil import ErrorCurve

curve = ErrorCurve.load("path/to/this/folder")
curve.threshold(fmr=0.05)      # any other rate: reading it off costs nothing
curve.plot("det")"""


class OperatingPoint(NamedTuple):
    """A rate that was aimed at, the threshold as it is used, and both bands there."""

    rate: float
    threshold: float
    fmr_low: float
    fmr_high: float
    fnmr_low: float
    fnmr_high: float


def operating_points(curve: ErrorCurve, rates: Iterable[float]) -> list[OperatingPoint]:
    """Those of the rates that the pairs can show, the one that was asked for among them."""
    found = []
    for rate in sorted({*rates, *(() if curve.asked is None else (curve.asked,))}):
        if rate != curve.asked and pairs_needed(rate, curve.count_noise) > curve.n_impostors:
            continue
        try:
            at = curve.threshold(rate)
        except InputError:
            continue
        shown = -at if curve.of_distance else at
        found.append(OperatingPoint(rate, shown, *curve.fmr_at(at), *curve.fnmr_at(at)))
    return found


def upper_end(count: Any, n: float, tail: float) -> Any:
    """Upper end of Clopper and Pearson's interval: a larger rate gives so few with probability ``tail``."""
    from scipy.special import betaincinv

    inside = np.minimum(count, n)
    free = np.maximum(n - inside, 1e-9)
    return np.where(inside >= n, 1.0, betaincinv(inside + 1.0, free, 1 - tail))


def pairs_needed(fmr: float, count_noise: float, deviations: float = SHOWN) -> int:
    """Impostor pairs from which a rate stands out from sampling and noise, by so many standard deviations.

    Examples
    --------
    >>> pairs_needed(0.01, 0.0), pairs_needed(0.01, 17.0)
    (400, 3606)
    """
    # fmr n = deviations sqrt(fmr n + noise^2), solved for fmr n.
    square = deviations**2
    expected = (square + math.sqrt(square**2 + 4 * square * count_noise**2)) / 2
    return math.ceil(expected / fmr - 1e-9)


def check_rate(fmr: object) -> None:
    """Refuse what is no rate."""
    if isinstance(fmr, bool) or not _is_finite(fmr) or not 0 < float(fmr) < 1:  # type: ignore[arg-type]
        raise InputError("fmr must be a number between 0 and 1, both excluded")


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and math.isfinite(value)
