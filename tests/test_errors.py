"""Every sentence that a call can answer with, word for word, and the order of the checks."""

import inspect

import numpy as np
import pytest

import gatherum
from gatherum import errors
from strategies import OPERATORS

TWO = np.zeros((2, 3), np.float32)
ROWS = np.zeros((1, 1), np.int64)
WRONG = np.array([5, -3])
OBJECTS = np.array([None, None])
BIG = np.broadcast_to(np.float32(0), (2**40, 2))
MANY = np.broadcast_to(np.int64(0), (2**40,))
READ_ONLY = np.zeros((1, 3), np.float32)
READ_ONLY.flags.writeable = False
OVERLAPPING = np.lib.stride_tricks.as_strided(TWO.copy(), (2, 3), (4, 4))
# Each element begins somewhere else, and ends in the next one.
HALF_OVERLAPPING = np.lib.stride_tricks.as_strided(np.zeros(6, np.complex64), (2, 3), (12, 8))


def words_of_numpy(value):
    with pytest.raises(ValueError, match="inhomogeneous") as caught:
        np.asarray(value)
    return str(caught.value)


# What is called, with what, and what comes of it; the functions of `errors` in their order.
SENTENCES = [
    (
        "unknown_operator", "plan", ("take", TWO, [0]), {}, ValueError,
        "plan: `op` must be one of 'gather', 'gather_elements', 'gather_nd', 'scatter_elements', "
        "'scatter_nd', got 'take'",
    ),
    (
        "unknown_attribute", "plan", ("gather_nd", TWO, [[0]]), {"axis": 1}, TypeError,
        "gather_nd: unknown attribute 'axis'; it takes 'batch_dims', 'mode', 'negative', 'out'",
    ),
    (
        "not_an_integer", "gather", (TWO, [0], 1.0), {}, TypeError,
        "gather: `axis` must be an integer, got 1.0",
    ),
    (
        "not_an_integer", "scatter_nd", (TWO, ROWS, TWO[:1], "none", "0"), {}, TypeError,
        "scatter_nd: `batch_dims` must be an integer, got '0'",
    ),
    (
        "not_one_of", "gather", (TWO, [0]), {"mode": "ignore"}, ValueError,
        "gather: `mode` must be one of 'raise', 'clip', 'wrap', 'fill', 'drop', got 'ignore'",
    ),
    (
        "not_one_of", "scatter_nd", (TWO, ROWS, TWO[:1], "sum"), {}, ValueError,
        "scatter_nd: `reduction` must be one of 'none', 'add', 'mul', 'max', 'min', 'mean', "
        "got 'sum'",
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
        "out_of_range", "scatter_nd", (TWO, ROWS, TWO[:1], "none", 2), {}, ValueError,
        "scatter_nd: `batch_dims` must be in [0, 2), got 2",
    ),
    (
        "not_an_array", "gather", ([[1], [2, 3]], [0]), {}, ValueError,
        "gather: `data` cannot be converted to an array: " + words_of_numpy([[1], [2, 3]]),
    ),
    (
        "masked_array", "gather", (np.ma.array([1.0]), [0]), {}, TypeError,
        "gather: `data` must not be a masked array, its mask would be lost",
    ),
    (
        "masked_array", "gather", (TWO, [0]), {"out": np.ma.zeros((1, 3), "f4")}, TypeError,
        "gather: `out` must not be a masked array, its mask would be lost",
    ),
    (
        "objects", "gather", (OBJECTS, [0]), {}, TypeError,
        "gather: `data` must have a dtype without objects or references, got object",
    ),
    (
        "not_an_index_dtype", "gather_nd", (TWO, np.zeros((1, 1), bool)), {}, TypeError,
        "gather_nd: `indices` must have an integer dtype, got bool",
    ),
    (
        "not_an_index_dtype", "gather", (TWO, [0.5]), {}, TypeError,
        "gather: `indices` must have an integer dtype, got float64",
    ),
    (
        "other_dtype", "scatter_nd", (TWO, ROWS, TWO[:1].astype(">f4")), {}, TypeError,
        "scatter_nd: `updates` must have the dtype of `data`, float32, got >f4",
    ),
    (
        "other_dtype", "gather", (TWO, [0]), {"out": np.zeros((1, 3))}, TypeError,
        "gather: `out` must have the dtype of `data`, float32, got float64",
    ),
    (
        "loses_kind", "scatter_nd", (np.zeros((2, 3), int), ROWS, 1.5), {}, TypeError,
        "scatter_nd: `updates` must convert to the dtype of `data`, int64, without loss of kind, "
        "got 1.5",
    ),
    (
        "does_not_fit", "scatter_nd", (np.zeros((2, 3), np.int8), ROWS, [[1, 2, 300]]), {},
        ValueError,
        "scatter_nd: `updates` must convert exactly to the dtype of `data`, int8, "
        "got [[1, 2, 300]]",
    ),
    (
        "does_not_fit", "gather", (TWO, [0]), {"mode": "fill", "fill_value": 0.1}, ValueError,
        "gather: `fill_value` must convert exactly to the dtype of `data`, float32, got 0.1",
    ),
    (
        "does_not_fit", "gather", (TWO, [0]), {"mode": "fill", "fill_value": [7] * 50}, ValueError,
        "gather: `fill_value` must convert exactly to the dtype of `data`, float32, "
        "got [7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,...",
    ),
    (
        "not_reducible", "scatter_nd", (TWO.astype("S4"), ROWS, b"x", "add"), {}, TypeError,
        "scatter_nd: `reduction` 'add' is not defined for dtype |S4",
    ),
    (
        "not_reducible", "scatter_elements", (TWO > 0, ROWS, True, 0, "mean"), {}, TypeError,
        "scatter_elements: `reduction` 'mean' is not defined for dtype bool",
    ),
    (
        "too_few_dimensions", "gather", (5.0, 0), {}, ValueError,
        "gather: `data` must have at least 1 dimension, got 0",
    ),
    (
        "too_few_dimensions", "gather_nd", (TWO, 0), {}, ValueError,
        "gather_nd: `indices` must have at least 1 dimension, got 0",
    ),
    (
        "too_many_dimensions", "gather", (np.zeros((1,) * 33), 0), {}, ValueError,
        "gather: `data` must have at most 32 dimensions, got 33",
    ),
    (
        "too_many_dimensions", "gather", (TWO, np.zeros((1,) * 33, int)), {}, ValueError,
        "gather: `indices` must have at most 32 dimensions, got 33",
    ),
    (
        "too_many_dimensions", "scatter_nd", (TWO, ROWS, np.zeros((1,) * 33, "f4")), {}, ValueError,
        "scatter_nd: `updates` must have at most 32 dimensions, got 33",
    ),
    (
        "too_many_dimensions", "gather", (np.zeros((1,) * 32), [[0]]), {}, ValueError,
        "gather: the result must have at most 32 dimensions, got 33",
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
        "tuple_too_long", "gather_nd", (TWO, [[0, 0], [0, 0]], 1), {}, ValueError,
        "gather_nd: the last dimension of `indices` must be at most 1, the dimensions of `data` "
        "that are not batch dimensions, got 2",
    ),
    (
        "other_shape", "scatter_nd", (TWO, ROWS, TWO[:, :2]), {}, ValueError,
        "scatter_nd: `updates` must have shape (1, 3), got (2, 2)",
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
        "not_a_shape", "plan", ("gather", ((3.5,), "f4"), ((1,), "i8")), {}, TypeError,
        "gather: `data` must be a tuple of integers, got (3.5,)",
    ),
    (
        "not_a_shape", "index_report", ("gather", 3, [0]), {}, TypeError,
        "gather: `data_shape` must be a tuple of integers, got 3",
    ),
    (
        "negative_size", "index_report", ("gather", (3, -1), [0]), {}, ValueError,
        "gather: `data_shape` must have sizes of at least 0, got (3, -1)",
    ),
    (
        "negative_size", "plan", ("gather", ((3,), "f4"), ((-1,), "i8")), {}, ValueError,
        "gather: `indices` must have sizes of at least 0, got (-1,)",
    ),
    (
        "other_strides", "plan", ("gather", ((3,), "f4", (4, 4)), ((1,), "i8")), {}, ValueError,
        "gather: `data` must have 1 strides, one for each dimension, whose reach can be "
        "addressed, got (4, 4)",
    ),
    (
        "other_strides", "plan", ("gather", ((3,), "f4", (10**20,)), ((1,), "i8")), {}, ValueError,
        "gather: `data` must have 1 strides, one for each dimension, whose reach can be "
        "addressed, got (100000000000000000000,)",
    ),
    (
        "out_not_an_array", "gather", (TWO, [0]), {"out": [0.0]}, TypeError,
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
        "gather: index 0 cannot be brought into axis 0 of size 0 by mode 'clip' (indices[0])",
    ),
    (
        "index_out_of_bounds", "scatter_nd", (TWO[:, :0], [[0, 4]], 0), {"mode": "wrap"},
        IndexError,
        "scatter_nd: index 4 cannot be brought into axis 1 of size 0 by mode 'wrap' "
        "(indices[0, 1])",
    ),
]  # fmt: skip
PLANNED = gatherum.plan("gather", TWO, ((1,), "i8"))


@pytest.mark.parametrize(
    ("function", "caller", "arguments", "attributes", "kind", "sentence"),
    SENTENCES,
    ids=[f"{number}-{row[0]}" for number, row in enumerate(SENTENCES)],
)
def test_sentence(monkeypatch, function, caller, arguments, attributes, kind, sentence):
    made = []
    original = getattr(errors, function)
    monkeypatch.setattr(errors, function, lambda *a: made.append(original(*a)) or made[-1])
    with pytest.raises(kind) as caught:
        getattr(gatherum, caller)(*arguments, **attributes)
    assert str(caught.value) == sentence
    assert caught.value is made[-1]
    assert caught.type is kind


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


def test_indices_that_change_during_the_call():
    error = errors.index_out_of_bounds("gather", 0, 0, 2, None, "raise")
    assert str(error) == ("gather: an index was invalid, but `indices` changed during the call")


def test_every_sentence_is_tested():
    functions = {
        name
        for name, function in inspect.getmembers(errors, inspect.isfunction)
        if function.__module__ == errors.__name__ and not name.startswith("_")
    }
    elsewhere = {
        "other_layout",
        "not_an_operand",
        "operand_changed",
    }  # test_hostile.py has the last
    assert {row[0] for row in SENTENCES} | elsewhere == functions


@pytest.mark.parametrize("indices", [[0], np.array([0])], ids=["list", "array"])
def test_attributes_are_checked_however_the_operands_come(indices):
    with pytest.raises(ValueError, match="`mode`") as caught:
        gatherum.gather(TWO, indices, mode="ignore")
    assert str(caught.value) == (
        "gather: `mode` must be one of 'raise', 'clip', 'wrap', 'fill', 'drop', got 'ignore'"
    )
    with pytest.raises(ValueError, match="`axis`") as caught:
        gatherum.gather(TWO, indices, 10**30)
    assert str(caught.value) == f"gather: `axis` must be in [-2, 2), got {10**30}"
    with pytest.raises(TypeError, match="`axis`") as caught:
        gatherum.gather(TWO, indices, None)
    assert str(caught.value) == "gather: `axis` must be an integer, got None"


@pytest.mark.parametrize("axis", [True, np.int8(1), np.uint64(1), np.array(1), -1])
def test_whatever_is_an_integer_is_an_axis(axis):
    data = np.arange(6).reshape(2, 3)
    assert gatherum.gather(data, np.array([2]), axis).tolist() == [[2], [5]]


def test_words_are_equal_not_identical():
    mode = np.str_("".join(["cl", "ip"]))
    assert gatherum.gather(np.arange(3), np.array([7]), mode=mode).tolist() == [2]
    assert gatherum.gather(np.arange(3), np.array([7]), mode=str(mode)).tolist() == [2]


@pytest.mark.parametrize("truth", [0, np.bool_(False), "", None])
def test_what_is_false_counts_as_false(truth):
    with pytest.raises(IndexError, match=r"^gather: index -1 is out of bounds"):
        gatherum.gather(np.arange(3), np.array([-1]), negative=truth)


# --- The order of the checks


def faulty(op):
    """The faults of a call in the order in which they are due: each an update of its arguments."""
    nd, scatter = op.endswith("_nd"), op.startswith("scatter")
    right = {"data": np.zeros((2, 3), np.float32), "indices": np.zeros((2, 1), np.int64)}
    if op == "gather":
        right["indices"] = np.zeros(2, np.int64)
    if scatter:
        right["updates"] = np.zeros((2, 3) if nd else (2, 1), np.float32)
    result = {"gather": (2, 3), "gather_elements": (2, 1), "gather_nd": (2, 3)}.get(op, (2, 3))
    right["out"] = np.zeros(result, np.float32)
    read_only = right["out"].copy()
    read_only.flags.writeable = False
    steps = [
        (IndexError, "index 9", {"indices": right["indices"] + 9}),
        (ValueError, "`out` must be writable", {"out": read_only}),
        (ValueError, "`out` must have shape", {"out": np.zeros(7, np.float32)}),
    ]
    many = np.full((1,) * 33, 9)
    steps.append((ValueError, "`indices` must have at most 32", {"indices": many}))
    steps.append((TypeError, "`indices` must have an integer", {"indices": many * 0.5}))
    name = "batch_dims" if nd else "axis"
    steps.append((ValueError, f"`{name}` must be in", {name: 40}))
    return right, steps


@pytest.mark.parametrize("op", OPERATORS)
def test_the_order_of_checks(op):
    arguments, steps = faulty(op)
    getattr(gatherum, op)(**arguments)
    for kind, words, fault in steps:
        arguments |= fault
        with pytest.raises(kind) as caught:
            getattr(gatherum, op)(**arguments)
        assert str(caught.value).startswith(f"{op}: ")
        assert words in str(caught.value)


@pytest.mark.parametrize("op", OPERATORS)
def test_every_attribute_comes_before_the_operands(op):
    arguments, steps = faulty(op)
    for _, _, fault in steps[:-1]:
        arguments |= fault
    for name in ("mode", "reduction") if op.startswith("scatter") else ("mode",):
        with pytest.raises(ValueError, match=f"^{op}: `{name}` must be one of .*, got 'no'$"):
            getattr(gatherum, op)(**arguments | {name: "no"})


@pytest.mark.parametrize("op", ["scatter_elements", "scatter_nd"])
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
