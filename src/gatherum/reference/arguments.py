"""Convert and check the arguments of a call."""

import datetime
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from .items import MAX_RANK, Array, DType, Position, check_result_rank
from .positions import MODES
from .reductions import REDUCTIONS
from .scalars import as_weak


def _arrays_in(value: Any) -> list[Array]:
    if isinstance(value, list | tuple):
        return [array for item in value for array in _arrays_in(item)]
    converts = hasattr(value, "__array__") and not isinstance(value, np.generic)
    return [np.asanyarray(value)] if converts else []


def as_array(op: str, operand: str, value: Any) -> Array:
    """Convert an operand to an array, or raise TypeError for masked arrays and strings."""
    if any(isinstance(array, np.ma.MaskedArray) for array in _arrays_in(value)):
        raise TypeError(f"{op}: `{operand}` must not be a masked array: its mask would be lost")
    if operand != "updates" and isinstance(value, bytes | str):
        raise TypeError(f"{op}: `{operand}` must be an array, got {type(value).__name__}")
    return np.asarray(value)


def as_indices(op: str, value: Any) -> Array:
    """Convert `indices` to an array. An empty list becomes int64."""
    array = as_array(op, "indices", value)
    if isinstance(value, list | tuple) and _arrays_in(value):
        raise TypeError(f"{op}: `indices` must be one array, got {type(value)} of arrays")
    if isinstance(value, list | tuple) and array.size == 0 and array.dtype.kind == "f":
        return array.astype(np.int64)
    return array


def as_updates(op: str, value: Any, dtype: DType) -> Array:
    """Convert `updates` to an array. Weak scalars and lists get the dtype of `data`."""
    array = as_array(op, "updates", value)
    scalar = isinstance(value, bool | int | float | complex | bytes | str | datetime.date)
    scalar = scalar or isinstance(value, datetime.timedelta)
    if isinstance(value, list | tuple) or (scalar and not isinstance(value, np.generic)):
        return as_weak(op, value, array.shape, dtype)
    if array.dtype != dtype:
        raise TypeError(f"{op}: `updates` must have the dtype {dtype} of `data`, got {array.dtype}")
    return array


def as_axis(op: str, axis: Any, rank: int) -> int:
    """Return `axis` as a nonnegative integer."""
    axis = operator.index(axis)
    if rank == 0:
        return 0  # check_ranks raises for it, after the checks of dtypes
    if not -rank <= axis < rank:
        raise ValueError(f"{op}: `axis` must be in [{-rank}, {rank}), got {axis}")
    return int(axis + rank if axis < 0 else axis)


def as_batch_dims(op: str, batch_dims: Any, rank: int) -> int:
    """Convert `batch_dims` to an integer, or raise ValueError if it is out of range."""
    batch_dims = operator.index(batch_dims)
    if rank == 0:
        return 0  # check_ranks raises for it, after the checks of dtypes
    if not 0 <= batch_dims < rank:
        raise ValueError(f"{op}: `batch_dims` must be in [0, {rank}), got {batch_dims}")
    return int(batch_dims)


def check_choice(op: str, name: str, value: Any, choices: Sequence[str]) -> None:
    """Raise ValueError for a string that is not one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{op}: `{name}` must be one of {', '.join(choices)}, got {value!r}")


def check_boolean(op: str, name: str, value: Any) -> None:
    """Raise TypeError for values other than True and False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{op}: `{name}` must be True or False, got {value!r}")


def check_bounds(op: str, mode: Any, negative: Any) -> None:
    """Check the arguments that decide which indices are valid."""
    check_choice(op, "mode", mode, MODES)
    check_boolean(op, "negative", negative)


def check_fold(op: str, reduction: Any, include_self: Any) -> None:
    """Check the arguments that decide how updates combine."""
    check_choice(op, "reduction", reduction, REDUCTIONS)
    check_boolean(op, "include_self", include_self)


def check_dtypes(op: str, data: Array, indices: Array) -> None:
    """Raise TypeError for items that hold references, and for non-integer indices."""
    if data.dtype.hasobject:
        raise TypeError(f"{op}: `data` must not hold references, got {data.dtype}")
    if data.dtype.kind in "mM" and np.datetime_data(data.dtype)[1] == 0:
        raise TypeError(f"{op}: `data` must have datetimes in steps of at least 1")
    if indices.dtype.kind not in "iu":
        raise TypeError(f"{op}: `indices` must have an integer dtype, got {indices.dtype}")


def check_ranks(op: str, *operands: Array) -> None:
    """Raise ValueError for more dimensions than NumPy supports, and for too few to index."""
    for name, operand in zip(("data", "indices", "updates"), operands, strict=False):
        if operand.ndim > MAX_RANK:
            raise ValueError(f"{op}: `{name}` must have rank 0 to {MAX_RANK}, got {operand.ndim}")
    if operands[1 if op.endswith("_nd") else 0].ndim == 0:
        raise ValueError(f"{op}: there is no dimension to index or to hold tuples")


def check_elements(op: str, data: Array, indices: Array, axis: int) -> None:
    """Raise ValueError if `indices` exceed `data` in a dimension that is not indexed."""
    if indices.ndim != data.ndim:
        raise ValueError(f"{op}: `indices` must have rank {data.ndim}, got {indices.ndim}")
    for d in range(data.ndim):
        if d != axis and indices.shape[d] > data.shape[d]:
            raise ValueError(
                f"{op}: `indices` must have at most {data.shape[d]} positions in dimension {d}, "
                f"got {indices.shape[d]}"
            )


def nd_slice(op: str, data: Array, indices: Array, b: int) -> Position:
    """Check the shapes of an nd operator. Return the shape of one slice."""
    if indices.shape[:b] != data.shape[:b]:
        raise ValueError(
            f"{op}: `indices` must have the batch shape {data.shape[:b]}, got {indices.shape[:b]}"
        )
    k = indices.shape[-1]
    if k > data.ndim - b:
        raise ValueError(f"{op}: `indices` must have tuples of at most {data.ndim - b}, got {k}")
    check_result_rank(op, indices.ndim - 1 + data.ndim - b - k)
    return data.shape[b + k :]


def broadcast(op: str, updates: Array, shape: Position) -> Array:
    """Broadcast `updates` to the shape that the operator writes."""
    lined_up = (1,) * (len(shape) - updates.ndim) + updates.shape
    stretches = (have in (want, 1) for have, want in zip(lined_up, shape, strict=False))
    if len(lined_up) != len(shape) or not all(stretches):
        raise ValueError(f"{op}: `updates` must have shape {shape}, got {updates.shape}")
    return np.broadcast_to(updates, shape)
