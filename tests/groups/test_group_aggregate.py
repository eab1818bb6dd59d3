"""`groups.aggregate` equals numpy_groupies: by cases, and by comparison if it is installed."""

import inspect
import itertools
import pickle

import numpy as np
import pytest

import gatherum
from gatherum.groups import numpy_groupies

NAN, INF = float("nan"), float("inf")
aggregate = gatherum.groups.aggregate
FIVES = np.arange(0, 100, 2).repeat(5)
COLUMNS = [[0, 0, 1, 1], [0, 1, 1, 1]]
TABLE = np.array([[1, 2], [4, 4], [5, 2], [NAN, 3], [8, 7]])

# Cases of numpy_groupies' own tests: groups, values, arguments, the answer and its kind.
CASES = {
    "a group that is missing is 0": (
        [0, 1, 3, 1, 3],
        [101, 102, 103, 104, 105],
        {},
        [101, 206, 0, 208],
        "i",
    ),
    "groups that begin late": (
        [1, 1, 2, 2, 2, 2, 4, 4],
        np.ones(8),
        {"dtype": int},
        [0, 2, 4, 0, 2],
        "i",
    ),
    "unsigned groups": (np.array([1, 1, 4], "u8"), np.ones(3), {}, [0, 2, 0, 0, 1], "f"),
    "a product of nothing is 1": (
        [2, 2, 4, 4, 4],
        [2, 2, 4, 4, 4],
        {"func": np.prod},
        [1, 1, 4, 1, 64],
        "i",
    ),
    "means of integers are floats": (
        [0] * 4 + [3] * 4,
        np.arange(8),
        {"func": "mean"},
        [1.5, NAN, NAN, 5.5],
        "f",
    ),
    "a maximum of no integer is 0": ([0, 2], [-1, -2], {"func": "max"}, [-1, 0, -2], "i"),
    "a maximum of no float is NaN": ([0, 2], [-1.0, -2.0], {"func": "max"}, [-1, NAN, -2], "f"),
    "a maximum of NaN alone is NaN": ([0, 1], [NAN, 2.0], {"func": "nanmax"}, [NAN, 2], "f"),
    "the first of no integer is 0": ([0, 2], [-1, -2], {"func": "first"}, [-1, 0, -2], "i"),
    "the last of no float is NaN": ([0, 2], [-1.0, 2.0], {"func": "last"}, [-1, NAN, 2], "f"),
    "the last of no complex number is NaN": (
        [1],
        np.array([2j]),
        {"func": "last"},
        [complex(NAN, NAN), 2j],
        "c",
    ),
    "no position is -1": ([0, 2], [5, 6], {"func": "argmin"}, [0, -1, 1], "i"),
    "no position of NaN": ([0, 0, 1], [NAN, 1.0, 2.0], {"func": "argmax"}, [-1, 2], "i"),
    "a variance of nothing is NaN": ([1], [5.0], {"func": "var"}, [NAN, 0], "f"),
    "a variance of complex numbers, as one": (
        [1],
        np.array([5j]),
        {"func": "var", "dtype": "c16"},
        [NAN, 0],
        "c",
    ),
    "squares of nothing are 0": ([1], [5.0], {"func": "sumofsquares"}, [0, 25], "f"),
    "nothing is False": ([1], [5.0], {"func": "all"}, [False, True], "b"),
    "nothing is counted": ([1], [5.0], {"func": "len"}, [0, 1], "i"),
    "a text of nothing is empty": ([1], ["a"], {"func": "first"}, ["", "a"], "U"),
    "a record of nothing is one of zeros": (
        [1],
        np.array([(5, 2.5)], "i4,f4"),
        {"func": "last"},
        np.array([(0, 0), (5, 2.5)], "i4,f4"),
        "V",
    ),
    "the latest date": (
        [0, 0, 1, 1, 3],
        np.array(["2020-01-01", "2020-02-01", "NaT", "2020-01-01", "1969-01-01"], "M8[D]"),
        {"func": "max"},
        np.array(["2020-02-01", "NaT", "NaT", "1969-01-01"], "M8[D]"),
        "M",
    ),
    "the shortest span that is not NaT": (
        [0, 0, 1],
        np.array([3, "NaT", "NaT"], ">m8[s]"),
        {"func": "nanmin", "fill_value": np.timedelta64(7, "s")},
        np.array([3, 7], "m8[s]"),
        "m",
    ),
    "dates in another unit": (
        [0, 2],
        np.array(["2020-01-01", "2020-02-01"], "M8[D]"),
        {"func": "min", "dtype": "M8[h]"},
        np.array(["2020-01-01", "NaT", "2020-02-01"], "M8[h]"),
        "M",
    ),
    "no position of NaT": (
        [0, 0, 1],
        np.array([3, "NaT", 5], "m8[s]"),
        {"func": "argmax"},
        [-1, 2],
        "i",
    ),
    "the position beside NaT": (
        [0, 0, 1],
        np.array(["NaT", 3, "NaT"], "m8[s]"),
        {"func": "nanargmin"},
        [1, -1],
        "i",
    ),
    "nanlen of dates": (
        [0, 0, 2],
        np.array([3, "NaT", 5], "m8[s]"),
        {"func": "nanlen"},
        [1, 0, 1],
        "i",
    ),
    "the last date that is not NaT": (
        [0, 0, 2],
        np.array(["2020-01-01", "NaT", "2020-01-03"], "M8[D]"),
        {"func": "nanlast"},
        np.array(["2020-01-01", "NaT", "2020-01-03"], "M8[D]"),
        "M",
    ),
    "the first of no date is NaT": (
        [1],
        np.array([3], "m8[s]"),
        {"func": "first"},
        np.array(["NaT", 3], "m8[s]"),
        "m",
    ),
    "anynan of dates": (
        [0, 0, 2],
        np.array([3, "NaT", 5], "m8[s]"),
        {"func": "anynan"},
        [True, False, False],
        "b",
    ),
    "allnan of dates": (
        [0, 0, 1],
        np.array([3, "NaT", "NaT"], "m8[s]"),
        {"func": "allnan"},
        [False, True],
        "b",
    ),
    "a fill value": ([0, 2, 2], [0, 1, 2], {"fill_value": -1}, [0, -1, 3], "i"),
    "a fill value of another kind": ([0, 2, 2], [0, 1, 2], {"fill_value": 0.5}, [0, 0.5, 3], "f"),
    "a fill value of a wider dtype": (
        [1],
        np.array([5], "i1"),
        {"func": "max", "fill_value": 300},
        [300, 5],
        "i",
    ),
    "a number for each": ([0, 1, 1], 1, {}, [1, 2], "i"),
    "a product of a number": ([0, 1, 1], 3, {"func": "prod"}, [3, 9], "i"),
    "len": ([0, 2, 2], [7, 7, NAN], {"func": len}, [1, 0, 2], "i"),
    "nanlen": ([0, 2, 2], [7, 7, NAN], {"func": "nanlen"}, [1, 0, 1], "i"),
    "first": (
        FIVES,
        np.arange(250),
        {"func": "first", "fill_value": -1},
        [n // 2 * 5 if n % 2 == 0 else -1 for n in range(99)],
        "i",
    ),
    "nanfirst": ([0, 0, 0], [NAN, 1, 2], {"func": "nanfirst"}, [1], "f"),
    "nanlast": ([0, 0, 0], [0, 1, NAN], {"func": "nanlast"}, [1], "f"),
    "ddof": ([0, 0], [1.0, 3.0], {"func": "var", "ddof": 1}, [2.0], "f"),
    "var of large integers": ([0] * 4, np.arange(4) + 2**60, {"func": "var"}, [1.25], "f"),
    "std of float32": (
        [0, 0],
        np.array([1e5 - 1, 1e5 + 1], "f4"),
        {"func": "std"},
        np.array([1], "f4"),
        "f",
    ),
    "ddof of too few": (
        [0, 0, 1],
        [1.0, 3.0, 5.0],
        {"func": np.std, "ddof": 1, "fill_value": 9},
        [2**0.5, 9],
        "f",
    ),
    "NaN in a sum": ([0, 0, 1], [1.0, NAN, 2.0], {}, [NAN, 2.0], "f"),
    "NaN is true": ([0, 0], [NAN, 0.0], {"func": "any"}, [True], "b"),
    "all": ([0, 0, 2], [1, 0, 1], {"func": all}, [False, False, True], "b"),
    "anynan": ([0, 0, 1], [1.0, NAN, 2.0], {"func": "anynan"}, [True, False], "b"),
    "allnan": ([0, 0, 1], [1.0, NAN, NAN], {"func": "allnan"}, [False, True], "b"),
    "integers are no NaN": ([0, 1], [1, 2], {"func": "anynan"}, [False, False], "b"),
    "argmax": (
        [0] * 4 + [3] * 4,
        [4, 4, 3, 1, 10, 9, 9, 11],
        {"func": "argmax", "fill_value": -1},
        [0, -1, -1, 7],
        "i",
    ),
    "argmin": (
        [0] * 4 + [3] * 4,
        [4, 4, 3, 1, 10, 9, 9, 11],
        {"func": "argmin", "fill_value": -1},
        [3, -1, -1, 5],
        "i",
    ),
    "argmax of NaN": (
        [0, 0, 3, 3],
        [4, 4, NAN, 1],
        {"func": "argmax", "fill_value": -1},
        [0, -1, -1, -1],
        "i",
    ),
    "nanargmax of NaN": (
        [0, 0, 3, 3],
        [NAN, 4, NAN, NAN],
        {"func": "nanargmax", "fill_value": -1},
        [1, -1, -1, -1],
        "i",
    ),
    "infinities": (
        [0, 1, 2, 0, 1, 2],
        [-INF, 0, -INF, -INF, 0, 0],
        {"func": "argmax", "fill_value": -1},
        [0, 1, 5],
        "i",
    ),
    "the least of infinities": (
        [0, 1, 2, 0],
        [INF, 0, INF, INF],
        {"func": "min"},
        [INF, 0, INF],
        "f",
    ),
    "sumofsquares": ([0, 0, 1], [1.0, 2.0, 3.0], {"func": "sumofsquares"}, [5.0, 9.0], "f"),
    "nansumofsquares": ([0, 0, 1], [1.0, NAN, 3.0], {"func": "nansumofsquares"}, [1.0, 9.0], "f"),
    "squares of narrow integers": (
        [0, 0],
        np.array([200, 200], "u1"),
        {"func": "sumofsquares"},
        [80_000],
        "i",
    ),
    "squares of uint64": (
        [0, 0],
        np.array([3, 2**31], "u8"),
        {"func": "sumofsquares"},
        [2**62 + 9],
        "u",
    ),
    "narrow sums do not overflow": ([0] * 300, np.full(300, 100, "i1"), {}, [30_000], "i"),
    "sums of bools count": ([0, 0, 1], [True, True, False], {}, [2, 0], "i"),
    "an alias": ([0, 0], [1, 2], {"func": "plus"}, [3], "i"),
    "two dimensions": (COLUMNS, [1, 2, 4, 8], {}, [[1, 2], [0, 12]], "i"),
    "two dimensions of a size": (COLUMNS, 1, {"size": (2, 3)}, [[1, 1, 0], [0, 2, 0]], "i"),
    "positions in two dimensions": (
        COLUMNS,
        [1, 2, 4, 8],
        {"func": "argmax", "fill_value": -1},
        [[0, 1], [-1, 3]],
        "i",
    ),
    "an axis": (
        [1, 2, 2, 0, 1],
        TABLE,
        {"func": "nanmax", "axis": 0, "fill_value": NAN},
        [[NAN, 3], [8, 7], [5, 4]],
        "f",
    ),
    "positions along an axis": (
        [0, 0, 2, 1],
        [[1] * 4] * 2,
        {"func": "argmax", "axis": -1},
        [[0, 3, 2]] * 2,
        "i",
    ),
    "a group for each value": (
        [[0, 1, 0], [1, 1, 1]],
        [[1, 2, 4], [8, 16, 32]],
        {"axis": 1},
        [[5, 2], [0, 56]],
        "i",
    ),
    "groups that broadcast": (
        [[0], [1]],
        [[1, 2, 4], [8, 16, 32]],
        {"axis": 0, "size": 3},
        [[1, 2, 4], [8, 16, 32], [0, 0, 0]],
        "i",
    ),
    "positions of a group for each value": (
        [[0, 1, 0], [1, 1, 1]],
        [[1, 2, 4], [8, 32, 16]],
        {"axis": -1, "func": "argmax"},
        [[2, 1], [-1, 1]],
        "i",
    ),
    "NaN along an axis": (
        [0, 0],
        [[1, 1], [NAN, NAN]],
        {"func": "argmax", "axis": -1, "fill_value": -1},
        [[0], [-1]],
        "i",
    ),
    "an axis of one dimension": (
        [0, 1, 0],
        [1.0, 2.0, 4.0],
        {"axis": 0, "size": 3},
        [5.0, 2.0, 0.0],
        "f",
    ),
    "complex sums": ([0, 0], np.array([1j, 2]), {}, [2 + 1j], "c"),
    "complex means": ([0, 0], np.array([2j, 2], "c8"), {"func": "mean"}, [1 + 1j], "c"),
    "a fill value beyond int64": ([1], [5], {"fill_value": 2**70}, [2**70, 5], "f"),
    "a fill value beyond float32": (
        [1],
        np.array([5], "f4"),
        {"func": "max", "fill_value": 1e300},
        [1e300, 5],
        "f",
    ),
    "a fill value beyond float16": ([1], np.array([5], "f2"), {"fill_value": 1e6}, [1e6, 5], "f"),
    "a fill value of the other kind of float": (
        [1],
        np.array([5], "f4"),
        {"func": "mean", "fill_value": np.float64(0.5)},
        [0.5, 5],
        "f",
    ),
    "ddof beyond int64": ([0, 0], [1.0, 3.0], {"func": "var", "ddof": 2**63}, [NAN], "f"),
    "nothing": ([], [], {"size": 2, "fill_value": 7}, [7, 7], "f"),
}


@pytest.mark.parametrize("name", CASES)
def test_cases(name):
    groups, values, more, answer, dtype_kind = CASES[name]
    result = aggregate(np.array(groups, None if len(groups) else int), values, **more)
    assert result.dtype.kind == dtype_kind
    np.testing.assert_array_equal(result, answer)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_the_order_in_memory(ndim, order):
    rng = np.random.default_rng(ndim)
    groups, values = rng.integers(0, 4, (ndim, 64)), rng.random(64)
    result = aggregate(
        groups if ndim > 1 else groups[0], values, size=(4,) * ndim if ndim > 1 else 4, order=order
    )
    assert result.shape == (4,) * ndim
    assert np.isfortran(result) == (order == "F" and ndim > 1)
    expected = np.zeros((4,) * ndim)
    np.add.at(expected, tuple(groups), values)
    np.testing.assert_allclose(result, expected, rtol=1e-14)
    along = aggregate(groups[0], rng.random((3, 64)), axis=1, order=order)
    assert np.isfortran(along) == (order == "F")


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(12,), (12, 5)], ids=str)
@pytest.mark.parametrize("func", [name for name in numpy_groupies.NAMES if hasattr(np, name)])
@pytest.mark.filterwarnings("ignore:All-NaN|Mean of empty|Degrees of freedom:RuntimeWarning")
def test_one_group_is_numpy_along_the_axis(func, shape, axis):
    if axis >= len(shape):
        return
    values = np.random.default_rng(1).standard_normal(shape)
    if func.startswith("nan"):
        some = np.s_[[1, 4, 5], -1:] if "arg" in func and len(shape) > 1 else np.s_[[1, 4, 5]]
        values[some] = NAN
    elif func in ("any", "all"):
        values = values > 0.5
    fill = {"nansum": 0, "nanprod": 1}.get(
        func, NAN if func.startswith("nan") and "arg" not in func else 0
    )
    result = aggregate(np.zeros(shape[axis], int), values, func, axis=axis, fill_value=fill)
    np.testing.assert_allclose(result.squeeze(axis), getattr(np, func)(values, axis=axis))


def test_the_default_fill_value():
    parameter = inspect.signature(aggregate).parameters["fill_value"]
    assert repr(parameter.default) == "DEFAULT_FILL_VALUE"
    for default in (parameter.default, pickle.loads(pickle.dumps(parameter.default))):
        assert aggregate([1], [5], "prod", fill_value=default).tolist() == [1, 5]


NAMES_AND_FUNCTIONS = [
    *numpy_groupies.NAMES,
    *(alias for alias, name in numpy_groupies.ALIASES.items() if name in numpy_groupies.NAMES),
    *(f for f, name in numpy_groupies.CALLABLES.items() if name in numpy_groupies.NAMES),
]


@pytest.mark.frameworks
def test_numpy_groupies_agrees():
    theirs = pytest.importorskip("numpy_groupies", reason="install numpy_groupies to compare")
    rng = np.random.default_rng(3)
    groups = rng.integers(0, 40, 60)
    kinds = list(itertools.product(["f8", "f4", "i8", "i4"], [0, 0.3], [(60,), (3, 60)]))
    for func, fill in itertools.product(NAMES_AND_FUNCTIONS, [None, 0, 1, -3, 0.5, NAN]):
        for dtype, nan, shape in kinds:
            values = rng.integers(-5, 6, shape).astype(dtype)
            if nan and dtype[0] == "f":
                values[rng.random(shape) < nan] = NAN
            if len(shape) > 1 and callable(func) and "arg" in func.__name__:
                continue  # there the position is that in the whole array
            _agrees(theirs.aggregate_np, groups, values, func, fill)


def _agrees(theirs, groups, values, func, fill):
    more = {"axis": None if values.ndim == 1 else 1}
    more |= {} if fill is None else {"fill_value": fill}  # the default
    if values.ndim > 1 and values.flat[0] > 0:
        groups = np.stack([groups, groups[::-1], groups // 2])
    try:
        with np.errstate(all="ignore"):
            expected = theirs(groups, values, func, **more)
    except ValueError:
        with pytest.raises(ValueError, match="fill_value"):
            aggregate(groups, values, func, **more)
        return
    result = aggregate(groups, values, func, **more)
    case = f"{func} of {values.dtype} {values.shape}, {fill}"
    assert result.dtype == expected.dtype or "squares" in str(func), case
    rtol = 1e-6 if values.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(result, expected, rtol=rtol, err_msg=case)


@pytest.mark.parametrize("func", numpy_groupies.NAMES)
@pytest.mark.parametrize("dtype", ["f8", "i4", "u2"])
def test_the_other_byte_order_has_the_same_results(func, dtype):
    values, groups = np.array([3, 1, 2, 2]).astype(dtype), [1, 1, 3, 3]
    expected = aggregate(groups, values, func, fill_value=1)
    result = aggregate(groups, values.astype(f">{dtype}"), func, fill_value=1)
    assert result.dtype.newbyteorder("=") == expected.dtype
    np.testing.assert_array_equal(result, expected)


def test_a_dtype_in_the_other_byte_order():
    result = aggregate([0, 2, 2], [1.0, 2.0, 4.0], "max", dtype=">f4", fill_value=7)
    assert result.dtype == np.dtype(">f4")
    np.testing.assert_array_equal(result, [1, 7, 4])


@pytest.mark.parametrize("order", ["C", "F"])
def test_64_rows_of_groups(order):
    groups = np.zeros((64, 3), int)
    groups[0], groups[-1] = [0, 1, 1], [2, 0, 2]
    result = aggregate(groups, [1, 2, 4], order=order)
    assert result.shape == (2, *(1,) * 62, 3)
    np.testing.assert_array_equal(result.squeeze(), [[0, 0, 1], [2, 0, 4]])


def test_functions_without_a_fold_accept_longdouble():
    values = np.array([1, 2**-60, 3], "g") + np.longdouble(2) ** -60
    first = aggregate([0, 0, 2], values, "first", fill_value=values[1])
    assert first.dtype == np.dtype("g")
    np.testing.assert_array_equal(first, [values[0], values[1], values[2]])
    wider = aggregate([0, 0, 2], values.astype("f8"), "first", dtype="g")
    assert wider.dtype == np.dtype("g")
    assert aggregate([0, 0, 2], values, "len").tolist() == [2, 0, 1]


def test_values_that_are_not_numbers():
    names = np.array(["b", "aa", "c"])
    assert aggregate([1, 1, 0], names, "first", fill_value="").tolist() == ["c", "b"]
    days = np.array(["2020-01-02", "2020-01-01"], "M8[D]")
    result = aggregate([1, 1], days, "last", fill_value=np.datetime64("NaT", "s"), dtype="M8[s]")
    np.testing.assert_array_equal(result, np.array(["NaT", "2020-01-01"], "M8[s]"))
