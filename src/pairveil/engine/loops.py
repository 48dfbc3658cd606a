"""The compiled loops behind `pairveil.engine.kernels`, which says what they compute.

They share one file because numba's cache on disk watches a function's own file only. A loop that called the
clip of another file would keep the old clip after that file was changed, and release with it.
"""

from __future__ import annotations

import math

import numpy as np

from pairveil._compiled import njit

PAIRS, ROWS, LANES = 4, 2, 16  # the block of the products; arrays are padded to it with zeros
EXACT_TILE = 64
LONGEST = 1e15  # norm of dx: keeps what underflow can do to a_b negligible
_TINY, _HUGE = 1e-280, 1e300  # squares outside may have lost digits or overflowed
_LARGEST = 1e37  # norm of a_b: below the largest float32

# What is called for each pair allocates nothing, so numba's reference counting (atomic, and dearer
# than a small pair) is left out; with it left out a function that does allocate fails to compile.
compiled = njit(nogil=True, _nrt=False)
reordered = njit(nogil=True, _nrt=False, fastmath={"reassoc", "contract"})


# ---- pairs in tiles, rounded tile by tile ---------------------------------------------------------


@reordered
def _project(x, n, w, p):  # type: ignore[no-untyped-def]
    """P = dX W^T for the first n rows, four pairs and two rows of W at a time."""
    zero = x.dtype.type(0)
    for b in range(0, n, PAIRS):
        for r in range(0, w.shape[0], ROWS):
            p0, p1, p2, p3 = zero, zero, zero, zero
            q0, q1, q2, q3 = zero, zero, zero, zero
            for j in range(w.shape[1]):
                u, v = w[r, j], w[r + 1, j]
                x0, x1, x2, x3 = x[b, j], x[b + 1, j], x[b + 2, j], x[b + 3, j]
                p0, p1, p2, p3 = p0 + u * x0, p1 + u * x1, p2 + u * x2, p3 + u * x3
                q0, q1, q2, q3 = q0 + v * x0, q1 + v * x1, q2 + v * x2, q3 + v * x3
            p[b, r], p[b + 1, r], p[b + 2, r], p[b + 3, r] = p0, p1, p2, p3
            p[b, r + 1], p[b + 1, r + 1], p[b + 2, r + 1], p[b + 3, r + 1] = q0, q1, q2, q3


@reordered
def _accumulate(x, n, a, g):  # type: ignore[no-untyped-def]
    """G = a^T dX over the first n rows, four pairs and two rows of G at a time."""
    g[:] = 0
    for b in range(0, n, PAIRS):
        for r in range(0, g.shape[0], ROWS):
            a0, a1, a2, a3 = a[b, r], a[b + 1, r], a[b + 2, r], a[b + 3, r]
            c0, c1, c2, c3 = a[b, r + 1], a[b + 1, r + 1], a[b + 2, r + 1], a[b + 3, r + 1]
            for j in range(g.shape[1]):
                x0, x1, x2, x3 = x[b, j], x[b + 1, j], x[b + 2, j], x[b + 3, j]
                g[r, j] += a0 * x0 + a1 * x1 + a2 * x2 + a3 * x3
                g[r + 1, j] += c0 * x0 + c1 * x1 + c2 * x2 + c3 * x3


@compiled
def _gather(features, scale, pairs, row, x, b):  # type: ignore[no-untyped-def]
    """Row b of x: the scaled difference of a pair. False where an index is outside its table."""
    if not 0 <= row < pairs.shape[0]:
        return False
    left, right = pairs[row, 0], pairs[row, 1]
    if min(left, right) < 0 or max(left, right) >= features.shape[0]:
        return False
    for j in range(features.shape[1]):
        x[b, j] = (features[left, j] - features[right, j]) * scale[j]
    return True


@reordered
def _squares(x, b):  # type: ignore[no-untyped-def]
    """Squared l2 norm of row b, in float64."""
    total = 0.0
    for j in range(x.shape[1]):
        total += np.float64(x[b, j]) * np.float64(x[b, j])
    return total


@reordered
def _sizes(x, b):  # type: ignore[no-untyped-def]
    """l1 norm of row b, in float64."""
    total = 0.0
    for j in range(x.shape[1]):
        total += abs(np.float64(x[b, j]))
    return total


@compiled
def _clip_factor(label, x, p, b, margin, weights, clip, l1):  # type: ignore[no-untyped-def]
    """s = c min(1, C / ||G||), the clipped loss coefficient, and ||dx||_2; s = 0 where no bound holds.

    A label of 0 is a null pair (`pairveil.records.canonical`): it contributes nothing.
    """
    if label == 0:
        return 0.0, 0.0
    x_squares, p_squares = _squares(x, b), _squares(p, b)
    if not (_TINY <= x_squares <= LONGEST**2 and p_squares >= _TINY):
        return 0.0, 0.0  # also when one of them is not a number
    if not p_squares * x_squares <= _HUGE:
        return 0.0, 0.0
    length, distance = math.sqrt(x_squares), math.sqrt(p_squares)
    if label > 0:
        c = weights[0]
    elif distance < margin:
        c = weights[1] * (distance - margin) / distance
    else:
        return 0.0, length
    norm = abs(c) * (_sizes(p, b) * _sizes(x, b) if l1 else distance * length)
    s = c * (clip / norm) if norm > clip else c
    # a = s P must be finite in the array's type as well.
    return (s if abs(s) * distance <= _LARGEST else 0.0), length


@njit(nogil=True)
def sum_tiles(  # type: ignore[no-untyped-def]
    features, scale, pairs, labels, rows, every, first, last, tile, w, margin, weights, clip, l1,
    per_grid,
):  # fmt: skip
    """Integer sum over places first..last of ``rows`` (of all pairs if ``every``), tile by tile.

    ``w`` is padded with zeros to whole registers; so are the pairs of a tile. Returns the sum, padded
    likewise, and whether every index was within its array.
    """
    room = (min(tile, last - first) + PAIRS - 1) // PAIRS * PAIRS
    x = np.zeros((room, w.shape[1]), dtype=features.dtype)
    p = np.empty((room, w.shape[0]), dtype=features.dtype)
    g = np.empty(w.shape, dtype=features.dtype)
    total = np.zeros(w.shape, dtype=np.int64)
    for start in range(first, last, tile):
        n = min(tile, last - start)
        padded = (n + PAIRS - 1) // PAIRS * PAIRS
        x[n:padded] = 0
        for b in range(n):
            row = start + b if every else rows[start + b]
            if not _gather(features, scale, pairs, row, x, b):
                return total, False
        _project(x, padded, w, p)
        for b in range(n):
            row = start + b if every else rows[start + b]
            s, _ = _clip_factor(labels[row], x, p, b, margin, weights, clip, l1)
            if s == 0.0:
                p[b] = 0  # both: 0 times infinity is not 0
                x[b] = 0
            else:
                for r in range(p.shape[1]):
                    p[b, r] = s * p[b, r]
        _accumulate(x, padded, p, g)
        for r in range(g.shape[0]):
            for j in range(g.shape[1]):
                total[r, j] += np.int64(np.rint(np.float64(g[r, j]) * per_grid))
    return total, True


# ---- pairs in whole units of their own, and steps made of them -----------------------------------


@reordered
def _project_one(x, b, w, p):  # type: ignore[no-untyped-def]
    """P = W dx for row b alone, two rows of W at a time."""
    zero = x.dtype.type(0)
    for r in range(0, w.shape[0], ROWS):
        p0, p1 = zero, zero
        for j in range(w.shape[1]):
            p0, p1 = p0 + w[r, j] * x[b, j], p1 + w[r + 1, j] * x[b, j]
        p[b, r], p[b, r + 1] = p0, p1


@compiled
def _to_units(rows, b, factor, units):  # type: ignore[no-untyped-def]
    """Row b times a factor, cut to whole numbers towards zero: no entry grows."""
    for j in range(rows.shape[1]):
        units[b, j] = np.trunc(np.float64(rows[b, j]) * factor)


@njit(nogil=True)
def _exact_room(features, w):  # type: ignore[no-untyped-def]
    """Arrays for a tile: differences, projections, both in units, and the sum of their products."""
    x = np.zeros((EXACT_TILE, w.shape[1]), dtype=features.dtype)
    p = np.empty((EXACT_TILE, w.shape[0]), dtype=features.dtype)
    return x, p, np.zeros(x.shape), np.zeros(p.shape), np.empty(w.shape)


@njit(nogil=True)
def _sum_exactly(  # type: ignore[no-untyped-def]
    features, scale, pairs, labels, rows, every, first, last, w, margin, weights, clip, l1, units,
    room, total,
):  # fmt: skip
    """Put the sum over places first..last of ``rows`` into ``total``; False if an index is wrong.

    ``units``: how many make 1, for dx / ||dx|| and for a ||dx||.
    """
    x, p, u, a, g = room
    total[:] = 0
    for start in range(first, last, EXACT_TILE):
        n = min(EXACT_TILE, last - start)
        # All rows first: while one is on its way from memory the next are asked for.
        for b in range(n):
            row = start + b if every else rows[start + b]
            if not _gather(features, scale, pairs, row, x, b):
                return False
        for b in range(n):
            row = start + b if every else rows[start + b]
            _project_one(x, b, w, p)
            s, length = _clip_factor(labels[row], x, p, b, margin, weights, clip, l1)
            if s == 0.0:
                u[b], a[b] = 0.0, 0.0
                continue
            _to_units(x, b, units[0] / length, u)
            _to_units(p, b, s * length * units[1], a)
        padded = (n + PAIRS - 1) // PAIRS * PAIRS
        u[n:padded], a[n:padded] = 0.0, 0.0
        _accumulate(u, padded, a, g)
        for r in range(g.shape[0]):
            for j in range(g.shape[1]):
                total[r, j] += np.int64(g[r, j])
    return True


@njit(nogil=True)
def sum_exactly(  # type: ignore[no-untyped-def]
    features, scale, pairs, labels, rows, every, first, last, w, margin, weights, clip, l1, units
):
    total = np.empty(w.shape, dtype=np.int64)
    sound = _sum_exactly(
        features, scale, pairs, labels, rows, every, first, last, w, margin, weights, clip, l1,
        units, _exact_room(features, w), total,
    )  # fmt: skip
    return total, sound


@njit(nogil=True)
def descend_exactly(  # type: ignore[no-untyped-def]
    features, scale, pairs, labels, rows, edges, start, w, rate, noise, grid, margin, weights, clip,
    l1, units,
):  # fmt: skip
    """Steps over rows[edges[t]:edges[t + 1]]; ``noise`` turns into the noisy sums in its place."""
    moving, total, room = start.copy(), np.empty(w.shape, dtype=np.int64), _exact_room(features, w)
    for t in range(noise.shape[0]):
        for r in range(start.shape[0]):
            for j in range(start.shape[1]):
                w[r, j] = moving[r, j]
        sound = _sum_exactly(
            features, scale, pairs, labels, rows, False, edges[t], edges[t + 1], w, margin, weights,
            clip, l1, units, room, total,
        )  # fmt: skip
        if not sound:
            return moving, False
        for r in range(start.shape[0]):
            for j in range(start.shape[1]):
                # Whole numbers below 2^62 and 2^53: their sum is exact, and only then made a float.
                noise[t, r, j] = (total[r, j] + np.int64(noise[t, r, j] / grid)) * grid
                moving[r, j] = moving[r, j] - rate * noise[t, r, j]
    return moving, True


# ---- sparse rows ---------------------------------------------------------------------------------


@njit(nogil=True)
def _difference(values, columns, starts, left, right, scale, where, x):  # type: ignore[no-untyped-def]
    """Merge two rows: the columns in which they differ, and the scaled differences; how many."""
    i, end_i = starts[left], starts[left + 1]
    j, end_j = starts[right], starts[right + 1]
    count = 0
    while i < end_i or j < end_j:
        if j >= end_j or (i < end_i and columns[i] < columns[j]):
            column, value = columns[i], np.float64(values[i])
            i += 1
        elif i >= end_i or columns[j] < columns[i]:
            column, value = columns[j], -np.float64(values[j])
            j += 1
        else:
            column, value = columns[i], np.float64(values[i]) - np.float64(values[j])
            i += 1
            j += 1
        where[count], x[0, count] = column, value * scale[column]
        count += 1
    return count


@njit(nogil=True)
def _project_sparse(w, where, x, count, p):  # type: ignore[no-untyped-def]
    """p = W dx, from the columns in which the pair differs."""
    p[:] = 0.0
    for c in range(count):
        column, value = w[where[c]], x[0, c]
        for r in range(w.shape[1]):
            p[0, r] += column[r] * value


@njit(nogil=True)
def _add_sparse(total, where, x, count, p, per_grid):  # type: ignore[no-untyped-def]
    """Add the pair's gradient p dx^T, entry by entry in whole units (per_grid is a power of two)."""
    for c in range(count):
        column, value = total[where[c]], x[0, c] * per_grid
        for r in range(total.shape[1]):
            column[r] += np.rint(p[0, r] * value)


@njit(nogil=True)
def _move_over(recent, total):  # type: ignore[no-untyped-def]
    """Take what was added lately over to the integers."""
    for column in range(total.shape[0]):
        for r in range(total.shape[1]):
            total[column, r] += np.int64(recent[column, r])
            recent[column, r] = 0.0


@njit(nogil=True)
def sum_sparse(  # type: ignore[no-untyped-def]
    values, columns, starts, longest, scale, pairs, labels, rows, every, first, last, w, margin,
    weights, clip, l1, per_grid, room,
):  # fmt: skip
    """Integer sum, (d, k), over places first..last of ``rows`` (of all pairs if ``every``).

    ``room`` is how many pairs' whole numbers float64 adds up without error.
    """
    total, recent = np.zeros(w.shape, dtype=np.int64), np.zeros(w.shape)
    where, x = np.empty(longest, dtype=np.uint32), np.empty((1, longest))
    p = np.empty((1, w.shape[1]))
    n_people, added = starts.size - 1, 0
    for place in range(first, last):
        row = place if every else rows[place]
        if not 0 <= row < pairs.shape[0]:
            return total, False
        left, right = pairs[row, 0], pairs[row, 1]
        if min(left, right) < 0 or max(left, right) >= n_people:
            return total, False
        count = _difference(values, columns, starts, left, right, scale, where, x)
        _project_sparse(w, where, x, count, p)
        s, _ = _clip_factor(labels[row], x[:, :count], p, 0, margin, weights, clip, l1)
        if s == 0.0:
            continue
        for r in range(w.shape[1]):
            p[0, r] = s * p[0, r]
        _add_sparse(recent, where, x, count, p, per_grid)
        added += 1
        if added == room:
            _move_over(recent, total)
            added = 0
    _move_over(recent, total)
    return total, True
