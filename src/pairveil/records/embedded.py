"""Data that come with the package: students, patients, digits, and made-up records to link. No download.

Each table is scaled by literal bounds from the published description of the data (`students.toml` and below);
nothing is computed from the rows (see `pairveil.records.scaling`).
"""

from __future__ import annotations

import csv
import gzip
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairveil.errors import InputError
from pairveil.records.kinds import PAIRS
from pairveil.records.scaling import PublicBounds, scale_to_bounds
from pairveil.records.tables import FeatureTable
from pairveil.records.validation import check_members
from pairveil.schema.schema import Schema

# Range of each measure in the published summary of the Wisconsin data, rounded outward:
# mean, standard error, worst.
_PATIENT_RANGES = {
    "radius": ((6, 29), (0, 3), (7, 37)),
    "texture": ((9, 40), (0, 5), (12, 50)),
    "perimeter": ((40, 190), (0, 22), (50, 252)),
    "area": ((140, 2600), (0, 550), (180, 4300)),
    "smoothness": ((0.05, 0.17), (0, 0.04), (0.07, 0.23)),
    "compactness": ((0.01, 0.35), (0, 0.14), (0.02, 1.1)),
    "concavity": ((0, 0.43), (0, 0.4), (0, 1.3)),
    "concave points": ((0, 0.21), (0, 0.06), (0, 0.3)),
    "symmetry": ((0.1, 0.31), (0, 0.08), (0.15, 0.67)),
    "fractal dimension": ((0.04, 0.1), (0, 0.03), (0.05, 0.21)),
}


class EmbeddedData(NamedTuple):
    """People with features of l2 norm at most 1, and the class of each."""

    features: FeatureTable
    classes: np.ndarray
    class_names: tuple[str, ...]


# ---- students -----------------------------------------------------------------------------------


@cache
def student_schema() -> Schema:
    """The public facts of the students' columns: the questionnaire's bounds and categories."""
    text = files("pairveil.records").joinpath("students.toml").read_text(encoding="utf-8")
    return Schema.from_dict(tomllib.loads(text), "students.toml")


def student_table() -> dict[str, list[str | None]]:
    """The students as they answered, by column; None where an answer is missing."""
    packed = files("pairveil.records").joinpath("students.csv.gz").read_bytes()
    names, *rows = csv.reader(gzip.decompress(packed).decode("utf-8").splitlines())
    columns = zip(*rows, strict=True)
    return {
        name: [cell or None for cell in column] for name, column in zip(names, columns, strict=True)
    }


def load_students() -> EmbeddedData:
    """13,310 high-school students, 12 answers each (CDC Youth Risk Behavior Survey, public domain).

    The class says who is physically active on at least 5 days of the week.

    Examples
    --------
    >>> students = load_students()
    >>> students.features
    FeatureTable(13310 people, 53 features)
    """
    table, schema = student_table(), student_schema()
    values, _ = schema.encode(table)
    features = FeatureTable(np.array(table["id"]), values * schema.factor(), schema.feature_names)
    active = np.array([answer == "yes" for answer in table["active"]])
    return EmbeddedData(features, active.astype(np.int64), ("inactive", "active"))


# ---- patients and digits ------------------------------------------------------------------------


def patient_bounds() -> PublicBounds:
    """The public bounds of the 30 patient columns, in scikit-learn's order."""
    columns = [(f"mean {name}", f"{name} error", f"worst {name}") for name in _PATIENT_RANGES]
    names = tuple(group[kind] for kind in range(3) for group in columns)
    pairs = np.array([ranges[kind] for kind in range(3) for ranges in _PATIENT_RANGES.values()])
    return PublicBounds(pairs[:, 0], pairs[:, 1], names)


def load_patients() -> EmbeddedData:
    """569 breast-cancer patients, 30 measures each (Wisconsin, as in scikit-learn).

    Examples
    --------
    >>> patients = load_patients()
    >>> patients.features
    FeatureTable(569 people, 30 features)
    """
    from sklearn.datasets import load_breast_cancer

    return _prepare(load_breast_cancer(), patient_bounds(), ("malignant", "benign"))


def load_digits() -> EmbeddedData:
    """1,797 handwritten digits of 8 x 8 pixels from 0 to 16, treated as people in tests."""
    from sklearn.datasets import load_digits as load

    names = tuple(f"pixel_{row}_{column}" for row in range(8) for column in range(8))
    bounds = PublicBounds(np.zeros(64), np.full(64, 16.0), names)
    return _prepare(load(), bounds, tuple(str(digit) for digit in range(10)))


def _prepare(bunch: Any, bounds: PublicBounds, class_names: tuple[str, ...]) -> EmbeddedData:
    # [0, 1] in every column and then 1/sqrt(d): no row is longer than 1, none needs clipping.
    values = scale_to_bounds(bunch.data, bounds, data_norm=1.0)
    table = FeatureTable(np.arange(len(values)), values, bounds.names)
    return EmbeddedData(table, np.asarray(bunch.target), class_names)


def label_pairs(pairs: Any, classes: Any) -> np.ndarray:
    """+1 where the two people have the same class, -1 where not.

    Parameters
    ----------
    pairs : integer array of shape (K, 2)
    classes : array of shape (n,)

    Returns
    -------
    ndarray of int8

    Examples
    --------
    >>> label_pairs([[0, 1], [1, 2]], classes=["a", "a", "b"])
    array([ 1, -1], dtype=int8)
    """
    kinds = np.asarray(classes)
    if kinds.ndim != 1:
        raise InputError("classes must be one a person")
    ends = check_members(pairs, PAIRS, len(kinds))
    return np.where(kinds[ends[:, 0]] == kinds[ends[:, 1]], 1, -1).astype(np.int8)


# ---- made-up records to link --------------------------------------------------------------------

_LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))
_SYLLABLES = np.array(
    [c + v for c in "bcdfghjklmnprstvw" for v in ("a", "e", "i", "o", "u", "an", "er")]
)


class LinkageRecords(NamedTuple):
    """Records of people, with who is who."""

    ids: NDArray[Any]
    columns: dict[str, list[str | None]]  # texts by column; None where nothing is known
    entities: NDArray[Any]  # whose record each is: the truth that clerks would find

    def labels(self, pairs: Any) -> NDArray[np.int8]:
        """+1 where both records of a pair (row numbers) are one person's, else -1."""
        ends = np.asarray(pairs)
        same = self.entities[ends[:, 0]] == self.entities[ends[:, 1]]
        return np.where(same, 1, -1).astype(np.int8)

    def path(self, random_state: int = 0, n_people: int | None = None) -> NDArray[np.int64]:
        """Pairs that clerks may be given: a path through two records each of people, half of them matches.

        On a path kappa is 1. Which pairs match follows from the truth, as in any made-up review.
        """
        rng = np.random.default_rng(random_state)
        order = np.argsort(self.entities, kind="stable")
        cuts = np.flatnonzero(self.entities[order][1:] != self.entities[order][:-1]) + 1
        groups = [one for one in np.split(order, cuts) if len(one) > 1]
        rng.shuffle(groups)
        ends = [rng.choice(one, 2, replace=False) for one in groups[:n_people]]
        walk = np.concatenate(ends).astype(np.int64)
        return np.column_stack([walk[:-1], walk[1:]])


def make_records(
    n_people: int = 1000, records: int = 2, errors: float = 0.2, missing: float = 0.1, random_state: int = 0
) -> LinkageRecords:  # fmt: skip
    """Made-up records: name, surname, date of birth, town and sex, with slips.

    Parameters
    ----------
    n_people, records : int
        People, and records of each.
    errors, missing : float
        How often a field of a record has a slip (a letter changed, lost or doubled), or is empty.
    random_state : int

    Examples
    --------
    >>> found = make_records(3, random_state=1)
    >>> len(found.ids), sorted(found.columns)
    (6, ['birth', 'name', 'sex', 'surname', 'town'])
    """
    rng = np.random.default_rng(random_state)
    names, surnames, towns = (_words(rng, n) for n in (80, 300, 60))
    columns: dict[str, list[str | None]] = {
        n: [] for n in ("name", "surname", "birth", "town", "sex")
    }
    for _ in range(n_people):
        day = f"{rng.integers(1930, 2005)}-{rng.integers(1, 13):02d}-{rng.integers(1, 29):02d}"
        truth = (
            _common(rng, names),
            _common(rng, surnames),
            day,
            _common(rng, towns),
            rng.choice(["f", "m"]),
        )
        for _ in range(records):
            for column, value in zip(columns, truth, strict=True):
                empty, slip = rng.random() < missing, rng.random() < errors
                columns[column].append(
                    None if empty else _slipped(rng, str(value)) if slip else str(value)
                )
    entities = np.repeat([f"p{i}" for i in range(n_people)], records)
    return LinkageRecords(np.array([f"r{i}" for i in range(len(entities))]), columns, entities)  # fmt: skip


def _words(rng: np.random.Generator, n: int) -> list[str]:
    return ["".join(rng.choice(_SYLLABLES, int(rng.integers(2, 4)))) for _ in range(n)]


def _common(rng: np.random.Generator, words: list[str]) -> str:
    """A word; the first are far more common than the last, as names are."""
    return words[int(len(words) * rng.random() ** 2.5)]


def _slipped(rng: np.random.Generator, word: str) -> str:
    at, letter = int(rng.integers(len(word))), str(rng.choice(_LETTERS))
    kind = rng.integers(3) if len(word) > 2 else 0
    middle = ("" if kind == 1 else word[at] * 2) if kind else letter
    return word[:at] + middle + word[at + 1 :]
