"""What comes in: people, pairs and their labels, from files, tables and arrays.

Readers (one file a layout) turn what users have into `PairSet`: features stored once, pairs as row numbers,
in one canonical order that depends on ids alone. Nothing here is learned from, and nothing goes out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairveil._lazy import offered

__all__ = [
    "Choices",
    "PublicBounds",
    "make_records",
    "read_groups",
    "read_tuples",
    "scale_to_bounds",
]
__getattr__ = offered(
    __name__,
    {
        "pairveil.records.readers": "read_groups read_tuples",
        "pairveil.records.choices": "Choices",
        "pairveil.records.embedded": "make_records",
        "pairveil.records.scaling": "PublicBounds scale_to_bounds",
    },
)

if TYPE_CHECKING:
    from pairveil.records.choices import Choices as Choices
    from pairveil.records.embedded import make_records as make_records
    from pairveil.records.readers import read_groups as read_groups
    from pairveil.records.readers import read_tuples as read_tuples
    from pairveil.records.scaling import PublicBounds as PublicBounds
    from pairveil.records.scaling import scale_to_bounds as scale_to_bounds
