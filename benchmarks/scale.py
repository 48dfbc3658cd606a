"""How time and memory grow from 10^5 to 10^8 pairs: kappa, selection and a whole private fit.

A hundred pairs a person, 64 features. Features lie on disk as a float32 ``.npy`` file, pairs as Parquet; a
process that starts with nothing else opens them and runs `kappa`, `select_pairs` and `DPPMetricLearner.fit`
with its defaults (``select='paths'``, a release: exact noise from the operating system). The fit chooses
pairs and reads kappa for itself, so its time includes both. ``pass`` is one clipped gradient sum over *all*
given pairs, ten directions: what a step with ``select='all'``, or a worker of a cluster, costs.

Time per pair and the exponent are taken from processor time, which a busy machine disturbs less than the
seconds on the clock; both are in the rows. Compiling and importing are not timed, reading the files is.
"""

from __future__ import annotations

import json
import math
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measuring import (
    check_sizes,
    growth,
    in_fresh_process,
    machine,
    peak_mb,
    write_result,
)

SIZES = (10**5, 10**6, 10**7, 10**8)
N_FEATURES = 64
PAIRS_PER_PERSON = 100
DIRECTIONS = 10
REFERENCE = 10**6  # whose time per pair the others are compared with
_CLASSES = 5
_BLOCK = 1 << 18
_PARTS = ("open", "kappa", "select", "fit", "pass")


def run(
    sizes: Sequence[int] = SIZES,
    out: str | Path | None = None,
    scratch: str | Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Measure each size in a fresh process.

    Parameters
    ----------
    sizes : sequence of int
        Numbers of pairs, each at least 1,000.
    out : path, optional
        A folder; ``scale.json`` and ``scale.png`` (needs matplotlib) are written there.
    scratch : path, optional
        Where the files of pairs and features lie for a while (10^8 pairs take 1.2 GB).
    progress : callable, optional
        Told after each size.

    Returns ``rows`` (n_pairs, n_people, n_pairs_used, for each part seconds and cpu_seconds, ns_per_pair
    of the fit, per_reference: that over the 10^6-pair row's, peak_mb), ``exponents`` of each part's time,
    ``machine`` and ``notes``.

    Examples
    --------
    >>> found = run(sizes=[1000])
    >>> [(row["n_pairs"], row["n_people"]) for row in found["rows"]]
    [(1000, 124)]
    """
    check_sizes(sizes, 1000, out)
    rows = []
    for n_pairs in sorted(int(size) for size in sizes):
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            in_fresh_process(__name__, "write_files", folder, str(n_pairs))
            rows.append(in_fresh_process(__name__, "worker", folder))
        if progress is not None:
            progress(f"{n_pairs:,} pairs")
    reference = next((row["ns_per_pair"] for row in rows if row["n_pairs"] == REFERENCE), None)
    for row in rows:
        row["per_reference"] = (
            None if reference is None else round(row["ns_per_pair"] / reference, 2)
        )
    large = [row for row in rows if row["n_pairs"] >= 10**5]  # below, fixed costs hide the growth
    exponents = {
        part: growth([r["n_pairs"] for r in large], [r[f"{part}_cpu_seconds"] for r in large])
        for part in _PARTS
    }
    result = {"rows": rows, "exponents": exponents, "machine": machine(), "notes": _notes()}
    write_result(result, out, "scale", _draw)
    return result


def _notes() -> list[str]:
    return [
        f"{PAIRS_PER_PERSON} pairs a person, {N_FEATURES} features, float32; pairs in Parquet",
        "fit: default plan, select='paths', 100 steps; it includes its own kappa and selection",
        f"pass: one clipped sum over all given pairs, {DIRECTIONS} directions",
        "peak_mb includes the pages of mapped files",
    ]


def write_files(folder: str, n_pairs_text: str) -> None:
    """Write ``people.npy`` and ``pairs.parquet``, block by block; similar means of one class."""
    print(json.dumps({"n_people": _write_files(folder, int(n_pairs_text))}))


def _write_files(folder: str, n_pairs: int) -> int:
    # Few pairs have more people for each, or else there were not so many different pairs.
    n_people = max(n_pairs // PAIRS_PER_PERSON, 4 * math.isqrt(n_pairs))
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, _CLASSES, n_people)
    places = rng.permutation(n_people)
    centres = rng.normal(size=(_CLASSES, N_FEATURES)).astype(np.float32)
    shape = (n_people, N_FEATURES)
    table = np.lib.format.open_memmap(f"{folder}/people.npy", "w+", np.float32, shape)
    for start in range(0, n_people, _BLOCK):
        block = centres[kinds[start : start + _BLOCK]]
        block = block + rng.normal(size=block.shape).astype(np.float32)
        table[start : start + _BLOCK] = 0.99 * block / np.linalg.norm(block, axis=1, keepdims=True)
    table.flush()
    schema = pa.schema([("left", pa.int32()), ("right", pa.int32()), ("label", pa.int8())])
    with pq.ParquetWriter(f"{folder}/pairs.parquet", schema) as writer:
        for start in range(0, n_pairs, _BLOCK):
            count = min(_BLOCK, n_pairs - start)
            at = np.arange(start, start + count)
            left = places[at % n_people]
            right = places[(at + 1 + at // n_people) % n_people]  # each pair once
            label = np.where(kinds[left] == kinds[right], 1, -1)
            columns = [left.astype(np.int32), right.astype(np.int32), label.astype(np.int8)]
            writer.write_table(pa.table(columns, schema=schema))
    return n_people


def worker(folder: str) -> None:
    """Measure in this process and print one JSON row."""
    warnings.simplefilter("ignore")  # a bench's delta is nobody's promise
    with tempfile.TemporaryDirectory() as small:
        _write_files(small, 1000)
        _steps(small)  # imports and compiles
    row = _steps(folder)
    row["peak_mb"] = round(peak_mb())
    row["ns_per_pair"] = round(row["fit_cpu_seconds"] / row["n_pairs"] * 1e9, 1)
    print(json.dumps(row))


def _steps(folder: str) -> dict[str, Any]:
    """Open, kappa, select, fit and one pass; seconds of each."""
    from pairveil.engine.kernels import gradient_sum
    from pairveil.graph.choosing import select_pairs
    from pairveil.graph.kappa import kappa
    from pairveil.learners.contrastive.learner import DPPMetricLearner
    from pairveil.records.ondisk import open_pairs

    row: dict[str, Any] = {}

    def timed(part: str, action: Callable[[], Any]) -> Any:
        begun, cpu_begun = time.perf_counter(), time.process_time()
        answer = action()
        row[f"{part}_seconds"] = round(time.perf_counter() - begun, 4)
        row[f"{part}_cpu_seconds"] = round(time.process_time() - cpu_begun, 4)
        return answer

    data = timed("open", lambda: open_pairs(f"{folder}/people.npy", f"{folder}/pairs.parquet"))
    assert data.labels is not None
    row |= {"n_pairs": data.n_pairs, "n_people": data.n_people, "n_features": data.n_features}
    row["relationship"] = timed("kappa", lambda: kappa(data)).relationship
    timed("select", lambda: select_pairs(data))
    learner = DPPMetricLearner(delta=1e-9)
    row["n_pairs_used"] = timed("fit", lambda: learner.fit(data)).n_pairs_used_
    W = np.random.default_rng(0).normal(size=(DIRECTIONS, data.n_features)) / 8
    options: Any = {"margin": 1.0, "clip": 0.5, "grid": 2.0**-31}
    timed("pass", lambda: gradient_sum(data.features, data.pairs, data.labels, None, W, **options))
    return row


def _draw(result: dict[str, Any], axes: Any) -> str:
    """Processor time against the number of pairs, with each part's fitted exponent."""
    x = [row["n_pairs"] for row in result["rows"]]
    for part in _PARTS[1:]:
        y = [row[f"{part}_cpu_seconds"] for row in result["rows"]]
        axes.plot(x, y, marker="o", label=f"{part} (exponent {result['exponents'][part]})")
    axes.set_ylabel("processor seconds")
    return f"{PAIRS_PER_PERSON} pairs a person, {N_FEATURES} features"
