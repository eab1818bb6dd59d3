"""Report what a call's indices do without the call: invalid entries and repeated destinations."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import conversion, errors, frameworks, lowering, native, shapes
from .call import Array, ArraySpec, is_spec
from .checks import check_range
from .dtypes import core_mode, is_index
from .errors import Shape
from .names import IndexAttributes, OperatorName
from .operators import Operator, find
from .shapes import Layout


@dataclass(frozen=True, slots=True)
class IndexReport:
    """The result of `index_report` for the indices of a call.

    An entry is one index, or one index tuple of the ``*_nd`` operators. Positions are those of
    `indices`, less the tuple dimension.

    Attributes
    ----------
    entries : int
        How many entries there are.
    invalid : int
        How many of them are outside of the data.
    duplicates : int
        How many address what an earlier one, in row-major order, has addressed.
    first_invalid, first_duplicate : tuple of int or None
        Where the first of each is.
    """

    entries: int
    invalid: int
    duplicates: int
    first_invalid: Shape | None
    first_duplicate: Shape | None

    def __str__(self) -> str:
        return (
            f"{self.entries} entries, {_counted(self.invalid, 'invalid', self.first_invalid)}, "
            f"{_counted(self.duplicates, 'duplicate', self.first_duplicate)}"
        )


def _counted(number: int, what: str, first: Shape | None) -> str:
    return f"{number} {what}" + ("" if first is None else f" (first at {list(first)})")


def index_report(
    op: OperatorName | Callable[..., Any],
    data: object,
    indices: ArrayLike,
    /,
    **attributes: Unpack[IndexAttributes],
) -> IndexReport:
    """Count the invalid and the duplicate entries of a call's indices, and find the first of each.

    Parameters
    ----------
    op : str or callable
        An operator's name (``"gather_nd"``, or ``"gather-nd"`` as in the command), or the function
        itself.
    data : array_like, tensor, tuple of int, or (shape, dtype)
        The call's data, of which only the shape counts: an array, its shape, or a description as
        of `gatherum.plan`.
    indices : array_like of int or tensor
        The call's indices.
    **attributes
        `axis` or `batch_dims`, `mode`, `negative` and a gather's `fill_value`, as of the operator,
        though nothing is filled. With the modes
        ``"clip"`` and ``"wrap"`` an invalid entry still counts as one, and addresses what it is
        brought to.

    Returns
    -------
    IndexReport
        Frozen; printing it gives one line.

    Raises
    ------
    TypeError, ValueError
        As the operator would.

    Examples
    --------
    >>> report = gatherum.index_report("gather", (3, 4), [0, 2, 0, 7])
    >>> report.invalid, report.first_duplicate
    (1, (2,))
    >>> print(report)
    4 entries, 1 invalid (first at [3]), 1 duplicate (first at [2])
    """
    operator = find(op, "index_report")
    return reported(operator, _shape(operator.name, data), indices, dict(attributes))


def _shape(op: str, value: object) -> Iterable[int]:
    data: Any = frameworks.spec(op, "data", value)
    if is_spec(data):
        shape: Iterable[int] = data.shape if isinstance(data, ArraySpec) else data[0]
        return shape
    return data if isinstance(data, tuple) else conversion.as_array(op, "data", data).shape


def reported(
    operator: Operator,
    data_shape: Iterable[int],
    indices: ArrayLike,
    attributes: dict[str, object],
) -> IndexReport:
    """Return the report on an operator's indices, as `index_report` does."""
    fill = () if operator.scatters else ("fill_value",)
    names = operator.attribute, "mode", "negative", *fill
    a = conversion.attributes_from(operator.name, attributes, names)
    shape = conversion.as_shape(operator.name, "data", data_shape)
    spec: Any = frameworks.spec(operator.name, "indices", indices)
    if spec is not indices and is_spec(spec):
        found = frameworks.foreign(type(indices))
        raise errors.unread_values(operator.name, "indices", found.name if found else "description")
    array = conversion.as_indices(operator.name, spec)
    pin = weakref.ref(array)  # ndarray.resize refuses an array that has one
    check_range(operator, shape, array.shape, a.axis)
    if not is_index(array.dtype):
        raise errors.not_an_index_dtype(operator.name, array.dtype, operator.tuples)
    axis = operator.resolve(shape, array.shape, a.axis)
    space, axis = _numbered_space(operator, shape, array, axis)
    entries = operator.entries(Layout(array.shape, array.strides)).shape
    numbers = number_entries(operator, space, array, axis, "drop", a.negative)
    invalid = numbers < 0
    if a.mode in ("clip", "wrap") and 0 not in space and invalid.any():
        numbers = number_entries(operator, space, array, axis, a.mode, a.negative)
    del pin
    duplicates = _duplicates(numbers)
    return IndexReport(
        entries=numbers.size,
        invalid=int(np.count_nonzero(invalid)),
        duplicates=duplicates.size,
        first_invalid=_place(int(invalid.argmax()), entries) if invalid.any() else None,
        first_duplicate=_place(int(duplicates.min()), entries) if duplicates.size else None,
    )


def _numbered_space(
    operator: Operator, data: Shape, indices: Array, axis: int
) -> tuple[Shape, int]:
    """Check the shapes, and return the dimensions of the data that distinguish destinations, and
    `axis` counted among them.
    """
    op = operator.name
    shapes.check_rank(op, "`data`", len(data))
    shapes.check_rank(op, "`indices`", indices.ndim)
    moved = operator.moved(data, indices.shape, axis)
    shapes.check_rank(op, "`updates`" if operator.scatters else "the result", len(moved))
    space, axis = operator.space(data, indices.shape, axis)
    shapes.check_size(op, "data", space, 1)
    return space, axis


def number_entries(
    operator: Operator, space: Shape, indices: Array, axis: int, mode: str, negative: bool
) -> NDArray[np.int64]:
    """Return the number of what each entry addresses in a space of dimensions of the data, both in
    row-major order; -1 where the entry is invalid and the mode does not bring it into the data.
    """
    layout = Layout(indices.shape, indices.strides)
    entries = Layout.contiguous(operator.entries(layout).shape, 1)
    # The steps in the data number the elements of the space.
    loops, components = operator.loops(Layout.contiguous(space, 1), layout, entries, axis)
    tuples = prod(entries.shape)
    if tuples == 0:
        return np.empty(0, np.int64)
    loops = lowering.collapse(loops) or [lowering.ONCE]
    nest = lowering.Nest(len(loops) - 1, tuple(loops), tuple(components), 1)
    return native.number_destinations(_program(nest, indices, mode, negative), indices, tuples)


def invalid_component(
    values: Sequence[int], sizes: Sequence[int], mode: str, negative: bool
) -> int:
    """Return which component of an invalid tuple is the first that the mode does not take.

    `negative` says whether values below 0 count from the end.
    """
    if mode in ("clip", "wrap"):
        return sizes.index(0)
    return next(
        c
        for c, (value, size) in enumerate(zip(values, sizes, strict=True))
        if not -size * negative <= value < size
    )


def _program(nest: lowering.Nest, indices: Array, mode: str, negative: bool) -> native.Program:
    """Compile the numbering for the core; nothing of it moves data."""
    return native.Program(
        mode=core_mode(mode),
        negative=negative,
        index_width=indices.dtype.itemsize,
        index_signed=indices.dtype.kind == "i",
        index_swapped=not indices.dtype.isnative,
        nest=nest,
        units=nest.line,
        checks=nest._replace(block=0),
    )


def _duplicates(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the places of the numbers that occurred before; -1 is no number."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    again: NDArray[np.int64] = order[1:][(ordered[1:] == ordered[:-1]) & (ordered[1:] >= 0)]
    return again


def _place(number: int, shape: Shape) -> Shape:
    return tuple(int(n) for n in np.unravel_index(number, shape))
