"""Every function of the C interface rejects null pointers and impossible sizes."""

import ctypes
from ctypes import byref, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p, cast

import numpy as np
import pytest

import c_calls as c
import gatherum

pytestmark = c.NEEDS_LIBRARY
NULL = "an argument must not be null"
MEMORY = np.zeros(64)
SOME = c_void_p(MEMORY.ctypes.data)


@pytest.fixture
def gather(read):
    return read(gatherum.plan("gather", ((4,), "f8"), ((2,), "i8")))


@pytest.fixture
def scatter(read):
    specs = ((4,), "f8"), ((2,), "i8"), ((2,), "f8")
    return read(gatherum.plan("scatter_slices", *specs, reduction="max"))


def _refused(core, function, name, *arguments):
    error = c.Error()
    status = getattr(core, f"gatherum_{function}")(*arguments, byref(error))
    assert (status, error.message.decode(), error.operand.decode()) == (c.INVALID_CALL, NULL, name)
    assert getattr(core, f"gatherum_{function}")(*arguments, None) == c.INVALID_CALL


def test_calls_without_arguments(core, gather, scatter):
    operands = byref(c.Operands())
    _refused(core, "check", "program", None, operands)
    _refused(core, "check", "operands", gather, None)
    _refused(core, "run", "program", None, operands, None)
    _refused(core, "run", "operands", gather, None, None)
    _refused(core, "skip_nan", "program", None, operands, None)
    _refused(core, "skip_nan", "operands", scatter, None, None)
    _refused(core, "first_invalid", "program", None, SOME, None)
    _refused(core, "first_invalid", "indices", gather, None, None)
    _refused(core, "differentiate", "program", None, byref(c.Gradients()), None)
    _refused(core, "differentiate", "gradients", scatter, None, None)
    positions = byref(c.Buffer(SOME, 0, 99))
    _refused(core, "extremes", "program", None, operands, positions, c_int64(0), None)
    _refused(core, "extremes", "operands", scatter, None, positions, c_int64(0), None)
    _refused(core, "extremes", "positions", scatter, operands, None, c_int64(0), None)
    _refused(core, "spreads", "program", None, operands, positions, positions, None)
    _refused(core, "spreads", "operands", scatter, None, positions, positions, None)
    _refused(core, "spreads", "squares", scatter, operands, None, positions, None)
    _refused(core, "spreads", "counts", scatter, operands, positions, None, None)
    _refused(core, "spreads_skip_nan", "program", None, operands, positions, positions, None)
    _refused(core, "fold_take", "program", None, operands, SOME, SOME, None)
    _refused(core, "fold_take", "operands", scatter, None, SOME, SOME, None)
    _refused(core, "fold_take", "sums", scatter, operands, None, SOME, None)
    _refused(core, "fold_take", "counts", scatter, operands, SOME, None, None)
    _refused(core, "fold_take", "updates", scatter, operands, SOME, SOME, None)
    updates = byref(c.Operands(updates=c.Buffer(SOME, 0, 99)))
    _refused(core, "fold_take", "indices", scatter, updates, SOME, SOME, None)


@pytest.mark.parametrize("name", ["data", "indices", "updates", "out"])
def test_memory_at_no_address_is_too_small(core, read, name):
    data, indices, updates = np.zeros(4), np.array([1, 3]), np.ones(2)
    arrays = {"data": data, "indices": indices, "updates": updates, "out": np.zeros(4)}
    operands, error = c.Operands(), c.Error()
    for key, array in arrays.items():
        setattr(operands, key, c.Buffer(*c.memory_of(array)))
    program = read(gatherum.plan("scatter_slices", data, indices, updates))
    for function in (core.gatherum_check, core.gatherum_run):
        more = (None,) if function is core.gatherum_run else ()
        assert function(program, byref(operands), *more, byref(error)) == c.OK
        setattr(operands, name, c.Buffer(None, 0, 99))
        assert function(program, byref(operands), *more, byref(error)) == c.TOO_SMALL
        assert error.operand.decode() == name
        setattr(operands, name, c.Buffer(*c.memory_of(arrays[name])))


def test_programs_without_arguments(core, gather):
    program = c_void_p(1)
    content = ctypes.create_string_buffer(9)
    _refused(core, "program_read", "program", content, c_size_t(9), None)
    _refused(core, "program_read", "bytes", None, c_size_t(9), byref(program))
    assert program.value is None
    size = core.gatherum_program_write(gather, None, c_size_t(99))
    assert size == core.gatherum_program_write(gather, None, c_size_t(0)) > 0
    assert core.gatherum_program_write(None, content, c_size_t(9)) == 0
    for name in ("rank", "scatters", "is_long", "shape", "free"):
        getattr(core, f"gatherum_program_{name}").restype = None if name == "free" else c_int
        assert not getattr(core, f"gatherum_program_{name}")(None)
    core.gatherum_number.restype = c_int64
    assert core.gatherum_number(None, SOME, SOME) == -1
    assert core.gatherum_number(gather, None, SOME) == -1
    assert core.gatherum_number(gather, SOME, None) == -1
    assert (
        core.gatherum_describe(None, SOME) == core.gatherum_describe(gather, None) == c.INVALID_CALL
    )


def test_settings_without_arguments(core):
    core.gatherum_threshold.restype = c_char_p
    assert core.gatherum_threshold(c_int32(0), None) == b"private_cache_bytes"
    assert core.gatherum_set_level(None) == 0
    assert core.gatherum_free(None) == 0
    core.gatherum_resize.restype = c_size_t
    assert core.gatherum_resize(None, c_size_t(9)) == 0


@pytest.mark.parametrize("n", [-1, -(2**63), 0, 1])
def test_functions_without_arguments(core, n):
    empty, count = c.OK if n == 0 else c.INVALID_CALL, c_int64(n)
    right = [b"exp", b"float32", SOME, SOME, count, None]
    assert core.gatherum_map(*right) == (c.OK if n >= 0 else c.INVALID_CALL)
    for i, status in enumerate((c.INVALID_CALL, c.INVALID_CALL, empty, empty)):
        arguments = list(right)
        arguments[i] = None
        assert core.gatherum_map(*arguments) == status


@pytest.mark.parametrize("n", [-1, -(2**63), 0, 1])
def test_cumulative_functions_without_arguments(core, n):
    empty, count = c.OK if n == 0 else c.INVALID_CALL, c_int64(n)
    right = [b"recurrence", b"float32", SOME, _places(1)[0], _places(2)[0], 8, 1]
    to = _places(3)[0]

    def status(*fields, to=to):
        return core.gatherum_cumulate(byref(c.Cumulation(*fields)), to, count, None)

    assert status(*right) == (c.OK if n >= 0 else c.INVALID_CALL)
    assert core.gatherum_cumulate(None, to, count, None) == c.INVALID_CALL
    for i, expected in enumerate((c.INVALID_CALL, c.INVALID_CALL, empty, empty, empty)):
        assert status(*right[:i], None, *right[i + 1 :]) == expected
    assert status(*right, to=None) == empty
    assert status(*right[:5], 2, 1) == status(*right[:6], -1) == c.INVALID_CALL
    for shared in (2, 3, 4):
        assert status(*right, to=right[shared]) == empty
    if n >= 0:
        for function, value in ((b"sum", b"int8"), (b"previous", b"int8"), (b"max", b"complex64")):
            assert status(function, value, *right[2:]) == c.INVALID_PROGRAM


@pytest.mark.parametrize("n", [-1, -(2**63), 0, 1])
def test_orders_without_arguments(core, n):
    empty, count = c.OK if n == 0 else c.INVALID_CALL, c_int64(n)
    groups, order = (c_int64 * 1)(0), (c_int64 * 1)(7)
    right = [b"float32", SOME, cast(groups, c_void_p), 1]

    def status(*fields, to=order):
        return core.gatherum_order(byref(c.GroupedValues(*fields)), to, count, None, None)

    assert status(*right) == (c.OK if n >= 0 else c.INVALID_CALL)
    assert order[0] == (0 if n == 1 else 7)
    assert core.gatherum_order(None, order, count, None, None) == c.INVALID_CALL
    assert status(*right[:2], None, 1) == status(*right, to=None) == empty
    assert status(*right, to=groups) == status(b"int64", cast(order, c_void_p), *right[2:]) == empty
    assert status(*right[:3], -1) == c.INVALID_CALL
    if n >= 0:
        assert status(None, None, *right[2:]) == c.OK
        for value in (b"complex64", b"float8", None):
            assert status(value, *right[1:]) == c.INVALID_PROGRAM
    if n == 1:
        assert status(*right[:3], 0) == c.INVALID_INDEX


def _places(*offsets):
    return [c_void_p(SOME.value + 64 * i) for i in offsets]


@pytest.mark.parametrize("n", [-1, -(2**63), 0, 1])
def test_folds_without_arguments(core, n):
    fold, count = byref(c.Fold(b"add", b"int64", 1, 8)), c_int64(n)
    calls = {
        "begin": [byref(c.Fold(b"add", b"float64", 1, 8)), *_places(0, 1), count],
        "merge": [fold, *_places(0, 1, 2, 3), count],
        "finish": [fold, *_places(0, 1, 2, 3), count],
    }
    for name, right in calls.items():
        function = getattr(core, f"gatherum_fold_{name}")
        assert function(*right) == (c.OK if n >= 0 else c.INVALID_CALL), name
        for i in range(len(right) - 1):
            arguments = list(right)
            arguments[i] = None
            assert function(*arguments) == (c.OK if n == 0 and i else c.INVALID_CALL), (name, i)


def test_descriptions_of_folds_without_arguments(core):
    fold, any_order, size = (
        byref(c.Fold(b"add", b"int64", 1, 8)),
        byref(c_int32()),
        byref(c_int64()),
    )
    right = [fold, any_order, size]
    assert core.gatherum_fold_describe(*right) == c.OK
    for i in range(3):
        arguments = list(right)
        arguments[i] = None
        assert core.gatherum_fold_describe(*arguments) == c.INVALID_CALL
    for names in ((None, b"int64"), (b"add", None)):
        wrong = byref(c.Fold(*names, 1, 8))
        assert core.gatherum_fold_describe(wrong, any_order, size) == 4


def test_merging_where_the_order_matters(core):
    fold = byref(c.Fold(b"add", b"float64", 1, 8))
    assert core.gatherum_fold_merge(fold, *_places(0, 1, 2, 3), c_int64(1)) == 4


def _quantized(**changes):
    call = c.Quantized(SOME.value, SOME.value + 64, None, SOME.value + 128, 8, 8, 0, 8,
                     b"int8", b"float32", b"float32", bits=8, rows=SOME.value + 192, count=1,
                     gathered=1, scale_line=1)  # fmt: skip
    for numbers in (call.before, call.after, call.blocks):
        numbers[:] = [1, 1, 1]
    for name, value in changes.items():
        setattr(call, name, value)
    return byref(call)


def test_quantized_rows_without_arguments(core):
    assert core.gatherum_dequantize(_quantized(), None) == c.OK
    assert core.gatherum_dequantize(None, None) == c.INVALID_CALL
    for name in ("data", "scales", "out", "rows"):
        assert core.gatherum_dequantize(_quantized(**{name: None}), None) == c.TOO_SMALL
    for name in ("value", "scale", "result"):
        assert core.gatherum_dequantize(_quantized(**{name: None}), None) == 4
    for name in ("count", "gathered", "scale_line", "bits"):
        assert core.gatherum_dequantize(_quantized(**{name: -1}), None) == 4


def test_edges_without_arguments(core, gather):
    ends, no_indices, lists = c.EdgeEnds(gather, SOME), c.EdgeEnds(gather, None), c_void_p(1)
    numbers, last = (c_int64(4), c_int64(1)), (c_int32(0), None)
    make = "lists_make"
    _refused(core, make, "lists", *numbers, byref(ends), None, *last, None)
    _refused(core, make, "targets", *numbers, None, None, *last, byref(lists))
    _refused(core, make, "targets", *numbers, byref(c.EdgeEnds()), None, *last, byref(lists))
    _refused(core, make, "targets", *numbers, byref(no_indices), None, *last, byref(lists))
    sources = byref(c.EdgeEnds(None, SOME))
    _refused(core, make, "sources", *numbers, byref(ends), sources, *last, byref(lists))
    _refused(core, make, "sources", *numbers, byref(ends), byref(no_indices), *last, byref(lists))
    assert lists.value is None
    at = byref(c.RowOperands())
    _refused(core, "lists_fold", "lists", None, gather, at, None)
    pointed = [byref(ends), byref(ends), gather, at, None]
    for i, name in enumerate(("pointer", "sources", "rows", "operands")):
        arguments = list(pointed)
        arguments[i] = None
        _refused(core, "fold_pointed", name, *arguments)
    pointer, ascends = np.zeros(8, np.int64), c_int32()
    made = [byref(ends), c_void_p(pointer.ctypes.data), byref(ascends), None]
    for i, name in enumerate(("targets", "pointer", "ascends")):
        arguments = list(made)
        arguments[i] = None
        _refused(core, "make_pointer", name, *arguments)
    _refused(core, "make_pointer", "targets", byref(c.EdgeEnds()), *made[1:])
    _refused(core, "make_pointer", "targets", byref(no_indices), *made[1:])
    core.gatherum_lists_free(None)
    core.gatherum_lists_bytes.restype = c_int64
    assert core.gatherum_lists_bytes(None) == 0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("base", -1),
        ("stride", 7),
        ("item", 0),
        ("item", -8),
        ("extent", -1),
        ("extent", 2**62),
        ("count", -1),
        ("capacity", -1),
        ("scratch", -1),
        ("in_flight", -1),
        ("numbers", None),
        ("out", None),
    ],
)
def test_rows_that_cannot_be(core, tmp_path, field, value):
    (tmp_path / "rows").write_bytes(bytes(64))
    with (tmp_path / "rows").open("rb") as file:
        numbers, out = np.array([7]), np.zeros(1)
        places = c_void_p(numbers.ctypes.data), None, 1, c_void_p(out.ctypes.data)
        rows = c.Rows(file.fileno(), 0, 8, 8, 8, *places, 1, 2.0, 0, 0, 0)
        result = c.RowsRead()
        assert core.gatherum_read_rows(byref(rows), None, byref(result)) == c.OK
        setattr(rows, field, value)
        assert core.gatherum_read_rows(byref(rows), None, byref(result)) == c.INVALID_CALL
        assert result.status == b"invalid"
        if field not in {"capacity", "out"}:
            core.gatherum_rows_bridge.restype = c_int64
            assert core.gatherum_rows_bridge(byref(rows)) == 0
    assert core.gatherum_read_rows(None, None, byref(result)) == c.INVALID_CALL
    assert core.gatherum_read_rows(byref(rows), None, None) == c.INVALID_CALL
    assert core.gatherum_rows_bridge(None) == 0
