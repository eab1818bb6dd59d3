"""Functions that skip NaN by the core's kernels, against compositions of the operators."""

from ctypes import byref, c_int64
from dataclasses import replace

import numpy as np
import pytest

import c_calls as c
import gatherum
from gatherum._model.dtypes import is_real_float
from gatherum.groups import evaluation, functions, namespace
from gatherum.groups.grouping import Grouping
from sizes import SIZES, chosen_from
from strategies import same_bits

OTHERS = (
    "nanfsum", "nanfmean", "nanfirst", "nanlast", "nancount", "nanargmax", "nanargmin",
)  # fmt: skip
FUNCTIONS = ("nansum", "nanprod", "nanmean", "nanmax", "nanmin")
DTYPES = ("f2", "f4", "f8", "bfloat16")
# The shape of the values, the axis, and the number of groups. Kernels fold 256 items together.
SHAPES = {
    "items": ((3000,), 0, 40),
    "few items": ((30,), 0, 40),
    "short rows": ((300, 3), 0, 9),
    "rows": ((70, 300), 0, 5),
    "rows of more groups": ((60, 20), 0, 900),
    "lines": ((7, 300), 1, 5),
    "planes": ((4, 60, 5), 1, 6),
}
SPECIAL = np.array([np.inf, -np.inf, -0.0, 0.0, 6e-8, -6e-8, 65504, 1e-320, 1e300])


def _dtype(name):
    return np.dtype(pytest.importorskip("ml_dtypes").bfloat16 if name == "bfloat16" else name)


@pytest.fixture
def both(monkeypatch):
    """Return a function that reduces with the kernel and with the other steps.

    Single items have kernels for sums, maxima and minima of float32 and float64.
    """
    kernel = namespace.fold_skipping_nan

    def run(values, groups, size, **options):
        results = []

        def fold_skipping_nan(*arguments):
            results.append(kernel(*arguments))
            return results[-1]

        monkeypatch.setattr(namespace, "fold_skipping_nan", fold_skipping_nan)
        result = gatherum.groups.reduce(values, groups, size, **options)
        items = values[0].ndim == 0 or options["axis"] == values.ndim - 1 or np.ndim(groups) > 1
        known = values.dtype.name in ("float32", "float64") and options["func"] != "nanprod"
        assert (results[0] is result) == (known or not items)
        monkeypatch.setattr(namespace, "fold_skipping_nan", lambda *_: None)
        return result, gatherum.groups.reduce(values, groups, size, **options)

    return run


def _values(shape, dtype, rng):
    """Return values with special numbers, groups of only NaN, and NaN of both signs and kinds."""
    values = rng.standard_normal(shape)
    values = np.where(rng.random(shape) < 0.1, rng.choice(SPECIAL, shape), values)
    with np.errstate(over="ignore"):
        values = values.astype(dtype)
    values[rng.random(shape) < 0.3] = np.nan
    payloads = values.view(f"u{dtype.itemsize}")
    payloads[np.isnan(values) & (rng.random(shape) < 0.3)] |= 1 << (8 * dtype.itemsize - 1) | 5
    return values


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_kernel_has_the_bits_of_the_composition(dtype, shape, both, settings_restored):
    rng = np.random.default_rng(5)
    extents, axis, size = SHAPES[shape]
    values = _values(extents, _dtype(dtype), rng)
    groups = rng.integers(0, size, extents[axis])
    values[(slice(None),) * axis + (groups == 1,)] = np.nan
    for threads in (1, 3):
        gatherum.set_num_threads(threads)
        for sizes in SIZES:
            with chosen_from(sizes):
                for func in FUNCTIONS:
                    assert same_bits(*both(values, groups, size, func=func, axis=axis)), func


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_of_other_functions(dtype, shape, monkeypatch, settings_restored):
    """Exact sums, copies, counts and positions have kernels for rows."""
    rng = np.random.default_rng(7)
    extents, axis, size = SHAPES[shape]
    groups = rng.integers(0, size, extents[axis])
    values = _values(extents, _dtype(dtype), rng)
    values[(slice(None),) * axis + (groups == 1,)] = np.nan
    used = []
    without_values = Grouping.without_values
    monkeypatch.setattr(Grouping, "without_values", lambda *a: used.append(a) or without_values(*a))
    for func in OTHERS:
        options = {"func": func, "axis": axis, "fill_value": 7}
        with monkeypatch.context() as patch:
            row = functions.FUNCTIONS[func]
            patch.setitem(functions.FUNCTIONS, func, replace(row, skip_nan=None))
            expected = gatherum.groups.reduce(values, groups, size, **options)
        for threads in (1, 3):
            gatherum.set_num_threads(threads)
            for sizes in SIZES:
                used.clear()
                with chosen_from(sizes):
                    result = gatherum.groups.reduce(values, groups, size, **options)
                assert same_bits(result, expected), func
                assert not used or values[0].ndim == 0 or axis == values.ndim - 1


@pytest.mark.parametrize("func", ["nanany", "nanall", "nanlogsumexp"])
@pytest.mark.parametrize("shape", SHAPES)
def test_functions_that_replace_nan(shape, func, monkeypatch):
    """Truth values and exponentials of NaN are numbers that change no result."""
    rng = np.random.default_rng(9)
    extents, axis, size = SHAPES[shape]
    groups = rng.integers(0, size, extents[axis])
    each = rng.integers(-1, size, extents)
    used = []
    without_values = Grouping.without_values
    monkeypatch.setattr(Grouping, "without_values", lambda *a: used.append(a) or without_values(*a))
    for dtype in DTYPES:
        values = _values(extents, _dtype(dtype), rng)
        values[rng.random(extents) < 0.5] = 0
        values[(slice(None),) * axis + (groups == 1,)] = np.nan
        values[(slice(None),) * axis + (groups == 2,)] = 0
        for entries, array in ((groups, values), (each, values), (groups, values[..., ::-1])):
            for fill_value in (None, True, False):
                fill = float(fill_value) if "log" in func and fill_value is not None else fill_value
                options = {"func": func, "axis": axis, "fill_value": fill, "mode": "drop"}
                used.clear()
                result = gatherum.groups.reduce(array, entries, size, **options)
                assert fill_value is not None or not used
                with monkeypatch.context() as patch:
                    row = replace(functions.FUNCTIONS[func], skip_nan=None)
                    patch.setitem(functions.FUNCTIONS, func, row)
                    expected = gatherum.groups.reduce(array, entries, size, **options)
                assert same_bits(result, expected)
                with monkeypatch.context() as patch:
                    patch.setattr(namespace, "fold_skipping_nan", lambda *_: None)
                    result = gatherum.groups.reduce(array, entries, size, **options)
                assert same_bits(result, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 0.97, 1.0])
@pytest.mark.parametrize(("rows", "width", "size"), [(60, 129, 7), (40, 3000, 3), (400, 4000, 350)])
def test_the_last_numbers_of_long_rows(dtype, share, rows, width, size):
    """Rows are copied in parts of 128 items. The largest result does not fit in cache."""
    rng = np.random.default_rng(rows)
    values = rng.standard_normal((rows, width)).astype(_dtype(dtype))
    values[rng.random(values.shape) < share] = np.nan
    groups = rng.integers(0, size, rows)
    for func, order in (("nanlast", 1), ("nanfirst", -1)):
        expected = np.full((size, width), -2, values.dtype)
        for group, row in list(zip(groups, values, strict=True))[::order]:
            expected[group] = np.where(np.isnan(row), expected[group], row)
        result = gatherum.groups.reduce(values, groups, size, func, fill_value=-2)
        assert same_bits(result, expected)


def test_positions_of_few_numbers():
    values = np.array([[np.nan, -0.0], [-np.inf, 0.0], [np.nan, np.nan], [np.nan, -0.0]])
    groups = [0, 0, 1, 0]
    for func, expected in (("nanargmax", [[1, 0], [5, 5]]), ("nanargmin", [[1, 0], [5, 5]])):
        result = gatherum.groups.reduce(values, groups, func=func, fill_value=5)
        assert result.tolist() == expected
        with pytest.raises(ValueError, match=r"group 1 is empty .*|group 1 "):
            gatherum.groups.reduce(values, groups, func=func)
        assert gatherum.groups.reduce(values[:2], [0, 0], func=func).tolist() == [[1, 0]]


@pytest.mark.parametrize("func", OTHERS)
def test_layouts_of_other_functions(func, monkeypatch, settings_restored):
    rng = np.random.default_rng(8)
    values = _values((70, 600), np.dtype("f4"), rng)[::-1, ::-2]
    entries = rng.integers(-7, 7, 70).astype(">i4")
    for mode in ("drop", "clip", "wrap"):
        options = {"func": func, "mode": mode, "negative": mode == "drop", "fill_value": 3}
        result = gatherum.groups.reduce(values, entries, 5, **options)
        with monkeypatch.context() as patch:
            row = functions.FUNCTIONS[func]
            patch.setitem(functions.FUNCTIONS, func, replace(row, skip_nan=None))
            assert same_bits(result, gatherum.groups.reduce(values, entries, 5, **options))
    with pytest.raises(IndexError, match=r"group -?\d+ is not in \[0, 5\) \(groups\[\d+\]\)"):
        gatherum.groups.reduce(values, entries, 5, func=func)


@pytest.mark.parametrize("shape", ["items", "rows", "lines"])
def test_layouts_and_attributes(shape, both, settings_restored):
    rng = np.random.default_rng(6)
    extents, axis, size = SHAPES[shape]
    values = _values((*extents[:-1], 2 * extents[-1]), np.dtype("f4"), rng)[..., ::-2]
    groups = rng.integers(-size - 2, size + 2, extents[axis]).astype(">i4")
    each = rng.integers(0, size, extents).astype("u1")
    for func in ("nanmean", "nanmax"):
        for mode in ("drop", "clip", "wrap"):
            options = {"func": func, "axis": axis, "mode": mode, "negative": mode == "drop"}
            assert same_bits(*both(values, groups, size, **options, fill_value=7))
        assert same_bits(*both(values, each, size, func=func, axis=axis))
    one = np.broadcast_to(np.float32(np.nan), extents)
    assert np.isnan(both(one, each, size, func="nanmean", axis=axis)[0]).all()


@pytest.mark.parametrize("shape", ["items", "rows", "lines"])
def test_an_invalid_group_is_named(shape):
    extents, axis, size = SHAPES[shape]
    groups = np.zeros(extents[axis], int)
    groups[-2] = size
    with pytest.raises(IndexError) as error:
        gatherum.groups.reduce(np.full(extents, np.nan), groups, size, func="nansum", axis=axis)
    at = len(groups) - 2
    assert str(error.value) == (f"groups.reduce: group {size} is not in [0, {size}) (groups[{at}])")


def test_calls_that_the_kernels_do_not_support():
    """Complex numbers, exact sums, and values with weights."""
    values = np.array([1, np.nan, 4])
    for dtype, func in (("c8", "nansum"), ("f8", "nanfsum")):
        result = gatherum.groups.reduce(values.astype(dtype), [0, 0, 1], func=func)
        assert result.tolist() == [1, 4]
    options = {"func": "nanmean", "weights": [1, 2, 3]}
    assert gatherum.groups.reduce(values, [0, 0, 0], **options).tolist() == [13 / 4]


def _status(core, read, plan, arrays, cut=None):
    """Call the C function. The operand `cut` is one byte too small."""
    operands, error = c.Operands(), c.Error()
    for name, array in arrays.items():
        start, before, behind = c.memory_of(array)
        setattr(operands, name, c.Buffer(start, before, behind - (name == cut)))
    status = core.gatherum_skip_nan(read(plan), byref(operands), None, byref(error))
    return status, error.operand or b""


@c.NEEDS_LIBRARY
def test_the_c_function_checks_its_operands(core, read):
    values, groups = np.array([1.0, np.nan, 4, np.nan]), np.array([0, 0, 0, 1])
    data = np.array([7.0, 8, 9])
    how = {"reduction": "mean", "include_self": False, "negative": False}
    plan = gatherum.plan("scatter_slices", data, groups, values, **how)
    arrays = {"data": data, "indices": groups, "updates": values, "out": np.empty(3)}
    assert _status(core, read, plan, arrays) == (c.OK, b"")
    assert arrays["out"].tolist() == [2.5, 8, 9]
    for name in arrays:
        assert _status(core, read, plan, arrays, name) == (c.TOO_SMALL, name.encode())
    for name in ("indices", "updates"):
        shared = arrays | {"out": arrays[name]}
        assert _status(core, read, plan, shared) == (c.INVALID_CALL, name.encode())
    copy = data.copy()
    assert _status(core, read, plan, arrays | {"data": copy, "out": copy}) == (c.OK, b"")
    assert copy.tolist() == [2.5, 8, 9]
    for changed in ({"include_self": True}, {"reduction": "fmean"}, {"reduction": "none"}):
        other = gatherum.plan("scatter_slices", data, groups, values, **how | changed)
        assert _status(core, read, other, arrays)[0] == c.INVALID_PROGRAM


@c.NEEDS_LIBRARY
def test_the_c_functions_of_rows(core, read):
    values = np.array([[1.0, np.nan], [4, np.nan], [2, -np.inf]])
    groups, data = np.array([0, 0, 1]), np.full((3, 2), 7.0)
    how = {"include_self": False, "negative": False}
    arrays = {"data": data, "indices": groups, "updates": values, "out": np.empty((3, 2))}
    for reduction, expected in (
        ("fsum", [5, 7, 2, -np.inf, 7, 7]),
        ("none", [4, 7, 2, -np.inf, 7, 7]),
    ):
        plan = gatherum.plan("scatter_slices", data, groups, values, reduction=reduction, **how)
        assert _status(core, read, plan, arrays) == (c.OK, b"")
        assert arrays["out"].ravel().tolist() == expected

    numbers, error, operands = np.empty((3, 2), np.int64), c.Error(), c.Operands()
    for name, array in arrays.items():
        if name != "out":
            setattr(operands, name, c.Buffer(*c.memory_of(array)))
    to = c.Buffer(*c.memory_of(numbers))
    plan = gatherum.plan("scatter_slices", data, groups, values, reduction="max", **how)
    call = read(plan), byref(operands), byref(to), c_int64(-1), None, byref(error)
    assert core.gatherum_extremes_skip_nan(*call) == c.OK
    assert numbers.tolist() == [[1, -1], [2, 2], [-1, -1]]
    operands.out = c.Buffer(*c.memory_of(arrays["out"]))
    assert core.gatherum_extremes_skip_nan(*call) == c.INVALID_PROGRAM
    plan = gatherum.plan("scatter_slices", data, groups, values, reduction="fmean", **how)
    call = read(plan), byref(operands), byref(c.Buffer()), byref(to), None, byref(error)
    assert core.gatherum_spreads_skip_nan(*call) == c.OK
    assert numbers.tolist() == [[2, 0], [1, 1], [0, 0]]
    assert core.gatherum_spreads(*call) == c.TOO_SMALL


@pytest.mark.parametrize("name", ["f2", "bfloat16", "f4", "f8"])
def test_each_real_float_has_calls_that_skip_nan(name):
    values, grouping = np.ones((6, 2), _dtype(name)), _grouping_of_rows()
    assert is_real_float(values.dtype)
    assert [
        row.full_name for row in _rows_in_one_call() if _skipped(row, values, grouping) is None
    ] == []


@pytest.mark.parametrize("name", ["?", "i4", "u8", "c8", "M8[s]", "g", ">f4", "U3"])
def test_no_call_skips_nan_of_other_dtypes(name):
    values, grouping = np.zeros((6, 2), name), _grouping_of_rows()
    assert not is_real_float(values.dtype)
    for row in _rows_in_one_call():
        if row.accepts(values.dtype):
            failing = replace(row, skip_nan=lambda *_, name=row.full_name: pytest.fail(name))
            assert evaluation.run_function(failing, values, grouping, 0, None).shape == (3, 2)


def _grouping_of_rows():
    return Grouping.of("reduce", "groups", np.array([0, 2, 0, 1, 2, 2]), (3, 2), 0)


def _rows_in_one_call():
    return [row for row in functions.FUNCTIONS.values() if row.skips_nan and row.skip_nan]


def _skipped(row, values, grouping):
    return row.skip_nan(values, grouping, np.full((), row.empty or 0, row.result(values.dtype)), 0)
