"""Errors of `groups.aggregate`, and their messages."""

import numpy as np
import pytest

import gatherum
from gatherum.groups import numpy_groupies

NAN, INF = float("nan"), float("inf")
aggregate = gatherum.groups.aggregate

UNKNOWN = "`func` must be a function that help(gatherum.groups.aggregate) lists, got"


@pytest.mark.parametrize(
    "func", [*numpy_groupies.ABSENT, "split", sorted, list, np.cumsum, str.upper]
)
def test_functions_that_need_values_in_order_are_refused(func):
    with pytest.raises(NotImplementedError) as caught:
        aggregate([0, 1], [1, 2], func)
    assert str(caught.value).startswith(f"groups.aggregate: {UNKNOWN} {func!r}")


REFUSED = [
    (
        ([0], [1], "nanallnan"),
        {},
        ValueError,
        f"{UNKNOWN} 'nanallnan'; did you mean 'nanall' or 'allnan' or 'nanlen'?",
    ),
    (([0], [1], ["sum"]), {}, ValueError, f"{UNKNOWN} ['sum']"),
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
    (
        ([0.0], [1]),
        {},
        TypeError,
        "`group_idx` must have an integer dtype, got float64; write group_idx.astype(np.int64)",
    ),
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
        "`group_idx` must broadcast to the shape of `a`, (1, 1), got (2, 1)",
    ),
    (
        ([[0, 1]], [1, 2]),
        {"axis": 0},
        ValueError,
        "`group_idx` must have shape (2,), of `a` along axis 0, got (1, 2)",
    ),
    (
        ([[0, 4]], [[1, 2], [3, 4]]),
        {"axis": 1, "size": 3},
        ValueError,
        "group 4 is not in [0, 3) (group_idx[0, 1])",
    ),
    (
        ([0, 2], [1, 2], "mean"),
        {"dtype": int},
        ValueError,
        "`fill_value` must convert to int64, the dtype of 'mean', got nan",
    ),
    *(
        (
            ([0], np.ones(1, dtype), func),
            {},
            TypeError,
            f"`func` {func!r} is not defined for dtype {np.dtype(dtype)}",
        )
        for dtype in ["M8[D]", "m8[s]"]
        for func in ["any", "sumofsquares", "nansum", "std"]
    ),
    (
        ([0], np.ones(1, "M8[D]"), "max"),
        {"dtype": "i8"},
        TypeError,
        "`dtype` must be of the kind of `a`, datetime64[D], for 'max', got int64",
    ),
    (
        ([1], np.ones(1, "M8[D]"), "min"),
        {"fill_value": np.datetime64("2020-01-01T12", "h")},
        ValueError,
        "`fill_value` must convert to datetime64[D], the dtype of 'min', got "
        "np.datetime64('2020-01-01T12','h')",
    ),
    (
        ([1], np.ones(1, "M8[D]"), "first"),
        {"fill_value": NAN},
        ValueError,
        "`fill_value` must convert to datetime64[D], the dtype of 'first', got nan",
    ),
    (
        ([1], ["a"], "first"),
        {"fill_value": "none"},
        ValueError,
        "`fill_value` must convert to <U1, the dtype of 'first', got 'none'",
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
    (
        (np.zeros((0, 3), int), [1, 2, 3]),
        {},
        ValueError,
        "`group_idx` must have at least 1 row, got shape (0, 3)",
    ),
    (
        (np.zeros((65, 2), int), [1, 2]),
        {},
        ValueError,
        "the result must have at most 64 dimensions, got 65",
    ),
    (
        ([[0, 2**40]] * 2, [1.0, 2.0]),
        {},
        ValueError,
        f"the result, shape ({2**40 + 1}, {2**40 + 1}) of dtype float64, has more bytes than can "
        "be addressed",
    ),
    (
        ([np.array([0])], [1]),
        {},
        TypeError,
        "`group_idx` must be one array, got a list that holds arrays; np.concatenate or np.stack "
        "makes one",
    ),
    (
        ([0, 0], np.array([2**60 + 1] * 2, object)),
        {},
        TypeError,
        "`a` must have a dtype without objects or references, got object",
    ),
    (
        ([0, 0], [2**70, 1]),
        {},
        TypeError,
        "`a` must have a dtype without objects or references, got object",
    ),
    *(
        (
            ([0, 0], np.ones(2, char), func),
            {},
            TypeError,
            f"`func` {func!r} is not defined for dtype {np.dtype(char)}; it needs {needs}",
        )
        for char, needs in [("g", "float64"), ("G", "complex128")]
        for func in ["sum", "nansum", "prod", "mean", "std"]
    ),
    *(
        (
            ([0, 0], np.ones(2, "g"), func),
            {},
            TypeError,
            f"`func` {func!r} is not defined for dtype {np.dtype('g')}; it needs float64",
        )
        for func in ["max", "nanargmin", "all", "sumofsquares"]
    ),
    (([0], ["a"]), {}, TypeError, "`func` 'sum' is not defined for dtype <U1"),
    (
        ([0], np.ones(1, "m8[s]"), "mean"),
        {},
        TypeError,
        "`func` 'mean' is not defined for dtype timedelta64[s]",
    ),
    *(
        (
            ([0, 0], [1j, 2], func),
            {},
            TypeError,
            f"`func` {func!r} is not defined for dtype complex128",
        )
        for func in ["min", "argmax", "nanargmin", "sumofsquares", "nansumofsquares"]
    ),
    (
        ([0, 2], [1, 2]),
        {"fill_value": 2**20_000},
        ValueError,
        "`fill_value` must convert to float64, the dtype of 'sum', got an integer of 20001 bits",
    ),
    (([0, 0], [1j, 2], "max"), {}, TypeError, "`func` 'max' is not defined for dtype complex128"),
    *(
        (
            ([0, 2], [1, 2], func),
            {"fill_value": fill},
            ValueError,
            f"`fill_value` must be one item, got {description}",
        )
        for func in ["sum", "mean", "any"]
        for fill, description in [
            ([7, 8, 9], "[7, 8, 9]"),
            ((7,), "(7,)"),
            (np.ones((1, 1)), "an array of float64 (1, 1)"),
        ]
    ),
    *(
        (
            ([0, 2], [1, 2], func),
            {"fill_value": fill},
            ValueError,
            f"`fill_value` must convert to {dtype}, the dtype of {func!r}, got {fill!r}",
        )
        for func, dtype in [("sum", "int64"), ("mean", "float64"), ("any", "bool")]
        for fill in [
            "7",
            b"7",
            None,
            2j,
            np.complex128(2j),
            np.timedelta64(3, "s"),
            np.longdouble(3),
            {},
        ]
    ),
    *(
        (
            ([0, 2], np.array([1, 2], dtype), func),
            {"fill_value": fill},
            ValueError,
            f"`fill_value` must convert to {name}, the dtype of {func!r}, got {description}",
        )
        for dtype, func, fill, name, description in [
            ("i8", "sum", 2**2000, "float64", f"{str(2**2000)[:57]}..."),
            ("f8", "max", 2**2000, "float64", f"{str(2**2000)[:57]}..."),
            ("f8", "mean", 2**2000, "float64", f"{str(2**2000)[:57]}..."),
            ("i8", "argmax", 2**70, "int64", "1180591620717411303424"),
            ("i8", "argmax", INF, "int64", "inf"),
            ("f4", "mean", 1e300, "float32", "1e+300"),
            ("f2", "var", -(2**200), "float16", f"-{str(2**200)[:56]}..."),
        ]
    ),
    (
        ([0, 2], [1.0, 2.0], "mean"),
        {"fill_value": 300, "dtype": "i1"},
        ValueError,
        "`fill_value` must convert to int8, the dtype of 'mean', got 300",
    ),
    *(
        (
            ([0, 0], values, func),
            {"dtype": dtype},
            TypeError,
            f"`dtype` must be {expected} for {func!r}, got {description}",
        )
        for values, func, dtype, expected, description in [
            ([1, 2], "first", object, "a dtype of numbers", "object"),
            ([1, 2], "sum", object, "a dtype of numbers", "object"),
            ([1, 2], "sum", "zz", "a dtype of numbers", "'zz'"),
            ([1, 2], "any", "zz", "a dtype of numbers", "'zz'"),
            ([1, 2], "len", "zz", "an integer dtype", "'zz'"),
            ([1, 2], "sum", "U3", "a dtype of numbers", "<U3"),
            ([1, 2], "mean", "M8[s]", "a dtype of numbers", "datetime64[s]"),
            ([1, 2], "max", "i4,i4", "a dtype of numbers", "[('f0', '<i4'), ('f1', '<i4')]"),
            (
                np.zeros(2, [("a", "i4")]),
                "first",
                [("a", "O")],
                "of the kind of `a`, [('a', '<i4')],",
                "[('a', 'O')]",
            ),
            (["a", "b"], "first", "i4", "of the kind of `a`, <U1,", "int32"),
            ([1, 2], "sum", "g", "float64 or narrower", str(np.dtype("g"))),
            ([1, 2], "max", "G", "complex128 or narrower", str(np.dtype("G"))),
            ([1j, 2], "sum", "f8", "a complex dtype", "float64"),
            ([1j, 2], "mean", "f4", "a complex dtype", "float32"),
            ([1j, 2], "first", "i4", "a complex dtype", "int32"),
            ([1j, 2], "prod", "f8", "a complex dtype", "float64"),
        ]
    ),
]


@pytest.mark.parametrize(("args", "more", "error_type", "message"), REFUSED)
def test_aggregate_checks_its_arguments(args, more, error_type, message):
    with pytest.raises(error_type) as caught:
        aggregate(*args, **more)
    assert str(caught.value) == f"groups.aggregate: {message}"
    assert caught.type is error_type
