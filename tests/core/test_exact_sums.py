"""Sums that are rounded once: the values of real arithmetic for any order of the updates."""

import math
import pickle
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import gatherum
from gatherum import Accumulator, reference
from samples import every
from sizes import SIZES, chosen_from
from strategies import ML_DTYPES, same_bits

HALVES = [np.dtype("f2"), *(dtype for dtype in ML_DTYPES if dtype.name == "bfloat16")]
FLOATS = [*HALVES, np.dtype("f4"), np.dtype("f8")]
COMPLEX = [np.dtype("c8"), np.dtype("c16")]
WIDTHS = {"float16": (11, 15), "bfloat16": (8, 127), "float32": (24, 127), "float64": (53, 1023)}
REDUCTIONS = ("fsum", "fmean")


def bits_of(dtype):
    return np.dtype(f"u{dtype.itemsize}")


def anything(dtype, size, seed=0):
    """Return finite values of every exponent, including subnormal ones and zeros of both signs."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 1 << 8 * dtype.itemsize, size, bits_of(dtype))
    significand, largest = WIDTHS[dtype.name]
    infinity = (2 * largest + 1) << significand - 1
    finite = (bits & bits_of(dtype).type(infinity)) != infinity
    return np.where(finite, bits, bits & bits_of(dtype).type(1 << 8 * dtype.itemsize - 1)).view(
        dtype
    )


def parts(values):
    """Return the items as Fractions."""
    return [Fraction(float(value)) for value in values]


def nearest(number, dtype):
    """Round a Fraction by comparing it with its neighbours among the values of the dtype."""
    significand, largest = WIDTHS[dtype.name]
    unit = Fraction(1, 2 ** (largest - 1 + significand - 1))
    low, high = 0, (2 * largest + 1) << significand - 1  # bits are in the order of values

    def value(bits):
        exponent, fraction = divmod(bits, 1 << significand - 1)
        return unit * (
            fraction if exponent == 0 else (fraction + (1 << significand - 1)) << exponent - 1
        )

    size = abs(number)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if value(middle) <= size else (low, middle)
    below, above = size - value(low), value(high) - size
    chosen = low if below < above or (below == above and low % 2 == 0) else high
    sign = 1 << 8 * dtype.itemsize - 1 if number < 0 else 0
    return np.array(sign | chosen, bits_of(dtype)).view(dtype)


def scattered(values, indices=None, size=1, **options):
    values = np.asarray(values)
    indices = np.zeros((len(values), 1), np.int64) if indices is None else indices
    options = {"reduction": "fsum", "include_self": False} | options
    return gatherum.scatter_nd(np.zeros(size, values.dtype), indices, values, **options)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_sums_are_those_of_fractions(dtype, reduction):
    for seed, size in enumerate((1, 2, 3, 7, 100, 1000)):
        values = anything(dtype, size, seed)
        if seed % 2:  # the result of the cancellation is small
            values = np.concatenate([values, -values[::-1], anything(dtype, 1, 9 + seed)])
        total = sum(parts(values), Fraction(0))
        expected = nearest(total / len(values) if reduction == "fmean" else total, dtype)
        if total == 0:
            continue
        result = scattered(values, reduction=reduction)
        assert same_bits(result, expected[None]), (size, result, expected)


HOSTILE = {
    "cancellation": [1e16, 1.0, -1e16],
    "alternating": [2.0**60, 1.0, -(2.0**60), 1.0] * 50,
    "ties go to even": [2.0**24, 1.0],
    "more than a tie": [2.0**24, 1.0, 2.0**-100],
    "less than a tie": [2.0**24, 1.0, -(2.0**-100)],
    "ties of negatives": [-(2.0**24), -3.0],
    "powers": [2.0**e for e in range(-120, 120)],
    "powers of both signs": [(-2.0) ** e for e in range(-120, 120)],
    "no intermediate overflow": [3e38, 3e38, -3e38],
    "overflow": [3e38, 3e38],
    "negative overflow": [-3e38, -3e38],
    "below the largest by less than half": [3.4028234663852886e38, 1e31],
    "a half more than the largest": [3.4028234663852886e38, 2.0**103],
    "subnormals": [1e-45, 1e-45, -3e-45, 1e-45],
    "the smallest": [1.2e-38, -1.2e-38, 1e-45],
    "rounded to a subnormal": [1e-40, 3e-42],
    "many far above the first": [1.0, *[1.5 * 2.0**19] * 300],
    "many far above the first, negative": [-1.0, *[-1.9 * 2.0**31] * 5000],
    "always larger": [1.1**i for i in range(700)],
    "always smaller": [1.1**-i for i in range(700)],
    "zeros before and behind": [0.0, -0.0, 3.0, 0.0, -0.0],
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_hostile_sums(dtype, name):
    values = np.array(HOSTILE[name], dtype)
    total = sum(parts(values), Fraction(0))
    expected = nearest(total, np.dtype(dtype)) if total else np.zeros((), dtype)
    assert same_bits(scattered(values), expected[None])
    assert same_bits(scattered(values[::-1]), expected[None])
    if dtype is np.float64:
        assert scattered(values)[0] == math.fsum(values)


SPECIAL = [
    ([math.nan, 1.0], math.nan),
    ([math.nan], math.nan),
    ([math.inf, -math.inf], math.nan),
    ([math.inf, 1.0, math.inf], math.inf),
    ([-math.inf, 1e4], -math.inf),
    ([-math.inf, math.nan], math.nan),
    ([1.0, -1.0], 0.0),
    ([-1.0, 1.0, -0.0], 0.0),
    ([-0.0, 0.0], 0.0),
    ([-0.0, -0.0], -0.0),
    ([-0.0], -0.0),
    ([0.0], 0.0),
    ([-0.0, 5.0], 5.0),
]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(("values", "expected"), SPECIAL)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_nan_infinities_and_zeros(dtype, values, expected, reduction):
    values = np.array(values, np.float32).astype(dtype)
    if expected == 5 and reduction == "fmean":
        expected = 2.5
    expected = np.array([expected], np.float32).astype(dtype)
    assert same_bits(scattered(values, reduction=reduction), expected)
    if len(values) > 1:
        indices = np.zeros((len(values) - 1, 1), np.int64)
        result = gatherum.scatter_nd(values[:1], indices, values[1:], reduction=reduction)
        assert same_bits(result, expected)


# Force a table of exponents for each destination, which is otherwise used for thousands of updates.
TABLES = {"small_call_bytes": 0, "many_updates": 1, "updates_per_table_word": 0}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_tables_have_the_sums_of_limbs(dtype, settings_restored):
    gatherum.set_num_threads(2)
    terms = [np.array(some, np.float32).astype(dtype) for some, _ in SPECIAL]
    with np.errstate(over="ignore"):
        terms += [np.array(some, np.float64).astype(dtype) for some in HOSTILE.values()]
    terms += [anything(dtype, 700, seed) for seed in range(20)]
    indices = np.repeat(np.arange(len(terms)), [len(some) for some in terms])[:, None]
    order = np.random.default_rng(3).permutation(len(indices))
    values = np.concatenate(terms)
    expected = scattered(values, indices, len(terms) + 1)
    with chosen_from(TABLES):
        data = np.zeros(len(terms) + 1, dtype)
        plan = gatherum.plan("scatter_nd", data, indices, values, reduction="fsum")
        assert plan.algorithm == "private_accumulators"
        assert " and a table of " in plan.reason
        result = scattered(values[order], indices[order], len(terms) + 1)
        assert same_bits(result, expected)
        old = anything(dtype, len(data), 30)
        result = gatherum.scatter_nd(old, indices, values, reduction="fsum")
    assert same_bits(result, gatherum.scatter_nd(old, indices, values, reduction="fsum"))


@pytest.mark.parametrize("dtype", FLOATS[-2:], ids=str)
def test_tables_are_settled_in_time(dtype, settings_restored):
    """Sum more of the largest fractions than a row can count, except in half precision."""
    gatherum.set_num_threads(1)
    significand, _ = WIDTHS[dtype.name]
    free = 64 - (significand - 1) % 32
    times = 3 * 2 ** (free // 2) + 5
    value = np.array((40 << significand - 1) - 1, bits_of(dtype)).view(dtype)
    values = np.broadcast_to(value, (times,))
    indices = np.broadcast_to(np.int64(0), (times, 1))
    plan = gatherum.plan("scatter_nd", np.zeros(1, dtype), indices, values, reduction="fsum")
    assert " and a table of " in plan.reason
    assert same_bits(
        scattered(values, indices), nearest(times * Fraction(float(value)), dtype)[None]
    )


def test_sums_replace_payloads_and_untouched_values_keep_them():
    nan = np.array([0x7FC00055, 0xFFC00001], np.uint32).view(np.float32)
    for include_self in (True, False):
        options = {"reduction": "fsum", "include_self": include_self}
        result = gatherum.scatter_nd(nan, [[0]], nan[:1], **options)
        assert result.view(np.uint32).tolist() == [0x7FC00000, 0xFFC00001]


# The number of terms after which carries move on, and the exponent whose significands fill a limb
# most.
TERMS = {
    "float16": (2**20, 30),
    "bfloat16": (2**23, 32),
    "float32": (2**7, 32),
    "float64": (2**9, 32),
}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_carries_move_on_in_time(dtype):
    significand, _ = WIDTHS[dtype.name]
    terms, exponent = TERMS[dtype.name]
    bits = (exponent + 1 << significand - 1) - 1
    value = np.array(bits, bits_of(dtype)).view(dtype)
    for one, other in ((value, -value), (-value, value)):
        up = np.broadcast_to(one, (2 * terms + 5,))
        fold = Accumulator(np.zeros(1, dtype), "fsum")
        fold.scatter_nd(np.zeros((len(up), 1), np.int8), up)
        assert fold.scatter_nd(np.zeros((len(up) - 1, 1), np.int8), -up[1:]).finish()[0] == one
        signs = np.concatenate([up, np.broadcast_to(other, (len(up) - 1,))])
        assert scattered(signs)[0] == one
        if terms < 2**10:
            rows = gatherum.scatter_nd(
                np.zeros((1, 3), dtype),
                np.zeros((len(signs), 1), np.int64),
                np.tile(signs[:, None], (1, 3)),
                reduction="fsum",
            )
            assert rows.tolist() == [[one] * 3]


def test_more_ones_than_float32_can_count():
    ones = np.broadcast_to(np.float32(1), (2**24 + 1,))
    indices = np.broadcast_to(np.int64(0), (2**24 + 1, 1))
    for reduction, expected in (("add", 2**24), ("fsum", 2**24 + 2), ("fmean", 1)):
        result = gatherum.scatter_nd(np.ones(1, "f4"), indices, ones, reduction=reduction)
        assert result[0] == expected
    halves = np.broadcast_to(np.float16(2**-14), (2**20 + 3,))
    assert scattered(halves, indices[: 2**20 + 3])[0] == 64


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX], ids=str)
def test_every_algorithm_order_and_number_of_threads_has_the_same_bits(
    dtype, sizes, settings_restored
):
    rng = np.random.default_rng(1)
    half = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
    values = np.stack([anything(half, 4000, 2), anything(half, 4000, 3)], 1)
    values = values.view(dtype)[:, 0] if dtype.kind == "c" else values[:, 0]
    indices = rng.integers(0, 50, (4000, 1))
    data = values[:60].copy()
    for reduction in REDUCTIONS:
        for include_self in (True, False):
            options = {"reduction": reduction, "include_self": include_self}
            expected = reference.scatter_nd(data, indices, values, **options)
            with chosen_from(sizes):
                for threads in (1, 2, 3):
                    gatherum.set_num_threads(threads)
                    order = rng.permutation(4000)
                    result = gatherum.scatter_nd(data, indices[order], values[order], **options)
                    assert same_bits(result, expected)
                    rows = gatherum.scatter_nd(
                        np.stack([data] * 3, 1),
                        indices[order],
                        np.stack([values[order]] * 3, 1),
                        **options,
                    )
                    assert same_bits(rows[:, 2].copy(), expected)


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX], ids=str)
def test_accumulators_merge_in_any_order(dtype):
    half = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
    values = anything(half, 3200, 5).view(dtype)[:1600]
    rng = np.random.default_rng(2)
    indices = rng.integers(0, 7, (1600, 1))
    data = values[:9].copy()
    for reduction in REDUCTIONS:
        expected = gatherum.scatter_nd(data, indices, values, reduction=reduction)
        for _ in range(3):
            order = rng.permutation(1600)
            cuts = [0, *sorted(rng.integers(0, 1600, 5)), 1600]
            folds = []
            for begin, end in pairwise(cuts):
                some = order[begin:end]
                fold = Accumulator(data, reduction).scatter_nd(indices[some], values[some])
                folds.append(pickle.loads(pickle.dumps(fold)))
            rng.shuffle(folds)
            while len(folds) > 1:
                folds.append(folds.pop(0).merge(folds.pop(0)))
            assert same_bits(folds[0].finish(), expected)
            assert folds[0].counts().sum() == 1600


def test_the_layout_of_a_state():
    fold = Accumulator(np.zeros(2, np.float32), "fsum").scatter_nd([[0], [0]], [1.0, -3.0])
    state = fold.__getstate__()
    assert state["version"] == 1
    sums = state["sums"]
    assert sums.dtype == np.dtype([("flags", "i8"), ("limbs", "i8", (10,))])
    # -2, in units of the smallest subnormal, 2**-149.
    assert sum(int(limb) << 32 * i for i, limb in enumerate(sums[0]["limbs"])) == -2 << 149
    assert sums[1].tobytes() == bytes(88)
    words = {"f2": 4, "f4": 11, "f8": 68, "c8": 22, "c16": 136}
    for name, count in words.items():
        state = Accumulator(np.zeros(1, name), "fmean").__getstate__()
        assert state["sums"].dtype.itemsize == 8 * count


def test_a_forged_state_gives_some_number():
    state = Accumulator(np.zeros(64, np.float64), "fmean").__getstate__()
    rng = np.random.default_rng(0)
    size = state["sums"].nbytes // 8
    forged = rng.integers(-(2**63), 2**63 - 1, size).view(state["sums"].dtype)
    forged["flags"] &= 0xFFFFFFFF
    state["sums"], state["counts"] = forged, rng.integers(0, 2**52 - 2, 64)
    one, two = Accumulator.__new__(Accumulator), Accumulator.__new__(Accumulator)
    one.__setstate__(state)
    two.__setstate__(state | {"counts": np.ones(64, np.int64)})
    assert one.finish().shape == one.scatter_nd([[3]], [1.0]).finish().shape == (64,)
    assert two.merge(Accumulator(np.zeros(64), "fmean")).finish().shape == (64,)


@pytest.mark.parametrize("dtype", ["i4", "u1", "?", ">f4", "m8[s]"])
def test_other_dtypes_are_refused(dtype):
    data = np.zeros(2, dtype)
    for reduction in REDUCTIONS:
        with pytest.raises(TypeError, match=f"'{reduction}' is not defined for dtype"):
            gatherum.scatter_nd(data, [[0]], data[:1], reduction=reduction)


def test_messages_of_weights_are_rounded_before_they_are_added():
    rng = np.random.default_rng(4)
    table = rng.standard_normal((30, 5)).astype("f4")
    weights = rng.standard_normal(400).astype("f4")
    sources, targets = rng.integers(0, 30, 400), rng.integers(0, 6, 400)
    result = gatherum.aggregate(table, sources, targets, 7, "fsum", weights)
    messages = table[sources] * weights[:, None]
    expected = reference.scatter_nd(
        np.zeros((7, 5), "f4"), targets[:, None], messages, reduction="fsum"
    )
    assert same_bits(result, expected)
    order = rng.permutation(400)
    again = gatherum.aggregate(table, sources[order], targets[order], 7, "fsum", weights[order])
    assert same_bits(again, result)
    prepared = gatherum.prepare("scatter_nd", np.zeros(7, "f4"), targets[:, None], reduction="fsum")
    items = prepared(np.zeros(7, "f4"), weights)
    assert same_bits(items, scattered(weights, targets[:, None], 7))


def by_exponents(values):
    """Sum the integers of each exponent: the significands, split so that sums cannot overflow."""
    significands, exponents = np.frexp(values.astype(np.float64))
    order = np.argsort(exponents)
    significands = np.ldexp(significands, 53).astype(np.int64)[order]
    distinct, starts = np.unique(exponents[order], return_index=True)
    high = np.add.reduceat(significands >> 26, starts)
    low = np.add.reduceat(significands & (1 << 26) - 1, starts)
    total = Fraction(0)
    for exponent, one, other in zip(distinct.tolist(), high.tolist(), low.tolist(), strict=True):
        total += ((one << 26) + other) * Fraction(2) ** (exponent - 53)
    return total


@pytest.mark.slow
@pytest.mark.parametrize("dtype", every(2, [np.dtype("f4"), np.dtype("f8")]), ids=str)
def test_ten_million_terms(dtype):
    values = anything(dtype, 10**7, 6)
    values = np.concatenate([values, -values[: 5 * 10**6], values[:3]])
    indices = np.random.default_rng(7).integers(0, 3, (len(values), 1))
    expected = [nearest(by_exponents(values[indices[:, 0] == i]), dtype) for i in range(3)]
    assert same_bits(scattered(values, indices, 3), np.array(expected))
    if dtype == np.float64:
        small = values[np.abs(values) < 1e300]
        assert scattered(small)[0] == math.fsum(small)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX], ids=str)
def test_a_thousand_permutations(dtype, settings_restored):
    half = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
    rng = np.random.default_rng(8)
    values = anything(half, 2 * 700, 8).view(dtype)[:700]
    indices, data = rng.integers(0, 40, (700, 1)), values[:50].copy()
    expected = reference.scatter_nd(data, indices, values, reduction="fsum")
    for i in range(1000):
        gatherum.set_num_threads(1 + i % 3)
        order = rng.permutation(700)
        with chosen_from(SIZES[i % len(SIZES)]):
            result = gatherum.scatter_nd(data, indices[order], values[order], reduction="fsum")
        assert same_bits(result, expected)
