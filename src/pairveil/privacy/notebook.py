"""A certificate in a notebook: its promise as a table, and the trade-off that it leaves to a guesser."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pairveil.plots import html_table, new_axes
from pairveil.privacy.promise import times_in_100
from pairveil.privacy.units import round_up

if TYPE_CHECKING:
    from pairveil.privacy.certificate import Certificate


def certificate_html(certificate: Certificate) -> str:
    """Epsilon for each unit, and what it means to a guesser; the promise in words below."""
    rows = [
        [
            f"{unit} (promised)" if unit == certificate.unit else unit,
            certificate.kappas[unit],
            *map(_shown, certificate.epsilons[unit].values()),
            f"{times_in_100(certificate.best_guess(unit))} in 100",
        ]
        for unit in certificate.units
    ]
    adjacencies = list(next(iter(certificate.epsilons.values())))
    heads = ["protected unit", "kappa", *(f"epsilon ({one})" for one in adjacencies), "best guess"]
    release = "" if certificate.for_release else " NOT for release."
    return html_table(heads, rows, f"{certificate.promise()}{release}")


def plot_tradeoff(certificate: Certificate, unit: Any = None, ax: Any = None) -> Any:
    """Least false negatives of any guesser by its false positives; a coin is the diagonal."""
    ax = new_axes() if ax is None else ax
    curve = certificate.tradeoff(unit)
    ax.plot([0, 1], [1, 0], linestyle=":", color="grey", label="a coin")
    ax.plot(curve.false_positives, curve.false_negatives, label=unit or certificate.unit)
    ax.set(xlabel="false positives", ylabel="false negatives, at least", xlim=(0, 1), ylim=(0, 1))
    ax.legend()
    return ax


def _shown(epsilon: float) -> str:
    return round_up(epsilon) if math.isfinite(epsilon) else "infinite"
