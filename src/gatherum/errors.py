"""Every sentence that the operators can answer with, worded once.

Each function returns the exception to raise: operator, operand, what was expected, what came,
where.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

Shape = tuple[int, ...]


def _choices(values: Iterable[str]) -> str:
    return ", ".join(repr(value) for value in values)


def unknown_operator(op: object, operators: Sequence[str], caller: str = "plan") -> ValueError:
    return ValueError(f"{caller}: `op` must be one of {_choices(operators)}, got {op!r}")


def unknown_attribute(op: str, name: str, names: Sequence[str]) -> TypeError:
    return TypeError(f"{op}: unknown attribute {name!r}; it takes {_choices(names)}")


def not_an_integer(op: str, name: str, value: object) -> TypeError:
    return TypeError(f"{op}: `{name}` must be an integer, got {value!r}")


def not_one_of(op: str, name: str, value: object, choices: Sequence[str]) -> ValueError:
    return ValueError(f"{op}: `{name}` must be one of {_choices(choices)}, got {value!r}")


def out_of_range(op: str, name: str, value: int, low: int, high: int) -> ValueError:
    return ValueError(f"{op}: `{name}` must be in [{low}, {high}), got {value}")


def not_an_array(op: str, operand: str, why: object) -> ValueError:
    return ValueError(f"{op}: `{operand}` cannot be converted to an array: {why}")


def masked_array(op: str, operand: str) -> TypeError:
    return TypeError(f"{op}: `{operand}` must not be a masked array, its mask would be lost")


def objects(op: str, operand: str, dtype: np.dtype[Any]) -> TypeError:
    return TypeError(
        f"{op}: `{operand}` must have a dtype without objects or references, got {dtype}"
    )


def not_an_index_dtype(op: str, dtype: np.dtype[Any]) -> TypeError:
    return TypeError(f"{op}: `indices` must have an integer dtype, got {dtype}")


def other_dtype(op: str, operand: str, expected: np.dtype[Any], found: np.dtype[Any]) -> TypeError:
    return TypeError(f"{op}: `{operand}` must have the dtype of `data`, {expected}, got {found}")


def loses_kind(op: str, expected: np.dtype[Any], value: object) -> TypeError:
    return TypeError(
        f"{op}: `updates` must convert to the dtype of `data`, {expected}, without loss of kind, "
        f"got {_short(value)}"
    )


def does_not_fit(op: str, operand: str, dtype: np.dtype[Any], value: object) -> ValueError:
    return ValueError(
        f"{op}: `{operand}` must convert exactly to the dtype of `data`, {dtype}, "
        f"got {_short(value)}"
    )


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def not_reducible(op: str, reduction: str, dtype: np.dtype[Any]) -> TypeError:
    return TypeError(f"{op}: `reduction` {reduction!r} is not defined for dtype {dtype}")


def too_few_dimensions(op: str, operand: str, found: int) -> ValueError:
    return ValueError(f"{op}: `{operand}` must have at least 1 dimension, got {found}")


def too_many_dimensions(op: str, operand: str, limit: int, found: int) -> ValueError:
    return ValueError(f"{op}: {operand} must have at most {limit} dimensions, got {found}")


def other_rank(op: str, expected: int, found: int) -> ValueError:
    return ValueError(
        f"{op}: `indices` must have as many dimensions as `data`, {expected}, got {found}"
    )


def larger_than_data(op: str, dimension: int, size: int, found: int) -> ValueError:
    return ValueError(
        f"{op}: `indices` must have at most the size of `data`, {size}, on dimension {dimension}, "
        f"got {found}"
    )


def other_batch_shape(op: str, expected: Shape, found: Shape) -> ValueError:
    return ValueError(
        f"{op}: `indices` must have the batch dimensions of `data`, {expected}, got {found}"
    )


def tuple_too_long(op: str, limit: int, found: int) -> ValueError:
    return ValueError(
        f"{op}: the last dimension of `indices` must be at most {limit}, "
        f"the dimensions of `data` that are not batch dimensions, got {found}"
    )


def other_shape(op: str, operand: str, expected: Shape, found: Shape) -> ValueError:
    return ValueError(f"{op}: `{operand}` must have shape {expected}, got {found}")


def result_too_big(op: str, shape: Shape, dtype: np.dtype[Any]) -> ValueError:
    return ValueError(
        f"{op}: the result, shape {shape} of dtype {dtype}, has more bytes than can be addressed"
    )


def operand_too_big(op: str, operand: str, shape: Shape) -> ValueError:
    return ValueError(f"{op}: `{operand}`, shape {shape}, has more elements than can be addressed")


def not_a_shape(op: str, name: str, value: object) -> TypeError:
    return TypeError(f"{op}: `{name}` must be a tuple of integers, got {value!r}")


def negative_size(op: str, name: str, shape: Shape) -> ValueError:
    return ValueError(f"{op}: `{name}` must have sizes of at least 0, got {shape}")


def other_strides(op: str, operand: str, rank: int, strides: object) -> ValueError:
    return ValueError(
        f"{op}: `{operand}` must have {rank} strides, one for each dimension, whose reach can be "
        f"addressed, got {strides!r}"
    )


def not_an_operand(op: str, operand: str, value: object) -> TypeError:
    return TypeError(
        f"{op}: `{operand}` must be a numpy.ndarray without a mask, got {type(value).__name__}"
    )


def out_not_an_array(op: str, out: object) -> TypeError:
    return TypeError(f"{op}: `out` must be a numpy.ndarray, got {type(out).__name__}")


def out_read_only(op: str) -> ValueError:
    return ValueError(f"{op}: `out` must be writable, got a read-only array")


def out_overlaps(op: str, operand: str) -> ValueError:
    return ValueError(f"{op}: `out` must not share memory with `{operand}`")


def out_overlaps_itself(op: str, shape: Shape, strides: Shape) -> ValueError:
    return ValueError(
        f"{op}: `out` must not overlap itself, got shape {shape} with strides {strides}"
    )


def operand_changed(op: str, operand: str) -> ValueError:
    return ValueError(f"{op}: `{operand}` must keep its shape and memory during the call")


def _where(position: Shape) -> str:
    return f"indices[{', '.join(map(str, position))}]" if position else "indices"


def index_out_of_bounds(
    op: str, value: int, axis: int, size: int, position: Shape | None, mode: str
) -> IndexError:
    """Name the first bad index; `position` is None when another thread changed it meanwhile."""
    if position is None:
        return IndexError(f"{op}: an index was invalid, but `indices` changed during the call")
    if mode in ("clip", "wrap"):
        problem = f"cannot be brought into axis {axis} of size {size} by mode {mode!r}"
    else:
        problem = f"is out of bounds for axis {axis} of size {size}"
    return IndexError(f"{op}: index {value} {problem} ({_where(position)})")


def other_layout(op: str, operand: str, expected: object, found: object) -> ValueError:
    return ValueError(f"{op}: the plan was made for `{operand}` {expected}, got {found}")
