"""`kappa`, `select`, `design` and `account`: how correlated pairs are, which to use, what a plan costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from pairveil.errors import InputError
from pairveil.graph import DESIGNS, SELECTIONS
from pairveil.jobs.job import FILES, PAIRS, Job, Telling, argument, option
from pairveil.jobs.options import (
    PAIRS_HELP,
    PURE,
    GraphOptions,
    PairOptions,
    ZeroMeansOption,
    selection,
)
from pairveil.jobs.reading import noticing_swapped
from pairveil.privacy.mechanisms import NOISES
from pairveil.privacy.units import round_up

if TYPE_CHECKING:
    from pairveil.records.identity import IndexedPairs

RULES = "; ".join(f"{name}: {rule.says}" for name, rule in SELECTIONS.items())
NUMBER = r"^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$"
SEED_HELP = "Makes the choice reproducible (it is public)."
OUT_HELP = "File to write, .csv or .parquet."


@dataclass(frozen=True, kw_only=True)
class KappaJob(GraphOptions, ZeroMeansOption, Job):
    """Say how many pairs an attacker must be missing: the graph's numbers.

    They come from who is paired with whom and nothing else: labels are not looked at, but where `--label`
    asks whether they can be read.

    Example: `pairveil kappa pairs.csv`

    Example: `pairveil kappa labels.csv --left patient_a --right patient_b`
    """

    name: ClassVar = "kappa"
    panel: ClassVar = PAIRS
    notes_in_json: ClassVar = True

    pairs: Path = argument("PAIRS", PAIRS_HELP)
    label: str | None = option(None, "Check too that the labels of this column can be read.")
    features: Path | None = option(
        None, "Check too that everybody in the pairs is in this table of people, once.", panel=FILES
    )
    levels: Path | None = option(
        None, "Check too that every pair is in this table of comparison levels, once.", panel=FILES
    )
    id: str = option("id", "Column of --features with the person's id.", panel=FILES)

    def work(self, tell: Telling) -> None:
        """Count."""
        from pairveil.graph.kappa import kappa
        from pairveil.records.identity import index_pairs

        more: dict[str, Any] = {"whole": self.features is not None or self.levels is not None}
        if self.label is not None:
            more |= {"labels": True, "label": self.label, "zero_means": self.zero_means}
        if self.features is None:
            listed = self.read_graph(self.pairs, **more)
        else:
            from pairveil.records.readers import read_ids

            with noticing_swapped(self.features, self.pairs, self.left, self.right):
                listed = self.read_graph(self.pairs, **more)
                people = read_ids(self.features, self.id, self.merge_similar_ids)
            listed, _ = self.sifted(people, listed)
        if self.levels is not None:
            from pairveil.records.readers import read_levels

            aside, same = (self.label or "label",), self.merge_similar_ids
            table = read_levels(self.levels, self.left, self.right, aside, merge_similar_ids=same)
            listed, _ = self.sifted(table, listed)
        edges = index_pairs(replace(listed, labels=None, null=None)).pairs
        numbers = kappa(edges)
        if tell.talks:
            self._tell(edges, numbers, tell)
        tell.result({**numbers.to_dict(), "notes": tell.notes})

    def _tell(self, edges: NDArray[Any], numbers: Any, tell: Telling) -> None:
        """The table of the graph's numbers, what they mean, and which pairs to use."""
        from pairveil.graph.choosing import kappas_of_selections, recommended_selection

        rows = [
            ["pair", numbers.pair, "one pair, nothing tied to it"],
            ["relationship", numbers.relationship,
             "a relationship and the chains that tell it (default)"],
            ["person", numbers.person, "all pairs of any one person"],
            ["paper's bound", numbers.paper_bound, "kappa' of the paper, for comparison"],
            ["intransitive", numbers.intransitive, "labels only, relations that do not carry over"],
        ]  # fmt: skip
        title = f"{numbers.n_pairs:,} pairs of {numbers.n_people:,} people"
        tell.table(title, ["to protect", "kappa", "meaning"], rows)
        times = "no more than" if numbers.relationship == 1 else f"{numbers.relationship:,} times"
        tell.say(
            "Kappa is the number of pairs an attacker must be missing; the noise grows with it, here "
            f"{times} that of independent pairs."
        )
        if numbers.relationship == 1 and numbers.person <= 2:
            tell.say("These pairs are already as uncorrelated as pairs can be for relationships.")
            return
        found = kappas_of_selections(edges)
        how = recommended_selection(found)
        tell.say(
            f"Recommended: `pairveil select --how {how}` keeps {found[how].n_pairs:,} of "
            f"{numbers.n_pairs:,} pairs and brings kappa to {found[how].relationship} for a relationship and "
            f"{found[how].person} for a person."
        )


@dataclass(frozen=True, kw_only=True)
class SelectJob(PairOptions, Job):
    """Keep a set of pairs that costs little privacy, without looking at labels or features.

    Further columns of a table (a score, say) are kept.

    `fit` selects by itself; use this to see or to fix the choice beforehand.

    Example: `pairveil select pairs.csv --how paths -o used.csv`

    Example: `pairveil select pairs.csv --how all --max-degree 3 -o used.csv`
    """

    name: ClassVar = "select"
    panel: ClassVar = PAIRS
    notes_in_json: ClassVar = True

    pairs: Path = argument("PAIRS", PAIRS_HELP)
    how: str = selection("paths", f"{RULES}.")
    out: Path = option(Path("selected.csv"), OUT_HELP, "-o")
    max_degree: int | None = option(None, "No person in more than this many pairs.", min=1)
    seed: int | None = option(None, SEED_HELP)

    def work(self, tell: Telling) -> None:
        """Choose, and write what is kept."""
        from pairveil.graph.choosing import select_pairs
        from pairveil.graph.kappa import kappa
        from pairveil.records.identity import index_pairs
        from pairveil.records.tables import write_columns

        listed = self.read_pairs(self.pairs, labels=False)
        found = index_pairs(listed)
        more = _other_columns(self.pairs, self)
        before = kappa(found.pairs)
        chosen = {"max_degree": self.max_degree, "random_state": self.seed}
        kept = select_pairs(found.pairs, self.how, **chosen)  # type: ignore[arg-type]
        after = kappa(found.pairs[kept])
        names = (self.left, self.right, self.label)
        rows = found.ids[found.pairs[kept]]
        whole = _whole_rows(listed, rows, names, more) if more else _in_order(found, kept, names)
        write_columns(self.out, whole)
        tell.say(
            f"Kept {len(kept):,} of {before.n_pairs:,} pairs in {self.out}. Relationship level: kappa "
            f"{before.relationship} -> {after.relationship}; person level: {before.person} -> {after.person}."
        )
        if len(kept) < before.n_pairs:
            certified = (
                "" if self.max_degree else f"`fit --select {self.how}` on the full file says so; "
            )
            tell.say(
                "The dropped labels still exist: someone who knows them may tie used pairs together, along a "
                f"minimum cut {before.relationship} of them, along others more (docs/threat-model.md). "
                f"{certified}`pairveil design` chooses before labelling and has no such caveat."
            )
        full = before.to_dict()["kappa"]
        tell.result(
            {**after.to_dict(), "out": str(self.out), "full_graph_kappa": full, "notes": tell.notes}
        )


def _in_order(
    found: IndexedPairs, kept: NDArray[Any], names: tuple[str, str, str]
) -> dict[str, NDArray[Any]]:
    """Columns of the pairs kept in canonical order, so that the file says nothing by its order.

    A pair with contradicting labels is written with both: whoever reads the file finds what was there.
    """
    from pairveil.records.canonical import NULL, canonical_records

    labels = None if found.labels is None else found.labels[kept]
    records = canonical_records(found.pairs[kept], labels)
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
    read = pa.Table.from_batches(table.batches(names))
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

    from pairveil.records.pairset import record_numbers

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


@dataclass(frozen=True, kw_only=True)
class DesignJob(Job):
    """Choose which pairs to label before anyone labels them (people are numbered from 0, or by their ids).

    Example: `pairveil design --people 5000 --how paths -o to-label.csv`

    Example: `pairveil design --people 5000 --how matching --seed 7 -o to-label.parquet`

    Example: `pairveil design --ids people.csv --id patient -o to-label.csv`
    """

    name: ClassVar = "design"
    panel: ClassVar = PAIRS

    people: int | None = option(None, "How many people there are.", min=2, max=10**8)
    ids: Path | None = option(
        None, "Instead: a table with everybody's id, or a .txt with one a line.", typed=False
    )
    id: str = option("id", "Column of the table with the ids.", panel=FILES)
    how: str = option("paths", "Shape of the pairs to label.", choices=tuple(DESIGNS))
    out: Path = option(Path("to-label.csv"), OUT_HELP, "-o")
    seed: int | None = option(None, SEED_HELP)

    def work(self, tell: Telling) -> None:
        """Draw the pairs, and write them."""
        from pairveil.graph.choosing import design_pairs
        from pairveil.graph.kappa import kappa
        from pairveil.records.tables import write_columns

        if (self.people is None) == (self.ids is None):
            raise InputError(
                "say how many people there are (--people) or who they are (--ids), one of both"
            )
        named = None if self.ids is None else _listed_ids(self.ids, self.id)
        people = len(named) if named is not None else int(self.people or 0)
        chosen = design_pairs(people, self.how, random_state=self.seed)  # type: ignore[arg-type]
        numbers = kappa(chosen)
        ends = chosen if named is None else named[chosen]
        write_columns(self.out, {"left": ends[:, 0], "right": ends[:, 1]})
        tell.say(
            f"Label these {len(chosen):,} pairs of {people:,} people: {self.out}. kappa is "
            f"{numbers.relationship} at relationship level and {numbers.person} at person level."
        )
        tell.result({**numbers.to_dict(), "out": str(self.out)})


def _listed_ids(path: Path, column: str) -> NDArray[Any]:
    """Everybody's id, each once, in canonical order: the order of the file must decide nothing."""
    from pairveil.records.canonical import order_of_ids
    from pairveil.records.files import read_text, require_file
    from pairveil.records.identity import say_similar
    from pairveil.records.readers import read_classes
    from pairveil.records.tables import as_ids, refuse_repeated

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


@dataclass(frozen=True, kw_only=True)
class AccountJob(Job):
    """Epsilon of a plan, before any data are touched.

    Example: `pairveil account --kappa 13 --sample-rate 0.05 --noise-multiplier 20 --steps 200 --delta 1e-5`
    """

    name: ClassVar = "account"
    panel: ClassVar = PAIRS

    kappa: int = option(..., "Pairs that change together.", min=1)
    noise_multiplier: float = option(..., "Noise / clip bound.")
    steps: int = option(..., "Sums released.", min=1)
    delta: float = option(..., "0 for pure epsilon.")
    sample_rate: float = option(1.0, "1 is the full batch.")
    adjacency: Literal["zero-out", "replace"] = option("zero-out", "What is compared.")
    mechanism: str = option(NOISES[0], f"Kind of noise. {PURE}", choices=tuple(NOISES))

    def work(self, tell: Telling) -> None:
        """Compose."""
        from pairveil.privacy.mechanisms import Query, mechanism_named
        from pairveil.privacy.profile import epsilon_of

        noise = mechanism_named(self.mechanism)
        query = Query(
            "plan", (1,), self.noise_multiplier, self.steps, noise, sample_rate=self.sample_rate
        )
        plan: dict[str, Any] = {
            "delta": self.delta,
            "kappa": self.kappa,
            "adjacency": self.adjacency,
        }
        epsilon = epsilon_of([query.event()], **plan)
        kind = "become null" if self.adjacency == "zero-out" else "are replaced"
        tell.say(
            f"epsilon {round_up(epsilon)} at delta {self.delta:g}, for the contents of any {self.kappa} "
            f"pairs that {kind}."
        )
        tell.result({"epsilon": epsilon, **plan, "mechanism": self.mechanism})
