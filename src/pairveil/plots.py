"""Axes for the `.plot()` methods: matplotlib, where it is installed."""

from __future__ import annotations

from typing import Any

from pairveil.errors import InputError


def new_axes() -> Any:
    """New axes of a new figure; says what to install where matplotlib is missing."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise InputError("pictures need matplotlib: pip install 'pairveil[plots]'") from None
    return pyplot.subplots()[1]
