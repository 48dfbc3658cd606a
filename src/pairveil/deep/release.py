"""A released network: weights in safetensors, a description, the certificate. Loads without pairveil."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import nn

from pairveil.errors import InputError
from pairveil.files import FolderDraft, recover
from pairveil.foreign import read_json, read_regular
from pairveil.privacy.certificate import Certificate

NETWORK_FILE = "network.safetensors"
DESCRIPTION_FILE = "network.json"
CERTIFICATE_FILE = "certificate.json"
FORMAT, VERSION = "pairveil-network", 1
_AT_ONCE = 1024


def embed(module: nn.Module, data: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Embeddings of people, in the order given."""
    tensor = torch.as_tensor(np.asarray(data) if not hasattr(data, "detach") else data)
    if tensor.ndim < 2 or tuple(tensor.shape[1:]) != tuple(shape):
        raise InputError(f"data must have shape (n, {', '.join(map(str, shape))})")
    if tensor.is_floating_point():
        tensor = tensor.to(next(module.parameters()).dtype)
    with torch.no_grad():
        parts = [module(part).double() for part in tensor.split(_AT_ONCE)]
    embedded: NDArray[np.float64] = torch.cat(parts).numpy()
    return embedded


@dataclass(frozen=True, eq=False)
class ReleasedNetwork:
    """A trained network and its certificate.

    Parameters
    ----------
    module : torch.nn.Module
    certificate : Certificate or None
    shape : tuple of int
        Of one person's data.
    """

    module: nn.Module
    certificate: Certificate | None
    shape: tuple[int, ...]

    def transform(self, data: Any) -> NDArray[np.float64]:
        """Embeddings of people, (n, k)."""
        return embed(self.module, data, self.shape)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write the folder, whole or not at all."""
        weights = save_tensors(
            {
                name: one.detach().contiguous().cpu()
                for name, one in self.module.state_dict().items()
            }
        )
        digest = hashlib.sha256(weights).hexdigest()
        described = {
            "format": FORMAT,
            "version": VERSION,
            "shape": list(self.shape),
            "architecture": str(self.module),
            "n_parameters": sum(one.numel() for one in self.module.parameters()),
            "sha256": digest,
        }
        files = {
            NETWORK_FILE: weights,
            DESCRIPTION_FILE: (json.dumps(described, indent=2) + "\n").encode(),
        }
        if self.certificate is not None:
            certificate = replace(self.certificate, metric_sha256=digest)
            files[CERTIFICATE_FILE] = (certificate.to_json() + "\n").encode()
        return _write(Path(folder), files, overwrite)

    @classmethod
    def load(cls, folder: str | Path, module: nn.Module) -> ReleasedNetwork:
        """Read a release into a module of the same architecture; nothing in the folder is run.

        Parameters
        ----------
        folder : path
        module : torch.nn.Module
            Takes the weights; the description says which architecture they are of.
        """
        place = Path(folder)
        weights = read_regular(place / NETWORK_FILE)
        described = read_json(place / DESCRIPTION_FILE)
        if not isinstance(described, dict) or described.get("format") != FORMAT:
            raise InputError(f"{DESCRIPTION_FILE} describes no released network")
        digest = hashlib.sha256(weights).hexdigest()
        if digest != described.get("sha256"):
            raise InputError(f"{NETWORK_FILE} is not the file that {DESCRIPTION_FILE} describes")
        try:
            module.load_state_dict(load_tensors(weights))
        except (RuntimeError, KeyError) as problem:
            raise InputError(f"the weights are of another architecture: {problem}") from None
        certificate = None
        if (place / CERTIFICATE_FILE).exists():
            certificate = Certificate.from_json(
                read_regular(place / CERTIFICATE_FILE).decode("utf-8")
            )
            if certificate.metric_sha256 != digest:
                raise InputError(
                    f"{NETWORK_FILE} is not the network of {CERTIFICATE_FILE} (its SHA-256 differs)"
                )
        return cls(module.eval(), certificate, tuple(described["shape"]))


def _write(folder: Path, files: dict[str, bytes], overwrite: bool) -> Path:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; name a folder for the release")
    held = {entry.name for entry in folder.iterdir()} if folder.exists() else set()
    if held - {NETWORK_FILE, DESCRIPTION_FILE, CERTIFICATE_FILE}:
        raise InputError(f"{folder} holds other files; name a new folder for the release")
    if held and not overwrite:
        raise InputError(
            f"{folder} already holds a release; name another folder or allow overwriting"
        )
    recover(folder)
    with FolderDraft(folder, room=sum(map(len, files.values()))) as draft:
        for name, content in files.items():
            draft.write(name, content)
        return draft.commit()
