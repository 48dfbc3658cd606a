"""A released network as whoever has no torch sees it: what it is, and the certificate of its weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pairveil.errors import InputError
from pairveil.foreign import read_json, read_regular
from pairveil.privacy.certificate import Certificate
from pairveil.release.folder import NETWORK_ABOUT, NETWORK_FILE, read_certificate

FORMAT = "pairveil-network"


@dataclass(frozen=True)
class DescribedNetwork:
    """What a folder says of a network; ``pairveil.deep.ReleasedNetwork`` loads the weights.

    ``shape``: of one person's data.
    """

    shape: tuple[int, ...]
    n_parameters: int
    architecture: str
    certificate: Certificate | None = None

    @classmethod
    def load(cls, folder: str | Path) -> DescribedNetwork:
        """Read the description, and check that the weights are those of the certificate."""
        place = Path(folder)
        told = read_json(place / NETWORK_ABOUT)
        if not isinstance(told, dict) or told.get("format") != FORMAT:
            raise InputError(f"{NETWORK_ABOUT} describes no released network")
        shape = told.get("shape")
        sizes: list[Any] = [*shape, told.get("n_parameters")] if isinstance(shape, list) else [None]
        if not all(isinstance(one, int) and 0 <= one < 2**53 for one in sizes):
            raise InputError(f"{NETWORK_ABOUT} lacks a size or holds one that is none")
        file = place / NETWORK_FILE
        certificate = read_certificate(place, file, read_regular(file))
        return cls(tuple(sizes[:-1]), sizes[-1], str(told.get("architecture", "")), certificate)
