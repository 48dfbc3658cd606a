"""One column of a schema: what may be in it, and how it becomes numbers in [0, 1].

A cell is encoded by itself, from public facts alone: what stands in other rows changes nothing. One text
makes text of a column of dates, or of true and false: a cell means the same in either. And every cell has an
encoding, whatever it holds, so that no private content stops a fit: what cannot be read counts as missing, a
missing one becomes the public fill value, a number outside the bounds becomes the bound.

What a cell becomes is written down once for each type, in `formulas`: `Numpy` computes it here, and the
exports write the same formula in their own language (`pairveil.release.exporters`).

Raw cells of a table as texts, numbers or dates.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairveil.array_types import FloatArray
from pairveil.column_names import arrow, cell_text
from pairveil.errors import InputError

# ---- Raw cells of a table as texts, numbers or dates ---------------------------------------------


def category_cells(cells: Any) -> Any:
    """Cells as texts, as `cell_text` writes them."""
    pa, pc = arrow()
    kinds = (is_text_type, pa.types.is_integer, pa.types.is_boolean)
    if any(is_kind(cells.type) for is_kind in kinds):
        return pc.utf8_trim_whitespace(cells.cast(pa.large_string()))
    return pa.array(map(cell_text, cells), pa.large_string())


def floats(cells: Any, name: str) -> FloatArray:
    """Cells as numbers, NaN where there is none."""
    pa, _ = arrow()
    if pa.types.is_decimal(cells.type):  # whose floats hang on the scale: one cell decides it
        cells = cells.cast(pa.large_string())
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


def _is_some(text: Any) -> NDArray[np.bool_]:
    """Which cells hold something that is no word for a gap."""
    pa, pc = arrow()
    gaps = pa.array(GAPS, text.type)
    gap = pc.is_in(pc.utf8_lower(pc.fill_null(text, "")), value_set=gaps)
    return ~np.asarray(gap.to_numpy(zero_copy_only=False), dtype=bool)


def is_text_type(kind: Any) -> bool:
    """Whether a type of Arrow is text."""
    pa, _ = arrow()
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


def number_cells(cells: Any, name: str, decimal: str) -> tuple[FloatArray, Any]:
    """Floats, NaN where nothing can be read, and in which cells something stands that may be no number."""
    pa, pc = arrow()
    types = pa.types
    numeric = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
    if any(is_kind(cells.type) for is_kind in numeric):
        return floats(cells, name), False
    text = category_cells(cells)
    points = pc.replace_substring(text, ",", ".") if decimal == "," else text
    try:  # of numbers alone: the same numbers, in a tenth of the time
        found = floats(points.cast(pa.float64()), name)
        if not np.isinf(found).any():  # Arrow knows more words for it
            return found, _is_some(text)
    except pa.ArrowException:
        pass
    for word, number in _TRUTHS:
        points = pc.replace_substring_regex(points, word, number)
    readable = pc.fill_null(pc.match_substring_regex(points, _NUMBER), False)
    return floats(pc.if_else(readable, points, None).cast(pa.float64()), name), _is_some(text)


# ---- One column of a schema: what may be in it, and how it becomes numbers in [0, 1] -------------

OTHER = "other"
GAPS = ("", "-", "--", ".", "?", "na", "n/a", "n.a.", "nan", "null", "none", "missing")
"""How a gap is written, in lower case. A category may be called so; a number or a date cannot."""

_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|^[+-]?inf$"
_TRUTHS = (("(?i)^true$", "1"), ("(?i)^false$", "0"))
"""Where a column is of true and false alone they are 1 and 0, and so among others."""
_ISO = "%Y-%m-%d"
_LARGEST = 1e300
SCALES = ("linear", "log")
_EPOCH = datetime.date(1970, 1, 1)
_SECONDS_A_DAY = 86_400
MOST_PLACES = 1_000


class Counts(NamedTuple):
    """Cells that were not taken as they stood; private, for the operator."""

    outside: int = 0
    missing: int = 0
    unreadable: int = 0
    where: tuple[int, ...] = ()
    """Positions of the first that cannot be read."""

    def after(self, earlier: Counts, n_rows: int) -> Counts:
        """These of one batch together with those of the ``n_rows`` rows before it."""
        here = (n_rows + at for at in self.where[: MOST_PLACES - len(earlier.where)])
        outside, missing, unreadable = (a + b for a, b in zip(earlier[:3], self[:3], strict=True))
        return Counts(outside, missing, unreadable, (*earlier.where, *here))


class Numpy:
    """The functions of a formula beside arithmetic, computed at once."""

    missing = staticmethod(np.isnan)
    where = staticmethod(np.where)
    clip = staticmethod(np.clip)
    log = staticmethod(np.log)


@dataclass(frozen=True)
class Column:
    """A column that makes no feature: ``id``, ``class`` or ``skip``; base of those that make some."""

    name: str  # as the table calls it
    type: str = "skip"
    keys: ClassVar[tuple[str, ...]] = ()
    blank: ClassVar[str | None] = None  # what must be filled in by hand

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The columns of numbers that it makes."""
        return ()

    @property
    def longest(self) -> float:
        """No row of its numbers has a larger sum of squares than this."""
        return 0.0

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to be filled in."""
        return self.blank is None or bool(getattr(self, self.blank))

    def encode(self, cells: Any, decimal: str) -> tuple[FloatArray, Counts]:  # noqa: ARG002
        """The column's numbers, (n, len(feature_names)), from an arrow array; and what was counted."""
        return np.empty((len(cells), 0)), Counts()

    def formulas(self, cell: Any, maths: Any = Numpy) -> list[Any]:  # noqa: ARG002
        """Its features, in order, as formulas of one raw cell.

        ``cell`` is a number (of days since 1970, for a date) or a text without spaces around it, as an
        array or as a `pairveil.release.exporters.Term`; ``maths`` has ``missing``, ``where``, ``clip``,
        ``log`` and ``equals``.
        """
        return []

    def to_dict(self) -> dict[str, Any]:
        """Its table in the file; dates as ISO text."""
        usual = {field.name: field.default for field in fields(self)}  # an empty list is stated
        stated = {key: getattr(self, key) for key in self.keys}
        return {"type": self.type} | {
            key: _plain(value)
            for key, value in stated.items()
            if isinstance(value, tuple) or value != usual[key]
        }


@dataclass(frozen=True)
class ClassColumn(Column):
    """Each person's class: no feature. ``values`` is the public list of classes, where it is known."""

    type: str = "class"
    values: tuple[str, ...] = ()
    keys = ("values",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _texts(self.values, self.name, "values"))


@dataclass(frozen=True)
class _Encoded(Column):
    """A column that becomes numbers, with what all of those may say."""

    fill: Any = None
    indicator: bool = False

    def _check_indicator(self) -> None:
        if not isinstance(self.indicator, bool):
            raise _wrong(self.name, "indicator must be true or false")

    @property
    def longest(self) -> float:
        """A value adds at most 1, an indicator 1 more."""
        return 2.0 if self.indicator else 1.0

    def formulas(self, cell: Any, maths: Any = Numpy) -> list[Any]:
        """Its values, and whether they are missing where it says so."""
        missing = maths.missing(cell)
        values = self._values(cell, missing, maths)
        return [*values, maths.where(missing, 1.0, 0.0)] if self.indicator else values

    def _values(self, cell: Any, missing: Any, maths: Any) -> list[Any]:
        raise NotImplementedError

    def _indicator_name(self) -> tuple[str, ...]:
        return (f"{self.name} missing",) if self.indicator else ()


@dataclass(frozen=True)
class NumberColumn(_Encoded):
    """A number between two public bounds.

    ``bounds`` are the lowest and highest value that is possible, empty where nobody has filled them in yet;
    ``fill`` stands in for a missing value, the middle of the scale by default; ``unit`` is for readers.
    Scale 'log' is for values that differ by factors, as laboratory values do: the logarithm is taken after
    the value was set to its bounds, and lies on [0, 1] between those of the bounds. ``offset`` is added
    before the logarithm, so that 0 has one; the lower bound plus this must be above 0.
    """

    type: str = "number"
    bounds: tuple[Any, ...] = ()
    unit: str = ""
    scale: str = "linear"
    offset: float | None = None
    keys: ClassVar[tuple[str, ...]] = ("bounds", "unit", "scale", "offset", "fill", "indicator")
    blank = "bounds"

    def __post_init__(self) -> None:
        self._check_indicator()
        if not isinstance(self.unit, str):
            raise _wrong(self.name, "unit must be a text")
        object.__setattr__(self, "bounds", tuple(self.bounds))
        if self.bounds and not (len(self.bounds) == 2 and all(map(self._is_value, self.bounds))):
            raise _wrong(self.name, self._bounds_rule)
        if self.bounds and not self._number(self.bounds[0]) < self._number(self.bounds[1]):
            raise _wrong(self.name, "the lower bound must be below the upper one")
        if self.fill is not None and not self._is_value(self.fill):
            raise _wrong(self.name, "fill must be a value of the column's type")
        self._check_scale()

    def _check_scale(self) -> None:
        if self.scale not in SCALES:
            raise _wrong(self.name, f"scale must be one of {', '.join(SCALES)}")
        if self.offset is not None and (
            self.scale != "log" or not NumberColumn._is_value(self, self.offset)
        ):
            raise _wrong(self.name, 'offset must be a number, and goes with scale = "log"')
        if self.scale == "log" and self.bounds:
            low, high = (self._number(end) + (self.offset or 0.0) for end in self.bounds)
            if not low > 0:
                raise _wrong(
                    self.name,
                    "a logarithm needs a lower bound above 0, or an offset that lifts it there: such as "
                    "offset = 1 where counts begin at 0",
                )
            if not math.log(low) < math.log(high):
                raise _wrong(self.name, "the bounds are too close to each other for a logarithm")

    _bounds_rule: ClassVar[str] = "bounds must be [lowest, highest], two numbers"

    def _is_value(self, value: Any) -> bool:
        # Far from the ends of the floats: the width of the bounds must be finite too.
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and -_LARGEST <= value <= _LARGEST

    def _number(self, value: Any) -> float:
        return float(value)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Its own name, and that of its indicator."""
        return (self.name, *self._indicator_name())

    def encode(self, cells: Any, decimal: str) -> tuple[FloatArray, Counts]:
        """Numbers in [0, 1] by the bounds."""
        raw, some = self._read(cells, decimal)
        low, high = map(self._number, self.bounds)
        outside = int(np.count_nonzero((raw < low) | (raw > high)))
        without = np.isnan(raw)
        wrong = np.flatnonzero(without & some)
        missing = int(np.count_nonzero(without)) - len(wrong)
        counts = Counts(outside, missing, len(wrong), tuple(wrong[:MOST_PLACES].tolist()))
        return np.column_stack(self.formulas(raw)), counts

    def _values(self, cell: Any, missing: Any, maths: Any) -> list[Any]:
        low, high = map(self._number, self.bounds)
        more = self.offset or 0.0
        if self.fill is not None:
            fill = self._number(self.fill)
        elif self.scale == "log":  # the middle of the scale, not of the bounds
            fill = math.exp((math.log(low + more) + math.log(high + more)) / 2) - more
        else:
            fill = (low + high) / 2
        inside = maths.clip(maths.where(missing, fill, cell), low, high)
        if self.scale == "log":  # of what lies within the bounds: never of a negative number
            inside = maths.log(inside + more)
            low, high = math.log(low + more), math.log(high + more)
        return [maths.clip((inside - low) / (high - low), 0.0, 1.0)]

    def _read(self, cells: Any, decimal: str) -> tuple[FloatArray, Any]:
        """Floats, NaN where nothing can be read, and in which cells something stands."""
        return number_cells(cells, self.name, decimal)


@dataclass(frozen=True)
class DateColumn(NumberColumn):
    """A date between two public dates, by days; ``bounds`` are dates, or text YYYY-MM-DD.

    ``format`` says how the table writes dates, as ``strptime`` spells it; ISO by default. A time is cut off.
    """

    type: str = "date"
    format: str = ""
    keys = ("bounds", "format", "fill", "indicator")
    _bounds_rule = "bounds must be two dates, [1920-01-01, 2025-12-31]"

    def __post_init__(self) -> None:
        if self.scale != "linear":
            raise _wrong(self.name, "dates have no logarithm")
        if not isinstance(self.format, str):
            raise _wrong(self.name, "format must be a text such as '%d.%m.%Y'")
        if any(_read_otherwise(day, self.format) for day in _DAYS):
            raise _wrong(
                self.name,
                f"by format '{self.format}' a day that the table holds as a date, not as text, could be read "
                "as another day: write the column as YYYY-MM-DD, and leave format out",
            )
        object.__setattr__(self, "bounds", tuple(map(as_date, self.bounds)))
        object.__setattr__(self, "fill", as_date(self.fill))
        super().__post_init__()

    def _is_value(self, value: Any) -> bool:
        return isinstance(value, datetime.date)

    def _number(self, value: Any) -> float:
        return float((value - _EPOCH).days)

    def _read(self, cells: Any, decimal: str) -> tuple[FloatArray, Any]:  # noqa: ARG002
        pa, pc = arrow()
        kind = cells.type
        if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
            if pa.types.is_timestamp(kind) and kind.tz is not None:
                cells = pc.local_timestamp(cells)  # the day that its text says
            return floats(cells.cast(pa.date32(), safe=False).cast(pa.int32()), self.name), False
        text = category_cells(cells)
        day = pc.utf8_slice_codeunits(text, 0, 10)
        seconds = pc.strptime(day, _ISO, "s", error_is_null=True)
        if self.format:  # dates that were no text are written YYYY-MM-DD among texts
            spaced = " " in self.format  # else a time of day stands behind a space
            cut = text if spaced else pc.replace_substring_regex(text, " .*$", "")
            by_format = pc.strptime(cut, self.format, "s", error_is_null=True)
            seconds = pc.coalesce(by_format, seconds)
        days = np.floor(floats(seconds.cast(pa.int64()), self.name) / _SECONDS_A_DAY)
        return days, _is_some(text)


_DAYS = (datetime.datetime(2001, 2, 3), datetime.datetime(2012, 11, 10, 9, 8, 7))


def _read_otherwise(day: datetime.datetime, written: str) -> bool:
    """Whether a format takes the ISO text of a day for another day, as %Y-%d-%m does.

    Among texts days are written so: one text in a column of dates would then move all others.
    """
    for text in (day.date().isoformat(), str(day)):
        try:
            return datetime.datetime.strptime(text, written).date() != day.date()
        except (ValueError, re.error):
            continue
    return False


@dataclass(frozen=True)
class CategoryColumn(_Encoded):
    """One of some public categories, all that are possible; what is none of them is 'other'.

    A category called ``other`` takes what is none of them; ``fill`` is the one that stands in for a missing
    value, 'other' by default.
    """

    type: str = "category"
    categories: tuple[str, ...] = ()
    keys = ("categories", "fill", "indicator")
    blank = "categories"

    def __post_init__(self) -> None:
        self._check_indicator()
        listed = _texts(self.categories, self.name, "categories")
        object.__setattr__(self, "categories", listed)
        if self.fill is not None:
            object.__setattr__(self, "fill", (cell_text(self.fill) or "").strip())
            if self.fill not in (*listed, OTHER):
                raise _wrong(self.name, "fill must be one of the categories")

    @property
    def levels(self) -> tuple[str, ...]:
        """Categories, and 'other' last where it is not among them."""
        return self.categories if OTHER in self.categories else (*self.categories, OTHER)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """``name=category`` each."""
        return (*(f"{self.name}={level}" for level in self.levels), *self._indicator_name())

    def encode(self, cells: Any, decimal: str) -> tuple[FloatArray, Counts]:  # noqa: ARG002
        """One 1 in each row."""
        pa, pc = arrow()
        levels = self.levels
        text = category_cells(cells)
        at = pc.fill_null(pc.index_in(text, value_set=pa.array(levels, pa.large_string())), -1)
        place: NDArray[Any] = at.to_numpy(zero_copy_only=False).astype(np.int64)
        missing = pc.fill_null(pc.equal(text, ""), True).to_numpy(zero_copy_only=False)
        missing = missing & (place < 0)
        other = (place < 0) & ~missing
        place = np.where(missing, levels.index(self.fill or OTHER), place)
        place = np.where(other, levels.index(OTHER), place)
        one = np.zeros((len(place), len(self.feature_names)))
        one[np.arange(len(place)), place] = 1.0
        if self.indicator:
            one[:, -1] = missing
        return one, Counts(int(other.sum()), int(missing.sum()), 0)

    def _values(self, cell: Any, missing: Any, maths: Any) -> list[Any]:
        # `encode` looks all levels up at once instead: it need not compare each cell with each level.
        listed = [level for level in self.levels if level != OTHER]
        made = {
            level: maths.where(missing, float(level == self.fill), maths.equals(cell, level))
            for level in listed
        }
        made[OTHER] = maths.where(missing, 1.0, 1.0) - sum(made.values())  # a 1 in every row
        return [made[level] for level in self.levels]


KINDS: Mapping[str, type[Column]] = {
    "number": NumberColumn,
    "category": CategoryColumn,
    "date": DateColumn,
    "class": ClassColumn,
    "id": Column,
    "skip": Column,
}


def column_of(name: str, table: Mapping[str, Any]) -> Column:
    """A column from its table in the file; keys that its type does not have are refused."""
    stated = dict(table)
    type_ = stated.pop("type", None)
    if not isinstance(type_, str) or type_ not in KINDS:
        raise _wrong(name, f"type must be one of {', '.join(KINDS)}")
    made = KINDS[type_]
    unknown = [key for key in stated if key not in made.keys]
    if unknown:
        allowed = ", ".join(made.keys) or "nothing else"
        raise _wrong(name, f"'{unknown[0]}' is no key of a {type_} column; there are: {allowed}")
    for key in ("bounds", "categories", "values"):
        if not isinstance(stated.get(key, []), list | tuple):
            raise _wrong(name, f"{key} must be a list: {key} = [...]")
    return made(name, type=type_, **stated)


def _texts(values: Any, name: str, key: str) -> tuple[str, ...]:
    if not all(isinstance(value, str | int | float | bool) for value in values):
        raise _wrong(name, f"{key} must be texts or numbers")
    listed = tuple((cell_text(value) or "").strip() for value in values)
    if "" in listed or len(set(listed)) != len(listed):
        raise _wrong(name, f"{key} must be different from each other, and none empty")
    return listed


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value.isoformat() if isinstance(value, datetime.date) else value


def _wrong(name: str, problem: str) -> InputError:
    return InputError(f"column '{name}': {problem}")
