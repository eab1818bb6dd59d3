"""Turn bytes into a buffer of any format, or into an object without a buffer, in guarded memory.

The expected result of a buffer follows from its construction; the buffer itself is never queried.
"""

import array
import ctypes
import io
import mmap
import pickle
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from canaries import byte_rows
from strategies import ML_DTYPES

from .source import Source

Bytes = NDArray[np.uint8]
GUARD = 64

# Dtypes whose items are one native number each, dtypes whose items are other bytes, dtypes that
# NumPy cannot export as a buffer, and dtypes that hold objects, directly or nested.
PLAIN = "BbfidqQHhIeLl?"
BYTES: tuple[Any, ...] = (
    ">i4", "F", "D", "g", "S3", "U2", "V5", [("a", "u1"), ("b", "<f4")],
    np.dtype([("a", "u1"), ("b", "<f4")], align=True), [("a", "i2", (2,)), ("O", [("c", "f8")])],
)  # fmt: skip
CLOSED: tuple[Any, ...] = ("M8[s]", "m8[ns]", *ML_DTYPES[:1])
OBJECTS: tuple[Any, ...] = (
    "O", [("a", "i8"), ("b", "O")], [("x", [("y", "O")])], [("z", "O", (2,))],
    {"names": ["p"], "formats": ["O"], "offsets": [8], "itemsize": 24},
)  # fmt: skip
TYPECODES = "bBhHiIlLqQfd"


@dataclass
class Given:
    """A buffer that a call receives, and the expected outcome.

    Attributes
    ----------
    value
        The argument of the call.
    fits
        True for flat bytes. None for an empty buffer, which may raise for its kind or its size.
    memory
        The buffer and all bytes around it. The buffer begins at `start` and has `size` bytes.
    """

    value: Any
    kind: str
    fits: bool | None = False
    writable: bool = True
    memory: Bytes = field(default_factory=lambda: np.zeros(0, np.uint8))
    start: int = 0
    size: int = 0


def drawn_buffer(source: Source, content: bytes, needed: int, within: Given | None) -> Given:
    """Return a buffer, usually with the content, in new memory or in that of another buffer."""
    more = source.choice((*(0,) * 16, 4, 33, 1, 64, -1, -needed // 2, -needed))
    size = max(0, needed + more)
    makers = (*(_array,) * 10, *(_view,) * 7, *(_owner,) * 4, *(_ctypes,) * 2, _strange)
    content = content[:size].ljust(size, b"\x07")
    drawn = source.choice(makers)(source, size, content, within)
    space = drawn.memory[drawn.start :][: drawn.size]
    if within is None and drawn.fits is not False and space.flags.writeable:
        space[: len(content)] = np.frombuffer(content, np.uint8)[: len(space)]
    return drawn


# --- Memory


def _arena(source: Source, size: int, within: Given | None, item: int) -> tuple[Bytes, int, int]:
    """Return memory, the start of a buffer in it, and the buffer's size.

    The size is that of the requested number of items, or less if the memory is too small.
    """
    size = -(-size // item) * item
    if within is not None and len(within.memory) and within.memory.flags.writeable:
        apart = source.choice((0, 0, 1, 4, -4, within.size, -size, 12))
        start = min(max(within.start + apart, 0), len(within.memory))
        return within.memory, start, min(size, (len(within.memory) - start) // item * item)
    start = GUARD + source.choice((0, 0, 0, 0, 1, 4))
    pattern = (np.arange(start + size + GUARD) * 167 % 251 + 1).astype(np.uint8)
    return pattern, start, size


def _owned(value: Any, kind: str, writable: bool = True) -> Given:
    """Return a buffer without memory around it."""
    memory = np.frombuffer(value, np.uint8) if memoryview(value).nbytes else np.zeros(0, np.uint8)
    return Given(value, kind, True if len(memory) else None, writable, memory, 0, len(memory))


# --- Kinds


def _array(source: Source, size: int, content: bytes, within: Given | None) -> Given:
    """Return an array of any dtype and layout."""
    group = source.choice((*(PLAIN,) * 8, *(BYTES,) * 4, OBJECTS, CLOSED))
    dtype = np.dtype(source.choice(group))
    if group is OBJECTS:
        return _objects(source, dtype, size)
    memory, start, size = _arena(source, size, within, dtype.itemsize)
    items = size // dtype.itemsize
    value, layout = _laid_out(np.ndarray(items, dtype, memory, start), source.below(24))
    fits = value.flags.c_contiguous and group is not CLOSED and layout != "-masked"
    writable = not source.once_in(8)
    value.flags.writeable = writable
    name = "" if group is PLAIN else f"-{dtype.kind}"
    kind = f"array{name}{layout}{'' if writable else '-read-only'}"
    size = value.size * dtype.itemsize
    return Given(value, kind, fits if items else None, writable, memory, start, size)


def _laid_out(flat: NDArray[Any], layout: int) -> tuple[NDArray[Any], str]:
    """Return the same items, or some of them, in another layout, and the layout's name."""
    even, layouts = flat.size % 2 == 0, {
        5: ("-rows", lambda: flat.reshape(-1, 2) if even else flat),
        6: ("-fortran", lambda: flat.reshape(2, -1, order="F") if even else flat),
        7: ("-strided", lambda: flat[::2]),
        8: ("-reversed", lambda: flat[::-1]),
        9: ("-scalar", lambda: flat[:1].reshape(()) if flat.size else flat),
        10: ("-subclass", lambda: flat.view(_Sub)),
        11: ("-masked", lambda: np.ma.masked_array(flat)),
    }  # fmt: skip
    name, make = layouts.get(layout, ("", lambda: flat))
    return make(), name


class _Sub(np.ndarray[Any, Any]):
    """A subclass of ndarray."""


def _objects(source: Source, dtype: np.dtype[Any], size: int) -> Given:
    """Return objects, which must never be overwritten by bytes."""
    value = np.zeros(-(-size // dtype.itemsize) + 1, dtype)
    if dtype.names is None:
        value[...] = [float(i) for i in range(value.size)]
    memory = byte_rows(value, writable=True).reshape(-1)
    variant = source.below(4)
    shown: Any = value
    if variant == 1:
        shown = memoryview(value)
    elif variant == 2:
        shown = pickle.PickleBuffer(value)
    elif variant == 3:
        value.flags.writeable = False
    return Given(shown, f"objects-{variant}", False, variant != 3, memory, 0, len(memory))


def _view(source: Source, size: int, content: bytes, within: Given | None) -> Given:
    """Return a memoryview of any format and shape."""
    format = source.choice("BBcbhHiIlLqQnNfd?" * 3 + "P")
    item = memoryview(bytes(16)).cast(format).itemsize  # type: ignore[call-overload]
    memory, start, size = _arena(source, size, within, item)
    view = memoryview(memory)[start : start + size]
    buffer = Given(
        view, "view-P" if format == "P" else "view", format != "P", True, memory, start, size
    )
    variant = source.below(16)
    if not size:
        buffer.fits = None
    else:
        shape = [size // item] if variant != 1 or size % (2 * item) else [size // item // 2, 2]
        buffer.value = view = view.cast("B").cast(format, shape)
    if variant == 2 and size > 2 * item:
        buffer.value, buffer.fits, buffer.size = view[::2], False, view[::2].nbytes
    elif variant == 3:
        buffer.value, buffer.writable = view.toreadonly(), False
    elif variant == 4:
        view.release()
        buffer.fits = False
    buffer.kind += ("", "-rows", "-strided", "-read-only", "-released", *("",) * 11)[variant]
    return buffer


def _owner(source: Source, size: int, content: bytes, within: Given | None) -> Given:
    """Return an object that owns its bytes."""
    code = source.choice(TYPECODES)
    items = content + bytes(-size % array.array(code).itemsize)
    name, value = (
        ("bytearray", lambda: bytearray(content)),
        ("bytes", lambda: content),
        ("array.array", lambda: array.array(code, items)),
        ("mmap", lambda: mmap.mmap(-1, max(size, 1))),
        ("mmap-read-only", lambda: mmap.mmap(-1, max(size, 1), access=mmap.ACCESS_READ)),
        ("BytesIO", lambda: io.BytesIO(content).getbuffer()),
        ("PickleBuffer", lambda: pickle.PickleBuffer(bytearray(content))),
    )[source.below(7)]  # fmt: skip
    owner = value()
    return _owned(owner, name, name not in ("bytes", "mmap-read-only"))


class _Pair(ctypes.Structure):
    _fields_ = (("a", ctypes.c_uint8), ("b", ctypes.c_float))


class _Holder(ctypes.Structure):
    _fields_ = (("a", ctypes.c_int64), ("b", ctypes.py_object))


_Function = ctypes.CFUNCTYPE(None)


def _ctypes(source: Source, size: int, content: bytes, within: Given | None) -> Given:
    """Return an array of C types, including pointers and objects."""
    of_pointers = (ctypes.py_object, _Holder, ctypes.c_char_p, ctypes.c_void_p, _Function)
    plain = (ctypes.c_ubyte, ctypes.c_float, ctypes.c_int64, _Pair, ctypes.c_uint16 * 2)
    kind: Any = source.choice((*plain, *plain, *of_pointers))
    name = f"ctypes-{kind.__name__}"
    if kind in of_pointers:
        value = (kind * (size // ctypes.sizeof(kind) + 1))()
        around = (ctypes.c_ubyte * ctypes.sizeof(value)).from_address(ctypes.addressof(value))
        memory = np.frombuffer(around, np.uint8)
        return Given(value, name, False, True, memory, 0, len(memory))
    memory, start, size = _arena(source, size, within, ctypes.sizeof(kind))
    value = (kind * (size // ctypes.sizeof(kind))).from_buffer(memory, start)
    fits = True if len(value) else None
    return Given(value, name, fits, True, memory, start, ctypes.sizeof(value))


class _Claims:
    """Describes memory by the array interface, without the buffer protocol."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.__array_interface__ = array.__array_interface__


def _strange(source: Source, size: int, content: bytes, within: Given | None) -> Given:
    """Return an object that has no buffer, or an unusual one."""
    values = (
        [0] * size, "a" * size, 3, object(), (1, 2), float, range(size), {},
        _Claims(np.zeros(size, np.uint8)),
    )  # fmt: skip
    variant = source.below(len(values) + 3)
    if variant < len(values):
        return Given(values[variant], f"no-buffer-{type(values[variant]).__name__}", writable=False)
    if variant == len(values):
        closed = mmap.mmap(-1, max(size, 1))
        closed.close()
        return Given(closed, "mmap-closed")
    if variant == len(values) + 1:
        return _owned(np.float64(1.5), "scalar", False)
    return _owned(np.void(bytes(size + 1)), "scalar-void", False)
