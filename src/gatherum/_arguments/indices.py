"""Resolve, number and check index values with the core."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gatherum._model import nests
from gatherum._model.dtypes import DType, index_fields
from gatherum._model.errors import Shape
from gatherum._model.nests import Component, Nest
from gatherum._model.operators import OPERATORS, Operator
from gatherum._model.shape_limits import OperandLayout, coordinates_of
from gatherum._system import native

from .conversion import pinned


class Invalid(NamedTuple):
    """An invalid index: the position of its entry, the number of its component, and its value."""

    where: Shape
    component: int
    value: int


def resolve(
    values: NDArray[Any], size: int, mode: str, negative: bool
) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
    """Resolve the index values for one dimension to positions, and find the invalid ones.

    Parameters
    ----------
    values : ndarray of integers
        The indices, of any integer dtype and byte order, with any strides.
    size : int
        The extent of the dimension.
    mode, negative : str, bool
        As for the operators, except that no mode raises.

    Returns
    -------
    tuple
        The positions, with the shape of `values` and 0 for invalid indices; and the mask of the
        invalid indices, or None if all are valid. If every index equals its position, the positions
        may be `values` itself.
    """
    if values.dtype == np.int64 and not first_invalid(values, (size,), "raise", False, False):
        return values, None
    positions, count = number_rows(values, size, mode, negative)
    if not count:
        return positions, None
    invalid = positions < 0
    positions[invalid] = 0
    return positions, invalid


def number_entries(
    operator: Operator,
    space: Shape,
    indices: NDArray[Any],
    axis: int,
    mode: str,
    negative: bool,
) -> NDArray[np.int64]:
    """Return the row-major number of the element or slice that each entry addresses.

    The numbers are row-major positions in an array of shape `space`, which consists of some of the
    dimensions of the data. The number of an entry that is still invalid after the mode is applied
    is -1.
    """
    return _element_numbers(operator, space, indices, axis, mode, negative)[0]


def number_rows(
    values: NDArray[Any], size: int, mode: str, negative: bool
) -> tuple[NDArray[np.int64], int]:
    """Resolve the index values for one dimension to positions, and count the invalid ones.

    The positions are a new array, with -1 for invalid indices.
    """
    positions, invalid = _element_numbers(OPERATORS["gather"], (size,), values, 0, mode, negative)
    return positions.reshape(values.shape), invalid


def first_invalid(
    indices: NDArray[Any], sizes: Sequence[int], mode: str, negative: bool, tuples: bool
) -> Invalid | None:
    """Return the first index, in row-major order, that is invalid in a mode.

    Parameters
    ----------
    indices : ndarray of integers
        As in `resolve`.
    sizes : sequence of int
        The extent for each component of an entry.
    mode, negative : str, bool
        As for the operators.
    tuples : bool
        Whether the last dimension of `indices` runs over the components of a tuple. If False, each
        index is an entry.
    """
    if 0 in indices.shape:
        return None
    pins = pinned(indices)
    shape, steps, step = indices.shape, indices.strides, 0
    if tuples:
        shape, steps, step = shape[:-1], steps[:-1], steps[-1]
    components = [Component(size, 0, c * step) for c, size in enumerate(sizes)]
    nest = nests.lower_checks(OperandLayout(shape, steps), components)
    program = _program(nests.EMPTY, nest, indices.dtype, mode, negative)
    invalid = native.first_invalid(program, indices)
    del pins
    if invalid is None or invalid[0] < 0:  # another thread has made it valid in the meantime
        return None
    position, component, value = invalid
    return Invalid(coordinates_of(position, shape), component, value)


def _element_numbers(
    operator: Operator,
    space: Shape,
    indices: NDArray[Any],
    axis: int,
    mode: str,
    negative: bool,
) -> tuple[NDArray[np.int64], int]:
    """Return the result of `number_entries`, and the count of invalid entries."""
    pins = pinned(indices)
    layout = OperandLayout(indices.shape, indices.strides)
    count = prod(operator.entries(layout).shape)
    if count == 0:
        return np.empty(0, np.int64), 0
    program = _numbering(operator, space, layout, indices.dtype, axis, mode, negative)
    result = native.element_numbers(program, indices, count)
    del pins
    return result


@native.emptied_at_exit
@lru_cache(64)
def _numbering(
    operator: Operator,
    space: Shape,
    layout: OperandLayout,
    dtype: DType,
    axis: int,
    mode: str,
    negative: bool,
) -> native.Program:
    """Compile the loops that assign a number to each entry."""
    nest = nests.lower_numbers(operator.addressing.shape_flags, axis, space, layout)
    return _program(nest, nest._replace(block=0), dtype, mode, negative)


@native.emptied_at_exit
@lru_cache(64)
def _program(nest: Nest, checks: Nest, dtype: DType, mode: str, negative: bool) -> native.Program:
    """Compile a program that loops over indices and checks them, but copies no data."""
    fields = index_fields(dtype, mode, negative)
    return native.Program(**fields, nest=nest, unit_loops=nest.line, checks=checks)
