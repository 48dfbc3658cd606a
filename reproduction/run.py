"""`python -m reproduction`: run experiments, write tables and figures, decide the paper's claims."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pairveil import __version__
from pairveil.errors import InputError
from pairveil.files import write_file
from reproduction import accuracy, leak, mechanisms, parameters, steelman, toy
from reproduction.cells import Progress, write_whole
from reproduction.claims import decide_all, page
from reproduction.data import available
from reproduction.data import download as fetch_benchmarks
from reproduction.drawing import require_plots

EXPERIMENTS: dict[str, Callable[..., dict[str, Any]]] = {
    "toy": toy.run,
    "accuracy": accuracy.run,
    "steelman": steelman.run,
    "mechanisms": mechanisms.run,
    "parameters": parameters.run,
    "leak": leak.run,
}


def reproduce(
    names: str | Sequence[str],
    data: str | Path | None = None,
    out: str | Path = "reproduce",
    seeds: int = 20,
    *,
    quick: bool = False,
    jobs: int = 2,
    progress: Progress | None = None,
    claims_page: str | Path | None = None,
    download: bool = False,
) -> dict[str, Any]:
    """Run experiments by name ("all" for every one) and write what they say about the claims.

    Parameters
    ----------
    names : str or sequence of str
        ``toy``, ``accuracy``, ``steelman``, ``mechanisms``, ``parameters``, ``leak`` or ``all``.
    data : path, optional
        Folder of benchmark files; default PAIRVEIL_DATA, else the embedded tables.
    out : path
        Tables, figures, finished cells, claims.json and paper-claims.md. A second run into the same
        folder measures only what is missing.
    seeds : int
        Repeats (of ``steelman`` at most five).
    quick : bool
        Small sizes: a check that everything runs, not a measurement.
    jobs : int
        Worker processes.
    progress : callable (done, total, text), optional
    claims_page : path, optional
        Write the Markdown page here too, and the figures it names into a folder beside it.
    download : bool
        Fetch Adult and Bank from OpenML into ``data`` first, where they are missing.

    Returns ``claims``, ``files`` and ``setting``.
    """
    chosen = _chosen(names)
    if seeds < 1 or jobs < 1:
        raise InputError("seeds and jobs must be at least 1")
    require_plots()
    if download:
        if data is None:
            raise InputError("name the data folder that Adult and Bank are to be fetched into")
        fetch_benchmarks(data)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    results = {
        name: EXPERIMENTS[name](data, folder, seeds, quick, jobs, progress) for name in chosen
    }
    about = f"Data sets: {', '.join(available(data))}; pairveil {__version__}" + (
        "; quick sizes, not a measurement" if quick else ""
    )
    ran = {
        name: len({row["seed"] for row in results[name]["rows"]})
        for name in chosen
        if name != "leak"
    }
    claims, counts = _with_earlier(decide_all(results), ran, folder / "claims.json", about)
    text = ", ".join(f"{name} {n}" for name, n in counts.items())
    setting = f"{about}; repeats: {text or 'none'}."
    saved = {"about": about, "repeats": counts, "claims": claims}
    write_whole(folder / "claims.json", json.dumps(saved, indent=1))
    write_whole(folder / "paper-claims.md", page(claims, setting))
    if claims_page is not None:
        _publish(Path(claims_page), claims, setting, folder)
    files = [file for result in results.values() for file in result["files"]]
    return {
        "out": str(folder),
        "setting": setting,
        "claims": claims,
        "files": [*files, "claims.json", "paper-claims.md"],
    }


def _publish(target: Path, claims: list[dict[str, Any]], setting: str, drawn: Path) -> None:
    """The page elsewhere, with the figures it names in a folder beside it."""
    beside = target.with_name(f"{target.stem}-figures")
    beside.mkdir(parents=True, exist_ok=True)
    for name in sorted({claim["figure"] for claim in claims} - {""}):
        write_file(beside / name, (drawn / name).read_bytes())
    write_whole(target, page(claims, setting, figures=f"{beside.name}/"))


def _chosen(names: str | Sequence[str]) -> list[str]:
    wanted = [names] if isinstance(names, str) else list(names)
    if "all" in wanted:
        return list(EXPERIMENTS)
    unknown = [name for name in wanted if name not in EXPERIMENTS]
    if unknown or not wanted:
        raise InputError(f"choose experiments from {', '.join(EXPERIMENTS)} or all")
    return wanted


def _with_earlier(
    claims: list[dict[str, Any]], ran: dict[str, int], path: Path, about: str
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Claims of experiments not run now keep what an earlier run on the same data found.

    ``ran`` holds the repeats of each experiment run now; the repeats of all come back.
    """
    earlier = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if earlier.get("about") != about:
        return claims, ran
    known = {claim["id"]: claim for claim in earlier["claims"]}
    merged = []
    for claim in claims:
        before = known.get(claim["id"], claim)
        now = claim if not claim["needs"] or claim["needs"] in ran else before
        merged.append({**now, "best_case": claim["best_case"] or before["best_case"]})
    return merged, {**earlier["repeats"], **ran}
