"""Tables written whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from pairveil.csv_cells import FORMULA, as_cell
from pairveil.errors import InputError
from pairveil.files import file_draft


def write_columns(path: str | Path, columns: Mapping[str, NDArray[Any]]) -> Path:
    """Write equally long columns as CSV or Parquet, by the file's ending.

    In CSV, text that a spreadsheet would run as a formula gets an apostrophe in front, which our own readers
    take off again (`pairveil.csv_cells`).

    Examples
    --------
    >>> import numpy as np, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "pairs.csv"
    >>> print(write_columns(file, {"left": np.array([0, 1]), "right": np.array([1, 2])}).read_text())
    "left","right"
    0,1
    1,2
    <BLANKLINE>
    """
    target = Path(path)
    if target.suffix not in (".csv", ".parquet"):
        raise InputError(f"{target}: the output's name must end in .csv or .parquet")
    if target.is_dir():
        raise InputError(f"{target} is a folder; name a file")
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    target.parent.mkdir(parents=True, exist_ok=True)
    with file_draft(target) as draft:
        if target.suffix == ".csv":
            pyarrow.csv.write_csv(_without_formulas(table), str(draft))
        else:
            pyarrow.parquet.write_table(table, str(draft))
    return target


def _without_formulas(table: pa.Table) -> pa.Table:
    columns = [
        pc.replace_substring_regex(column, f"({FORMULA})", r"'\1")
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        else column
        for column in table.columns
    ]
    return pa.table(columns, names=[as_cell(name) for name in table.column_names])
