"""Exact sums by the CUDA kernels on this processor: the bits of the core, in any order."""

import numpy as np
import pytest
from shim.device import COMPILER, NO_COMPILER, ShimDevice
from shim.functions import ShimFunctions
from shim.values import values

import gatherum
from gatherum import reference
from gatherum.cuda import folds
from strategies import ML_DTYPES, same_bits

pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason=NO_COMPILER),
    pytest.mark.usefixtures("several_launches"),
]
slow = pytest.mark.slow  # each variant of a kernel is compiled

HALVES = [np.dtype("f2"), *(dtype for dtype in ML_DTYPES if dtype.name == "bfloat16")]
DTYPES = [*HALVES, *map(np.dtype, ("f4", "f8", "c8", "c16"))]
REDUCTIONS = ("fsum", "fmean")


@pytest.fixture
def shim():
    return ShimFunctions()


def finite(dtype, shape, rng):
    """Return numbers of all exponents, including subnormal ones and zeros."""
    size = dtype.itemsize // (2 if dtype.kind == "c" else 1)
    part = np.dtype(f"f{size}") if dtype.kind == "c" else dtype
    bits = rng.integers(0, 1 << 8 * size, (*shape, dtype.itemsize // size), f"u{size}")
    result = bits.view(part)
    with np.errstate(invalid="ignore"):
        result = np.where(np.isfinite(result), result, part.type(1)).astype(part)
    return np.ascontiguousarray(result).view(dtype)[..., 0]


def shuffled(rng, *lengths):
    """Return shuffled indices with the given counts."""
    return rng.permutation(np.repeat(np.arange(len(lengths)), lengths))


def test_a_sum_has_the_same_bits_in_any_order(shim):
    rng = np.random.default_rng(0)
    indices = shuffled(rng, 0, 1, 5, 40, 700)
    updates, data = finite(np.dtype("f4"), (indices.size,), rng), np.full(5, 0.1, "f4")
    options = {"reduction": "fsum", "mode": "drop"}
    expected = reference.scatter_elements(data, indices, updates, **options)
    assert same_bits(shim.scatter_elements(data, indices, updates, **options), expected)
    names = ["gather", "sorted_keys", "fold_exact", "fold_exact_long", "fold_exact_long"]
    assert shim.last.names() == names
    assert shim.last.reads == 0
    again = rng.permutation(indices.size)
    result = shim.scatter_elements(data, indices[again], updates[again], **options)
    assert same_bits(result, expected)


LENGTHS = (0, 1, 2, 16, 17, 60, 513)


@slow
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sums_of_all_exponents_that_cancel(shim, dtype, reduction):
    rng = np.random.default_rng(1)
    for row in ((), (3,), (9,), (33,)):
        indices = shuffled(rng, *LENGTHS)
        data = finite(dtype, (len(LENGTHS), *row), rng)
        updates = finite(dtype, (indices.size, *row), rng)
        # The remaining sum of each destination is much smaller than its terms.
        indices, updates = np.tile(indices, 2), np.concatenate([updates, -updates])
        updates[indices.size // 2 :: 7] = data[indices[indices.size // 2 :: 7]]
        for include_self in (True, False):
            options = {"reduction": reduction, "include_self": include_self}
            result = shim.scatter_slices(data, indices, updates, **options)
            assert same_bits(result, gatherum.scatter_slices(data, indices, updates, **options))


@slow
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", DTYPES[-5:], ids=str)
def test_nan_infinities_and_zeros(shim, dtype, reduction):
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0], "f4").astype(dtype)
    numbers = np.array([(a, b) for a in range(7) for b in range(7)])
    data, updates = special[numbers[:, 0]], special[numbers[:, 1]]
    indices = np.arange(49)
    for include_self in (True, False):
        options = {"reduction": reduction, "include_self": include_self}
        result = shim.scatter_elements(data, indices, updates, **options)
        assert same_bits(result, gatherum.scatter_elements(data, indices, updates, **options))


@slow
@pytest.mark.parametrize("few", [20_000, 2], ids=["a thread", "a block"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_carries_move_on_in_time(shim, sign, few, monkeypatch):
    """A limb of float64 holds 1024 of the terms that fill it most."""
    monkeypatch.setattr(folds, "LONGEST_ITEM_SEGMENT", few)
    monkeypatch.setattr(folds, "LONGEST_WARP_SEGMENT", few)
    largest = np.array((33 << 52) - 1, np.uint64).view(np.float64)
    updates = np.full(5001, sign * largest)
    updates[5000] = -sign * 2.0**-1074
    options = {"reduction": "fsum"}
    for some in (updates, np.concatenate([updates, -updates[:5000]])):
        indices = np.zeros(some.size, np.int64)
        result = shim.scatter_elements(np.zeros(1), indices, some, **options)
        assert same_bits(result, gatherum.scatter_elements(np.zeros(1), indices, some, **options))


@slow
def test_a_mean_is_rounded_once(shim):
    rng = np.random.default_rng(2)
    for dtype in (np.dtype("f2"), np.dtype("f8")):
        counts = rng.integers(1, 60, 40)
        indices = shuffled(rng, *counts)
        small = np.array(np.iinfo(f"i{dtype.itemsize}").max // 2, f"i{dtype.itemsize}").view(dtype)
        for scale in (dtype.type(1), small, np.finfo(dtype).smallest_subnormal):
            updates = scale * rng.integers(-3, 4, indices.size).astype(dtype)
            options = {"reduction": "fmean", "include_self": False}
            result = shim.scatter_elements(np.zeros(40, dtype), indices, updates, **options)
            expected = reference.scatter_elements(np.zeros(40, dtype), indices, updates, **options)
            assert same_bits(result, expected)


@slow
@pytest.mark.parametrize("tiny", [0.0, 2.0**-1000, -(2.0**-1000)])
def test_a_remainder_breaks_a_tie(shim, tiny):
    updates = np.array([2.0, 2.0**-52, tiny, 0.0])
    options = {"reduction": "fmean", "include_self": False}
    result = shim.scatter_elements(np.zeros(1), np.zeros(4, int), updates, **options)
    assert result[0] == (0.5 + 2.0**-53 if tiny > 0 else 0.5)


@slow
def test_the_order_of_threads_and_blocks_changes_nothing():
    rng = np.random.default_rng(3)
    data, indices = values((9, 2), "f4"), rng.integers(0, 9, 900)
    updates = values((900, 2), "f4")
    expected = gatherum.scatter_slices(data, indices, updates, reduction="fsum")
    for seed in range(5):
        shim = ShimFunctions(lambda seed=seed: ShimDevice(1000 * seed))
        result = shim.scatter_slices(data, indices, updates, reduction="fsum")
        assert same_bits(result, expected)
