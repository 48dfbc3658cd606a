"""Splink: levels of labelled pairs from a linker, and m and u into a settings file.

Splink lists the levels of a comparison from the best to ELSE, a null level first. Of K levels that are not
null, number j (from 0) has gamma K - 1 - j, and null has -1: gammas are our levels. Only the probabilities of
levels and whether later training may change them are written; rules, columns and the prior stay as they are,
unless a prior is given: that of a set of clerical labels is not that of the pairs to predict.
"""

from __future__ import annotations

import copy
import json
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil.array_types import FloatArray
from pairveil.errors import DataWarning, InputError
from pairveil.foreign import parse_json, read_regular
from pairveil.learners.parameters import is_number
from pairveil.linkage.comparing import LabelledLevels
from pairveil.linkage.random_pairs import random_pairs

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
        names.append(str(comparison.get("output_column_name") or f"comparison {number}"))
        sizes.append(len(levels))
    return tuple(names), tuple(sizes)


def to_splink(
    m: Sequence[FloatArray],
    u: Sequence[FloatArray],
    settings: Any,
    names: Sequence[str] | None = None,
    prior: float | None = None,
) -> dict[str, Any]:
    """Settings with m and u written in and fixed, for ``Linker(records, settings)``.

    Parameters
    ----------
    m, u : lists of arrays
        Probabilities by level, the best last.
    settings : dict, path, SettingsCreator or Linker
    names : sequence of str, optional
        Names of the comparisons; they are matched by ``output_column_name``, without names by their order.
    prior : float, optional
        For ``probability_two_random_records_match``; left as it is without one.
    """
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
        if not (is_number(prior) and 0 < prior < 1):
            raise InputError("prior must be a number between 0 and 1, both excluded")
        found["probability_two_random_records_match"] = float(prior)
    for key, usual in PREFIXES.items():
        if found.get(key) == usual:
            del found[key]
    return found


def from_splink(
    linker: Any, labels: Any, threshold: float = 0.5, n_random: int = 0
) -> LabelledLevels:
    """Levels of exactly the labelled pairs, computed by Splink itself on a linker of its own.

    Parameters
    ----------
    linker : splink.Linker
        Version 5. It is not changed: another one on the same tables does the work.
    labels : table, path or PairTable
        Clerical labels with ``unique_id_l``, ``unique_id_r`` and ``clerical_match_score``; a score of at
        least ``threshold`` is a match, one below is none (Splink's own training takes all for matches).
    n_random : int
        So many `random_pairs` of other records are compared too, and added as pairs that do not match.

    Raises InputError: a labelled pair names a record that is not in the linker's tables.
    """
    from pairveil.data.readers import read_pairs
    from pairveil.data.tables import PairTable

    if isinstance(labels, PairTable):
        listed = labels
    else:
        listed = read_pairs(
            labels, left="unique_id_l", right="unique_id_r", label="clerical_match_score",
            layout="splink", threshold=threshold,
        )  # fmt: skip
    if listed.labels is None:
        raise InputError("the labels have no scores: they must say which pairs match")
    register = getattr(
        getattr(linker, "table_management", None), "register_blocked_pairs_for_predict", None
    )
    if register is None:
        raise InputError(
            "this needs Splink 5 or later (pip install 'pairveil[splink]'): earlier ones cannot be told "
            "which pairs to compare"
        )
    settings = settings_of(linker)
    names, sizes = levels_of_settings(settings)
    ends, y = np.column_stack([listed.left, listed.right]), np.asarray(listed.labels)
    gammas, pairs = _gammas(linker, settings, ends, names)
    if not n_random:
        _warn_of_frequencies(settings)
    else:
        first, second = _record_ids(linker, settings)
        drawn = random_pairs(first, n_random, pairs, second)
        if len(drawn):
            more, drawn = _gammas(linker, settings, drawn, names)
            gammas, pairs = np.concatenate([gammas, more]), np.concatenate([pairs, drawn])
            y = np.append(y, np.full(len(drawn), -1, dtype=y.dtype))
    return LabelledLevels(gammas, y, pairs, sizes, names)


def _record_ids(linker: Any, settings: dict[str, Any]) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Ids of all records, as labels name them; where tables are linked, of the first and of the others."""
    name = settings.get("unique_id_column_name", "unique_id")
    source = settings.get("source_dataset_column_name", "source_dataset")
    tables = []
    for table in linker._input_tables_dict.values():
        own = source in {column.unquote().name for column in table.columns}
        more = f', "{source}"' if own else ""
        found = table.query_sql(f'SELECT "{name}"{more} FROM {{this}}').as_dict()
        ids = np.array(found[name])
        if settings.get("link_type") != "dedupe_only":
            of = found[source] if own else [table.dataset_display_name] * len(ids)
            ids = np.array([f"{one}-__-{id_}" for one, id_ in zip(of, ids.tolist(), strict=True)])
        tables.append(ids)
    if settings.get("link_type") == "link_only":
        return tables[0], np.concatenate(tables[1:])
    return np.concatenate(tables), None


def _gammas(
    linker: Any, settings: dict[str, Any], pairs: NDArray[Any], names: Sequence[str]
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Levels of some pairs, and their records by the ids that the tables have.

    Where ids are numbers DuckDB takes 01 for 1: of one record by two names, kappa would count two records.
    """
    import pyarrow as pa

    n = len(pairs)
    wanted = pa.table({
        "match_key": [str(row) for row in range(n)],  # comes back with each row
        "join_key_l": pairs[:, 0],
        "join_key_r": pairs[:, 1],
    })  # fmt: skip
    settings["retain_matching_columns"] = True
    prefix = settings.get("comparison_vector_value_column_prefix", "gamma_")
    hint, ids = (
        "",
        [f"{settings.get('unique_id_column_name', 'unique_id')}_{side}" for side in "lr"],
    )
    if settings.get("link_type") != "dedupe_only":  # ids with their table's name before them: text
        hint = "; records of several tables are named by source_dataset_l and source_dataset_r too"
        ids = []
    with _silent():
        try:
            tables = list(linker._input_tables_dict.values())
            other = type(linker)(tables if len(tables) > 1 else tables[0], settings)
            other.table_management.register_blocked_pairs_for_predict(
                linker._db_api.register(wanted)
            )
            found = other.inference.predict(warning_mode="never")
            columns = ["match_key", *(f"{prefix}{name}" for name in names)]
            rows = _as_arrow(found).select([*columns, *ids])
            found.drop_table_from_database_and_remove_from_cache()
        except Exception as problem:  # DuckDB's messages quote the records
            raise InputError(
                f"Splink could not compare the labelled pairs ({type(problem).__name__}): try "
                f"linker.inference.predict() on the same linker to see why{hint}"
            ) from None
    places = np.array([int(key) for key in rows.column("match_key").to_pylist()], dtype=np.int64)
    seen = np.bincount(places, minlength=n)
    if (seen != 1).any():
        row = int(np.flatnonzero(seen != 1)[0])
        why = "a record that is not there" if seen[row] == 0 else "an id that several records have"
        raise InputError(
            f"{int((seen != 1).sum())} labelled pairs name {why}, the first in row {row + 1}{hint}"
        )
    gammas = np.empty((n, len(names)), dtype=np.int64)
    for column, name in enumerate(columns[1:]):
        gammas[places, column] = rows.column(name).to_numpy()
    if ids:
        known = np.column_stack([rows.column(name).to_numpy() for name in ids])
        pairs = np.empty_like(known)
        pairs[places] = known
    return gammas, pairs


def _as_arrow(found: Any) -> Any:
    """A result of Splink as an arrow table, whatever its backend gives."""
    import pyarrow as pa

    return pa.Table.from_pandas(found.as_pandas_dataframe(), preserve_index=False)


@contextmanager
def _silent() -> Iterator[None]:
    """Splink tells its progress on stderr; errors are still raised."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)  # a new linker sets the level of its own logger
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


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


def _warn_of_frequencies(settings: dict[str, Any]) -> None:
    adjusted = any(
        level.get("tf_adjustment_column")
        for number, comparison in enumerate(_comparisons(settings), start=1)
        for level in _ranked(comparison, number)
    )
    if adjusted:
        warnings.warn(
            "the settings adjust for term frequencies, which goes with u of random pairs: give u=, counted "
            "on random pairs (linker.training.estimate_u_using_random_sampling)",
            DataWarning,
            stacklevel=4,
        )


def splink_text(settings: dict[str, Any]) -> str:
    """Settings as the text of a file that Splink loads."""
    return json.dumps(settings, indent=2, allow_nan=False) + "\n"
