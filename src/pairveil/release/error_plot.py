"""Error curves as pictures: DET and ROC with their bands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from pairveil.errors import InputError
from pairveil.plots import new_axes

if TYPE_CHECKING:
    from pairveil.release.error_curve import ErrorCurve

DET_TICKS = (0.0001, 0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99)


def deviates(rates: Any) -> NDArray[np.float64]:
    """Rates on the scale of normal deviates, on which DET curves are drawn; 0 and 1 are cut off.

    Examples
    --------
    >>> deviates(np.array([0.0, 0.5, 1.0])).round(2)
    array([-3.72,  0.  ,  3.72])
    """
    return np.asarray(ndtri(np.clip(rates, DET_TICKS[0], 1 - DET_TICKS[0])))


def plot_errors(curve: ErrorCurve, kind: str = "det", ax: Any = None) -> Any:
    """A DET or ROC curve with its band."""
    if kind not in ("det", "roc"):
        raise InputError("kind must be 'det' or 'roc'")
    ax = new_axes() if ax is None else ax
    det = kind == "det"
    best, worst = curve.outline()
    middle = np.column_stack([curve.fmr, curve.fnmr])
    lines = [deviates(one) if det else one * [1, -1] + [0, 1] for one in (middle, best, worst)]
    band = np.concatenate([lines[1], lines[2][::-1]])
    words = f"{curve.confidence:.0%} band, sampling and noise"
    ax.fill(band[:, 0], band[:, 1], alpha=0.25, linewidth=0, label=words)
    ax.plot(lines[0][:, 0], lines[0][:, 1])
    ax.set(xlabel="false-match rate", ylabel="false non-match rate" if det else "matches found")
    if det:
        places, names = ndtri(DET_TICKS), [f"{100 * tick:g} %" for tick in DET_TICKS]
        ax.set_xticks(places, names)
        ax.set_yticks(places, names)
    ax.legend()
    return ax
