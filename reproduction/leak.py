"""The paper's Fig. 3 drawn: which pairs an attacker of one target must miss.

Fig. 1's attack (train with both conjectures, compare with the released metric) is `pairveil attack`;
here is only the graph's story, with the numbers computed by ``graph.key_pairs`` and ``graph.kappa``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pairveil.audit.attack import key_pairs
from pairveil.graph.kappa import kappa
from reproduction.cells import Progress, write_table
from reproduction.drawing import panels, require_plots, save
from reproduction.exact_kappa import exact_kappa

NAMES = "stceuab"
EDGES = ("st", "sc", "ce", "et", "cu", "ut", "sa", "ab", "bs")
PLACES = {
    "s": (0.0, 0.0), "t": (2.0, 0.0), "c": (0.6, 1.0), "e": (1.4, 1.3), "u": (1.5, 0.6),
    "a": (-1.0, 0.7), "b": (-1.0, -0.6),
}  # fmt: skip


def fig3() -> list[tuple[int, int]]:
    """The nine pairs of the paper's Fig. 3, people numbered as in ``NAMES``."""
    return [(NAMES.index(edge[0]), NAMES.index(edge[1])) for edge in EDGES]


def run(
    data: str | Path | None = None,  # noqa: ARG001 - every experiment has the same signature
    out: str | Path = ".",
    seeds: int = 1,  # noqa: ARG001
    quick: bool = False,  # noqa: ARG001
    jobs: int = 1,  # noqa: ARG001
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Draw the four panels of Fig. 3 and write what each pair is for.

    Returns ``rows`` (a row a pair: on which path, in the cut, key), ``kappa`` and ``files``.
    """
    require_plots()
    out = Path(out)
    pairs = fig3()
    found = key_pairs(pairs, NAMES.index("s"), NAMES.index("t"))
    on_path = {j: i + 1 for i, path in enumerate(found.paths) for j in path}
    rows = [
        {"pair": edge, "path": on_path.get(j, 0), "cut": j in found.cut, "key": j in found.key}
        for j, edge in enumerate(EDGES)
    ]
    numbers = {**kappa(pairs).to_dict()["kappa"], "exact": exact_kappa(pairs)}
    files = [write_table(out / "leak.csv", rows).name, *save(_figure(found), out / "leak")]
    if progress is not None:
        progress(1, 1, "leak: Fig. 3")
    return {
        "rows": rows,
        "kappa": numbers,
        "key_count": found.count,
        "paper_count": found.paper_count,
        "files": files,
    }


def _figure(found: Any) -> Any:
    figure, axes = panels(4, width=3.0, height=2.6)
    path_of = {j: i for i, path in enumerate(found.paths) for j in path}
    cycle = set(found.key) - set(found.cut)
    stories: tuple[tuple[str, Callable[[int], tuple[str, str]]], ...] = (
        ("I  all pairs", lambda _: ("#444444", "-")),
        ("II  edge-disjoint paths", lambda j: (_path_colour(path_of.get(j)), "-")),
        ("III  pairs that hide the label", lambda j: _missing(j in found.cut)),
        ("IV  and one on the cycle of s", lambda j: _missing(j in found.cut or j in cycle)),
    )
    for ax, (title, style) in zip(axes, stories, strict=True):
        for j, edge in enumerate(EDGES):
            colour, line = style(j)
            (x0, y0), (x1, y1) = PLACES[edge[0]], PLACES[edge[1]]
            ax.plot([x0, x1], [y0, y1], color=colour, ls=line, lw=1.8, zorder=1)
        for name, (x, y) in PLACES.items():
            target = name in "st"
            ax.scatter([x], [y], s=170, color="#0072B2" if target else "#BBBBBB", zorder=2)
            colour = "white" if target else "black"
            ax.text(x, y, name, ha="center", va="center", fontsize=9, color=colour, zorder=3)
        ax.set_title(title, fontsize=9)
        ax.set_axis_off()
    return figure


def _path_colour(path: int | None) -> str:
    return "#DDDDDD" if path is None else ("#D55E00", "#009E73")[path % 2]


def _missing(is_missing: bool) -> tuple[str, str]:
    return ("#D55E00", ":") if is_missing else ("#444444", "-")
