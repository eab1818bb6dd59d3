"""Calls of functions over groups that raise an error."""

from decimal import Decimal

import numpy as np
import pytest

import gatherum

NAN = float("nan")
REFUSED = [
    (
        "reduce", ([1], [0], None, "quantile"), {}, ValueError,
        "groups.reduce: `q` must be a number in [0, 1], or a list of them, for 'quantile', got "
        "None",
    ),
    (
        "reduce", ([1], [0], None, "nanquantile"), {"q": 1.5}, ValueError,
        "groups.reduce: `q` must be a number in [0, 1], or a list of them, for 'quantile', got "
        "1.5",
    ),
    (
        "reduce", ([1], [0], None, "median"), {"q": 0.5}, ValueError,
        "groups.reduce: `q` must be None for 'median'; it is an argument of 'quantile' and its "
        "nan form",
    ),
    (
        "reduce", ([1], [0], None, "summ"), {}, ValueError,
        "groups.reduce: `func` must be a function that help(gatherum.groups.reduce) lists, got "
        "'summ'; did you mean 'sum' or 'fsum' or 'nansum'?",
    ),
    (
        "reduce", ([1], [0], None, "add"), {}, ValueError,
        "groups.reduce: `func` must be a function that help(gatherum.groups.reduce) lists, got "
        "'add'; its name here is 'sum'",
    ),
    (
        "reduce", ([1], [0], None, "softmax"), {}, ValueError,
        "groups.reduce: `func` must be a function that help(gatherum.groups.reduce) lists, got "
        "'softmax'; gatherum.groups.transform has it",
    ),
    (
        "reduce", ([1.0, 2.0], np.array(["a", "b"], object)), {}, TypeError,
        "groups.reduce: `groups` must have an integer dtype, got object; groups, keys = "
        "gatherum.groups.factorize(groups) numbers keys",
    ),
    (
        "transform", ([1.0, 2.0], ["a", "b"], "softmax"), {}, TypeError,
        "groups.transform: `groups` must have an integer dtype, got <U1; groups, keys = "
        "gatherum.groups.factorize(groups) numbers keys",
    ),
    (
        "transform", ([Decimal("1.5"), Decimal(2)], [0, 1], "rank"), {}, TypeError,
        "groups.transform: `values` must have a dtype without objects or references, got decimals; "
        "count in integers of the smallest unit, such as cents: [int(one.scaleb(2)) for one in "
        "values]",
    ),
    (
        "reduce", ([Decimal("1.5"), Decimal(2)], [0, 1], 2, "var"), {}, TypeError,
        "groups.reduce: `func` 'var' is not defined for decimals, only 'sum', 'mean', 'max', "
        "'min' and 'count' are; convert the values to floats or integers",
    ),
    (
        "reduce", ([Decimal("1.5")], [0]), {"weights": [1]}, TypeError,
        "groups.reduce: `weights` must not be given for decimals",
    ),
    (
        "reduce", ([[Decimal("1.5")], [Decimal("NaN")]], [0, 0]), {}, TypeError,
        "groups.reduce: `values` must be finite decimals without missing values, got "
        "Decimal('NaN') (values[1, 0])",
    ),
    (
        "reduce", ([Decimal("1.5"), Decimal("1E37")], [0, 0]), {}, ValueError,
        "groups.reduce: `values` must have at most 38 digits, with 1 after the point, got 1E+37 "
        "(values[1])",
    ),
    (
        "reduce", ([Decimal("1.5")], [1], 2, "max"), {}, ValueError,
        "groups.reduce: `fill_value` must be given for 'max' of dtype Decimal, which has no value "
        "for an empty group: group 0 is empty",
    ),
    (
        "reduce", ([Decimal("1.5")], [1], 2, "max"), {"fill_value": 0.5}, TypeError,
        "groups.reduce: `fill_value` must be a Decimal or an integer, got 0.5",
    ),
    (
        "transform", ([1.0], [0], "ranks"), {}, ValueError,
        "groups.transform: `func` must be one of 'normalize', 'centre', 'softmax', 'log_softmax', "
        "'cumsum', 'cumprod', 'cummax', 'cummin', 'cumcount', 'rank', got 'ranks'",
    ),
    (
        "reduce", ([1j], [0], 1, "max"), {}, TypeError,
        "groups.reduce: `func` 'max' is not defined for dtype complex128",
    ),
    (
        "transform", ([True], [0], "centre"), {}, TypeError,
        "groups.transform: `func` 'centre' is not defined for dtype bool",
    ),
    (
        "reduce", ([1, 2, 3], [0, 1, 5], 3), {}, IndexError,
        "groups.reduce: group 5 is not in [0, 3) (groups[2])",
    ),
    (
        "reduce", ([1, 2, 3], [0, -1, -2], 3, "first"), {}, IndexError,
        "groups.reduce: group -1 is not in [0, 3) (groups[1])",
    ),
    (
        "reduce", ([[1.0, NAN]], [0, 9], 3, "nansum", 1), {}, IndexError,
        "groups.reduce: group 9 is not in [0, 3) (groups[1])",
    ),
    (
        "reduce", ([[1.0, NAN]], [[0, 9]], 0, "sum", 1), {"mode": "clip"}, IndexError,
        "groups.reduce: group 0 cannot be clipped into [0, 0), which is empty (groups[0, 0])",
    ),
    (
        "reduce", ([1, 2], [0, 2], None, "max"), {}, ValueError,
        "groups.reduce: `fill_value` must be given for 'max' of dtype int64, which has no value "
        "for an empty group: group 1 is empty",
    ),
    (
        "reduce", ([-(2**63), 2], [0, 2], None, "max"), {}, ValueError,
        "groups.reduce: `fill_value` must be given for 'max' of dtype int64, which has no value "
        "for an empty group: group 1 is empty",
    ),
    (
        "reduce", ([[1, 2], [3, 4]], [[0, 1], [1, 1]], None, "argmax"), {}, ValueError,
        "groups.reduce: `fill_value` must be given for 'argmax' of dtype int64, which has no value "
        "for an empty group: group 0 is empty (result[0, 1])",
    ),
    (
        "reduce", ([1, 2], [0, 0], 1, "max"), {"fill_value": 1.5}, ValueError,
        "groups.reduce: `fill_value` must be an integer where the result is int64, got 1.5",
    ),
    (
        "reduce", ([1, 2], [0, 0], 1, "max"), {"fill_value": np.nan}, ValueError,
        "groups.reduce: `fill_value` must be an integer where the result is int64, got nan",
    ),
    (
        "reduce", (3, [0]), {}, ValueError,
        "groups.reduce: `values` must have at least 1 dimension, got 0",
    ),
    (
        "reduce", ([1, 2], [0]), {}, ValueError,
        "groups.reduce: `groups` must have shape (2,), got (1,)",
    ),
    (
        "reduce", ([[1, 2], [3, 4]], [[0, 1]]), {}, ValueError,
        "groups.reduce: `groups` must have shape (2,), or that of `values`, (2, 2), got (1, 2)",
    ),
    (
        "reduce", ([1], [0.0]), {}, TypeError,
        "groups.reduce: `groups` must have an integer dtype, got float64; write "
        "groups.astype(np.int64)",
    ),
    (
        "reduce", ([1], [True]), {}, TypeError,
        "groups.reduce: `groups` must have an integer dtype, got bool; write "
        "groups.astype(np.int64)",
    ),
    (
        "reduce", ([1], [0], 1.5), {}, TypeError,
        "groups.reduce: `size` must be an integer, got 1.5",
    ),
    (
        "reduce", ([1], [0], -1), {}, ValueError,
        "groups.reduce: `size` must be at least 0, got -1",
    ),
    (
        "reduce", ([1], [0]), {"axis": 1}, ValueError,
        "groups.reduce: `axis` must be in [-1, 1), got 1",
    ),
    (
        "reduce", ([1], [0]), {"axis": "0"}, TypeError,
        "groups.reduce: `axis` must be an integer, got '0'",
    ),
    (
        "reduce", ([1], [0]), {"ddof": -1}, ValueError,
        "groups.reduce: `ddof` must be at least 0, got -1",
    ),
    (
        "reduce", ([1], [0]), {"negative": 1}, TypeError,
        "groups.reduce: `negative` must be True or False, got 1",
    ),
    (
        "reduce", ([None], [0]), {}, TypeError,
        "groups.reduce: `values` must have a dtype without objects or references, got object",
    ),
    (
        "reduce", ([1, 2, 3], [0, -1, -4], 3), {"negative": True}, IndexError,
        "groups.reduce: group -4 is not in [-3, 3) (groups[2])",
    ),
    (
        "reduce", ([1, 2], [0, 0], 1), {"fill_value": 2**70}, ValueError,
        "groups.reduce: `fill_value` must convert exactly to the dtype of the result, int64, got "
        "1180591620717411303424",
    ),
    (
        "reduce", ([1, 2], [0, 0], "max"), {}, TypeError,
        "groups.reduce: `size` must be an integer, got 'max'; write func='max'",
    ),
    (
        "reduce", ([1, 2], [0, 0], "add"), {}, TypeError,
        "groups.reduce: `size` must be an integer, got 'add'; write func='sum'",
    ),
    (
        "reduce", ([1, 2], [0, 0], "much"), {}, TypeError,
        "groups.reduce: `size` must be an integer, got 'much'",
    ),
    (
        "reduce", ([1], [np.array(0)]), {}, TypeError,
        "groups.reduce: `groups` must be one array, got a list that holds arrays; np.concatenate "
        "or np.stack makes one",
    ),
    (
        "reduce", (np.ones(2, ">f8"), [0, 0]), {}, TypeError,
        "groups.reduce: `func` 'sum' is not defined for dtype >f8; it needs native byte order",
    ),
    (
        "transform", (np.ones(2, ">i4"), [0, 0], "centre"), {}, TypeError,
        "groups.transform: `func` 'centre' is not defined for dtype >i4; it needs native byte "
        "order",
    ),
    (
        "reduce", (np.ones(2, ">M8[s]"), [0, 0], 1, "nanmax"), {}, TypeError,
        "groups.reduce: `func` 'nanmax' is not defined for dtype >M8[s]; it needs native byte "
        "order",
    ),
    (
        "reduce", (np.ones(2, "m8[s]"), [0, 0], 1, "mean"), {}, TypeError,
        "groups.reduce: `func` 'mean' is not defined for dtype timedelta64[s]",
    ),
    (
        "reduce", (np.ones(2, "M8[s]"), [0, 2], None, "argmax"), {}, ValueError,
        "groups.reduce: `fill_value` must be given for 'argmax' of dtype int64, which has no value "
        "for an empty group: group 1 is empty",
    ),
    (
        "reduce", (np.ones(2, ">c8"), [0, 0], 1, "max"), {}, TypeError,
        "groups.reduce: `func` 'max' is not defined for dtype >c8",
    ),
    (
        "reduce", (np.ones(2, "g"), [0, 0], 1, "nanmax"), {}, TypeError,
        f"groups.reduce: `func` 'nanmax' is not defined for dtype {np.dtype('g')}; it needs "
        "float64",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "func", "ours"),
    [
        ("reduce", "add", "sum"),
        ("reduce", "nanadd", "nansum"),
        ("reduce", "mul", "prod"),
        ("reduce", "amax", "max"),
        ("reduce", "len", "count"),
        ("reduce", "nanlen", "nancount"),
        ("transform", "center", "centre"),
    ],
)
def test_a_name_of_other_libraries_is_recognized(name, func, ours):
    with pytest.raises(ValueError, match=f"got '{func}'; its name here is '{ours}'$"):
        getattr(gatherum.groups, name)([1], [0], func=func)


@pytest.mark.parametrize(("name", "args", "more", "error_type", "message"), REFUSED)
def test_reduce_and_transform_check_their_arguments(name, args, more, error_type, message):
    with pytest.raises(error_type) as caught:
        getattr(gatherum.groups, name)(*args, **more)
    assert str(caught.value) == message
    assert caught.type is error_type
