"""The README that travels with a release, written for the one who receives it."""

from __future__ import annotations

from pairveil.printable import printable
from pairveil.privacy.certificate import Certificate


def receiver_readme(
    n_components: int,
    n_features: int,
    feature_names: tuple[str, ...] | None,
    certificate: Certificate | None,
    has_schema: bool = False,
) -> str:
    """Text of the release's ``README.md``: what it is, what is promised, how to use it."""
    promise = (
        certificate.promise()
        if certificate is not None
        else "NOT PRIVATE: this metric was learned without noise and promises nothing. Do not hand it out."
    )
    columns = (
        "\n".join(f"{i + 1}. `{printable(name)}`" for i, name in enumerate(feature_names))
        if feature_names
        else f"{n_features} numeric columns, in the order used for training."
    )
    schema = (
        "- `schema.toml`: how raw rows become these columns; given a raw table with its column names,\n"
        "  `distance` and `transform` apply it by themselves.\n"
        if has_schema
        else ""
    )
    return f"""# A distance metric learned from pairs, released with pairveil

{promise}

## What is here

- `metric.safetensors`: the matrix L ({n_components} x {n_features}). The distance of two people a and b is
  the Euclidean length of L (a - b).
- `certificate.json`: the guarantee and all that is needed to recompute it.
{schema}- `report.html` and `summary.json`, where there are any: the page for people who do not code, and what
  it draws.

## Columns, in order

{columns}

## Use

```python
from pairveil import ReleasedMetric

metric = ReleasedMetric.load("path/to/this/folder")
metric.distance(A, B)   # one distance for each row of A and B
metric.transform(A)     # points whose Euclidean distance is the learned one
```

Check it: `pairveil certificate path/to/this/folder` verifies the file and recomputes every epsilon. Noise and
kappa are the sender's word: add `--signer KEY` to check who signed it, if there is a `signature.dsse.json`.
"""
