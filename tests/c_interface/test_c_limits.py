"""Errors of the C interface, and arguments that it does not check: called through ctypes."""

import ctypes
from ctypes import POINTER, byref, c_char_p, c_int32, c_int64, c_void_p
from types import SimpleNamespace

import numpy as np
import pytest

import c_calls as c
import gatherum
from gatherum._core import Program
from gatherum._model.dtypes import index_fields
from gatherum._model.nests import Component, Loop, Nest

pytestmark = c.NEEDS_LIBRARY


def _line(n, step=1):
    return np.arange(n * abs(step), dtype=np.float64)[::step]


GRID = np.arange(48.0).reshape(6, 8)
PAIRS = np.array([[1, 2], [0, 7], [5, 0]])
CALLS = {
    "gather": ("gather", _line(6), np.array([1, 0, 5])),
    "gather backwards": ("gather", _line(6, -2), np.array([1, 0, 5])[::-1]),
    "gather rows": ("gather", GRID[::-1, ::2], np.array([[1, 0], [5, 2]], np.int16)),
    "gather of nothing": ("gather", _line(6), np.zeros(0, int)),
    "gather from nothing": ("gather", np.zeros((0, 3)), np.zeros(0, int)),
    "gather from nothing, filled": ("gather", np.zeros(0), np.array([1, 0]), None, "fill"),
    "gather_nd": ("gather_nd", GRID, PAIRS),
    "gather_nd of columns": ("gather_nd", GRID, np.asfortranarray(PAIRS)),
    "scatter": ("scatter_nd", _line(6), np.array([[1], [0], [5]]), _line(3)),
    "scatter backwards": ("scatter_nd", _line(6, -1), np.array([[1], [0], [5]]), _line(3, -3)),
    "scatter of rows": ("scatter_nd", GRID, np.array([[1], [5]], np.int32), GRID[:2]),
    "scatter into columns": ("scatter_nd", GRID.T, np.array([[1], [5]], np.int32), GRID[:2, :6]),
    "scatter of nothing": ("scatter_nd", _line(6), np.zeros((0, 1), int), np.zeros(0)),
    "scatter into nothing": ("scatter_nd", np.zeros(0), np.zeros((0, 1), int), np.zeros(0)),
    "scatter of pairs": ("scatter_nd", GRID, PAIRS, _line(3)),
}


def _call(op, data, indices, updates=None, mode="raise", reduction=None):
    operands = {"data": data, "indices": indices}
    if updates is not None:
        operands["updates"] = updates
    keywords = {"mode": mode} | ({"reduction": reduction} if reduction else {})
    plan = gatherum.plan(op, *operands.values(), **keywords)
    return plan, operands | {"out": np.zeros(plan.program.shape, data.dtype)}


@pytest.mark.parametrize("call", CALLS)
def test_operands_of_just_the_size_are_enough_and_a_byte_less_is_not(core, read, call):
    plan, operands = _call(*CALLS[call])
    program = read(plan)
    memory = {name: c.memory_of(array) for name, array in operands.items()}
    assert c.refused(core, program, memory) is None
    copied = {"data", "out"} if plan.call.operator.scatters else set()
    empty = operands["indices"].size == 0
    for name, array in operands.items():
        for side in (1, 2):
            if memory[name][side] > 0:
                smaller = list(memory[name])
                smaller[side] -= 1
                needed = not empty or name in copied
                operand = c.refused(core, program, memory | {name: smaller})
                assert operand == (name if needed else None), (name, side, array.strides)


def test_only_memory_on_the_read_side_counts(core, read):
    plan, operands = _call("gather", _line(6), np.array([1, 0, 5]))
    memory = {name: c.memory_of(array) for name, array in operands.items()}
    memory["data"] = [memory["data"][0], 100, memory["data"][2] - 8]
    assert c.refused(core, read(plan), memory) == "data"


def test_in_place_the_size_of_out_is_enough(core, read):
    plan, operands = _call("scatter_nd", _line(6), np.array([[1], [5]]), _line(2))
    memory = {name: c.memory_of(array) for name, array in operands.items()}
    start, *_ = memory["out"]
    program = read(plan)
    assert c.refused(core, program, memory | {"data": [start, 0, 0]}) is None
    assert c.refused(core, program, memory | {"data": [start + 1, 0, 0]}) == "data"


@pytest.mark.parametrize("far", [2**32, 2**35, 2**39])
def test_2_to_the_64_bytes_fit_no_memory(core, read, far):
    """The product wraps to 0 in 64 bits. Only products of factors below 2^30 skip the check."""
    operands = {"data": np.arange(6.0), "indices": np.array([1, 0, 5]), "out": np.zeros(3)}
    program = gatherum.plan("gather", operands["data"], operands["indices"]).program
    fields = {name: getattr(program, name) for name in ("item", "nest", "checks", "shape")}
    for name in ("nest", "checks"):
        line, loops, ((_, _, offset),), block = fields[name]
        fields[name] = line, loops, ((far + 1, far, offset),), block
    memory = {name: c.memory_of(array) for name, array in operands.items()}
    assert c.refused(core, read(SimpleNamespace(program=Program(**fields))), memory) == "data"


def test_no_more_of_a_program_is_written_than_there_is_room_for(core, read):
    plan, _ = _call("gather", _line(6), np.array([1, 0, 5]))
    whole = bytes(plan.program)
    for room in (0, 1, 8, len(whole), len(whole) + 9):
        memory = ctypes.create_string_buffer(b"?" * (len(whole) + 20))
        size = core.gatherum_program_write(read(plan), memory, ctypes.c_size_t(room))
        assert size == len(whole)
        assert memory.raw[: len(whole) + 20] == whole[:room].ljust(len(whole) + 20, b"?")


@pytest.mark.parametrize("fill", [None, b"\x07\x00"])
def test_a_missing_fill_is_zero_bytes(core, read, fill):
    data, indices = np.arange(1, 7, dtype=np.int16), np.array([1, 9, 5])
    plan = gatherum.plan("gather", data, indices, mode="fill")
    out, operands, error = np.full(3, -1, np.int16), c.Operands(), c.Error()
    operands.data, operands.indices = c.Buffer(*c.memory_of(data)), c.Buffer(*c.memory_of(indices))
    operands.out = c.Buffer(*c.memory_of(out))
    operands.fill = ctypes.cast(c_char_p(fill), c_void_p)
    assert core.gatherum_run(read(plan), byref(operands), None, byref(error)) == c.OK
    assert out.tolist() == [2, 7 if fill else 0, 6]


@pytest.mark.parametrize(
    ("requested", "taken"), [(-(2**31), 1), (0, 1), (1024, 1024), (1025, 1024), (2**31 - 1, 1024)]
)
def test_any_number_of_threads_is_brought_into_bounds(core, requested, taken):
    before = core.gatherum_get_num_threads()
    try:
        core.gatherum_set_num_threads(requested)
        assert core.gatherum_get_num_threads() == taken
    finally:
        core.gatherum_set_num_threads(before)


@pytest.mark.parametrize("behind", [-1, 0, 1, 2**31 - 1])
def test_setting_an_unknown_threshold_changes_nothing(core, behind):
    core.gatherum_threshold.restype = c_char_p
    value = c_int64(-7)
    count = next(i for i in range(1000) if not core.gatherum_threshold(c_int32(i), byref(value)))
    value.value, number = -7, c_int32(-1 if behind < 0 else min(count + behind, 2**31 - 1))
    core.gatherum_set_threshold(number, c_int64(5))
    assert core.gatherum_threshold(number, byref(value)) is None
    assert value.value == -7


class Poll(ctypes.Structure):
    _fields_ = (("ask", ctypes.CFUNCTYPE(c_int32, c_void_p)), ("context", c_void_p))


@pytest.mark.parametrize("answer", [0, 1, -1])
def test_a_call_goes_on_until_the_poll_says_otherwise(core, read, answer):
    asked: list[int] = []
    ask = Poll._fields_[0][1](lambda context: asked.append(context) or answer)
    n, status = 1 << 22, c.OK
    while not asked and status == c.OK:  # the callback is called a few times a second
        n *= 2
        indices, updates = np.broadcast_to(np.int8(0), (n, 1)), np.broadcast_to(np.int64(1), n)
        plan, operands = _call("scatter_nd", np.zeros(1, np.int64), indices, updates, "clip", "add")
        call_operands, error = c.Operands(fresh=1), c.Error()
        for name, array in operands.items():
            setattr(call_operands, name, c.Buffer(*c.memory_of(array)))
        status = core.gatherum_run(
            read(plan), byref(call_operands), byref(Poll(ask, 9)), byref(error)
        )
    assert (status, asked[:1]) == (c.INTERRUPTED if answer else c.OK, [9])
    assert answer or operands["out"] == n


# An index, and a program's mode; then the numbers, and the invalid index that is found.
NUMBERED = [
    (">i2", [5, -1, 0], "raise", 6, [5, 5, 0], None),
    ("<u8", [5, 2**64 - 1, 6], "fill", 6, [5, -1, -1], (1, 2**64 - 1)),
    ("<i8", [-7, 6, 3], "wrap", 6, [5, 0, 3], None),
    ("<i1", [3, -4], "clip", 0, [-1, -1], (0, 3)),
    ("<i4", [3, -4], "wrap", 0, [-1, -1], (0, 3)),
]


@pytest.mark.parametrize(("dtype", "values", "mode", "size", "numbers", "first"), NUMBERED)
def test_indices_are_numbered_and_the_first_invalid_one_is_found(
    core, read, dtype, values, mode, size, numbers, first
):
    indices = np.array(values, dtype)
    fields = index_fields(indices.dtype, mode, negative=True)
    step = indices.strides[0]
    nest = Nest(0, (Loop(len(values), 0, step, 0),), (Component(size, 1, 0),), 1)
    plan = SimpleNamespace(program=Program(**fields, nest=nest, checks=nest._replace(block=0)))
    result, error = np.zeros(len(values), np.int64), c.Error()
    core.gatherum_number.restype = c_int64
    arguments = read(plan), c_void_p(indices.ctypes.data)
    assert core.gatherum_number(*arguments, c_void_p(result.ctypes.data)) == numbers.count(-1)
    assert result.tolist() == numbers
    status = core.gatherum_first_invalid(*arguments, None, byref(error))
    bits = int(np.uint64(error.value % 2**64))
    assert first == (None if status == c.OK else (error.position, bits))
    assert status == c.OK or (status, error.component) == (c.INVALID_INDEX, 0)


def _described(core, reduction, value, include_self, item):
    any_order, sum_bytes = c_int32(), c_int64()
    fold = c.Fold(reduction.encode(), value.encode(), include_self, item)
    core.gatherum_fold_describe.argtypes = (POINTER(c.Fold), POINTER(c_int32), POINTER(c_int64))
    status = core.gatherum_fold_describe(fold, any_order, sum_bytes)
    return status or (any_order.value, sum_bytes.value)


@pytest.mark.parametrize(
    ("fold", "described"),
    [
        (("add", "float32", 1, 4), (0, 4)),
        (("add", "float16", 1, 2), (0, 4)),
        (("add", "int16", 1, 2), (1, 2)),
        (("max", "float16", 0, 2), (1, 2)),
        (("mul", "int8", 1, 1), (1, 1)),
        (("mean", "int32", 1, 4), (1, 8)),
        (("mean", "float32", 1, 4), (0, 4)),
        (("add", "bool", 0, 1), (1, 1)),
        (("none", "none", 1, 3), (0, 3)),
        (("none", "none", 1, 0), (0, 0)),
        (("none", "none", 1, -1), c.INVALID_PROGRAM),
        (("add", "float32", 1, 8), c.INVALID_PROGRAM),
        (("add", "none", 1, 0), c.INVALID_PROGRAM),
        (("max", "complex64", 1, 8), c.INVALID_PROGRAM),
        (("max", "none", 1, 0), c.INVALID_PROGRAM),
        (("mean", "bool", 1, 1), c.INVALID_PROGRAM),
        (("mean", "none", 1, 0), c.INVALID_PROGRAM),
        (("sum", "float32", 1, 4), c.INVALID_PROGRAM),
        (("add", "float", 1, 4), c.INVALID_PROGRAM),
    ],
)
def test_folds_are_described_or_rejected(core, fold, described):
    assert _described(core, *fold) == described
