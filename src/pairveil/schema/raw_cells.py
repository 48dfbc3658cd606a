"""Raw cells of a table as texts, numbers or dates."""

from __future__ import annotations

import datetime
import math
import re
from typing import Any

import numpy as np

from pairveil.array_types import FloatArray
from pairveil.errors import InputError


def category_text(value: Any) -> str:
    """A category as text: 1.0 and 1 are '1', true is 'true'.

    Examples
    --------
    >>> category_text(1.0), category_text(True), category_text(" a ")
    ('1', 'true', 'a')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


def category_cells(cells: Any) -> Any:
    """Cells as texts, as `category_text` writes them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_floating(cells.type) or pa.types.is_decimal(cells.type):
        return pa.array(
            [None if v is None or v != v else category_text(float(v)) for v in cells.to_pylist()],
            pa.large_string(),
        )
    return pc.utf8_trim_whitespace(cells.cast(pa.large_string()))


def floats(cells: Any, name: str) -> FloatArray:
    """Cells as numbers, NaN where there is none."""
    import pyarrow as pa

    try:
        numbers = cells if pa.types.is_float64(cells.type) else cells.cast(pa.float64(), safe=False)
    except pa.ArrowException:
        raise InputError(
            f"column '{name}': the table holds something else than numbers or text there"
        ) from None
    found: FloatArray = np.asarray(
        numbers.fill_null(math.nan).to_numpy(zero_copy_only=False), dtype=np.float64
    )
    return found


def is_text(kind: Any) -> bool:
    """Whether a type of Arrow is text."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def as_date(value: Any) -> Any:
    """A date from TOML's own kind or from ISO text; anything else stays, and is refused later."""
    if isinstance(value, datetime.datetime):
        return value.date()
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d{2}-\d{2}", value):
        try:
            return datetime.date.fromisoformat(value)
        except ValueError:
            return value
    return value
