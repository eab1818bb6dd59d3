"""The core orders values by group, then by value, then by position, on any number of threads."""

import ml_dtypes
import numpy as np
import pytest

import gatherum
from gatherum._system import native
from gatherum.groups import namespace

FLOAT8 = np.dtype(ml_dtypes.float8_e4m3fn)
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8"]
DTYPES = [np.dtype(dtype) for dtype in DTYPES] + [BFLOAT16, FLOAT8]
SIZES = [0, 1, 2, 127, 128, 1000, 200_000]  # 128 values are sorted by bytes, 200,000 in parts


def _expected(values, groups):
    """Sort with NumPy's stable sort. It has no order for ml_dtypes' NaN."""
    if values is None:
        return np.argsort(groups, kind="stable")
    values = values.astype("f4") if values.dtype in (BFLOAT16, FLOAT8) else values
    by_value = np.argsort(values, kind="stable")
    return by_value[np.argsort(groups[by_value], kind="stable")]


def _random(rng, dtype, count):
    if dtype == "?":
        return rng.random(count) < 0.5
    values = np.frombuffer(rng.bytes(count * dtype.itemsize), dtype).copy()
    if rng.random() < 0.5:
        values = rng.integers(0, 4, count).astype(dtype)  # many are equal
    if dtype.kind == "f" and count:
        for special in (np.nan, -np.nan, -0.0, 0.0, np.inf, -np.inf):
            values[rng.integers(0, count, count // 20)] = special
    return values


@pytest.fixture(params=[1, 3])
def threads(request):
    before = gatherum.get_num_threads()
    gatherum.set_num_threads(request.param)
    yield request.param
    gatherum.set_num_threads(before)


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_values_are_in_order(dtype, count, threads):
    rng = np.random.default_rng(count)
    for group_count in (1, 3, 1000, 5 * count + 2000):  # the last: few groups have values
        groups = rng.integers(0, group_count, count)
        groups[: count // 2] = 0  # one group is large
        values = _random(rng, dtype, count)
        order = namespace.sorted_order(values, groups)
        assert np.array_equal(order, _expected(values, groups)), group_count
        assert np.array_equal(namespace.sorted_order(None, groups), _expected(None, groups))


@pytest.mark.parametrize("dtype", ["i4", "i8", "f4", "f8"])
def test_keys_that_share_their_highest_bits(dtype):
    rng = np.random.default_rng(6)
    signed = np.dtype(dtype.replace("f", "i"))
    extremes = np.array([np.iinfo(signed).min // 2, np.iinfo(signed).max // 2], signed)
    parts = [extremes]
    for shift in range(0, 8 * signed.itemsize - 12, 8):  # 1000 keys of 10 bits at each place
        parts.append(extremes[1] // 3 + (rng.integers(0, 1024, 1000).astype(signed) << shift))
    values = rng.permutation(np.concatenate(parts)).view(dtype)
    groups = np.zeros(len(values), np.int64)
    assert np.array_equal(namespace.sorted_order(values, groups), _expected(values, groups))


def test_values_that_ascend():
    values = np.repeat(np.array([-1.5, -0.0, 0.0, 2.5, np.nan]), 100)
    groups = np.zeros(500, np.int64)
    assert np.array_equal(namespace.sorted_order(values, groups), np.arange(500))
    assert np.array_equal(namespace.sorted_order(-values, groups), _expected(-values, groups))


@pytest.mark.parametrize("dtype", ["M8[s]", ">m8[ns]"])
def test_dates_are_in_order_and_nat_is_last(dtype):
    rng = np.random.default_rng(3)
    values = rng.integers(-5, 5, 1000).astype(dtype)
    values[::9] = "NaT"
    groups = rng.integers(0, 20, 1000)
    assert np.array_equal(namespace.sorted_order(values, groups), _expected(values, groups))


@pytest.mark.parametrize("name", ["median", "rank", "cumsum"])
def test_unaligned_values_and_groups(name):
    aligned = np.array([3.0, 1.0, 2.0]), np.array([0, 0, 1])
    pairs = [np.frombuffer(b"0" + x.tobytes(), x.dtype, offset=1) for x in aligned]
    values, groups = pairs
    assert not values.flags.aligned
    assert not groups.flags.aligned
    call = gatherum.groups.reduce if name == "median" else gatherum.groups.transform
    assert np.array_equal(call(values, groups, func=name), call(*aligned, func=name))


@pytest.mark.parametrize("values", [np.array([2.5, -1.5, 0.5]), None])
def test_the_core_refuses_other_arrays(values):
    groups, order = np.array([0, 1, 0]), np.zeros(3, np.int64)
    assert native.order("float64", values, groups, 2, order)
    assert order.tolist() == ([2, 0, 1] if values is not None else [0, 2, 1])
    for wrong in (groups[:2].copy(), groups.astype("i4")):
        with pytest.raises(ValueError, match="not the arrays of this function"):
            native.order("float64", values, wrong, 2, order)
    for count in (1, 0):
        with pytest.raises(ValueError, match="`groups` changed during the call"):
            native.order("float64", values, groups, count, order)
    assert not native.order("complex64", np.zeros(3, "c8"), groups, 2, order)
