"""`kappa`, `select` and `design`: how correlated the pairs are, and which pairs to use or to label."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from pairveil.cli.choices import DesignName, SelectName
from pairveil.cli.output import (
    JsonFlag,
    QuietFlag,
    number,
    print_json,
    spoken_warnings,
    stdout,
    table,
)
from pairveil.cli.pair_options import GraphOptions, PairOptions, PairsFile, ZeroMeans
from pairveil.errors import InputError
from pairveil.graph import SELECTIONS

if TYPE_CHECKING:
    from pairveil.records.resolving import IndexedPairs

RULES = "; ".join(f"{name}: {rule.says}" for name, rule in SELECTIONS.items())
NUMBER = r"^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$"
Out = Annotated[
    Path, typer.Option("--out", "-o", help="File to write, .csv or .parquet.", dir_okay=False)
]
Seed = Annotated[
    int | None, typer.Option("--seed", help="Makes the choice reproducible (it is public).")
]
MaxDegree = Annotated[
    int | None, typer.Option("--max-degree", min=1, help="No person in more than this many pairs.")
]


def show_kappa(
    pairs: PairsFile,
    reading: GraphOptions = GraphOptions(),
    label: Annotated[
        str | None,
        typer.Option("--label", help="Check too that the labels of this column can be read."),
    ] = None,
    zero_means: ZeroMeans = None,
    json_: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Say how many pairs an attacker must be missing: the graph's numbers.

    They come from who is paired with whom and nothing else: labels are not looked at, but where `--label`
    asks whether they can be read.

    Example: `pairveil kappa pairs.csv`

    Example: `pairveil kappa labels.csv --left patient_a --right patient_b`
    """
    from pairveil.graph.kappa import kappa
    from pairveil.records.resolving import index_pairs

    with spoken_warnings(quiet, listed=json_) as notes:
        if label is not None:
            PairOptions(**vars(reading), label=label, zero_means=zero_means).read(pairs)
        edges = index_pairs(reading.read(pairs)).pairs
    numbers = kappa(edges)
    if json_:
        print_json({**numbers.to_dict(), "notes": notes})
        return
    if quiet:
        return
    print_kappa(numbers)
    if numbers.relationship == 1 and numbers.person <= 2:
        stdout.print("These pairs are already as uncorrelated as pairs can be for relationships.")
    else:
        from pairveil.graph.choosing import kappas_of_selections, recommended_selection

        found = kappas_of_selections(edges)
        how = recommended_selection(found)
        kept = found[how]
        stdout.print(
            f"Recommended: `pairveil select --how {how}` keeps {kept.n_pairs:,} of {numbers.n_pairs:,} pairs "
            f"and brings kappa to {kept.relationship} for a relationship and {kept.person} for a person."
        )


def select(
    pairs: PairsFile,
    how: Annotated[SelectName, typer.Option("--how", help=f"{RULES}.")] = SelectName("paths"),
    out: Out = Path("selected.csv"),
    max_degree: MaxDegree = None,
    reading: PairOptions = PairOptions(),
    seed: Seed = None,
    json_: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Keep a set of pairs that costs little privacy, without looking at labels or features.

    Further columns of a table (a score, say) are kept.

    `fit` selects by itself; use this to see or to fix the choice beforehand.

    Example: `pairveil select pairs.csv --how paths -o used.csv`

    Example: `pairveil select pairs.csv --how all --max-degree 3 -o used.csv`
    """
    from pairveil.graph.choosing import select_pairs
    from pairveil.graph.kappa import kappa
    from pairveil.records.resolving import index_pairs
    from pairveil.records.tables import write_columns

    with spoken_warnings(quiet, listed=json_) as notes:
        listed = reading.read(pairs, labels_optional=True)
        found = index_pairs(listed)
        more = _other_columns(pairs, reading)
    before = kappa(found.pairs)
    kept = select_pairs(found.pairs, str(how), max_degree=max_degree, random_state=seed)
    after = kappa(found.pairs[kept])
    names = (reading.left, reading.right, reading.label)
    chosen = found.ids[found.pairs[kept]]
    write_columns(
        out, _whole_rows(listed, chosen, names, more) if more else _in_order(found, kept, names)
    )
    if json_:
        full = before.to_dict()["kappa"]
        print_json({**after.to_dict(), "out": str(out), "full_graph_kappa": full, "notes": notes})
    elif not quiet:
        stdout.print(
            f"Kept {len(kept):,} of {before.n_pairs:,} pairs in {out}. Relationship level: kappa "
            f"{before.relationship} -> {after.relationship}; person level: {before.person} -> {after.person}."
        )
    if not (json_ or quiet) and len(kept) < before.n_pairs:
        certified = "" if max_degree else f"`fit --select {how}` on the full file says so; "
        stdout.print(
            "The dropped labels still exist: someone who knows them may tie used pairs together, along a "
            f"minimum cut {before.relationship} of them, along others more (docs/threat-model.md). "
            f"{certified}`pairveil design` chooses before labelling and has no such caveat."
        )


def _in_order(
    found: IndexedPairs, kept: NDArray[Any], names: tuple[str, str, str]
) -> dict[str, NDArray[Any]]:
    """Columns of the pairs kept in canonical order, so that the file says nothing by its order.

    A pair with contradicting labels is written with both: whoever reads the file finds what was there.
    """
    from pairveil.records.canonical import NULL, records_of

    labels = None if found.labels is None else found.labels[kept]
    records = records_of(found.pairs[kept], labels)
    ends = found.ids[records.members]
    if records.content is None:
        return dict(zip(names, ends.T, strict=False))
    null = records.content == NULL
    times = 1 + null.astype(np.int64)
    written = np.repeat(np.where(null, 1, records.content), times)
    written[(np.cumsum(times) - 1)[null]] = -1
    return dict(zip(names, (*np.repeat(ends, times, axis=0).T, written), strict=True))


def _other_columns(path: Path, reading: PairOptions) -> dict[str, Any]:
    """Columns of a table beside its ids and label, as arrow arrays; none where the file is no table."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from pairveil.records.files import is_table_file, open_table
    from pairveil.records.layouts import SPLINK, SPLINK_SETS

    if not is_table_file(path):
        return {}
    table = open_table(path)
    own = {reading.left, reading.right, reading.label, *SPLINK, *SPLINK_SETS}
    names = [name for name in table.names if name not in own]
    if not names:
        return {}
    read = pa.Table.from_batches(table.batches(dict.fromkeys(names, "text")))
    found = {name: read.column(name).combine_chunks() for name in names}
    for name, column in found.items():
        if pa.types.is_dictionary(column.type):
            found[name] = column = column.dictionary_decode()
        # Text of a CSV that is plainly a number, and no code such as 007, is written as one.
        if (
            pa.types.is_string(column.type)
            and pc.all(pc.match_substring_regex(column, NUMBER), min_count=0).as_py()
        ):
            found[name] = column.cast(pa.float64())
    return found


def _whole_rows(
    listed: Any, kept: NDArray[Any], names: tuple[str, str, str], more: dict[str, Any]
) -> dict[str, NDArray[Any]]:
    """All rows of the pairs kept with all their columns, in the order of ids and then of contents."""
    import pyarrow as pa

    from pairveil.records.counted import record_numbers

    ids, ends = record_numbers(np.column_stack([listed.left, listed.right]), listed.n_pairs)
    place = {one: number for number, one in enumerate(ids.tolist())}
    wanted = np.array([[place[one] for one in pair] for pair in kept.tolist()]).reshape(-1, 2)
    keys, chosen = (np.sort(one, axis=1) @ [len(ids), 1] for one in (ends, wanted))
    rows = np.flatnonzero(np.isin(keys, chosen))
    columns = dict(zip(names, (listed.left, listed.right, listed.labels), strict=True))
    columns = {name: values[rows] for name, values in columns.items() if values is not None}
    columns |= {
        name: values.take(pa.array(listed.rows[rows] - 1)).to_numpy(zero_copy_only=False)
        for name, values in more.items()
    }
    contents = [np.array([str(one) for one in values]) for values in columns.values()]
    order = np.lexsort((*contents[::-1], keys[rows]))
    return {name: values[order] for name, values in columns.items()}


def design(
    people: Annotated[
        int | None, typer.Option("--people", min=2, max=10**8, help="How many people there are.")
    ] = None,
    ids: Annotated[
        Path | None,
        typer.Option(
            "--ids", help="Instead: a table with everybody's id, or a .txt with one a line."
        ),
    ] = None,
    id_: Annotated[str, typer.Option("--id", help="Column of the table with the ids.")] = "id",
    how: Annotated[
        DesignName, typer.Option("--how", help="Shape of the pairs to label.")
    ] = DesignName("paths"),
    out: Out = Path("to-label.csv"),
    seed: Seed = None,
    json_: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Choose which pairs to label before anyone labels them (people are numbered from 0, or by their ids).

    Example: `pairveil design --people 5000 --how paths -o to-label.csv`

    Example: `pairveil design --people 5000 --how matching --seed 7 -o to-label.parquet`

    Example: `pairveil design --ids people.csv --id patient -o to-label.csv`
    """
    from pairveil.graph.choosing import design_pairs
    from pairveil.graph.kappa import kappa
    from pairveil.records.tables import write_columns

    if (people is None) == (ids is None):
        raise InputError(
            "say how many people there are (--people) or who they are (--ids), one of both"
        )
    with spoken_warnings(quiet or json_):
        named = None if ids is None else _listed_ids(ids, id_)
    people = len(named) if named is not None else int(people or 0)
    chosen = design_pairs(people, str(how), random_state=seed)
    numbers = kappa(chosen)
    ends = chosen if named is None else named[chosen]
    write_columns(out, {"left": ends[:, 0], "right": ends[:, 1]})
    if json_:
        print_json({**numbers.to_dict(), "out": str(out)})
    elif not quiet:
        stdout.print(
            f"Label these {len(chosen):,} pairs of {people:,} people: {out}. kappa is {numbers.relationship} "
            f"at relationship level and {numbers.person} at person level."
        )


def _listed_ids(path: Path, column: str) -> NDArray[Any]:
    """Everybody's id, each once, in canonical order: the order of the file must decide nothing."""
    from pairveil.records.canonical import order_of_ids
    from pairveil.records.columns import as_ids
    from pairveil.records.files import read_text, require_file
    from pairveil.records.readers import read_classes
    from pairveil.records.similar_ids import say_similar
    from pairveil.records.tables import refuse_repeated

    if path.suffix.lower() == ".txt":
        lines = [line.strip() for line in read_text(require_file(path)).splitlines()]
        ids = as_ids([line for line in lines if line])
    else:
        ids = read_classes(path, column)
    if len(ids) < 2:
        raise InputError(f"{path.name} lists fewer than two people")
    refuse_repeated(ids)
    say_similar("the people", ids)
    order = order_of_ids(ids)
    return ids if order is None else ids[order]


def print_kappa(numbers: Any) -> None:
    """The table of the graph's numbers and what they mean."""
    rows = [
        ["pair", numbers.pair, "one pair, nothing tied to it"],
        [
            "relationship",
            numbers.relationship,
            "a relationship and the chains that tell it (default)",
        ],
        ["person", numbers.person, "all pairs of any one person"],
        ["paper's bound", numbers.paper_bound, "kappa' of the paper, for comparison"],
        ["intransitive", numbers.intransitive, "labels only, relations that do not carry over"],
    ]
    title = f"{numbers.n_pairs:,} pairs of {numbers.n_people:,} people"
    stdout.print(table(title, ["to protect", "kappa", "meaning"], rows))
    stdout.print(
        "Kappa is the number of pairs an attacker must be missing; the noise grows with it, here "
        + ("no more than" if numbers.relationship == 1 else f"{number(numbers.relationship)} times")
        + " that of independent pairs."
    )
