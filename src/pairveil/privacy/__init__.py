"""What may be promised, and what it costs.

A `Query` says what is asked and with how much noise of which `mechanism`; the accountant turns queries and
the cost of a unit into epsilon; certificates state it, ledgers add it up over fits, and `noise` draws what
was promised, exactly. Nothing here sees a record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairveil._lazy import offered

__all__ = ["calibrate_choice", "calibrate_gaussian", "calibrate_laplace", "epsilon_of"]

__getattr__ = offered(
    __name__,
    {
        "pairveil.privacy.calibrate": "calibrate_choice calibrate_gaussian calibrate_laplace",
        "pairveil.privacy.profile": "epsilon_of",
    },
)

if TYPE_CHECKING:
    from pairveil.privacy.calibrate import calibrate_choice as calibrate_choice
    from pairveil.privacy.calibrate import calibrate_gaussian as calibrate_gaussian
    from pairveil.privacy.calibrate import calibrate_laplace as calibrate_laplace
    from pairveil.privacy.profile import epsilon_of as epsilon_of
