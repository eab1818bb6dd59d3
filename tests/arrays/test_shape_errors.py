"""Errors of a call about shapes and strides (`_model/errors/shapes.py`), word for word."""

import numpy as np

from sentences import FIRST_ROW, TALL, ZEROS_2X3, check_sentence, each_sentence

LONG_INDICES = np.broadcast_to(np.int64(0), (2**40,))
NOTHING = np.zeros((2**40,) * 3, "V0")

# The function, its arguments, and the outcome.
SENTENCES = [
    (
        "too_few_dimensions", "gather", (5.0, 0), {}, ValueError,
        "gather: `data` must have at least 1 dimension, got 0",
    ),
    (
        "too_few_dimensions", "scatter_slices", (5.0, 0, 1.0), {}, ValueError,
        "scatter_slices: `data` must have at least 1 dimension, got 0",
    ),
    (
        "other_shape", "scatter_slices", (ZEROS_2X3, [0, 1], ZEROS_2X3, 1), {}, ValueError,
        "scatter_slices: `updates` must have shape (2, 2), got (2, 3)",
    ),
    (
        "too_many_dimensions", "scatter_slices", (np.zeros((1,) * 64), [[0]], 0.0), {}, ValueError,
        "scatter_slices: `updates` must have at most 64 dimensions, got 65",
    ),
    (
        "too_few_dimensions", "gather_nd", (ZEROS_2X3, 0), {}, ValueError,
        "gather_nd: `indices` must have at least 1 dimension, got 0",
    ),
    (
        "too_many_dimensions", "plan", ("gather", ((1,) * 65, "f4"), 0), {}, ValueError,
        "gather: `data` must have at most 64 dimensions, got 65",
    ),
    (
        "too_many_dimensions", "plan", ("gather", ZEROS_2X3, ((1,) * 65, int)), {}, ValueError,
        "gather: `indices` must have at most 64 dimensions, got 65",
    ),
    (
        "too_many_dimensions", "plan", ("scatter_nd", ZEROS_2X3, FIRST_ROW, ((1,) * 65, "f4")), {},
        ValueError,
        "scatter_nd: `updates` must have at most 64 dimensions, got 65",
    ),
    (
        "too_many_dimensions", "gather", (np.zeros((1,) * 64), [[0]]), {}, ValueError,
        "gather: the result must have at most 64 dimensions, got 65",
    ),
    (
        "other_rank", "gather_elements", (ZEROS_2X3, [0]), {}, ValueError,
        "gather_elements: `indices` must have as many dimensions as `data`, 2, got 1",
    ),
    (
        "larger_than_data", "scatter_elements", (ZEROS_2X3, np.zeros((3, 3), int), 0.0, 1), {},
        ValueError,
        "scatter_elements: `indices` must have at most the size of `data`, 2, on dimension 0, "
        "got 3",
    ),
    (
        "other_batch_shape", "gather_nd", (ZEROS_2X3, np.zeros((4, 1), int), 1), {}, ValueError,
        "gather_nd: `indices` must have the batch dimensions of `data`, (2,), got (4,)",
    ),
    (
        "other_batch_shape", "gather_nd", (ZEROS_2X3, FIRST_ROW, 1), {}, ValueError,
        "gather_nd: `indices` must have the batch dimensions of `data`, (2,), got (1,)",
    ),
    (
        "tuple_too_long", "gather_nd", (ZEROS_2X3, [[0, 0, 0]]), {}, ValueError,
        "gather_nd: the last dimension of `indices` must be at most 2, the dimensions of `data` "
        "that are not batch dimensions, got 3",
    ),
    (
        "tuple_too_long", "gather_nd", (ZEROS_2X3, [0, 1, 0]), {}, ValueError,
        "gather_nd: the last dimension of `indices` must be at most 2, the dimensions of `data` "
        "that are not batch dimensions, got 3; indices[:, None] makes a tuple of each index",
    ),
    (
        "tuple_too_long", "gather_nd", (ZEROS_2X3, [[0, 0], [0, 0]], 1), {}, ValueError,
        "gather_nd: the last dimension of `indices` must be at most 1, the dimensions of `data` "
        "that are not batch dimensions, got 2",
    ),
    (
        "other_shape", "scatter_nd", (ZEROS_2X3, FIRST_ROW, ZEROS_2X3[:, :2]), {}, ValueError,
        "scatter_nd: `updates` must have shape (1, 3), got (2, 2)",
    ),
    (
        "other_shape", "scatter_nd", (ZEROS_2X3, [0, 1], ZEROS_2X3[0, :2]), {}, ValueError,
        "scatter_nd: `updates` must have shape (), got (2,)",
    ),
    (
        "other_shape_of_one_tuple", "scatter_nd", (ZEROS_2X3, [0, 1], ZEROS_2X3), {}, ValueError,
        "scatter_nd: `updates` must have shape (), got (2, 3); indices[:, None] makes a tuple of "
        "each index",
    ),
    (
        "other_shape", "scatter_elements", (ZEROS_2X3, FIRST_ROW, np.zeros((1, 4), "f4")), {},
        ValueError,
        "scatter_elements: `updates` must have shape (1, 1), got (1, 4)",
    ),
    (
        "other_shape_than_indices", "scatter_elements",
        (ZEROS_2X3, [[0], [1], [0]], ZEROS_2X3[[0, 1, 1]]),
        {}, ValueError,
        "scatter_elements: `updates` must have the shape of `indices`, (3, 1), got (3, 3); write "
        "np.broadcast_to(indices, (3, 3)) for an index for each, or call scatter_slices "
        "with indices.ravel()",
    ),
    (
        "other_shape_than_indices", "scatter_elements", (ZEROS_2X3, [[0], [1]], ZEROS_2X3[:, :2]),
        {}, ValueError,
        "scatter_elements: `updates` must have the shape of `indices`, (2, 1), got (2, 2); write "
        "np.broadcast_to(indices, (2, 2)) for an index for each",
    ),
    (
        "other_shape", "gather", (ZEROS_2X3, [0]), {"out": ZEROS_2X3.copy()}, ValueError,
        "gather: `out` must have shape (1, 3), got (2, 3)",
    ),
    (
        "result_too_big", "gather", (TALL, LONG_INDICES, 1), {}, ValueError,
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
        "gather: `indices`, shape (100000000000000000000,), has more bytes than can be "
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
        "operand_too_big", "scatter_nd", (NOTHING[0, 0], FIRST_ROW, NOTHING), {}, ValueError,
        "scatter_nd: `updates`, shape (1099511627776, 1099511627776, 1099511627776), has more "
        "elements than can be addressed",
    ),
    (
        "result_too_big", "gather", (NOTHING[0, :, :1], LONG_INDICES, 1), {}, ValueError,
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
        "result_too_big", "gather", (TALL.T[:1], np.broadcast_to(0, (0, 2**40)), 0), {}, ValueError,
        "gather: the result, shape (0, 1099511627776, 1099511627776) of dtype float32, has more "
        "bytes than can be addressed",
    ),
]  # fmt: skip


@each_sentence(SENTENCES)
def test_sentence(monkeypatch, function, caller, arguments, attributes, error_type, sentence):
    check_sentence(monkeypatch, function, caller, arguments, attributes, error_type, sentence)
