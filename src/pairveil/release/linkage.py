"""A released linkage model: tables of m and u, a certificate, and nothing of the records."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairveil.array_types import FloatArray, IntArray
from pairveil.errors import InputError
from pairveil.printable import printable
from pairveil.privacy.certificate import Certificate
from pairveil.release.release import LINKAGE_FILE, About, JsonRelease

NULL_LEVEL = -1


@dataclass(frozen=True, eq=False)
class ReleasedLinkage(JsonRelease):
    """A linkage model with its certificate, ready to be handed out.

    Parameters
    ----------
    m, u : tuples of arrays
        Probability of each level among matches and among other pairs, comparison by comparison; the last
        level is the best agreement.
    prior : float
        How likely a pair is a match before it is compared.
    certificate : Certificate or None
    names : tuple of str or None
        Of the comparisons.
    count_noise : float
        Standard deviation of the noise on each count behind m and u; public.
    n_behind : tuple of (float, float) or None
        How many matches and other pairs, noise included, are behind m and u of each comparison; 0 where u
        was given. None where that is not known.

    Examples
    --------
    >>> model = ReleasedLinkage((np.array([0.2, 0.8]),), (np.array([0.9, 0.1]),), 0.5)
    >>> model.match_weights([[1], [0], [-1]]).round(2)
    array([ 3.  , -2.17,  0.  ])
    """

    file, what, format = LINKAGE_FILE, "linkage model", "pairveil-linkage"

    m: tuple[FloatArray, ...]
    u: tuple[FloatArray, ...]
    prior: float
    certificate: Certificate | Any = None
    names: tuple[str, ...] | None = None
    count_noise: float = 0.0
    n_behind: tuple[tuple[float, float], ...] | None = None

    def __post_init__(self) -> None:
        tables = {}
        for which in ("m", "u"):
            given = enumerate(getattr(self, which), start=1)
            tables[which] = tuple(
                probabilities(one, f"{which} of comparison {i}") for i, one in given
            )
            object.__setattr__(self, which, tables[which])
        sizes = [len(one) for one in tables["m"]]
        if not sizes or sizes != [len(one) for one in tables["u"]]:
            raise InputError("m and u must have the same comparisons with the same levels")
        if not (isinstance(self.prior, float) and 0 < self.prior < 1):
            raise InputError("the prior must be a number between 0 and 1, both excluded")
        if self.names is not None and len(self.names) != len(sizes):
            raise InputError("there must be one name for each comparison")
        if self.n_behind is not None and np.shape(self.n_behind) != (len(sizes), 2):
            raise InputError("n_behind must be two numbers for each comparison")
        if self.certificate is not None:
            stated = self.certificate.plan.get("linkage")
            if not isinstance(stated, dict) or stated.get("n_levels") != sizes:
                raise InputError("the certificate is of a fit with other comparisons or levels")

    @property
    def n_levels(self) -> tuple[int, ...]:
        """Levels of each comparison."""
        return tuple(len(one) for one in self.m)

    def match_weights(self, levels: Any) -> FloatArray:
        """Evidence for a match of each row, in bits; nulls (-1) add nothing."""
        return match_weights(self.m, self.u, levels)

    def match_probability(self, levels: Any, prior: float | None = None) -> FloatArray:
        """How likely each row is a match, if a pair is one with probability ``prior`` before."""
        before = self.prior if prior is None else prior
        if not (isinstance(before, int | float) and 0 < before < 1):
            raise InputError("prior must be a number between 0 and 1, both excluded")
        bits = self.match_weights(levels) + math.log2(before / (1 - before))
        # 2^b / (1 + 2^b), without overflow on either side.
        return np.asarray(np.exp(-np.logaddexp(0.0, -bits * math.log(2.0))))

    # ---- files ----------------------------------------------------------------------------------

    def content(self) -> dict[str, Any]:
        """Tables and weights, comparison by comparison."""
        comparisons = [
            {"name": name, "m": m.tolist(), "u": u.tolist(), "weights": np.log2(m / u).tolist()}
            for name, m, u in zip(self.shown_names, self.m, self.u, strict=True)
        ]
        return {
            "levels": "from the least agreement to the best; null levels are left out",
            "prior": self.prior,
            "count_noise": self.count_noise,
            "named": self.names is not None,
            "n_behind": self.n_behind,
            "comparisons": comparisons,
        }

    @property
    def shown_names(self) -> tuple[str, ...]:
        """Names of the comparisons, or their numbers."""
        return self.names or tuple(f"comparison {i + 1}" for i in range(len(self.m)))

    @classmethod
    def of(cls, content: dict[str, Any]) -> ReleasedLinkage:
        """From JSON."""
        comparisons = content["comparisons"]
        names = tuple(str(one["name"]) for one in comparisons) if content["named"] else None
        m, u = (tuple(np.array(one[which]) for one in comparisons) for which in ("m", "u"))
        noise, known = float(content["count_noise"]), content.get("n_behind")
        behind = None if known is None else tuple((float(a), float(b)) for a, b in known)
        if not (math.isfinite(noise) and noise >= 0 and np.isfinite(behind or 0).all()):
            raise ValueError
        return cls(m, u, float(content["prior"]), None, names, noise, behind)

    def about(self) -> About:
        """The weights at both ends of each comparison."""
        rows = "\n".join(
            f"| {printable(name).replace('|', ' ')} | "
            + " | ".join(
                [str(len(m)), f"{math.log2(m[0] / u[0]):.2f}", f"{math.log2(m[-1] / u[-1]):.2f}"]
            )
            + " |"
            for name, m, u in zip(self.shown_names, self.m, self.u, strict=True)
        )
        title = "A linkage model learned from labelled pairs"
        return About(title, _HOLDS, _USE, sections=f"{_TABLE}{rows}\n")


_HOLDS = """\
- `linkage.json`: for each comparison the probability of every level among matches (m) and among other pairs
  (u), and the match weight log2(m / u) in bits. Levels run from the least agreement to the best."""
_TABLE = """
| comparison | levels | bits where it does not agree | bits where it agrees best |
|---|---|---|---|
"""
_USE = """\
from pairveil.linkage import ReleasedLinkage

model = ReleasedLinkage.load("path/to/this/folder")
model.match_weights(levels)                    # bits of evidence for each pair; -1 is null
model.match_probability(levels, prior=0.001)   # the prior of your pairs, not of ours"""


def match_weights(m: Any, u: Any, levels: Any) -> FloatArray:
    """Sum of log2(m / u) over the comparisons of each row; nulls (-1) add nothing.

    Examples
    --------
    >>> match_weights([np.array([0.5, 0.5])], [np.array([0.75, 0.25])], [[1]])
    array([1.])
    """
    array = as_levels(levels)
    if array.shape[1] != len(m):
        raise InputError(f"the model has {len(m)} comparisons; got {array.shape[1]} columns")
    total = np.zeros(len(array))
    for column, (of_matches, of_others) in enumerate(zip(m, u, strict=True)):
        found = array[:, column]
        above = np.flatnonzero(found >= len(of_matches))
        if above.size:
            where = place(np.array([above[0], column]))
            raise InputError(
                f"levels: {where} is not below {len(of_matches)}, the number of levels of this comparison"
            )
        bits = np.append(np.log2(of_matches) - np.log2(of_others), 0.0)  # the last is that of null
        total += bits[found]
    return total


def place(where: IntArray) -> str:
    """Where a wrong level is, for people.

    Examples
    --------
    >>> place(np.array([0, 2]))
    'row 1, column 3'
    """
    return f"row {where[0] + 1}, column {where[1] + 1}"


def probabilities(values: Any, what: str, size: int | None = None) -> FloatArray:
    """Probabilities of the levels of one comparison; ``what`` says of which, ``size`` how many there are."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{what} must hold numbers") from None
    fits = array.ndim == 1 and array.size > 0 and size in (None, array.size)
    if not fits or not np.all((array > 0) & (array <= 1)):
        raise InputError(
            f"{what} must hold {size or 'its'} probabilities above 0, one for each level"
        )
    if abs(float(array.sum()) - 1) > 1e-6:
        raise InputError(f"{what} must sum to 1")
    return array


def as_levels(levels: Any) -> IntArray:
    """Levels as whole numbers, -1 where they are null; values are never part of a message.

    Examples
    --------
    >>> as_levels([[2.0, None], [0.0, 1.0]]).tolist()
    [[2, -1], [0, 1]]
    """
    try:
        array = np.asarray(levels)
        if array.dtype.kind not in "iu":
            array = array.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError("levels must be whole numbers: -1 for null, 0 and up for levels") from None
    if array.ndim != 2 or array.shape[1] == 0:
        raise InputError(
            f"levels must have one row a pair and one column a comparison; got shape {array.shape}"
        )
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), NULL_LEVEL, array)
        wrong = np.argwhere(~np.isfinite(array) | (array != np.floor(array)))
        if wrong.size:
            raise InputError(f"levels: {place(wrong[0])} is not a whole number")
    low = np.argwhere(array < NULL_LEVEL)
    if low.size:
        raise InputError(f"levels: {place(low[0])} is below -1, which stands for null")
    if array.size and array.max() > 2**31:
        raise InputError("levels: a number is far above any number of levels")
    return array.astype(np.int64)
