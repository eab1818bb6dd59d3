"""C and Python make the same programs and the same errors from the same calls."""

import ctypes
import itertools
from ctypes import POINTER, byref, c_char, c_char_p, c_int32, c_int64, c_void_p

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import c_calls as c
import gatherum
from cases import CASES
from gatherum import _core
from gatherum._model.modes import MODES
from gatherum._model.operators import GATHERS, OPERATORS
from gatherum._model.reductions import REDUCTIONS

pytestmark = c.NEEDS_LIBRARY
ATTRIBUTE, OPERAND, DTYPE, SHAPE = 1, 2, 3, 4
HUGE = 2**40


class Spec(ctypes.Structure):
    _fields_ = (
        ("dtype", c_char_p),
        ("rank", c_int32),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("item", c_int64),
        ("swapped", c_int32),
    )


class Attributes(ctypes.Structure):
    _fields_ = (
        ("axis", c_int64),
        ("mode", c_char_p),
        ("negative", c_int32),
        ("reduction", c_char_p),
        ("include_self", c_int32),
    )


class CallError(ctypes.Structure):
    _fields_ = (("fault", ctypes.c_int), ("operand", c_char_p), ("message", c_char * 512))


def _numbers(values):
    return (c_int64 * len(values))(*values)


def spec(shape, dtype, strides=None):
    """Return an operand without its data, in C order if it has no strides."""
    dtype = dtype if isinstance(dtype, str) else np.dtype(dtype)
    name, item, swapped = dtype, 0, False
    if isinstance(dtype, np.dtype):
        name, item, swapped = dtype.name, dtype.itemsize, not dtype.isnative
        if name not in _core.DType.__members__ or dtype.kind == "V":
            name = None
    steps = None if strides is None else _numbers(strides)
    return Spec(name and name.encode(), len(shape), _numbers(shape), steps, item, swapped)


def _named(dtype):
    """Return a dtype as C's messages write it."""
    if dtype.kind in "SMV":
        return "bytes"
    return dtype.name if dtype.isnative else f"swapped {dtype.name}"


def make(core, op, *specs, out=None, **attributes):
    """Return the bytes of a program, or the fault, the operand and the message."""
    names = {"axis": "axis", "batch_dims": "axis"}
    c_attributes = Attributes(0, None, 1, None, 1)
    for name, value in attributes.items():
        setattr(
            c_attributes, names.get(name, name), value.encode() if isinstance(value, str) else value
        )
    program, error = c_void_p(), CallError()
    function = getattr(core, f"gatherum_make_{op}")
    operands = [one and byref(one) for one in (*specs, out)]
    status = function(*operands, byref(c_attributes), byref(program), byref(error))
    if status != c.OK:
        assert (status, program.value) == (c.INVALID_CALL, None)
        return error.fault, error.operand.decode(), error.message.decode()
    size = core.gatherum_program_write(program, None, ctypes.c_size_t(0))
    memory = ctypes.create_string_buffer(size)
    core.gatherum_program_write(program, memory, ctypes.c_size_t(size))
    core.gatherum_program_free(program)
    return memory.raw


def same(core, op, *operands, **attributes):
    """Compare the program of arrays, or the error, in C and Python. Return True for a program."""
    specs = [spec(a.shape, a.dtype, a.strides) for a in operands]
    result = make(core, op, *specs, **attributes)
    descriptions = [(a.shape, a.dtype, a.strides) for a in operands]
    try:
        expected = bytes(gatherum.plan(op, *descriptions, **attributes).program)
    except (TypeError, ValueError) as error:
        assert isinstance(result, tuple), error
        is_whole(result[2], str(error).replace(str(operands[0].dtype), _named(operands[0].dtype)))
        return False
    assert result == expected, result
    return True


def is_whole(message, expected):
    """Check that a message is Python's, which may be followed by advice."""
    assert expected.startswith(message)
    assert expected[len(message) :][:1] in ("", ";"), expected


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_case_is_the_same_program(core, case):
    operands = [a for a in (case.data, case.indices, case.updates) if a is not None]
    options = {name: value for name, value in case.attributes.items() if name != "fill_value"}
    assert same(core, case.op, *operands, **options)


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("dtype", ["f4", "f2", ">f4", "i8", "u1", "c8", "?", "S3", "M8[s]", "V0"])
def test_every_reduction_of_every_dtype(core, op, dtype):
    operands = [np.zeros((4, 3), dtype), np.zeros((4, 1), ">i2")]
    if op in GATHERS:
        for mode, negative in itertools.product(MODES, (True, False)):
            assert same(core, op, *operands, mode=mode, negative=negative)
        return
    programs = {
        reduction: same(core, op, *operands, np.zeros((), dtype), reduction=reduction, **options)
        for reduction in REDUCTIONS
        for options in ({"include_self": True}, {"include_self": False, "mode": "drop"})
    }
    assert programs["none"] and programs["add"] == (dtype in {"f4", "f2", "i8", "u1", "c8", "?"})


@st.composite
def layouts(draw, dtype):
    rank = draw(st.integers(0, 4))
    shape = tuple(draw(st.lists(st.integers(0, 3), min_size=rank, max_size=rank)))
    order = draw(st.permutations(range(rank)))
    array = np.zeros([shape[d] for d in order], dtype).transpose(np.argsort(order))
    flips = draw(st.lists(st.booleans(), min_size=rank, max_size=rank))
    return array[tuple(slice(None, None, -1 if flip else 1) for flip in flips)]


@given(
    op=st.sampled_from(tuple(OPERATORS)),
    data=layouts("f4"),
    indices=layouts("i4"),
    updates=layouts("f4"),
    axis=st.integers(-4, 4),
    fits=st.booleans(),
    out=st.none() | layouts("f4"),
)
def test_any_call_is_the_same(core, op, data, indices, updates, axis, fits, out):
    row, operands = OPERATORS[op], [data, indices]
    options = {row.attribute: axis}
    if row.scatters:
        if fits:
            try:
                moved = row.moved_shape(
                    data.shape, indices.shape, row.resolve(data.shape, indices.shape, axis)
                )
                updates = np.zeros(moved, "f4")
            except ValueError:
                pass
        operands.append(updates)
    same(core, op, *operands, **options)
    specs = [(a.shape, a.dtype, a.strides) for a in operands]
    if out is not None:
        out_spec = spec(out.shape, out.dtype, out.strides)
        result = make(core, op, *(spec(*one) for one in specs), out=out_spec, **options)
        try:
            plan = gatherum.plan(op, *specs, out=(out.shape, out.dtype, out.strides), **options)
        except ValueError as error:
            is_whole(result[2], str(error))
        else:
            assert result == bytes(plan.program)


F4, I8 = "float32", "int64"
WRONG = [
    ("gather", [((), F4), ((3,), I8)], {}, SHAPE),
    ("gather", [((4,), F4), ((3,), I8)], {"axis": -2}, ATTRIBUTE),
    ("gather_nd", [((4,), F4), ((3, 1), I8)], {"batch_dims": -1}, ATTRIBUTE),
    ("gather_nd", [((4,), F4), ((), I8)], {}, SHAPE),
    ("gather", [((1,) * 65, F4), ((3,), I8)], {}, SHAPE),
    ("gather", [((1,) * 60, F4), ((1,) * 60, I8)], {}, SHAPE),
    ("scatter_slices", [((1,) * 60, F4), ((1,) * 60, I8), ((), F4)], {}, SHAPE),
    ("gather", [((HUGE, HUGE), F4), ((3,), I8)], {}, SHAPE),
    ("gather", [((HUGE,), F4), ((HUGE, HUGE), I8)], {}, SHAPE),
    ("gather", [((4, HUGE), F4), ((HUGE,), I8)], {}, SHAPE),
    ("gather_elements", [((4,), F4), ((3, 1), I8)], {}, SHAPE),
    ("gather_elements", [((4, 5), F4), ((9, 6), I8)], {}, SHAPE),
    ("gather_nd", [((4, 5), F4), ((3, 1, 1), I8)], {"batch_dims": 1}, SHAPE),
    ("gather_nd", [((4, 5), F4), ((3, 3), I8)], {}, SHAPE),
    ("scatter_nd", [((4, 5), F4), ((3, 1), I8), ((3, 4), F4)], {}, SHAPE),
    ("gather", [((4,), F4), ((3,), F4)], {}, DTYPE),
    ("scatter_nd", [((4,), F4), ((3, 1), I8), ((3,), "float64")], {}, DTYPE),
    ("scatter_nd", [((4,), "bool"), ((3, 1), I8), ((3,), "bool")], {"reduction": "mean"}, DTYPE),
    ("scatter_nd", [((4,), "int8"), ((3, 1), I8), ((3,), "int8")], {"reduction": "fsum"}, DTYPE),
    ("gather", [((4,), F4), ((3,), I8)], {"mode": "skip"}, ATTRIBUTE),
    ("scatter_nd", [((4,), F4), ((3, 1), I8), ((), F4)], {"reduction": "most"}, ATTRIBUTE),
    ("gather", [((4, -1), F4), ((3,), I8)], {}, SHAPE),
]


@pytest.mark.parametrize(("op", "operands", "attributes", "fault"), WRONG)
def test_errors_equal_the_errors_of_python(core, op, operands, attributes, fault):
    result = make(core, op, *(spec(*one) for one in operands), **attributes)
    assert result[0] == fault, result
    with pytest.raises((TypeError, ValueError)) as caught:
        gatherum.plan(op, *operands, **attributes)
    is_whole(result[2], str(caught.value))
    assert result[2].startswith(f"{op}: ")


def test_arguments_that_only_c_can_pass(core):
    data, indices = spec((4,), F4), spec((3,), I8)
    dtypes = ", ".join(f"'{name}'" for name in _core.DType.__members__)
    assert make(core, "gather", None, indices) == (OPERAND, "data", "gather: `data` must be given")
    for wrong, message in (
        (Spec(b"float", 0), f"`data` must have one of the dtypes {dtypes}, got 'float'"),
        (Spec(None, 0, None, None, -1), "`data` must have items of at least 0 bytes, got -1"),
        (
            Spec(None, 0, None, None, 2**63 - 1),
            f"`data` must have items of at most 2^60 bytes, got {2**63 - 1}",
        ),
    ):
        assert make(core, "gather", wrong, indices) == (DTYPE, "data", f"gather: {message}")
    message = "gather: `data` must have at least 0 dimensions, got -1"
    assert make(core, "gather", Spec(b"int8", -1), indices) == (SHAPE, "data", message)
    far = spec((4,), F4, (2**61,))
    message = "must have strides that stay within the address space, got (2305843009213693952,)"
    assert make(core, "gather", far, indices) == (SHAPE, "data", f"gather: `data` {message}")
    out = spec((3,), F4, (0,))
    message = "`out` must not overlap itself, got shape (3,) with strides (0,)"
    assert make(core, "gather", data, indices, out=out) == (SHAPE, "out", f"gather: {message}")
    out = spec((3,), "int32")
    message = "`out` must have the dtype of `data`, float32, got int32"
    assert make(core, "gather", data, indices, out=out) == (DTYPE, "out", f"gather: {message}")
    # Errors of the inputs have priority.
    assert make(core, "gather", data, data, out=out)[1] == "indices"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (Spec(b"int8", 65), "at most 64 dimensions, got 65"),
        (Spec(b"int8", 65, _numbers([1] * 65)), "at most 64 dimensions, got 65"),
        (Spec(b"int8", 2**31 - 1), f"at most 64 dimensions, got {2**31 - 1}"),
        (Spec(b"int8", -(2**31), _numbers([1])), f"at least 0 dimensions, got {-(2**31)}"),
        (Spec(b"int8", 1), "a shape of 1 size, got null"),
        (Spec(b"int8", 64), "a shape of 64 sizes, got null"),
    ],
)
@pytest.mark.parametrize("op", OPERATORS)
def test_a_rank_without_sizes_is_refused_before_they_are_read(core, op, wrong, message):
    right = {"data": spec((4,), F4), "indices": spec((1,), I8)}
    if OPERATORS[op].scatters:
        right["updates"] = spec((), F4)
    for name in (*right, "out"):
        out, *specs = [(right | {name: wrong}).get(n) for n in ("out", *right)]
        result = make(core, op, *specs, out=out)
        assert result == (SHAPE, name, f"{op}: `{name}` must have {message}")


@pytest.mark.parametrize("op", GATHERS)
@pytest.mark.parametrize("reduction", ["add", "most", ""])
def test_a_gather_takes_no_reduction(core, op, reduction):
    operands = spec((4,), F4), spec((1,), I8)
    result = make(core, op, *operands, reduction=reduction)
    message = f"{op}: `reduction` must be 'none', got '{reduction}'"
    assert result == (ATTRIBUTE, "", message)
    assert make(core, op, *operands, reduction="none") == make(core, op, *operands)


def test_a_program_needs_a_place(core):
    data, error = spec((4,), F4), CallError()
    arguments = byref(data), byref(spec((1,), I8)), None, None, None, byref(error)
    assert core.gatherum_make_gather(*arguments) == c.INVALID_CALL
    assert error.fault == OPERAND
    assert error.message.decode() == "gather: `program` must not be null"


@pytest.mark.parametrize("rows", [2**60, 2**61, 2**63 - 1])
def test_rows_of_any_size_are_planned(core, rows):
    """A block of more than 2^60 bytes is moved by a loop."""
    wide, one, half = ((1, rows), "i1"), ((1,), I8), ((rows,), "i1")
    operands = {
        "gather": ((wide, one), {}),
        "gather_elements": ((wide, ((1, 1), I8)), {}),
        "gather_nd": ((wide, ((1, 1), I8)), {}),
        "scatter_slices": ((half, ((), I8), ((), "i1")), {}),
        "scatter_elements": ((half, one, one[:1] + ("i1",)), {"reduction": "mean"}),
        "scatter_nd": ((wide, ((1, 1), I8), wide), {"reduction": "add"}),
    }
    for op, (specs, options) in operands.items():
        plan = gatherum.plan(op, *specs, **options)
        assert make(
            core, op, *(spec(shape, np.dtype(d)) for shape, d in specs), **options
        ) == bytes(plan.program)
        assert gatherum.explain(op, *specs, **options).svg()


def test_all_outputs_except_the_status_are_optional(core):
    program, data = c_void_p(1), spec((), F4)
    arguments = byref(data), byref(data), None, None, byref(program), None
    assert core.gatherum_make_gather(*arguments) == c.INVALID_CALL
    assert program.value is None


def test_a_long_message_is_cut(core):
    shape = (10**15,) * 64
    result = make(core, "gather", spec(shape, F4), spec((1,), I8))
    assert len(result[2]) == 511 and result[2].startswith(
        "gather: `data`, shape (1000000000000000, "
    )
