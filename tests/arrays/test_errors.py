"""Every error message of a call, word for word."""

import ast
import builtins
import re
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

import gatherum
from gatherum._model import errors, operators
from gatherum._model.errors import frameworks as framework_errors
from source import ROOT

TWO = np.zeros((2, 3), np.float32)
ROWS = np.zeros((1, 1), np.int64)
OBJECTS = np.array([None, None])
BIG = np.broadcast_to(np.float32(0), (2**40, 2))
MANY = np.broadcast_to(np.int64(0), (2**40,))
NOTHING = np.zeros((2**40,) * 3, "V0")
PAIRS = np.zeros((2,), [("a", "f4"), ("b", "f4")])
READ_ONLY = np.zeros((1, 3), np.float32)
READ_ONLY.flags.writeable = False
OVERLAPPING = np.lib.stride_tricks.as_strided(TWO.copy(), (2, 3), (4, 4))
# Each element starts at a distinct address and overlaps the next one.
HALF_OVERLAPPING = np.lib.stride_tricks.as_strided(np.zeros(6, np.complex64), (2, 3), (12, 8))
ZERO_SECONDS = np.zeros(2, "M8[0s]")
Tensor = type("Tensor", (), {"__module__": "torch", "__array__": None})
Lazy = type("Lazy", (), {"__module__": "dask.array.core", "__array__": None})
Proxy = type("Proxy", (), {"__module__": "torch.fx.proxy"})


def words_of_numpy(value):
    with pytest.raises(ValueError, match="inhomogeneous") as caught:
        np.asarray(value)
    return str(caught.value)


# The function, its arguments, and the outcome, in the order of the functions of `errors`.
SENTENCES = [
    (
        "unknown_operator", "plan", ("take", TWO, [0]), {}, ValueError,
        "plan: `op` must be one of 'gather', 'gather_elements', 'gather_nd', 'scatter_slices', "
        "'scatter_elements', 'scatter_nd', got 'take'",
    ),
    (
        "unknown_attribute", "plan", ("gather_nd", TWO, [[0]]), {"axis": 1}, TypeError,
        "gather_nd: unknown attribute 'axis'; it takes 'batch_dims', 'mode', 'negative', 'out', "
        "'fill_value'",
    ),
    (
        "not_an_integer", "gather", (TWO, [0], 1.0), {}, TypeError,
        "gather: `axis` must be an integer, got 1.0",
    ),
    (
        "not_an_integer", "scatter_nd", (TWO, ROWS, TWO[:1], "0"), {}, TypeError,
        "scatter_nd: `batch_dims` must be an integer, got '0'",
    ),
    (
        "not_an_integer", "scatter_nd", (TWO, ROWS, TWO[:1], "add"), {}, TypeError,
        "scatter_nd: `batch_dims` must be an integer, got 'add'; write reduction='add'",
    ),
    (
        "not_an_integer", "scatter_elements", (TWO, ROWS, TWO[:1], "prod"), {}, TypeError,
        "scatter_elements: `axis` must be an integer, got 'prod'; write reduction='mul'",
    ),
    (
        "not_an_integer", "gather", (TWO, [0], "clip"), {}, TypeError,
        "gather: `axis` must be an integer, got 'clip'; write mode='clip'",
    ),
    (
        "not_an_integer", "gather", (TWO, [0], "add"), {}, TypeError,
        "gather: `axis` must be an integer, got 'add'",
    ),
    (
        "not_an_integer", "gather", (TWO, [0], TWO), {}, TypeError,
        "gather: `axis` must be an integer, got an array of float32 (2, 3)",
    ),
    (
        "not_a_boolean", "gather", (TWO, [0]), {"negative": TWO}, TypeError,
        "gather: `negative` must be True or False, got an array of float32 (2, 3)",
    ),
    (
        "not_a_boolean", "gather", (TWO, [0]), {"negative": 0}, TypeError,
        "gather: `negative` must be True or False, got 0",
    ),
    (
        "not_a_boolean", "scatter_nd", (TWO, ROWS, TWO[:1]), {"include_self": "no"}, TypeError,
        "scatter_nd: `include_self` must be True or False, got 'no'",
    ),
    (
        "not_a_boolean", "plan", ("scatter_nd", TWO, ROWS, 1.0), {"include_self": None}, TypeError,
        "scatter_nd: `include_self` must be True or False, got None",
    ),
    (
        "not_a_boolean", "index_report", ("gather", (3,), [0]), {"negative": [True] * 30},
        TypeError,
        "gather: `negative` must be True or False, "
        "got [True, True, True, True, True, True, True, True, True, Tr...",
    ),
    (
        "not_one_of", "gather", (TWO, [0]), {"mode": "ignore"}, ValueError,
        "gather: `mode` must be one of 'raise', 'clip', 'wrap', 'fill', 'drop', got 'ignore'",
    ),
    (
        "not_one_of", "scatter_nd", (TWO, ROWS, TWO[:1]), {"reduction": "sum"}, ValueError,
        "scatter_nd: `reduction` must be one of 'none', 'add', 'mul', 'max', 'min', 'mean', "
        "'fsum', 'fmean', got 'sum'; its name here is 'add'",
    ),
    (
        "not_one_of", "scatter_elements", (TWO, ROWS, 1.0), {"reduction": "amax"}, ValueError,
        "scatter_elements: `reduction` must be one of 'none', 'add', 'mul', 'max', 'min', 'mean', "
        "'fsum', 'fmean', got 'amax'; its name here is 'max'",
    ),
    (
        "not_one_of", "gather", (TWO, [0]), {"mode": "sum"}, ValueError,
        "gather: `mode` must be one of 'raise', 'clip', 'wrap', 'fill', 'drop', got 'sum'",
    ),
    (
        "not_one_of", "gather", (TWO, [0]), {"mode": BIG}, ValueError,
        "gather: `mode` must be one of 'raise', 'clip', 'wrap', 'fill', 'drop', got an array of "
        "float32 (1099511627776, 2)",
    ),
    (
        "not_one_of", "gather", (TWO, [0]), {"mode": None}, ValueError,
        "gather: `mode` must be one of 'raise', 'clip', 'wrap', 'fill', 'drop', got None",
    ),
    (
        "out_of_range", "gather_elements", (TWO, ROWS, 2), {}, ValueError,
        "gather_elements: `axis` must be in [-2, 2), got 2",
    ),
    (
        "out_of_range", "gather_nd", (TWO, ROWS, -1), {}, ValueError,
        "gather_nd: `batch_dims` must be in [0, 2), got -1",
    ),
    (
        "out_of_range", "scatter_nd", (TWO, ROWS, TWO[:1], 2), {}, ValueError,
        "scatter_nd: `batch_dims` must be in [0, 2), got 2",
    ),
    (
        "not_convertible_to_array", "gather", ([[1], [2, 3]], [0]), {}, ValueError,
        "gather: `data` cannot be converted to an array: " + words_of_numpy([[1], [2, 3]]),
    ),
    (
        "masked_array", "gather", (np.ma.array([1.0]), [0]), {}, TypeError,
        "gather: `data` must not be a masked array: its mask would be lost",
    ),
    (
        "masked_array", "gather", (TWO, [0]), {"out": np.ma.zeros((1, 3), "f4")}, TypeError,
        "gather: `out` must not be a masked array: its mask would be lost",
    ),
    (
        "masked_array", "gather", ([np.ma.array([1.0], mask=True)], [0]), {}, TypeError,
        "gather: `data` must not be a masked array: its mask would be lost",
    ),
    (
        "masked_array", "gather", (TWO, [[1], [np.ma.masked]]), {}, TypeError,
        "gather: `indices` must not be a masked array: its mask would be lost",
    ),
    (
        "masked_array", "scatter_nd", (TWO, ROWS, [[1, (2, np.ma.array(3.0))]]), {}, TypeError,
        "scatter_nd: `updates` must not be a masked array: its mask would be lost",
    ),
    (
        "masked_array", "scatter_nd", (PAIRS, ROWS, [(np.ma.masked, 2)]), {}, TypeError,
        "scatter_nd: `updates` must not be a masked array: its mask would be lost",
    ),
    (
        "masked_array", "gather", (PAIRS, [9]), {"mode": "fill", "fill_value": (np.ma.masked, 2)},
        TypeError,
        "gather: `fill_value` must not be a masked array: its mask would be lost",
    ),
    (
        "foreign_array", "gather", (Tensor(), [0]), {}, TypeError,
        "gather: `data` must be a NumPy array, got a torch.Tensor; write data.numpy(force=True)",
    ),
    (
        "foreign_array", "gather", (Proxy(), [0]), {}, TypeError,
        "gather: `data` must be a NumPy array, got a torch.Proxy",
    ),
    (
        "held_array", "gather", ([Tensor()], [0]), {}, TypeError,
        "gather: `data` must be one array, got a list that holds a torch.Tensor; write "
        "torch.stack(data)",
    ),
    (
        "two_frameworks", "gather", (Tensor(), Lazy()), {}, TypeError,
        "gather: the arrays must be of one framework, got a torch.Tensor as `data` and a dask.Lazy "
        "as `indices`",
    ),
    (
        "not_array_like", "gather", (b"data", [0]), {}, TypeError,
        "gather: `data` must be an array, got bytes",
    ),
    (
        "not_array_like", "scatter_nd", (TWO, ROWS, None), {}, TypeError,
        "scatter_nd: `updates` must be an array, got NoneType",
    ),
    (
        "holds_arrays", "gather_nd", (TWO, np.nonzero(TWO == 0)), {}, TypeError,
        "gather_nd: `indices` must be one array, got a tuple that holds arrays; np.argwhere, or "
        "np.stack(arrays, -1), makes index tuples",
    ),
    (
        "holds_arrays", "plan", ("gather", TWO, [[0], [np.array(1)]]), {}, TypeError,
        "gather: `indices` must be one array, got a list that holds arrays; np.argwhere, or "
        "np.stack(arrays, -1), makes index tuples",
    ),
    (
        "holds_arrays", "index_report", ("gather", (3,), [np.zeros(2), np.zeros(3)]), {}, TypeError,
        "gather: `indices` must be one array, got a list that holds arrays; np.argwhere, or "
        "np.stack(arrays, -1), makes index tuples",
    ),
    (
        "has_objects", "gather", (OBJECTS, [0]), {}, TypeError,
        "gather: `data` must have a dtype without objects or references, got object",
    ),
    (
        "has_decimals", "gather", (np.array([Decimal("1.5")]), [0]), {}, TypeError,
        "gather: `data` must have a dtype without objects or references, got decimals; count in "
        "integers of the smallest unit, such as cents: [int(one.scaleb(2)) for one in data]",
    ),
    (
        "datetime_step_too_small", "gather", (ZERO_SECONDS, [0]), {}, TypeError,
        "gather: `data` must have datetimes in steps of at least 1, got datetime64[0s]",
    ),
    (
        "datetime_step_too_small", "scatter_nd", (np.zeros(2, "M8[s]"), ROWS, ZERO_SECONDS[:1]), {},
        TypeError,
        "scatter_nd: `updates` must have datetimes in steps of at least 1, got datetime64[0s]",
    ),
    (
        "not_an_index_dtype", "gather_nd", (TWO, np.zeros((1, 1), bool)), {}, TypeError,
        "gather_nd: `indices` must have an integer dtype, got bool; np.argwhere makes index tuples "
        "of a mask",
    ),
    (
        "not_an_index_dtype", "gather", (TWO, [True, False]), {}, TypeError,
        "gather: `indices` must have an integer dtype, got bool; np.flatnonzero makes indices of a "
        "mask",
    ),
    (
        "not_an_index_dtype", "index_report", ("scatter_slices", (3,), np.ones(3, bool)), {},
        TypeError,
        "scatter_slices: `indices` must have an integer dtype, got bool; np.flatnonzero makes "
        "indices of a mask",
    ),
    (
        "not_an_index_dtype", "gather", (TWO, [0.5]), {}, TypeError,
        "gather: `indices` must have an integer dtype, got float64; write "
        "indices.astype(np.int64)",
    ),
    (
        "other_dtype", "scatter_nd", (TWO, ROWS, TWO[:1].astype(">f4")), {}, TypeError,
        "scatter_nd: `updates` must have the dtype of `data`, float32, got >f4; write "
        "updates.astype(data.dtype)",
    ),
    (
        "other_dtype", "scatter_nd", (TWO, ROWS, np.float64(0.5)), {}, TypeError,
        "scatter_nd: `updates` must have the dtype of `data`, float32, got float64; write "
        "updates.astype(data.dtype)",
    ),
    (
        "other_dtype", "gather", (TWO, [0]), {"out": np.zeros((1, 3))}, TypeError,
        "gather: `out` must have the dtype of `data`, float32, got float64",
    ),
    (
        "not_convertible", "scatter_nd", (TWO, ROWS, "1.5"), {}, TypeError,
        "scatter_nd: `updates` must convert to the dtype of `data`, float32, got '1.5'",
    ),
    (
        "loses_kind", "scatter_nd", (np.zeros((2, 3), int), ROWS, 1.5), {}, ValueError,
        "scatter_nd: `updates` must be an integer where `data` is int64, got 1.5",
    ),
    (
        "loses_kind", "scatter_nd", (TWO, ROWS, [[1, 2j, 3]]), {}, ValueError,
        "scatter_nd: `updates` must be real numbers where `data` is float32, got [[1, 2j, 3]]",
    ),
    (
        "loses_kind", "gather", (TWO > 0, [0]), {"mode": "fill", "fill_value": 1}, ValueError,
        "gather: `fill_value` must be True or False where `data` is bool, got 1",
    ),
    (
        "does_not_fit", "scatter_nd", (np.zeros((2, 3), np.int8), ROWS, [[1, 2, 300]]), {},
        ValueError,
        "scatter_nd: `updates` must convert exactly to the dtype of `data`, int8, "
        "got [[1, 2, 300]]",
    ),
    (
        "not_finite", "scatter_nd", (TWO, ROWS, 1e300), {}, ValueError,
        "scatter_nd: `updates` must stay finite in the dtype of `data`, float32, got 1e+300",
    ),
    (
        "not_finite", "gather", (TWO, [0]), {"mode": "fill", "fill_value": -1e300}, ValueError,
        "gather: `fill_value` must stay finite in the dtype of `data`, float32, got -1e+300",
    ),
    (
        "does_not_fit", "gather", (TWO, [0]), {"mode": "fill", "fill_value": np.float64(0.1)},
        ValueError,
        "gather: `fill_value` must convert exactly to the dtype of `data`, float32, "
        "got np.float64(0.1); write fill_value.item() to round it",
    ),
    (
        "does_not_fit", "gather", (TWO, [0]), {"mode": "fill", "fill_value": np.int64(2**24 + 1)},
        ValueError,
        "gather: `fill_value` must convert exactly to the dtype of `data`, float32, "
        "got np.int64(16777217)",
    ),
    (
        "does_not_fit", "gather", (TWO, [0]), {"mode": "fill", "fill_value": TWO}, ValueError,
        "gather: `fill_value` must convert exactly to the dtype of `data`, float32, "
        "got an array of float32 (2, 3)",
    ),
    (
        "does_not_fit", "gather", (TWO, [0]), {"mode": "fill", "fill_value": [7] * 50}, ValueError,
        "gather: `fill_value` must convert exactly to the dtype of `data`, float32, "
        "got [7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,...",
    ),
    (
        "not_reducible", "scatter_nd", (TWO.astype("S4"), ROWS, b"x"), {"reduction": "add"},
        TypeError,
        "scatter_nd: `reduction` 'add' is not defined for dtype |S4",
    ),
    (
        "not_reducible", "scatter_nd", (TWO.astype(">f4"), ROWS, 1.0), {"reduction": "add"},
        TypeError,
        "scatter_nd: `reduction` 'add' is not defined for dtype >f4; write "
        "data.astype(data.dtype.newbyteorder('=')), and the same for updates",
    ),
    (
        "not_reducible", "scatter_elements", (TWO > 0, ROWS, True), {"reduction": "mean"},
        TypeError,
        "scatter_elements: `reduction` 'mean' is not defined for dtype bool",
    ),
    (
        "not_reducible", "scatter_nd", (TWO.astype("i4"), ROWS, 1), {"reduction": "fsum"},
        TypeError,
        "scatter_nd: `reduction` 'fsum' is not defined for dtype int32; it supports only floats "
        "and complex numbers; 'add' sums integers without rounding",
    ),
    (
        "too_few_dimensions", "gather", (5.0, 0), {}, ValueError,
        "gather: `data` must have at least 1 dimension, got 0",
    ),
    (
        "too_few_dimensions", "scatter_slices", (5.0, 0, 1.0), {}, ValueError,
        "scatter_slices: `data` must have at least 1 dimension, got 0",
    ),
    (
        "other_shape", "scatter_slices", (TWO, [0, 1], TWO, 1), {}, ValueError,
        "scatter_slices: `updates` must have shape (2, 2), got (2, 3)",
    ),
    (
        "index_out_of_bounds", "scatter_slices", (TWO, [[1, 0], [3, 9]], 1.0, 1), {}, IndexError,
        "scatter_slices: index 3 is out of bounds for axis 1 of size 3 (indices[1, 0])",
    ),
    (
        "too_many_dimensions", "scatter_slices", (np.zeros((1,) * 64), [[0]], 0.0), {}, ValueError,
        "scatter_slices: `updates` must have at most 64 dimensions, got 65",
    ),
    (
        "too_few_dimensions", "gather_nd", (TWO, 0), {}, ValueError,
        "gather_nd: `indices` must have at least 1 dimension, got 0",
    ),
    (
        "too_many_dimensions", "plan", ("gather", ((1,) * 65, "f4"), 0), {}, ValueError,
        "gather: `data` must have at most 64 dimensions, got 65",
    ),
    (
        "too_many_dimensions", "plan", ("gather", TWO, ((1,) * 65, int)), {}, ValueError,
        "gather: `indices` must have at most 64 dimensions, got 65",
    ),
    (
        "too_many_dimensions", "plan", ("scatter_nd", TWO, ROWS, ((1,) * 65, "f4")), {}, ValueError,
        "scatter_nd: `updates` must have at most 64 dimensions, got 65",
    ),
    (
        "too_many_dimensions", "gather", (np.zeros((1,) * 64), [[0]]), {}, ValueError,
        "gather: the result must have at most 64 dimensions, got 65",
    ),
    (
        "other_rank", "gather_elements", (TWO, [0]), {}, ValueError,
        "gather_elements: `indices` must have as many dimensions as `data`, 2, got 1",
    ),
    (
        "larger_than_data", "scatter_elements", (TWO, np.zeros((3, 3), int), 0.0, 1), {},
        ValueError,
        "scatter_elements: `indices` must have at most the size of `data`, 2, on dimension 0, "
        "got 3",
    ),
    (
        "other_batch_shape", "gather_nd", (TWO, np.zeros((4, 1), int), 1), {}, ValueError,
        "gather_nd: `indices` must have the batch dimensions of `data`, (2,), got (4,)",
    ),
    (
        "other_batch_shape", "gather_nd", (TWO, ROWS, 1), {}, ValueError,
        "gather_nd: `indices` must have the batch dimensions of `data`, (2,), got (1,)",
    ),
    (
        "tuple_too_long", "gather_nd", (TWO, [[0, 0, 0]]), {}, ValueError,
        "gather_nd: the last dimension of `indices` must be at most 2, the dimensions of `data` "
        "that are not batch dimensions, got 3",
    ),
    (
        "tuple_too_long", "gather_nd", (TWO, [0, 1, 0]), {}, ValueError,
        "gather_nd: the last dimension of `indices` must be at most 2, the dimensions of `data` "
        "that are not batch dimensions, got 3; indices[:, None] makes a tuple of each index",
    ),
    (
        "tuple_too_long", "gather_nd", (TWO, [[0, 0], [0, 0]], 1), {}, ValueError,
        "gather_nd: the last dimension of `indices` must be at most 1, the dimensions of `data` "
        "that are not batch dimensions, got 2",
    ),
    (
        "other_shape", "scatter_nd", (TWO, ROWS, TWO[:, :2]), {}, ValueError,
        "scatter_nd: `updates` must have shape (1, 3), got (2, 2)",
    ),
    (
        "other_shape", "scatter_nd", (TWO, [0, 1], TWO[0, :2]), {}, ValueError,
        "scatter_nd: `updates` must have shape (), got (2,)",
    ),
    (
        "other_shape_of_one_tuple", "scatter_nd", (TWO, [0, 1], TWO), {}, ValueError,
        "scatter_nd: `updates` must have shape (), got (2, 3); indices[:, None] makes a tuple of "
        "each index",
    ),
    (
        "other_shape", "scatter_elements", (TWO, ROWS, np.zeros((1, 4), "f4")), {}, ValueError,
        "scatter_elements: `updates` must have shape (1, 1), got (1, 4)",
    ),
    (
        "other_shape_than_indices", "scatter_elements", (TWO, [[0], [1], [0]], TWO[[0, 1, 1]]), {},
        ValueError,
        "scatter_elements: `updates` must have the shape of `indices`, (3, 1), got (3, 3); write "
        "np.broadcast_to(indices, (3, 3)) for an index for each, or call scatter_slices "
        "with indices.ravel()",
    ),
    (
        "other_shape_than_indices", "scatter_elements", (TWO, [[0], [1]], TWO[:, :2]), {},
        ValueError,
        "scatter_elements: `updates` must have the shape of `indices`, (2, 1), got (2, 2); write "
        "np.broadcast_to(indices, (2, 2)) for an index for each",
    ),
    (
        "other_shape", "gather", (TWO, [0]), {"out": TWO.copy()}, ValueError,
        "gather: `out` must have shape (1, 3), got (2, 3)",
    ),
    (
        "result_too_big", "gather", (BIG, MANY, 1), {}, ValueError,
        "gather: the result, shape (1099511627776, 1099511627776) of dtype float32, has more "
        "bytes than can be addressed",
    ),
    (
        "operand_too_big", "index_report", ("gather_nd", (2**62, 2), [[0, 0]]), {}, ValueError,
        "gather_nd: `data`, shape (4611686018427387904, 2), has more elements than can be "
        "addressed",
    ),
    (
        "operand_too_big", "plan", ("gather", ((3,), "f4"), ((10**20,), "i8")), {}, ValueError,
        "gather: `indices`, shape (100000000000000000000,), has more elements than can be "
        "addressed",
    ),
    (
        "operand_too_big", "index_report", ("gather", (10**30,), [0]), {}, ValueError,
        "gather: `data`, shape (1000000000000000000000000000000,), has more elements than can be "
        "addressed",
    ),
    (
        "operand_too_big", "gather_nd", (NOTHING, [[1, 2, 3]]), {}, ValueError,
        "gather_nd: `data`, shape (1099511627776, 1099511627776, 1099511627776), has more elements "
        "than can be addressed",
    ),
    (
        "operand_too_big", "scatter_nd", (NOTHING[0, 0], ROWS, NOTHING), {}, ValueError,
        "scatter_nd: `updates`, shape (1099511627776, 1099511627776, 1099511627776), has more "
        "elements than can be addressed",
    ),
    (
        "result_too_big", "gather", (NOTHING[0, :, :1], MANY, 1), {}, ValueError,
        "gather: the result, shape (1099511627776, 1099511627776) of dtype |V0, has more elements "
        "than can be addressed",
    ),
    (
        "not_a_shape", "plan", ("gather", ((3.5,), "f4"), ((1,), "i8")), {}, TypeError,
        "gather: `data` must be a tuple of integers, got (3.5,)",
    ),
    (
        "not_a_shape", "index_report", ("gather", (3.0,), [0]), {}, TypeError,
        "gather: `data` must be a tuple of integers, got (3.0,)",
    ),
    (
        "negative_size", "index_report", ("gather", (3, -1), [0]), {}, ValueError,
        "gather: `data` must have sizes of at least 0, got (3, -1)",
    ),
    (
        "negative_size", "plan", ("gather", ((3,), "f4"), ((-1,), "i8")), {}, ValueError,
        "gather: `indices` must have sizes of at least 0, got (-1,)",
    ),
    (
        "takes_no_updates", "plan", ("gather", TWO, [0], TWO), {}, TypeError,
        "gather: takes no `updates`; the scatters do",
    ),
    (
        "takes_no_updates", "explain", ("gather_nd", TWO, ROWS, 1.0), {}, TypeError,
        "gather_nd: takes no `updates`; the scatters do",
    ),
    (
        "not_a_dtype", "plan", ("gather", ((3,), "zz"), ((1,), "i8")), {}, TypeError,
        "gather: `data` must have a dtype that NumPy reads, got 'zz'",
    ),
    (
        "not_a_dtype", "plan", ("gather", ((3,), "f4"), ((1,), "i4,,")), {}, TypeError,
        "gather: `indices` must have a dtype that NumPy reads, got 'i4,,'",
    ),
    (
        "other_strides", "plan", ("gather", ((3,), "f4", (4, 4)), ((1,), "i8")), {}, ValueError,
        "gather: `data` must have 1 strides, one for each dimension, that stay within the "
        "address space, got (4, 4)",
    ),
    (
        "other_strides", "plan", ("gather", ((3,), "f4", (10**20,)), ((1,), "i8")), {}, ValueError,
        "gather: `data` must have 1 strides, one for each dimension, that stay within the "
        "address space, got (100000000000000000000,)",
    ),
    (
        "out_not_a_numpy_array", "gather", (TWO, [0]), {"out": [0.0]}, TypeError,
        "gather: `out` must be a numpy.ndarray, got list",
    ),
    (
        "out_read_only", "gather", (TWO, [0]), {"out": READ_ONLY}, ValueError,
        "gather: `out` must be writable, got a read-only array",
    ),
    (
        "out_overlaps", "gather", (TWO, [0, 1]), {"out": TWO}, ValueError,
        "gather: `out` must not share memory with `data`",
    ),
    (
        "out_overlaps", "scatter_nd", (TWO, ROWS, TWO[:1]), {"out": TWO}, ValueError,
        "scatter_nd: `out` must not share memory with `updates`",
    ),
    (
        "out_overlaps_itself", "gather", (TWO, [0, 1]), {"out": OVERLAPPING}, ValueError,
        "gather: `out` must not overlap itself, got shape (2, 3) with strides (4, 4)",
    ),
    (
        "out_overlaps_itself", "gather", (TWO.astype("c8"), [0, 1]), {"out": HALF_OVERLAPPING},
        ValueError,
        "gather: `out` must not overlap itself, got shape (2, 3) with strides (12, 8)",
    ),
    (
        "result_too_big", "gather", (BIG.T[:1], np.broadcast_to(0, (0, 2**40)), 0), {}, ValueError,
        "gather: the result, shape (0, 1099511627776, 1099511627776) of dtype float32, has more "
        "bytes than can be addressed",
    ),
    (
        "index_out_of_bounds", "gather", (TWO, [[1, 0], [7, 9]]), {}, IndexError,
        "gather: index 7 is out of bounds for axis 0 of size 2 (indices[1, 0])",
    ),
    (
        "index_out_of_bounds", "gather", (TWO, -4, -1), {}, IndexError,
        "gather: index -4 is out of bounds for axis 1 of size 3 (indices)",
    ),
    (
        "index_out_of_bounds", "gather", (TWO, [-1]), {"negative": False}, IndexError,
        "gather: index -1 is out of bounds for axis 0 of size 2 (indices[0])",
    ),
    (
        "index_out_of_bounds", "gather", (TWO, np.array([2**64 - 1], ">u8")), {}, IndexError,
        "gather: index 18446744073709551615 is out of bounds for axis 0 of size 2 (indices[0])",
    ),
    (
        "index_out_of_bounds", "gather_nd", (TWO[None], [[[0, 1], [0, -3]]], 0), {}, IndexError,
        "gather_nd: index -3 is out of bounds for axis 1 of size 2 (indices[0, 1, 1])",
    ),
    (
        "index_out_of_bounds", "gather_nd", (TWO, [[2], [3]], 1), {}, IndexError,
        "gather_nd: index 3 is out of bounds for axis 1 of size 3 (indices[1, 0])",
    ),
    (
        "index_out_of_bounds", "gather", (TWO[:0], [0]), {"mode": "clip"}, IndexError,
        "gather: index 0 cannot be clipped into axis 0, which has size 0 (indices[0])",
    ),
    (
        "index_out_of_bounds", "scatter_nd", (TWO[:, :0], [[0, 4]], 0), {"mode": "wrap"},
        IndexError,
        "scatter_nd: index 4 cannot be wrapped into axis 1, which has size 0 "
        "(indices[0, 1])",
    ),
    *(
        (
            "not_convertible_to_array", "gather", (TWO, ragged), {}, ValueError,
            "gather: `indices` cannot be converted to an array: " + words_of_numpy(ragged),
        )
        for ragged in ([[0], [0, 1]], [[0, 1], [0]])
    ),
    (
        "index_out_of_bounds", "gather", (TWO, [2**63]), {}, IndexError,
        f"gather: index {2**63} is out of bounds for axis 0 of size 2 (indices[0])",
    ),
    (
        "too_wide_index", "gather", (TWO, [1, 2**64]), {}, ValueError,
        f"gather: `indices` must be in [-2**63, 2**63), got {2**64} (indices[1])",
    ),
    (
        "too_wide_index", "gather_elements", (TWO, [[0], [2**63]]), {}, ValueError,
        f"gather_elements: `indices` must be in [-2**63, 2**63), got {2**63} (indices[1, 0])",
    ),
    (
        "too_wide_index", "gather", (TWO, -(2**70)), {}, ValueError,
        f"gather: `indices` must be in [-2**63, 2**63), got {-2**70}",
    ),
    (
        "not_an_index_dtype", "gather", (TWO, [1.5, 2**64]), {}, TypeError,
        "gather: `indices` must have an integer dtype, got object",
    ),
    *(
        (
            "not_array_like", "gather", arguments, {}, TypeError,
            f"gather: `{name}` must be an array, got NoneType",
        )
        for name, arguments in (("data", (None, np.array([0]))), ("indices", (TWO, None)))
    ),
]  # fmt: skip
PLANNED = gatherum.plan("gather", TWO, ((1,), "i8"))


@pytest.mark.parametrize(
    ("function", "caller", "arguments", "attributes", "error_type", "sentence"),
    SENTENCES,
    ids=[f"{number}-{row[0]}" for number, row in enumerate(SENTENCES)],
)
def test_sentence(monkeypatch, function, caller, arguments, attributes, error_type, sentence):
    raised = []
    module = errors if hasattr(errors, function) else framework_errors
    original = getattr(module, function)
    monkeypatch.setattr(module, function, lambda *a: raised.append(original(*a)) or raised[-1])
    with pytest.raises(error_type) as caught:
        getattr(gatherum, caller)(*arguments, **attributes)
    assert str(caught.value) == sentence
    assert caught.value is raised[-1]
    assert caught.type is error_type


def test_a_plan_names_the_operand_that_differs():
    with pytest.raises(ValueError, match="plan") as caught:
        PLANNED.run(TWO, np.zeros(2, int))
    assert str(caught.value) == (
        "gather: the plan was made for `indices` int64 (1,), got int64 (2,)"
    )
    with pytest.raises(ValueError, match="plan") as caught:
        PLANNED.run(TWO.T, np.zeros(1, int))
    assert str(caught.value) == (
        "gather: the plan was made for `data` float32 (2, 3), got float32 (3, 2), strides (4, 12)"
    )


@pytest.mark.parametrize("operands", [(None, None), (None, [0]), (TWO, None)])
def test_a_plan_is_run_on_operands(operands):
    with pytest.raises((TypeError, ValueError)) as caught:
        gatherum.plan("gather", TWO, np.zeros(1, int)).run(*operands)
    assert (
        str(caught.value)
        == {
            (True, True): "gather: the plan was made for `data` float32 (2, 3), got None",
            (True, False): "gather: the plan was made for `data` float32 (2, 3), got None",
            (False, True): "gather: the plan was made for `indices` int64 (1,), got None",
        }[operands[0] is None, operands[1] is None]
    )


def test_indices_that_change_during_the_call():
    error = errors.index_out_of_bounds("gather", 0, 0, 2, None, "raise")
    assert str(error) == ("gather: an index was invalid, but `indices` changed during the call")


def literals(*nodes):
    """Return the string constants in syntax trees, including the constant parts of f-strings."""
    constants = (node for top in nodes for node in ast.walk(top) if isinstance(node, ast.Constant))
    return [node.value for node in constants if isinstance(node.value, str)]


def error_functions():
    """Return the name of each function that makes an error or a sentence, and its constants."""
    package = Path(errors.__file__).parents[2]
    paths = {*package.rglob("*errors.py"), *package.glob("_model/errors/*.py")}
    helpers = {package / "_model" / "errors" / name for name in ("audience.py", "texts.py")}
    for path in sorted(paths - helpers):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                returned = getattr(builtins, ast.unparse(node.returns), None)
                if isinstance(returned, type) and issubclass(returned, (Exception, str)):
                    described = ast.get_docstring(node) is not None
                    yield node.name, literals(*node.body[described:])


# In messages of an operator, the name of an operand is in backticks or in an expression, so that
# `errors.renamed` can replace it. These messages also have it as an ordinary word: advice about
# masks, which is created only for `indices`, and advice that means the operand `updates`.
ORDINARY = {"not_an_index_dtype", "not_reducible"}


def test_names_of_operands_are_no_ordinary_words():
    word = re.compile(r"(?<![`\w.(])(?:data|indices|updates)(?![`\w.\[=:])")
    path = Path(errors.__file__)
    found = set()
    for module in ("calls.py", "shapes.py"):
        for node in ast.parse((path.parent / module).read_text()).body:
            if isinstance(node, ast.FunctionDef):
                body = node.body[ast.get_docstring(node) is not None :]
                parts = (
                    part for part in literals(*body) if part not in {"data", "indices", "updates"}
                )
                found |= {node.name for part in parts if word.search(part)}
    assert found == ORDINARY


def test_an_error_names_the_calling_function_and_its_operands():
    names = {"data": "indices", "indices": "index", "updates": "src"}
    error = errors.renamed(TypeError("gather: `data` updates.x indices[0] data_x"), "mine", names)
    assert (type(error), str(error)) == (TypeError, "mine: `indices` src.x index[0] data_x")
    assert str(errors.renamed(IndexError("gather: index 3"), "mine", {})) == "mine: index 3"


# They have no words: a helper of other sentences, and errors that other functions word.
WORDLESS = {"invalid_index", "is_or_are", "not_groups", "renamed"}
LONG = 20  # characters; words of this length are in one message only, or in a few alike


def test_every_message_is_tested():
    """Tests have the words of every message; whether all of them, each test decides."""
    files = [path.read_text() for path in (ROOT / "tests").rglob("*.py")]
    text = "\0".join(
        re.sub(r"\\(.)", r"\1", part) for file in files for part in literals(ast.parse(file))
    )
    functions = list(error_functions())
    assert len(functions) > 190
    assert {row[0] for row in SENTENCES} <= {name for name, _ in functions}
    untested = {name for name, parts in functions if not is_in(text, parts)}
    assert untested == WORDLESS, "add a test with the whole message"


def is_in(text, parts):
    """Return True if 20 characters of a long part, or all short parts, are in a text."""
    parts = [part.strip(" :") for part in parts]
    long = [part for part in parts if len(part) >= LONG]
    short = [part for part in parts if 6 <= len(part) < LONG]
    if not long:
        return bool(short) and all(part in text for part in short)
    return any(part[i : i + LONG] in text for part in long for i in range(len(part) - LONG + 1))


@pytest.mark.parametrize("op", operators.SCATTERS)
def test_a_refused_scatter_has_written_nothing(op):
    data = np.arange(6.0).reshape(2, 3)
    indices = np.array([[0], [5]])
    before = data.copy()
    for out in (None, data, np.full((2, 3), 7.0)):
        kept = None if out is None else out.copy()
        with pytest.raises(IndexError) as caught:
            getattr(gatherum, op)(data, indices, 9.0, out=out)
        assert str(caught.value) == (
            f"{op}: index 5 is out of bounds for axis 0 of size 2 (indices[1, 0])"
        )
        assert data.tobytes() == before.tobytes()
        assert out is None or out.tobytes() == kept.tobytes()


def test_the_first_bad_index_counts_in_every_layout():
    indices = np.zeros((40, 50), np.int16)
    indices[7, 30:] = 11
    indices[7, 31] = 12
    indices[8:, 3] = 13
    for laid in (indices, np.asfortranarray(indices), indices[:, ::-1].copy()[:, ::-1]):
        with pytest.raises(IndexError) as caught:
            gatherum.gather(np.zeros(10), laid)
        assert str(caught.value) == (
            "gather: index 11 is out of bounds for axis 0 of size 10 (indices[7, 30])"
        )
