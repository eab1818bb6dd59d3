"""What a call's indices do, without the call: invalid entries, and destinations met twice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import arguments, errors, lowering, native, shapes
from .dtypes import MODES, is_index
from .errors import Shape
from .lowering import Component, Loop
from .signature import OPERATORS, Array, Layout, axis_name, check_axis


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What `index_report` has found in the indices of a call.

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
    op: str, data_shape: Iterable[int], indices: ArrayLike, /, **attributes: object
) -> IndexReport:
    """Count the invalid and the duplicate entries of a call's indices, and find the first of each.

    Parameters
    ----------
    op : str
        One of the five operators' names.
    data_shape : tuple of int
        The shape of the call's data.
    indices : array_like of int
        The call's indices.
    **attributes
        `axis` or `batch_dims`, `mode` and `negative`, as of the operator. With the modes
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
    if op not in OPERATORS:
        raise errors.unknown_operator(op, OPERATORS, "index_report")
    axis, mode, negative = _attributes(op, attributes)
    shape = arguments.as_shape(op, "data_shape", data_shape)
    array = arguments.as_indices(op, indices)
    axis = check_axis(op, shape, array.shape, axis)
    space = _numbered_space(op, shape, array, axis)
    tuples = array.shape[:-1] if op.endswith("_nd") else array.shape
    numbers = number_entries(op, space, array, axis, "drop", negative)
    invalid = numbers < 0
    if mode in ("clip", "wrap") and 0 not in space and invalid.any():
        numbers = number_entries(op, space, array, axis, mode, negative)
    duplicates = _duplicates(numbers)
    return IndexReport(
        entries=numbers.size,
        invalid=int(np.count_nonzero(invalid)),
        duplicates=duplicates.size,
        first_invalid=_place(int(invalid.argmax()), tuples) if invalid.any() else None,
        first_duplicate=_place(int(duplicates.min()), tuples) if duplicates.size else None,
    )


def _attributes(op: str, given: dict[str, object]) -> tuple[int, str, bool]:
    defaults = {axis_name(op): 0, "mode": "raise", "negative": True}
    for name in given:
        if name not in defaults:
            raise errors.unknown_attribute(op, name, tuple(defaults))
    a = defaults | given
    axis = arguments.as_axis(op, a[axis_name(op)])
    return axis, arguments.as_choice(op, "mode", a["mode"], MODES), bool(a["negative"])


def _numbered_space(op: str, data: Shape, indices: Array, axis: int) -> Shape:
    """Check the call, and return the dimensions of the data that tell destinations apart."""
    if not is_index(indices.dtype):
        raise errors.not_an_index_dtype(op, indices.dtype)
    shapes.check_rank(op, "`data`", len(data))
    shapes.check_rank(op, "`indices`", indices.ndim)
    if op == "gather":
        shapes.check_rank(op, "the result", len(shapes.gather_shape(data, indices.shape, axis)))
        return data[axis : axis + 1]
    if op.endswith("_elements"):
        shapes.elements_shape(op, data, indices.shape, axis)
        space = data
    else:
        moved = shapes.nd_shape(op, data, indices.shape, axis)
        shapes.check_rank(op, "the result", len(moved))
        space = data[: axis + indices.shape[-1]]
    if prod(max(n, 1) for n in space) > shapes.MAX_BYTES:
        raise errors.operand_too_big(op, "data", data)
    return space


def number_entries(
    op: str, space: Shape, indices: Array, axis: int, mode: str, negative: bool
) -> NDArray[np.int64]:
    """Return the number of what each entry addresses in a space of dimensions of the data, both in
    row-major order; -1 where the entry is invalid and the mode does not bring it into the data.
    """
    loops, components = _loops(op, space, indices, axis)
    nest = lowering.Nest(len(loops) - 1, tuple(loops), tuple(components), 1)
    tuples = prod(loop.extent for loop in loops)
    return native.number_destinations(_program(nest, indices, mode, negative), indices, tuples)


def _loops(op: str, space: Shape, indices: Array, axis: int) -> tuple[list[Loop], list[Component]]:
    """Return the loops over the entries, with data steps that number the elements of the space."""
    data = Layout.contiguous(space, 1)
    layout = Layout(indices.shape, indices.strides)
    if op == "gather":
        loops, components = lowering.gather_loops(data, layout, layout, 0)
    elif op.endswith("_elements"):
        loops, components = lowering.elements_loops(data, layout, layout, axis)
    else:
        entries = Layout.contiguous(indices.shape[:-1], 1)
        loops, components = lowering.nd_loops(data, layout, entries, axis)
    return [lowering.ONCE, *loops], components


def _program(nest: lowering.Nest, indices: Array, mode: str, negative: bool) -> native.Program:
    """Compile the numbering for the core; nothing of it moves data."""
    spec: dict[str, Any] = {
        "scatter": True,
        "item": 1,
        "algorithm": 0,
        "reduction": 0,
        "value": 0,
        "include_self": True,
        "mode": MODES.index("fill") if mode == "drop" else MODES.index(mode),
        "negative": negative,
        "index_width": indices.dtype.itemsize,
        "index_signed": indices.dtype.kind == "i",
        "index_swapped": not indices.dtype.isnative,
        "units": 0,
        "line_chunk": 0,
        "split_line": False,
        "destinations": 0,
        "step": 0,
        "tiles": False,
        "moves": False,
        "copies": False,
        "unaddressable": -1,
        "tuples": 0,
        "bytes": 0,
        "nest": lowering.EMPTY,
        "ids": nest,
        "checks": lowering.EMPTY,
        "copy": lowering.EMPTY,
        "shape": (),
    }
    return native.Program(spec)


def _duplicates(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the places of the numbers that occurred before; -1 is no number."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    again: NDArray[np.int64] = order[1:][(ordered[1:] == ordered[:-1]) & (ordered[1:] >= 0)]
    return again


def _place(number: int, shape: Shape) -> Shape:
    return tuple(int(n) for n in np.unravel_index(number, shape))
