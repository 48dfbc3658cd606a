"""Released rankings and clusters: JSON with a certificate, and nothing of the records."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from pairveil.array_types import FloatArray, IntArray
from pairveil.errors import InputError
from pairveil.printable import printable
from pairveil.privacy.certificate import Certificate
from pairveil.release.folder import (
    CERTIFICATE_FILE,
    CLUSTERS_FILE,
    JSON_VERSION,
    RANKING_FILE,
    README_FILE,
    SUMMARY_FILE,
    certified,
    read_stated,
    reserve,
)

_ROOM = 1 << 20  # besides the answer itself: certificate, README and report


@dataclass(frozen=True, eq=False, kw_only=True)
class ReleasedAnswer:
    """What released answers have in common: a folder with one JSON file and its certificate."""

    file: ClassVar[str]
    what: ClassVar[str]
    certificate: Certificate | None = None

    def content(self) -> dict[str, Any]:
        """All that is released, for JSON."""
        raise NotImplementedError

    @classmethod
    def of(cls, content: dict[str, Any], certificate: Certificate | None) -> Self:
        """From what `content` gave; KeyError, TypeError or ValueError where it is something else."""
        raise NotImplementedError

    def readme(self) -> str:
        """What is in the file and how to use it."""
        raise NotImplementedError

    def save(
        self, folder: str | Path, *, overwrite: bool = False, summary: str | None = None
    ) -> Path:
        """Write the answer, ``certificate.json`` and ``README.md``, whole or not at all.

        ``summary`` is the text of ``summary.json``, which the report reads.
        """
        stated = {"format": f"pairveil-{self.what}", "version": JSON_VERSION, **self.content()}
        text = (json.dumps(stated, indent=1, allow_nan=False) + "\n").encode()
        with reserve(folder, overwrite, _ROOM + len(text)) as draft:
            promise = "NOT PRIVATE: this was computed without noise. Do not hand it out."
            signed = certified(self.certificate, text)
            if signed is not None:
                draft.write(CERTIFICATE_FILE, signed.to_json() + "\n")
                promise = signed.promise()
            draft.write(self.file, text)
            draft.write(README_FILE, README.format(
                what=self.what, promise=promise, file=self.file, readme=self.readme(),
                name=type(self).__name__))  # fmt: skip
            if summary is not None:
                draft.write(SUMMARY_FILE, summary)
            return draft.commit()

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a release and check that it is the one its certificate was made for.

        Raises
        ------
        InputError
            When a file is missing, changed, damaged or of a newer version.
        """
        content, certificate = read_stated(folder, cls.file, f"pairveil-{cls.what}", cls.what)
        try:
            return cls.of(content, certificate)
        except (KeyError, TypeError, ValueError, OverflowError):
            file = Path(folder) / cls.file
            raise InputError(f"{file} lacks a field or holds one of a wrong type") from None


@dataclass(frozen=True, eq=False, kw_only=True)
class ReleasedRanking(ReleasedAnswer):
    """Strengths of items, from choices that stay where they are.

    Parameters
    ----------
    strengths : array of shape (n_items,)
        Log odds.
    names : sequence of str or None
        Of the items.
    rank_low, rank_high : arrays of shape (n_items,) or None
        Best and worst rank of each item that is not ruled out.
    certificate : Certificate or None

    Examples
    --------
    >>> found = ReleasedRanking(strengths=[0.5, -0.5], names=["tea", "coffee"])
    >>> found.ranking, round(float(found.preference(0, 1)), 2)
    (('tea', 'coffee'), 0.73)
    """

    file = RANKING_FILE
    what = "ranking"
    strengths: Any
    names: Sequence[str] | None = None
    rank_low: Any = None
    rank_high: Any = None

    def __post_init__(self) -> None:
        strengths = _numbers(self.strengths, 1)
        object.__setattr__(self, "strengths", strengths)
        if self.names is not None:
            object.__setattr__(self, "names", tuple(str(name) for name in self.names))
        for name in ("rank_low", "rank_high"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _numbers(getattr(self, name), 1).astype(np.int64))
        parts = (self.names, self.rank_low, self.rank_high)
        if any(part is not None and len(part) != len(strengths) for part in parts):
            raise InputError("a ranking has one name and one set of ranks for each item")

    @property
    def ranking(self) -> tuple[Any, ...]:
        """Items, the best first: their names, or their numbers."""
        best = np.argsort(-self.strengths, kind="stable").tolist()
        return tuple(best if self.names is None else (self.names[item] for item in best))

    def preference(self, left: Any, right: Any) -> FloatArray:
        """How likely a choice between two items is for the first, by their numbers."""
        apart = self.strengths[np.asarray(left)] - self.strengths[np.asarray(right)]
        return np.asarray(1 / (1 + np.exp(-apart)))

    def content(self) -> dict[str, Any]:
        """Items in their own order."""
        ranks = {
            name: None if getattr(self, name) is None else getattr(self, name).tolist()
            for name in ("rank_low", "rank_high")
        }
        names = None if self.names is None else list(self.names)
        return {"strengths": self.strengths.tolist(), "names": names, **ranks}

    @classmethod
    def of(cls, content: dict[str, Any], certificate: Certificate | None) -> Self:
        """From JSON."""
        fields = {name: content[name] for name in ("strengths", "names", "rank_low", "rank_high")}
        return cls(**fields, certificate=certificate)

    def readme(self) -> str:
        """The ten best, and how to compare two."""
        first = enumerate(self.ranking[:10], start=1)
        best = "\n".join(f"{place}. {printable(str(item))}" for place, item in first)
        return (
            "Strengths of items (the log odds that one is preferred to another are their difference), and "
            f"between which ranks each item is.\n\nThe best:\n\n{best}"
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class ReleasedClusters(ReleasedAnswer):
    """Centres of clusters and, where the points are public, the cluster of each.

    Parameters
    ----------
    centers : array of shape (n_clusters, n_features)
    labels : integer array of shape (n_points,) or None
    chosen : str or None
        The space in which the clusters were found.
    certificate : Certificate or None

    Examples
    --------
    >>> ReleasedClusters(centers=[[0.0, 0.0], [1.0, 1.0]]).predict([[0.9, 0.8]]).tolist()
    [1]
    """

    file = CLUSTERS_FILE
    what = "clusters"
    centers: Any
    labels: Any = None
    chosen: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "centers", _numbers(self.centers, 2))
        if self.labels is not None:
            labels = _numbers(self.labels, 1).astype(np.int64)
            if labels.min() < 0 or labels.max() >= len(self.centers):
                raise InputError("a point's cluster is the number of a centre, from 0")
            object.__setattr__(self, "labels", labels)

    def predict(self, X: ArrayLike) -> IntArray:
        """The nearest centre of each row."""
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.centers.shape[1]:
            raise InputError(f"X must have {self.centers.shape[1]} columns")
        return nearest(rows, self.centers)

    def content(self) -> dict[str, Any]:
        """Centres, and labels where there are some."""
        labels = None if self.labels is None else self.labels.tolist()
        return {"centers": self.centers.tolist(), "labels": labels, "chosen": self.chosen}

    @classmethod
    def of(cls, content: dict[str, Any], certificate: Certificate | None) -> Self:
        """From JSON."""
        chosen = content["chosen"]
        if not (chosen is None or isinstance(chosen, str)):
            raise TypeError
        fields = {name: content[name] for name in ("centers", "labels")}
        return cls(**fields, chosen=chosen, certificate=certificate)

    def readme(self) -> str:
        """What the numbers are."""
        k, d = self.centers.shape
        whose = (
            ""
            if self.labels is None
            else f" and the cluster of each of {len(self.labels)} public points"
        )
        return f"Centres of {k} clusters in {d} columns{whose}."


def nearest(rows: FloatArray, centers: FloatArray) -> IntArray:
    """The number of the nearest centre of each row.

    Examples
    --------
    >>> nearest(np.array([[2.0]]), np.array([[0.0], [3.0]])).tolist()
    [1]
    """
    away = ((rows[:, None, :] - centers) ** 2).sum(axis=2)
    return np.asarray(away.argmin(axis=1), dtype=np.int64)


def _numbers(values: Any, axes: int) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != axes or array.size == 0 or not np.isfinite(array).all():
        raise InputError("a released answer holds finite numbers, at least one")
    return array


README = """# A release of pairveil: {what}

{promise}

- `{file}`: {readme}
- `certificate.json`: the guarantee and all that is needed to recompute it.

```python
from pairveil import {name}

found = {name}.load("path/to/this/folder")   # checks the file's SHA-256
found.certificate.verify()                   # recomputes every epsilon
```

Check it: `pairveil certificate path/to/this/folder`. Noise and kappa are the sender's word: add
`--signer KEY` to check who signed it, if there is a `signature.dsse.json`.
"""
