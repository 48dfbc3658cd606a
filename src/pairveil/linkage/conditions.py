"""Levels of Splink's comparisons, computed from the two records of each pair and from nothing else.

A settings file is a program: each level has a condition in SQL. The promise of a linkage model holds only if
a pair's levels are a function of its own two records (docs/theory/records.md), and SQL can look at everybody:
a window, a subquery, a term frequency, a file. So a condition is admitted by what it consists of, node by
node and function by function, and everything that is not listed here is refused. The parser that is asked is
DuckDB's own, the one that runs the condition. What is admitted is run in a database that is made for it: no
macro of the caller's can stand behind a listed name, and it reaches no file, extension or setting.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from pairveil._lazy import need
from pairveil.errors import InputError, PrivateNote, warn
from pairveil.linkage.levels import random_pairs

MOST_CHARACTERS = 50_000
"""Of one condition; a metric over 256 columns takes about half of it."""
MEMORY = "4GB"
DUCKDB = 2
"""The first major version whose parser writes expressions as `_Checker` reads them (casts differ before)."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTIONS = _words("""
    + - * / // % ^ ** & | || << >> && @> <@ ~~ !~~ ~~* !~~* ~~~ like_escape not_like_escape ilike_escape
    not_ilike_escape add subtract multiply divide mod fmod abs sign ceil ceiling floor round trunc even
    sqrt cbrt exp ln log log2 log10 pow power sin cos tan asin acos atan atan2 radians degrees pi gcd
    greatest least isnan isinf isfinite nullif if xor
    lower lcase upper ucase trim ltrim rtrim length len strlen char_length character_length left right
    substr substring reverse replace translate concat concat_ws contains starts_with ^@ ends_with prefix
    suffix instr strpos position ascii ord unicode chr strip_accents nfc_normalize split split_part str_split
    string_split string_to_array regexp_matches regexp_full_match regexp_extract regexp_extract_all
    regexp_replace regexp_split_to_array md5 hash
    levenshtein editdist3 damerau_levenshtein hamming mismatches jaccard jaro_similarity
    jaro_winkler_similarity
    date_diff datediff date_sub datesub date_part datepart date_trunc datetrunc year month day quarter week
    dayofmonth dayofweek dayofyear isodow isoyear weekday hour minute second epoch epoch_ms epoch_us julian
    last_day make_date make_timestamp strptime try_strptime strftime
    to_years to_months to_weeks to_days to_hours to_minutes to_seconds to_milliseconds
    list_value list_pack array_value list_concat array_concat list_cat list_contains list_has array_contains
    array_has list_has_any array_has_any list_has_all array_has_all list_intersect array_intersect
    list_position array_position list_distinct array_distinct list_unique array_unique list_sort array_sort
    list_extract list_element array_extract list_slice array_slice array_length flatten cardinality
    list_transform array_transform list_apply array_apply list_filter array_filter
    list_min list_max list_sum list_avg list_count list_any_value
    list_distance list_cosine_similarity list_cosine_distance list_inner_product list_dot_product
    array_distance array_cosine_similarity array_cosine_distance array_inner_product array_dot_product
    row struct_pack struct_extract
""")
"""Scalar functions whose value follows from their arguments; none makes text or lists of a size that an
argument states (repeat, range, lpad, printf), and none takes the name of another function."""
OPERATORS = _words("""
    OPERATOR_NOT OPERATOR_IS_NULL OPERATOR_IS_NOT_NULL OPERATOR_COALESCE OPERATOR_NULLIF OPERATOR_TRY
    COMPARE_IN COMPARE_NOT_IN ARRAY_EXTRACT ARRAY_SLICE ARRAY_CONSTRUCTOR STRUCT_EXTRACT
""")
TYPES = _words("""
    varchar text string char bpchar boolean bool tinyint smallint integer int int1 int2 int4 int8 bigint long
    short signed hugeint utinyint usmallint uinteger ubigint float float4 float8 real double decimal numeric
    date time timestamp datetime interval list array uuid
""")
CHILDREN: Mapping[str, frozenset[str]] = {
    "COMPARISON": frozenset({"left", "right"}),
    "CONJUNCTION": frozenset({"children"}),
    "OPERATOR": frozenset({"children"}),
    "FUNCTION": frozenset({"arguments", "children"}),
    "BETWEEN": frozenset({"input", "lower", "upper"}),
    "CASE": frozenset({"case_checks", "else_expr"}),
    "CAST": frozenset({"child", "type_expr"}),
    "TYPE": frozenset({"children"}),
    "LAMBDA": frozenset({"expr"}),
    "CONSTANT": frozenset(),
    "COLUMN_REF": frozenset(),
}
"""The admitted kinds of nodes and where their children are."""
PLAIN = _words("""
    class type alias query_location query_location_length function_name qualified_name is_operator try_cast
    type_name literal value column_names lhs syntax_type
""")
"""Fields that hold no expression or are looked at by name; any other must be empty."""
BINDS = frozenset({"list_transform", "array_transform", "list_apply", "array_apply", "list_filter",
                   "array_filter"})  # fmt: skip


KEY, TABLE = '"pairveil key"', '"pairveil table"'  # beside the records' own columns


class Case(NamedTuple):
    """One comparison: SQL that gives its level, and the columns of the records that it looks at."""

    sql: str
    columns: frozenset[str]


def closed_database() -> Any:
    """A database in memory that reaches nothing outside it."""
    duckdb = need("duckdb", "splink", "Splink settings")
    if int(duckdb.__version__.split(".")[0]) < DUCKDB:
        raise InputError(
            f"Splink settings need duckdb {DUCKDB} or later; install it with: pip install "
            '"pairveil[splink]"'
        )
    found = duckdb.connect(
        ":memory:", config={"enable_external_access": "false", "memory_limit": MEMORY}
    )
    known = {name for (name,) in found.execute("SELECT name FROM duckdb_settings()").fetchall()}
    for name, value in {
        "python_enable_replacements": "false",
        "autoload_known_extensions": "false",
    }.items():
        if name in known:
            found.execute(f"SET {name} = {value}")
    found.execute("SET lock_configuration = true")
    return found


def case_of(
    database: Any, levels: Sequence[Mapping[str, Any]], columns: Mapping[str, str], title: str,
    frequencies: str = "tf_",
) -> Case:  # fmt: skip
    """The levels of a comparison, from the best to ELSE, as one CASE, checked; ``title`` is for messages.

    ``columns``: the records', by their names in lower case. ``frequencies``: how names of term frequencies
    begin.

    Examples
    --------
    >>> levels = [{"sql_condition": "Town_l = town_r"}, {"sql_condition": "ELSE"}]
    >>> case_of(closed_database(), levels, {"town": "town"}, "comparison 1").columns
    frozenset({'town'})
    >>> case_of(closed_database(), [{"sql_condition": "count(*) > 1"}], {"town": "town"}, "comparison 1")
    Traceback (most recent call last):
    ...
    pairveil.errors.InputError: comparison 1, level 1: the function 'count_star' is not among those that a
    condition may call. A level must follow from the two records of a pair alone
    """
    value = sum(not one.get("is_null_level") for one in levels)
    parts, used = [], set()
    for number, level in enumerate(levels, start=1):
        text, at = level.get("sql_condition"), f"{title}, level {number}"
        if not isinstance(text, str) or len(text) > MOST_CHARACTERS:
            raise InputError(f"{at}: its sql_condition must be text of reasonable length")
        if not level.get("is_null_level"):
            value -= 1
        own = -1 if level.get("is_null_level") else value
        if text.strip().upper() == "ELSE":
            if number < len(levels):
                raise InputError(f"{at}: ELSE must be the last level")
            parts.append(f"ELSE {own}")
            continue
        checker = _Checker(columns, frequencies, at)
        checker.expression(_parsed(database, text, at), frozenset())
        used |= checker.used
        parts.append(f"WHEN (\n{text}\n) THEN {own}")
    if not any(part.startswith("WHEN") for part in parts):
        raise InputError(f"{title}: no level has a condition")
    return Case(f"CASE {' '.join(parts)} END", frozenset(used))


def _parsed(database: Any, text: str, at: str) -> Any:
    """The expression that a condition is, by DuckDB's parser; text that is anything more is refused.

    What parses here between its brackets as one expression is the same expression wherever it stands.
    """
    try:
        ((found,),) = database.execute(
            "SELECT json_serialize_sql(?::VARCHAR)", [f"SELECT (\n{text}\n)"]
        ).fetchall()
        statements = json.loads(found).get("statements", ())
    except Exception as problem:  # it quotes the text
        raise InputError(f"{at}: DuckDB cannot read it ({type(problem).__name__})") from None
    if len(statements) != 1:
        raise InputError(f"{at}: DuckDB cannot read it as one condition")
    node = dict(statements[0]["node"])
    chosen = node.pop("select_list", ())
    kind, source = node.pop("type", None), node.pop("from_table", {})
    usual = {"cte_map": {"map": []}, "aggregate_handling": "STANDARD_HANDLING"}
    more = [name for name, value in node.items() if value and value != usual.get(name)]
    if kind != "SELECT_NODE" or len(chosen) != 1 or source.get("type") != "EMPTY" or more:
        raise InputError(f"{at}: it must be one condition, not a query")
    return chosen[0]


class _Checker:
    """Walks through an expression; refuses what is not listed, and notes which columns it looks at."""

    def __init__(self, columns: Mapping[str, str], frequencies: str, at: str) -> None:
        self.columns, self.frequencies, self.at = columns, frequencies.lower(), at
        self.used: set[str] = set()

    def refuse(self, what: str) -> NoReturn:
        raise InputError(
            f"{self.at}: {what}. A level must follow from the two records of a pair alone"
        )

    def expression(self, node: Any, bound: frozenset[str]) -> None:
        """``bound``: parameters of the lambdas around it."""
        kind = str(node.get("class")) if isinstance(node, dict) else ""
        if kind not in CHILDREN:
            self.refuse(f"{_KINDS.get(kind, 'this kind of SQL')} may not stand in a condition")
        for name, value in node.items():
            filled = value not in (None, "", [], False, {"type": "ORDER_MODIFIER", "orders": []})
            if filled and name not in PLAIN and name not in CHILDREN[kind]:
                self.refuse(
                    "a call with FILTER, DISTINCT, ORDER BY or a schema may not stand in a condition"
                )
        if kind == "FUNCTION":
            self._function(node, bound)
        elif kind == "COLUMN_REF":
            self._column(node.get("column_names"), bound)
        elif kind == "LAMBDA":
            self.refuse(
                "'->' may not stand in a condition but as a function of list_transform and its like"
            )
        elif kind == "OPERATOR" and node.get("type") not in OPERATORS:
            self.refuse("this operator may not stand in a condition")
        elif kind == "TYPE" and str(node.get("type_name")).lower() not in TYPES:
            self.refuse(f"the type {_shown(node.get('type_name'))} is not among those to cast to")
        elif kind == "CASE":
            for check in node.get("case_checks", ()):
                self.expression(check.get("when_expr"), bound)
                self.expression(check.get("then_expr"), bound)
            self.expression(node.get("else_expr"), bound)
        if kind not in ("FUNCTION", "CASE"):
            for name in CHILDREN[kind]:
                self._all(node.get(name), bound)

    def _all(self, children: Any, bound: frozenset[str]) -> None:
        for child in children if isinstance(children, list) else [children]:
            if child is not None:
                self.expression(child, bound)

    def _function(self, node: Any, bound: frozenset[str]) -> None:
        name = str(node.get("function_name")).lower()
        if name not in FUNCTIONS:
            self.refuse(f"the function {_shown(name)} is not among those that a condition may call")
        for child in [*node.get("arguments", ()), *node.get("children", ())]:
            given = child.get("expression", child)
            if given.get("class") == "LAMBDA" and name in BINDS:
                self.expression(given.get("expr"), bound | self._parameters(given.get("lhs")))
            else:
                self.expression(given, bound)

    def _parameters(self, lhs: Any) -> frozenset[str]:
        """Names that a lambda gives: one, or several in a row."""
        row = [
            one.get("expression", one)
            for one in [*lhs.get("arguments", ()), *lhs.get("children", ())]
        ]
        names = [one.get("column_names") for one in (row or [lhs])]
        if not all(isinstance(one, list) and len(one) == 1 for one in names):
            self.refuse("a lambda must name its parameters")
        return frozenset(str(one[0]).lower() for one in names)

    def _column(self, path: Any, bound: frozenset[str]) -> None:
        name = str(path[0]) if isinstance(path, list) and path else ""
        if name.lower() in bound:
            if len(path) > 1:  # DuckDB takes a.b for column b of a table a first, if there is one
                self.refuse(f"what lies in {_shown(name)} is asked for by struct_extract")
            return
        base, side = name.lower()[:-2], name.lower()[-2:]
        if base.startswith(self.frequencies):
            self.refuse(
                f"{_shown(name)} is a term frequency, which everybody's records make (a column of yours "
                "that is none must be renamed)"
            )
        if side not in ("_l", "_r") or base not in self.columns:
            self.refuse(f"{_shown(name)} is no column of the records with _l or _r behind it")
        self.used.add(self.columns[base])


_KINDS = {
    "SUBQUERY": "a subquery",
    "WINDOW": "a window function",
    "STAR": "* or COLUMNS",
    "PARAMETER": "a parameter",
    "COLLATE": "COLLATE",
}


def _shown(name: Any) -> str:
    """A name from a stranger's file, for a message: printable and short."""
    return ascii(str(name)[:60])


def sql_name(name: str) -> str:
    """A name as SQL writes it.

    Examples
    --------
    >>> sql_name("my column")
    '"my column"'
    """
    return '"' + name.replace('"', '""') + '"'


class Compared:
    """Records and checked conditions in a closed database.

    ``tables`` are arrow tables or DuckDB's relations by name, ``key`` and ``source`` the columns with a
    record's id and its table's name. Of several tables (``link``) an id is unique within its own: it becomes
    ``table-__-id``, as labels have it.

    Examples
    --------
    >>> import pyarrow as pa
    >>> levels = [{"sql_condition": "town_l = town_r"}, {"sql_condition": "ELSE"}]
    >>> people = pa.table({"id": [1, 2], "town": ["ulm", "ulm"]})
    >>> Compared([levels], {"people": people}, "id").levels(np.array([[1, 2]]))
    (array([[1]]), array([[1, 2]]))
    """

    def __init__(
        self, comparisons: Sequence[Sequence[Mapping[str, Any]]], tables: Mapping[str, Any], key: str,
        source: str = "source_dataset", frequencies: str = "tf_", link: str = "dedupe_only",
    ) -> None:  # fmt: skip
        columns = _columns_of(tables)
        if key.lower() not in columns:
            raise InputError(
                f"the records have no column {_shown(key)}, which is to hold their ids"
            )
        self.database = closed_database()
        self.cases = [
            case_of(self.database, levels, columns, f"comparison {number}", frequencies)
            for number, levels in enumerate(comparisons, start=1)
        ]
        self.used = sorted(frozenset().union(*(case.columns for case in self.cases)))
        self.link = link
        self.hint = (
            ""
            if link == "dedupe_only"
            else "; records of several tables are named by source_dataset_l and source_dataset_r too"
        )
        sources = []
        for number, (title, table) in enumerate(tables.items()):
            own = [columns[name.lower()] for name in (key, source) if name.lower() in columns]
            self.database.register(f"given {number}", _taken(table, [*own, *self.used]))
            name = sql_name(own[0])
            if link != "dedupe_only":
                of = sql_name(own[1]) if len(own) > 1 else "'" + title.replace("'", "''") + "'"
                name = f"({of}::VARCHAR || '-__-' || {name}::VARCHAR)"
            kept = "".join(f", {one}" for one in self._plain(f"given {number}"))
            sources.append(
                f'SELECT {number} AS {TABLE}, {name} AS {KEY}{kept} FROM "given {number}"'
            )
        self._run(f"CREATE TABLE records AS {' UNION ALL '.join(sources)}", "the records")

    def _plain(self, table: str) -> list[str]:
        """The used columns of a table, whole numbers as floating point.

        Whether pandas, Splink or a dictionary has whole numbers there follows from everybody's cells: one
        that is missing, or a half, would turn everyone's '7' into '7.0'.
        """
        kinds = {
            name: str(kind)
            for name, kind, *_ in self.database.execute(f"DESCRIBE {sql_name(table)}").fetchall()
        }
        by_name = {name.lower(): kinds[name] for name in kinds}
        return [
            f"{sql_name(one)}::DOUBLE AS {sql_name(one)}"
            if by_name[one.lower()].endswith(("INT", "INTEGER"))
            else sql_name(one)
            for one in self.used
        ]

    def levels(self, pairs: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Levels of some pairs, and their records by the ids that the tables have.

        Where ids are numbers 01 is taken for 1: of one record by two names, kappa would count two records.
        """
        rows, seen = self._joined(pairs)
        if (seen != 1).any():
            row = int(np.flatnonzero(seen != 1)[0])
            why = (
                "a record that is not there"
                if seen[row] == 0
                else "an id that several records have"
            )
            raise InputError(
                f"{int((seen != 1).sum())} labelled pairs name {why}, the first in row {row + 1}{self.hint}"
            )
        found = np.empty((len(pairs), len(self.cases)), dtype=np.int64)
        for column, case in enumerate(self.cases):
            # What fails on the values of a pair fails for this pair alone: it has no level there.
            level = self._run(
                f"SELECT COALESCE(TRY({case.sql}), -2) AS level FROM compared ORDER BY place",
                f"comparison {column + 1}",
            ).fetchnumpy()["level"]
            found[:, column] = level
        self._say_failed(found)
        return np.maximum(found, -1), np.column_stack([rows["l key"], rows["r key"]])

    def there(self, pairs: NDArray[Any]) -> NDArray[np.bool_]:
        """Which pairs name two records, and each of them one alone; by ids."""
        return np.asarray(self._joined(pairs)[1] == 1)

    def _joined(self, pairs: NDArray[Any]) -> tuple[Any, NDArray[np.int64]]:
        """The records of the pairs side by side, and how many rows each pair has there."""
        import pyarrow as pa

        n = len(pairs)
        ends = {side: [str(one) for one in pairs[:, at].tolist()] for at, side in enumerate("lr")}
        self.database.register("wanted", pa.table({"place": np.arange(n), **ends}))
        sides = [
            f'{side}.{KEY} AS "{side} key"'
            + "".join(
                f", {side}.{sql_name(one)} AS {sql_name(f'{one}_{side}')}" for one in self.used
            )
            for side in "lr"
        ]
        first = self._run(f"SELECT typeof({KEY}) FROM records LIMIT 1", "the records").fetchall()
        kind = first[0][0] if first else "VARCHAR"
        joins = [
            f"JOIN records {side} ON {side}.{KEY} = TRY_CAST(wanted.{side} AS {kind})"
            for side in "lr"
        ]
        self._run(
            f"CREATE OR REPLACE TABLE compared AS SELECT place, {', '.join(sides)} FROM wanted "
            + " ".join(joins),
            "the labelled pairs",
        )
        rows = self._run(
            'SELECT place, "l key", "r key" FROM compared ORDER BY place', "the labelled pairs"
        ).fetchnumpy()
        places = np.asarray(rows["place"], dtype=np.int64)
        return rows, np.bincount(places, minlength=n)

    def random_pairs(self, n: int, labelled: NDArray[Any]) -> NDArray[Any]:
        """`random_pairs` of the records; where tables are linked, of the first and of the others."""
        asked = f"SELECT {TABLE} = 0 AS first, {KEY} AS id FROM records WHERE {KEY} IS NOT NULL"
        rows = self._run(asked, "the records").fetchnumpy()
        keys, others = np.asarray(rows["id"]), None
        if self.link == "link_only":
            first = np.asarray(rows["first"])
            keys, others = keys[first], keys[~first]
        return random_pairs(keys, n, labelled, others)

    def _run(self, sql: str, what: str) -> Any:
        try:
            return self.database.execute(sql)
        except Exception as problem:  # DuckDB's messages quote the records
            raise InputError(
                f"{what}: DuckDB could not compare ({type(problem).__name__}): the conditions do "
                "not fit the types of the columns (those of a CSV file are text; Parquet states them)"
                f"{self.hint}"
            ) from None

    @staticmethod
    def _say_failed(found: NDArray[np.int64]) -> None:
        failed = np.count_nonzero((found == -2).any(axis=1))
        if failed:
            warn(
                f"{failed} pairs have values for which a condition fails or no level is meant: they count as "
                "null there",
                PrivateNote,
            )


def _columns_of(tables: Mapping[str, Any]) -> dict[str, str]:
    """Names of the columns that all tables have, by lower case."""
    found: dict[str, str] = {}
    for number, table in enumerate(tables.values()):
        names = list(getattr(table, "column_names", None) or table.columns)
        by = {name.lower(): name for name in names}
        if len(by) < len(names):
            raise InputError("two columns of the records differ in upper and lower case only")
        found = by if number == 0 else {low: name for low, name in found.items() if low in by}
    return found


def _taken(table: Any, names: Sequence[str]) -> Any:
    """Some columns of a table, as an arrow table."""
    wanted = list(dict.fromkeys(names))
    if hasattr(table, "project"):  # a relation of DuckDB
        return table.project(", ".join(map(sql_name, wanted))).to_arrow_table()
    own = {name.lower(): name for name in table.column_names}
    return table.select([own[name.lower()] for name in wanted])
