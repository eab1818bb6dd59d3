"""The C interface through ctypes: structures, programs from plans, operands from arrays."""

import ctypes
import os
from ctypes import byref, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_void_p

import pytest

import gatherum

__all__ = [
    "INTERRUPTED",
    "INVALID_CALL",
    "INVALID_INDEX",
    "INVALID_PROGRAM",
    "NEEDS_LIBRARY",
    "OK",
    "TOO_SMALL",
    "Buffer",
    "EdgeEnds",
    "Error",
    "Fold",
    "Gradients",
    "Operands",
    "Quantized",
    "RowOperands",
    "Rows",
    "RowsRead",
    "core",
    "memory_of",
    "read",
    "refused",
]

NEEDS_LIBRARY = pytest.mark.skipif(
    os.name == "nt", reason="loads the library by the name that it has on Unix"
)
OK, INVALID_INDEX, INTERRUPTED, INVALID_PROGRAM, TOO_SMALL, INVALID_CALL = 0, 1, 2, 4, 5, 7


class Buffer(ctypes.Structure):
    _fields_ = (("start", c_void_p), ("bytes_before", c_int64), ("bytes_after", c_int64))


class Operands(ctypes.Structure):
    _fields_ = (
        *((name, Buffer) for name in ("data", "indices", "updates", "out")),
        ("fill", c_void_p),
        ("fresh", c_int32),
    )


class Error(ctypes.Structure):
    _fields_ = (
        ("message", c_char_p),
        ("operand", c_char_p),
        ("position", c_int64),
        ("value", c_int64),
        ("component", c_int32),
    )


class Fold(ctypes.Structure):
    _fields_ = (
        ("reduction", c_char_p),
        ("value", c_char_p),
        ("include_self", c_int32),
        ("item", c_int64),
    )


class GroupedValues(ctypes.Structure):
    _fields_ = [
        ("value", ctypes.c_char_p),
        ("values", ctypes.c_void_p),
        ("groups", ctypes.c_void_p),
        ("group_count", ctypes.c_int64),
    ]


class Cumulation(ctypes.Structure):
    _fields_ = (
        *((name, c_char_p) for name in ("function", "value")),
        *((name, c_void_p) for name in ("values", "factors", "groups")),
        *((name, c_int64) for name in ("group_bytes", "group_count")),
    )


class Gradients(ctypes.Structure):
    _fields_ = tuple(
        (name, Buffer)
        for name in ("indices", "data", "updates", "result", "gradient", "of_data", "of_updates")
    )


class Quantized(ctypes.Structure):
    _fields_ = (
        *((name, c_void_p) for name in ("data", "scales", "zero_points", "out")),
        *((f"{name}_bytes", c_int64) for name in ("data", "scales", "zero_points", "out")),
        *((name, c_char_p) for name in ("value", "scale", "result")),
        ("bits", c_int32),
        ("packed", c_int32),
        ("zero", c_float),
        ("rows", c_void_p),
        ("count", c_int64),
        ("before", c_int64 * 3),
        ("gathered", c_int64),
        ("after", c_int64 * 3),
        ("blocks", c_int64 * 3),
        ("scale_line", c_int64),
    )


class EdgeEnds(ctypes.Structure):
    _fields_ = (("program", c_void_p), ("indices", c_void_p))


class RowOperands(ctypes.Structure):
    _fields_ = (
        ("table", c_void_p),
        ("table_step", c_int64),
        ("weights", c_void_p),
        ("start", c_void_p),
        ("fill", c_void_p),
        ("out", c_void_p),
        ("out_step", c_int64),
        ("fresh", c_int32),
    )


class Rows(ctypes.Structure):
    _fields_ = (
        ("file", c_int),
        *((name, c_int64) for name in ("base", "stride", "item", "extent")),
        ("numbers", c_void_p),
        ("positions", c_void_p),
        ("count", c_int64),
        ("out", c_void_p),
        ("capacity", c_int64),
        ("waste", c_double),
        ("once", c_int32),
        ("scratch", c_int64),
        ("in_flight", c_int32),
    )


class RowsRead(ctypes.Structure):
    _fields_ = (
        ("status", c_char_p),
        ("error", c_int32),
        *((name, c_int64) for name in ("position", "until", "bytes", "runs")),
    )


@pytest.fixture(scope="module")
def core():
    library = ctypes.CDLL(gatherum.get_library())
    library.gatherum_program_write.restype = ctypes.c_size_t
    return library


@pytest.fixture
def read(core):
    """Yield a function that makes a program of the C interface from a plan.

    Programs are freed when the test ends.
    """
    programs = []

    def program_of(plan):
        content, program, error = bytes(plan.program), c_void_p(), Error()
        size = ctypes.c_size_t(len(content))
        assert core.gatherum_program_read(content, size, byref(program), byref(error)) == OK
        programs.append(program)
        return program

    yield program_of
    for program in programs:
        core.gatherum_program_free(program)


def memory_of(array):
    """Return the start of an array, and the numbers of bytes that it spans before and after it."""
    start = array.__array_interface__["data"][0]
    if array.size == 0:
        return [start, 0, 0]
    reach = [(n - 1) * step for n, step in zip(array.shape, array.strides, strict=True)]
    before = -sum(r for r in reach if r < 0)
    return [start, before, sum(r for r in reach if r > 0) + array.itemsize]


def refused(core, program, memory):
    """Return the operand that gatherum_check reports as too small, or None."""
    operands, error = Operands(), Error()
    for name, sizes in memory.items():
        setattr(operands, name, Buffer(*sizes))
    status = core.gatherum_check(program, byref(operands), byref(error))
    assert status in (OK, TOO_SMALL)
    return error.operand.decode() if status else None
