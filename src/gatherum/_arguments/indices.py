"""Index values are resolved, numbered and checked by the core; Python calls it through these."""

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
from gatherum._model.shape_limits import OperandLayout, place_of
from gatherum._system import native

from .conversion import pinned


class Invalid(NamedTuple):
    """An invalid index: the position of its entry, its component there, and its value."""

    where: Shape
    component: int
    value: int


def resolve(
    values: NDArray[Any], size: int, mode: str, negative: bool
) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
    """Return the positions that index values address in one dimension, and which are invalid.

    Parameters
    ----------
    values : ndarray of integers
        The indices, of any integer dtype and byte order, with any strides.
    size : int
        The extent of the dimension.
    mode, negative : str, bool
        As of the operators. No mode raises here.

    Returns
    -------
    tuple
        The positions, of the shape of `values` and 0 where there is none; and the mask of the
        invalid indices, or None where all are valid. Where every index is its own position, the
        positions may be `values` themselves.
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
    """Return the number of what each entry addresses in a space of dimensions of the data, both in
    row-major order; -1 where the entry is invalid and the mode does not bring it into the data.
    """
    return _number(operator, space, indices, axis, mode, negative)[0]


def number_rows(
    values: NDArray[Any], size: int, mode: str, negative: bool
) -> tuple[NDArray[np.int64], int]:
    """Return what index values address in a dimension of that size, in an array of its own, and
    how many address nothing: those have -1.
    """
    numbers, invalid = _number(OPERATORS["gather"], (size,), values, 0, mode, negative)
    return numbers.reshape(values.shape), invalid


def first_invalid(
    indices: NDArray[Any], sizes: Sequence[int], mode: str, negative: bool, tuples: bool
) -> Invalid | None:
    """Return the first index, in row-major order, that a mode does not bring into the data.

    Parameters
    ----------
    indices : ndarray of integers
        As in `resolve`.
    sizes : sequence of int
        The extent that each component of an entry is checked against.
    mode, negative : str, bool
        As of the operators.
    tuples : bool
        Whether the last dimension of `indices` is that of the components; otherwise each index is
        an entry.
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
    found = native.first_invalid(program, indices)
    del pins
    if found is None or found[0] < 0:  # another thread has made it valid meanwhile
        return None
    number, component, value = found
    return Invalid(place_of(number, shape), component, value)


def _number(
    operator: Operator,
    space: Shape,
    indices: NDArray[Any],
    axis: int,
    mode: str,
    negative: bool,
) -> tuple[NDArray[np.int64], int]:
    """Return what `number_entries` does, and how many entries are invalid."""
    pins = pinned(indices)
    layout = OperandLayout(indices.shape, indices.strides)
    count = prod(operator.entries(layout).shape)
    if count == 0:
        return np.empty(0, np.int64), 0
    program = _numbering(operator, space, layout, indices.dtype, axis, mode, negative)
    found = native.number(program, indices, count)
    del pins
    return found


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
    """Compile the loops that number entries for the core."""
    nest = nests.lower_numbers(operator.addressing.facts, axis, space, layout)
    return _program(nest, nest._replace(block=0), dtype, mode, negative)


@native.emptied_at_exit
@lru_cache(64)
def _program(nest: Nest, checks: Nest, dtype: DType, mode: str, negative: bool) -> native.Program:
    """Compile loops over indices for the core; nothing of it moves data."""
    fields = index_fields(dtype, mode, negative)
    return native.Program(**fields, nest=nest, units=nest.line, checks=checks)
