"""Every algorithm, at sizes that select it and share it among threads, compared with NumPy.

`np.ufunc.at` and assignment in a loop apply updates in row-major order of the indices, which is the
fold that the contract specifies. Half precision is folded in float32 and rounded once.
"""

import numpy as np
import pytest

import gatherum
from samples import diagonal, every
from sizes import family

pytestmark = pytest.mark.slow

THREADS = (1, 2, 3, 7)


@pytest.fixture(autouse=True)
def _restore_threads():
    before = gatherum.get_num_threads()
    yield
    gatherum.set_num_threads(before)


def _rng(seed=0):
    return np.random.default_rng(seed)


def _values(shape, dtype, seed=1):
    rng = _rng(seed)
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0, 100, shape).astype(dtype)
    if np.dtype(dtype).kind == "c":
        parts = rng.standard_normal((*np.atleast_1d(shape), 2))
        return (parts[..., 0] + 1j * parts[..., 1]).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def _index_pattern(pattern, n, m):
    """Return `m` indices below `n`, in one of the patterns that break a careless parallel fold."""
    if pattern == "one hot":
        return np.full(m, n // 2)
    if pattern == "Zipf":
        return _rng(3).zipf(1.3, m) % n
    uniform = _rng(2).integers(0, n, m)
    if pattern == "sorted":
        return np.sort(uniform)
    if pattern == "reversed":
        return np.sort(uniform)[::-1].copy()
    return uniform


PATTERNS = ("uniform", "one hot", "Zipf", "sorted", "reversed")


def patterns_by_turns(names, rows):
    """Test two patterns with each row on every change, and the other patterns for a release.

    The pairs rotate, so three consecutive rows cover all patterns. An algorithm of fewer rows is
    tested with every pattern.
    """
    few = {algorithm for algorithm, *_ in rows if sum(row[0] == algorithm for row in rows) < 3}
    return pytest.mark.parametrize(
        (*names, "pattern"),
        [
            pytest.param(*row, pattern, marks=RARE if row[0] not in few and turn % 5 > 1 else ())
            for place, row in enumerate(rows)
            for turn, pattern in enumerate(PATTERNS, 2 * place)
        ],
    )


RARE = pytest.mark.release
UFUNCS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _fold(data, indices, updates, reduction, include_self):
    """Scatter along axis 0 with NumPy, in order."""
    wide = np.float32 if data.dtype == np.float16 else data.dtype
    if reduction == "mean" and data.dtype.kind == "i":
        wide = np.int64
    out = data.astype(wide)
    if reduction == "none":
        for i, update in zip(indices.tolist(), updates, strict=True):
            out[i] = update
        return out
    touched, first = np.unique(indices, return_index=True)
    counts = np.bincount(indices, minlength=len(data))
    if not include_self:
        out[touched] = updates[first].astype(wide)
        remaining = np.ones(len(indices), bool)
        remaining[first] = False
        indices, updates = indices[remaining], updates[remaining]
    with np.errstate(all="ignore"):
        UFUNCS.get(reduction, np.add).at(out, indices, updates.astype(wide))
        if reduction == "mean":
            n = (counts + include_self)[touched]
            n = n.reshape(-1, *[1] * (out.ndim - 1))
            out[touched] = (
                out[touched] // n if data.dtype.kind in "iu" else (out[touched] / n.astype(wide))
            )
        return out.astype(data.dtype)


def _check_on_threads(expected, call):
    for threads in THREADS:
        gatherum.set_num_threads(threads)
        result = call()
        assert result.tobytes() == expected.tobytes(), f"{threads} threads"


@patterns_by_turns(
    ("algorithm", "n", "m", "dtype", "reduction", "include_self"),
    [
        ("direct", 1_000, 1_000, "f4", "add", True),
        ("accumulators", 300, 400_000, "f4", "add", True),
        ("accumulators", 30_000, 400_000, "f8", "add", True),
        ("accumulators", 30_000, 400_000, "i8", "mul", True),
        ("accumulators", 30_000, 400_000, "f2", "add", True),
        ("accumulators", 30_000, 400_000, "i2", "mean", True),
        ("accumulators", 30_000, 300_000, "f4", "mean", False),
        ("accumulators", 30_000, 300_000, "f4", "none", True),
        ("accumulators", 30_000, 400_000, "f8", "add", False),
        ("accumulators", 90_000, 400_000, "i8", "max", False),
        ("accumulators", 1_000_000, 600_000, "f8", "add", True),
        ("accumulators", 2_000_000, 600_000, "f4", "max", True),
        ("accumulators", 1_000_000, 600_000, "u8", "none", True),
        ("partitioned", 2_200_000, 500_000, "f4", "add", True),
        ("partitioned", 2_200_000, 500_000, "f4", "none", True),
        ("partitioned", 9_000_000, 1_200_000, "u1", "none", True),
        ("partitioned", 3_000_000, 500_000, "f2", "add", True),
        ("partitioned", 1_100_000, 500_000, "f8", "max", True),
        ("partitioned", 1_100_000, 500_000, "c8", "add", True),
        ("partitioned", 2_000_000, 500_000, "f4", "mean", False),
        ("by_destination", 2_000_000, 50_000, "f4", "mean", True),
        ("direct", 2_000_000, 50_000, "f8", "add", True),
    ],
)
def test_scatter_of_items(algorithm, n, m, dtype, reduction, include_self, pattern):
    data, updates = _values(n, dtype), _values(m, dtype, 5)
    indices = _index_pattern(pattern, n, m)
    keywords = {"reduction": reduction, "include_self": include_self}
    plan = gatherum.plan("scatter_nd", data, indices[:, None], updates, **keywords)
    assert family(plan.algorithm) == algorithm
    expected = _fold(data, indices, updates, reduction, include_self)
    _check_on_threads(
        expected, lambda: gatherum.scatter_nd(data, indices[:, None], updates, **keywords)
    )
    in_place = data.copy()
    gatherum.scatter_nd(in_place, indices[:, None], updates, **keywords, out=in_place)
    assert in_place.tobytes() == expected.tobytes()


@patterns_by_turns(
    ("algorithm", "dtype", "reduction", "include_self"),
    [
        ("direct", "f4", "none", True),
        ("direct", "f4", "add", True),
        ("direct", "f4", "max", True),
        ("by_destination", "f2", "add", True),
        ("by_destination", "f4", "mean", True),
        ("by_destination", "i4", "add", False),
    ],
)
def test_scatter_of_rows(algorithm, dtype, reduction, include_self, pattern):
    n, m, width = 3_000, 20_000, 33
    data, updates = _values((n, width), dtype), _values((m, width), dtype, 5)
    indices = _index_pattern(pattern, n, m)
    keywords = {"reduction": reduction, "include_self": include_self}
    plan = gatherum.plan("scatter_nd", data, indices[:, None], updates, **keywords)
    assert family(plan.algorithm) == algorithm
    expected = _fold(data, indices, updates, reduction, include_self)
    _check_on_threads(
        expected, lambda: gatherum.scatter_nd(data, indices[:, None], updates, **keywords)
    )


def forms(*shapes):
    """Return each axis of each shape."""
    return [(shape, axis) for shape in shapes for axis in (0, 1, -1)[: len(shape)]]


FOLDS = [
    ("f4", "none"), ("f4", "add"), ("f2", "add"), ("i8", "mean"), ("f8", "max"), ("u1", "none"),
]  # fmt: skip
FORMS = forms((3_000, 400), (20_000, 60), (50_000, 7), (64, 9_000), (20, 90, 500))


@pytest.mark.parametrize(
    ("dtype", "reduction", "shape", "axis"),
    every(3, [(*fold, *form) for fold in FOLDS for form in FORMS]),
)
def test_scatter_elements_of_every_form(shape, axis, dtype, reduction):
    data, updates = _values(shape, dtype), _values(shape, dtype, 5)
    indices = _rng(6).integers(0, shape[axis], shape)
    moved = [np.moveaxis(a, axis, 0).reshape(shape[axis], -1) for a in (data, indices, updates)]
    flat = moved[1] * moved[0].shape[1] + np.arange(moved[0].shape[1])
    expected = _fold(moved[0].ravel(), flat.ravel(), moved[2].ravel(), reduction, True)
    extents = [extent for d, extent in enumerate(shape) if d != axis % len(shape)]
    expected = np.moveaxis(expected.reshape(shape[axis], *extents), 0, axis)
    call = (data, indices, updates, axis)
    _check_on_threads(
        np.ascontiguousarray(expected),
        lambda: gatherum.scatter_elements(*call, reduction=reduction),
    )


@pytest.mark.parametrize(
    ("form", "dtype"),
    diagonal(
        2,
        forms((3_000, 400), (20_000, 60), (300, 9_000), (20, 90, 500)),
        ["u1", "f2", "f4", "f8", "c16"],
    ),
)
def test_gathers_of_every_form(form, dtype):
    shape, axis = form
    data = _values(shape, dtype)
    indices = _rng(6).integers(-shape[axis], shape[axis], shape)
    _check_on_threads(
        np.take_along_axis(data, indices, axis),
        lambda: gatherum.gather_elements(data, indices, axis),
    )
    picked = _rng(7).integers(0, shape[axis], 2 * shape[axis])
    _check_on_threads(np.take(data, picked, axis), lambda: gatherum.gather(data, picked, axis))


@pytest.mark.parametrize("mode", ["fill", "clip", "wrap"])
@pytest.mark.parametrize("axis", [0, 1])
def test_modes_in_the_special_kernels(mode, axis):
    shape = (2_000, 300)
    data = _values(shape, "f4")
    n = shape[axis]
    indices = _rng(6).integers(-2 * n, 2 * n, shape)
    if mode == "fill":
        valid = (indices >= -n) & (indices < n)
        expected = np.where(
            valid, np.take_along_axis(data, np.where(valid, indices, 0), axis), np.float32(7)
        )
    elif mode == "clip":
        positive = np.where((indices < 0) & (indices >= -n), indices + n, indices)
        expected = np.take_along_axis(data, np.clip(positive, 0, n - 1), axis)
    else:
        expected = np.take_along_axis(data, indices % n, axis)
    _check_on_threads(
        expected,
        lambda: gatherum.gather_elements(data, indices, axis, mode=mode, fill_value=7),
    )


def test_lines_of_updates_that_are_cut_in_pieces():
    indices = _rng(9).integers(0, 2_200_000, (8, 60_000, 1))[:, :50_000]
    data, updates = _values((2_200_000,), "f4"), _values((8, 50_000), "f4")
    plan = gatherum.plan("scatter_nd", data, indices, updates, reduction="add")
    assert (family(plan.algorithm), len(plan.nest.loops)) == ("partitioned", 2)
    _check_on_threads(
        _fold(data, indices.ravel(), updates.ravel(), "add", True),
        lambda: gatherum.scatter_nd(data, indices, updates, reduction="add"),
    )


@pytest.mark.parametrize("columns", [1, 2, 4, 8, 16, 3])
@pytest.mark.parametrize("shape", [(2_000, 300), (20, 30), (1, 100_000)])
def test_a_row_of_items_is_filled_whole(shape, columns):
    data = _values((*shape, columns), "u1")
    indices = _rng(6).integers(-2 * shape[1], 2 * shape[1], 500)
    valid = (indices >= -shape[1]) & (indices < shape[1])
    expected = np.where(valid[:, None], np.take(data, np.where(valid, indices, 0), 1), np.uint8(7))
    _check_on_threads(
        expected, lambda: gatherum.gather(data, indices, 1, mode="fill", fill_value=7)
    )


@pytest.mark.parametrize("algorithm", ["direct", "prefetched", "packed"])
def test_the_first_bad_index_is_found_on_any_number_of_threads(algorithm):
    shape, axis = {
        "direct": ((900, 900), 1),
        "prefetched": ((900, 900), 1),
        "packed": ((900, 900), 0),
    }[algorithm]
    data = _values(shape, "f4")
    indices = _rng(6).integers(0, 900, shape)
    indices[700, 5], indices[701, 3], indices[899, 0] = 900, -901, 10_000
    if algorithm == "direct":
        data = data[:, ::2].repeat(2, 1).T.copy().T  # columns far apart
    for threads in THREADS:
        gatherum.set_num_threads(threads)
        with pytest.raises(IndexError, match=r"index 900 .* \(indices\[700, 5\]\)"):
            gatherum.gather_elements(data, indices, axis)


def test_a_partition_writes_nothing_when_an_index_is_bad():
    n, m = 2_000_000, 500_000
    data, updates = _values(n, "f4"), _values(m, "f4", 5)
    indices = _rng(2).integers(0, n, m)
    indices[[123_456, 400_000]] = n, -n - 1
    before = data.copy()
    for threads in THREADS:
        gatherum.set_num_threads(threads)
        with pytest.raises(IndexError, match=rf"index {n} .* \(indices\[123456, 0\]\)"):
            gatherum.scatter_nd(data, indices[:, None], updates, reduction="add", out=data)
        assert data.tobytes() == before.tobytes()
    kept = np.ones(m, bool)
    kept[[123_456, 400_000]] = False
    expected = _fold(data, indices[kept], updates[kept], "add", True)
    result = gatherum.scatter_nd(data, indices[:, None], updates, reduction="add", mode="drop")
    assert result.tobytes() == expected.tobytes()
