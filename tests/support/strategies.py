"""Hypothesis strategies for calls of the six operators, and comparisons of their results.

Shapes, dtypes, layouts and attributes are drawn one by one, so they shrink. Values are generated in
bulk from one drawn seed, which keeps an example at about a millisecond.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import hypothesis.strategies as st
import numpy as np
from hypothesis import HealthCheck, settings
from numpy.typing import NDArray

from canaries import byte_rows, guarded, guarded_copy
from gatherum import _core
from gatherum._model import operators
from gatherum._model.dtypes import value_of
from gatherum._model.modes import MODES
from gatherum._model.reductions import REDUCTIONS
from gatherum.reference.reductions import check_reducible

try:
    import ml_dtypes
except ImportError:  # optional: its types are drawn if it is installed
    ml_dtypes = None

__all__ = [
    "ANY_ORDER",
    "DATA_DTYPES",
    "INDEX_DTYPES",
    "MODES",
    "OPERATORS",
    "ORDERED",
    "REDUCTIONS_OF",
    "SCATTERS",
    "THOROUGH",
    "Batches",
    "Call",
    "batches",
    "calls",
    "destinations",
    "outcome",
    "same_bits",
    "same_outcome",
    "value_bytes",
]

THOROUGH = settings(
    max_examples=int(os.environ.get("GATHERUM_EXAMPLES", "400")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)

Array = NDArray[Any]
Shape = tuple[int, ...]

MOST_DIMENSIONS = 64  # of NumPy's arrays
SCATTERS = operators.SCATTERS
OPERATORS = tuple(operators.OPERATORS)
INDEX_DTYPES = [
    np.dtype(f"{kind}{width}").newbyteorder(order)
    for order in "=S"
    for kind in "iu"
    for width in (8, 4, 2, 1)
]

_ml_names = ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "int4", "uint4")
ML_DTYPES = [np.dtype(getattr(ml_dtypes, name)) for name in _ml_names] if ml_dtypes else []
FLOATS = [np.dtype(code) for code in ("f4", "f8", "f2")] + ML_DTYPES[:1]
INTEGERS = [np.dtype(f"{kind}{width}") for kind in "iu" for width in (8, 4, 2, 1)]
COMPLEXES = [np.dtype("c8"), np.dtype("c16")]
BOOL = np.dtype(bool)
PADDED = np.dtype([("a", "u1"), ("b", "<f4"), ("c", "S3")], align=True)
DATA_DTYPES = [
    *FLOATS,
    *INTEGERS,
    *COMPLEXES,
    BOOL,
    np.dtype("g"),
    np.dtype("M8[s]"),
    np.dtype("m8[ns]"),
    np.dtype("S5"),
    np.dtype("U3"),
    PADDED,
    np.dtype("f4").newbyteorder("S"),
    np.dtype("V3"),
    *ML_DTYPES[1:],
]
_CANDIDATES = [*FLOATS, *INTEGERS, *COMPLEXES, BOOL]


def _reduces(dtype: np.dtype[Any], reduction: str) -> bool:
    """Return True if the oracle defines a reduction for a dtype."""
    try:
        check_reducible("", dtype, reduction)
    except TypeError:
        return False
    return True


REDUCTIONS_OF = {
    name: [dtype for dtype in _CANDIDATES if _reduces(dtype, name)]
    for name in REDUCTIONS
    if name != "none"
}
REDUCTIONS_OF["none"] = DATA_DTYPES

# Reductions that do not depend on the order of the updates, and reductions that do.
ANY_ORDER = [
    (reduction, dtype)
    for reduction, dtypes in REDUCTIONS_OF.items()
    for dtype in dtypes
    if _core.is_any_order(value_of(dtype), _core.Reduction[reduction])
]
ORDERED = [
    (reduction, dtype)
    for reduction, dtypes in REDUCTIONS_OF.items()
    for dtype in dtypes
    if (reduction, dtype) not in ANY_ORDER
]


# --- Calls


@dataclass(frozen=True, eq=False)
class Call:
    """The name, operands and attributes of one call."""

    op: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def run(self, operators: Any, **more: Any) -> Array:
        """Call the operator of this name in `operators`, a module with the six functions."""
        result: Array = getattr(operators, self.op)(*self.args, **self.kwargs, **more)
        return result

    def __repr__(self) -> str:
        operands = ", ".join(_described(operand) for operand in self.args)
        return f"{self.op}({operands}, {self.kwargs})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))  # the representation of a failing example


def _described(operand: Any) -> str:
    if not isinstance(operand, np.ndarray):
        return repr(operand)
    values = operand.tolist() if operand.dtype.kind in "iu" else byte_rows(operand).tobytes().hex()
    access = "" if operand.flags.writeable else " read-only"
    return f"<{operand.dtype} {operand.shape} strides {operand.strides}{access}: {values}>"


@st.composite
def calls(
    draw: st.DrawFn,
    ops: Sequence[str] = OPERATORS,
    invalid: float | None = None,
    data_dtypes: Sequence[Any] = DATA_DTYPES,
    most_dimensions: int = MOST_DIMENSIONS,
) -> Call:
    """Draw a valid call, except that some index values may be invalid.

    Parameters
    ----------
    draw
        Given by Hypothesis.
    ops
        The operators to choose from.
    invalid
        The share of invalid index values; drawn when None, and mostly 0.
    data_dtypes
        The dtypes of `data` to choose from.
    most_dimensions
        The maximum number of dimensions: operands have a few, or at times many if it is 64.

    Returns
    -------
    Call
        For any module that has the six functions.
    """
    op = draw(st.sampled_from(ops))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kwargs: dict[str, Any] = {}
    if draw(st.booleans()):
        kwargs["mode"] = draw(st.sampled_from(MODES))
    if draw(st.integers(0, 3)) == 3:
        kwargs["negative"] = draw(st.booleans())
    dtype = draw(_data_dtype(op, list(data_dtypes), kwargs))
    data_shape, index_shape, sizes, updates_shape = draw(_shapes(op, kwargs, None, most_dimensions))
    if op not in SCATTERS and kwargs.get("mode") in ("fill", "drop"):
        _draw_fill(draw, dtype, kwargs)
    if invalid is None:
        often = kwargs.get("mode", "raise") != "raise"
        invalid = draw(st.sampled_from([0.3, 0.0, 1.0] if often else [0.0, 0.0, 0.0, 0.05]))

    data = draw(_inputs(rng, data_shape, dtype))
    indices = draw(
        _indices(rng, index_shape, sizes, negative=kwargs.get("negative", True), invalid=invalid)
    )
    if op not in SCATTERS:
        return Call(op, (data, indices), kwargs)
    updates = draw(_updates(rng, updates_shape, dtype))
    return Call(op, (data, indices, updates), kwargs)


@dataclass(frozen=True, eq=False)
class Batches:
    """The initial data and the batches of an accumulator, and successive calls on the data."""

    data: Array
    kwargs: dict[str, Any]
    calls: list[Call]


@st.composite
def batches(draw: st.DrawFn, ops: Sequence[str] = SCATTERS, most: int = 4) -> Batches:
    """Draw a few scatters into the same data with the same attributes, except the dimension one."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    mode = draw(st.sampled_from(MODES))
    kwargs: dict[str, Any] = {"mode": mode, "negative": draw(st.integers(0, 3)) != 3}
    kwargs["reduction"] = draw(st.sampled_from(sorted(REDUCTIONS_OF)))
    kwargs["include_self"] = draw(st.booleans())
    dtype = draw(st.sampled_from(REDUCTIONS_OF[kwargs["reduction"]]))
    shape = draw(_dims(draw(st.sampled_from([2, 1, 3, 0, 4]))))
    data = draw(_inputs(rng, shape, dtype))
    drawn: list[Call] = []
    for _ in range(draw(st.integers(0, most))):
        op = draw(st.sampled_from(ops if shape else ["scatter_nd"]))
        own: dict[str, Any] = {}
        _, index_shape, sizes, updates_shape = draw(_shapes(op, own, shape))
        invalid = draw(st.sampled_from([0.0, 0.0, 0.05] if mode == "raise" else [0.3, 0.0, 1.0]))
        indices = draw(
            _indices(rng, index_shape, sizes, negative=kwargs["negative"], invalid=invalid)
        )
        drawn.append(Call(op, (indices, draw(_updates(rng, updates_shape, dtype))), own))
    return Batches(data, kwargs, drawn)


@st.composite
def _data_dtype(draw: st.DrawFn, op: str, dtypes: list[Any], kwargs: dict[str, Any]) -> Any:
    if op in SCATTERS and draw(st.booleans()):
        reduction = draw(st.sampled_from(sorted(REDUCTIONS_OF)))
        reducible = [dtype for dtype in dtypes if dtype in REDUCTIONS_OF[reduction]]
        if reducible:
            kwargs["reduction"] = reduction
            kwargs["include_self"] = draw(st.booleans())
            return draw(st.sampled_from(reducible))
    return draw(st.sampled_from(dtypes))


def _draw_fill(draw: st.DrawFn, dtype: Any, kwargs: dict[str, Any]) -> None:
    choices: list[Any] = [0, False]
    if _converts(dtype):
        choices += [1, np.int8(1)]
    if _converts(dtype) and dtype.kind in "fc":
        choices += [0.1, 1.0, -0.0, float("nan"), float("inf"), np.float32(-2.5)]
    kwargs["fill_value"] = draw(st.sampled_from(choices))


def _converts(dtype: Any) -> bool:
    """Return True if a Python number converts to certain bits: longdouble has spare padding."""
    return dtype.kind in "iufc" and dtype.char not in "gG"


# --- Shapes

LENGTHS = [1, 2, 3, 4, 2, 3, 5, 0, 1, 8, 17]
LONG = [300, 257, 64]  # more than the core stages or copies together


@st.composite
def _dims(draw: st.DrawFn, rank: int, most: int = 96) -> Shape:
    shape: list[int] = []
    for _ in range(rank):
        room = most // max(1, int(np.prod([max(1, size) for size in shape])))
        shape.append(min(draw(st.sampled_from(LENGTHS)), max(1, room)))
    if shape and draw(st.integers(0, 15)) == 15:
        long = draw(st.integers(0, rank - 1))
        shape = [
            draw(st.sampled_from(LONG)) if d == long else min(n, 2) for d, n in enumerate(shape)
        ]
    return tuple(shape)


@st.composite
def _many_dims(draw: st.DrawFn, low: int, high: int) -> Shape:
    """Draw a shape of many dimensions, nearly all of size 1."""
    shape = [1] * draw(st.sampled_from([high, low, 33, high - 1]))
    for d in draw(st.lists(st.integers(0, len(shape) - 1), max_size=5)):
        shape[d] = draw(st.sampled_from([2, 3, 0]))
    return tuple(shape)


@st.composite
def _shapes(
    draw: st.DrawFn,
    op: str,
    kwargs: dict[str, Any],
    data: Shape | None = None,
    most: int = MOST_DIMENSIONS,
) -> tuple[Shape, Shape, Array, Shape]:
    """Draw the shapes of `data`, `indices` and `updates`, and the size that each index has."""
    many = {31: "data", 30: "indices"}.get(draw(st.integers(0, 31 if most > 32 else 0)))
    row = operators.OPERATORS[op]
    if row.takes_tuples:
        return draw(_nd_shapes(kwargs, data, many is not None))
    if data is None:
        few = draw(st.integers(1, 5))
        data = draw(_many_dims(31, MOST_DIMENSIONS) if many == "data" else _dims(few))
    axis = draw(st.integers(0, len(data) - 1))
    if axis or draw(st.booleans()):
        kwargs[row.attribute] = axis - len(data) if draw(st.booleans()) else axis
    if not row.addressing.shares_back:
        room = MOST_DIMENSIONS + 1 - len(data)
        if many == "indices":
            entries = draw(_many_dims(31, room))
        else:
            entries = draw(_dims(draw(st.integers(0, min(3, room))), 24))
        indices = data[:axis] + entries if row.addressing.shares_front else entries
        moved = data[:axis] + entries + data[axis + 1 :]
    else:
        whole = draw(st.booleans())
        indices = tuple(
            draw(st.sampled_from([4, 1, 2, 6, 0]))
            if d == axis
            else n
            if whole
            else draw(st.integers(min(1, n), n))
            for d, n in enumerate(data)
        )
        moved = indices
    return data, indices, np.broadcast_to(np.int64(data[axis]), indices), moved


@st.composite
def _nd_shapes(
    draw: st.DrawFn, kwargs: dict[str, Any], data: Shape | None, many: bool
) -> tuple[Shape, Shape, Array, Shape]:
    if data is None:
        few = draw(st.sampled_from([2, 3, 1, 4, 5, 0]))
        data = draw(_many_dims(31, MOST_DIMENSIONS) if many else _dims(few))
    b = draw(st.integers(0, min(63 if many else 2, len(data))))
    if b or draw(st.booleans()):
        kwargs["batch_dims"] = b
    most = len(data) - b
    k = draw(st.sampled_from([min(1, most), min(2, most), most, 0]))
    room = MOST_DIMENSIONS - max(b + 1, len(data) - k)
    lead = data[:b] + draw(_dims(draw(st.integers(0, min(2, room))), 12))
    indices = (*lead, k)
    sizes = np.broadcast_to(np.array(data[b : b + k], dtype=np.int64), indices)
    return data, indices, sizes, lead + data[b + k :]


# --- Values


def value_bytes(rng: np.random.Generator, dtype: Any, count: int) -> bytes:
    """Return items of arbitrary bits, at least about half of them special values."""
    rows = rng.integers(0, 256, (count, dtype.itemsize), dtype=np.uint8)
    special = _special_rows(dtype)
    if special is not None and count:
        chosen = rng.random(count) < rng.choice([0.5, 0.9, 1.0])
        rows[chosen] = special[rng.integers(0, len(special), int(chosen.sum()))]
    return rows.tobytes()


@cache
def _special_rows(dtype: Any) -> Array | None:
    """Return the bytes of special values, for which arithmetic or text may fail, if any."""
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return byte_rows(np.array([0, 1, 2, 3, info.max, info.min, info.max - 1], dtype))
    if dtype.kind in "Mm":
        return byte_rows(np.array([0, 1, -1, np.iinfo("i8").min]))
    if dtype.kind == "c":
        parts = _special_floats(np.dtype(f"f{dtype.itemsize // 2}"))
        return np.array([np.concatenate([one, other]) for one in parts for other in parts])
    if dtype in FLOATS or dtype.newbyteorder("=") in FLOATS:
        rows = _special_floats(dtype.newbyteorder("="))
        return rows if dtype.isnative else rows[:, ::-1]
    texts: dict[str, list[Any]] = {
        "b": [0, 1],
        "S": [b"", b"abc", b"a\0b"],
        "U": ["", "\u00e9t\u00e9"],
    }
    return byte_rows(np.array(texts[dtype.kind], dtype)) if dtype.kind in texts else None


def _special_floats(dtype: Any) -> NDArray[np.uint8]:
    """Return zeros, subnormals, bounds, infinities and NaNs of several payloads, in both signs."""
    name = dtype.name
    exponent = {"float16": 0x7C00, "bfloat16": 0x7F80, "float32": 0x7F800000}.get(name, 0x7FF << 52)
    quiet = exponent | (exponent >> 1)
    magnitudes = [0, 1, exponent - 1, exponent, quiet, quiet | 3, exponent | 1]
    sign = 1 << (8 * dtype.itemsize - 1)
    bits = np.array([m | s for m in magnitudes for s in (0, sign)], f"u{dtype.itemsize}")
    plain = np.array([1, 2, 3, -1, 0.5, 2049, -7.25] * 2, np.float32).astype(dtype)
    return np.concatenate([byte_rows(bits), byte_rows(plain)])


@st.composite
def _indices(
    draw: st.DrawFn,
    rng: np.random.Generator,
    shape: Shape,
    sizes: Array,
    *,
    negative: bool,
    invalid: float,
) -> Any:
    dtype = draw(st.sampled_from(INDEX_DTYPES))
    info = np.iinfo(dtype)
    narrow = draw(st.booleans())  # few distinct values and many duplicates
    values = np.empty(shape, dtype=object)
    for position in np.ndindex(shape):
        value = _index(
            rng, int(sizes[position]), info, negative=negative, invalid=invalid, narrow=narrow
        )
        values[position] = value if info.min <= value <= info.max else 0
    array = values.astype(dtype.newbyteorder("=")).astype(dtype)
    if dtype == np.int64 and array.size and draw(st.integers(0, 9)) == 9:
        return array.tolist()
    still = len(shape) - 1 if len(shape) else 0
    return draw(_laid_out(array, stretch=range(still)))


def _index(
    rng: np.random.Generator,
    size: int,
    info: Any,
    *,
    negative: bool,
    invalid: float,
    narrow: bool,
) -> int:
    if rng.random() < invalid:
        return (
            int(rng.choice([size, size + 1, info.max]))
            if rng.random() < 0.5
            else int(rng.choice(np.array([-size - 1, info.min, -1, 2 * size], dtype=object)))
        )
    value = int(rng.integers(0, max(1, min(size, 2) if narrow else size)))
    if rng.random() < 0.2:
        value = max(size - 1, 0)
    return value - size if negative and info.min < 0 and rng.random() < 0.3 else value


# --- Layouts


@st.composite
def _inputs(draw: st.DrawFn, rng: np.random.Generator, shape: Shape, dtype: Any) -> Array:
    items = value_bytes(rng, dtype, int(np.prod(shape, dtype=int)))
    values = np.ndarray(shape, dtype, buffer=np.frombuffer(bytearray(items), np.uint8))
    return draw(_laid_out(values, stretch=range(len(shape))))


@st.composite
def _updates(draw: st.DrawFn, rng: np.random.Generator, shape: Shape, dtype: Any) -> Any:
    """Draw an array that broadcasts to `shape`: usually one of that shape."""
    choice = draw(st.integers(0, 7))
    if choice == 7 and _converts(dtype):
        return draw(st.sampled_from([0, 1, True]))
    if choice >= 5:
        shape = shape[draw(st.integers(0, len(shape))) :]
        shape = tuple(1 if draw(st.booleans()) else size for size in shape)
    return draw(_inputs(rng, shape, dtype))


@st.composite
def _laid_out(draw: st.DrawFn, values: Array, stretch: Sequence[int]) -> Array:
    """Store values in some memory layout with canaries around them.

    Dimensions in `stretch` may be given stride 0.
    """
    if draw(st.integers(0, 2)) == 0:
        array = guarded_copy(values)
    else:
        zero = {d for d in stretch if draw(st.integers(0, 7)) == 7}
        array = draw(_strided(values.shape, values.dtype, zero))
        byte_rows(array, writable=True)[...] = byte_rows(values)
    if draw(st.integers(0, 3)) == 3:
        array.flags.writeable = False
    return array


@st.composite
def _strided(draw: st.DrawFn, shape: Shape, dtype: Any, zero: set[int]) -> Array:
    """Draw an array with gaps, reversed and permuted dimensions, at any address."""
    strides = [0] * len(shape)
    shift = draw(st.sampled_from([0, 0, 1, 3, 8]))
    extent = dtype.itemsize
    order = draw(st.permutations(range(len(shape)))) if draw(st.booleans()) else range(len(shape))
    for d in reversed(order):
        if d in zero or shape[d] == 0:
            continue
        gap = draw(st.sampled_from([0, 0, 0, extent, 1, dtype.itemsize]))
        strides[d] = extent + gap
        if draw(st.integers(0, 3)) == 3:
            strides[d] = -strides[d]
        if shape[d] > 1:  # otherwise no other element is that far away
            extent = abs(strides[d]) * shape[d]
    return guarded(shape, dtype, strides, shift)


@st.composite
def destinations(draw: st.DrawFn, shape: Shape, dtype: Any, contents: Array | None = None) -> Array:
    """Draw memory for `out` of any layout. `contents` fills it with another array's bytes."""
    array = draw(_strided(shape, np.dtype(dtype), set()))
    if contents is not None:
        byte_rows(array, writable=True)[...] = byte_rows(contents)
    return array


# --- Comparisons


def same_bits(one: Array, other: Array) -> bool:
    """Compare dtype, shape and every byte of every item, padding included."""
    return (
        isinstance(one, np.ndarray)
        and isinstance(other, np.ndarray)
        and one.dtype == other.dtype
        and one.shape == other.shape
        and byte_rows(one).tobytes() == byte_rows(other).tobytes()
    )


def outcome(operators: Any, call: Call, **more: Any) -> Array | Exception:
    """Return the result of a call, or the exception of a documented type that it raises."""
    try:
        return call.run(operators, **more)
    except (TypeError, ValueError, IndexError) as error:
        return error


def same_outcome(one: Array | Exception, other: Array | Exception) -> bool:
    """Compare results by bits, exceptions by type, and bad indices also by their numbers."""
    if not isinstance(one, Exception) or not isinstance(other, Exception):
        return same_bits(one, other)  # type: ignore[arg-type]
    if isinstance(one, IndexError):
        return type(one) is type(other) and _numbers(one) == _numbers(other)
    return type(one) is type(other)


def _numbers(error: Exception) -> list[str]:
    return re.findall(r"-?\d+", str(error))
