"""Check shapes, strides and their limits. src/core/model/shape_rules.hpp defines the rules.

The rules follow the ONNX operators Gather 13, GatherElements 13, GatherND 13, ScatterElements 18
and ScatterND 18. The documentation defines the cases that ONNX leaves undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gatherum import _core

from . import errors
from .errors import Shape

# The most dimensions of an operand or a result. NumPy has the same limit. In the core it is
# kMaxLoops (model/nest.hpp), because a nest may have one loop for each dimension of a result.
MAX_RANK = 64
MAX_BYTES = int(np.iinfo(np.intp).max)


# Functions that decide conditions on the sizes of a traced graph, by the type of the condition.
_DECIDE: dict[type, Callable[[Any], bool]] = {}


def register_conditions(condition_type: type, decide: Callable[[Any], bool]) -> None:
    """Register the function that decides conditions on a framework's symbolic sizes."""
    _DECIDE[condition_type] = decide


def holds(condition: Any) -> bool:
    """Return True if a condition on sizes holds.

    If a condition cannot be decided during tracing, return True; the condition is then checked when
    the graph runs.
    """
    return _DECIDE.get(type(condition), bool)(condition)


class OperandLayout(NamedTuple):
    """The shape and byte strides of one operand."""

    shape: Shape
    strides: Shape

    @classmethod
    def contiguous(cls, shape: Shape, itemsize: int) -> OperandLayout:
        """Return the layout of a shape in C order."""
        return cls(shape, contiguous_strides(shape, itemsize))


def check_rank(op: str, subject: str, rank: int) -> None:
    """Raise ValueError if a rank exceeds the maximum for operands and results."""
    if rank > MAX_RANK:
        raise errors.too_many_dimensions(op, subject, MAX_RANK, rank)


def check_size(op: str, operand: str, shape: Shape, itemsize: int) -> None:
    """Raise ValueError if an operand has more bytes than can be addressed.

    If the itemsize is 0, the limit applies to the number of elements: NumPy allows this itemsize,
    and reports pass it because they know only shapes.
    """
    if prod(max(n, 1) for n in shape) * max(itemsize, 1) > MAX_BYTES:
        raise errors.operand_too_big(op, operand, shape, itemsize)


def resolve_axis(op: str, data: Shape, axis: int, operand: str = "data") -> int:
    """Return `axis` as a nonnegative number. `operand` is the name of the data in errors."""
    rank = len(data)
    if rank == 0:
        raise errors.too_few_dimensions(op, operand, 0)
    if not -rank <= axis < rank:
        raise errors.out_of_range(op, "axis", axis, -rank, rank)
    return axis % rank


def check_batch_dims(op: str, indices: Shape, batch_dims: int) -> int:
    """Check that `batch_dims` is nonnegative and excludes the tuple dimension; return it."""
    rank = len(indices)
    if rank == 0:
        raise errors.too_few_dimensions(op, "indices", 0)
    if not 0 <= batch_dims < rank:
        raise errors.out_of_range(op, "batch_dims", batch_dims, 0, rank)
    return batch_dims


# A fault that the core found: its name, the operand, a dimension, the expected and the actual
# number, and the expected shape.
Fault: TypeAlias = tuple[str, str, int, int, int, Shape]


def misfit(op: str, fault: Fault, data: Shape, indices: Shape) -> ValueError:
    """Create the error for data and indices whose sizes do not fit each other."""
    problem, _, dimension, expected, actual, _ = fault
    if problem == "other_rank":
        return errors.other_rank(op, expected, actual)
    if problem == "larger_than_data":
        return errors.larger_than_data(op, dimension, data[dimension], indices[dimension])
    if problem == "other_batch_shape":
        return errors.other_batch_shape(op, data[:expected], indices[:expected])
    return errors.tuple_too_long(op, expected, actual, len(indices) == 1)


def check_result(op: str, shape: Shape, dtype: Any) -> None:
    """Raise ValueError if no array can hold the result."""
    check_rank(op, "the result", len(shape))
    size = max(dtype.itemsize, 1)
    for extent in shape:
        size *= max(extent, 1)
    if size > MAX_BYTES:
        raise errors.result_too_big(op, shape, dtype)


def broadcasts(
    shape: Sequence[Any], expected: Sequence[Any], decide: Callable[[Any], bool] = holds
) -> bool:
    """Return True if a shape broadcasts to another one by NumPy's rule.

    The core implements the rule for calls (shape_rules.cpp). Here, sizes may be symbols, and Dynamo
    cannot trace into the core.
    """
    missing = len(expected) - len(shape)
    return missing >= 0 and all(
        decide(extent == want) or decide(extent == 1)
        for extent, want in zip(shape, expected[missing:], strict=True)
    )


def broadcast_strides(
    op: str, operand: str, shape: Shape, strides: Shape, expected: Shape
) -> Shape:
    """Return the strides that broadcast an operand to the expected shape by NumPy's rule."""
    if not broadcasts(shape, expected):
        raise errors.other_shape(op, operand, expected, shape)
    missing = len(expected) - len(shape)
    stretched = [0] * missing
    for extent, stride, want in zip(shape, strides, expected[missing:], strict=True):
        stretched.append(stride if extent == want else 0)
    return tuple(stretched)


def contiguous_strides(shape: Shape, itemsize: int) -> Shape:
    """Return the byte strides of a C-contiguous array."""
    strides: list[int] = []
    step = itemsize
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def coordinates_of(position: int, shape: Shape) -> Shape:
    """Convert a row-major item number to the item's coordinates in a shape."""
    return tuple(int(n) for n in np.unravel_index(position, shape))


def overlaps_itself(shape: Shape, strides: Shape, itemsize: int) -> bool:
    """Return True if two elements share a byte, or if the check reaches its work limit."""
    return _core.overlaps_itself(shape, strides, itemsize, False)


def shares_memory(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Return True if two arrays share a byte, or if the check reaches its work limit."""
    return _core.shares_memory(first, second)
