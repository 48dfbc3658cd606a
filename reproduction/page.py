"""The page of claims (docs/paper-claims.md), written from what was found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reproduction.claims import KINDS
from reproduction.experiments import GRAPHS, OPTIONS, Setting

TITLES = {
    "privacy": "Privacy",
    "theory": "Theory",
    "figures": "Figures",
    "remarks": "Remarks",
    "ours": "Our own checks (not counted)",
}
#: What came of an attempt to overturn each verdict from the authors' side.
SECOND_READER = Path(__file__).with_name("second-reader.md")

#: What the page says first.
INTRODUCTION = Path(__file__).with_name("introduction.md")


def page(found: dict[str, Any], figures: str = "") -> str:
    """The whole page; ``figures`` is where the drawings lie, seen from it."""
    claims, steelman = found["claims"], found["steelman"]
    base = str(Setting()).split(", ", 1)[1]
    parts = [
        "# The paper's claims, rerun",
        "",
        INTRODUCTION.read_text(encoding="utf-8").format(base=base),
        _about(found),
        "",
    ]
    parts += ["## Count", "", *_count(claims), ""]
    for kind in KINDS:
        mine = [claim for claim in claims if claim["kind"] == kind]
        computed = [claim for claim in mine if not claim["figure"]]
        rerun = [claim for claim in mine if claim["figure"]]
        parts += [f"## {TITLES[kind]}", ""]
        if computed:
            parts += [
                "By computation: no graph, setting or repeats, but those that a row names.",
                "",
            ]
            parts += _table(
                ("claim", "the paper says", "found", "verdict"),
                [(c["id"], f"{c['where']}: {c['sentence']}", c["on"][""]["measured"], f"**{c['verdict']}**")
                 for c in computed],
            )  # fmt: skip
        if rerun:
            parts += _reruns(rerun, steelman)
        if kind == "figures":
            drawn = {c["figure"]: sorted(c["on"]) for c in rerun if c["on"]}
            names = [f"{figure}-{graph}" for figure, of in drawn.items() for graph in of]
            parts += ["Drawings: " + ", ".join(f"[{n}]({figures}{n}.png)" for n in names), ""]
    parts += [*_steelman(steelman), *_scores(found["scores"])]
    if SECOND_READER.exists():
        parts += [SECOND_READER.read_text(encoding="utf-8").rstrip(), ""]
    return "\n".join(parts)


def _about(found: dict[str, Any]) -> str:
    about = found["about"]
    sets = ", ".join(about["sets"])
    text = f"Data sets: {sets}; pairveil {about['version']}."
    if "ipums_us" not in about["sets"]:
        text += (
            " IPUMS-US, the fourth set, is `dataset/IPUMS-US.dat` of the public repository "
            "ppmlguy/DP-AGD; put into the "
            "data folder it is read and judged."
        )
    if about["quick"]:
        text += f" **Quick sizes ({about['people']} people a set), not a measurement.**"
    settings = 1 + (found["steelman"]["tried"] - 1 if found["steelman"] else 0)
    return text + f" Settings tried in all: {settings}, on {' and '.join(GRAPHS)} graphs."


def _count(claims: Sequence[dict[str, Any]]) -> list[str]:
    """A line a kind: what the paper says, without our own checks."""
    kinds = [kind for kind in KINDS if kind != "ours"]
    names = list(dict.fromkeys(c["verdict"] for c in claims if c["kind"] in kinds))
    rows = []
    for kind in kinds:
        mine = [c["verdict"] for c in claims if c["kind"] == kind]
        rows.append((TITLES[kind], str(len(mine)), *(str(mine.count(name)) for name in names)))
    return _table(("", "claims", *names), rows)


def _reruns(claims: Sequence[dict[str, Any]], steelman: dict[str, Any] | None) -> list[str]:
    """A row a claim: each graph's finding at the base setting, the verdict, and the steelman's."""
    graphs = [graph for graph in GRAPHS if any(graph in c["on"] for c in claims)]
    rows = []
    for c in claims:
        on = [_on(c["on"].get(graph)) for graph in graphs]
        best = steelman["findings"].get(c["id"]) if steelman else None
        rows.append(
            (c["id"], f"{c['where']}: {c['sentence']}", *on, f"**{c['verdict']}**", _on(best))
        )
    heads = (f"{graph} graph, base setting" for graph in graphs)
    return _table(("claim", "the paper says", *heads, "verdict", "steelman's setting"), rows)


def _on(finding: dict[str, Any] | None) -> str:
    if finding is None:
        return "not run"
    if finding["verdict"] == "not testable here":
        return str(finding["measured"])
    return f"*{finding['verdict']}*, {finding['repeats']} repeats: {finding['measured']}"


def _steelman(found: dict[str, Any] | None) -> list[str]:
    if found is None:
        return []
    open_ = "; ".join(f"{name}: {', '.join(map(str, values))}" for name, values in OPTIONS.items())
    judged = [
        f["verdict"] for f in found["findings"].values() if f["verdict"] != "not testable here"
    ]
    counts = ", ".join(f"{judged.count(v)} {v}" for v in dict.fromkeys(judged))
    return [
        "## Steelman",
        "",
        f"Which single setting meets most of the figures? The search climbed one option after the other "
        f"({open_}; d' 0 is d) "
        f"from the even graph's base: {found['tried']} of all combinations, whole data sets, "
        f"{found['chosen_on']} "
        f"repeats of the first half of the seeds, epsilons 0.5 and 4 of Fig. 8 and 1 of Fig. 9. Chosen: "
        f"**{found['setting']}** "
        f"({found['met']} claims on the right side in the mean). Reported in the tables on the "
        f"{found['reported_on']} repeats "
        f"of the other half: {counts}.",
        "",
    ]  # fmt: skip


def _scores(scores: Sequence[dict[str, Any]]) -> list[str]:
    """Pair AUC at epsilon 4 on both graphs, and of pairveil on paths of its own."""
    if not scores:
        return []
    at = {(r["data"], r["graph"], r["method"], r["epsilon"]): r for r in scores}
    columns: list[tuple[str, str, str, str | float]] = [
        ("Euclid", "random", "euclid", "none"),
        ("untrained", "random", "untrained", "none"),
    ]
    for graph in GRAPHS:
        columns += [
            (f"NonPriv, {graph}", graph, "nonpriv", "none"),
            (f"DPP-S, {graph}", graph, "dpp-s", 4.0),
        ]
    columns += [(f"pairveil, epsilon {e:g}", "paths", "ours-relationship", e) for e in (1.0, 4.0)]
    rows = []
    for name in dict.fromkeys(r["data"] for r in scores):
        cells = [at.get((name, *column[1:])) for column in columns]
        rows.append(
            (
                name,
                *(
                    f"{c['pair_auc']:.3f} ± {c['pair_auc_half']:.3f}" if c else "not run"
                    for c in cells
                ),
            )
        )
    repeats = max(r["repeats"] for r in scores)
    return [
        "## Pair AUC at a claimed epsilon of 4",
        "",
        f"{repeats} repeats, base setting; pairveil asks for paths over the same people (kappa 1, half "
        "as many pairs) and its epsilon is proved "
        "(delta 1e-5, relationship level).",
        "",
        *_table(("", *(column[0] for column in columns)), rows),
    ]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(c.replace("|", "\\|").replace("\n", " ") for c in cells) + " |"

    return [line(heads), "|" + "---|" * len(heads), *map(line, rows), ""]
