"""The compiled sum against a plain one, and the promise on which the noise is calibrated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plain_sums import DTYPES, Norm, make, plain_sum, size

from pairveil.engine.kernels import TILE, gradient_sum, tile_error_bound
from pairveil.errors import InputError

GRID = 2.0**-40


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize(
    ("n", "d", "k"),
    [(1, 1, 1), (130, 10, 1), (300, 33, 3), (700, 123, 2), (257, 20, 16), (50, 123, 123)],
)
def test_equals_the_plain_sum(n: int, d: int, k: int, norm: Norm, dtype: Any) -> None:
    case = make(n, d, k, dtype)
    clip = 0.3 if norm == "l2" else 2.0
    both = (1.5, 0.75)
    total = gradient_sum(
        *case[:3], None, case.weights, margin=0.9, clip=clip, grid=GRID, norm=norm,
        weights=both,
    )  # fmt: skip
    assert total.dtype == np.int64
    assert total.shape == (k, d)
    expected = plain_sum(case, range(n), 0.9, clip, norm, both)
    bound = tile_error_bound(TILE, d, k, clip, dtype, grid=GRID, norm=norm)
    # The bound covers the sum of rounded products; P itself and c are rounded too, by a relative
    # error of d u each and at most (1 + |margin|) n of them in all.
    rounding = 8 * d * float(np.finfo(dtype).eps) * n
    assert size(total * GRID - expected, norm) <= n * bound + rounding
    if dtype is np.float64:  # a wrong answer by 1 % is seen
        assert size(total * GRID - expected * 1.01, norm) > n * bound + rounding


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_zeroing_one_pair_moves_the_sum_by_no_more_than_promised(norm: Norm, dtype: Any) -> None:
    # A small clip and a coarse grid: every pair is at the bound, and rounding is seen.
    n, d, k, clip, grid = 150, 17, 3, 2.0**-8, 2.0**-20
    case = make(n, d, k, dtype)
    options: Any = {"margin": 5.0, "clip": clip, "grid": grid, "norm": norm}
    whole = gradient_sum(*case[:3], None, case.weights, **options)
    bound = tile_error_bound(TILE, d, k, clip, dtype, grid=grid, norm=norm)
    moved = []
    for row in range(n):
        pairs = case.pairs.copy()
        pairs[row] = 0  # dx = 0: null contents
        without = gradient_sum(case.features, pairs, case.labels, None, case.weights, **options)
        moved.append(size((whole - without) * grid, norm))
    assert max(moved) <= clip + bound
    assert np.median(moved) > 0.99 * clip
    # The clip alone would not do: rounding does reach beyond it.
    assert max(moved) > clip


def test_bound_grows_with_what_it_depends_on() -> None:
    def bound(tile: int = 128, d: int = 50, clip: float = 1.0, dtype: Any = np.float32) -> float:
        return tile_error_bound(tile, d, 4, clip, dtype, grid=2.0**-60)

    assert bound(tile=256) == pytest.approx(4 * bound(), rel=1e-2)
    assert bound(clip=2.0) == pytest.approx(2 * bound())
    assert bound(dtype=np.float64) < 1e-8 * bound()
    coarse = [tile_error_bound(8, 9, 4, 1.0, np.float64, grid=1.0, norm=x) for x in ("l2", "l1")]  # type: ignore[arg-type]
    assert coarse == pytest.approx([6.0, 36.0])


@pytest.mark.parametrize("dtype", DTYPES)
def test_threads_and_the_order_of_tiles_do_not_matter(dtype: Any) -> None:
    case = make(1000, 30, 4, dtype)
    options: Any = {"margin": 1.0, "clip": 0.5, "grid": GRID}
    one = gradient_sum(*case[:3], None, case.weights, threads=1, **options)
    for threads in (2, 3, None):
        other = gradient_sum(*case[:3], None, case.weights, threads=threads, **options)
        np.testing.assert_array_equal(one, other)
    rows = np.arange(1000)
    tiles = [rows[start : start + TILE] for start in range(0, 1000, TILE)]
    full, rest = tiles[:-1], tiles[-1]
    turned = np.concatenate([*full[::-1], rest])
    np.testing.assert_array_equal(
        one, gradient_sum(*case[:3], turned, case.weights, threads=2, **options)
    )
    # Other tiles round elsewhere: the check above is not blind.
    moved = gradient_sum(*case[:3], np.roll(rows, 1), case.weights, **options)
    assert (one != moved).any()


def test_rows_choose_pairs_and_index_types_are_free(tmp_path: Path) -> None:
    case = make(600, 12, 2, np.float32)
    rows = np.flatnonzero(np.random.default_rng(1).random(600) < 0.3)
    options: Any = {"margin": 1.0, "clip": 0.5, "grid": GRID}
    chosen = gradient_sum(*case[:3], rows, case.weights, **options)
    subset = case._replace(pairs=case.pairs[rows], labels=case.labels[rows])
    np.testing.assert_array_equal(chosen, gradient_sum(*subset[:3], None, case.weights, **options))
    np.save(tmp_path / "x.npy", case.features)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    again = gradient_sum(
        mapped,
        case.pairs.astype(np.int32),
        case.labels,
        rows.astype(np.int32),
        case.weights,
        **options,
    )
    np.testing.assert_array_equal(chosen, again)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_scale_is_the_same_as_scaled_features(dtype: Any) -> None:
    case = make(300, 12, 3, dtype)
    scale = 2.0 ** np.random.default_rng(2).integers(-3, 4, 12)  # exact in both ways
    options: Any = {"margin": 1.0, "clip": 0.5, "grid": GRID}
    given = gradient_sum(*case[:3], None, case.weights, scale=scale, **options)
    scaled = case._replace(features=(case.features * scale).astype(dtype))
    np.testing.assert_array_equal(given, gradient_sum(*scaled[:3], None, case.weights, **options))
    assert (given != gradient_sum(*case[:3], None, case.weights, **options)).any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_no_pairs_and_null_pairs_give_zero(dtype: Any) -> None:
    case = make(8, 5, 3, dtype)
    options: Any = {"margin": 1.0, "clip": 0.5, "grid": GRID}
    empty = gradient_sum(*case[:3], np.empty(0, dtype=np.int64), case.weights, **options)
    assert empty.shape == (3, 5)
    assert not empty.any()
    none = gradient_sum(
        case.features, case.pairs[:0], case.labels[:0], None, case.weights, **options
    )
    assert not none.any()
    null = gradient_sum(
        case.features, np.zeros_like(case.pairs), case.labels, None, case.weights, **options
    )
    assert not null.any()
    flat = gradient_sum(*case[:3], None, np.zeros_like(case.weights), **options)
    assert not flat.any()  # D = 0: no gradient is chosen


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e37, 1e-42])
def test_numbers_out_of_range_count_as_null_pairs(bad: float, dtype: Any) -> None:
    case = make(40, 6, 2, dtype)
    options: Any = {"margin": 1.0, "clip": 0.5, "grid": GRID}
    features = np.vstack([case.features, np.full((1, 6), bad, dtype), np.zeros((1, 6), dtype)])
    pairs = np.vstack([case.pairs, [[200, 201]]])
    labels = np.append(case.labels, np.int8(1))
    spoilt = gradient_sum(features, pairs, labels, None, case.weights, **options)
    clean = gradient_sum(*case[:3], None, case.weights, **options)
    np.testing.assert_array_equal(spoilt, clean)


@pytest.mark.parametrize(
    "change",
    [
        {"grid": 0.3},
        {"grid": 0.0},
        {"grid": 2.0**-70},
        {"clip": 0.0},
        {"clip": np.inf},
        {"rows": np.array([4])},
        {"rows": np.array([-1])},
        {"pairs": np.array([[0, 1], [0, 200], [1, 2], [3, 4]])},
        {"pairs": np.array([[0, 1], [-1, 2], [1, 2], [3, 4]])},
        {"labels": np.ones(3, dtype=np.int8)},
        {"W": np.ones((2, 4))},
        {"scale": np.ones(4)},
        {"features": np.ones((200, 5), dtype=np.int64)},
        {"features": np.ones((5, 200)).T},
    ],
    ids=lambda change: next(iter(change)),
)
def test_wrong_input_is_refused(change: dict[str, Any]) -> None:
    case = make(4, 5, 2, np.float64)
    given: dict[str, Any] = {
        "features": case.features,
        "pairs": case.pairs,
        "labels": case.labels,
        "W": case.weights,
        "rows": None,
        "margin": 1.0,
        "clip": 0.5,
        "grid": GRID,
    }
    gradient_sum(**given)
    with pytest.raises(InputError):
        gradient_sum(**{**given, **change})
