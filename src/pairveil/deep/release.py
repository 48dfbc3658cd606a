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

from pairveil.errors import InputError
from pairveil.files import write_file
from pairveil.foreign import read_json, read_regular
from pairveil.privacy.certificate import Certificate
from pairveil.release.exporters import ONNX_INPUT, ONNX_OPSET, ONNX_OUTPUT, need, to_dense
from pairveil.release.metric import ReleasedMetric
from pairveil.release.payloads import NETWORK_FORMAT as FORMAT
from pairveil.release.release import (
    CERTIFICATE_FILE,
    NETWORK_ABOUT,
    NETWORK_FILE,
    NETWORK_ONNX,
    SUMMARY_FILE,
    reserve,
)

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

    def save(
        self,
        folder: str | Path,
        *,
        overwrite: bool = False,
        onnx: bool = False,
        summary: str | None = None,
    ) -> Path:
        """Write the folder, whole or not at all.

        Parameters
        ----------
        folder : path
        overwrite : bool
        onnx : bool
            With ``network.onnx``, which runs without the module's code.
        summary : str, optional
            The text of ``summary.json``, which the report reads.
        """
        weights = save_tensors(
            {
                name: one.detach().cpu().clone(memory_format=torch.contiguous_format)
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
        files = {NETWORK_FILE: weights}
        if onnx:
            files[NETWORK_ONNX] = onnx_bytes(self.module, self.shape)
            described["onnx_sha256"] = hashlib.sha256(files[NETWORK_ONNX]).hexdigest()
        files |= {NETWORK_ABOUT: (json.dumps(described, indent=2) + "\n").encode()}
        if self.certificate is not None:
            certificate = replace(self.certificate, metric_sha256=digest)
            files[CERTIFICATE_FILE] = (certificate.to_json() + "\n").encode()
        if summary is not None:
            files[SUMMARY_FILE] = summary.encode()
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
        described = read_json(place / NETWORK_ABOUT)
        if not isinstance(described, dict) or described.get("format") != FORMAT:
            raise InputError(f"{NETWORK_ABOUT} describes no released network")
        digest = hashlib.sha256(weights).hexdigest()
        if digest != described.get("sha256"):
            raise InputError(f"{NETWORK_FILE} is not the file that {NETWORK_ABOUT} describes")
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


def onnx_bytes(module: nn.Module, shape: tuple[int, ...]) -> bytes:
    """A network as an ONNX model, which was run on random inputs and gave what the network gives."""
    onnx = need("onnx", "onnx", "Writing ONNX")
    reference = need("onnx.reference", "onnx", "Writing ONNX")
    module = copy.deepcopy(module).cpu().eval()
    embeds = any(isinstance(layer, nn.Embedding) for layer in module.modules())
    rows = torch.randn(5, *shape, generator=torch.Generator().manual_seed(0))
    rows = torch.zeros_like(rows, dtype=torch.int64) if embeds else rows.to(_dtype(module))
    file, people = io.BytesIO(), {0: "people"}
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # of what torch's older exporter is told; it needs no onnxscript
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


def _write(folder: Path, files: dict[str, bytes], overwrite: bool) -> Path:
    with reserve(folder, overwrite, sum(map(len, files.values()))) as draft:
        for name, content in files.items():
            draft.write(name, content)
        return draft.commit()
