"""A small convolution net on distorted glyphs, beside Euclid, the linear metric and Opacus.

Everybody is in two pairs (paths) at the level of a relationship, and in one pair (matching) or one group at
that of a person. Opacus takes pairs as examples, on a matching and on paths, where group privacy
turns its promise for a pair into one for a person's two pairs.
Pair AUC is that of images that were not trained on; steps, clip and rate of the nets were chosen on other
images still (`choose`).

Run it as ``python -m benchmarks deep``.
"""

from __future__ import annotations

import itertools
import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from benchmarks.glyphs import draw_glyphs
from benchmarks.measuring import write_result
from pairveil.deep import PrivateMetricTrainer
from pairveil.deep.records import contrastive
from pairveil.errors import DataWarning
from pairveil.evaluation.scores import pair_auc
from pairveil.graph.choosing import design_groups, design_pairs
from pairveil.learners.contrastive.learner import DPPMetricLearner
from pairveil.records.groups import GroupSet

SIZES = (2_000, 5_000, 10_000, 40_000)
EPSILONS = (1.0, 4.0, 8.0)
DELTA = 1e-6
PAIRS_A_STEP, GROUPS_A_STEP, GROUP = 1024, 512, 8
N_TEST = 5_000
OTHERS = 1_000  # seeds from here on draw the images on which settings are chosen


class Taught(NamedTuple):
    """How a net is trained."""

    steps: int
    clip: float
    rate: float


GRID = [Taught(*one) for one in itertools.product((60, 200), (0.1, 0.5), (0.003, 0.01, 0.03))]
CHOSEN = {
    "net, pairs": Taught(200, 0.5, 0.01),
    "net, triplets in groups": Taught(200, 0.1, 0.01),
    "Opacus, matching": Taught(200, 0.1, 0.01),
    "Opacus, paths": Taught(200, 0.5, 0.01),
}
"""What `choose` chose: 10,000 people, epsilon 4, the mean of two draws."""


class Split(NamedTuple):
    """Images and digits, for training and for the test."""

    X: NDArray[np.float32]
    y: NDArray[np.int64]
    X_test: NDArray[np.float32]
    y_test: NDArray[np.int64]


def small_net(seed: int) -> nn.Module:
    """Two convolutions and a linear layer: 2,360 weights.

    Examples
    --------
    >>> sum(one.numel() for one in small_net(0).parameters())
    2360
    """
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, stride=2, padding=2), nn.Tanh(),
        nn.Conv2d(6, 12, 3, stride=2, padding=1), nn.Tanh(),
        nn.Flatten(), nn.Linear(192, 8),
    )  # fmt: skip


def _paired(split: Split, how: str, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    pairs = design_pairs(len(split.X), how=how, random_state=seed)  # type: ignore[arg-type]
    return pairs, np.where(split.y[pairs[:, 0]] == split.y[pairs[:, 1]], 1, -1)


class Wish(NamedTuple):
    """What a method is asked for."""

    epsilon: float
    unit: str
    seed: int
    taught: Taught
    device: str = "cpu"


def _trainer(wish: Wish, expected: int, n_records: int, **options: Any) -> Any:
    return PrivateMetricTrainer(
        small_net(wish.seed), epsilon=wish.epsilon, delta=DELTA, unit=wish.unit, select="all",  # type: ignore[arg-type]
        n_steps=wish.taught.steps, sample_rate=min(1.0, expected / n_records),
        max_grad_norm=wish.taught.clip, learning_rate=wish.taught.rate,
        micro_batch=min(expected, n_records), random_state=wish.seed, device=wish.device,
        **options,
    )  # fmt: skip


def net_on_pairs(split: Split, wish: Wish) -> NDArray[np.float64]:
    """The net, each pair clipped."""
    pairs, y = _paired(split, "matching" if wish.unit == "person" else "paths", wish.seed)
    made = _trainer(wish, PAIRS_A_STEP, len(pairs))
    found: NDArray[np.float64] = made.fit(pairs, y, split.X).transform(split.X_test)
    return found


def net_on_groups(split: Split, wish: Wish) -> NDArray[np.float64]:
    """The net, each group clipped; the triplets inside it are its loss."""
    members = design_groups(len(split.X), GROUP, random_state=wish.seed)
    groups = GroupSet.of_classes(split.X.reshape(len(split.X), -1), members, split.y)
    made = _trainer(wish, GROUPS_A_STEP, len(members), loss="triplet")
    found: NDArray[np.float64] = made.fit(groups, None, split.X).transform(split.X_test)
    return found


def opacus_on_matching(split: Split, wish: Wish) -> NDArray[np.float64]:
    """Opacus, everybody in one pair, which is an example."""
    return _opacus(split, wish, "matching", wish.epsilon, DELTA)


def opacus_on_paths(split: Split, wish: Wish) -> NDArray[np.float64]:
    """Opacus, everybody in two pairs: (e, d)-DP for an example is (2e, d (1 + exp(e)))-DP for two of them."""
    return _opacus(split, wish, "paths", wish.epsilon / 2, half_delta(wish.epsilon))


def half_delta(epsilon: float) -> float:
    """Delta of one pair so that two of them have `DELTA` at ``epsilon``."""
    return DELTA / (1 + math.exp(epsilon / 2))


def _opacus(
    split: Split, wish: Wish, how: str, epsilon: float, delta: float
) -> NDArray[np.float64]:
    """Adam on Opacus' noisy gradients of pairs, as its users run it."""
    from opacus import PrivacyEngine

    pairs, y = _paired(split, how, wish.seed)
    ends = torch.from_numpy(split.X[pairs])
    given = torch.utils.data.TensorDataset(ends, torch.from_numpy(y.astype(np.float32)))
    batch = min(PAIRS_A_STEP, len(pairs))
    net, draw = small_net(wish.seed), torch.Generator().manual_seed(wish.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Opacus' own: of secure_mode, of hooks
        private, optimiser, loader = PrivacyEngine(accountant="prv").make_private(
            module=net,
            optimizer=torch.optim.Adam(net.parameters(), lr=wish.taught.rate),
            data_loader=torch.utils.data.DataLoader(given, batch_size=batch),
            noise_multiplier=_opacus_noise(epsilon, delta, batch / len(pairs), wish.taught.steps),
            max_grad_norm=wish.taught.clip,
            noise_generator=draw,
        )
        batches = itertools.chain.from_iterable(itertools.repeat(loader))
        for people, labels in itertools.islice(batches, wish.taught.steps):
            left, right = private(people[:, 0]), private(people[:, 1])
            optimiser.zero_grad()
            contrastive(left, right, labels).mean().backward()
            optimiser.step()
    with torch.no_grad():
        return net.eval()(torch.from_numpy(split.X_test)).double().numpy()  # type: ignore[no-any-return]


@cache
def _opacus_noise(epsilon: float, delta: float, rate: float, steps: int) -> float:
    from opacus.accountants.utils import get_noise_multiplier

    return float(
        get_noise_multiplier(
            target_epsilon=epsilon,
            target_delta=delta,
            sample_rate=rate,
            steps=steps,
            accountant="prv",
        )
    )


def linear(split: Split, wish: Wish) -> NDArray[np.float64]:
    """The linear private metric, on rows of length 1."""
    pairs, y = _paired(split, "matching" if wish.unit == "person" else "paths", wish.seed)
    learner = DPPMetricLearner(
        epsilon=wish.epsilon, delta=DELTA, unit=wish.unit, preprocessor=_rows(split.X),  # type: ignore[arg-type]
        random_state=wish.seed, select="all",
    )  # fmt: skip
    return np.asarray(learner.fit(pairs, y).transform(_rows(split.X_test)))


def _rows(images: NDArray[np.float32]) -> NDArray[np.float64]:
    rows = images.reshape(len(images), -1).astype(np.float64)
    unit: NDArray[np.float64] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def euclid(split: Split, wish: Wish) -> NDArray[np.float64]:
    """Nothing learned."""
    del wish
    return _rows(split.X_test)


METHODS: dict[str, Callable[[Split, Wish], NDArray[np.float64]]] = {
    "Euclid": euclid,
    "linear metric": linear,
    "net, pairs": net_on_pairs,
    "net, triplets in groups": net_on_groups,
    "Opacus, matching": opacus_on_matching,
    "Opacus, paths": opacus_on_paths,
}
PRIVATE = {"relationship": ("linear metric", "net, pairs"), "person": tuple(METHODS)[1:]}


class Cell(NamedTuple):
    """One number of the table: a method, for whom and how strictly, on how many people of one draw."""

    people: int
    method: str
    unit: str | None
    epsilon: float | None
    seed: int
    taught: Taught | None = None


def cells(sizes: Sequence[int], epsilons: Sequence[float], seeds: int) -> Iterator[Cell]:
    """All that is measured; Opacus only where it is installed.

    Examples
    --------
    >>> [one.method for one in cells([100], [], 1)]
    ['Euclid', 'linear metric', 'net, pairs', 'net, triplets in groups']
    """
    wanted: list[tuple[str, str | None, float | None]] = [
        (name, None, None) for name in tuple(METHODS)[:4]
    ]
    for epsilon in epsilons:
        wanted += [(name, unit, epsilon) for unit, names in PRIVATE.items() for name in names]
    for n, (name, unit, level), seed in itertools.product(sizes, wanted, range(seeds)):
        if not name.startswith("Opacus") or find_spec("opacus"):
            yield Cell(n, name, unit, level, seed)


@cache
def _split(n: int, seed: int) -> Split:
    return Split(*draw_glyphs(n, 2 * seed), *draw_glyphs(N_TEST, 2 * seed + 1))


def measure(cell: Cell, device: str = "cpu") -> tuple[float, float]:
    """Pair AUC and seconds of one fit; our nets on a device."""
    torch.set_num_threads(1)
    split = _split(cell.people, cell.seed)
    taught = cell.taught or CHOSEN.get(cell.method, GRID[0])
    wish = Wish(cell.epsilon or math.inf, cell.unit or "relationship", cell.seed, taught, device)
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        embedded = METHODS[cell.method](split, wish)
    return pair_auc(None, embedded, split.y_test), time.perf_counter() - began


@contextmanager
def _mapping(jobs: int) -> Iterator[Callable[..., Iterator[Any]]]:
    """``map``, over several processes if asked."""
    if jobs == 1:
        yield map
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield pool.map


def run(
    sizes: Sequence[int] = SIZES,
    epsilons: Sequence[float] = EPSILONS,
    seeds: int = 5,
    out: Path | None = None,
    progress: Callable[[str], None] | None = None,
    jobs: int = 1,
    device: str = "cpu",
) -> dict[str, Any]:
    """Pair AUC of each method: the mean over draws, and their standard deviation.

    Parameters
    ----------
    sizes : sequence of int
        Numbers of people.
    out : path, optional
        Folder for ``deep_utility.json``.
    jobs : int
        Processes.
    device : str
        Of our nets.
    """
    rows, wanted = [], list(cells(sizes, epsilons, seeds))
    with _mapping(jobs) as mapped:
        found = mapped(partial(measure, device=device), wanted)
        for start in range(0, len(wanted), seeds):
            cell, both = wanted[start], np.array(list(itertools.islice(found, seeds)))
            row = {
                **{name: getattr(cell, name) for name in ("people", "method", "unit", "epsilon")},
                "pair_auc": round(float(both[:, 0].mean()), 4),
                "deviation": round(float(both[:, 0].std(ddof=min(1, seeds - 1))), 4),
                "seconds": round(float(both[:, 1].mean()), 1),
            }
            rows.append(row)
            if progress is not None:
                progress(f"{cell.people} people: {cell.method}, {cell.unit}, {row['pair_auc']}")
    chosen = {name: one._asdict() for name, one in CHOSEN.items()}
    result: dict[str, Any] = {"seeds": seeds, "settings": chosen, "rows": rows}
    write_result(result, out, "deep_utility")
    return result


def choose(people: int = 10_000, epsilon: float = 4.0, draws: int = 2, jobs: int = 1) -> Any:
    """Pair AUC of each net at each setting of `GRID`, best first, on images that `run` never draws."""
    names = [name for name in CHOSEN if not name.startswith("Opacus") or find_spec("opacus")]
    unit = {"net, pairs": "relationship"}
    wanted = [
        Cell(people, name, unit.get(name, "person"), epsilon, OTHERS + draw, taught)
        for name, taught, draw in itertools.product(names, GRID, range(draws))
    ]
    with _mapping(jobs) as mapped:
        aucs = np.array([auc for auc, _ in mapped(measure, wanted)]).reshape(-1, len(GRID), draws)
    return {
        name: sorted(zip(of.mean(axis=1).round(4).tolist(), GRID, strict=True), reverse=True)
        for name, of in zip(names, aucs, strict=True)
    }
