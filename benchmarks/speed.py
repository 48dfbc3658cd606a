"""How long a private epoch takes, beside the same epoch without noise, numpy, the machine's floor and peers.

An epoch is K / batch steps; a step draws a Poisson sample, sums clipped gradients, adds noise and updates W.

- *pairveil*: the engine itself, float32 features, exact discrete noise from operating-system entropy.
- *full batch*: one step over all pairs, as the default plan takes it, with its noise.
- *without noise*: the same engine and the same steps without noise, which is the non-private learner.
- *numpy*: the closed form in float32 with numpy's own (not exact, not for release) normal noise.
- *floor*: forming all differences once, and the two products at the rate of this machine's best sgemm.

All on one core, in turn, in one process: ratios hold, times follow the machine. The best of the repeats
counts, in processor time. Peers (Opacus, metric-learn) run one after the other in an environment of
their own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from benchmarks import speed_peers
from benchmarks.measuring import in_fresh_process, last_object, machine, write_result
from benchmarks.speed_peers import PEERS, SHAPES, Shape
from pairveil.errors import InputError, PairveilError
from pairveil.records.pairset import PairSet

OURS, FULL, NO_NOISE = "pairveil", "full batch", "without noise"
NUMPY, FLOOR = "numpy", "floor"
CLIP, MARGIN, NOISE, RATE = 0.1, 1.0, 1.0, 0.01
_REPEATS = 3
# metric-learn 0.7 passes an argument that scikit-learn 1.8 no longer takes.
_PACKAGES = ("torch==2.13.0", "opacus", "metric-learn", "scikit-learn<1.8")

FloatArray = NDArray[np.float32]


@dataclass(frozen=True)
class _Case:
    """What every method is given."""

    shape: Shape
    data: PairSet
    start: NDArray[np.float64]


def run(
    shapes: Sequence[str] = tuple(SHAPES),
    peers: bool = False,
    environment: str | Path | None = None,
    out: str | Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Measure the epochs of some shapes.

    Parameters
    ----------
    shapes : sequence of str
        Names in `SHAPES`.
    peers : bool
        Install Opacus and metric-learn into an environment of their own and measure them too.
    environment : path, optional
        Where that environment is or will be made; by default a folder that is removed afterwards.
    out : path, optional
        A folder; ``speed.json`` is written there.
    progress : callable, optional
        Told after each part.

    Returns ``rows`` (shape, method, cpu_seconds of an epoch, ratio to ours), ``limits`` (per shape: ours
    over the epoch without noise, ours and the full batch over the floor), ``machine`` and ``notes``.
    """
    unknown = [name for name in shapes if name not in SHAPES]
    if unknown or not shapes:
        raise InputError(f"shapes must be among {', '.join(SHAPES)}")
    rows: list[dict[str, Any]] = []
    for name in shapes:
        found = in_fresh_process(__name__, "worker", name, one_core=True)
        rows += [{"shape": name, "method": m, "cpu_seconds": s} for m, s in found.items()]
        if progress is not None:
            progress(f"shape {name}")
    notes = ["one core, processor time, best of the repeats; peers: some steps, scaled to an epoch"]
    if peers:
        found_rows, said = _measure_peers(shapes, environment, progress)
        rows, notes = rows + found_rows, notes + said
    result = {"rows": rows, "limits": _ratios(rows), "machine": machine(), "notes": notes}
    write_result(result, out, "speed")
    return result


def _ratios(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Write each row's ratio to ours into it; return what the limits are about."""
    limits: dict[str, dict[str, float]] = {}
    for name in dict.fromkeys(row["shape"] for row in rows):
        mine = {row["method"]: row for row in rows if row["shape"] == name}
        ours = mine[OURS]["cpu_seconds"]
        for row in mine.values():
            row["ratio"] = round(row["cpu_seconds"] / ours, 3)
        limits[name] = {
            "private_over_no_noise": round(ours / mine[NO_NOISE]["cpu_seconds"], 2),
            "private_over_floor": round(ours / mine[FLOOR]["cpu_seconds"], 2),
            "full_batch_over_floor": round(
                mine[FULL]["cpu_seconds"] / mine[FLOOR]["cpu_seconds"], 2
            ),
            "no_noise_over_floor": round(
                mine[NO_NOISE]["cpu_seconds"] / mine[FLOOR]["cpu_seconds"], 2
            ),
        }
    return limits


def worker(name: str) -> None:
    """Measure one shape in this process; print seconds of an epoch by method."""
    tiny = _case(SHAPES["tiny"])
    methods: dict[str, Callable[[_Case], object]] = {
        OURS: lambda case: _engine_epoch(case, NOISE),
        FULL: lambda case: _engine_epoch(case, NOISE, steps=1),
        NO_NOISE: lambda case: _engine_epoch(case, 0.0),
        NUMPY: _numpy_epoch,
        FLOOR: _gather_all,
    }
    for method in methods.values():
        method(tiny)  # imports and compiles
    case = _case(SHAPES[name])
    best = dict.fromkeys(methods, float("inf"))
    for _ in range(_REPEATS):  # in turn, so that a busy minute disturbs all alike
        for label, method in methods.items():
            begun = time.process_time()
            method(case)
            best[label] = min(best[label], time.process_time() - begun)
    shape = case.shape
    best[FLOOR] += 4.0 * shape.pairs * shape.features * shape.directions / _sgemm_rate()
    print(json.dumps({label: round(seconds, 5) for label, seconds in best.items()}))


def _case(shape: Shape) -> _Case:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(shape.pairs, shape.features)).astype(np.float32)
    features /= np.linalg.norm(features, axis=1, keepdims=True) * 1.01
    left = rng.integers(0, shape.pairs, shape.pairs)
    right = (left + rng.integers(1, shape.pairs, shape.pairs)) % shape.pairs
    labels = rng.choice(np.array([-1, 1], dtype=np.int8), shape.pairs)
    start = rng.normal(size=(shape.directions, shape.features)) / np.sqrt(shape.features)
    pairs = np.stack([left, right], axis=1).astype(np.int32)
    return _Case(shape, PairSet(features, pairs, labels), start)


def _engine_epoch(case: _Case, noise: float, steps: int | None = None) -> NDArray[np.float64]:
    """One epoch by the engine, as `DPPMetricLearner` runs it."""
    from pairveil.engine.engine import Engine
    from pairveil.engine.gradients import SetGradient
    from pairveil.engine.losses import ContrastiveLoss
    from pairveil.privacy.mechanisms import Query
    from pairveil.privacy.noise import TrustedNoise

    shape, W = case.shape, case.start
    engine = Engine(case.data, TrustedNoise())
    steps = steps or shape.steps
    rate = 1.0 if steps == 1 else shape.batch / shape.pairs
    query = Query("gradients", W.shape, noise, steps, sample_rate=rate)
    gradient = SetGradient(W, ContrastiveLoss(MARGIN), CLIP)
    return engine.descend(query, gradient, RATE / shape.batch, steps)


def _numpy_epoch(case: _Case) -> FloatArray:
    """The closed form in float32: two products, row norms, numpy's normal noise."""
    shape, rng = case.shape, np.random.default_rng(0)
    W, (features, pairs, labels) = case.start.astype(np.float32), _arrays(case)
    for _ in range(shape.steps):
        rows = rng.integers(0, shape.pairs, rng.poisson(shape.batch))
        ends = pairs[rows]
        dx = features[ends[:, 0]] - features[ends[:, 1]]
        P = dx @ W.T
        D = np.sqrt(np.einsum("ij,ij->i", P, P))
        c = np.where(labels[rows] > 0, 1.0, np.minimum(D - MARGIN, 0.0) / np.maximum(D, 1e-9))
        norm = np.abs(c) * D * np.sqrt(np.einsum("ij,ij->i", dx, dx))
        s = (c * np.minimum(1.0, CLIP / np.maximum(norm, 1e-12))).astype(np.float32)
        G = (s[:, None] * P).T @ dx
        G += np.float32(NOISE * CLIP) * rng.standard_normal(G.shape, dtype=np.float32)
        W -= np.float32(RATE / shape.batch) * G
    return W


def _arrays(case: _Case) -> tuple[FloatArray, NDArray[np.int32], NDArray[np.int8]]:
    assert case.data.labels is not None
    return case.data.features, case.data.pairs, case.data.labels


def _gather_all(case: _Case) -> FloatArray:
    room = np.empty((128, case.shape.features), dtype=np.float32)
    _gather(*_arrays(case)[:2], room)
    return room


@njit(cache=True, nogil=True)
def _gather(features, pairs, room):  # type: ignore[no-untyped-def]
    """Form every difference once, into a small buffer."""
    for row in range(pairs.shape[0]):
        left, right, to = pairs[row, 0], pairs[row, 1], row % room.shape[0]
        for j in range(features.shape[1]):
            room[to, j] = features[left, j] - features[right, j]


def _sgemm_rate() -> float:
    """Floating-point operations a second of a large float32 product: the best of five."""
    n = 1024
    a = np.ones((n, n), dtype=np.float32)
    best = float("inf")
    for _ in range(5):
        begun = time.process_time()
        a @ a
        best = min(best, time.process_time() - begun)
    return 2.0 * n**3 / best


def _measure_peers(
    shapes: Sequence[str], environment: str | Path | None, progress: Callable[[str], None] | None
) -> tuple[list[dict[str, Any]], list[str]]:
    """Rows of the peers, and what could not be measured."""
    rows, notes = [], []
    with tempfile.TemporaryDirectory() as temporary:
        python = _environment(
            Path(temporary) / "peers" if environment is None else Path(environment)
        )
        for name in shapes:
            for method in PEERS:
                try:
                    found = _peer(python, name, method)
                except PairveilError as error:
                    notes.append(str(error))
                    continue
                rows.append({"shape": name, "method": method, "cpu_seconds": found["seconds"]})
                if progress is not None:
                    progress(f"shape {name}, {method}")
    return rows, notes


def _environment(folder: Path) -> Path:
    """The Python of an environment with the peers; made where there is none."""
    python = folder / "bin" / "python"
    if not python.exists():
        for command in (
            [sys.executable, "-P", "-m", "venv", str(folder)],
            [str(python), "-P", "-m", "pip", "install", "-q", *_PACKAGES],
        ):
            if subprocess.run(command, capture_output=True, check=False).returncode != 0:
                raise InputError(f"the peers could not be installed: {' '.join(_PACKAGES)}")
    return python


def _peer(python: Path, name: str, method: str) -> dict[str, Any]:
    command = [str(python), str(speed_peers.__file__), name, method]
    return last_object(command, f"{method} failed on shape {name}", one_core=True)
