"""Maxima, minima and their positions, and folds with counters, against the oracle's loops."""

import ctypes
from ctypes import byref, c_int64, c_void_p
from itertools import product

import numpy as np
import pytest

import c_calls as c
import gatherum
from canaries import guarded, strays
from gatherum import reference
from gatherum._model.call import ArraySpec, Attributes, Call
from gatherum._model.dtypes import is_reducible
from gatherum._plans.plans import build_once
from gatherum._system import native
from samples import diagonal, every
from sizes import chosen_from
from strategies import DATA_DTYPES, same_bits, value_bytes

pytestmark = pytest.mark.slow
REALS = [dtype for dtype in DATA_DTYPES if is_reducible(dtype, "max")]
THREADS = (1, 2, 3, 16)
SMALL = {"small_call_bytes": 0, "many_updates": 1, "private_cache_bytes": 0}


def _hostile(rng, dtype, shape):
    items = value_bytes(rng, dtype, int(np.prod(shape)))
    return np.frombuffer(items, dtype).reshape(shape).copy()


def _finite(rng, dtype, shape):
    """Return values with ties, of both zeros and a few numbers, without NaN."""
    numbers = np.array([0, 1, 1, 3] if dtype.kind in "bu" else [-0.0, 0.0, 1, -3])
    return rng.choice(numbers, shape).astype(dtype)


def _zeros(rng, dtype, shape):
    return rng.choice(np.array([-0.0, 0.0, -0.0, -0.0]), shape).astype(dtype)


def _is_equal(one, other):
    """Return True if two values are equal or both NaN."""
    return one == other or (one != one and other != other)  # noqa: PLR0124


def _located(values, groups, data, extreme, include_self):
    """Return the extremes and their positions, by the oracle's fold and single comparisons."""
    options = {"reduction": extreme, "include_self": include_self}
    folded = reference.scatter_slices(data, groups, values, **options)
    positions = np.full(data.shape, -9)
    with np.errstate(all="ignore"):
        updates, old, result = (
            array != 0 if array.dtype == bool else array for array in (values, data, folded)
        )
        for g, *column in np.ndindex(data.shape):
            place = (g, *column)
            arrived = np.flatnonzero(groups == g)
            if include_self and _is_equal(old[place], result[place]):
                continue
            hits = [t for t in arrived if _is_equal(updates[(t, *column)], result[place])]
            if hits:
                positions[place] = hits[0]
    return folded, positions


def _run(values, groups, data, extreme, include_self, wanted=True):
    """Run the core's pass into memory with canaries around it."""
    attributes = Attributes("scatter_slices", 0, extreme, include_self, negative=False)
    specs = [ArraySpec.of(one) for one in (data, groups, values)]
    result = guarded(data.shape, data.dtype) if wanted else None
    positions = guarded(data.shape, "i8")
    plan = build_once(Call(attributes, *specs))
    assert native.extremes(plan, data, groups, values, result, positions, -9, False)
    assert not strays(positions) and (result is None or not strays(result))
    return result, positions


COLUMNS = [(), (1,), (3,), (20,), (300,), (2, 33)]


@pytest.mark.parametrize(("columns", "dtype"), every(3, product(COLUMNS, REALS)), ids=str)
def test_extremes_with_positions(dtype, columns, settings_restored):
    rng = np.random.default_rng([*str(dtype).encode(), *columns])
    cases = ((_hostile, 4, 40), (_finite, 9, 30), (_hostile, 500, 6), (_hostile, 1, 60))
    for make, size, n in cases if np.prod(columns) < 100 else ((_hostile, 3, 9),):
        values, data = (make(rng, dtype, (m, *columns)) for m in (n, size))
        groups = rng.integers(0, max(1, size - 1), n)
        for extreme, include_self in (("max", False), ("min", False), ("max", True), ("min", True)):
            case = (values, groups, data, extreme, include_self)
            expected = _located(*case)
            for threads, sizes in ((1, {}), (2, SMALL), (3, SMALL)):
                gatherum.set_num_threads(threads)
                with chosen_from(sizes):
                    result, positions = _run(*case)
                    assert same_bits(expected[0], result)
                    assert np.array_equal(positions, expected[1])
                    if not include_self:
                        assert np.array_equal(_run(*case, wanted=False)[1], expected[1])


@pytest.mark.parametrize(("make", "dtype"), every(2, product([_hostile, _finite], REALS)))
def test_few_groups_of_many_values(dtype, make, settings_restored):
    """Threads fold separately, by keys if the order would matter otherwise."""
    rng = np.random.default_rng([*str(dtype).encode(), make is _hostile])
    n, size = 2003, 30
    values = make(rng, dtype, n)
    values[:1000] = _finite(rng, dtype, 1000)  # so that one thread sees a NaN, and others do not
    groups = rng.integers(0, size - 2, n)
    groups[n // 2] = size - 2  # a single value
    data = make(rng, dtype, size)
    for extreme in ("max", "min"):
        args = reference.groups.reduce(values, groups, size, f"arg{extreme}", fill_value=-1)
        for include_self in (False, True):
            options = {"reduction": extreme, "include_self": include_self}
            expected = reference.scatter_slices(data, groups, values, **options)
            for threads in THREADS:
                gatherum.set_num_threads(threads)
                with chosen_from(SMALL):
                    assert same_bits(
                        expected, gatherum.scatter_slices(data, groups, values, **options)
                    )
                    strided = np.repeat(data, 2)
                    gatherum.scatter_slices(
                        strided[::2], groups, np.repeat(values, 3)[::3], out=strided[::2], **options
                    )
                    assert same_bits(expected, strided[::2].copy())
                    result = gatherum.groups.reduce(
                        values, groups, size, f"arg{extreme}", fill_value=-1
                    )
                    assert same_bits(args, result)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_a_value_alone_keeps_its_bits(dtype, settings_restored):
    """Only a fold makes a NaN canonical, on any thread."""
    gatherum.set_num_threads(2)
    payload = np.frombuffer(b"\xfe\xff" * (np.dtype(dtype).itemsize // 2), dtype)[0]
    assert np.isnan(payload)
    for place in (0, 1500, 2999):
        values = np.arange(3000).astype(dtype)
        values[place] = payload
        groups = np.zeros(3000, int)
        groups[place] = 1
        data = np.full(3, payload)
        for include_self in (False, True):
            options = {"reduction": "max", "include_self": include_self}
            with chosen_from(SMALL):
                result = gatherum.scatter_slices(data, groups, values, **options)
            assert same_bits(reference.scatter_slices(data, groups, values, **options), result)


QUIET = {"f2": (0x7E00, 0xFE00, 0x7C01), "f4": (0x7FC00000, 0xFFC00000, 0xFFFFFFFF),
         "f8": (0x7FF8 << 48, 0xFFF8 << 48, 0xFFF8_0000_0000_0001)}  # fmt: skip


@pytest.mark.parametrize(  # few updates: no branch until a NaN
    ("dtype", "each"), diagonal(2, ["f2", "f4", "f8"], [3, 200])
)
def test_nans_among_few_and_many_updates(dtype, each, settings_restored):
    """NaNs, quiet and signalling: single, first, last and in between, in one piece or several."""
    rng = np.random.default_rng([each, *dtype.encode()])
    bits = np.array(QUIET[dtype], f"u{np.dtype(dtype).itemsize}").view(dtype)
    size = 3000 // each
    for nans in (bits[:1], bits[:2], bits):
        groups, values = rng.integers(0, size, 3000), rng.integers(-5, 5, 3000).astype(dtype)
        groups[rng.permutation(3000)[:30]] = np.arange(30) + size  # groups of one
        for share in (1e-3, 0.05, 0.7):
            chosen = rng.random(3000) < share
            values[chosen] = rng.choice(nans, np.count_nonzero(chosen))
            values[groups == size + 3] = nans[-1]
            data = rng.choice(nans, size + 31)
            for reduction in ("max", "min"):
                for include_self in (False, True):
                    options = {"reduction": reduction, "include_self": include_self}
                    expected = reference.scatter_slices(data, groups, values, **options)
                    for threads in THREADS:
                        gatherum.set_num_threads(threads)
                        with chosen_from(SMALL):
                            result = gatherum.scatter_slices(data, groups, values, **options)
                        assert same_bits(expected, result)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("index", ["i4", "i8", "u4", "u8"])
def test_sums_of_few_bins(dtype, index, settings_restored):
    """NaNs of the data, of updates and of infinities; negative or invalid indices."""
    rng = np.random.default_rng([*dtype.encode(), *index.encode()])
    bits = np.array(QUIET[dtype], f"u{np.dtype(dtype).itemsize}").view(dtype)
    rare = np.concatenate([bits, np.array([np.inf, -np.inf, -0.0], dtype)])
    low = 0 if index[0] == "u" else -20
    for data_nan, share in ((False, 0), (False, 0.01), (True, 0), (True, 0.01)):
        values, data = rng.standard_normal(2000).astype(dtype), rng.random(20).astype(dtype)
        values[rng.random(2000) < share] = rng.choice(rare)
        values[:9] = rng.choice(rare, 9) if share else 0
        data[[3, 19]] = bits[1:] if data_nan else 0
        for begin, mode in ((0, "raise"), (low, "raise"), (low, "wrap"), (low, "drop")):
            indices = rng.integers(begin, 20 if mode == "raise" else 25, 2000)
            indices[indices % 20 == 19] = 0  # the last bin keeps its bits
            call = (data, indices.astype(index), values)
            expected = reference.scatter_slices(*call, reduction="add", mode=mode)
            gatherum.set_num_threads(1)
            with chosen_from(SMALL):
                result = gatherum.scatter_slices(*call, reduction="add", mode=mode)
                out = data.copy()
                gatherum.scatter_slices(out, *call[1:], reduction="add", mode=mode, out=out)
                assert same_bits(expected, result)
                assert same_bits(expected, out)
                indices[1700] = 20
                if mode == "raise":
                    out = data.copy()
                    with pytest.raises(IndexError, match="20"):
                        gatherum.scatter_slices(
                            out, indices.astype(index), values, reduction="add", out=out
                        )
                    assert same_bits(data, out)


@pytest.mark.parametrize("mode", ["drop", "clip", "wrap", "fill"])
def test_positions_count_updates_that_are_left_out(mode, settings_restored):
    rng = np.random.default_rng(4)
    groups, values = rng.integers(-30, 30, 4000), rng.integers(0, 50, 4000)
    expected = reference.groups.reduce(values, groups, 20, "argmax", fill_value=-1, mode=mode)
    for threads in THREADS:
        gatherum.set_num_threads(threads)
        with chosen_from(SMALL):
            result = gatherum.groups.reduce(values, groups, 20, "argmax", fill_value=-1, mode=mode)
        assert np.array_equal(result, expected)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("func", ["max", "argmax"])
def test_an_invalid_group_is_named(func, threads, settings_restored):
    gatherum.set_num_threads(threads)
    groups, values = np.arange(4000) % 7, np.full(4000, np.nan)
    groups[2500] = 9
    with chosen_from(SMALL), pytest.raises(IndexError, match=r"position 2500|groups\[2500\]"):
        gatherum.groups.reduce(values, groups, 7, func)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("dtype", "reduction"),
    diagonal(2, ["f2", "f4", "f8", "c8", "i2", "i8", "u4", "?"], ["add", "mean"]),
)
def test_sums_that_begin_with_nothing(reduction, dtype, threads, settings_restored):
    """A sum without an old value starts at -0, and a single NaN keeps its bits."""
    if not is_reducible(np.dtype(dtype), reduction):
        pytest.skip("there are no such means")
    gatherum.set_num_threads(threads)
    rng = np.random.default_rng([*reduction.encode(), *dtype.encode()])
    for make, alone in ((_hostile, True), (_finite, True), (_hostile, False), (_zeros, True)):
        values, data = make(rng, np.dtype(dtype), 3001), _hostile(rng, np.dtype(dtype), 40)
        groups = rng.integers(0, 30, 3001)
        if alone:
            groups[[5, 2000, 3000]] = 35, 36, 37
            values[2000] = _hostile(rng, np.dtype(dtype), 400)[-1]
        for include_self in (False, True):
            options = {"reduction": reduction, "include_self": include_self}
            expected = reference.scatter_slices(data, groups, values, **options)
            with chosen_from(SMALL):
                assert same_bits(expected, gatherum.scatter_slices(data, groups, values, **options))
                out = np.repeat(data, 2)
                gatherum.scatter_slices(out[::2], groups, values, out=out[::2], **options)
                assert same_bits(expected, out[::2].copy())
                groups[2900] = 40
                before = out.copy()
                with pytest.raises(IndexError):
                    gatherum.scatter_slices(out[::2], groups, values, out=out[::2], **options)
                assert same_bits(before, out)
                groups[2900] = 0


def _status(core, read, plan, arrays, cut=None, result=True):
    """Call the C function. The operand `cut` is one byte too small."""
    operands, error = c.Operands(), c.Error()
    memory = {}
    for name, array in arrays.items():
        start, before, behind = c.memory_of(array)
        memory[name] = c.Buffer(start, before, behind - (name == cut))
    for name in ("data", "indices", "updates", "out"):
        setattr(operands, name, memory[name])
    if not result:
        operands.out = c.Buffer(None, 0, 0)
    status = core.gatherum_extremes(
        read(plan),
        byref(operands),
        byref(memory["positions"]),
        c_int64(-1),
        c_void_p(),
        byref(error),
    )
    return status, error.operand


@c.NEEDS_LIBRARY
def test_the_c_function_checks_its_arguments(core, read):
    values, groups, data = np.arange(8.0).reshape(4, 2), np.array([1, 0, 1, 2]), np.zeros((3, 2))
    options = {"reduction": "max", "include_self": False, "negative": False}
    plan = gatherum.plan("scatter_slices", data, groups, values, **options)
    arrays = {
        "data": data, "indices": groups, "updates": values, "out": np.empty((3, 2)),
        "positions": np.empty((3, 2), np.int64),
    }  # fmt: skip
    assert _status(core, read, plan, arrays)[0] == c.OK
    assert arrays["positions"].tolist() == [[1, 1], [2, 2], [3, 3]]
    assert arrays["out"].tolist() == [[2, 3], [4, 5], [6, 7]]
    assert _status(core, read, plan, arrays, result=False)[0] == c.OK
    for name in arrays:
        if name != "data":  # which a fold without it does not read
            assert _status(core, read, plan, arrays, name) == (c.TOO_SMALL, name.encode())
    groups[1] = 7
    assert _status(core, read, plan, arrays)[0] == c.INVALID_INDEX
    groups[1] = 0
    for changed in ({"include_self": True}, {"reduction": "add"}):
        other = gatherum.plan("scatter_slices", data, groups, values, **options | changed)
        assert _status(core, read, other, arrays, result=False)[0] == c.INVALID_PROGRAM
    assert ctypes.sizeof(c.Buffer) == 24


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "i4", "u8", "?"])
def test_long_rows_whose_destinations_are_folded_at_once(dtype, settings_restored):
    """Rows that could be folded in place are first made contiguous."""
    rng = np.random.default_rng([*dtype.encode()])
    columns = 131 if dtype == "?" else 35
    for reduction in ("add", "mul", "max", "min"):
        if not is_reducible(np.dtype(dtype), reduction):
            continue
        data, updates = (_hostile(rng, np.dtype(dtype), (n, columns)) for n in (5, 40))
        indices = rng.integers(-5, 5, 40)
        expected = reference.scatter_slices(data, indices, updates, reduction=reduction)
        for threads in (1, 3):
            gatherum.set_num_threads(threads)
            with chosen_from({"far_bytes": 0}):
                call = (data, indices, updates)
                plan = gatherum.plan("scatter_slices", *call, reduction=reduction)
                assert plan.algorithm == "by_destination"
                assert same_bits(expected, plan.run(*call))
                out = data.copy()
                gatherum.scatter_slices(out, indices, updates, reduction=reduction, out=out)
                assert same_bits(expected, out)
