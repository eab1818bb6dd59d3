"""`groups.aggregate` gives what numpy_groupies does: by cases, and beside it if installed."""

import itertools

import numpy as np
import pytest

import gatherum
from gatherum.groups import groupies

NAN, INF = float("nan"), float("inf")
aggregate = gatherum.groups.aggregate
FIVES = np.arange(0, 100, 2).repeat(5)
COLUMNS = [[0, 0, 1, 1], [0, 1, 1, 1]]
TABLE = np.array([[1, 2], [4, 4], [5, 2], [NAN, 3], [8, 7]])

# The meaning of numpy_groupies' own tests: groups, values, arguments, the answer and its kind.
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
    "a product of nothing is 0": (
        [2, 2, 4, 4, 4],
        [2, 2, 4, 4, 4],
        {"func": np.prod},
        [0, 0, 4, 0, 64],
        "i",
    ),
    "means of integers are floats": (
        [0] * 4 + [3] * 4,
        np.arange(8),
        {"func": "mean"},
        [1.5, 0, 0, 5.5],
        "f",
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
    "nothing": ([], [], {"size": 2, "fill_value": 7}, [7, 7], "f"),
}


@pytest.mark.parametrize("name", CASES)
def test_cases(name):
    groups, values, more, answer, kind = CASES[name]
    found = aggregate(np.array(groups, None if len(groups) else int), values, **more)
    assert found.dtype.kind == kind
    np.testing.assert_array_equal(found, answer)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_the_order_in_memory(ndim, order):
    rng = np.random.default_rng(ndim)
    groups, values = rng.integers(0, 4, (ndim, 64)), rng.random(64)
    found = aggregate(
        groups if ndim > 1 else groups[0], values, size=(4,) * ndim if ndim > 1 else 4, order=order
    )
    assert found.shape == (4,) * ndim
    assert np.isfortran(found) == (order == "F" and ndim > 1)
    expected = np.zeros((4,) * ndim)
    np.add.at(expected, tuple(groups), values)
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    along = aggregate(groups[0], rng.random((3, 64)), axis=1, order=order)
    assert np.isfortran(along) == (order == "F")


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(12,), (12, 5)], ids=str)
@pytest.mark.parametrize("func", [name for name in groupies.NAMES if hasattr(np, name)])
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
    found = aggregate(np.zeros(shape[axis], int), values, func, axis=axis, fill_value=fill)
    np.testing.assert_allclose(found.squeeze(axis), getattr(np, func)(values, axis=axis))


NAMES_AND_FUNCTIONS = [
    *groupies.NAMES,
    *(alias for alias, name in groupies.ALIASES.items() if name in groupies.NAMES),
    *(f for f, name in groupies.CALLABLES.items() if name in groupies.NAMES),
]


def test_numpy_groupies_agrees():
    theirs = pytest.importorskip("numpy_groupies", reason="install numpy_groupies to compare")
    rng = np.random.default_rng(3)
    groups = rng.integers(0, 40, 60)
    kinds = list(itertools.product(["f8", "f4", "i8", "i4"], [0, 0.3], [(60,), (3, 60)]))
    for func, fill in itertools.product(NAMES_AND_FUNCTIONS, [0, 1, -3, 0.5, NAN]):
        for dtype, nan, shape in kinds:
            values = rng.integers(-5, 6, shape).astype(dtype)
            if nan and dtype[0] == "f":
                values[rng.random(shape) < nan] = NAN
            if len(shape) > 1 and callable(func) and "arg" in func.__name__:
                continue  # there the position counts in the whole array
            _agrees(theirs.aggregate_np, groups, values, func, fill)


def _agrees(theirs, groups, values, func, fill):
    more = {"fill_value": fill, "axis": None if values.ndim == 1 else 1}
    try:
        with np.errstate(all="ignore"):
            expected = theirs(groups, values, func, **more)
    except ValueError:
        with pytest.raises(ValueError, match="fill_value"):
            aggregate(groups, values, func, **more)
        return
    found = aggregate(groups, values, func, **more)
    case = f"{func} of {values.dtype} {values.shape}, {fill}"
    assert found.dtype == expected.dtype or "squares" in str(func), case
    rtol = 1e-6 if values.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(found, expected, rtol=rtol, err_msg=case)


LIST_OF_NAMES = ", ".join(map(repr, groupies.NAMES))


@pytest.mark.parametrize("func", [*groupies.ABSENT, "split", sorted, list, np.cumsum, str.upper])
def test_functions_that_need_values_in_order_are_refused(func):
    with pytest.raises(NotImplementedError) as caught:
        aggregate([0, 1], [1, 2], func)
    assert (
        str(caught.value)
        == f"groups.aggregate: `func` must be one of {LIST_OF_NAMES}, got {func!r}"
    )


REFUSED = [
    (
        ([0], [1], "nanallnan"),
        {},
        ValueError,
        f"`func` must be one of {LIST_OF_NAMES}, got 'nanallnan'",
    ),
    (([0], [1], ["sum"]), {}, ValueError, f"`func` must be one of {LIST_OF_NAMES}, got ['sum']"),
    (
        ([0, 1, -1], [1, 2, 3]),
        {},
        ValueError,
        "group -1 is not in [0, 2) (group_idx[2])",
    ),
    (
        ([0, 5], [1, 2]),
        {"size": 3},
        ValueError,
        "group 5 is not in [0, 3) (group_idx[1])",
    ),
    (
        ([[0, 1], [0, 7]], 1),
        {"size": (2, 3)},
        ValueError,
        "group 7 is not in [0, 3) (group_idx[1, 1])",
    ),
    (([0.0], [1]), {}, TypeError, "`group_idx` must have an integer dtype, got float64"),
    (
        ([0], [None], "first"),
        {},
        TypeError,
        "`a` must have a dtype without objects or references, got object",
    ),
    (([0, 1, 2], [1, 2]), {}, ValueError, "`group_idx` must have shape (2,), got (3,)"),
    (
        ([0, 1], [[1, 2, 3]]),
        {"axis": 1},
        ValueError,
        "`group_idx` must have shape (3,), of `a` along axis 1, got (2,)",
    ),
    (
        ([[0], [1]], [[1]]),
        {"axis": 1},
        ValueError,
        "`group_idx` must have shape (1,), of `a` along axis 1, got (2, 1)",
    ),
    ((0, 1), {}, ValueError, "`group_idx` must have shape (1,), got ()"),
    (([0], [[1]]), {}, ValueError, "`a` must have at most 1 dimension without `axis`, got 2"),
    (([0], [1]), {"axis": 1}, ValueError, "`axis` must be in [-1, 1), got 1"),
    (
        ([0], 1, "mean"),
        {},
        ValueError,
        "`a` must have 1 dimension for 'mean': a scalar goes with 'sum', 'prod' and 'len'",
    ),
    (([0], [1]), {"size": (1, 2)}, ValueError, "`size` must be an integer or None, got (1, 2)"),
    (([[0], [0]], 1), {"size": 2}, ValueError, "`size` must be 2 integers or None, got 2"),
    (
        ([[0], [0]], 1),
        {"size": (1, 2, 3)},
        ValueError,
        "`size` must be 2 integers or None, got (1, 2, 3)",
    ),
    (
        ([0], [1]),
        {"fill_value": NAN},
        ValueError,
        "`fill_value` must convert to int64, the dtype of 'sum', got nan",
    ),
    (
        ([0], [1], "any"),
        {"fill_value": 2},
        ValueError,
        "`fill_value` must convert to bool, the dtype of 'any', got 2",
    ),
    (
        ([0], [1]),
        {"dtype": bool},
        TypeError,
        "`dtype` must be a dtype of numbers for 'sum', got bool",
    ),
    (
        ([0], [1], "len"),
        {"dtype": float},
        TypeError,
        "`dtype` must be an integer dtype for 'len', got float64",
    ),
    (([0], [1]), {"order": "K"}, ValueError, "`order` must be one of 'C', 'F', got 'K'"),
]


@pytest.mark.parametrize(("args", "more", "kind", "message"), REFUSED)
def test_refusals(args, more, kind, message):
    with pytest.raises(kind) as caught:
        aggregate(*args, **more)
    assert str(caught.value) == f"groups.aggregate: {message}"
    assert caught.type is kind
