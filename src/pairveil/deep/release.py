"""A released network: weights in safetensors, a description, a certificate, ONNX. Loads without pairveil."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import warnings
from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import nn

from pairveil._lazy import need
from pairveil.errors import InputError
from pairveil.files import FolderDraft, write_file
from pairveil.privacy.certificate import Certificate
from pairveil.release.exporters import ONNX_INPUT, ONNX_OPSET, ONNX_OUTPUT, to_dense
from pairveil.release.metric import ReleasedMetric
from pairveil.release.payloads import NETWORK_FORMAT as FORMAT
from pairveil.release.payloads import DescribedNetwork, NetworkRelease
from pairveil.release.release import NETWORK_ABOUT, NETWORK_FILE, NETWORK_ONNX, About

VERSION = 1
_AT_ONCE = 1024


def embed(module: nn.Module, data: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Embeddings of people, in the order given; by a copy, so that the module keeps nothing of them."""
    tensor = torch.as_tensor(np.asarray(data) if not hasattr(data, "detach") else data)
    if tensor.ndim < 2 or tuple(tensor.shape[1:]) != tuple(shape):
        raise InputError(f"data must have shape (n, {', '.join(map(str, shape))})")
    if tensor.is_floating_point():
        tensor = tensor.to(_dtype(module))
    runs = copy.deepcopy(module)
    with torch.no_grad():
        parts = [runs(part).double() for part in tensor.split(_AT_ONCE)]
    embedded: NDArray[np.float64] = torch.cat(parts).numpy()
    return embedded


@dataclass(frozen=True, eq=False)
class ReleasedNetwork(NetworkRelease):
    """A trained network and its certificate.

    Parameters
    ----------
    module : torch.nn.Module
    certificate : Certificate or None
    shape : tuple of int
        Of one person's data.
    onnx : bool
        Whether its folder gets ``network.onnx``, which runs without the module's code.
    """

    module: nn.Module
    certificate: Certificate | Any
    shape: tuple[int, ...]
    onnx: bool = False

    def transform(self, data: Any) -> NDArray[np.float64]:
        """Embeddings of people, (n, k)."""
        return embed(self.module, data, self.shape)

    @classmethod
    def of_head(cls, encoder: nn.Module, head: Any, shape: tuple[int, ...]) -> ReleasedNetwork:
        """A public encoder and a metric that was learned from its embeddings, as one network.

        Parameters
        ----------
        encoder : torch.nn.Module
            As it was: its weights must be public. Learned is the head alone.
        head : DPPMetricLearner or ReleasedMetric
            Fitted to the encoder's embeddings; its certificate is the network's.
        shape : tuple of int
            Of one person's data.
        """
        fitted = hasattr(head, "components_")
        matrix = getattr(head, "components_" if fitted else "components", None)
        if matrix is None:
            raise InputError("the head must be a fitted metric: call its fit first")
        if getattr(head, "schema_" if fitted else "schema", None) is not None:
            raise InputError(
                "the head reads raw rows by its schema, which a layer of a network cannot hold: learn it "
                "from the encoder's embeddings"
            )
        layer = nn.Linear(matrix.shape[1], matrix.shape[0], bias=False, dtype=_dtype(encoder))
        with torch.no_grad():
            layer.weight.copy_(torch.as_tensor(np.asarray(matrix)))
        parts = OrderedDict(encoder=copy.deepcopy(encoder).cpu(), head=layer)
        module = nn.Sequential(parts).eval().requires_grad_(False)
        try:
            embed(module, torch.zeros(1, *shape), shape)
        except RuntimeError as problem:
            raise InputError(f"the head does not fit on the encoder: {problem}") from None
        return cls(module, head.certificate_ if fitted else head.certificate, tuple(shape))

    formats = ("onnx", "dense")

    def export(self, to: str, path: str | Path) -> Path:
        """Write it in one of its formats, by `to_onnx` or `to_dense`."""
        if to not in self.formats:
            return super().export(to, path)
        return self.to_onnx(path) if to == "onnx" else self.to_dense(path)

    def to_onnx(self, path: str | Path) -> Path:
        """Write ``features (n, ...) -> projected (n, k)`` as ONNX (``pip install 'pairveil[onnx]'``)."""
        return write_file(path, onnx_bytes(self.module, self.shape))

    def to_dense(self, folder: str | Path) -> Path:
        """Write the network's one linear layer for sentence-transformers.

        Parameters
        ----------
        folder : path
            See `pairveil.release.exporters.to_dense`.
        """
        layer = self.module.head if hasattr(self.module, "head") else self.module
        if not isinstance(layer, nn.Linear):
            raise InputError(
                "a Dense module is one linear layer: this network is more, and its head is none"
            )
        bias = None if layer.bias is None else layer.bias.detach().cpu().numpy()
        return to_dense(ReleasedMetric(layer.weight.detach().cpu().numpy()), folder, bias=bias)

    def artefact(self) -> bytes:
        """The weights, in safetensors."""
        states = self.module.state_dict().items()
        kept = {"memory_format": torch.contiguous_format}
        weights: bytes = save_tensors(
            {name: one.detach().cpu().clone(**kept) for name, one in states}
        )
        return weights

    def further(self, digest: str) -> dict[str, bytes | str]:
        """The description, and ONNX where it was asked for."""
        told = {
            "format": FORMAT,
            "version": VERSION,
            "shape": list(self.shape),
            "architecture": str(self.module),
            "n_parameters": self.n_parameters,
            "sha256": digest,
        }
        files: dict[str, bytes | str] = {}
        if self.onnx:
            files[NETWORK_ONNX] = written = onnx_bytes(self.module, self.shape)
            told["onnx_sha256"] = hashlib.sha256(written).hexdigest()
        return files | {NETWORK_ABOUT: json.dumps(told, indent=2) + "\n"}

    @property
    def n_parameters(self) -> int:
        """Numbers that were learned or stand still."""
        return sum(one.numel() for one in self.module.parameters())

    def about(self) -> About:
        """What the weights are of, and how they come back into a module."""
        shape, size = " x ".join(map(str, self.shape)), f"{self.n_parameters:,}"
        return About(
            "A network learned from records of people",
            f"- `{NETWORK_FILE}`: its {size} weights. One person's data have the shape {shape}.\n"
            f"- `{NETWORK_ABOUT}`: its layers, and the SHA-256 of the weights.",
            _USE,
            f"- `{NETWORK_ONNX}`: the network for ONNX runtimes; it needs no code of its module.\n"
            if self.onnx
            else "",
        )

    def save(self, folder: str | Path | FolderDraft, *, onnx: bool = False, **how: Any) -> Path:  # type: ignore[override]
        """Write the folder, whole or not at all.

        Parameters
        ----------
        folder : path
        onnx : bool
            With ``network.onnx``.
        **how
            ``overwrite`` and ``summary``, as for `pairveil.release.release.Release.save`.
        """
        return super(ReleasedNetwork, replace(self, onnx=onnx or self.onnx)).save(folder, **how)

    @classmethod
    def load(cls, folder: str | Path, module: nn.Module) -> ReleasedNetwork:  # type: ignore[override]
        """Read a release into a module of the same architecture; nothing in the folder is run.

        Parameters
        ----------
        folder : path
        module : torch.nn.Module
            Takes the weights; the description says which architecture they are of.
        """
        weights, file, certificate = cls.checked(folder)
        told = DescribedNetwork.read(weights, file)
        try:
            module.load_state_dict(load_tensors(weights))
        except (RuntimeError, KeyError) as problem:
            raise InputError(f"the weights are of another architecture: {problem}") from None
        return cls(module.eval(), certificate, told.shape)


_USE = """\
from pairveil.deep import ReleasedNetwork

network = ReleasedNetwork.load("path/to/this/folder", module)   # a module of these layers
network.transform(data)   # points whose Euclidean distance is the learned one"""


def onnx_bytes(module: nn.Module, shape: tuple[int, ...]) -> bytes:
    """A network as an ONNX model, which was run on random inputs and gave what the network gives."""
    onnx = need("onnx", "onnx", "Writing ONNX")
    reference = need("onnx.reference", "onnx", "Writing ONNX")
    module = copy.deepcopy(module).cpu().eval()
    embeds = any(isinstance(layer, nn.Embedding) for layer in module.modules())
    rows = torch.randn(5, *shape, generator=torch.Generator().manual_seed(0))
    rows = torch.zeros_like(rows, dtype=torch.int64) if embeds else rows.to(_dtype(module))
    file, people = io.BytesIO(), {0: "people"}
    # of what torch's older exporter is told; it needs no onnxscript
    with warnings.catch_warnings(action="ignore"):
        try:
            torch.onnx.export(
                module,
                (rows[:2],),
                file,
                dynamo=False,
                input_names=[ONNX_INPUT],
                output_names=[ONNX_OUTPUT],
                dynamic_axes={ONNX_INPUT: people, ONNX_OUTPUT: people},
                opset_version=ONNX_OPSET,
            )
        except (RuntimeError, torch.onnx.errors.OnnxExporterError) as problem:
            raise InputError(
                f"torch cannot write this network as ONNX: {str(problem).splitlines()[0]}"
            ) from None
        model = onnx.load_from_string(file.getvalue())
        onnx.checker.check_model(model)
        found = reference.ReferenceEvaluator(model).run(None, {ONNX_INPUT: rows.numpy()})[0]
    with torch.no_grad():
        expected = module(rows).numpy()
    if found.shape != expected.shape or not np.allclose(found, expected, rtol=1e-3, atol=1e-5):
        raise InputError(
            "the ONNX model gives other numbers than the network: does the module branch on its input?"
        )
    written: bytes = file.getvalue()
    return written


def _dtype(module: nn.Module) -> torch.dtype:
    return next((one.dtype for one in module.parameters()), torch.float32)
