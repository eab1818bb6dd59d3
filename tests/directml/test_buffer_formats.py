"""Item formats that a flat buffer may have: objects and pointers are never moved as bytes."""

import array
import ctypes

import numpy as np
import pytest

from gatherum.directml import BufferTensorDesc, Device, ScatterOperatorDesc
from gatherum.directml.buffers import _is_of_numbers, bytes_of

FLOATS = BufferTensorDesc("FLOAT32", (2,))


class WithObject(ctypes.Structure):
    _fields_ = (("number", ctypes.c_int), ("thing", ctypes.py_object))


class Inner(ctypes.Structure):
    _fields_ = (("X", ctypes.c_int), ("P", ctypes.c_double))


class Plain(ctypes.Structure):
    _fields_ = (("O", ctypes.c_int), ("z", Inner * 2), ("Z", ctypes.c_float))


class TextThenFloat(ctypes.Structure):
    _fields_ = (("name", ctypes.c_wchar_p), ("f", ctypes.c_float))


REFERENCES = {
    "objects": np.array([None] * 4),
    "one object": np.array(None),
    "no object": np.array([], object),
    "a field": np.zeros(2, [("a", "f4"), ("b", object)]),
    "a field inside": np.zeros(2, [("a", [("b", "f4"), ("c", [("d", object)])])]),
    "a field of several": np.zeros(2, [("a", "i4"), ("b", object, (2, 3))]),
    "ctypes' objects": (ctypes.py_object * 2)(None, None),
    "ctypes' structures": (WithObject * 2)(),
    "pointers": (ctypes.POINTER(ctypes.c_int) * 2)(),
    "functions": (ctypes.CFUNCTYPE(None) * 2)(),
    "addresses": (ctypes.c_void_p * 2)(),
    "strings elsewhere": (ctypes.c_char_p * 2)(),
    "text elsewhere": (ctypes.c_wchar_p * 2)(),
    "text elsewhere, then what a complex number has": (TextThenFloat * 2)(),
}
NUMBERS = {
    "bytes": b"12345678",
    "floats": np.zeros(2, "f4"),
    "halves": np.zeros(4, "f2"),
    "other byte order": np.zeros(2, ">u4"),
    "booleans": np.zeros(8, bool),
    "complex": np.zeros(1, ">c8"),
    "long complex": np.zeros(1, np.clongdouble),
    "text": np.zeros(2, "U1"),
    "strings": np.zeros(2, "S4"),
    "void": np.zeros(1, "V8"),
    "names like codes": np.zeros(2, [("O", "i4"), ("&", "f8"), ("X{}", "?"), ("T{O", "i1")]),
    "padding": np.zeros(2, np.dtype([("a", "i1"), ("b", "f8", (2, 3))], align=True)),
    "array": array.array("d", [0]),
    "ctypes": (ctypes.c_longlong * 1)(),
    "ctypes in two dimensions": ((ctypes.c_ubyte * 4) * 2)(),
    "ctypes' structures": (Plain * 2)(),
}


@pytest.mark.parametrize("wrap", [lambda buffer: buffer, memoryview], ids=["itself", "view"])
@pytest.mark.parametrize("name", REFERENCES)
def test_objects_and_pointers_are_refused(name, wrap):
    buffer = wrap(REFERENCES[name])
    with pytest.raises(TypeError) as raised:
        bytes_of(buffer, FLOATS, "GATHER: `InputTensor`")
    assert str(raised.value).startswith(
        "GATHER: `InputTensor` must be a buffer of numbers or bytes, without objects or pointers, "
        f"got {type(buffer).__name__} of format '"
    )


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_and_bytes_of_every_kind_are_taken(name):
    assert bytes_of(NUMBERS[name], FLOATS, "").nbytes == memoryview(NUMBERS[name]).nbytes


@pytest.mark.parametrize(
    "items_format", ["T{Z:a:f:b:}", "X{}", "&i", "&T{i:a:}", "T", "{i}", "t", "Z"]
)
def test_formats_that_no_exporter_here_has(items_format):
    assert not _is_of_numbers(items_format)


def test_a_long_format_is_cut_short():
    wide = np.zeros(1, [(f"field_{i}", object) for i in range(1000)])
    with pytest.raises(TypeError) as raised:
        bytes_of(wide, FLOATS, "GATHER: `InputTensor`")
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize("operand", ["input", "indices", "updates", "output"])
def test_no_operand_of_a_dispatch_holds_objects(operand):
    indices = BufferTensorDesc("INT32", (2,))
    compiled = Device().compile(ScatterOperatorDesc(FLOATS, indices, FLOATS, FLOATS, 0))
    buffers = {name: np.zeros(2, "f4") for name in ("input", "updates", "output")}
    buffers |= {"indices": np.int32([0, 1]), operand: np.array([None, None])}
    with pytest.raises(TypeError, match=rf"^SCATTER: `{operand.capitalize()}Tensor` must be a b"):
        compiled.dispatch(**{f"{name}_tensor": buffer for name, buffer in buffers.items()})
    if operand == "indices":
        with pytest.raises(TypeError, match="without objects or pointers"):
            compiled.index_report(buffers[operand])
