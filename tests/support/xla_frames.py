"""Frames of XLA's custom calls, forged in memory as the runtime makes them."""

import ctypes
from ctypes import POINTER, Structure, c_char_p, c_int32, c_int64, c_size_t, c_uint32, c_void_p

import numpy as np

from gatherum import _core

HEAD = [("struct_size", c_size_t), ("extension", c_void_p)]
ERROR = {3: "INVALID_ARGUMENT", 8: "RESOURCE_EXHAUSTED", 11: "OUT_OF_RANGE", 13: "INTERNAL"}
# XLA's numbers of dtypes, and those of packed or unknown ones
KINDS = {"bool": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint8": 6, "uint16": 7,
         "uint32": 8, "uint64": 9, "float16": 10, "float32": 11, "float64": 12, "complex64": 15,
         "complex128": 18}  # fmt: skip
BFLOAT16, BYTE_FLOATS, PACKED = 16, (19, 20, 23, 24, 25, 28, 29, 33), (0, 13, 21, 22, 26, 32, 99)


class Buffer(Structure):
    _fields_ = [*HEAD, ("dtype", c_int32), ("data", c_void_p), ("rank", c_int64),
                ("dims", POINTER(c_int64))]  # fmt: skip


class Values(Structure):
    _fields_ = [*HEAD, ("size", c_int64), ("types", POINTER(c_int32)), ("each", POINTER(c_void_p))]


class Span(Structure):
    _fields_ = [("ptr", c_char_p), ("len", c_size_t)]


class Words(Structure):
    _fields_ = [("dtype", c_int32), ("size", c_size_t), ("data", c_void_p)]


class Attributes(Structure):
    _fields_ = [*HEAD, ("size", c_int64), ("types", POINTER(c_int32)),
                ("names", POINTER(POINTER(Span))), ("each", POINTER(c_void_p))]  # fmt: skip


class Version(Structure):
    _fields_ = [*HEAD, ("major", c_int32), ("minor", c_int32)]


class ErrorArguments(Structure):
    _fields_ = [*HEAD, ("message", c_char_p), ("code", c_int32)]


class Api(Structure):
    _fields_ = [*HEAD, ("version", Version), ("internal", c_void_p),
                ("create_error", ctypes.CFUNCTYPE(c_void_p, POINTER(ErrorArguments)))]  # fmt: skip


class Frame(Structure):
    _fields_ = [*HEAD, ("api", POINTER(Api)), ("context", c_void_p), ("stage", c_int32),
                ("args", Values), ("rets", Values), ("attrs", Attributes)]  # fmt: skip


class Extension(Structure):
    _fields_ = [("struct_size", c_size_t), ("type", c_int32), ("next", c_void_p)]


class Metadata(Structure):
    _fields_ = [("struct_size", c_size_t), ("version", Version), ("traits", c_uint32)]


class MetadataExtension(Structure):
    _fields_ = [("base", Extension), ("metadata", POINTER(Metadata))]


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = c_void_p, [ctypes.py_object, c_char_p]
handler = ctypes.CFUNCTYPE(c_void_p, POINTER(Frame))(
    _pointer(_core.xla_handler(), b"xla._CUSTOM_CALL_TARGET")
)
GUARD = 64


class Call:
    """A frame and all that it points to, which can be changed before the call."""

    def __init__(self, program, operands, shape, dtype, fill=b""):
        self.operands = [(array, KINDS[array.dtype.name], array.shape) for array in operands]
        self.operand_types = [1] * len(operands)
        self.result_types = [1]
        self.dtype, self.shape = KINDS[np.dtype(dtype).name], shape
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        self.memory = np.full(size + 2 * GUARD, 0xA5, np.uint8)
        self.attributes = {
            "program": (1, (KINDS["int64"], np.frombuffer(bytes(program), np.int64).copy())),
            "fill": (1, (KINDS["int64"], np.frombuffer(fill.ljust(16, b"\0"), np.int64).copy())),
            "sentences": (4, "changed\nindex % at (%)"),
        }
        self.stage = 3
        self.second = np.full(size, 0xA5, np.uint8)  # memory of another result
        self.kept = []

    @property
    def result(self):
        return self.memory[GUARD:-GUARD]

    def keep(self, value):
        self.kept.append(value)
        return value

    def address(self, value):
        return ctypes.cast(ctypes.pointer(self.keep(value)), c_void_p)

    def buffer(self, data, type_number, shape):
        dims = self.keep((c_int64 * max(len(shape), 1))(*shape))
        return self.address(
            Buffer(ctypes.sizeof(Buffer), None, type_number, data, len(shape), dims)
        )

    def values(self, types, each):
        n = len(each)
        kinds = self.keep((c_int32 * max(n, 1))(*types))
        pointers = self.keep((c_void_p * max(n, 1))(*[one.value for one in each]))
        return Values(ctypes.sizeof(Values), None, n, kinds, pointers)

    def attribute(self, value):
        if isinstance(value, str):
            text = self.keep(value.encode())
            return self.address(Span(text, len(text)))
        type_number, array = value
        return self.address(Words(type_number, array.size, self.keep(array).ctypes.data))

    def frame(self):
        told = []

        def create(arguments):
            told.append((ERROR[arguments[0].code], arguments[0].message.decode()))
            return 1

        self.told = told
        api = self.keep(Api(ctypes.sizeof(Api), None, Version(), None, Api._fields_[-1][1](create)))
        each = [
            self.buffer(one.ctypes.data, type_number, dims)
            for one, type_number, dims in self.operands
        ]
        out = self.buffer(self.memory.ctypes.data + GUARD, self.dtype, self.shape)
        second = self.buffer(self.second.ctypes.data, self.dtype, self.shape)
        names = [self.keep(name.encode()) for name in self.attributes]
        spans = [self.keep(Span(name, len(name))) for name in names]
        n = len(names)
        attributes = Attributes(
            ctypes.sizeof(Attributes), None, n,
            self.keep((c_int32 * max(n, 1))(*[number for number, _ in self.attributes.values()])),
            self.keep((POINTER(Span) * max(n, 1))(*map(ctypes.pointer, spans))),
            self.keep((c_void_p * max(n, 1))(
                *[self.attribute(value).value for _, value in self.attributes.values()]
            )),
        )  # fmt: skip
        return Frame(
            ctypes.sizeof(Frame), None, ctypes.pointer(api), None, self.stage,
            self.values(self.operand_types, each),
            self.values(self.result_types, [out, second][: len(self.result_types)]), attributes,
        )  # fmt: skip

    def run(self):
        """Run the handler. Return its error, or None."""
        frame = self.frame()
        result = handler(ctypes.byref(frame))
        assert bool(result) is bool(self.told)
        for guard in (self.memory[:GUARD], self.memory[-GUARD:]):
            assert (guard == 0xA5).all()
        return self.told[0] if self.told else None


def metadata_query():
    """Return a frame in which the runtime queries the metadata of a handler, and the answer."""
    metadata = Metadata(ctypes.sizeof(Metadata), Version(0, None, 9, 9), 0)
    asked = MetadataExtension(
        Extension(ctypes.sizeof(MetadataExtension), 1, None), ctypes.pointer(metadata)
    )
    frame = Frame(ctypes.sizeof(Frame), ctypes.cast(ctypes.pointer(asked), c_void_p))
    frame.kept = asked
    return frame, metadata
