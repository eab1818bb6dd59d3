"""`aggregate` on Dask arrays: the bits of NumPy, in memory of few chunks; errors."""

import re

import numpy as np
import pytest

import gatherum
from strategies import same_bits

da = pytest.importorskip("dask.array", reason="install Dask: pip install 'dask[array]'")

RNG = np.random.default_rng(1)
ROWS = RNG.standard_normal((6, 10, 2))
SOURCES, TARGETS = RNG.integers(0, 10, 30), RNG.integers(0, 4, 30)
HEADS = RNG.standard_normal((30, 2))


def lazy(array, chunks):
    return da.from_array(array, chunks=chunks)


@pytest.mark.parametrize(
    ("dtype", "reduction", "options"),
    [
        ("f4", "add", {}),
        ("f4", "mean", {"mode": "drop"}),
        ("f2", "fsum", {"fill_value": np.nan}),
        ("c8", "mul", {}),
        ("i4", "max", {"fill_value": -1, "mode": "clip"}),
        ("?", "add", {}),
    ],
)
@pytest.mark.parametrize("weighted", [None, "edges", "heads"])
def test_the_bits_of_numpy(dtype, reduction, options, weighted):
    data = ROWS.astype(dtype)
    beyond = 3 * ("mode" in options)
    ends = SOURCES + beyond, TARGETS + beyond
    weights = {None: None, "edges": HEADS[:, 0], "heads": HEADS}[weighted]
    weights = None if weights is None else weights.astype(dtype)
    expected = gatherum.aggregate(data, *ends, 5, reduction, weights, axis=1, **options)
    for known in (True, False):
        edges = ends if known else [lazy(end, 7) for end in ends]
        factors = weights if known or weights is None else lazy(weights, 8)
        result = gatherum.aggregate(
            lazy(data, (4, 3, 1)), *edges, 5, reduction, factors, axis=1, **options
        )
        assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
        assert same_bits(result.compute(), expected)


def test_pointers_and_matrices():
    sparse = pytest.importorskip("scipy.sparse")
    data, matrix = ROWS[0], sparse.random(4, 10, 0.4, "csr", random_state=1)
    for edges, options in ((SOURCES[:3], {"indptr": [0, 1, 1, 3]}), (matrix, {})):
        expected = gatherum.aggregate(data, edges, None, None, "add", **options)
        result = gatherum.aggregate(lazy(data, 3), edges, None, None, "add", **options)
        assert same_bits(result.compute(), expected)


def test_a_large_result_has_several_chunks():
    rows = da.zeros((100, 64), chunks=10)
    result = gatherum.aggregate(rows, [0, 1], [0, 1], 3_000_000, "add")
    assert max(result.chunks[0]) < 300_000


@pytest.mark.parametrize("scatter", [False, True])
def test_a_prepared_call(scatter):
    op = gatherum.scatter_slices if scatter else gatherum.gather
    options = {"axis": 1} | ({"reduction": "add"} if scatter else {})
    updates = (ROWS[:, 3:5] * 2,) if scatter else ()
    run = gatherum.prepare(op, ROWS, [7, -3], **options)
    result = run(lazy(ROWS, 4), *(lazy(update, 4) for update in updates))
    assert isinstance(result, da.Array)
    assert same_bits(result.compute(), op(ROWS, [7, 7], *updates, **options))
    with pytest.raises(ValueError, match=r"the call was prepared for `data` of shape \(6, 10, 2\)"):
        run(lazy(ROWS[1:], 4), *updates)
    with pytest.raises(TypeError, match=r"^gather: `out`|^scatter_slices: `out`"):
        run(lazy(ROWS, 4), *updates, out=ROWS)


def test_aggregate_checks_the_arguments_of_dask_arrays():
    data = lazy(ROWS, 3)
    message = "aggregate: index 99 is out of bounds for axis 1 of size 10 (gather_indices[1])"
    with pytest.raises(IndexError, match=re.escape(message)):
        gatherum.aggregate(data, [0, 99], [0, 0], 1, "add", axis=1).compute()
    message = "aggregate: index -9 is out of bounds for axis 1 of size 2 (scatter_indices[0])"
    with pytest.raises(IndexError, match=re.escape(message)):
        gatherum.aggregate(data, [0, 1], [-9, 0], 2, "add", axis=1).compute()
    with pytest.raises(TypeError, match=r"^aggregate: `out` must be None for Dask arrays"):
        gatherum.aggregate(data, [0], [0], 1, "add", out=ROWS[:1])
    with pytest.raises(TypeError, match=r"^aggregate: `weights` must have the dtype of `data`"):
        gatherum.aggregate(data, [0], [0], 1, "add", np.ones(1, "f4"))
