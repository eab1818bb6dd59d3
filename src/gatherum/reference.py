"""The six operators, and `aggregate`, as plain loops, straight from their definitions.

This is the oracle that the compiled core is tested against. It is slow, it
imports NumPy alone and it shares no code with the rest of the package. Items
are moved as so many plain bytes, because NumPy's own assignment may leave out
the padding of structured items; indices are resolved as Python integers, which
cannot overflow.

The arguments are those of the public functions without `out`, and so are the
exceptions: TypeError for a dtype or a non-integer attribute, ValueError for a
shape or an attribute out of range, IndexError for an index.
"""

import datetime
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "aggregate",
    "gather",
    "gather_elements",
    "gather_nd",
    "scatter_elements",
    "scatter_nd",
    "scatter_slices",
]


def __dir__() -> list[str]:
    return list(__all__)


Array: TypeAlias = NDArray[Any]
DType: TypeAlias = np.dtype[Any]
Position: TypeAlias = tuple[int, ...]
Items: TypeAlias = list[bytes]

MODES = ("raise", "clip", "wrap", "fill", "drop")
REDUCTIONS = ("none", "add", "mul", "max", "min", "mean")
MAX_RANK = 64  # that of NumPy

BOOL, INTEGER, FLOAT, COMPLEX = range(4)  # what kind of number; None is no number

INTEGERS = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
HALVES = frozenset({"float16", "bfloat16"})
FLOATS = frozenset({"float32", "float64"})
COMPLEXES = frozenset({"complex64", "complex128"})


# --- The six operators


def gather(
    data: ArrayLike,
    indices: ArrayLike,
    axis: int = 0,
    *,
    mode: str = "raise",
    negative: bool = True,
    fill_value: Any = 0,
) -> Array:
    """Take the slices of `data` along `axis` that `indices` names.

    ``out[a.., i.., s..] = data[a.., indices[i..], s..]``

    Examples
    --------
    >>> gather([[1, 2], [3, 4], [5, 6]], [2, 0])
    array([[5, 6],
           [1, 2]])
    """
    op = "gather"
    data, indices = _array(op, "data", data), _indices(op, indices)
    axis = _axis(op, axis, data.ndim)
    _check_choice(op, "mode", mode, MODES)
    _check_boolean(op, "negative", negative)
    _check_dtypes(op, data, indices)
    fill = _fill_item(op, fill_value, data.dtype, mode)
    _check_ranks(op, data, indices)
    before, after = data.shape[:axis], data.shape[axis + 1 :]
    out = _blank(op, before + indices.shape + after, data.dtype)

    source = _as_bytes(data)
    resolved = _resolved(op, data, indices, lambda position: axis, mode=mode, negative=negative)
    for a in np.ndindex(before):
        for i in np.ndindex(indices.shape):
            for s in np.ndindex(after):
                valid = resolved[i] is not None
                out[a + i + s] = source[(*a, resolved[i], *s)] if valid else fill
    return _typed(out, data.dtype)


def gather_elements(
    data: ArrayLike,
    indices: ArrayLike,
    axis: int = 0,
    *,
    mode: str = "raise",
    negative: bool = True,
    fill_value: Any = 0,
) -> Array:
    """Take one element of `data` for each element of `indices`.

    ``out[i, j, k] = data[i, indices[i, j, k], k]`` (`axis` 1 shown)

    Examples
    --------
    >>> gather_elements([[1, 2], [3, 4]], [[0, 0], [1, 0]], axis=1)
    array([[1, 1],
           [4, 3]])
    """
    op = "gather_elements"
    data, indices = _array(op, "data", data), _indices(op, indices)
    axis = _axis(op, axis, data.ndim)
    _check_choice(op, "mode", mode, MODES)
    _check_boolean(op, "negative", negative)
    _check_dtypes(op, data, indices)
    fill = _fill_item(op, fill_value, data.dtype, mode)
    _check_ranks(op, data, indices)
    _check_elements(op, data, indices, axis)
    out = _blank(op, indices.shape, data.dtype)

    source = _as_bytes(data)
    resolved = _resolved(op, data, indices, lambda position: axis, mode=mode, negative=negative)
    for p in np.ndindex(indices.shape):
        valid = resolved[p] is not None
        out[p] = source[(*p[:axis], resolved[p], *p[axis + 1 :])] if valid else fill
    return _typed(out, data.dtype)


def gather_nd(
    data: ArrayLike,
    indices: ArrayLike,
    batch_dims: int = 0,
    *,
    mode: str = "raise",
    negative: bool = True,
    fill_value: Any = 0,
) -> Array:
    """Take the sub-arrays of `data` that the rows of `indices` address.

    ``out[b.., i.., s..] = data[b.., *indices[b.., i.., :], s..]``

    Examples
    --------
    >>> gather_nd([[1, 2], [3, 4]], [[0, 1], [1, 0]])
    array([2, 3])
    """
    op = "gather_nd"
    data, indices = _array(op, "data", data), _indices(op, indices)
    b = _batch_dims(op, batch_dims, indices.ndim)
    _check_choice(op, "mode", mode, MODES)
    _check_boolean(op, "negative", negative)
    _check_dtypes(op, data, indices)
    fill = _fill_item(op, fill_value, data.dtype, mode)
    _check_ranks(op, data, indices)
    slice_shape = _nd_slice(op, data, indices, b)
    out = _blank(op, indices.shape[:-1] + slice_shape, data.dtype)

    source = _as_bytes(data)
    resolved = _resolved(
        op, data, indices, lambda position: b + position[-1], mode=mode, negative=negative
    )
    for p in np.ndindex(indices.shape[:-1]):
        address = tuple(resolved[p])
        for s in np.ndindex(slice_shape):
            out[p + s] = fill if None in address else source[p[:b] + address + s]
    return _typed(out, data.dtype)


def scatter_slices(
    data: ArrayLike,
    indices: ArrayLike,
    updates: ArrayLike,
    axis: int = 0,
    *,
    reduction: str = "none",
    include_self: bool = True,
    mode: str = "raise",
    negative: bool = True,
) -> Array:
    """Copy `data` and write to the slices along `axis` that `indices` names.

    ``out = data; out[a.., indices[i..], s..] op= updates[a.., i.., s..]``

    Examples
    --------
    >>> scatter_slices([[1, 2], [3, 4], [5, 6]], [2, 0], [[7, 8], [9, 0]])
    array([[9, 0],
           [3, 4],
           [7, 8]])
    """
    op = "scatter_slices"
    data, indices = _array(op, "data", data), _indices(op, indices)
    axis = _axis(op, axis, data.ndim)
    _check_choice(op, "mode", mode, MODES)
    _check_boolean(op, "negative", negative)
    _check_choice(op, "reduction", reduction, REDUCTIONS)
    _check_boolean(op, "include_self", include_self)
    _check_dtypes(op, data, indices)
    updates = _updates(op, updates, data.dtype)
    _check_reducible(op, data.dtype, reduction)
    _check_ranks(op, data, indices, updates)
    before, after = data.shape[:axis], data.shape[axis + 1 :]
    _check_result_rank(op, len(before + indices.shape + after))
    update_items = _as_bytes(_broadcast(op, updates, before + indices.shape + after))

    resolved = _resolved(op, data, indices, lambda position: axis, mode=mode, negative=negative)
    arrivals: dict[Position, Items] = {}
    for a in np.ndindex(before):
        for i in np.ndindex(indices.shape):
            if resolved[i] is not None:
                for s in np.ndindex(after):
                    item = update_items[a + i + s].tobytes()
                    arrivals.setdefault((*a, int(resolved[i]), *s), []).append(item)
    return _scattered(op, data, arrivals, reduction, include_self)


def scatter_elements(
    data: ArrayLike,
    indices: ArrayLike,
    updates: ArrayLike,
    axis: int = 0,
    *,
    reduction: str = "none",
    include_self: bool = True,
    mode: str = "raise",
    negative: bool = True,
) -> Array:
    """Copy `data` and write one element of `updates` for each of `indices`.

    ``out = data; out[i, indices[i, j, k], k] op= updates[i, j, k]`` (`axis` 1)

    Examples
    --------
    >>> scatter_elements([0, 1, 2, 3, 4], [3, 1, 3, 0], [5, 6, 7, 8])
    array([8, 6, 2, 7, 4])
    """
    op = "scatter_elements"
    data, indices = _array(op, "data", data), _indices(op, indices)
    axis = _axis(op, axis, data.ndim)
    _check_choice(op, "mode", mode, MODES)
    _check_boolean(op, "negative", negative)
    _check_choice(op, "reduction", reduction, REDUCTIONS)
    _check_boolean(op, "include_self", include_self)
    _check_dtypes(op, data, indices)
    updates = _updates(op, updates, data.dtype)
    _check_reducible(op, data.dtype, reduction)
    _check_ranks(op, data, indices, updates)
    _check_elements(op, data, indices, axis)
    update_items = _as_bytes(_broadcast(op, updates, indices.shape))

    resolved = _resolved(op, data, indices, lambda position: axis, mode=mode, negative=negative)
    arrivals: dict[Position, Items] = {}
    for p in np.ndindex(indices.shape):
        if resolved[p] is not None:
            address = (*p[:axis], resolved[p], *p[axis + 1 :])
            arrivals.setdefault(address, []).append(update_items[p].tobytes())
    return _scattered(op, data, arrivals, reduction, include_self)


def scatter_nd(
    data: ArrayLike,
    indices: ArrayLike,
    updates: ArrayLike,
    batch_dims: int = 0,
    *,
    reduction: str = "none",
    include_self: bool = True,
    mode: str = "raise",
    negative: bool = True,
) -> Array:
    """Copy `data` and write to the sub-arrays that the rows of `indices` address.

    ``out = data; out[b.., *indices[b.., i.., :], s..] op= updates[b.., i.., s..]``

    Examples
    --------
    >>> scatter_nd([1, 2, 3, 4], [[3], [1]], [9, 8])
    array([1, 8, 3, 9])
    """
    op = "scatter_nd"
    data, indices = _array(op, "data", data), _indices(op, indices)
    b = _batch_dims(op, batch_dims, indices.ndim)
    _check_choice(op, "mode", mode, MODES)
    _check_boolean(op, "negative", negative)
    _check_choice(op, "reduction", reduction, REDUCTIONS)
    _check_boolean(op, "include_self", include_self)
    _check_dtypes(op, data, indices)
    updates = _updates(op, updates, data.dtype)
    _check_reducible(op, data.dtype, reduction)
    _check_ranks(op, data, indices, updates)
    slice_shape = _nd_slice(op, data, indices, b)
    update_items = _as_bytes(_broadcast(op, updates, indices.shape[:-1] + slice_shape))

    resolved = _resolved(
        op, data, indices, lambda position: b + position[-1], mode=mode, negative=negative
    )
    arrivals: dict[Position, Items] = {}
    for p in np.ndindex(indices.shape[:-1]):
        address = tuple(resolved[p])
        if None not in address:
            for s in np.ndindex(slice_shape):
                item = update_items[p + s].tobytes()
                arrivals.setdefault(p[:b] + address + s, []).append(item)
    return _scattered(op, data, arrivals, reduction, include_self)


def aggregate(
    data: ArrayLike,
    gather_indices: ArrayLike,
    scatter_indices: ArrayLike,
    size: int,
    reduction: str,
    weights: ArrayLike | None = None,
    *,
    mode: str = "raise",
    negative: bool = True,
) -> Array:
    """Reduce rows of `data` into `size` others, edge by edge.

    ``out[scatter_indices[e]] op= data[gather_indices[e]] * weights[e]``

    Examples
    --------
    >>> aggregate([[1, 2], [3, 4]], [0, 1, 1], [1, 1, 0], 3, "add", [1, 1, 10])
    array([[30, 40],
           [ 4,  6],
           [ 0,  0]])
    """
    op = "aggregate"
    _check_choice(op, "reduction", reduction, REDUCTIONS[1:])
    _check_choice(op, "mode", mode, MODES)
    _check_boolean(op, "negative", negative)
    size = operator.index(size)
    if size < 0:
        raise ValueError(f"{op}: `size` must be at least 0, got {size}")
    data = _array(op, "data", data)
    sources, targets = _indices(op, gather_indices), _indices(op, scatter_indices)
    for indices in (sources, targets):
        _check_dtypes(op, data, indices)
    _check_reducible(op, data.dtype, reduction)
    factors = None if weights is None else _updates(op, weights, data.dtype)
    _check_ranks(op, data, sources, targets)
    if targets.shape != sources.shape:
        raise ValueError(f"{op}: shapes of indices {sources.shape} and {targets.shape} differ")
    if factors is not None:
        factors = _broadcast(op, factors, sources.shape)

    rest = data.shape[1:]
    start = _typed(_blank(op, (size, *rest), data.dtype), data.dtype)
    if reduction == "mul":
        start[...] = 1
    come = _resolved(op, data, sources, lambda position: 0, mode=mode, negative=negative)
    go = _resolved(op, start, targets, lambda position: 0, mode=mode, negative=negative)
    rows = _as_bytes(data)
    arrivals: dict[Position, Items] = {}
    for e in np.ndindex(sources.shape):
        if come[e] is None or go[e] is None:
            continue
        for s in np.ndindex(rest):
            item = rows[(come[e], *s)].tobytes()
            if factors is not None:
                item = _folded([item, factors[e].tobytes()], data.dtype, "mul")
            arrivals.setdefault((int(go[e]), *s), []).append(item)
    return _scattered(op, start, arrivals, reduction, False)


# --- Arguments


def _arrays_in(value: Any) -> list[Array]:
    if isinstance(value, list | tuple):
        return [array for item in value for array in _arrays_in(item)]
    return [value] if isinstance(value, np.ndarray) else []


def _array(op: str, operand: str, value: Any) -> Array:
    if any(isinstance(array, np.ma.MaskedArray) for array in _arrays_in(value)):
        raise TypeError(f"{op}: `{operand}` must not be a masked array: its mask would be lost")
    if operand != "updates" and isinstance(value, bytes | str):
        raise TypeError(f"{op}: `{operand}` must be an array, got {type(value).__name__}")
    return np.asarray(value)


def _indices(op: str, value: Any) -> Array:
    array = _array(op, "indices", value)
    if isinstance(value, list | tuple) and _arrays_in(value):
        raise TypeError(f"{op}: `indices` must be one array, got {type(value)} of arrays")
    if isinstance(value, list | tuple) and array.size == 0 and array.dtype.kind == "f":
        return array.astype(np.int64)
    return array


def _updates(op: str, value: Any, dtype: DType) -> Array:
    """Give `updates` as an array: weak scalars and lists in the dtype of `data`."""
    array = _array(op, "updates", value)
    scalar = isinstance(value, bool | int | float | complex | bytes | str | datetime.date)
    scalar = scalar or isinstance(value, datetime.timedelta)
    if isinstance(value, list | tuple) or (scalar and not isinstance(value, np.generic)):
        return _weak(op, value, array.shape, dtype)
    if array.dtype != dtype:
        raise TypeError(f"{op}: `updates` must have the dtype {dtype} of `data`, got {array.dtype}")
    return array


def _weak(op: str, value: Any, shape: Sequence[int], dtype: DType, name: str = "updates") -> Array:
    if dtype.kind == "V" and _kind(dtype) is None:
        try:
            return np.asarray(value, dtype=dtype)  # tuples are records here, not dimensions
        except (TypeError, ValueError, OverflowError):
            raise TypeError(f"{op}: `{name}` must convert to {dtype}, got {value!r}") from None
    leaves = np.asarray(value, dtype=object)
    result = _typed(np.zeros(shape, f"V{dtype.itemsize}"), dtype)
    with np.errstate(all="ignore"):
        for position in np.ndindex(*shape):
            result[position] = _weak_leaf(op, name, leaves[position], dtype)
            if not _stays_finite(leaves[position], result[position], dtype):
                leaf = leaves[position]
                raise ValueError(f"{op}: `{name}` must stay finite in {dtype}, got {leaf!r}")
    return result


def _stays_finite(leaf: Any, item: Any, dtype: DType) -> bool:
    if _kind(dtype) not in (FLOAT, COMPLEX):
        return True
    before, after = complex(leaf), complex(item)
    return all(
        math.isfinite(now) or not math.isfinite(then)
        for then, now in ((before.real, after.real), (before.imag, after.imag))
    )


def _weak_leaf(op: str, name: str, leaf: Any, dtype: DType) -> Any:
    target, kind = _kind(dtype), _kind_of_leaf(leaf)
    if target is None and kind is None:
        own = np.asarray(leaf).dtype
        if "S" in (own.kind, dtype.kind) or "U" in (own.kind, dtype.kind):
            if own.kind != dtype.kind:
                raise TypeError(f"{op}: `{name}` must convert to {dtype}, got {leaf!r}")
            if own.itemsize > max(dtype.itemsize, 4 if own.kind == "U" else 1):
                raise ValueError(f"{op}: `{name}` must fit {dtype}, got {leaf!r}")
        return leaf
    if target is None or kind is None:
        raise TypeError(f"{op}: `{name}` must convert to {dtype}, got {leaf!r}")
    if kind > target:
        raise ValueError(f"{op}: `{name}` must be of the kind of {dtype}, got {leaf!r}")
    if target == INTEGER:
        low, high = _integer_range(dtype)
        if not low <= int(leaf) <= high:
            raise ValueError(f"{op}: `{name}` must fit {dtype}, got {leaf!r}")
    if target >= FLOAT and kind == INTEGER:
        try:
            return float(leaf)
        except OverflowError:
            raise ValueError(f"{op}: `{name}` must stay finite in {dtype}, got {leaf!r}") from None
    return leaf


def _kind(dtype: DType) -> int | None:
    if dtype.kind in "biufc":
        return {"b": BOOL, "i": INTEGER, "u": INTEGER, "f": FLOAT, "c": COMPLEX}[dtype.kind]
    # ml_dtypes reports most of its types as void, but names them after their kind.
    if dtype.name.startswith(("int", "uint")):
        return INTEGER
    if dtype.name.startswith(("float", "bfloat")):
        return FLOAT
    return COMPLEX if dtype.name.startswith(("complex", "bcomplex")) else None


def _kind_of_leaf(leaf: Any) -> int | None:
    if type(leaf) is int:
        return INTEGER  # NumPy has no dtype for one of more than 64 bits
    array = np.asarray(leaf)
    return _kind(array.dtype) if array.ndim == 0 else None


def _integer_range(dtype: DType) -> tuple[int, int]:
    bits = int(dtype.name.lstrip("uint"))
    return (0, 2**bits - 1) if dtype.name[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _axis(op: str, axis: Any, rank: int) -> int:
    axis = operator.index(axis)
    if rank == 0:
        return 0  # _check_ranks refuses it, after the dtypes
    if not -rank <= axis < rank:
        raise ValueError(f"{op}: `axis` must be in [{-rank}, {rank}), got {axis}")
    return int(axis + rank if axis < 0 else axis)


def _batch_dims(op: str, batch_dims: Any, rank: int) -> int:
    batch_dims = operator.index(batch_dims)
    if rank == 0:
        return 0  # _check_ranks refuses it, after the dtypes
    if not 0 <= batch_dims < rank:
        raise ValueError(f"{op}: `batch_dims` must be in [0, {rank}), got {batch_dims}")
    return int(batch_dims)


def _check_choice(op: str, name: str, value: Any, choices: Sequence[str]) -> None:
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{op}: `{name}` must be one of {', '.join(choices)}, got {value!r}")


def _check_boolean(op: str, name: str, value: Any) -> None:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{op}: `{name}` must be True or False, got {value!r}")


def _check_dtypes(op: str, data: Array, indices: Array) -> None:
    if data.dtype.hasobject:
        raise TypeError(f"{op}: `data` must not hold references, got {data.dtype}")
    if indices.dtype.kind not in "iu":
        raise TypeError(f"{op}: `indices` must have an integer dtype, got {indices.dtype}")


def _check_reducible(op: str, dtype: DType, reduction: str) -> None:
    if reduction == "none":
        return
    allowed = INTEGERS | HALVES | FLOATS
    if reduction in ("add", "mul", "mean"):
        allowed |= COMPLEXES
    if reduction != "mean":
        allowed |= {"bool"}
    if dtype.name not in allowed or not dtype.isnative:
        raise TypeError(f"{op}: `data` of dtype {dtype} does not reduce with {reduction!r}")


def _check_ranks(op: str, *operands: Array) -> None:
    for name, operand in zip(("data", "indices", "updates"), operands, strict=False):
        if operand.ndim > MAX_RANK:
            raise ValueError(f"{op}: `{name}` must have rank 0 to {MAX_RANK}, got {operand.ndim}")
    if operands[1 if op.endswith("_nd") else 0].ndim == 0:
        raise ValueError(f"{op}: there is no dimension to index or to tell tuples apart")


def _check_elements(op: str, data: Array, indices: Array, axis: int) -> None:
    if indices.ndim != data.ndim:
        raise ValueError(f"{op}: `indices` must have rank {data.ndim}, got {indices.ndim}")
    for d in range(data.ndim):
        if d != axis and indices.shape[d] > data.shape[d]:
            raise ValueError(
                f"{op}: `indices` must have at most {data.shape[d]} positions in dimension {d}, "
                f"got {indices.shape[d]}"
            )


def _nd_slice(op: str, data: Array, indices: Array, b: int) -> Position:
    """Check the shapes of an nd operator and give the shape of one slice."""
    if indices.shape[:b] != data.shape[:b]:
        raise ValueError(
            f"{op}: `indices` must have the batch shape {data.shape[:b]}, got {indices.shape[:b]}"
        )
    k = indices.shape[-1]
    if k > data.ndim - b:
        raise ValueError(f"{op}: `indices` must have tuples of at most {data.ndim - b}, got {k}")
    _check_result_rank(op, indices.ndim - 1 + data.ndim - b - k)
    return data.shape[b + k :]


def _check_result_rank(op: str, rank: int) -> None:
    if rank > MAX_RANK:
        raise ValueError(f"{op}: the result must have rank 0 to {MAX_RANK}, got {rank}")


def _broadcast(op: str, updates: Array, shape: Position) -> Array:
    lined_up = (1,) * (len(shape) - updates.ndim) + updates.shape
    stretches = (have in (want, 1) for have, want in zip(lined_up, shape, strict=False))
    if len(lined_up) != len(shape) or not all(stretches):
        raise ValueError(f"{op}: `updates` must have shape {shape}, got {updates.shape}")
    return np.broadcast_to(updates, shape)


# --- Index values


def _resolved(
    op: str,
    data: Array,
    indices: Array,
    axis_at: Callable[[Position], int],
    *,
    mode: str,
    negative: bool,
) -> Array:
    """Resolve every element of `indices` to a position, or None to skip it."""
    resolved = np.empty(indices.shape, dtype=object)
    for position in np.ndindex(indices.shape):
        axis = axis_at(position)
        value, size = int(indices[position]), data.shape[axis]
        place = _resolve(value, size, mode, negative)
        if place is None and mode not in ("fill", "drop"):
            where = ", ".join(map(str, position))
            raise IndexError(
                f"{op}: index {value} is out of bounds for axis {axis} of size {size} "
                f"(indices[{where}])"
            )
        resolved[position] = place
    return resolved


def _resolve(value: int, size: int, mode: str, negative: bool) -> int | None:
    if negative and -size <= value < 0:
        value += size
    if 0 <= value < size:
        return value
    if mode == "clip" and size > 0:
        return 0 if value < 0 else size - 1
    if mode == "wrap" and size > 0:
        return value % size
    return None


# --- Items as bytes


class _Bytes:
    """The memory of an array, seen as items of plain bytes."""

    def __init__(self, array: Array) -> None:
        self.owner = array
        self.__array_interface__ = {
            "version": 3,
            "typestr": f"|V{array.dtype.itemsize}",
            "data": (array.__array_interface__["data"][0], True),
            "shape": array.shape,
            "strides": array.strides,
        }


def _as_bytes(array: Array) -> Array:
    return np.asarray(_Bytes(array))


def _blank(op: str, shape: Position, dtype: DType) -> Array:
    """Make the items of a result, all zero."""
    _check_result_rank(op, len(shape))
    nbytes = dtype.itemsize
    for size in shape:
        nbytes *= max(size, 1)  # NumPy bounds the other dimensions of an empty array, too
    if nbytes > np.iinfo(np.intp).max:
        raise ValueError(f"{op}: the result of shape {shape} is too large for an address")
    return np.zeros(shape, f"V{dtype.itemsize}")


def _typed(items: Array, dtype: DType) -> Array:
    return np.ndarray(items.shape, dtype, buffer=items)


def _fill_item(op: str, fill_value: Any, dtype: DType, mode: str) -> Array:
    """Give the bytes that an invalid index reads; the other modes never look at it."""
    blank = np.zeros((), f"V{dtype.itemsize}")
    if isinstance(fill_value, np.ndarray) and fill_value.ndim == 0:
        fill_value = fill_value[()]
    zero = isinstance(fill_value, bool | int | np.bool_ | np.integer) and fill_value == 0
    if zero or mode not in ("fill", "drop"):
        return blank
    if isinstance(fill_value, np.generic) and fill_value.dtype == dtype:
        return _as_bytes(np.asarray(fill_value))
    item = _typed(blank, dtype)
    value, target, kind = fill_value, _kind(dtype), _kind_of_leaf(fill_value)
    if target is not None and type(value) in (bool, int, float, complex):
        item[()] = _weak(op, value, (), dtype, "fill_value")[()]
        return blank
    if kind == COMPLEX and target in (BOOL, INTEGER, FLOAT) and value.imag == 0:
        value = value.real
    try:
        if target == FLOAT and kind == INTEGER and dtype.kind == "V":
            value = float(value)  # ml_dtypes takes no integer above 2^63
        with np.errstate(all="ignore"):
            item[()] = value
    except (TypeError, ValueError, OverflowError, RuntimeError):  # a date in too short a string
        exact = False
    else:
        record = isinstance(fill_value, tuple) and dtype.names is not None
        exact = (record or np.ndim(fill_value) == 0) and _same_value(item, fill_value)
    if not exact:
        raise ValueError(f"{op}: `fill_value` must convert exactly to {dtype}, got {fill_value!r}")
    return blank


def _same_value(item: Array, value: Any) -> bool:
    target, kind = _kind(item.dtype), _kind_of_leaf(value)
    if target is not None and kind is not None:
        pairs = zip(_parts(item[()], target), _parts(value, kind), strict=True)
        return all(_same_number(have, want) for have, want in pairs)
    if target is not None or kind is not None:
        return False
    have = item.item() if item.dtype.kind == "V" else item[()]
    dates = isinstance(value, np.datetime64 | np.timedelta64) and item.dtype.kind in "mM"
    return bool(have == value or (dates and np.isnat(have) and np.isnat(value)))


def _parts(value: Any, kind: int) -> tuple[Any, Any]:
    """Give the real and imaginary part as numbers that compare without rounding."""
    if kind == COMPLEX:
        return _parts(value.real, FLOAT)[0], _parts(value.imag, FLOAT)[0]
    if kind < FLOAT:
        return int(value), 0
    return (value if isinstance(value, np.longdouble) else float(value)), 0


def _same_number(have: Any, want: Any) -> bool:
    if all(isinstance(number, int) or np.isfinite(number) for number in (have, want)):
        return bool(have.as_integer_ratio() == want.as_integer_ratio())
    return bool(have == want) or (_is_nan(have) and _is_nan(want))


def _is_nan(number: Any) -> bool:
    return not isinstance(number, int) and bool(np.isnan(number))


# --- Reductions


def _scattered(
    op: str, data: Array, arrivals: dict[Position, Items], reduction: str, include_self: bool
) -> Array:
    """Copy `data` and let the updates that arrive at each element join it, in their order."""
    out = np.array(_as_bytes(data), order="C")
    for address, items in arrivals.items():
        if reduction == "none":
            item = items[-1]
        elif include_self:
            item = _folded([out[address].tobytes(), *items], data.dtype, reduction)
        else:
            item = _folded(items, data.dtype, reduction)
        out[address] = np.void(item)
    return _typed(out, data.dtype)


def _folded(items: Items, dtype: DType, reduction: str) -> bytes:
    """Fold items from the left; what meets no operation keeps its bits."""
    if len(items) == 1 and reduction != "mean":
        return items[0]
    if dtype.name == "bool":
        truths = [item != b"\0" for item in items]
        return bytes([any(truths) if reduction in ("add", "max") else all(truths)])
    values = list(np.frombuffer(b"".join(items), dtype=dtype))
    if dtype.name in INTEGERS:
        return _folded_integers([int(value) for value in values], dtype, reduction)
    with np.errstate(all="ignore"):
        if dtype.name in COMPLEXES:
            return _folded_complex(values, reduction)
        if dtype.name in HALVES:
            values = [np.float32(value) for value in values]
        return _canonical(_folded_floats(values, reduction), dtype)


def _folded_integers(values: list[int], dtype: DType, reduction: str) -> bytes:
    """Compute without bounds and wrap at the end, which equals wrapping at each step."""
    signed = dtype.kind == "i"
    if reduction == "mean":
        result = _wrapped(sum(values), 64, signed) // len(values)
    elif reduction == "add":
        result = sum(values)
    elif reduction == "mul":
        result = math.prod(values)
    else:
        result = max(values) if reduction == "max" else min(values)
    return np.array(_wrapped(result, 8 * dtype.itemsize, signed), dtype=dtype).tobytes()


def _wrapped(value: int, bits: int, signed: bool) -> int:
    value %= 2**bits
    return value - 2**bits if signed and value >= 2 ** (bits - 1) else value


def _folded_floats(values: list[Any], reduction: str) -> Any:
    total = values[0]
    for value in values[1:]:
        if reduction in ("add", "mean"):
            total = total + value
        elif reduction == "mul":
            total = total * value
        else:
            total = _extreme(total, value, largest=reduction == "max")
    return total / type(total)(len(values)) if reduction == "mean" else total


def _extreme(one: Any, other: Any, largest: bool) -> Any:
    """IEEE 754-2019 maximum or minimum: NaN wins, and -0 is below +0."""
    if np.isnan(one) or np.isnan(other):
        return one if np.isnan(one) else other
    if one == other:
        return one if np.signbit(one) != largest else other
    return one if (one > other) == largest else other


def _folded_complex(values: list[Any], reduction: str) -> bytes:
    """Each operation stands alone in the component type: none is fused, none is wider."""
    real, imag = values[0].real, values[0].imag
    for value in values[1:]:
        if reduction == "mul":
            ac, bd = real * value.real, imag * value.imag
            ad, bc = real * value.imag, imag * value.real
            real, imag = ac - bd, ad + bc
        else:
            real, imag = real + value.real, imag + value.imag
    if reduction == "mean":
        count = type(real)(len(values))
        real, imag = real / count, imag / count
    return _canonical(real, real.dtype) + _canonical(imag, imag.dtype)


def _canonical(value: Any, dtype: DType) -> bytes:
    """Round to `dtype` once; every NaN becomes the quiet one of sign 0 and payload 0."""
    return np.array(np.float32("nan") if np.isnan(value) else value).astype(dtype).tobytes()
