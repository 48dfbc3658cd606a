"""Two neighbouring inputs, of any kind of records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from pairveil.privacy.units import Adjacency

Records = TypeVar("Records")


@dataclass(frozen=True)
class Inputs(Generic[Records]):
    """Two inputs that a promise must not let anyone tell apart: the same records with other contents.

    Parameters
    ----------
    first, second : PairSet, People, TupleSet or Choices
        For zero-out, the changed records of `first` are null.
    adjacency : {"zero-out", "replace"}
    """

    first: Records
    second: Records
    adjacency: Adjacency
    name: str = "given"

    hides_features: ClassVar[bool] = True
    """Whether features are contents, so that an audit may turn them into other directions."""

    def __post_init__(self) -> None:
        """Refuse two inputs that no promise covers."""

    @property
    def changed(self) -> NDArray[np.intp]:
        """Positions of the records whose contents differ."""
        raise NotImplementedError

    @property
    def kappa(self) -> int:
        """How many records' contents differ."""
        return len(self.changed)
