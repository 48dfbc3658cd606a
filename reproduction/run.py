"""`python -m reproduction`: fill the cells of the figures on each graph, decide every claim, write
page and figures.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pairveil import __version__
from pairveil.errors import InputError
from pairveil.files import write_file
from reproduction.cells import Key, Progress, Rows, run_cells, write_table, write_whole
from reproduction.claims import decide_all
from reproduction.data import available, load
from reproduction.data import download as fetch_benchmarks
from reproduction.defence import choices, defences
from reproduction.drawing import FIGURES as DRAWN
from reproduction.drawing import require_plots, save
from reproduction.experiments import (
    FIGURES,
    FULL,
    GRAPHS,
    QUICK,
    Setting,
    keys_of,
    measure,
)
from reproduction.field import bounds_table, node_dp
from reproduction.page import page, results
from reproduction.protocol import GraphKind
from reproduction.steelman import ON_FIGURES, Effort, Seeds, defend, search

EXPERIMENTS = (*FIGURES, "peaks", "ours", "field", "steelman", "reader")
KEPT, FULL_TABLE, PAGE = "claims.json", "RESULTS.md", "paper-claims.md"
#: Repeats of the bounds beside each other: they differ by more than repeats do.
FEW = 5


def reproduce(
    names: str | Sequence[str] = "all",
    data: str | Path | None = None,
    out: str | Path = "reproduce",
    seeds: int = 20,
    *,
    graphs: Sequence[GraphKind] = GRAPHS,
    quick: bool = False,
    jobs: int = 2,
    progress: Progress | None = None,
    record: str | Path | None = None,
    claims_page: str | Path | None = None,
    download: bool = False,
) -> dict[str, Any]:
    """Run experiments by name ("all" for every one) and write what they say about the claims.

    Parameters
    ----------
    names : str or sequence of str
        ``toy``, ``accuracy``, ``mechanisms``, ``parameters``, ``peaks``, ``ours``, ``field``, ``steelman``,
        ``reader`` or ``all``; ``page`` runs no experiment and writes the page anew from what is kept.
    data : path, optional
        Folder of benchmark files; default PAIRVEIL_DATA, else the embedded tables.
    out : path
        Tables, figures, finished cells, claims.json, RESULTS.md and paper-claims.md. A second run into the
        same folder measures only what is missing, and keeps the claims of experiments that it did not run.
    seeds : int
        Repeats: people, pairs, start and noise all change.
    graphs : sequence of {"random", "even"}
        The readings of the paper's pair graph (`protocol.draw_graph`).
    quick : bool
        400 people a set and a short search: a check that everything runs, not a measurement.
    jobs : int
        Worker processes.
    progress : callable (done, total, text), optional
    record : path, optional
        Folder to keep the full table in as well: RESULTS.md, its figures and claims.json, from which a later
        run keeps what it does not run itself.
    claims_page : path, optional
        Write the short page here too.
    download : bool
        Fetch Adult and Bank from OpenML into ``data`` first, where they are missing.

    Returns ``claims``, ``steelman``, ``files`` and ``setting``.
    """
    chosen = _chosen(names)
    if seeds < 1 or jobs < 1:
        raise InputError("seeds and jobs must be at least 1")
    unknown = [graph for graph in graphs if graph not in GRAPHS]
    if unknown or not graphs:
        raise InputError(f"choose graphs from {', '.join(GRAPHS)}")
    require_plots()
    if download:
        if data is None:
            raise InputError("name the data folder that Adult and Bank are to be fetched into")
        fetch_benchmarks(data)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    sets = {name: len(load(name, data).classes) for name in available(data)}
    size, where = (QUICK if quick else FULL), str(data) if data is not None else None
    fill = partial(run_cells, measure, out=folder, data=where, jobs=jobs, progress=progress)

    def rows_of(
        figure: str, setting: Setting, of: Sequence[int], keep: Callable[[Key], bool] = bool
    ) -> Rows:
        return fill([key for key in keys_of(figure, setting, sets, of, size) if keep(key)])

    reruns: dict[str, dict[str, Rows]] = {
        figure: {graph: rows_of(figure, Setting(graph=graph), range(seeds)) for graph in graphs}
        for figure in (*FIGURES, "peaks")
        if figure in chosen
    }
    found: dict[str, Any] = {
        "about": {
            "sets": sets, "version": __version__, "quick": quick, "people": size.people,
        },
        "claims": decide_all(reruns),
        "steelman": None, "defence": {}, "field": None, "choices": [],
        "readings": defences(),
        "scores": _scores(reruns.get("accuracy", {})),
    }  # fmt: skip
    if "ours" in chosen:
        found["scores"] += _scores({"paths": rows_of("ours", Setting(), range(seeds))})
    if "field" in chosen:
        few = range(min(seeds, FEW))
        rows = [row for graph in graphs for row in rows_of("bounds", Setting(graph=graph), few)]
        found["field"] = {"noise": node_dp(), "bounds": bounds_table(rows)}
    if "reader" in chosen:
        found["choices"] = choices(Seeds.of(seeds, Effort()).report, rows_of)
    files = _files(reruns, folder)
    kept = [Path(record) / KEPT] if record is not None else []
    found = _with_earlier(found, [folder / KEPT, *kept])
    if "steelman" in chosen:
        effort = Effort(3, 1, 1, 1) if quick else Effort()
        found["steelman"], tried = search(seeds, rows_of, sets, effort=effort)
        unmet = {claim["id"] for claim in found["claims"] if claim["verdict"] != "holds"}
        own = [c for c in ON_FIGURES if c.id in unmet and (c.only or c.figure == "toy")]
        found["defence"] = defend(own, seeds, rows_of, tried, effort)
    _write(found, folder)
    write_whole(folder / PAGE, page(found))
    if record is not None:
        _write(found, Path(record), "figures/")
        (Path(record) / "figures").mkdir(exist_ok=True)
        for name in (f for f in files if f.endswith(".png")):
            write_file(Path(record) / "figures" / name, (folder / name).read_bytes())
    if claims_page is not None:
        write_whole(Path(claims_page), page(found))
    return {"out": str(folder), **found, "files": [*files, KEPT, FULL_TABLE, PAGE]}


def _write(found: dict[str, Any], folder: Path, figures: str = "") -> None:
    """What was found, and the full table of it; ``figures`` is where the drawings lie, seen from there."""
    write_whole(folder / KEPT, json.dumps(found, indent=1))
    write_whole(folder / FULL_TABLE, results(found, figures))


def _chosen(names: str | Sequence[str]) -> list[str]:
    wanted = [names] if isinstance(names, str) else list(names)
    if "all" in wanted or not wanted:
        return list(EXPERIMENTS)
    if any(name not in (*EXPERIMENTS, "page") for name in wanted):
        raise InputError(f"choose experiments from {', '.join(EXPERIMENTS)}, all or page")
    return wanted


def _files(reruns: Mapping[str, Mapping[str, Rows]], folder: Path) -> list[str]:
    """A table of all rows of a figure, and a drawing for each graph."""
    files = []
    for figure, by_graph in reruns.items():
        rows = [row for part in by_graph.values() for row in part]
        files.append(write_table(folder / f"{figure}.csv", rows).name)
        for graph, part in by_graph.items():
            if figure in DRAWN:
                files += save(DRAWN[figure](part), folder / f"{figure}-{graph}")
    return files


def _scores(by_graph: Mapping[str, Rows]) -> Rows:
    """Mean scores with their intervals: what the page's table of pair AUC shows."""
    from reproduction.verdicts import mean_and_half_width, pick

    table: Rows = []
    for graph, rows in by_graph.items():
        cells = dict.fromkeys((r["data"], r["method"], r["epsilon"]) for r in rows)
        for name, method, epsilon in cells:
            mine = pick(rows, data=name, method=method, epsilon=epsilon)
            line = {"graph": graph, "data": name, "method": method, "epsilon": epsilon}
            for column in ("pair_auc", "knn_accuracy"):
                mean, half = mean_and_half_width([row[column] for row in mine])
                line |= {column: mean, f"{column}_half": float(np.nan_to_num(half))}
            table.append({**line, "repeats": len(mine)})
    return table


def _with_earlier(found: dict[str, Any], paths: Sequence[Path]) -> dict[str, Any]:
    """What was not run now is kept from the last run of the same size on the same data."""
    path = next((path for path in paths if path.exists()), None)
    earlier = json.loads(path.read_text(encoding="utf-8")) if path is not None else {}
    if earlier.get("about") != found["about"]:
        return found
    before = {claim["id"]: claim for claim in earlier["claims"]}
    claims = [
        before.get(claim["id"], claim) if claim["verdict"] == "not run" else claim
        for claim in found["claims"]
    ]
    ran = {(row["graph"], row["data"]) for row in found["scores"]}
    scores = [row for row in earlier["scores"] if (row["graph"], row["data"]) not in ran]
    parts = ("steelman", "defence", "field", "choices")
    kept = {name: found[name] or earlier.get(name) or found[name] for name in parts}
    return {**found, **kept, "claims": claims, "scores": scores + found["scores"]}
