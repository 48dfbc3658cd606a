"""Files that somebody else wrote, read in bounded time and memory.

Tables, certificates, summaries, ledgers and the names inside a metric come from strangers. `read_regular`
opens regular files only (a pipe would wait for ever), up to a size. `parse_json` and `parse_toml` are the
readers of such text: size, depth and numbers are bounded before anything is built, so that nothing behind
them can recurse too deep or compute with a number of a thousand digits. `decode` holds what they found
against a structure, strictly. `check_growth` refuses a file that is small on disk and huge in memory, by
what it declares and before it is decoded. `as_csr` looks at every index of a sparse matrix before anything
follows it. Whatever else can go wrong while a file is taken apart is the file's fault: `taking_apart`.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
import sys
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from pairveil.errors import InputError, PairveilError

if TYPE_CHECKING:
    from scipy import sparse

MAX_BYTES = 16 * 2**20
"""Certificates and summaries take kilobytes, a ledger of ten thousand fits some megabytes."""

MAX_DEPTH = 32
"""Ours are at most six levels deep."""

MAX_GROWTH = 100
"""Times that a file may grow when it is decoded; honest tables grow by 3 to 30."""

FREE_GROWTH = 512 * 2**20
"""Bytes that any file may grow to: ten million pairs take half of it, however well they are packed."""

_LARGEST_INTEGER = 2**63 - 1
# A string is skipped as a whole (possessive: a long one needs no stack), a bracket is counted.
_BRACKETS = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
_KINDS = {
    "object": "an object", "array": "a list", "str": "text", "bool": "true or false", "int": "a whole number",
    "float": "a number",
}  # fmt: skip
# What msgspec says where data is not of its shape, and the names on the way to it.
_WANTED = re.compile(r"Expected `([^`]*)`(?:, got .*| ([<>]=? .*))?")
_MISSING = re.compile(r"Object missing required field `(.*)`")
_NAMES = re.compile(r"\.([A-Za-z_]\w*)")


def read_regular(path: Path, most: int | None = MAX_BYTES) -> bytes:
    """The bytes of a regular file; a pipe, a device, a folder and one that is too large are refused.

    ``most``: bytes at most; None reads any size.
    """
    try:
        # A pipe without a writer would block here, were it not for O_NONBLOCK.
        handle = os.open(
            path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        )
        with os.fdopen(handle, "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise InputError(f"{path} is not a regular file")
            if most is not None and found.st_size > most:
                raise InputError(
                    f"{path} is larger than {most // 2**20} MiB, which no file of its kind is"
                )
            return file.read(-1 if most is None else most + 1)
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except IsADirectoryError:
        raise InputError(f"{path} is not a regular file") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None


def check_growth(
    title: str, size: int, decoded: int, times: int = MAX_GROWTH, free: int | None = None
) -> None:
    """Refuse a file that would take far more memory than its size lets expect."""
    if decoded > max(FREE_GROWTH if free is None else free, times * size):
        raise InputError(
            f"{title} would grow to more than {times} times its size when it is read, which no ordinary "
            "table does. If it is yours, save it uncompressed: CSV, .npy, or a sparse .npz"
        )


def check_archive(path: Path, source: Any, **limits: int) -> None:
    """Refuse a zip file that declares far more than it has; no reader goes beyond what it declares."""
    with zipfile.ZipFile(source) as packed:
        declared = sum(one.file_size for one in packed.infolist())
    check_growth(path.name, path.stat().st_size, declared, **limits)


@contextmanager
def taking_apart(title: str) -> Iterator[None]:
    """Whatever a stranger's file makes our parsers raise ends in one sentence about the file."""
    try:
        yield
    except (PairveilError, Warning, OSError, MemoryError):
        raise
    except Exception:  # what it says may quote the file
        problem = "it is damaged, lacks a field or holds one of a wrong type"
        raise InputError(f"{title} is not valid: {problem}") from None


def parse_toml(text: bytes, title: str) -> dict[str, Any]:
    """TOML as Python data; InputError where it is not TOML, not UTF-8 or nested too deeply."""
    try:
        return tomllib.loads(text.decode("utf-8-sig"))
    except UnicodeDecodeError:
        problem = "is not UTF-8 text"
    except tomllib.TOMLDecodeError as error:
        problem = f"is not TOML: {error}"
    except RecursionError:
        problem = "is nested too deeply"
    except ValueError:  # a day or a number that is none
        problem = "is not TOML: a value in it cannot be read"
    raise InputError(f"{title} {problem}")


def read_json(path: Path, title: str | None = None, most: int = MAX_BYTES) -> Any:
    """`parse_json` of a regular file."""
    return parse_json(read_regular(path, most), str(path) if title is None else title, most)


def parse_json(
    text: str | bytes,
    title: str,
    most: int | None = MAX_BYTES,
    *,
    depth: int = MAX_DEPTH,
    exact: bool = True,
) -> Any:
    """JSON as Python data, refused when it is too large, too deep or not JSON."""
    if most is not None and len(text) > most:
        raise InputError(
            f"{title} is larger than {most // 2**20} MiB, which no file of its kind is"
        )
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise InputError(f"{title} is not valid: it is not UTF-8 text") from None
    _check_depth(text, title, depth)
    hooks: dict[str, Any] = {}
    if exact:
        hooks = {
            "parse_int": _integer, "parse_float": _finite, "parse_constant": _no_constant,
            "object_pairs_hook": _once_each,
        }  # fmt: skip
    try:
        return json.loads(text, **hooks)
    except _TwiceError:
        place = "a name occurs twice in one object, and readers would differ on what it says"
    except json.JSONDecodeError as error:
        place = f"it is not JSON (line {error.lineno}, column {error.colno})"
    except (ValueError, RecursionError):
        place = "a number is not finite or has too many digits"
    raise InputError(f"{title} is not valid: {place}")


def _check_depth(text: str, title: str, most: int) -> None:
    depth = 0
    for found in _BRACKETS.finditer(text):
        bracket = found[0]
        if bracket in "[{":
            depth += 1
            if depth > most:
                raise InputError(
                    f"{title} is not valid: lists or objects are nested more than {most} deep"
                )
        elif bracket in "]}":
            depth -= 1


class _TwiceError(Exception):
    """An object names something twice."""


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _TwiceError
    return found


def _integer(digits: str) -> int:
    if len(digits) > 20 or abs(number := int(digits)) > _LARGEST_INTEGER:
        raise ValueError
    return number


def _finite(digits: str) -> float:
    if math.isinf(number := float(digits)):
        raise ValueError
    return number


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def decode(data: object, shape: Any, title: str) -> Any:
    """Plain data as ``shape``, a type that msgspec knows; whatever differs from it is refused.

    Missing and unknown fields, values of another kind and bools for numbers are told in a sentence that
    repeats nothing of the file but names that ``shape`` has as well.
    """
    if not isinstance(data, Mapping | list | tuple):
        raise InputError(f"{title} must be a JSON object")
    try:
        return msgspec.convert(data, shape)
    except UnicodeError:
        raise InputError(f"{title} is not valid: it holds half a character of text") from None
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at `$")
    names = _NAMES.findall(place)
    if len(names) > 1:
        title = f"{title}'s {names[0]}"
    about = f"'{names[-1]}'" if names else "it"
    every = " in every place" if place.endswith("]`") else ""
    if wanted := _WANTED.fullmatch(problem):
        kinds = " or ".join(_KINDS.get(kind, kind) for kind in wanted[1].split(" | "))
        bound = f" {wanted[2]}" if wanted[2] else ""
        problem = f"{about} must be {kinds}{bound}{every}"
    elif missing := _MISSING.fullmatch(problem):
        problem = f"'{missing[1]}' is missing"
    elif problem.startswith("Object contains unknown field"):  # whose name may be anything
        problem = f"{about} has a field that is not known"
    else:
        problem = f"{about} must be one of the values that are known"
    raise InputError(f"{title} is not valid: {problem}")


def is_sparse(values: Any) -> bool:
    """Whether values are a sparse matrix of scipy's; where nobody imported it, nothing is.

    Examples
    --------
    >>> is_sparse([[1.0, 0.0]])
    False
    """
    loaded = sys.modules.get("scipy.sparse")
    return loaded is not None and bool(loaded.issparse(values))


def plain(value: Any) -> Any:
    """The way back: a value as strict JSON: numpy to Python, infinity to the string 'inf', NaN to null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def as_csr(values: Any) -> sparse.csr_array:
    """A sparse matrix as CSR with each entry stored once; the caller's matrix is left alone.

    Every index is looked at before anything follows it: compiled loops read and write where it says.

    Raises InputError: an index points outside the table, or pointers to rows do not ascend.
    """
    from scipy import sparse  # here: who only reads text needs no library of numbers

    try:
        _check_sparse(copy(values))
        table = sparse.csr_array(values)
        _check_sparse(table)
    except (ValueError, TypeError, IndexError, OverflowError, AttributeError):
        raise InputError(
            "the sparse features contradict themselves: an index points outside the table, or their parts "
            "do not fit together. Build the matrix anew"
        ) from None
    if not table.has_canonical_format:
        table = table.copy()
        table.sum_duplicates()
    return table


def _check_sparse(table: Any) -> None:
    """Raise ValueError unless all indices lie inside the shape. Attributes of ``table`` may be replaced."""
    import numpy as np
    from scipy import sparse

    if table.format in ("csr", "csc", "bsr"):
        kinds = {table.indptr.dtype.kind, table.indices.dtype.kind}
        # Asked here as well: scipy leaves its own question out where the last pointer is 0.
        if kinds != {"i"} or (np.diff(table.indptr) < 0).any():
            raise ValueError
        table.check_format(full_check=True)
    elif table.format == "coo":
        sparse.coo_array((table.data, table.coords), shape=table.shape)
    elif (
        table.format == "dia"
        and not (
            # scipy narrows offsets to 32 bits without a look, and writes where the narrow ones say.
            (-table.shape[0] < table.offsets) & (table.offsets < table.shape[1])
        ).all()
    ):
        raise ValueError
