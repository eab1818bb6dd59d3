"""Sums and extremes without the old values, by accumulators without counters."""

import numpy as np
import pytest

import gatherum
from sizes import chosen_from

BINS, UPDATES = 1_003, 120_003  # enough for several threads
MANY_BINS = 25_003  # too many for private accumulators of two threads
NEVER = {"many_updates": 1 << 40}  # makes accumulators have counters
THREADS = (1, 2, 3)

pytestmark = pytest.mark.usefixtures("settings_restored")


def _operands(dtype, index_dtype="i8", seed=7, bins=BINS):
    rng = np.random.default_rng(seed)
    values = rng.integers(-9, 9, UPDATES) if dtype[0] != "u" else rng.integers(0, 9, UPDATES)
    updates = values.astype(dtype)
    if np.dtype(dtype).kind in "fc":
        updates *= np.asarray(1.37, dtype)
    indices = rng.integers(0, bins - 3, UPDATES)  # the last three have no updates
    data = np.full(bins, 5, dtype)
    return data, indices.astype(index_dtype), updates


def _counted(*operands, **options):
    gatherum.set_num_threads(1)
    with chosen_from(NEVER):
        return gatherum.scatter_slices(*operands, include_self=False, **options)


def _name(*operands, **options):
    return gatherum.plan("scatter_slices", *operands, include_self=False, **options).algorithm


def _check(operands, sizes=None, name="uncounted_accumulators", numbers=THREADS, **options):
    """Compare with accumulators that have counters, on some numbers of threads."""
    expected = _counted(*operands, **options).tobytes()
    data = operands[0]
    for threads in numbers:
        gatherum.set_num_threads(threads)
        with chosen_from({"many_updates": UPDATES // 16} | (sizes or {})):
            assert _name(*operands, **options) == name
            assert (
                gatherum.scatter_slices(*operands, include_self=False, **options).tobytes()
                == expected
            )
            out = data.copy()
            gatherum.scatter_slices(out, *operands[1:], include_self=False, out=out, **options)
            assert out.tobytes() == expected, threads


@pytest.mark.parametrize("index_dtype", ["i2", "i4", "u4", "i8", ">i8"])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16"])
def test_sums(dtype, index_dtype):
    _check(_operands(dtype, index_dtype), reduction="add")


@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "u8", "i8"])
def test_sums_of_integers_over_zeros(dtype):
    data, *others = _operands(dtype)
    _check((np.zeros_like(data), *others), reduction="add")
    _check((data, *others), reduction="add")  # elements without updates are not 0


def test_integers_that_add_up_to_zero():
    data, updates = np.full(BINS, 5), np.resize([3, -3], UPDATES)
    _check((data, np.arange(UPDATES) // 2 % BINS, updates), reduction="add")


@pytest.mark.parametrize("reduction", ["max", "min"])
@pytest.mark.parametrize("dtype", ["i8", "u8"])
def test_extremes_of_integers(dtype, reduction):
    data, indices, updates = _operands(dtype)
    _check((data, indices, updates), reduction=reduction)
    least = np.iinfo(dtype)
    updates[indices == 3] = least.min if reduction == "max" else least.max  # in place of old values
    _check((data, indices, updates), reduction=reduction)


@pytest.mark.parametrize("reduction", ["max", "min"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_extremes_of_floats(dtype, reduction):
    data, indices, updates = _operands(dtype, bins=MANY_BINS)
    updates[3::50], updates[4::50] = 0.0, -0.0
    _check((data, indices, updates), reduction=reduction, numbers=(2, 3))
    updates[::50] = np.inf if reduction == "max" else -np.inf
    updates[-1_000::70] = np.nan
    _check((data, indices, updates), reduction=reduction, numbers=(2, 3))
    updates[indices % 40 == 0] = -np.inf if reduction == "max" else np.inf
    _check((data, indices, updates), reduction=reduction, numbers=(2, 3))


def _nan(bits, dtype="f8"):
    return np.array(bits, {"f8": "u8", "f4": "u4"}[dtype]).view(dtype)


@pytest.mark.parametrize("reduction", ["add", "max", "min"])
@pytest.mark.parametrize("place", [0, -7])
@pytest.mark.parametrize("old", [0.0, -0.0, np.inf, np.nan])
@pytest.mark.parametrize(
    "alone",
    [
        -0.0, 0.0, np.inf, -np.inf, np.nan, -np.nan,
        _nan(0x7FF8_0000_0000_0001), _nan(0x7FF0_0000_0000_0001), _nan(0xFFF8_0000_0000_0000),
    ],
)  # fmt: skip
def test_an_update_that_is_alone_is_copied(old, alone, place, reduction):
    data, indices, updates = _operands("f8", bins=MANY_BINS)
    data[:] = old
    updates[indices == 4] = 1
    indices[indices == 3] = 4
    indices[place], updates[place] = 3, alone
    options = {"reduction": reduction}
    expected = _counted(data, indices, updates, **options)
    assert expected[3].tobytes() == np.float64(alone).tobytes()
    gatherum.set_num_threads(2)
    with chosen_from({"many_updates": UPDATES}):
        assert _name(data, indices, updates, **options) == "uncounted_accumulators"
        result = gatherum.scatter_slices(data, indices, updates, include_self=False, **options)
    assert result.tobytes() == expected.tobytes()


def test_computed_nans_are_canonical():
    data, indices, updates = _operands("f8")
    updates[indices == 3] = np.resize([np.inf, -np.inf], (indices == 3).sum())
    updates[indices == 4] = _nan(0xFFF8_0000_0000_0000)
    _check((data, indices, updates), reduction="add")
    updates[indices == 4] = np.nan  # only canonical NaNs
    _check((data, indices, updates), reduction="add")


@pytest.mark.parametrize("value", [-0.0, 0.0, 2.5, np.nan])
def test_one_update_for_all(value):
    data, indices, _ = _operands("f8")
    _check((data, indices, np.broadcast_to(value, UPDATES)), reduction="add")


def test_strided_operands():
    data, indices, updates = _operands("f8")
    _check((data, np.repeat(indices, 2)[::2], np.repeat(updates, 3)[::3]), reduction="add")
    _check((data[::-1], indices, updates[::-1]), reduction="add")


@pytest.mark.parametrize("places", [slice(0, 1), slice(9_000, 9_300), slice(None, None, 97)])
def test_negative_indices(places):
    data, indices, updates = _operands("f8")
    indices[places] -= BINS
    _check((data, indices, updates), reduction="add")


@pytest.mark.parametrize("dtype", ["f8", "i8"])
@pytest.mark.parametrize("mode", ["drop", "clip", "wrap"])
def test_modes(dtype, mode):
    data, indices, updates = _operands(dtype)
    indices[5::1_001] += BINS
    _check((data * 0, indices, updates), reduction="add", mode=mode)


@pytest.mark.parametrize("dtype", ["f8", "i8"])
@pytest.mark.parametrize("place", [0, 70_001, UPDATES - 1])
def test_nothing_is_written_before_every_index_was_checked(dtype, place):
    data, indices, updates = _operands(dtype)
    data[:] = 0
    indices[place] = BINS
    for threads in THREADS:
        gatherum.set_num_threads(threads)
        out = data.copy()
        with (
            chosen_from({"many_updates": UPDATES // 16}),
            pytest.raises(IndexError, match=f"{place}"),
        ):
            gatherum.scatter_slices(
                out, indices, updates, reduction="add", include_self=False, out=out
            )
        assert out.tobytes() == data.tobytes()


@pytest.mark.parametrize("reduction", ["add", "max", "min"])
@pytest.mark.parametrize("far", [False, True])
def test_ranges_of_destinations(far, reduction):
    rng = np.random.default_rng(3)
    bins = 290_001 if far else 150_001  # whose slots are prefetched, or not
    indices, updates = rng.integers(0, bins - 9, 1_200_000), rng.standard_normal(1_200_000)
    indices[5::1_001] -= bins
    updates[-9_000::70] = np.nan
    data = np.full(bins, 5.0)
    expected = _counted(data, indices, updates, reduction=reduction)
    for threads in (2, 3, 7):
        gatherum.set_num_threads(threads)
        many = 75_000 if threads < 4 else 400_000  # fewer would run in rounds
        with chosen_from({"many_updates": many, "shared_cache_bytes": 1 << 20}):
            assert _name(data, indices, updates, reduction=reduction) == "uncounted_accumulators"
            result = gatherum.scatter_slices(
                data, indices, updates, reduction=reduction, include_self=False
            )
        assert result.tobytes() == expected.tobytes(), threads


@pytest.mark.parametrize("dtype", ["f8", "i8", "c16"])
def test_the_memory_of_counters_is_stated(dtype):
    """They may be needed for values that are unknown until the call."""
    gatherum.set_num_threads(1)
    operands = np.zeros(1_000, dtype), np.zeros(262_144, "i8"), np.zeros(262_144, dtype)
    call = {"reduction": "add", "include_self": False}
    stated = gatherum.plan("scatter_slices", *operands, **call).scratch
    with chosen_from(NEVER):
        counted = gatherum.plan("scatter_slices", *operands, **call).scratch
    assert stated == counted + operands[0].nbytes


@pytest.mark.parametrize(
    ("bins", "count", "reduction", "dtype", "names"),
    [
        (1_000, 262_144, "add", "f8", {1: "uncounted_accumulators", 2: "uncounted_accumulators"}),
        (1_000, 262_143, "add", "f8", {1: "serial_accumulators"}),  # too few
        (65_537, 262_144, "add", "f8", {1: "serial_accumulators"}),  # for each destination
        (1_048_577, 5_000_000, "add", "f8", {1: "partitioned"}),  # more than a cache holds
        (
            1_000,
            262_144,
            "mul",
            "f8",
            {1: "serial_accumulators"},
        ),  # 1 also results from other values
        (1_000, 262_144, "mean", "f8", {1: "serial_accumulators"}),
        (
            1_000,
            262_144,
            "max",
            "f8",
            {1: "private_accumulators", 2: "private_accumulators"},
        ),  # by keys
        (32_769, 262_144, "max", "f8", {1: "private_accumulators", 2: "uncounted_accumulators"}),
        (1_000, 262_144, "max", "i4", {1: "uncounted_accumulators"}),
        (1_000, 262_144, "max", "i2", {1: "private_accumulators"}),
        (1_000, 262_144, "max", "f2", {1: "private_accumulators"}),
        (1_000, 262_144, "add", "?", {1: "serial_accumulators"}),
    ],
)
def test_the_chosen_algorithm(bins, count, reduction, dtype, names):
    operands = ((bins,), dtype), ((count,), "i8"), ((count,), dtype)
    for threads, name in names.items():
        gatherum.set_num_threads(threads)
        assert _name(*operands, reduction=reduction) == name, threads
