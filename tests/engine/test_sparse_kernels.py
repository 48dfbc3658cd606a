"""The sparse sum against the dense one, and the promise on which its noise is calibrated."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from pairveil.engine import kernels
from pairveil.errors import InputError

GRID = 2.0**-40


def make(n: int = 300, d: int = 40, k: int = 3, dtype: Any = np.float64, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    table = np.where(rng.random((60, d)) < 0.15, rng.normal(size=(60, d)), 0.0).astype(dtype)
    pairs = np.array([rng.choice(60, 2, replace=False) for _ in range(n)])
    labels = rng.choice(np.array([-1, 1], dtype=np.int8), n)
    return table, pairs, labels, rng.normal(size=(k, d)), rng.uniform(0.5, 2.0, d)


@pytest.mark.oracle
@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equals_the_dense_sum(norm: Any, dtype: Any) -> None:
    table, pairs, labels, weights, scale = make(dtype=dtype)
    rows = np.arange(1, 300, 2)
    for chosen in (None, rows):
        options: Any = {
            "margin": 2.0, "clip": 0.4, "grid": GRID, "norm": norm, "scale": scale,
            "weights": (1.5, 0.75),
        }  # fmt: skip
        ours = kernels.gradient_sum(
            sparse.csr_array(table), pairs, labels, chosen, weights, **options
        )
        dense = kernels.gradient_sum(
            table.astype(np.float64), pairs, labels, chosen, weights, **options
        )
        atol = 300 * 120 * 2.0  # half a grid unit an entry and pair, and float64 rounding
        np.testing.assert_allclose(ours, dense, rtol=0, atol=atol)
        assert np.abs(dense).max() > 1000 * atol  # so that the comparison says something


@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_zeroing_one_pair_moves_the_sum_by_no_more_than_promised(norm: Any) -> None:
    table, pairs, labels, weights, scale = make(n=80)
    clip, grid = 2.0**-8, 2.0**-20
    options: Any = {"margin": 50.0, "clip": clip, "grid": grid, "norm": norm, "scale": scale}
    features = sparse.csr_array(table)
    whole = kernels.gradient_sum(features, pairs, labels, None, weights, **options)
    bound = kernels.tile_error_bound(1, 40, 3, clip, np.float64, grid=grid, norm=norm)
    moved = []
    for row in range(len(pairs)):
        nulled = pairs.copy()
        nulled[row] = 0
        without = kernels.gradient_sum(features, nulled, labels, None, weights, **options)
        gap = np.abs((whole - without) * grid)
        moved.append(gap.sum() if norm == "l1" else np.linalg.norm(gap))
    assert max(moved) <= clip + bound
    assert np.median(moved) > 0.9 * clip
    assert max(moved) > clip  # the clip alone would not do


def test_numbers_beyond_2_to_53_are_added_without_error() -> None:
    table, pairs, labels, weights, scale = make(n=200)
    features = sparse.csr_array(table)
    for bits in (47, 51, 53):  # room for 58 pairs, for 3, for 1
        options: Any = {"margin": 50.0, "clip": 1.0, "grid": 2.0**-bits, "scale": scale}
        whole = kernels.gradient_sum(features, pairs, labels, None, weights, **options)
        one_by_one = [
            kernels.gradient_sum(features, pairs, labels, np.array([i]), weights, **options)
            for i in range(200)
        ]
        np.testing.assert_array_equal(whole, np.sum(one_by_one, axis=0))
        in_floats = np.sum([one.astype(np.float64) for one in one_by_one], axis=0)
        assert bits < 51 or (in_floats.astype(np.int64) != whole).any()  # floats alone would not do


def test_threads_do_not_matter() -> None:
    table, pairs, labels, weights, scale = make(n=1000)
    features = sparse.csr_array(table)
    options: Any = {"margin": 1.0, "clip": 0.5, "grid": GRID, "scale": scale}
    one, two = (
        kernels.gradient_sum(features, pairs, labels, None, weights, threads=t, **options)
        for t in (1, 2)
    )
    np.testing.assert_array_equal(one, two)
    assert one.any()


def test_a_column_twice_in_a_row_is_refused() -> None:
    # Its two numbers would be clipped as if they were two columns: (1 + 1)^2 is not 1^2 + 1^2.
    twice = sparse.csr_array(([1.0, 1.0, 1.0], [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    with pytest.raises(InputError, match="sum_duplicates"):
        kernels.gradient_sum(
            twice, np.array([[0, 1]]), np.array([1], dtype=np.int8), None, np.eye(2),
            margin=1.0, clip=1.0, grid=GRID,
        )  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"rows": np.array([300])},
        {"pairs": np.array([[0, 60]] * 300)},
        {"pairs": np.array([[-1, 2]] * 300)},
        {"labels": np.ones(3, dtype=np.int8)},
        {"W": np.ones((2, 4))},
        {"scale": np.ones(4)},
        {"grid": 0.3},
        {"clip": 0.0},
    ],
    ids=lambda change: next(iter(change)),
)
def test_wrong_input_is_refused(change: dict[str, Any]) -> None:
    table, pairs, labels, weights, scale = make()
    given: dict[str, Any] = {
        "features": sparse.csr_array(table), "pairs": pairs, "labels": labels, "rows": None,
        "W": weights, "scale": scale, "margin": 1.0, "clip": 0.5, "grid": GRID,
    }  # fmt: skip
    kernels.gradient_sum(**given)
    with pytest.raises(InputError):
        kernels.gradient_sum(**{**given, **change})
