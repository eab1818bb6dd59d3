"""Errors of a call about operands and attributes (`_model/errors/calls.py`), word for word.

`test_index_errors.py` has those about indices.
"""

from decimal import Decimal

import numpy as np

from sentences import FIRST_ROW, TALL, ZEROS_2X3, check_sentence, each_sentence, words_of_numpy

OBJECTS = np.array([None, None])
PAIRS = np.zeros((2,), [("a", "f4"), ("b", "f4")])
READ_ONLY = np.zeros((1, 3), np.float32)
READ_ONLY.flags.writeable = False
OVERLAPPING = np.lib.stride_tricks.as_strided(ZEROS_2X3.copy(), (2, 3), (4, 4))
# Each element starts at a distinct address and overlaps the next one.
HALF_OVERLAPPING = np.lib.stride_tricks.as_strided(np.zeros(6, np.complex64), (2, 3), (12, 8))
ZERO_SECONDS = np.zeros(2, "M8[0s]")
Tensor = type("Tensor", (), {"__module__": "torch", "__array__": None})
Lazy = type("Lazy", (), {"__module__": "dask.array.core", "__array__": None})
Proxy = type("Proxy", (), {"__module__": "torch.fx.proxy"})

# The function, its arguments, and the outcome.
SENTENCES = [
    (
        "unknown_operator", "plan", ("take", ZEROS_2X3, [0]), {}, ValueError,
        "plan: `op` must be one of 'gather', 'gather_elements', 'gather_nd', 'scatter_slices', "
        "'scatter_elements', 'scatter_nd', got 'take'",
    ),
    (
        "unknown_attribute", "plan", ("gather_nd", ZEROS_2X3, [[0]]), {"axis": 1}, TypeError,
        "gather_nd: unknown attribute 'axis'; it takes 'batch_dims', 'mode', 'negative', 'out', "
        "'fill_value'",
    ),
    (
        "not_an_integer", "gather", (ZEROS_2X3, [0], 1.0), {}, TypeError,
        "gather: `axis` must be an integer, got 1.0",
    ),
    (
        "not_an_integer", "scatter_nd", (ZEROS_2X3, FIRST_ROW, ZEROS_2X3[:1], "0"), {}, TypeError,
        "scatter_nd: `batch_dims` must be an integer, got '0'",
    ),
    (
        "not_an_integer", "scatter_nd", (ZEROS_2X3, FIRST_ROW, ZEROS_2X3[:1], "add"), {}, TypeError,
        "scatter_nd: `batch_dims` must be an integer, got 'add'; write reduction='add'",
    ),
    (
        "not_an_integer", "scatter_elements", (ZEROS_2X3, FIRST_ROW, ZEROS_2X3[:1], "prod"), {},
        TypeError,
        "scatter_elements: `axis` must be an integer, got 'prod'; write reduction='mul'",
    ),
    (
        "not_an_integer", "gather", (ZEROS_2X3, [0], "clip"), {}, TypeError,
        "gather: `axis` must be an integer, got 'clip'; write mode='clip'",
    ),
    (
        "not_an_integer", "gather", (ZEROS_2X3, [0], "add"), {}, TypeError,
        "gather: `axis` must be an integer, got 'add'",
    ),
    (
        "not_an_integer", "gather", (ZEROS_2X3, [0], ZEROS_2X3), {}, TypeError,
        "gather: `axis` must be an integer, got an array of float32 (2, 3)",
    ),
    (
        "not_a_boolean", "gather", (ZEROS_2X3, [0]), {"negative": ZEROS_2X3}, TypeError,
        "gather: `negative` must be True or False, got an array of float32 (2, 3)",
    ),
    (
        "not_a_boolean", "gather", (ZEROS_2X3, [0]), {"negative": 0}, TypeError,
        "gather: `negative` must be True or False, got 0",
    ),
    (
        "not_a_boolean", "scatter_nd", (ZEROS_2X3, FIRST_ROW, ZEROS_2X3[:1]),
        {"include_self": "no"}, TypeError,
        "scatter_nd: `include_self` must be True or False, got 'no'",
    ),
    (
        "not_a_boolean", "plan", ("scatter_nd", ZEROS_2X3, FIRST_ROW, 1.0), {"include_self": None},
        TypeError,
        "scatter_nd: `include_self` must be True or False, got None",
    ),
    (
        "not_a_boolean", "index_report", ("gather", (3,), [0]), {"negative": [True] * 30},
        TypeError,
        "gather: `negative` must be True or False, "
        "got [True, True, True, True, True, True, True, True, True, Tr...",
    ),
    (
        "not_one_of", "gather", (ZEROS_2X3, [0]), {"mode": "ignore"}, ValueError,
        "gather: `mode` must be one of 'raise', 'clip', 'wrap', 'fill', 'drop', got 'ignore'",
    ),
    (
        "not_one_of", "scatter_nd", (ZEROS_2X3, FIRST_ROW, ZEROS_2X3[:1]), {"reduction": "sum"},
        ValueError,
        "scatter_nd: `reduction` must be one of 'none', 'add', 'mul', 'max', 'min', 'mean', "
        "'fsum', 'fmean', got 'sum'; its name here is 'add'",
    ),
    (
        "not_one_of", "scatter_elements", (ZEROS_2X3, FIRST_ROW, 1.0), {"reduction": "amax"},
        ValueError,
        "scatter_elements: `reduction` must be one of 'none', 'add', 'mul', 'max', 'min', 'mean', "
        "'fsum', 'fmean', got 'amax'; its name here is 'max'",
    ),
    (
        "not_one_of", "gather", (ZEROS_2X3, [0]), {"mode": "sum"}, ValueError,
        "gather: `mode` must be one of 'raise', 'clip', 'wrap', 'fill', 'drop', got 'sum'",
    ),
    (
        "not_one_of", "gather", (ZEROS_2X3, [0]), {"mode": TALL}, ValueError,
        "gather: `mode` must be one of 'raise', 'clip', 'wrap', 'fill', 'drop', got an array of "
        "float32 (1099511627776, 2)",
    ),
    (
        "not_one_of", "gather", (ZEROS_2X3, [0]), {"mode": None}, ValueError,
        "gather: `mode` must be one of 'raise', 'clip', 'wrap', 'fill', 'drop', got None",
    ),
    (
        "out_of_range", "gather_elements", (ZEROS_2X3, FIRST_ROW, 2), {}, ValueError,
        "gather_elements: `axis` must be in [-2, 2), got 2",
    ),
    (
        "out_of_range", "gather_nd", (ZEROS_2X3, FIRST_ROW, -1), {}, ValueError,
        "gather_nd: `batch_dims` must be in [0, 2), got -1",
    ),
    (
        "out_of_range", "scatter_nd", (ZEROS_2X3, FIRST_ROW, ZEROS_2X3[:1], 2), {}, ValueError,
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
        "masked_array", "gather", (ZEROS_2X3, [0]), {"out": np.ma.zeros((1, 3), "f4")}, TypeError,
        "gather: `out` must not be a masked array: its mask would be lost",
    ),
    (
        "masked_array", "gather", ([np.ma.array([1.0], mask=True)], [0]), {}, TypeError,
        "gather: `data` must not be a masked array: its mask would be lost",
    ),
    (
        "masked_array", "gather", (ZEROS_2X3, [[1], [np.ma.masked]]), {}, TypeError,
        "gather: `indices` must not be a masked array: its mask would be lost",
    ),
    (
        "masked_array", "scatter_nd", (ZEROS_2X3, FIRST_ROW, [[1, (2, np.ma.array(3.0))]]), {},
        TypeError,
        "scatter_nd: `updates` must not be a masked array: its mask would be lost",
    ),
    (
        "masked_array", "scatter_nd", (PAIRS, FIRST_ROW, [(np.ma.masked, 2)]), {}, TypeError,
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
        "not_array_like", "scatter_nd", (ZEROS_2X3, FIRST_ROW, None), {}, TypeError,
        "scatter_nd: `updates` must be an array, got NoneType",
    ),
    (
        "holds_arrays", "gather_nd", (ZEROS_2X3, np.nonzero(ZEROS_2X3 == 0)), {}, TypeError,
        "gather_nd: `indices` must be one array, got a tuple that holds arrays; np.argwhere, or "
        "np.stack(arrays, -1), makes index tuples",
    ),
    (
        "holds_arrays", "plan", ("gather", ZEROS_2X3, [[0], [np.array(1)]]), {}, TypeError,
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
        "datetime_step_too_small",
        "scatter_nd", (np.zeros(2, "M8[s]"), FIRST_ROW, ZERO_SECONDS[:1]), {}, TypeError,
        "scatter_nd: `updates` must have datetimes in steps of at least 1, got datetime64[0s]",
    ),
    (
        "other_dtype", "scatter_nd", (ZEROS_2X3, FIRST_ROW, ZEROS_2X3[:1].astype(">f4")), {},
        TypeError,
        "scatter_nd: `updates` must have the dtype of `data`, float32, got >f4; write "
        "updates.astype(data.dtype)",
    ),
    (
        "other_dtype", "scatter_nd", (ZEROS_2X3, FIRST_ROW, np.float64(0.5)), {}, TypeError,
        "scatter_nd: `updates` must have the dtype of `data`, float32, got float64; write "
        "updates.astype(data.dtype)",
    ),
    (
        "other_dtype", "gather", (ZEROS_2X3, [0]), {"out": np.zeros((1, 3))}, TypeError,
        "gather: `out` must have the dtype of `data`, float32, got float64",
    ),
    (
        "not_convertible", "scatter_nd", (ZEROS_2X3, FIRST_ROW, "1.5"), {}, TypeError,
        "scatter_nd: `updates` must convert to the dtype of `data`, float32, got '1.5'",
    ),
    (
        "loses_kind", "scatter_nd", (np.zeros((2, 3), int), FIRST_ROW, 1.5), {}, ValueError,
        "scatter_nd: `updates` must be an integer where `data` is int64, got 1.5",
    ),
    (
        "loses_kind", "scatter_nd", (ZEROS_2X3, FIRST_ROW, [[1, 2j, 3]]), {}, ValueError,
        "scatter_nd: `updates` must be real numbers where `data` is float32, got [[1, 2j, 3]]",
    ),
    (
        "loses_kind", "gather", (ZEROS_2X3 > 0, [0]), {"mode": "fill", "fill_value": 1}, ValueError,
        "gather: `fill_value` must be True or False where `data` is bool, got 1",
    ),
    (
        "does_not_fit", "scatter_nd", (np.zeros((2, 3), np.int8), FIRST_ROW, [[1, 2, 300]]), {},
        ValueError,
        "scatter_nd: `updates` must convert exactly to the dtype of `data`, int8, "
        "got [[1, 2, 300]]",
    ),
    (
        "not_finite", "scatter_nd", (ZEROS_2X3, FIRST_ROW, 1e300), {}, ValueError,
        "scatter_nd: `updates` must stay finite in the dtype of `data`, float32, got 1e+300",
    ),
    (
        "not_finite", "gather", (ZEROS_2X3, [0]), {"mode": "fill", "fill_value": -1e300},
        ValueError,
        "gather: `fill_value` must stay finite in the dtype of `data`, float32, got -1e+300",
    ),
    (
        "does_not_fit", "gather", (ZEROS_2X3, [0]), {"mode": "fill", "fill_value": np.float64(0.1)},
        ValueError,
        "gather: `fill_value` must convert exactly to the dtype of `data`, float32, "
        "got np.float64(0.1); write fill_value.item() to round it",
    ),
    (
        "does_not_fit", "gather", (ZEROS_2X3, [0]),
        {"mode": "fill", "fill_value": np.int64(2**24 + 1)}, ValueError,
        "gather: `fill_value` must convert exactly to the dtype of `data`, float32, "
        "got np.int64(16777217)",
    ),
    (
        "does_not_fit", "gather", (ZEROS_2X3, [0]), {"mode": "fill", "fill_value": ZEROS_2X3},
        ValueError,
        "gather: `fill_value` must convert exactly to the dtype of `data`, float32, "
        "got an array of float32 (2, 3)",
    ),
    (
        "does_not_fit", "gather", (ZEROS_2X3, [0]), {"mode": "fill", "fill_value": [7] * 50},
        ValueError,
        "gather: `fill_value` must convert exactly to the dtype of `data`, float32, "
        "got [7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,...",
    ),
    (
        "not_reducible", "scatter_nd", (ZEROS_2X3.astype("S4"), FIRST_ROW, b"x"),
        {"reduction": "add"}, TypeError,
        "scatter_nd: `reduction` 'add' is not defined for dtype |S4",
    ),
    (
        "not_reducible", "scatter_nd", (ZEROS_2X3.astype(">f4"), FIRST_ROW, 1.0),
        {"reduction": "add"}, TypeError,
        "scatter_nd: `reduction` 'add' is not defined for dtype >f4; write "
        "data.astype(data.dtype.newbyteorder('=')), and the same for updates",
    ),
    (
        "not_reducible", "scatter_elements", (ZEROS_2X3 > 0, FIRST_ROW, True),
        {"reduction": "mean"}, TypeError,
        "scatter_elements: `reduction` 'mean' is not defined for dtype bool",
    ),
    (
        "not_reducible", "scatter_nd", (ZEROS_2X3.astype("i4"), FIRST_ROW, 1),
        {"reduction": "fsum"}, TypeError,
        "scatter_nd: `reduction` 'fsum' is not defined for dtype int32; it supports only floats "
        "and complex numbers; 'add' sums integers without rounding",
    ),
    (
        "takes_no_updates", "plan", ("gather", ZEROS_2X3, [0], ZEROS_2X3), {}, TypeError,
        "gather: `updates` must be None, got an array of float32 (2, 3); only scatters have "
        "this operand",
    ),
    (
        "takes_no_updates", "explain", ("gather_nd", ZEROS_2X3, FIRST_ROW, 1.0), {}, TypeError,
        "gather_nd: `updates` must be None, got 1.0; only scatters have this operand",
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
        "out_not_a_numpy_array", "gather", (ZEROS_2X3, [0]), {"out": [0.0]}, TypeError,
        "gather: `out` must be a numpy.ndarray, got list",
    ),
    (
        "out_read_only", "gather", (ZEROS_2X3, [0]), {"out": READ_ONLY}, ValueError,
        "gather: `out` must be writable, got a read-only array",
    ),
    (
        "out_overlaps", "gather", (ZEROS_2X3, [0, 1]), {"out": ZEROS_2X3}, ValueError,
        "gather: `out` must not share memory with `data`",
    ),
    (
        "out_overlaps", "scatter_nd", (ZEROS_2X3, FIRST_ROW, ZEROS_2X3[:1]), {"out": ZEROS_2X3},
        ValueError,
        "scatter_nd: `out` must not share memory with `updates`",
    ),
    (
        "out_overlaps_itself", "gather", (ZEROS_2X3, [0, 1]), {"out": OVERLAPPING}, ValueError,
        "gather: `out` must not overlap itself, got shape (2, 3) with strides (4, 4)",
    ),
    (
        "out_overlaps_itself", "gather", (ZEROS_2X3.astype("c8"), [0, 1]),
        {"out": HALF_OVERLAPPING}, ValueError,
        "gather: `out` must not overlap itself, got shape (2, 3) with strides (12, 8)",
    ),
    *(
        (
            "not_convertible_to_array", "gather", (ZEROS_2X3, ragged), {}, ValueError,
            "gather: `indices` cannot be converted to an array: " + words_of_numpy(ragged),
        )
        for ragged in ([[0], [0, 1]], [[0, 1], [0]])
    ),
    *(
        (
            "not_array_like", "gather", arguments, {}, TypeError,
            f"gather: `{name}` must be an array, got NoneType",
        )
        for name, arguments in (("data", (None, np.array([0]))), ("indices", (ZEROS_2X3, None)))
    ),
]  # fmt: skip


@each_sentence(SENTENCES)
def test_sentence(monkeypatch, function, caller, arguments, attributes, error_type, sentence):
    check_sentence(monkeypatch, function, caller, arguments, attributes, error_type, sentence)
