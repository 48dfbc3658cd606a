"""`transform` and `account`: using what was released, and the price of a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from pairveil.cli.choices import DEFAULT_NOISE, NoiseName, pure_noises
from pairveil.cli.output import JsonFlag, QuietFlag, print_json, spoken_warnings, stdout
from pairveil.cli.pair_options import FeaturesFile, IdColumn, PairOptions
from pairveil.errors import InputError
from pairveil.privacy.units import round_up

ReleaseFolder = Annotated[Path, typer.Argument(help="Folder of a release.", show_default=False)]


def transform(
    folder: ReleaseFolder,
    features: FeaturesFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write, .csv or .parquet.")],
    id_: IdColumn = "id",
    json_: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Map people into the space where the learned metric is Euclidean.

    Example: `pairveil transform release/ people.csv -o projected.parquet`
    """
    from pairveil.records.tables import write_columns
    from pairveil.release.metric import ReleasedMetric

    metric = ReleasedMetric.load(folder)
    with spoken_warnings(quiet or json_):
        people = read_people(features, id_, metric)
    projected = metric.project(people.values)
    columns = {f"component_{i + 1}": projected[:, i] for i in range(projected.shape[1])}
    write_columns(out, {id_: people.ids, **columns})
    if json_:
        print_json({"n_rows": len(projected), "n_components": metric.n_components, "out": str(out)})
    elif not quiet:
        stdout.print(f"{len(projected):,} people in {metric.n_components} dimensions: {out}")


def read_people(features: Path, id_: str, metric: Any, apart: str | None = None) -> Any:
    """The metric's own columns of a features file, in the metric's order; raw ones where it has a schema.

    ``apart``: a column that is read by itself, and is no feature where the metric does not name its own.
    """
    from pairveil.column_names import in_order_of
    from pairveil.records.arrays import is_array_file
    from pairveil.records.files import open_table
    from pairveil.records.readers import read_features

    if metric.schema is not None:
        named = metric.schema.id if id_ == "id" else None
        return read_features(features, id=named or id_, schema=metric.schema)
    names = list(metric.feature_names) if metric.feature_names else None
    if names is not None and not is_array_file(features):
        in_order_of(open_table(features).names, names)
    left_out = (
        [apart] if apart is not None and names is None and not is_array_file(features) else []
    )
    people = read_features(features, id=id_, columns=names, exclude=left_out)
    if people.values.shape[1] != metric.n_features:
        raise InputError(
            f"{features} has {people.values.shape[1]} feature columns, the metric takes {metric.n_features}"
        )
    return people


def read_placed(
    features: Path,
    pairs: Path,
    id_: str,
    metric: Any,
    reading: PairOptions,
    apart: str | None = None,
) -> tuple[Any, Any]:
    """People's rows as the metric takes them, and labelled pairs as places among them."""
    from pairveil.records.resolving import index_pairs

    people = read_people(features, id_, metric, apart)
    return people.values, index_pairs(reading.read(pairs), people.ids)


def account(
    kappa: Annotated[int, typer.Option("--kappa", min=1, help="Pairs that change together.")],
    noise_multiplier: Annotated[
        float, typer.Option("--noise-multiplier", help="Noise / clip bound.")
    ],
    steps: Annotated[int, typer.Option("--steps", min=1, help="Sums released.")],
    delta: Annotated[float, typer.Option("--delta", help="0 for pure epsilon.")],
    sample_rate: Annotated[float, typer.Option("--sample-rate", help="1 is the full batch.")] = 1.0,
    adjacency: Annotated[
        Literal["zero-out", "replace"], typer.Option("--adjacency", help="What is compared.")
    ] = "zero-out",
    mechanism: Annotated[
        NoiseName, typer.Option("--mechanism", help=f"Kind of noise. {pure_noises()}")
    ] = DEFAULT_NOISE,
    json_: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Epsilon of a plan, before any data are touched.

    Example: `pairveil account --kappa 13 --sample-rate 0.05 --noise-multiplier 20 --steps 200 --delta 1e-5`
    """
    from pairveil.privacy.mechanisms import Query, mechanism_named
    from pairveil.privacy.profile import epsilon_of

    noise = mechanism_named(str(mechanism))
    query = Query("plan", (1,), noise_multiplier, steps, noise, sample_rate=sample_rate)
    epsilon = epsilon_of([query.event()], kappa=kappa, adjacency=adjacency, delta=delta)
    if json_:
        print_json(
            {
                "epsilon": epsilon,
                "delta": delta,
                "kappa": kappa,
                "adjacency": adjacency,
                "mechanism": str(mechanism),
            }
        )
    elif not quiet:
        kind = "become null" if adjacency == "zero-out" else "are replaced"
        stdout.print(
            f"epsilon {round_up(epsilon)} at delta {delta:g}, "
            f"for the contents of any {kappa} pairs that {kind}."
        )
