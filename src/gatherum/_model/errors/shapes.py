"""The error messages of calls about ranks, shapes, sizes and strides."""

from __future__ import annotations

from typing import Any

from .audience import advice, hint
from .texts import Shape, short


def _tuple_of_each() -> str:
    return hint("indices[:, None] makes a tuple of each index")


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


def tuple_too_long(op: str, limit: int, found: int, alone: bool) -> ValueError:
    return ValueError(
        f"{op}: the last dimension of `indices` must be at most {limit}, "
        f"the dimensions of `data` that are not batch dimensions, got {found}"
        f"{_tuple_of_each() if alone else ''}"
    )


def other_shape(op: str, operand: str, expected: Shape, found: Shape) -> ValueError:
    return ValueError(f"{op}: `{operand}` must have shape {expected}, got {found}")


def other_shape_of_one_tuple(op: str, expected: Shape, found: Shape) -> ValueError:
    return ValueError(f"{op}: `updates` must have shape {expected}, got {found}{_tuple_of_each()}")


def other_shape_than_indices(op: str, expected: Shape, found: Shape, slices: bool) -> ValueError:
    instead = ", or call scatter_slices with indices.ravel()" if slices else ""
    suffix = hint(
        f"write {advice('np', 'torch')}.broadcast_to(indices, {found}) for an index for each"
        f"{instead}"
    )
    if not suffix and slices:
        suffix = "; scatter-slices takes a slice for each index"
    return ValueError(
        f"{op}: `updates` must have the shape of `indices`, {expected}, got {found}{suffix}"
    )


def result_too_big(op: str, shape: Shape, dtype: Any) -> ValueError:
    return _too_big(op, f"the result, shape {shape} of dtype {dtype}", dtype.itemsize)


def operand_too_big(op: str, operand: str, shape: Shape, itemsize: int) -> ValueError:
    return _too_big(op, f"`{operand}`, shape {shape}", itemsize)


def _too_big(op: str, subject: str, itemsize: int) -> ValueError:
    unit_name = "bytes" if itemsize else "elements"
    return ValueError(f"{op}: {subject}, has more {unit_name} than can be addressed")


def not_a_shape(op: str, name: str, value: object) -> TypeError:
    return TypeError(f"{op}: `{name}` must be a tuple of integers, got {short(value)}")


def not_axes(op: str, value: object) -> TypeError:
    return TypeError(
        f"{op}: `axes` must be a sequence of integers or names of dimensions, got {short(value)}"
    )


def too_small(op: str, name: str, least: int, value: int) -> ValueError:
    return ValueError(f"{op}: `{name}` must be at least {least}, got {value}")


def negative_size(op: str, name: str, shape: Shape) -> ValueError:
    return ValueError(f"{op}: `{name}` must have sizes of at least 0, got {shape}")


def other_strides(op: str, operand: str, rank: int, strides: object) -> ValueError:
    return ValueError(
        f"{op}: `{operand}` must have {rank} strides, one for each dimension, that stay within the "
        f"address space, got {short(strides)}"
    )
