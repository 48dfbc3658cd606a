"""How fast kappa is, and how much memory it takes, beside what else could compute it.

Random graphs with two pairs per person. Each figure comes from a process of its own, so that the
peak memory is that of the method (input included) and of nothing that ran before; compiling and
importing are not timed. Peers are charged for building their graph and finding the biconnected
components only, not for the counting that turns those into kappa: the comparison leans their way.
Every method runs on one core, so time per pair, ratios and the exponent are taken from processor time,
which a busy machine disturbs less than the seconds on the clock; both are in the rows.
"""

from __future__ import annotations

import importlib.util
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import (
    check_sizes,
    growth,
    in_fresh_process,
    machine,
    peak_mb,
    write_result,
)

OURS = "pairveil"
# The largest number of pairs each method is asked for: beyond, it takes many minutes or the memory.
LARGEST = {OURS: 10**9, "igraph": 10**7, "networkx": 10**6, "remove each person": 10**4}
NEEDS = {"igraph": "igraph", "networkx": "networkx"}
SIZES = (10**3, 10**4, 10**5, 10**6, 10**7)
_FIT_FROM = 10**5  # below, fixed costs hide the growth

Pairs = NDArray[np.int32]


def run(
    sizes: Sequence[int] = SIZES, peers: bool = True, out: str | Path | None = None
) -> dict[str, Any]:
    """Measure kappa() and, where they finish, its peers.

    Parameters
    ----------
    sizes : sequence of int
        Numbers of pairs, each at least 100.
    peers : bool
        Measure igraph, networkx and the paper's remove-each-vertex method too.
    out : path, optional
        A folder; ``kappa.json`` and ``kappa.png`` (needs matplotlib) are written there.

    Returns ``rows`` (method, n_people, n_pairs, seconds, cpu_seconds, ns_per_pair, peak_mb, ratio to
    ours, relationship), ``exponent`` of our time in the number of pairs (log-log fit from 10^5 pairs on;
    None with fewer than two sizes), ``machine`` and ``notes``.

    Examples
    --------
    >>> found = run(sizes=[1000], peers=False)
    >>> [(row["method"], row["n_pairs"], row["ratio"]) for row in found["rows"]]
    [('pairveil', 1000, 1.0)]
    """
    check_sizes(sizes, 100, out)
    methods, notes = [OURS], []
    for method in list(LARGEST)[1:] if peers else []:
        if method in NEEDS and importlib.util.find_spec(NEEDS[method]) is None:
            notes.append(f"{method} is not installed: pip install {NEEDS[method]}")
        else:
            methods.append(method)
    rows = []
    for n_pairs in sorted(sizes):
        measured = [_measure(m, int(n_pairs)) for m in methods if n_pairs <= LARGEST[m]]
        for row in measured:
            row["ratio"] = round(row["cpu_seconds"] / measured[0]["cpu_seconds"], 2)
        rows += measured
    notes += [f"{m}: asked up to {LARGEST[m]:,} pairs" for m in methods[1:]]
    result = {"rows": rows, "exponent": _exponent(rows), "machine": machine(), "notes": notes}
    write_result(result, out, "kappa", _draw)
    return result


def _measure(method: str, n_pairs: int) -> dict[str, Any]:
    """One method at one size, in a fresh process."""
    return in_fresh_process(__name__, "worker", method, str(n_pairs))


def worker(method: str, n_pairs_text: str) -> None:
    """Measure in this process and print one JSON row; the best of up to five runs in two seconds."""
    n_pairs = int(n_pairs_text)
    n_people = n_pairs // 2
    solve = {
        OURS: _ours,
        "igraph": _igraph,
        "networkx": _networkx,
        "remove each person": _remove_each,
    }[method]
    few = 10_000 if method == OURS else 100  # ours leaves a handful of pairs to Python
    solve(random_graph(few // 2, few), few // 2)  # imports and compiles
    pairs = random_graph(n_people, n_pairs)
    seconds = cpu_seconds = float("inf")
    spent = 0.0
    for _ in range(5):
        begun, cpu_begun = time.perf_counter(), time.process_time()
        answer = solve(pairs, n_people)
        took, cpu_took = time.perf_counter() - begun, time.process_time() - cpu_begun
        seconds, cpu_seconds, spent = min(seconds, took), min(cpu_seconds, cpu_took), spent + took
        peak = peak_mb()  # before the answer is unpacked, which is not part of the method
        if spent > 2:
            break
    row = {
        "method": method,
        "n_people": n_people,
        "n_pairs": n_pairs,
        "seconds": round(seconds, 6),
        "cpu_seconds": round(cpu_seconds, 6),
        "ns_per_pair": round(cpu_seconds / n_pairs * 1e9, 1),
        "peak_mb": round(peak),
        "relationship": answer(),
    }
    print(json.dumps(row))


def random_graph(n_people: int, n_pairs: int) -> Pairs:
    """Uniform pairs without self pairs, drawn in place: 8 bytes a pair and no copy.

    Examples
    --------
    >>> random_graph(50, 100).shape
    (100, 2)
    """
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, n_people, size=(n_pairs, 2), dtype=np.int32)
    self_pairs = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    pairs[self_pairs, 1] = (pairs[self_pairs, 0] + 1) % n_people
    return pairs


# Each method returns a function that gives the relationship-level kappa: all must agree.


def _ours(pairs: Pairs, _: int) -> Callable[[], int]:
    """One linear pass; the number of people is found, not told."""
    from pairveil.graph.kappa import kappa

    found = kappa(pairs)
    return lambda: found.relationship


def _igraph(pairs: Pairs, n_people: int) -> Callable[[], int]:
    """igraph's compiled biconnected components."""
    import igraph

    blocks = igraph.Graph(n=n_people, edges=pairs).biconnected_components()
    return lambda: _second_largest(pairs, blocks, n_people)


def _networkx(pairs: Pairs, n_people: int) -> Callable[[], int]:
    """networkx's pure Python biconnected components."""
    import networkx

    graph = networkx.Graph()
    graph.add_edges_from(pairs.tolist())
    blocks = [list(block) for block in networkx.biconnected_components(graph)]
    return lambda: _second_largest(pairs, blocks, n_people)


def _remove_each(pairs: Pairs, n_people: int) -> Callable[[], int]:
    """The paper's way: remove each person in turn and count the components (compiled, scipy)."""
    from scipy import sparse
    from scipy.sparse import csgraph

    one = np.ones(len(pairs), dtype=np.int8)
    matrix = sparse.csr_matrix((one, (pairs[:, 0], pairs[:, 1])), shape=(n_people, n_people))
    whole = csgraph.connected_components(matrix, directed=False)[0]
    b = np.bincount(pairs.ravel(), minlength=n_people)
    for v in range(n_people):
        rest = (pairs[:, 0] != v) & (pairs[:, 1] != v)
        ends = pairs[rest]
        without = sparse.csr_matrix((one[rest], (ends[:, 0], ends[:, 1])), shape=matrix.shape)
        # v itself stays behind as a component of its own, hence the 1.
        gained = csgraph.connected_components(without, directed=False)[0] - 1 - whole
        b[v] -= gained if b[v] else 0
    return lambda: int(np.sort(b)[-2])


def _second_largest(pairs: Pairs, blocks: Any, n_people: int) -> int:
    """The second largest degree - blocks + 1."""
    b = np.bincount(pairs.ravel(), minlength=n_people)
    b += b > 0
    for block in blocks:
        b[block] -= 1
    return int(np.sort(b)[-2])


def _exponent(rows: list[dict[str, Any]]) -> float | None:
    """Slope of log time over log pairs, ours only: 1 is linear."""
    ours = [r for r in rows if r["method"] == OURS and r["n_pairs"] >= _FIT_FROM]
    return growth([r["n_pairs"] for r in ours], [r["cpu_seconds"] for r in ours])


def _draw(result: dict[str, Any], axes: Any) -> str:
    """Time per pair against the number of pairs: a flat line is a linear method."""
    for method in dict.fromkeys(row["method"] for row in result["rows"]):
        mine = [row for row in result["rows"] if row["method"] == method]
        x, y = ([row[key] for row in mine] for key in ("n_pairs", "ns_per_pair"))
        axes.plot(x, y, marker="o", label=method)
    axes.set_ylabel("nanoseconds per pair")
    return "Relationship-level kappa of a random graph, two pairs per person"
