"""Splink: levels of labelled pairs by its settings, and m and u into a settings file.

Splink lists the levels of a comparison from the best to ELSE, a null level first. Of K levels that are not
null, number j (from 0) has gamma K - 1 - j, and null has -1: gammas are our levels. Of the settings the
conditions of levels are run (`pairveil.linkage.conditions`) and nothing else. Only the probabilities of
levels and whether later training may change them are written; rules and columns stay as they are, and so does
the prior unless one was given: the share of matches among labels is not that of the pairs to predict.

A released metric as a comparison of Splink: levels of the learned distance, in plain SQL.
"""

from __future__ import annotations

import copy
import json
import logging
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil._lazy import need
from pairveil.array_types import FloatArray
from pairveil.errors import DataWarning, InputError, warn
from pairveil.foreign import parse_json, read_regular
from pairveil.learners.inputs import check_share
from pairveil.linkage.conditions import Compared
from pairveil.linkage.levels import LabelledLevels
from pairveil.release.exporters import matrix_alone

# ---- Splink: levels of labelled pairs by its settings, and m and u into a settings file ----------

PRIOR, USUAL_PRIOR = "probability_two_random_records_match", 0.0001
"""How likely two random records match, and what Splink takes where nobody says."""

PREFIX = "match_weight_column_prefix"
"""A setting of Splink 5 that Splink 4 refuses; its usual value is left out of files."""

PREFIXES = {PREFIX: "mw_"}


def settings_of(settings: Any) -> dict[str, Any]:
    """Settings as a dictionary of their own: from a dictionary, a JSON file, a SettingsCreator or a Linker.

    Examples
    --------
    >>> levels = [{"sql_condition": "dob_l = dob_r"}, {"sql_condition": "ELSE"}]
    >>> given = {"comparisons": [{"output_column_name": "dob", "comparison_levels": levels}]}
    >>> levels_of_settings(settings_of(given))
    (('dob',), (2,))
    """
    if isinstance(settings, str | Path):
        found = parse_json(read_regular(Path(settings)), str(settings))
    elif hasattr(settings, "misc"):  # a Linker
        found = settings.misc.save_model_to_json()
    elif hasattr(settings, "create_settings_dict"):
        found = settings.create_settings_dict(sql_dialect_str="duckdb")
    else:
        found = settings
    if not isinstance(found, dict):
        raise InputError("settings must be a Splink settings file, dictionary, creator or linker")
    return copy.deepcopy(found)


def levels_of_settings(settings: dict[str, Any]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Names of the comparisons, and how many levels each has, null aside."""
    names, sizes = [], []
    for number, comparison in enumerate(_comparisons(settings), start=1):
        levels = _ranked(comparison, number)
        name = comparison.get("output_column_name") or f"comparison {number}"
        if not isinstance(name, str) or not name.isprintable():
            raise InputError(
                f"the output_column_name of comparison {number} must be printable text"
            )
        names.append(name)
        sizes.append(len(levels))
    return tuple(names), tuple(sizes)


def to_splink(
    m: Sequence[FloatArray],
    u: Sequence[FloatArray],
    settings: Any,
    names: Sequence[str] | None = None,
    prior: float | None = None,
) -> dict[str, Any]:
    """`PrivateLinkageModel.to_splink` of m and u by level, the best last; ``names`` are the comparisons'."""
    found = settings_of(settings)
    comparisons = _comparisons(found)
    places = _places(levels_of_settings(found), m, names)
    for number, comparison in enumerate(comparisons, start=1):
        at = places[number - 1]
        ranked = _ranked(comparison, number)
        for level, weight_m, weight_u in zip(ranked, m[at][::-1], u[at][::-1], strict=True):
            level["m_probability"], level["u_probability"] = float(weight_m), float(weight_u)
            # Otherwise the receiver's next training writes over them.
            level["fix_m_probability"] = level["fix_u_probability"] = True
    if prior is not None:
        check_share("prior", prior)
        found[PRIOR] = float(prior)
    elif found.get(PRIOR, USUAL_PRIOR) == USUAL_PRIOR:
        warn(
            f"the settings keep Splink's default prior: two random records match with probability "
            f"{USUAL_PRIOR:g}. Give prior= (link: --prior), or let Splink estimate it "
            "(estimate_probability_two_random_records_match): probabilities and thresholds follow from it",
            DataWarning,
        )
    for key, usual in PREFIXES.items():
        if found.get(key) == usual:
            del found[key]
    return found


def from_splink(
    linker: Any,
    labels: Any,
    threshold: float = 0.5,
    n_random: int = 0,
    records: Any = None,
    sift: Callable[[Any, NDArray[np.bool_]], Any] | None = None,
) -> LabelledLevels:
    """Levels of exactly the labelled pairs, by the conditions of Splink's settings.

    Each pair's levels follow from its two records alone: conditions that look at anything else (other
    records, term frequencies, files, the time) are refused.

    Parameters
    ----------
    linker : splink.Linker on DuckDB, or settings
        A linker is not changed. Settings (a dictionary, JSON file or SettingsCreator) go with ``records``.
    labels : table, path or PairTable
        Clerical labels with ``unique_id_l``, ``unique_id_r`` and ``clerical_match_score``; a score of at
        least ``threshold`` is a match, one below is none (Splink's own training takes all for matches).
    n_random : int
        So many `random_pairs` of other records are compared too, and added as pairs that do not match; there
        are fewer where few records are in no labelled pair.
    records : table or path, optional
        The records, where settings are given. Columns of a CSV file are text: guessed types would follow from
        everybody's cells.
    sift : callable, optional
        From the labelled pairs, and which of them name two records, to those that are used.

    Raises
    ------
    InputError
        A labelled pair names a record that is not there, or a condition is refused.

    Examples
    --------
    >>> levels = [{"sql_condition": "town_l = town_r"}, {"sql_condition": "ELSE"}]
    >>> settings = {"link_type": "dedupe_only", "comparisons": [{"comparison_levels": levels}]}
    >>> labels = {"unique_id_l": [1], "unique_id_r": [2], "clerical_match_score": [0.9]}
    >>> from_splink(settings, labels, records={"unique_id": [1, 2], "town": ["ulm", "ulm"]}).levels
    array([[1]])
    """
    from pairveil.records.readers import read_pairs
    from pairveil.records.tables import PairTable

    if isinstance(labels, PairTable):
        listed = labels
    else:
        if hasattr(labels, "as_pyarrow_table"):  # a table of Splink's own
            labels = labels.as_pyarrow_table()
        listed = read_pairs(
            labels, left="unique_id_l", right="unique_id_r", label="clerical_match_score",
            layout="splink", threshold=threshold,
        )  # fmt: skip
    if listed.labels is None:
        raise InputError("the labels have no scores: they must say which pairs match")
    tables = _tables(linker, records)
    settings = settings_of(linker)
    names, sizes = levels_of_settings(settings)
    compared = _compared(settings, tables)
    if sift is not None:
        listed = sift(listed, compared.there(np.column_stack([listed.left, listed.right])))
    ends, y = np.column_stack([listed.left, listed.right]), np.asarray(listed.labels)
    gammas, pairs = compared.levels(ends)
    if n_random:
        drawn = compared.random_pairs(n_random, pairs)
        if len(drawn) < n_random:
            warn(
                f"{n_random:,} random pairs were asked for and {len(drawn):,} drawn: they take records that "
                "are in no labelled pair, and there are no more; bring further records",
                DataWarning,
            )
        if len(drawn):
            more, drawn = compared.levels(drawn)
            gammas, pairs = np.concatenate([gammas, more]), np.concatenate([pairs, drawn])
            y = np.append(y, np.full(len(drawn), -1, dtype=y.dtype))
    return LabelledLevels(gammas, y, pairs, sizes, names)


def _tables(linker: Any, records: Any) -> dict[str, Any]:
    """The tables of records by their names in ``source_dataset``: of a linker, or the one given."""
    import pyarrow as pa

    if records is None:
        found = getattr(linker, "_input_tables_dict", None)
        if not found or not all(hasattr(one, "as_duckdbpyrelation") for one in found.values()):
            raise InputError(
                "give a Linker of Splink 5 on DuckDB (pip install 'pairveil[splink]'), or settings and "
                "records="
            )
        return {one.dataset_display_name: one.as_duckdbpyrelation() for one in found.values()}
    if isinstance(records, str | Path):
        return {Path(records).stem: read_records(Path(records))}
    if hasattr(records, "as_pyarrow_table"):
        return {records.dataset_display_name: records.as_pyarrow_table()}
    try:
        return {"records": pa.table(records)}
    except (TypeError, ValueError, pa.ArrowException):
        raise InputError("records must be a table: a DataFrame, an arrow table or a path") from None


def read_records(path: Path) -> Any:
    """Records of a CSV or Parquet file as an arrow table; columns of a CSV file are text."""
    import pyarrow.csv
    import pyarrow.parquet

    from pairveil.records.files import require_file

    file = require_file(path)
    try:
        if file.suffix in (".parquet", ".pq"):
            return pyarrow.parquet.read_table(file)
        with pyarrow.csv.open_csv(file) as opened:
            names = opened.schema.names
        # A guessed type follows from all cells: one person's would decide whether others' 01 and 1 agree.
        text = pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pyarrow.string()), strings_can_be_null=True
        )
        return pyarrow.csv.read_csv(file, convert_options=text)
    except (OSError, pyarrow.ArrowException):
        raise InputError(f"{file} cannot be read as CSV or Parquet") from None


def _compared(settings: dict[str, Any], tables: dict[str, Any]) -> Compared:
    """The records and the conditions of the settings in a database of their own."""
    if settings.get("sql_dialect", "duckdb") != "duckdb":
        raise InputError("the settings are not for DuckDB, which computes the levels here")
    names = {
        "unique_id_column_name": "unique_id",
        "source_dataset_column_name": "source_dataset",
        "term_frequency_adjustment_column_prefix": "tf_",
    }
    key, source, frequencies = (settings.get(name) or usual for name, usual in names.items())
    link: Any = settings.get("link_type")
    if not all(isinstance(one, str) for one in (key, source, frequencies, link)):
        raise InputError("link_type and the names of columns must be text in the settings")
    levels = [one["comparison_levels"] for one in _comparisons(settings)]
    return Compared(levels, tables, key, source, frequencies, link)


@contextmanager
def _silent() -> Iterator[None]:
    """Splink tells its progress on stderr; errors are still raised."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)  # a new linker sets the level of its own logger
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.disable(before)


def check_loads(settings: dict[str, Any]) -> None:
    """Refuse settings that Splink itself does not take, before anything is spent on them.

    Raises InputError: without Splink's own words, which quote the file.
    """
    splink = need("splink", "splink", "Splink settings")
    with _silent():
        try:
            splink.SettingsCreator.from_path_or_dict(settings).get_settings("duckdb")
        except Exception as problem:
            raise InputError(
                f"Splink cannot load these settings ({type(problem).__name__}): "
                "splink.SettingsCreator.from_path_or_dict(FILE).get_settings('duckdb') says why"
            ) from None


def _comparisons(settings: dict[str, Any]) -> list[dict[str, Any]]:
    found = settings.get("comparisons")
    if not isinstance(found, list) or not found or not all(isinstance(c, dict) for c in found):
        raise InputError("the settings list no comparisons: they are no Splink settings")
    return found


def _ranked(comparison: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """Levels of a comparison from the best to ELSE, null aside."""
    levels = comparison.get("comparison_levels")
    if not isinstance(levels, list) or not all(isinstance(one, dict) for one in levels):
        raise InputError(f"comparison {number} of the settings lists no levels")
    ranked = [one for one in levels if not one.get("is_null_level")]
    if not ranked:
        raise InputError(f"comparison {number} of the settings has null levels only")
    return ranked


def _places(
    theirs: tuple[tuple[str, ...], tuple[int, ...]],
    m: Sequence[FloatArray],
    names: Sequence[str] | None,
) -> list[int]:
    """For each comparison of the settings, which of the model's it is."""
    listed, sizes = theirs
    if len(listed) != len(m):
        raise InputError(
            f"the settings have {len(listed)} comparisons and the model {len(m)}: they do not go together"
        )
    places = list(range(len(m)))
    if names is not None and set(names) == set(listed):
        places = [list(names).index(name) for name in listed]
    for number, (at, size) in enumerate(zip(places, sizes, strict=True), start=1):
        if len(m[at]) != size:
            raise InputError(
                f"comparison {number} of the settings has {size} levels beside null, the model's has "
                f"{len(m[at])}: they do not go together"
            )
    return places


def warn_of_frequencies(settings: dict[str, Any]) -> None:
    """Say that term frequencies go with u of random pairs, to whoever learns u from labels alone."""
    adjusted = any(
        level.get("tf_adjustment_column")
        for number, comparison in enumerate(_comparisons(settings), start=1)
        for level in _ranked(comparison, number)
    )
    if adjusted:
        warn(
            "the settings adjust for term frequencies, which goes with u of random pairs: give n_random "
            "(link: --random-pairs), which is counted and paid for like the labels",
            DataWarning,
        )


def splink_text(settings: dict[str, Any]) -> str:
    """Settings as the text of a file that Splink loads."""
    return json.dumps(settings, indent=2, allow_nan=False) + "\n"


# ---- levels of the learned distance, in plain SQL ------------------------------------------------

MOST_FEATURES = 256
"""A distance over more columns than this is too long an expression: join projected columns instead."""


def metric_comparison(metric: Any, cuts: Sequence[float], name: str = "metric") -> dict[str, Any]:
    """A comparison for the list of Splink's settings: how near two records are under a released metric.

    Parameters
    ----------
    metric : ReleasedMetric
        With feature names, which are the columns of the records; one with a schema is refused.
    cuts : ascending distances
        A pair within the first has the highest level; one beyond the last has level 0.
    name : str
        Of the comparison in Splink's output.

    Examples
    --------
    >>> import numpy as np
    >>> from pairveil import ReleasedMetric
    >>> found = metric_comparison(ReleasedMetric(np.array([[3.0, 0.0]]), None, ("age", "bmi")), [0.5])
    >>> found["comparison_levels"][1]["sql_condition"]
    '(3.0*("age_l"-"age_r"))^2 <= 0.25'
    """
    matrix = matrix_alone(metric, "A comparison of Splink")
    names = metric.feature_names
    if names is None or metric.n_features > MOST_FEATURES:
        raise InputError(f"the metric must name its columns, {MOST_FEATURES} at most")
    bounds = [float(cut) for cut in cuts]
    if not bounds or bounds != sorted(set(bounds)) or not 0 < bounds[0] <= bounds[-1] < math.inf:
        raise InputError("cuts must be ascending distances above 0")
    if any('"' in one for one in names):
        raise InputError("a column's name holds a quotation mark, which SQL would take for its end")
    differences = [f'("{one}_l"-"{one}_r")' for one in names]
    rows = [
        "+".join(f"{w!r}*{d}" for w, d in zip(row, differences, strict=True) if w != 0)
        for row in matrix.tolist()
    ]
    square = "+".join(f"({row})^2" for row in rows if row) or "0.0"
    null = " OR ".join(f'"{one}_l" IS NULL OR "{one}_r" IS NULL' for one in names)
    levels: list[dict[str, Any]] = [
        {"sql_condition": null, "label_for_charts": f"{name} is NULL", "is_null_level": True}
    ]
    for cut in bounds:
        within = {"sql_condition": f"{square} <= {cut * cut!r}"}
        levels.append({**within, "label_for_charts": f"distance <= {cut:g}"})
    levels.append({"sql_condition": "ELSE", "label_for_charts": "farther apart"})
    return {"output_column_name": name, "comparison_levels": levels}
