"""Turn bytes into a call of an operator: operands of any layout in guarded memory, and `out`.

Every choice is read from a source, so the same bytes always produce the same call.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from canaries import byte_rows
from gatherum._model.operators import OPERATORS as ROWS
from gatherum._model.operators import SCATTERS
from gatherum._model.reductions import REDUCTIONS
from sizes import SIZES
from strategies import DATA_DTYPES, INDEX_DTYPES, MODES, REDUCTIONS_OF, value_bytes

from .source import Source

Array = NDArray[Any]
Shape = tuple[int, ...]

OPERATORS = (
    *("gather", "scatter_nd", "gather_elements", "scatter_elements", "gather_nd", "scatter_slices"),
)
LENGTHS = (2, 3, 1, 4, 0, 5, 8, 17)
LONG = (300, 257, 256, 255, 600)  # around the number of indices that the core stages together
MOST = 96
LARGEST = 1 << 18  # elements of an operand: about what the oracle moves in a second
GUARD = 64
FILLS: tuple[Any, ...] = (
    0, 1, -1, 1.5, float("nan"), -0.0, True, 2**63, 1 << 70, "x", None, b"", 1j, np.float32(-2.5),
    np.int8(3), np.uint64(2**64 - 1), (1, 2), [1], np.datetime64("2020"), 65504.0, 1e39,
)  # fmt: skip
PLAIN_UPDATES: tuple[Any, ...] = (
    0, 1, True, -1, 2**40, 1.5, 1e300, "a", 1j, [1, 2], [], (), [[0]], None, b"ab", float("nan"),
)  # fmt: skip
ODD: dict[str, tuple[Any, ...]] = {
    "axis": (1 << 31, -(1 << 63), 1 << 70, 1.0, None, "0", np.int8(0), True),
    "batch_dims": (-1, 1 << 40, 0.5, None, np.uint8(1), False),
    "mode": ("", "RAISE", None, 0, b"raise"),
    "reduction": ("", "sum", None, 1),
}


@dataclass
class Memory:
    """A buffer whose bytes outside of its arrays must not change."""

    bytes: NDArray[np.uint8]
    before: NDArray[np.uint8] = field(init=False)

    def seal(self) -> None:
        self.before = self.bytes.copy()

    def is_untouched(self) -> bool:
        return bool((self.bytes == self.before).all())

    def strays(self, array: Array) -> list[int]:
        """Return the offsets of changed bytes that are not part of the array."""
        changed = self.bytes != self.before
        start = array.__array_interface__["data"][0] - self.bytes.ctypes.data
        item = f"V{array.dtype.itemsize}"
        inside = np.ndarray(array.shape, item, buffer=changed, offset=start, strides=array.strides)
        inside[...] = np.zeros((), item)
        return [int(offset) for offset in np.flatnonzero(changed)]


@dataclass
class Call:
    """One call, the position of its `out`, and all memory that it may read."""

    op: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    out: Any = None
    kind: str = ""
    memories: list[Memory] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    entry: str = "function"
    spoiled: bool = False

    def __str__(self) -> str:
        return f"{self.op}{self.args, self.kwargs} out {self.kind!r} {self.sizes} by {self.entry}"


def drawn(source: Source) -> Call:
    """Return the call that the bytes describe."""
    op = source.choice(OPERATORS)
    scatters = op in SCATTERS
    call = Call(op, (), {})
    call.sizes = source.choice(SIZES)
    call.entry = source.choice(("function", "function", "plan", "twice"))
    wrong = source.choice(("",) * 12 + ("attribute", "shape", "indices", "updates"))
    kwargs = call.kwargs
    if source.once_in(2):
        kwargs["mode"] = source.choice(MODES)
    if source.once_in(4):
        kwargs["negative"] = False
    dtype = source.choice(DATA_DTYPES)
    if scatters and source.once_in(2):
        kwargs["reduction"] = source.choice(REDUCTIONS)
        kwargs["include_self"] = not source.once_in(2)
        dtype = source.choice(REDUCTIONS_OF[kwargs["reduction"]])
    if not scatters and kwargs.get("mode") in ("fill", "drop"):
        kwargs["fill_value"] = _fill(source, dtype)
    rng = np.random.default_rng(source.below(1 << 16))
    data_shape, index_shape, sizes, moved = _shapes(source, op, kwargs)
    if wrong == "shape":
        index_shape, sizes = _bent(source, index_shape, sizes)
    data = _operand(source, rng, call, data_shape, dtype)
    indices = _indices(source, rng, call, index_shape, sizes)
    call.args = (data, indices)
    if scatters:
        call.args += (_updates(source, rng, call, moved, dtype),)
    if wrong:
        call.spoiled = True
        _spoil(source, call, wrong)
    if call.entry == "plan" and not all(isinstance(a, np.ndarray) for a in call.args):
        call.entry = "function"
    _draw_out(source, rng, call, data_shape if scatters else moved, dtype)
    return call


def _fill(source: Source, dtype: Any) -> Any:
    fill = source.choice(FILLS)
    return 0 if _has_spare_bits(dtype) else fill


def _has_spare_bits(dtype: Any) -> bool:
    """Return True if items have padding that converting a number leaves undetermined."""
    return dtype.char in "gG" or dtype.names is not None


def _dims(source: Source, rank: int, most: int = MOST, each: int = 1) -> Shape:
    """Return a shape for an operand with at most LARGEST elements, `each` of them per entry."""
    shape: list[int] = []
    for _ in range(rank):
        room = most // max(1, int(np.prod([max(1, n) for n in shape])))
        shape.append(min(source.choice(LENGTHS), max(1, room)))
    if shape and source.once_in(12):
        long = source.below(rank)
        shape = [source.choice(LONG) if d == long else min(n, 2) for d, n in enumerate(shape)]
    if math.prod(shape) * each > LARGEST:
        shape = [min(n, 1) for n in shape]
    return tuple(shape)


def _rank(source: Source, least: int) -> int:
    # The slices that move may have two dimensions more.
    return source.choice((32, 33, 61, 62)) if source.once_in(128) else least + source.below(5)


def _shapes(source: Source, op: str, kwargs: dict[str, Any]) -> tuple[Shape, Shape, Any, Shape]:
    """Return the shapes of `data` and `indices`, the size of each index, and the moved shape."""
    operator = ROWS[op]
    if operator.takes_tuples:
        return _nd_shapes(source, kwargs)
    data = _dims(source, max(1, _rank(source, 1)))
    axis = source.below(len(data))
    kwargs[operator.attribute] = axis - len(data) if source.once_in(2) else axis
    if not operator.addressing.shares_back:
        each = math.prod(data[:axis] + data[axis + 1 :])
        entries = _dims(source, source.below(4), 24, each)
        indices = data[:axis] + entries if operator.addressing.shares_front else entries
        moved = data[:axis] + entries + data[axis + 1 :]
    else:
        whole = source.once_in(2)
        indices = tuple(
            source.choice((4, 1, 2, 6, 0, 270))
            if d == axis
            else n
            if whole
            else source.below(n + 1)
            for d, n in enumerate(data)
        )
        if np.prod(indices) > 2000:
            indices = tuple(min(n, 4) for n in indices)
        moved = indices
    return data, indices, np.broadcast_to(np.int64(data[axis]), indices), moved


def _nd_shapes(source: Source, kwargs: dict[str, Any]) -> tuple[Shape, Shape, Any, Shape]:
    data = _dims(source, _rank(source, 0))
    b = source.below(min(2, len(data)) + 1)
    kwargs["batch_dims"] = b
    k = source.choice((1, 2, 62, 0))
    k = min(k, len(data) - b)
    each = math.prod(data[:b]) * max(k, math.prod(data[b + k :]))
    lead = data[:b] + _dims(source, source.below(3), 24, each)
    sizes = np.broadcast_to(np.array(data[b : b + k], dtype=np.int64), (*lead, k))
    return data, (*lead, k), sizes, lead + data[b + k :]


def _bent(source: Source, shape: Shape, sizes: Any) -> tuple[Shape, Any]:
    """Return a shape that may not fit any more."""
    bent = list(shape)
    variant = source.below(3)
    if variant == 0 or not bent:
        bent.insert(source.below(len(bent) + 1), source.choice((1, 2, 0)))
    elif variant == 1:
        bent.pop(source.below(len(bent)))
    else:
        bent[source.below(len(bent))] += 1
    sample = int(sizes[(0,) * sizes.ndim]) if sizes.size else 1
    return tuple(bent), np.broadcast_to(np.int64(sample), tuple(bent))


def _spoil(source: Source, call: Call, wrong: str) -> None:
    """Make one part of a call wrong, or at least unusual."""
    args = list(call.args)
    if wrong == "attribute":
        names = [name for name in ODD if name in call.kwargs]
        name = source.choice(names)
        call.kwargs[name] = source.choice(ODD[name])
    elif wrong == "indices":
        odd = (bool, float, "m8[s]", object, "S2")
        variant = source.below(len(odd) + 2)
        if variant < len(odd):
            args[1] = np.zeros(np.shape(args[1]), odd[variant])
        else:
            args[1] = args[1].tolist() if variant == len(odd) else np.ma.masked_array(args[1])
    elif len(args) > 2:
        if not _has_spare_bits(args[0].dtype):
            args[2] = source.choice(PLAIN_UPDATES)
    else:
        args[0] = np.empty(np.shape(args[0]), object)
    call.args = tuple(args)


# --- Values

# Larger arrays get no further gaps.
ROOM = 1 << 12


def _strides(source: Source, shape: Shape, item: int, *, apart: bool) -> tuple[list[int], int, int]:
    """Return strides, and the lowest and highest offsets that they reach.

    With `apart`, no two elements share a byte.
    """
    strides = [0] * len(shape)
    extent = item
    order = list(range(len(shape)))
    if source.once_in(4):
        order = order[::-1] if source.once_in(2) else order[1:] + order[:1]
    styled = source.once_in(2)
    for d in reversed(order):
        if shape[d] == 0:
            continue
        # Thirty nested gaps would need more memory than there is.
        variant = source.below(12) if styled and extent < ROOM else 0
        strides[d] = extent + {6: extent, 7: 1, 8: item}.get(variant, 0)
        if variant in (4, 5, 11):
            strides[d] = -strides[d]
        if variant >= 9 and not apart:
            strides[d] = (0, 1, -1)[variant - 9]
        extent = max(extent, abs(strides[d]) * shape[d])
    reach = [stride * (n - 1) for stride, n in zip(strides, shape, strict=True) if n]
    low, high = sum(min(0, r) for r in reach), sum(max(0, r) for r in reach)
    return strides, low, high + item


def _place(
    source: Source, shape: Shape, item: int, *, apart: bool
) -> tuple[Memory, list[int], int]:
    """Return memory for an array, the array's strides, and its start."""
    strides, low, high = _strides(source, shape, item, apart=apart)
    start = GUARD + source.choice((0, 0, 0, 1, 3, 8)) - low
    return Memory(np.full(start + high + GUARD, 0xA5, np.uint8)), strides, start


def _operand(
    source: Source, rng: np.random.Generator, call: Call, shape: Shape, dtype: Any
) -> Array:
    memory, strides, start = _place(source, shape, dtype.itemsize, apart=False)
    count = max(1, len(memory.bytes) // max(1, dtype.itemsize) + 1)
    values = np.frombuffer(value_bytes(rng, dtype, count), np.uint8)
    # Align items with the array's first byte, so that floats get the special values.
    first = start % max(1, dtype.itemsize)
    memory.bytes[first:] = values[: len(memory.bytes) - first]
    array = np.ndarray(shape, dtype, buffer=memory.bytes, offset=start, strides=strides)
    array.flags.writeable = not source.once_in(4)
    call.memories.append(memory)
    return array


def _indices(
    source: Source, rng: np.random.Generator, call: Call, shape: Shape, sizes: Any
) -> Array:
    dtype = source.choice(INDEX_DTYPES)
    info = np.iinfo(dtype)
    size = np.maximum(sizes, 1)
    values = (rng.integers(0, 1 << 31, shape) % size).astype(object)
    if info.min < 0 and call.kwargs.get("negative", True) and source.once_in(2):
        values = np.where(rng.random(shape) < 0.5, values - size, values)
    values = np.asarray(values, dtype=object)
    for _ in range(source.choice((0, 0, 0, 1, 2, 3, 8))):
        if not values.size:
            break
        place = np.unravel_index(source.below(values.size), shape)
        n = int(sizes[place])
        odd = (n - 1, n, -n, -n - 1, -1, 0, info.max, info.min, 2 * n, 1 << 63, 1 << 32, 1 << 31)
        values[place] = source.choice((*odd, source.integer() if source.once_in(8) else 1))
    inside = np.clip(values, info.min, info.max) if values.size else values
    memory, strides, start = _place(source, shape, dtype.itemsize, apart=not source.once_in(8))
    array = np.ndarray(shape, dtype, buffer=memory.bytes, offset=start, strides=strides)
    wanted = np.asarray(inside).astype(dtype.newbyteorder("=")).astype(dtype)
    byte_rows(array, writable=True)[...] = byte_rows(wanted)
    array.flags.writeable = not source.once_in(4)
    call.memories.append(memory)
    return array


def _updates(
    source: Source, rng: np.random.Generator, call: Call, shape: Shape, dtype: Any
) -> Array:
    variant = source.below(8)
    if variant == 7 and call.args[0].shape == shape:
        return np.asarray(call.args[0])
    if variant >= 5:
        shape = shape[source.below(len(shape) + 1) :]
        shape = tuple(1 if source.once_in(2) else n for n in shape)
    return _operand(source, rng, call, shape, dtype)


# --- The result


def _draw_out(
    source: Source, rng: np.random.Generator, call: Call, shape: Shape, dtype: Any
) -> None:
    kinds = ("", "", "", "fresh", "fresh", "in place", "overlapping", "refused")
    call.kind = source.choice(kinds)
    if call.kind == "in place" and call.op not in SCATTERS:
        call.kind = "fresh"
    if call.kind == "in place":
        _draw_in_place(source, call)
    elif call.kind == "overlapping":
        _draw_overlapping(source, call, shape, dtype)
    elif call.kind == "refused":
        _draw_refused(source, call, shape, dtype)
    elif call.kind == "fresh":
        call.out = _destination(source, call, shape, dtype)


def _destination(source: Source, call: Call, shape: Shape, dtype: Any) -> Array:
    memory, strides, start = _place(source, shape, dtype.itemsize, apart=True)
    call.memories.append(memory)
    return np.ndarray(shape, dtype, buffer=memory.bytes, offset=start, strides=strides)


def _draw_in_place(source: Source, call: Call) -> None:
    """Put the data into memory where the result may be, and make that `out`."""
    data = np.asarray(call.args[0])
    out = _destination(source, call, data.shape, data.dtype)
    byte_rows(out, writable=True)[...] = byte_rows(data)
    if len(call.args) > 2 and call.args[2] is call.args[0]:
        call.args = (*call.args[:2], data.copy())
    call.args, call.out = (out, *call.args[1:]), out


def _draw_overlapping(source: Source, call: Call, shape: Shape, dtype: Any) -> None:
    """Put `out` into the memory of an operand, overlapping or next to it."""
    memory = source.choice(call.memories)
    strides, low, high = _strides(source, shape, dtype.itemsize, apart=True)
    room = len(memory.bytes) - (high - low)
    if room < 0 or not all(isinstance(a, np.ndarray) for a in call.args):
        call.kind = ""
        return
    start = source.below(min(room + 1, 1 << 16)) - low
    out = np.ndarray(shape, dtype, buffer=memory.bytes, offset=start, strides=strides)
    data = call.args[0]
    same = (
        out.ctypes.data == data.ctypes.data
        and out.strides == data.strides
        and out.shape == data.shape
    )
    if same or 0 in shape:
        call.kind = ""
        return
    call.out = out


def _draw_refused(source: Source, call: Call, shape: Shape, dtype: Any) -> None:
    """Make an `out` that every call rejects."""
    call.kind = source.choice(
        ("read-only", "another shape", "another dtype", "no array", "masked", "overlaps itself")
    )
    if call.entry == "plan":
        call.entry = "function"
    out = _destination(source, call, shape, dtype)
    if call.kind == "read-only":
        out.flags.writeable = False
    elif call.kind == "another shape":
        out = np.zeros((*shape, 1), dtype) if len(shape) < 60 else np.zeros((), dtype)
    elif call.kind == "another dtype":
        out = np.zeros(shape, "u2" if dtype != np.dtype("u2") else "i2")
    elif call.kind == "no array":
        call.out = [0]
        return
    elif call.kind == "masked":
        out = np.ma.masked_array(out) if dtype.kind in "iu" else np.ma.zeros(shape, "i4")
    elif int(np.prod(shape)) > 1:
        out = np.ndarray(shape, dtype, buffer=np.zeros(1 << 8, np.uint8), strides=(0,) * len(shape))
    else:
        call.kind = ""
        return
    call.out = out
