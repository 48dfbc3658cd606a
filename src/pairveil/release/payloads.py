"""Released rankings, clusters and networks: an artefact with a certificate, and nothing of the records."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pairveil.array_types import FloatArray, IntArray
from pairveil.errors import InputError
from pairveil.foreign import read_json
from pairveil.printable import printable
from pairveil.privacy.certificate import Certificate
from pairveil.release.release import (
    CLUSTERS_FILE,
    NETWORK_ABOUT,
    NETWORK_FILE,
    RANKING_FILE,
    About,
    JsonRelease,
    Release,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class ReleasedRanking(JsonRelease):
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

    file, what, format = RANKING_FILE, "ranking", "pairveil-ranking"
    strengths: Any
    names: Sequence[str] | None = None
    rank_low: Any = None
    rank_high: Any = None
    certificate: Certificate | Any = None

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

    def about(self) -> About:
        """The ten best, and how to compare two."""
        first = enumerate(self.ranking[:10], start=1)
        best = "\n".join(f"{place}. {printable(str(item))}" for place, item in first)
        return About(
            "A ranking from choices",
            f"- `{self.file}`: strengths of items (the log odds that one is preferred to another are their "
            "difference),\n  and between which ranks each item is.",
            _use("ReleasedRanking", "ranking"),
            sections=f"\n## The best\n\n{best}\n",
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class ReleasedClusters(JsonRelease):
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

    file, what, format = CLUSTERS_FILE, "clusters", "pairveil-clusters"
    centers: Any
    labels: Any = None
    chosen: str | None = None
    certificate: Certificate | Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "centers", _numbers(self.centers, 2))
        if self.labels is not None:
            labels = _numbers(self.labels, 1).astype(np.int64)
            if labels.min() < 0 or labels.max() >= len(self.centers):
                raise InputError("a point's cluster is the number of a centre, from 0")
            object.__setattr__(self, "labels", labels)
        if not isinstance(self.chosen, str | None):
            raise InputError("the space of clusters is named by a text")

    def predict(self, X: ArrayLike) -> IntArray:
        """The nearest centre of each row."""
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.centers.shape[1]:
            raise InputError(f"X must have {self.centers.shape[1]} columns")
        return nearest(rows, self.centers)

    def about(self) -> About:
        """What the numbers are."""
        k, d = self.centers.shape
        whose = (
            ""
            if self.labels is None
            else f" and the cluster of each of {len(self.labels)} public points"
        )
        return About(
            "Clusters",
            f"- `{self.file}`: centres of {k} clusters in {d} columns{whose}.",
            _use("ReleasedClusters", "predict(X)"),
        )


def _use(name: str, call: str) -> str:
    return f"""\
from pairveil import {name}

found = {name}.load("path/to/this/folder")   # checks the file's SHA-256
found.{call}
found.certificate.verify()                   # recomputes every epsilon"""


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


# ---- networks --------------------------------------------------------------------------------------

NETWORK_FORMAT = "pairveil-network"


class NetworkRelease(Release):
    """Weights, and a description of what they are the weights of; what has torch is in `pairveil.deep`."""

    file, what, most = NETWORK_FILE, "network", None

    @classmethod
    def check_whole(cls, artefact: bytes, file: Path) -> None:
        """Refuse weights that the description is not about."""
        stated = described(file.parent).get("sha256")
        if stated is not None and stated != hashlib.sha256(artefact).hexdigest():
            raise InputError(f"{file.name} is not the file that {NETWORK_ABOUT} describes")


@dataclass(frozen=True)
class DescribedNetwork(NetworkRelease):
    """What a folder says of a network; ``pairveil.deep.ReleasedNetwork`` loads the weights.

    ``shape``: of one person's data.
    """

    shape: tuple[int, ...]
    n_parameters: int
    architecture: str
    certificate: Certificate | Any = None

    @classmethod
    def read(cls, artefact: bytes, file: Path) -> Self:  # noqa: ARG003
        """Read the description; the weights, which the certificate is about, are left alone."""
        told = described(file.parent)
        shape = told.get("shape")
        sizes: list[Any] = [*shape, told.get("n_parameters")] if isinstance(shape, list) else [None]
        if not all(isinstance(one, int) and 0 <= one < 2**53 for one in sizes):
            raise InputError(f"{NETWORK_ABOUT} lacks a size or holds one that is none")
        return cls(tuple(sizes[:-1]), sizes[-1], str(told.get("architecture", "")))


def described(folder: Path) -> dict[str, Any]:
    """What ``network.json`` says."""
    told = read_json(folder / NETWORK_ABOUT)
    if not isinstance(told, dict) or told.get("format") != NETWORK_FORMAT:
        raise InputError(f"{NETWORK_ABOUT} describes no released network")
    return told
