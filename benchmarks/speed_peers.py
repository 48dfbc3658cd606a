"""The peers' side of `bench speed`: run as a script, in an environment that has torch and not pairveil.

Each method trains the same model, ``W dx`` with the contrastive loss, by DP-SGD with the same clip and
noise, and is asked for a few steps only; the time is scaled to an epoch. Making the optimiser and a first
step are not timed.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple


class Shape(NamedTuple):
    """K pairs, d features, d' directions, batch."""

    pairs: int
    features: int
    directions: int
    batch: int

    @property
    def steps(self) -> int:
        """Steps of an epoch."""
        return max(1, self.pairs // self.batch)


SHAPES = {
    "small": Shape(37_400, 123, 16, 50),
    "square": Shape(37_400, 123, 123, 50),
    "large": Shape(1_000_000, 128, 32, 4096),
    "tiny": Shape(500, 10, 2, 50),
}
PEERS = (
    "Opacus GradSampleModule",
    "Opacus ghost clipping",
    "Opacus PrivacyEngine",
    "metric-learn MMC",
)
CLIP, MARGIN, NOISE, RATE = 0.1, 1.0, 1.0, 0.01
_STEPS = 20  # timed; an epoch's time is scaled from them


def main(name: str, method: str) -> None:
    """Print the seconds of an epoch as JSON."""
    shape = SHAPES[name]
    if method == "metric-learn MMC":
        print(json.dumps({"seconds": _mmc(shape)}))
        return
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    people = torch.randn(shape.pairs, shape.features)
    people /= 1.01 * people.norm(dim=1, keepdim=True)
    left = torch.randint(shape.pairs, (shape.pairs,))
    right = (left + 1 + torch.randint(shape.pairs - 1, (shape.pairs,))) % shape.pairs
    similar = torch.rand(shape.pairs) < 0.5
    make = {
        "Opacus GradSampleModule": _grad_sample,
        "Opacus ghost clipping": _ghost,
        "Opacus PrivacyEngine": _privacy_engine,
    }[method]
    step = make(shape, people, left, right, similar)
    step()
    begun = time.process_time()
    count = min(_STEPS, shape.steps)
    for _ in range(count):
        step()
    print(json.dumps({"seconds": (time.process_time() - begun) / count * shape.steps}))


def _losses(projected: Any, similar: Any) -> Any:
    """Contrastive loss of each pair."""
    distance = (projected.square().sum(1) + 1e-12).sqrt()
    push = (MARGIN - distance).clamp(min=0).square() / 2
    return similar * distance.square() / 2 + (~similar) * push


def _model(shape: Shape) -> tuple[Any, Any]:
    import torch

    model = torch.nn.Linear(shape.features, shape.directions, bias=False)
    return model, torch.optim.SGD(model.parameters(), lr=RATE)


def _grad_sample(
    shape: Shape, people: Any, left: Any, right: Any, similar: Any
) -> Callable[[], None]:
    """Every pair's gradient is formed, then clipped."""
    import torch
    from opacus import GradSampleModule  # type: ignore[import-not-found]
    from opacus.optimizers import DPOptimizer  # type: ignore[import-not-found]

    model, plain = _model(shape)
    module = GradSampleModule(model, loss_reduction="sum")
    optimizer = DPOptimizer(
        plain, noise_multiplier=NOISE, max_grad_norm=CLIP, expected_batch_size=shape.batch,
        loss_reduction="sum",
    )  # fmt: skip

    def step() -> None:
        rows = torch.randint(shape.pairs, (shape.batch,))
        optimizer.zero_grad()
        differences = people[left[rows]] - people[right[rows]]
        _losses(module(differences), similar[rows]).sum().backward()
        optimizer.step()

    return step


def _ghost(shape: Shape, people: Any, left: Any, right: Any, similar: Any) -> Callable[[], None]:
    """Norms first, then one weighted backward pass."""
    import torch
    from opacus.grad_sample import GradSampleModuleFastGradientClipping  # type: ignore[import-not-found]
    from opacus.optimizers import DPOptimizerFastGradientClipping  # type: ignore[import-not-found]
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping  # type: ignore[import-not-found]

    class Loss(torch.nn.Module):  # type: ignore[misc, name-defined]
        reduction = "sum"

        def forward(self, projected: Any, target: Any) -> Any:
            each = _losses(projected, target)
            return each if self.reduction == "none" else each.sum()

    model, plain = _model(shape)
    module = GradSampleModuleFastGradientClipping(
        model, max_grad_norm=CLIP, use_ghost_clipping=True, loss_reduction="sum"
    )
    optimizer = DPOptimizerFastGradientClipping(
        plain, noise_multiplier=NOISE, max_grad_norm=CLIP, expected_batch_size=shape.batch,
        loss_reduction="sum",
    )  # fmt: skip
    criterion = DPLossFastGradientClipping(module, optimizer, Loss(), loss_reduction="sum")

    def step() -> None:
        rows = torch.randint(shape.pairs, (shape.batch,))
        optimizer.zero_grad()
        differences = people[left[rows]] - people[right[rows]]
        criterion(module(differences), similar[rows]).backward()
        optimizer.step()

    return step


def _privacy_engine(
    shape: Shape, people: Any, left: Any, right: Any, similar: Any
) -> Callable[[], None]:
    """As Opacus is meant to be used: its engine, its Poisson sampling, a DataLoader."""
    import torch
    from opacus import PrivacyEngine  # type: ignore[import-not-found]

    class Pairs(torch.utils.data.Dataset):  # type: ignore[misc, name-defined]
        def __len__(self) -> int:
            return shape.pairs

        def __getitem__(self, row: int) -> Any:
            return people[left[row]] - people[right[row]], similar[row]

    model, plain = _model(shape)
    loader = torch.utils.data.DataLoader(Pairs(), batch_size=shape.batch)
    module, optimizer, private = PrivacyEngine().make_private(
        module=model, optimizer=plain, data_loader=loader, noise_multiplier=NOISE,
        max_grad_norm=CLIP, loss_reduction="sum",
    )  # fmt: skip
    batches = iter(private)

    def step() -> None:
        differences, same = next(batches)
        optimizer.zero_grad()
        _losses(module(differences), same).sum().backward()
        optimizer.step()

    return step


def _mmc(shape: Shape) -> float:
    """Not private and not by epochs: one iteration of metric-learn's MMC over all pairs."""
    import numpy as np
    from metric_learn import MMC  # type: ignore[import-not-found]

    rng = np.random.default_rng(0)
    count = min(shape.pairs, 20_000)
    pairs = rng.normal(size=(count, 2, shape.features))
    labels = np.where(rng.random(count) < 0.5, 1, -1)
    begun = time.process_time()
    MMC(max_iter=1, max_proj=1, tol=1e9).fit(pairs, labels)
    return (time.process_time() - begun) * shape.pairs / count


if __name__ == "__main__":
    main(*sys.argv[1:])
