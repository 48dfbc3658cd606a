"""Time and memory of one private step of a network, against the same step without privacy.

    python benchmarks/deep_step.py cuda > benchmarks/results/deep.json

Needs torch and numpy alone, so that it runs on a borrowed machine: it loads the network's code without the
rest of pairveil. Private: norms of all pairs' gradients and their clipped sum, as `pairveil.deep` takes
them. Plain: the gradient of the loss. One by one: every pair's gradient by torch.func, on 256 pairs, scaled.
All in float32 ('highest'), with TF32 allowed in the network's own products ('high'), and under
autocast ('bfloat16'). Plain and private steps run through CUDA graphs, and for comparison without.
"""

from __future__ import annotations

import gc
import json
import sys
import time
import types
from functools import partial
from pathlib import Path

import torch
from torch import nn

HOME = Path(__file__).resolve().parents[1] / "src" / "pairveil"
if __name__ == "__main__":  # the packages without their __init__, which load all of pairveil
    for name, folder in (("pairveil", HOME), ("pairveil.deep", HOME / "deep")):
        package = types.ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package

from pairveil.deep.arithmetic import Recorded  # noqa: E402
from pairveil.deep.network import Network, Pass, by_record  # noqa: E402
from pairveil.deep.records import contrastive  # noqa: E402

MICRO = {"mlp": 65536, "conv": 8192, "transformer": 1024}
FEW = 256
PRECISIONS = ("highest", "high", "bfloat16")


class Block(nn.Module):
    """A transformer's block, attention by its own linear layers."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, t, w = x.shape
        q, k, v = self.qkv(self.one(x)).reshape(n, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, t, w)
        x = x + self.out(mixed)
        return x + self.down(nn.functional.gelu(self.up(self.two(x))))


class Transformer(nn.Module):
    """ViT-Tiny's width and heads on 64 patches of 48 numbers; six blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.patch, self.head = nn.Linear(48, 192), nn.Linear(192, 128)
        self.blocks = nn.Sequential(*[Block(192, 3) for _ in range(6)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.patch(x)).mean(dim=1))


def nets() -> dict[str, tuple[nn.Module, tuple[int, ...], tuple[int, ...]]]:
    """Each net, the shape of its data, and the numbers of pairs to try."""
    conv = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(128, 128),
    )  # fmt: skip
    mlp = nn.Sequential(
        nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 128)
    )
    return {
        "mlp": (mlp, (784,), (1024, 8192, 65536)),
        "conv": (conv, (3, 32, 32), (1024, 8192)),
        "transformer": (Transformer(), (64, 48), (256, 1024)),
    }


def measured(step, device: str, repeats: int = 5) -> tuple[float, float]:  # type: ignore[no-untyped-def]
    """Best seconds of one step, and peak memory in MiB beyond what lay there before."""
    best, before = float("inf"), 0
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    step()
    for _ in range(repeats):
        start = time.perf_counter()
        step()
        if device == "cuda":
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    peak = (torch.cuda.max_memory_allocated() - before) / 2**20 if device == "cuda" else 0.0
    return best, peak


class Steps:
    """The three ways to one step, over the same pairs in the same micro-batches."""

    def __init__(self, net: Network, pairs: int, micro: int) -> None:
        self.net = net
        self.left, self.right = net.example(pairs, 1), net.example(pairs, 2)
        self.labels = torch.ones(pairs, device=net.device)
        self.labels[::2] = -1
        self.parts = [slice(i, i + micro) for i in range(0, pairs, micro)]
        self.gradient, self.clipped = self._gradient, partial(net.clipped_sum, 0.1)

    def record(self) -> None:
        """Both steps through a CUDA graph, as fits on a GPU run."""
        self.gradient, self.clipped = Recorded(self._gradient), Recorded(self.clipped)

    def _of(self, part: slice) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return self.left[part], self.right[part], self.labels[part]

    def _gradient(self, left: torch.Tensor, right: torch.Tensor, labels: torch.Tensor):  # type: ignore[no-untyped-def]
        learned = [one for _, one in self.net.parameters]
        run = Pass(self.net.module, self.net.records)
        embedded = self.net._embedded(run, by_record([left, right]))
        loss = self.net._losses(run, embedded, labels).sum()
        return torch.cat([one.reshape(-1) for one in torch.autograd.grad(loss, learned)])

    def plain(self) -> None:
        """The gradient of the loss."""
        total = torch.zeros(self.net.n_parameters, device=self.net.device)
        for part in self.parts:
            total += self.gradient(*self._of(part))

    def private(self) -> None:
        """Norms and the clipped sum."""
        total = torch.zeros(self.net.n_parameters, dtype=torch.float64, device=self.net.device)
        for part in self.parts:
            total += self.clipped(*self._of(part))

    def one_by_one(self) -> None:
        """Every pair's own gradient, for a few pairs."""
        now = self.net._pair_by_pair(self.net._fresh(), *self._of(slice(0, FEW)))
        now.weighted(torch.ones_like(now.square))


def autocast_of(precision: str) -> str | None:
    """What a network is told."""
    return precision if precision == "bfloat16" else None


def allow(precision: str) -> None:
    """TF32 in the network's own products and convolutions, or not."""
    torch.set_float32_matmul_precision("high" if precision == "high" else "highest")
    torch.backends.cudnn.allow_tf32 = precision == "high"


def row(steps: Steps, name: str, pairs: int, micro: int, precision: str) -> dict[str, object]:
    """Time and memory of one net, number of pairs and precision."""
    device = steps.net.device.type
    allow(precision)
    eager, base_memory = measured(steps.plain, device)
    eager_ours, memory = measured(steps.private, device)
    each, _ = measured(steps.one_by_one, device, 2)
    steps.record()
    base, ours = (measured(step, device)[0] for step in (steps.plain, steps.private))
    allow("highest")
    return {
        "net": name,
        "precision": precision,
        "pairs": pairs,
        "micro_batch": micro,
        "parameters": steps.net.n_parameters,
        "plain_ms": round(base * 1e3, 3),
        "private_ms": round(ours * 1e3, 3),
        "ratio": round(ours / base, 2),
        "plain_ms_not_recorded": round(eager * 1e3, 3),
        "private_ms_not_recorded": round(eager_ours * 1e3, 3),
        "memory_ratio": round(memory / base_memory, 2) if base_memory else None,
        "one_by_one_ms_scaled": round(each * 1e3 * max(1, pairs / FEW), 1),
        "pairs_a_second": int(pairs / ours),
    }


def off_from_cpu(name: str, device: str) -> dict[str, object]:
    """How far norms and the clipped sum are from those of a CPU in float32, relative."""
    module, shape, _ = nets()[name]
    found: dict[str, object] = {"net": name}
    for precision in PRECISIONS:
        allow(precision)
        both = []
        for where in ("cpu", device):
            half = autocast_of(precision) if where == device else None
            net = Network(module, contrastive, shape, device=where, autocast=half)
            steps = Steps(net, 64, 64)
            now = net.gradients(steps.left, steps.right, steps.labels)
            norms = now.square.sqrt()
            both.append((norms.cpu(), now.weighted(1 / norms.clamp(min=0.1))[0].cpu()))
        off = [float((one - two).norm() / one.norm()) for one, two in zip(*both, strict=True)]
        found[precision] = {"norms": off[0], "sum": off[1]}
    allow("highest")
    return found


def rows(device: str) -> list[dict[str, object]]:
    """One row for each net, number of pairs and precision."""
    found = []
    for name, (module, shape, sizes) in nets().items():
        for precision in PRECISIONS if device == "cuda" else ("highest",):
            half = autocast_of(precision)
            net = Network(module, contrastive, shape, device=device, autocast=half)
            for pairs in sizes:
                micro = min(pairs, MICRO[name])
                found.append(row(Steps(net, pairs, micro), name, pairs, micro, precision))
                print(found[-1], file=sys.stderr)
                gc.collect()  # what was recorded
    return found


if __name__ == "__main__":
    where = sys.argv[1] if len(sys.argv) > 1 else "cpu"
    machine = torch.cuda.get_device_name() if where == "cuda" else "cpu"
    results = {"machine": machine, "torch": torch.__version__, "rows": rows(where)}
    if where == "cuda":
        results["off_from_cpu"] = [off_from_cpu(name, where) for name in nets()]
    print(json.dumps(results, indent=1))
